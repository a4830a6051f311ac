#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the golden models, trains them and compares with PyTorch's numbers.

For every model and compute type: `dynac`, then 20 steps of the binary on the
committed samples. Losses of all steps and the norm of every gradient of the first
step must lie within BOUNDS of test/golden/*.json. In f64 the same run is repeated
with other micro-batches and other ways of scheduling, which must not matter.

On a machine without `dynac`, binaries that were compiled elsewhere (`--compile-only`) are run
where they lie: `--work` alone says where.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

# How close, and why, by compute type (docs/numerics.md). Losses relative to the
# loss; norms relative to the norm or, if that is less, to `floor`; `zero` bounds the
# norm of gradients that are zero in exact arithmetic.
BOUNDS = {
    # Order of sums and the last bits of exp and tanh, amplified by 20 steps of Adam.
    "f64": {"loss": 1e-10, "norm": 1e-10, "floor": 1e-2, "zero": 1e-12},
    # 6e-8 per rounding, a few hundred of them in a row, and Adam's first steps
    # amplify: 100 times what was measured.
    "f32": {"loss": 1e-5, "norm": 1e-4, "floor": 1e-2, "zero": 1e-6},
    # 4e-3 per rounding of weights and activations, a few dozen of them in a row;
    # losses average over hundreds of tokens: 5 to 10 times what was measured.
    "bf16": {"loss": 3e-3, "norm": 3e-2, "floor": 1e-2, "zero": 1e-3},
}

# The same numbers in f64, whatever the plan.
F64_VARIANTS = [
    [],
    ["--tokens-per-micro-batch=100"],
    ["--tokens-per-micro-batch=150", "--in-flight=2", "--recompute=selective"],
    ["--recompute=full", "--split-backward", "--threads=1"],
]


def run(command):
    """Runs to success or ends the test with the program's own words."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")


class Comparison:
    """Collects what lies outside its bound, and the largest error of each kind."""

    def __init__(self, name):
        self.name = name
        self.faults = []
        self.largest = {}

    def check(self, kind, what, given, wanted, bound, floor=0.0):
        error = abs(given - wanted) / max(abs(wanted), floor) if max(abs(wanted), floor) > 0 else abs(given)
        self.largest[kind] = max(self.largest.get(kind, 0.0), error if math.isfinite(error) else math.inf)
        if not error <= bound:
            self.faults.append(f"{self.name}: {what} is {given!r}, expected {wanted!r} within {bound:g}, error {error:.2g}")

    def report(self):
        errors = ", ".join(f"{kind} {error:.1e}" for kind, error in self.largest.items())
        print(f"{self.name}: largest errors: {errors}")
        for fault in self.faults[:10]:
            print(fault)
        if len(self.faults) > 10:
            print(f"... and {len(self.faults) - 10} more")
        return not self.faults


def compare(name, golden, given, bounds):
    comparison = Comparison(name)
    losses = given["losses"]
    if len(losses) != len(golden["losses"]):
        comparison.faults.append(f"{name}: {len(losses)} losses, expected {len(golden['losses'])}")
    for step, (loss, wanted) in enumerate(zip(losses, golden["losses"])):
        comparison.check("loss", f"the loss of step {step}", loss, wanted, bounds["loss"])
    norms = given["gradient_norms"]
    if set(norms) != set(golden["gradient_norms"]):
        comparison.faults.append(f"{name}: other parameters: {sorted(set(norms) ^ set(golden['gradient_norms']))}")
    for parameter, wanted in golden["gradient_norms"].items():
        norm = norms.get(parameter, math.nan)
        if parameter in golden["zero_gradients"]:
            comparison.check("zero", f"the gradient norm of {parameter}", norm, 0.0, bounds["zero"])
        else:
            comparison.check("norm", f"the gradient norm of {parameter}", norm, wanted, bounds["norm"], bounds["floor"])
    return comparison.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dynac", type=pathlib.Path, help="without it the binaries are there already")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--golden", required=True, type=pathlib.Path, help="folder of the golden files")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="folder for binaries and results")
    parser.add_argument("--models", default="gpt2,llama")
    parser.add_argument("--types", default="f64,f32,bf16")
    parser.add_argument("--dynac-flag", action="append", default=[], help="handed on to dynac")
    parser.add_argument("--run-flag", action="append", default=[], help="handed on to the binaries")
    options = parser.parse_args()
    if options.compile_only and not options.dynac:
        parser.error("--compile-only needs --dynac")
    options.work.mkdir(parents=True, exist_ok=True)
    good = True
    for model in options.models.split(","):
        golden = json.loads((options.golden / f"{model}.json").read_text())
        for type_ in options.types.split(","):
            binary = options.work / f"train-{model}-{type_}"
            if options.dynac:
                run([options.dynac, options.golden / f"{model}.mlir", "-o", binary, f"--compute-type={type_}", *options.dynac_flag])
            if options.compile_only:
                continue
            for i, variant in enumerate(F64_VARIANTS if type_ == "f64" else [[]]):
                result = options.work / f"{model}-{type_}-{i}.json"
                result.unlink(missing_ok=True)
                data = ",".join(str(options.golden / f"{golden.get('samples', model)}_{part}") for part in ("inputs", "targets"))
                run([binary, "--data", data, *golden["flags"], *variant, *options.run_flag,
                     f"--print-grad-norms={result}", "--no-progress"])
                name = " ".join([model, type_, *variant])
                good &= compare(name, golden, json.loads(result.read_text()), BOUNDS[type_])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
