"""Checks that dyna-plan plans as a run does: check_plans_alike.py BINARY COSTS FOLDER CASE...

A case is `STRATEGY | FLAG...`, whose flags both programs take. The run predicts its first step from its own plan; dyna-plan must
report the same numbers for the same samples. What both are told of the data is the file that --write-lengths writes. A case that
begins with `refused` is one that the run refuses for lack of memory; then dyna-plan must say that it does not fit, and why.
"""

import json
import pathlib
import subprocess
import sys

binary, costs, folder, *cases = sys.argv[1:]
folder = pathlib.Path(folder)
data, lengths, metrics = (folder / name for name in ("data.jsonl", "lengths.csv", "metrics.jsonl"))


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


# The longest sample is not in the first step, but a run keeps room for it.
sizes = [(37 * i * i) % 230 + 5 for i in range(60)] + [900]
data.write_text("".join(json.dumps({"text": "x" * size}) + "\n" for size in sizes))
limited = 0


def check_refused(case, common):
    """The run ends with 2, and dyna-plan names the lack."""
    ran = subprocess.run([str(word) for word in [binary, "--data", data, "--steps", 1, *common]], capture_output=True, text=True)
    assert ran.returncode == 2 and "a rank may take" in ran.stderr, (case, ran.returncode, ran.stderr)
    words = ["dyna-plan", binary, "--lengths", lengths, "--steps", 1, *common]
    assert json.loads(run(*words, "--json").stdout)["fits"] is False, case
    said = run(*words).stdout
    assert "does not fit: a rank takes " in said and "but a run keeps room for full micro-batches" in said, (case, said)


for case in cases:
    refused = case.startswith("refused ")
    case = case.removeprefix("refused ")
    strategy, flags = (part.split() for part in case.split("|"))
    common = ["--strategy", *strategy, "--costs", costs, "--tokens-per-batch", 2048, *flags]
    memory = flags[flags.index("--rank-memory"):][:2] if "--rank-memory" in flags else []
    run(binary, "--data", data, "--write-lengths", lengths, "--strategy", *strategy, *memory)
    if refused:
        check_refused(case, common)
        continue
    ran = run(binary, "--data", data, "--shuffle", "none", "--steps", 1, "--no-progress", "--metrics", metrics, *common)
    planned = run("dyna-plan", binary, "--lengths", lengths, "--steps", 1, "--simulate", "host", "--json", *common)
    with metrics.open() as file:
        predicted = json.loads(file.readline())["predicted"]
    row = json.loads(planned.stdout)
    del row["plan"], row["fits"]
    assert predicted == row, (case, predicted, row)
    notes = [{line for line in text.splitlines() if "micro-batches have at most" in line} for text in (ran.stdout + ran.stderr, planned.stderr)]
    assert notes[0] == notes[1], (case, notes)
    limited += len(notes[0])
assert limited > 0, "no case is limited by memory"
