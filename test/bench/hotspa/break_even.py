#!/usr/bin/env python3
"""Finds from how many samples on a switch between strategies of HotSPa's figure 8 pays, simulated by `dyna-plan`.

    test/bench/hotspa/break_even.py --build-dir build --reach 0.335 --call 3.2e-3 --out docs/results/hotspa.md

For every pair of a home and a guest: samples as long as a row, which would run under home, run under the guest instead. The device
is that of table3.py, which prints what is fitted; switches are of parameters there and gradients back, as planned and as by
Algorithm 1, ranks numbered pp+dp+tp.
"""

import argparse
import json
import math
import pathlib
import sys

import steps
import switches
import table3
from steps import K

MARK, END = "<!-- Tables by test/bench/hotspa/break_even.py -->", "<!-- End of the tables by test/bench/hotspa/break_even.py -->"
LENGTHS = [1 * K, 4 * K, 8 * K, 16 * K]
MOST = 4096


class Player(steps.Player):
    """Also knows the time of the baselines."""

    def ways(self, home, guest, side):
        """Seconds there and back."""
        texts = [steps.degrees_text(degrees) + ",order=pp+dp+tp" for degrees in (home, guest)]
        if tuple(texts) not in self.known:
            self.known[tuple(texts)] = self.run(4 * K, [], "--switch", f"{texts[0]} -> {texts[1]} -> {texts[0]}")
        return sum((row if side == "ours" else row["baselines"][side])["seconds"] for row in self.known[tuple(texts)])

    def full(self, degrees, length, count):
        """Seconds of so many rows: those of a step whose replicas all have as many as the fullest."""
        return self.rows(degrees, length, degrees[0] * math.ceil(count / degrees[0]))

    def gain(self, home, guest, length, count):
        """Seconds that so many samples take less under the guest; raises where one of both cannot hold them."""
        return self.full(home, length, count) - self.full(guest, length, count)


def first_worth(gain, cost):
    """The fewest samples from which on, up to the most looked at, all gain what the switches cost; None: there are none.

    `gain` of n samples grows by steps: a replica more or less."""
    best = None
    for count in range(MOST, 0, -1):
        if gain(count) < cost:
            break
        best = count
    return best


def cell(player, home, guest, length):
    """Of our switches and, where it is another number, of those by Algorithm 1."""
    try:
        counts = [first_worth(lambda count: player.gain(home, guest, length, count), player.ways(home, guest, side))
                  for side in ("ours", "algorithm1")]
    except RuntimeError as error:
        if "do not fit" not in str(error):
            raise
        return "no room", []
    texts = ["-" if count is None else str(count) for count in counts]
    return texts[0] + (f" ({texts[1]})" if texts[1] != texts[0] else ""), counts


def page(player, strategies, lengths):
    rows = []
    for home in strategies:
        for guest in strategies:
            if guest == home:
                continue
            cells = []
            for length in lengths:
                text, counts = cell(player, home, guest, length)
                print(json.dumps({"home": home, "guest": guest, "length": length, "samples": counts}), flush=True)
                cells.append(text)
            ways = [f"{player.ways(home, guest, side):.2f}" for side in ("ours", "algorithm1")]
            rows.append([table3.name_of(home), table3.name_of(guest), f"{ways[0]} ({ways[1]})"] + cells)
    lines = ["## Samples at which a switch of figure 8 breaks even", "",
             "The smallest number of samples, each as long as its row, from which on a step is shorter if they leave home for the guest.",
             f"It includes the planned switch there and back (in brackets by Algorithm 1, if that differs). -: never shorter, up to {MOST:,} samples.", ""]
    return lines + table3.table(["home", "guest", "switches, s"] + [f"samples of {length // K}K" for length in lengths], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--reach", type=float, required=True)
    parser.add_argument("--call", type=float, required=True, help="seconds")
    parser.add_argument("--strategies", help="such as 2.2.1,4.1.1 (default: HotSPa's five)")
    parser.add_argument("--size", default="32B")
    parser.add_argument("--devices", type=int, default=32)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--out")
    options = parser.parse_args()
    strategies = switches.STRATEGIES
    if options.strategies:
        strategies = [tuple(int(number) for number in one.split(".")) for one in options.strategies.split(",")]
    player = Player(options.build_dir / "bin" / "dyna-plan", steps.SIZES[options.size], options.devices)
    player.reach, player.call_seconds = options.reach, options.call
    lines = page(player, strategies, [int(length) for length in options.lengths.split(",")])
    if options.out:
        table3.write(options.out, lines, MARK, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
