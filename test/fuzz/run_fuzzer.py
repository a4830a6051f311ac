"""Runs a fuzz target that was linked with libFuzzer and sanitizers for a while.

    run_fuzzer.py --seeds DRIVER --fuzzer TARGET --work DIR [--corpus DIR] [--seconds N]
    run_fuzzer.py --control TARGET --work DIR

The search starts from the seeds that the plain DRIVER writes and from the kept corpus.
What it finds stays in DIR: an input that failed as `failed-...`, new ones in `corpus`,
from where `TARGET -merge=1 test/fuzz/corpus/NAME DIR/corpus` takes those that matter.
--control asks whether planted faults are found.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from patience import PATIENCE  # noqa: E402

# MLIR's library has no sanitizers, and gives memory that headers compiled with them poison.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "allow_user_poisoning=0:detect_leaks=1:symbolize=1",
               "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def run(command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    return done.returncode, done.stdout.decode(errors="replace")


def search(options, work):
    corpus = work / "corpus"
    if options.corpus and options.corpus.is_dir():
        shutil.copytree(options.corpus, corpus)
    subprocess.run([options.seeds, "--write-seeds", corpus], check=True)
    inputs = len(list(corpus.iterdir()))
    code, text = run([options.fuzzer, f"-max_total_time={options.seconds}", f"-timeout={PATIENCE}", "-rss_limit_mb=3000", "-max_len=65536",
                      "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={work}/failed-", corpus])
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    coverage = re.findall(r"cov: (\d+)", text)
    print(f"{inputs} inputs to start from, {executed.group(1) if executed else 'no'} runs, "
          f"coverage {coverage[-1] if coverage else 'none'}")
    if code != 0 or not executed or int(executed.group(1)) < inputs or not coverage:
        print(text[-6000:], f"exit code {code}; inputs that failed: {[str(path) for path in work.glob('failed-*')]}", sep="\n")
        return 1
    return 0


def control(target, work):
    wrong = 0
    for name, content, words in (("address", b"past the end", "heap-buffer-overflow"), ("undefined", b"undefined", "signed integer overflow")):
        path = work / name
        path.write_bytes(content)
        code, text = run([target, path])
        if code == 0 or words not in text:
            wrong += 1
            print(f"a planted fault was not found, expected {words}; exit code {code}\n{text[-3000:]}")
    # The search compares as the target does, and finds one of them from nothing.
    code, text = run([target, f"-max_total_time={PATIENCE}", "-seed=1", f"-artifact_prefix={work}/found-"])
    if code == 0 or not list(work.glob("found-crash-*")):
        wrong += 1
        print(f"the search found no planted fault; exit code {code}\n{text[-3000:]}")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=pathlib.Path)
    parser.add_argument("--fuzzer", type=pathlib.Path)
    parser.add_argument("--control", type=pathlib.Path)
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    sys.exit(control(options.control, options.work) if options.control else search(options, options.work))
