#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the memory phase takes for layers of many ops: one JSON line per layer and size."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "passes/memory/Inputs"))
import chain


def measure(opt, path, flags):
    start = time.perf_counter()
    subprocess.run([opt, path, *flags, "-o", os.devnull], check=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    opt = os.path.join(options.build_dir, "bin/dyna-opt")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "long.mlir")
        for kind in chain.KINDS:
            for count in (1250, 2500, 5000):
                subprocess.run([opt, "-", "--dyna-differentiate", "-o", path], input=chain.layer(kind, count), text=True,
                               check=True)
                # Reading and writing apart.
                times = [measure(opt, path, ["--dyna-memory"]) - measure(opt, path, []) for _ in range(options.repeats)]
                print(json.dumps({"what": "memory phase", "layer": kind, "ops": count, "warmup": 0,
                                  "repeats": options.repeats, "median_s": round(statistics.median(times), 3),
                                  "bound_s": 2 if count == 5000 else None}))


if __name__ == "__main__":
    main()
