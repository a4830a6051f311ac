#!/usr/bin/env python3
"""Switches between HotSPa's strategies (SOSP'24, figure 8 and table 3), as `dyna-plan --switch` plans and simulates them.

    test/bench/hotspa/switches.py --build-dir build --out docs/results/hotspa.md

LLaMA of 32.5 G parameters (60 layers, 6,656 wide) in bf16 on 4 nodes of 8 A800, both numberings of ranks: every ordered pair of
strategies, and the cycles of table 3, beside bounds and baselines. One JSON line for each switch goes to standard output; with
--out tables replace what stands behind the mark on that page, and a picture is drawn beside it.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import matrix

STRATEGIES = [(1, 16, 2), (2, 8, 2), (4, 4, 2), (4, 2, 4), (8, 4, 1)]
# Home, which updates, is the strategy for the longest samples.
CYCLES = {"C1": [(4, 2, 4), (2, 8, 2)], "C2": [(4, 2, 4), (4, 4, 2), (2, 8, 2)], "C3": [(8, 4, 1), (4, 2, 4), (4, 4, 2), (2, 8, 2)]}
ORDERS = {"dp+pp+tp": "dp outermost", "pp+dp+tp": "pp outermost"}
SIDES = {"ours": "planned", "algorithm1": "Algorithm 1", "unfused": "Algorithm 1, unfused", "first-owner": "first owner", "gather": "gathered"}
MARK = "<!-- Tables by test/bench/hotspa/switches.py -->"
END = "<!-- End of the tables of switches -->"


def name(degrees):
    return "({},{},{})".format(*degrees)


def text(degrees, order):
    return "dp={},tp={},pp={},order={}".format(*degrees, order)


class Switches:
    def __init__(self, tool, model, cluster):
        self.tool, self.model, self.cluster, self.known = tool, model, cluster, {}

    def plan(self, order, path):
        """Of a path of strategies the row of each of its switches."""
        command = [self.tool, self.model, "--cluster", self.cluster, "--json", "--switch", " -> ".join(text(one, order) for one in path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"switches.py: {' '.join(command)} ends with {done.returncode}: {done.stderr.strip()}")
        for one, other, line in zip(path, path[1:], done.stdout.splitlines()):
            row = {"order": order, "from": name(one), "to": name(other), **json.loads(line)}
            if (order, one, other) not in self.known:
                self.known[order, one, other] = row
                print(json.dumps(row), flush=True)

    def row(self, order, one, other):
        if (order, one, other) not in self.known:
            self.plan(order, [one, other])
        return self.known[order, one, other]

    def seconds(self, order, one, other, side):
        row = self.row(order, one, other)
        return (row if side == "ours" else row["baselines"][side])["seconds"]

    def peak(self, order, one, other, side):
        row = self.row(order, one, other)
        return (row if side == "ours" else row["baselines"][side])["peak_bytes"]


def tour(strategies):
    """A path over every ordered pair once, so that one run plans all of them (Hierholzer's way)."""
    left = {one: [other for other in strategies if other != one] for one in strategies}
    path, trail = [], [strategies[0]]
    while trail:
        if left[trail[-1]]:
            trail.append(left[trail[-1]].pop(0))
        else:
            path.append(trail.pop())
    return path[::-1]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def ratio(row):
    return row["seconds"] / row["bound"] if row["bound"] > 0 else 1


def page(switches, strategies, cycles):
    lines = ["## Switches between strategies (figure 8)", "",
             "Milliseconds until the last rank has its parameters. In brackets: this time over the bound, and the peak of the fullest rank",
             "(both layouts, and what it passes on). Strategies are (dp,tp,pp); rows switch from, columns to.", ""]
    for order, words in ORDERS.items():
        lines += [f"### {words}: order={order}", ""]
        for side, title in SIDES.items():
            rows = []
            for one in strategies:
                cells = []
                for other in strategies:
                    if one == other:
                        cells.append("")
                        continue
                    row = switches.row(order, one, other)
                    cell = f"{1e3 * switches.seconds(order, one, other, side):.1f}"
                    over = f"{ratio(row):.2f}, " if side == "ours" else ""
                    cells.append(f"{cell} ({over}{switches.peak(order, one, other, side) / 2**30:.1f} GiB)")
                rows.append([name(one)] + cells)
            lines += [f"**{title[0].upper() + title[1:]}**", ""] + table(["from"] + [name(one) for one in strategies], rows)
        pairs = [switches.row(order, one, other) for one in strategies for other in strategies if one != other]
        over = [ratio(row) for row in pairs]
        lines += [f"Over the bound: {sum(over) / len(over):.3f} in the mean, {max(over):.3f} at most.", ""]
    lines += ["## Switches of a step (table 3)", "",
              "Seconds of all switches of parameters in the cycles home, strategies by length, home.", ""]
    rows = []
    for cycle, between in cycles.items():
        path = [strategies[0], *between, strategies[0]]
        for order, words in ORDERS.items():
            sums = {side: sum(switches.seconds(order, one, other, side) for one, other in zip(path, path[1:])) for side in SIDES}
            bound = sum(switches.row(order, one, other)["bound"] for one, other in zip(path, path[1:]))
            rows.append([cycle, words, f"{bound:.3f}"] + [f"{sums[side]:.3f}" for side in SIDES])
    return lines + table(["cycle", "order", "bound"] + list(SIDES.values()), rows)


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--tool", help="dyna-plan (default: of the build folder)")
    parser.add_argument("--model", default=str(here.parents[2] / "docs" / "examples" / "llama-32b.json"))
    parser.add_argument("--cluster", default="a800-80g:4x8")
    parser.add_argument("--strategies", help="such as 2.2.1,4.1.1 (default: HotSPa's five)")
    parser.add_argument("--out", type=pathlib.Path, help="page whose tables are replaced")
    options = parser.parse_args()
    strategies = STRATEGIES
    if options.strategies:
        strategies = [tuple(int(number) for number in one.split(".")) for one in options.strategies.split(",")]
    cycles = {key: path for key, path in CYCLES.items() if set(path) <= set(strategies)} or {"all": strategies[1:]}
    switches = Switches(options.tool or str(options.build_dir / "bin" / "dyna-plan"), options.model, options.cluster)
    for order in ORDERS:
        switches.plan(order, tour(strategies))
    if not options.out:
        return
    before, _, rest = (options.out.read_text() if options.out.exists() else "").partition(MARK)
    _, _, after = rest.partition(END)
    tables = "\n".join(page(switches, strategies, cycles))
    options.out.write_text(before + MARK + "\n\n" + tables + "\n" + END + (after or "\n"))
    panels = []
    for order, words in ORDERS.items():
        for side in ("ours", "algorithm1", "unfused", "first-owner"):
            values = [[None if one == other else switches.seconds(order, one, other, side) for other in strategies] for one in strategies]
            panels.append((f"{SIDES[side]}, {words}", values))
    options.out.with_suffix(".svg").write_text(matrix.draw([name(one) for one in strategies], panels, across=4))


if __name__ == "__main__":
    main()
