#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs passes over modules that were not made for them: each either does its work or says what it needs.

Every pass and pipeline of dyna-opt meets every .mlir file of the folders, in whatever phase that is; then
random sequences of passes do. Nothing may crash, hang, or fail without an error.
"""
import argparse
import concurrent.futures
import glob
import os
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from patience import PATIENCE  # noqa: E402

# What goes on a pass or pipeline that wants to be told something.
OPTIONS = {"dyna-deduce-layouts": ["", "=strategy=tp=2", "=strategy=tp=3,sp=1"],
           "dyna-distribute": ["", "=strategy=tp=2", "=strategy=tp=2,sp=1", "=strategy=tp=2 layer=block role=forward"],
           "dyna-orchestrate": ["=strategies=dp=2", "=strategies='s: dp=2; l: pp=2' ranges='s: 0-4; l: 5-' search-order"],
           "dyna-build-micro-batches": ["=lengths=3,5", "=lengths=3,5 strategy=pp=2 schedule=1f1b"],
           "dyna-schedule": ["", "=schedule=gpipe report"],
           "dyna-order-communication": ["", "=naive", "=schedule=1f1b"],
           "dyna-plan": ["=lengths=3,5", "=lengths=3,5 strategy=pp=2", "=tokens-per-micro-batch=0 lengths=1"],
           "dyna-report-memory": ["=output=/dev/null", "=output=/dev/null tq=9223372036854775807"],
           "dyna-set-target": ["", "=target=cuda", "=target=cpu"],
           "dyna-memory": ["", "=target=cuda"],
           "dyna-select-functions": ["", "=layer=block", "=role=backward"],
           "dyna-convert-compute-type": ["=type=bf16", "=type=f64"],
           "dyna-differentiate": ["", "=gradients=bf16"]}
PIPELINES = ["dyna-distribute", "dyna-memory", "dyna-lower-cpu"]


def run(opt, flags, path):
    """A line about what went wrong, or None."""
    command = [opt, "-split-input-file", "-allow-unregistered-dialect", *flags, path, "-o", os.devnull]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{path}: {' '.join(flags)} hangs"
    if done.returncode == 0 or (done.returncode == 1 and "error:" in done.stderr):
        return None
    return f"{path}: {' '.join(flags)}: exit status {done.returncode}\n{done.stderr[-2000:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--sample", type=int, help="pairs of pass and file to try; all without it")
    parser.add_argument("--sequences", type=int, default=0, help="random sequences of two to five passes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="this pass or pipeline alone, if it is found")
    options = parser.parse_args()

    listing = subprocess.run([options.opt, "--help"], check=True, capture_output=True, text=True).stdout
    names = sorted(set(re.findall(r"--(dyna-[a-z]+(?:-[a-z]+)*)", listing)) | set(PIPELINES))
    if len(names) < 18:
        sys.exit(f"expects to find the passes of dyna-opt, but got {names}")
    if options.only:
        names = [name for name in names if name == options.only] or sys.exit(f"finds no {options.only}")
    flags = [f"--{name}{value}" for name in names for value in OPTIONS.get(name, [""])]
    files = sorted(path for folder in options.folders for path in glob.glob(f"{folder}/**/*.mlir", recursive=True))
    chance = random.Random(options.seed)
    runs = [([flag], path) for flag in flags for path in files]
    if options.sample is not None:
        # Every pass, and every file, at least once.
        picked = [(flags[i % len(flags)], files[i % len(files)]) for i in range(max(len(flags), len(files)))]
        runs = [([flag], path) for flag, path in picked] + chance.sample(runs, max(0, options.sample - len(picked)))
    for _ in range(options.sequences):
        first = [] if chance.random() < 0.3 else ["--dyna-differentiate"]
        runs.append((first + [chance.choice(flags) for _ in range(chance.randint(2, 5))], chance.choice(files)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(lambda pair: run(options.opt, *pair), runs) if fault]
    for fault in faults:
        print(fault)
    print(f"{len(runs)} runs of {len(flags)} forms of {len(names)} passes over {len(files)} files, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
