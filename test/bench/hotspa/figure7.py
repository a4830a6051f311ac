#!/usr/bin/env python3
"""Figure 7 of HotSPa (SOSP'24), simulated by `dyna-plan`: speed of a step that switches, over that of one strategy.

    test/bench/hotspa/figure7.py --build-dir build --lengths code_lengths.csv --reach 0.335 --call 3.2e-3 --crawl 140014,87256,22334,13646,10974 \
        --out docs/results/hotspa.md

The device is that of table3.py, which prints what is fitted and what CommonCrawl's lengths are made of. Of each context the samples
up to it; Static is the strategy that holds it, each range packed to its own end; C2 has one for each column of the table below, C1
that of 16K for 4K to 16K.
"""

import argparse
import csv
import json
import pathlib
import sys

import steps
import table3
from steps import K

MARK, END = "<!-- Tables by test/bench/hotspa/figure7.py -->", "<!-- End of the tables by test/bench/hotspa/figure7.py -->"
COLUMNS = [4 * K, 8 * K, 16 * K, 32 * K]
# Degrees by column, for a size on so many devices.
DEGREES = {("7B", 8): [(8, 1, 1), (4, 2, 1), (2, 2, 2), (1, 4, 2)], ("7B", 16): [(16, 1, 1), (8, 2, 1), (4, 4, 1), (2, 4, 2)],
           ("13B", 8): [(4, 2, 1), (2, 2, 2), (1, 4, 2), (1, 8, 1)], ("13B", 16): [(8, 2, 1), (4, 2, 2), (4, 4, 1), (2, 8, 1)],
           ("32B", 32): [(4, 2, 4), (4, 4, 2), (2, 8, 2), (1, 16, 2)]}


def combinations(degrees, context):
    """By name, {end: degrees}; of contexts with one column there is nothing to switch."""
    own = {end: one for end, one in zip(COLUMNS, degrees) if end <= context}
    found = {}
    if context >= 16 * K:
        found["C1"] = {end: one for end, one in own.items() if end != 8 * K}
    if context >= 8 * K:
        found["C2"] = own
    return found


def step_seconds(player, tokens, case):
    """Of full rows of each range's end; `case` by end. Switches apart."""
    phases = [player.rows(degrees, end, sum(count for e, count in zip(table3.ENDS, tokens) if begin < e <= end) / end)
              for begin, end, degrees in table3.groups(case)]
    there = [degrees for (_, _, degrees), seconds in zip(table3.groups(case), phases) if seconds > 0]
    return sum(phases), player.switch(there) if len(there) > 1 else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--lengths", required=True)
    parser.add_argument("--column", default="tokens")
    parser.add_argument("--reach", type=float, required=True)
    parser.add_argument("--call", type=float, required=True, help="seconds")
    parser.add_argument("--crawl", required=True, help="tokens of CommonCrawl's ranges")
    parser.add_argument("--sizes", default="7B,13B,32B")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with open(arguments.lengths, newline="") as file:
        lengths = [min(int(row[arguments.column]), 32 * K) for row in csv.DictReader(file) if int(row[arguments.column]) > 0]
    github = steps.quantiles(lengths, table3.SAMPLES)
    tokens = {"GitHub": [sum(part) for part in steps.split(github, table3.ENDS)],
              "CommonCrawl": [float(count) for count in arguments.crawl.split(",")]}
    rows = []
    for (name, devices), degrees in DEGREES.items():
        if name not in arguments.sizes.split(","):
            continue
        player = steps.Player(arguments.build_dir / "bin" / "dyna-plan", steps.SIZES[name], devices)
        player.reach, player.call_seconds = arguments.reach, arguments.call
        for data, counts in tokens.items():
            for place, context in enumerate(COLUMNS[1:], 1):
                inside = [count if end <= context else 0 for count, end in zip(counts, table3.ENDS)]
                static = sum(player.rows(degrees[place], end, count / end) for end, count in zip(table3.ENDS, inside))
                row = [f"{name}, {devices}", data, f"{context // K}K", f"{static:.1f} {table3.name_of(degrees[place])}"]
                for case in ("C1", "C2"):
                    combination = combinations(degrees, context).get(case)
                    phases, switches = step_seconds(player, inside, combination) if combination else (0, 0)
                    row.append(f"{phases + switches:.1f} ({switches:.2f}), {static / (phases + switches):.2f}" if combination else "")
                    if combination:
                        print(json.dumps({"size": name, "devices": devices, "data": data, "context": context, "case": case, "static": static,
                                          "phases": phases, "switches": switches}), flush=True)
                rows.append(row)
    page = ["## Figure 7", "", "Seconds of a step, of these switches in brackets, and how many times as fast as Static that is.", ""]
    page += table3.table(["size, devices", "data", "context", "Static", "C1", "C2"], rows)
    if arguments.out:
        table3.write(arguments.out, page, MARK, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
