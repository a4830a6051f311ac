#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits two constants to three totals: the rate of products, and the fixed time of a call of a layer.

    test/bench/terapipe/fit.py --build-dir build

The totals are those *without* slices in the repository of TeraPipe's authors. For each pair of constants, one JSON line
has the error of each total. The last line is the pair with the least squares. Totals with slices take no part.
"""

import argparse
import json
import pathlib
import re
import tempfile

import plans

RATES = (66e12, 69e12, 72e12, 75e12, 78e12)
FIXED = (0.7e-3, 0.8e-3, 0.9e-3, 1.0e-3, 1.1e-3, 1.2e-3, 1.3e-3, 1.4e-3)


def constants(rate, fixed):
    """Returns a change of the text of costs."""
    return lambda text: re.sub(r"launch_seconds: \S+", f"launch_seconds: {fixed:g}", re.sub(r"bf16_flops: \S+", f"bf16_flops: {rate:g}", text))


def errors(bench, rate, fixed):
    """The relative error of each total; micro-batches have one or two samples, whichever is faster."""
    found = {}
    for setting in plans.FIGURE5:
        if setting.number in plans.TOTALS:
            rows = [bench.plan(setting, n, change=constants(rate, fixed)) for n in (1, 2)]
            found[setting.number] = min(row["seconds"] for row in rows if row) / plans.TOTALS[setting.number][0] - 1
    return found


def root_mean_square(found):
    return (sum(error**2 for error in found.values()) / len(found)) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--tool", type=pathlib.Path, help="dyna-plan; without it, that of the build folder")
    options = parser.parse_args()
    tool = options.tool or options.build_dir / "bin" / "dyna-plan"
    with tempfile.TemporaryDirectory() as work:
        bench = plans.Bench(options.build_dir.resolve(), tool.resolve(), pathlib.Path(work))
        best = None
        for rate in RATES:
            for fixed in FIXED:
                found = errors(bench, rate, fixed)
                line = {"flops": rate, "launch_seconds": fixed, **{name: round(error, 4) for name, error in found.items()}}
                print(json.dumps(line), flush=True)
                if best is None or root_mean_square(found) < root_mean_square(best[0]):
                    best = (found, line)
        print(json.dumps({"best": best[1], "root_mean_square": round(root_mean_square(best[0]), 4), "largest": round(max(map(abs, best[0].values())), 4)}))


if __name__ == "__main__":
    main()
