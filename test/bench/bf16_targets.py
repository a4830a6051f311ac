"""Measures how far bf16 runs of several strategies are from one rank, by the number of targets in a step.

    test/bench/bf16_targets.py --build-dir build [--seeds N] [--targets 64,128,...]

The models and the data are those of test/e2e/binary/strategies_common.py. Each run has 5 steps and is compared with a run of
one rank that keeps its gradients in f32, as test/e2e/binary/gradients_test.py does. For each number of tokens in a step one JSON
line: the fewest and the mean targets of a step, and the largest relative differences of a loss and of a gradient norm, as they are
and times the root of the step's targets, which docs/numerics.md bounds.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRATEGIES = ("dp=2", "dp=2,zero=1,recompute=full", "tp=2", "tp=2,sp=1", "pp=2", "dp=2,tp=2,pp=2,zero=1,sp=1")
SWITCHED = ("--strategies=a: dp=2,pp=2; b: tp=2,pp=2,sp=1", "--ranges=a: 0-8; b: 9-", "--merge-ranges=never")


def prepare(build, work):
    """What the modules of the tests read when they are imported."""
    tools = build / "bin"
    os.environ.update(DYNA_DYNAC=str(tools / "dynac"), DYNA_OPT=str(tools / "dyna-opt"), DYNA_TRANSLATE=str(tools / "dyna-translate"),
                      DYNA_WORK=str(work), DYNA_BUILD=str(build), DYNA_SOURCE=str(ROOT))
    sys.path.insert(0, str(ROOT / "test" / "e2e" / "binary"))


def run(common, binary, data, stem, tokens, seed, *flags):
    stem.with_suffix(".jsonl").unlink(missing_ok=True)
    common.succeed([binary, "--data", data, "--steps=5", "--warmup=1", "--lr=1e-3", "--clip=0.5", f"--seed={seed}",
                    f"--tokens-per-batch={tokens}", "--tokens-per-micro-batch=32", "--threads=1", "--no-progress",
                    f"--metrics={stem}.jsonl", *flags])
    return [line for line in common.lines_of(f"{stem}.jsonl") if "step" in line]


def measure(common, strategies, work, tokens, seeds):
    data, targets = strategies.corpus(work / "corpus"), []
    kinds = ("loss", "gradient_norm")
    largest = {name: 0.0 for kind in kinds for name in (kind, f"{kind}_times_root")}
    for family in strategies.FAMILIES:
        wide, narrow = (strategies.program(family, "bf16", (2,), (f"--gradients={gradients}",)) for gradients in ("f32", "bf16"))
        for seed in range(1, seeds + 1):
            one = run(common, wide, data, work / "one", tokens, seed, "--strategy=dp=1")
            targets += [line["targets"] for line in one]
            cases = [(binary, (f"--strategy={strategy}",)) for binary in (wide, narrow) for strategy in STRATEGIES]
            for binary, flags in [*cases, (wide, SWITCHED), (narrow, SWITCHED)]:
                other = run(common, binary, data, work / "other", tokens, seed, *flags)
                for a, b in zip(one, other, strict=True):
                    for kind in kinds:
                        difference = abs(a[kind] - b[kind]) / a[kind]
                        for name, value in ((kind, difference), (f"{kind}_times_root", difference * a["targets"] ** 0.5)):
                            largest[name] = max(largest[name], value)
    print(json.dumps({"what": "bf16_targets", "tokens_per_step": tokens, "fewest_targets": min(targets),
                      "mean_targets": round(sum(targets) / len(targets)), **{key: float(f"{value:.2g}") for key, value in largest.items()}}),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--targets", default="64,128,256,512,1024,4096")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prepare(options.build_dir.resolve(), work)
        import common
        import strategies_common as strategies
        for tokens in map(int, options.targets.split(",")):
            measure(common, strategies, work, tokens, options.seeds)


if __name__ == "__main__":
    main()
