#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds that dynac takes for GPT-2 modules of width 1024 and growing depth.

Prints one JSON line: the median of some runs for each depth, from reading the module
to the linked binary. The goal: under 5 s for 96 layers, and no growth with depth
beyond the calls themselves. Exits with 1 where the goal is missed.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

GOAL_SECONDS = 5.0


def config(layers):
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1024, "n_layer": layers, "n_head": 16,
            "attn_pdrop": 0.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--layers", default="2,24,96")
    parser.add_argument("--runs", default=3, type=int)
    parser.add_argument("--compute-type", default="f32")
    options = parser.parse_args()
    tools = options.build_dir.resolve() / "bin"
    depths = [int(word) for word in options.layers.split(",")]
    seconds = {depth: [] for depth in depths}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for depth in depths:
            (folder / f"{depth}.json").write_text(json.dumps(config(depth)))
            subprocess.run([tools / "dyna-translate", "--gpt2", folder / f"{depth}.json", "-o", folder / f"{depth}.mlir"], check=True)
        # The depths take turns, so that a slow moment of the machine hits all of them.
        for _ in range(options.runs):
            for depth in depths:
                begin = time.perf_counter()
                subprocess.run([tools / "dynac", folder / f"{depth}.mlir", "-o", folder / "train",
                                f"--compute-type={options.compute_type}"], check=True)
                seconds[depth].append(time.perf_counter() - begin)
    medians = {depth: statistics.median(values) for depth, values in seconds.items()}
    deepest, shallowest = max(depths), min(depths)
    good = medians[deepest] < GOAL_SECONDS
    print(json.dumps({"bench": "compile_time", "width": 1024, "compute_type": options.compute_type, "runs": options.runs,
                      "seconds": {str(depth): round(value, 3) for depth, value in medians.items()},
                      "spread": {str(depth): round(max(values) - min(values), 3) for depth, values in seconds.items()},
                      "growth": round(medians[deepest] / medians[shallowest], 3), "goal_seconds": GOAL_SECONDS, "met": good}))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
