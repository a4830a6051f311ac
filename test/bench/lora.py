#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times training steps of GPT-2 124M with adapters of rank 16 on q and v, against steps that train everything.

    test/bench/lora.py BUILD WORK [--steps 4] [--rounds 2] [--tokens 512] [--threads 1]

Both binaries run in turn, so that other work on the machine slows both. The least seconds of a step count, and processor
seconds of whole runs are printed beside them. Bytes of parameters, gradients and moments are compared with the formula:
4 bytes for a frozen weight and 16 for a trained one. Prints one JSON line.
"""
import argparse
import json
import os
import pathlib
import subprocess

CONFIG = {"model_type": "gpt2", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
WIDTH, LAYERS, RANK, PARAMETERS = 768, 12, 16, 124439808
ADAPTERS = LAYERS * 2 * RANK * 2 * WIDTH
PARTS = ("master_bytes", "gradient_bytes", "first_moment_bytes", "second_moment_bytes")


def build(options):
    """The binaries, by name."""
    options.work.mkdir(parents=True, exist_ok=True)
    config = options.work / "gpt2.json"
    config.write_text(json.dumps(CONFIG))
    (options.work / "lengths.txt").write_text(f"{min(options.tokens, 1024)}\n")
    binaries = {}
    for name, flags in (("full", []), ("lora", [f"--lora=q,v:{RANK}"])):
        module, binary = options.work / f"{name}.mlir", options.work / name
        subprocess.run([options.build / "bin/dyna-translate", "--gpt2", config, *flags, "-o", module], check=True)
        subprocess.run([options.build / "bin/dynac", module, "-o", binary], check=True)
        binaries[name] = binary
    return binaries


def run(options, name, binary):
    """Seconds of steps, processor seconds, and bytes of state."""
    metrics, counts = options.work / f"{name}.jsonl", options.work / f"{name}.counts"
    metrics.unlink(missing_ok=True)
    before = os.times()
    subprocess.run([binary, "--data", f"synthetic:lengths={options.work / 'lengths.txt'}", f"--steps={options.steps}",
                    f"--tokens-per-batch={options.tokens}", f"--threads={options.threads}", f"--metrics={metrics}",
                    f"--counts={counts}", "--no-progress"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    seconds = [json.loads(line)["seconds"] for line in metrics.read_text().splitlines()]
    rank = json.loads(counts.read_text())["ranks"][0]
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return seconds, processor, sum(rank[part] for part in PARTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    for name, default in (("steps", 4), ("rounds", 2), ("tokens", 512), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    binaries = build(options)
    least, processor = dict.fromkeys(binaries, float("inf")), dict.fromkeys(binaries, float("inf"))
    state = {}
    for _ in range(options.rounds):
        for name, binary in binaries.items():
            seconds, used, state[name] = run(options, name, binary)
            least[name] = min(least[name], *seconds[1:])
            processor[name] = min(processor[name], used)
    formula = {"full": 16 * PARAMETERS, "lora": 4 * PARAMETERS + 16 * ADAPTERS}
    if state != formula:
        raise SystemExit(f"expected bytes of state {formula}, but got {state}")
    print(json.dumps({"what": "LoRA step, GPT-2 124M, rank 16 on q and v", "tokens": options.tokens,
                      "threads": options.threads, "steps": options.steps, "rounds": options.rounds,
                      "full_seconds": round(least["full"], 3), "lora_seconds": round(least["lora"], 3),
                      "times_as_fast": round(least["full"] / least["lora"], 3),
                      "processor_seconds": processor, "state_bytes": state}))


if __name__ == "__main__":
    main()
