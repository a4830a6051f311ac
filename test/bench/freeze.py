#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times training steps with the first half of GPT-2's layers frozen, against steps that train everything.

    test/bench/freeze.py BUILD WORK [--steps 4] [--rounds 2] [--tokens 512] [--threads 1]

One binary runs both in turn, so that other work on the machine slows both. GPT-2's embedding is not tied here, because the
head would train it. The least seconds of a step count. Flops are those that the run counted, and bytes those that the rank
needs: state (parameters, gradients, moments), and what micro-batches keep for backward. Prints one JSON line.
"""
import argparse
import json
import pathlib
import subprocess

CONFIG = {"model_type": "gpt2", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "tie_word_embeddings": False}
FROZEN = "embed+h.0-h.5"
STATE = ("master_bytes", "gradient_bytes", "first_moment_bytes", "second_moment_bytes")


def build(options):
    options.work.mkdir(parents=True, exist_ok=True)
    config, module, binary = (options.work / f"freeze{end}" for end in (".json", ".mlir", ""))
    config.write_text(json.dumps(CONFIG))
    (options.work / "lengths.txt").write_text(f"{min(options.tokens, 1024)}\n")
    subprocess.run([options.build / "bin/dyna-translate", "--gpt2", config, "-o", module], check=True)
    subprocess.run([options.build / "bin/dynac", module, "--freezable", "-o", binary], check=True)
    return binary


def run(options, binary, name, flags):
    """Seconds of steps, and the counters of the rank."""
    metrics, counts = options.work / f"{name}.jsonl", options.work / f"{name}.counts"
    metrics.unlink(missing_ok=True)
    subprocess.run([binary, "--data", f"synthetic:lengths={options.work / 'lengths.txt'}", f"--steps={options.steps}",
                    f"--tokens-per-batch={options.tokens}", f"--threads={options.threads}", f"--metrics={metrics}",
                    f"--counts={counts}", "--no-progress", *flags], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["seconds"] for line in lines if "seconds" in line], json.loads(counts.read_text())["ranks"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    for name, default in (("steps", 4), ("rounds", 2), ("tokens", 512), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    binary = build(options)
    cases = {"all": [], "half": [f"--freeze={FROZEN}@0"]}
    least, counts = dict.fromkeys(cases, float("inf")), {}
    for _ in range(options.rounds):
        for name, flags in cases.items():
            seconds, counts[name] = run(options, binary, name, flags)
            least[name] = min(least[name], *seconds[1:])
    print(json.dumps({"what": f"step with {FROZEN} frozen, GPT-2 124M with a head of its own", "tokens": options.tokens,
                      "threads": options.threads, "steps": options.steps, "rounds": options.rounds,
                      "all_seconds": round(least["all"], 3), "half_seconds": round(least["half"], 3),
                      "times_as_fast": round(least["all"] / least["half"], 3),
                      "flops_ratio": round(counts["all"]["matrix_flops"] / counts["half"]["matrix_flops"], 3),
                      "state_bytes": {name: sum(rank[part] for part in STATE) for name, rank in counts.items()},
                      "kept_bytes": {name: rank["kept_bytes"] for name, rank in counts.items()}}))


if __name__ == "__main__":
    main()
