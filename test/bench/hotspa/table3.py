#!/usr/bin/env python3
"""Table 3 of HotSPa (SOSP'24), simulated by `dyna-plan`: LLaMA 32B, 32 A800 of 80 GB, samples up to 32K, 512 a step.

    test/bench/hotspa/table3.py --build-dir build --lengths code_lengths.csv --out docs/results/hotspa.md

Two numbers of the device, what is reached of its rate and what a call of a layer's function takes before it begins, are fitted
to the Static column for GitHub; lengths like CommonCrawl's are made so that the Static column there is met. Nothing is fitted to
C1, C2 and C3. As in the published code each range is packed to its own end, in full rows. Switches are those of `dyna-plan --switch`, ranks numbered pp+dp+tp.
One JSON line for each result goes to standard output, tables to --out, behind what people have written there.
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

import steps
from steps import K

MARK, END = "<!-- Tables by test/bench/hotspa/table3.py -->", "<!-- End of the tables by test/bench/hotspa/table3.py -->"
ENDS = [1 * K, 4 * K, 8 * K, 16 * K, 32 * K]
NAMES = ["0-1K", "1-4K", "4-8K", "8-16K", "16-32K"]
STATIC = (1, 16, 2)
# By end of the range.
CASES = {"C1": {4 * K: (4, 2, 4), 16 * K: (2, 8, 2), 32 * K: STATIC},
         "C2": {4 * K: (4, 2, 4), 8 * K: (4, 4, 2), 16 * K: (2, 8, 2), 32 * K: STATIC},
         "C3": {1 * K: (8, 4, 1), 4 * K: (4, 2, 4), 8 * K: (4, 4, 2), 16 * K: (2, 8, 2), 32 * K: STATIC}}
PAPER = {"GitHub": {"Static": [34.9, 38.4, 25.0, 27.3, 53.0], "C1": [26.3, 37.4, 53.0, 1.8], "C2": [26.3, 15.4, 20.2, 53.0, 3.5],
                    "C3": [8.6, 17.1, 15.4, 20.2, 53.0, 4.9]},
         "CommonCrawl": {"Static": [42.1, 12.5, 3.5, 2.9, 2.4], "C1": [22.7, 5.4, 2.4, 1.8], "C2": [22.7, 2.7, 2.2, 2.4, 3.5],
                         "C3": [12.8, 8.2, 2.7, 2.2, 2.4, 4.9]}}
# Totals as printed there.
TOTALS = {"GitHub": {"Static": 178.6, "C1": 118.5, "C2": 118.4, "C3": 119.2},
          "CommonCrawl": {"Static": 63.4, "C1": 32.3, "C2": 33.5, "C3": 33.2}}
SAMPLES = 512
# Single strategies for our micro-batches.
SINGLES = [(1, 16, 2), (1, 8, 4), (2, 8, 2), (4, 8, 1), (2, 4, 4), (1, 4, 8)]


def say(**line):
    print(json.dumps(line), flush=True)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def name_of(degrees):
    return "(" + ",".join(map(str, degrees)) + ")"


def solve(matrix, right):
    """Two equations."""
    (a, b), (c, d) = matrix
    det = a * d - b * c
    return (right[0] * d - b * right[1]) / det, (a * right[1] - c * right[0]) / det


def fit(player, tokens, column):
    """Least squares of relative errors, by steps of a linear model in 1 / reach and the time of a call."""
    def seconds(inverse, call):
        player.reach, player.call_seconds = 1 / inverse, call
        return [player.rows(STATIC, end, count / end) for end, count in zip(ENDS, tokens)]
    inverse, call = 2.5, 2e-3
    for _ in range(3):
        here = seconds(inverse, call)
        slopes = [[(there - now) / (0.1 * value) / goal for there, now, goal in zip(seconds(*point), here, column)]
                  for value, point in ((inverse, (1.1 * inverse, call)), (call, (inverse, 1.1 * call)))]
        missing = [(goal - now) / goal for now, goal in zip(here, column)]
        matrix = [[sum(a * b for a, b in zip(slopes[i], slopes[j])) for j in range(2)] for i in range(2)]
        change = solve(matrix, [sum(a * b for a, b in zip(slopes[i], missing)) for i in range(2)])
        inverse, call = max(1.0, inverse + change[0]), max(1e-5, call + change[1])
    return seconds(inverse, call)


def tokens_for(player, end, seconds):
    """Tokens of a range that take Static so long."""
    low, high = 0.0, 1.0
    while player.rows(STATIC, end, high) < seconds:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if player.rows(STATIC, end, middle) < seconds else (low, middle)
    return high * end


def make_lengths(tokens):
    """Samples with as many tokens in each range: above 1K spread evenly over the logarithm, below it the rest of them."""
    lengths = []
    for begin, end, count in list(zip(ENDS, ENDS[1:], tokens[1:])):
        mean = (end - begin) / math.log(end / begin)
        number = max(1, round(count / mean))
        scale = count / number / mean
        lengths += [min(end, max(begin + 1, round(scale * begin * (end / begin) ** ((i + 0.5) / number)))) for i in range(number)]
    rest = SAMPLES - len(lengths)
    low, high = 1.0, 1023.0
    for _ in range(60):
        least = (low + high) / 2
        low, high = (low, least) if (K - least) / math.log(K / least) > tokens[0] / rest else (least, high)
    return [max(1, round(low * (K / low) ** ((i + 0.5) / rest))) for i in range(rest)] + lengths


def groups(case):
    """(begin, end, degrees) of the ranges of a case."""
    ends = sorted(case)
    return [(begin, end, case[end]) for begin, end in zip([0] + ends[:-1], ends)]


def as_published(player, tokens, cases):
    """By case: seconds of each of its ranges, then switches."""
    found = {"Static": [player.rows(STATIC, end, count / end) for end, count in zip(ENDS, tokens)]}
    for case, strategies in cases.items():
        found[case] = [player.rows(degrees, end, sum(count for e, count in zip(ENDS, tokens) if begin < e <= end) / end)
                       for begin, end, degrees in groups(strategies)]
        found[case].append(player.switch([degrees for _, _, degrees in groups(strategies)]))
    return found


def cell(data, found, case, index, begin):
    """Seconds, and how many times as fast as Static on the same lengths; the paper's in brackets."""
    end = groups(CASES[case])[index][1]
    columns = [i for i, e in enumerate(ENDS) if begin < e <= end]
    here, there = found[case][index], PAPER[data][case][index]
    over = sum(found["Static"][i] for i in columns) / here if here else math.inf
    return f"{here:.1f} ({there}), {over:.2f} ({sum(PAPER[data]['Static'][i] for i in columns) / there:.2f})"


