#!/usr/bin/env python3
"""C1, C2 and C3 of HotSPa's table 3 (SOSP'24) as whole steps of `dyna-plan --ranges`: LLaMA 32B, 32 A800 of 80 GB.

    test/bench/hotspa/whole_steps.py --build-dir build --lengths code_lengths.csv --reach 0.335 --call 3.2e-3 \
        --crawl 140014,87256,22334,13646,10974 --out docs/results/hotspa.md

The device is that of table3.py, which prints what is fitted and what CommonCrawl's lengths are made of. Micro-batches are ours: ragged, with
chosen recomputation. Switches move while ranks compute, as when a run executes them. One JSON line for each step goes to standard output.
"""

import argparse
import csv
import pathlib
import sys

import steps
import table3
from steps import K

MARK, END = "<!-- Tables by test/bench/hotspa/whole_steps.py -->", "<!-- End of the tables by test/bench/hotspa/whole_steps.py -->"


def play(player, case, lengths):
    """The step of a case, whose last strategy is home."""
    groups = table3.groups(table3.CASES[case])
    strategies = "; ".join(f"s{i}: {steps.degrees_text(degrees)},order=pp+dp+tp" for i, (_, _, degrees) in enumerate(groups))
    ends = [str(end) for _, end, _ in groups[:-1]] + [""]
    ranges = "; ".join(f"s{i}: {begin + 1 if begin else 0}-{end}" for i, ((begin, _, _), end) in enumerate(zip(groups, ends)))
    return player.run(32 * K, lengths, "--strategies", strategies, "--ranges", f"{ranges}; home=s{len(groups) - 1}", "--merge-ranges", "never",
                      "--tokens-per-batch", "200000000", "--tokens-per-micro-batch", str(32 * K), "--recompute", "auto")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--lengths", required=True, help="code lengths, which stand for GitHub's")
    parser.add_argument("--column", default="tokens")
    parser.add_argument("--reach", required=True, type=float)
    parser.add_argument("--call", required=True, type=float)
    parser.add_argument("--crawl", required=True, help="tokens of CommonCrawl by range")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with open(arguments.lengths, newline="") as file:
        lengths = [min(int(row[arguments.column]), 32 * K) for row in csv.DictReader(file) if int(row[arguments.column]) > 0]
    data = {"GitHub": steps.quantiles(lengths, table3.SAMPLES),
            "CommonCrawl": table3.make_lengths([int(count) for count in arguments.crawl.split(",")])}
    player = steps.Player(arguments.build_dir / "bin" / "dyna-plan", steps.SIZES["32B"], 32)
    player.reach, player.call_seconds = arguments.reach, arguments.call
    rows = []
    for name, samples in data.items():
        for case in table3.CASES:
            step = play(player, case, samples)
            table3.say(data=name, case=case, seconds=step["seconds"], switch_seconds=step["switch_seconds"],
                       switch_alone_seconds=step["switch_alone_seconds"], phases=[phase["seconds"] for phase in step["phases"]],
                       peak_bytes=max(step["rank_peak_bytes"]))
            rows.append([name, case, f"{step['seconds']:.1f}", " + ".join(f"{phase['seconds']:.1f}" for phase in step["phases"]),
                         f"{step['switch_alone_seconds']:.2f}", f"{step['switch_seconds']:.2f}", f"{max(step['rank_peak_bytes']) / 1e9:.1f} GB"])
    if arguments.out:
        table3.write(arguments.out, ["## Whole steps", ""] + table3.table(
            ["data", "case", "step, s", "phases, which overlap, s", "switches alone, s", "in their instructions, s", "fullest rank"], rows), MARK, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
