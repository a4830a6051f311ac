"""Measures how far predictions of costs are from what runs take.

    test/bench/predictions.py --build-dir build [--profile-seconds N] [--steps N] [--strategies "pp=2;dp=2;tp=2;one"]

Profiles the model of `strategies.py` on two ranks of one thread each (dp=2 and pp=2 share what tp=1 takes; tp=2) and on
one rank of two threads, then trains with these costs: 8,192 tokens a step in micro-batches of at most 2,048, on the
lengths of a multi-task mixture. Three profiles of as many seconds as --profile takes by itself: 18 minutes in all.
One JSON line each:

`functions`: the profile's own error off its grid, of single calls and weighted by their time, and how quiet the machine
was.
`steps`: |predicted - measured| / measured of the steps behind the first one, mean and p95; `over_measured`, the median of
predicted over measured, says in which direction; `calm_steps` are those whose ranks had to wait for a core for less than
2 % of the step, with their mean; `withheld`, the part of the time of calls without exchanges in which
their rank had no core: steps are timed on the wall, so where that is much they say nothing.
`functions_over_core` is what the functions were predicted to take over what their threads had of a core: as good on a
busy machine as on a quiet one.
`instructions`: where the error comes from. Per instruction and kind of layer, milliseconds of all traced steps and
ranks: as predicted, as timed on the wall, and what the threads had of a core. Waits are as long as others are late.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from strategies import MODEL
from train_step import emit, real_lengths

LIMIT_FUNCTIONS, LIMIT_STEPS = 0.05, 0.10
CALM = 0.02  # of a step, without a core


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def part(pattern, text):
    found = re.search(pattern, text)
    return float(found[1]) / 100 if found else None


def profile(binary, costs, strategy, seconds):
    begin = time.monotonic()
    text = run([binary, "--profile", costs, "--profile-seconds", seconds, "--threads", 2, "--tokens-per-micro-batch", 2048,
                *(["--strategy", strategy] if strategy else [])])
    long = r"error off the grid: mean ([\d.]+) %, p95 ([\d.]+) %, over (\d+) calls of 0.1 ms"
    found = re.search(long, text)
    emit(what="functions", strategy=strategy or "one", mean=float(found[1]) / 100, p95=float(found[2]) / 100,
         calls=int(found[3]), limit_mean=LIMIT_FUNCTIONS, weighted=part(r"weighted by their time ([\d.]+) %", text),
         short_mean=part(r"off the grid: mean ([\d.]+) %, .* shorter calls", text),
         withheld=part(r"no core for ([\d.]+) %", text), spread=part(r"call differ by ([\d.]+) %", text),
         passes=int(re.search(r"(\d+) full passes", text)[1]), seconds=round(time.monotonic() - begin, 1))


def ratio(sums):
    core = sum(times[2] for times in sums)
    return round(sum(times[0] for times in sums) / core, 4) if core else None


def train(binary, folder, costs, strategy, steps):
    metrics, trace = folder / "metrics.jsonl", folder / "trace.json"
    metrics.unlink(missing_ok=True)
    run([binary, "--data", f"synthetic:lengths={folder / 'lengths.txt'}", "--tokens-per-batch", 8192,
         "--tokens-per-micro-batch", 2048, "--steps", steps + 1, "--threads", 2, "--metrics", metrics, "--no-progress",
         "--costs", costs, "--trace", trace, *(["--strategy", strategy] if strategy else [])])
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = [line for line in lines if "step" in line][1:]
    ratios = [line["predicted_seconds"] / line["seconds"] for line in lines]
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    calm = [abs(ratio - 1) for ratio, line in zip(ratios, lines) if line["core_wait_seconds"] < CALM * line["seconds"]]
    events = json.loads(trace.read_text())["traceEvents"]
    predicted = {event["pid"] for event in events
                 if event["name"] == "process_name" and event["args"]["name"].startswith("predicted")}
    sums = collections.defaultdict(lambda: [0.0, 0.0, 0.0])
    wall = core = 0
    kinds = set()
    for event in events:
        if event["ph"] != "X" or event["cat"] in ("exchange", "transfer") or event["args"].get("step", 1) == 1:
            continue
        name = f"{event['name']} {event['cat']}"
        if event["pid"] in predicted:
            sums[name][0] += event["dur"] / 1e3
            continue
        sums[name][1] += event["dur"] / 1e3
        sums[name][2] += event.get("tdur", 0) / 1e3
        if "flops" in event["args"] and "tp" not in strategy:
            kinds.add(name)
            wall += event["dur"]
            core += event["tdur"]
    emit(what="steps", strategy=strategy or "one", steps=len(errors), mean=round(statistics.mean(errors), 4),
         p95=round(errors[math.ceil(0.95 * len(errors)) - 1], 4), over_measured=round(statistics.median(ratios), 4),
         limit_mean=LIMIT_STEPS, functions_over_core=ratio([sums[name] for name in kinds]), calm_steps=len(calm), calm_mean=round(statistics.mean(calm), 4) if calm else None, withheld=round(1 - core / wall, 4) if wall else None,
         median_seconds=round(statistics.median(line["seconds"] for line in lines), 4),
         plan_wait_seconds=round(statistics.median(line["plan_wait_seconds"] for line in lines), 5))
    for name, (guess, wall, core) in sorted(sums.items(), key=lambda item: -item[1][1]):
        if max(guess, wall) >= 0.002 * sum(times[1] for times in sums.values()):
            emit(what="instructions", strategy=strategy or "one", name=name, predicted_ms=round(guess, 1),
                 wall_ms=round(wall, 1), core_ms=round(core, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--profile-seconds", type=int, default=300)
    parser.add_argument("--steps", type=int, default=11)
    parser.add_argument("--strategies", default="pp=2;dp=2;tp=2;one", help="with ; between them")
    args = parser.parse_args()
    tools = pathlib.Path(args.build_dir).resolve() / "bin"
    strategies = ["" if word == "one" else word for word in args.strategies.split(";")]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config, module, binary = folder / "gpt.json", folder / "gpt.mlir", folder / "train"
        config.write_text(json.dumps(MODEL))
        run([tools / "dyna-translate", "--gpt2", config, "-o", module])
        run([tools / "dynac", module, "-o", binary, "--strategies", "t: tp=2"])
        lengths, _ = real_lengths(4000)
        (folder / "lengths.txt").write_text("\n".join(map(str, lengths)) + "\n")
        # What a function takes depends on how many ranks work at once, which a file of costs does not say: one each.
        several, alone = folder / "several.costs", folder / "alone.costs"
        profiled = {}
        for strategy in strategies:
            costs = several if strategy else alone
            kind = "tp" if "tp" in strategy else "whole"
            if (costs, kind) not in profiled:
                profiled[costs, kind] = True
                profile(binary, costs, strategy, args.profile_seconds)
        for strategy in strategies:
            train(binary, folder, several if strategy else alone, strategy, args.steps)


if __name__ == "__main__":
    main()