def compare(data, found):
    """Ours beside the paper, by range: a range of several columns stands in the row of the first."""
    rows = []
    for i, name in enumerate(NAMES):
        row = [name, f"{found['Static'][i]:.1f} ({PAPER[data]['Static'][i]})"]
        for case, strategies in CASES.items():
            place = next(((j, begin) for j, (begin, end, _) in enumerate(groups(strategies)) if begin < ENDS[i] <= end))
            first = i == 0 or ENDS[i - 1] <= place[1]
            row.append(cell(data, found, case, *place) if first else "\"")
        rows.append(row)
    rows.append(["switches, others", "-"] + [f"{found[case][-1]:.2f} ({PAPER[data][case][-1]})" for case in CASES])
    totals = {case: sum(found[case]) for case in found}
    rows.append(["total"] + [f"{totals[case]:.1f} ({TOTALS[data][case]})" for case in found])
    rows.append(["over Static", "1"] + [f"{totals['Static'] / totals[case]:.2f} ({TOTALS[data]['Static'] / TOTALS[data][case]:.2f})" for case in CASES])
    return table(["seconds here (paper), times as fast as Static here (paper)"] + list(found), rows), totals


def stronger(player, lengths, found):
    """What Static would be worth without its packing, and C1 to C3 with our micro-batches."""
    tokens = sum(lengths)
    rows, best = [["Static as published", sum(found["Static"])]], {}
    rows.append([f"Static, all packed to 32K ({tokens / 32 / K:.1f} rows)", player.rows(STATIC, 32 * K, tokens / 32 / K)])
    for degrees in SINGLES:
        seconds = player.ours(degrees, lengths)
        say(single=name_of(degrees), seconds=seconds)
        if seconds is not None:
            best[degrees] = seconds
    rows.append(["Static with our micro-batches", best[STATIC]] if STATIC in best else ["Static with our micro-batches", math.inf])
    top = min(best, key=best.get)
    rows.append([f"the best single strategy, {name_of(top)}, with our micro-batches", best[top]])
    for case, strategies in CASES.items():
        parts = [player.ours(degrees, [length for length in lengths if begin < length <= end]) for begin, end, degrees in groups(strategies)]
        if None not in parts:
            rows.append([f"{case} with our micro-batches", sum(parts) + player.switch([degrees for _, _, degrees in groups(strategies)])])
            say(case=case, ours=parts)
    baselines = [seconds for _, seconds in rows[:4]]
    def over(one, other):
        return f"{one / other:.2f}" if math.isfinite(one) else ""
    return table(["step", "seconds", "of Static as published", "of packed to 32K", "of Static, our micro-batches", "of the best single"],
                 [[name, f"{seconds:.1f}"] + [over(base, seconds) for base in baselines] for name, seconds in rows]), top


def break_even(player, lengths):
    """Samples of a range from which on its own strategy is worth a switch there and gradients back, instead of the next longer range's."""
    rows = []
    for case, strategies in CASES.items():
        parts = groups(strategies)
        for (begin, end, degrees), (_, _, upwards) in zip(parts, parts[1:]):
            own = [length for length in lengths if begin < length <= end]
            if not own:
                continue
            mean = sum(own) / len(own)
            cost = player.switch([degrees, parts[-1][2]])
            count = next((n for n in range(1, 4 * SAMPLES)
                          if player.rows(upwards, end, n * mean / end) - player.rows(degrees, end, n * mean / end) >= cost), None)
            rows.append([case, f"{begin // K}-{end // K}K", name_of(degrees), name_of(upwards), f"{mean:,.0f}", f"{cost:.2f}", count or "never"])
            say(break_even=case, end=end, samples=count)
    return table(["case", "range", "own", "merged into", "mean tokens", "switch and back, s", "samples"], rows)


def searched(player, lengths):
    """What dyna-plan finds among all strategies, in our micro-batches."""
    row = player.search(lengths)
    say(search=row)
    texts = [("set", row["strategies"]), ("ranges", row["ranges"]), ("home", row["home"]), ("expected step", f"{row['seconds']:.1f} s"),
             ("of that switches", f"{row['switch_seconds']:.2f} s"), ("best single", f"{row['single_seconds']:.1f} s, {row['single']}"),
             ("looked at", f"{row['considered']} strategies, {row['branches']:,} branches")]
    return table(["search", ""], texts)


def write(out, lines, mark=MARK, end=END):
    """Between its marks; what people have written in front and behind stays."""
    path = pathlib.Path(out)
    text = path.read_text() if path.exists() else ""
    before = text.split(mark)[0] if mark in text else text
    behind = text.split(end)[1] if end in text else "\n"
    path.write_text(before + mark + "\n\n" + "\n".join(lines) + "\n" + end + behind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--lengths", required=True, help="code lengths, which stand for GitHub's")
    parser.add_argument("--column", default="tokens")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with open(arguments.lengths, newline="") as file:
        lengths = [min(int(row[arguments.column]), 32 * K) for row in csv.DictReader(file) if int(row[arguments.column]) > 0]
    github = steps.quantiles(lengths, SAMPLES)
    player = steps.Player(arguments.build_dir / "bin" / "dyna-plan", steps.SIZES["32B"], 32)
    tokens = {"GitHub": [sum(part) for part in steps.split(github, ENDS)]}
    fitted = fit(player, tokens["GitHub"], PAPER["GitHub"]["Static"])
    say(reach=player.reach, call_seconds=player.call_seconds, static=fitted)
    tokens["CommonCrawl"] = [tokens_for(player, end, goal) for end, goal in zip(ENDS, PAPER["CommonCrawl"]["Static"])]
    crawl = make_lengths(tokens["CommonCrawl"])
    say(crawl=tokens["CommonCrawl"], samples=len(crawl), made=[sum(part) for part in steps.split(crawl, ENDS)])
    page = ["## Table 3", "",
            f"Fitted to Static on GitHub: {100 * player.reach:.1f} % of the rate is reached, and a call costs {1e3 * player.call_seconds:.2f} ms before it begins. "
            f"The fit has {', '.join(f'{here:.1f} for {goal}' for here, goal in zip(fitted, PAPER['GitHub']['Static']))} s. "
            f"A step of the code lengths has {sum(tokens['GitHub']):,} tokens. One made like CommonCrawl has {sum(tokens['CommonCrawl']):,.0f}, by range "
            f"{', '.join(f'{count:,.0f}' for count in tokens['CommonCrawl'])}.", ""]
    for data, samples in (("GitHub", github), ("CommonCrawl", crawl)):
        found = as_published(player, tokens[data], CASES)
        lines, totals = compare(data, found)
        say(data=data, **{case: values for case, values in found.items()}, totals=totals)
        page += [f"### {data}, as published", ""] + lines
        lines, top = stronger(player, samples, found)
        page += [f"### {data}, against stronger baselines", "", "How many times as fast as each baseline.", ""] + lines
        page += [f"### {data}: samples at which a switch breaks even", "", "Rows as full as full ones under both strategies, between whole numbers of rows a mean.", ""] + break_even(player, samples)
        page += [f"### {data}: what search finds", ""] + searched(player, samples)
        if arguments.out:
            write(arguments.out, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
