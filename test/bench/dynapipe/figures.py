#!/usr/bin/env python3
"""Figures of DynaPipe (EuroSys'24) that plans of today can be played for, by `dyna-plan` on described clusters.

    test/bench/dynapipe/figures.py --build-dir build --lengths multitask_lengths.csv \
        --length-columns input_tokens,target_tokens --out docs/results/dynapipe.md

GPT of table 1 on 4, 8 and 32 A100 of 40 GB (four nodes of eight), constants of `runtime/cost/descriptions`, none fitted;
attention is fused, as it is executed here. Samples are shuffled with a fixed seed; longer ones are cut at the maximum length.

- figure 13: throughput by maximum length, 65,536 tokens a step; every way of planning at its own best powers of two (DP, TP, PP);
- figure 14: the same by tokens a step, maximum length 2,048;
- figure 16b: schedules at four stages on 8 devices, same degrees;
- figure 7: how noise in the times of functions lengthens a step that was planned without it.

One JSON line for each run goes to standard output, a page with tables to --out.
"""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

# Name, devices, layers, width, heads (table 1; 13 B has 40 heads of 128 at width 5,140, which GPT-2's configuration cannot say).
SIZES = [("3.35B", 4, 16, 4096, 32), ("6.7B", 8, 32, 4096, 32), ("29B", 32, 16, 12288, 96)]
PLANS = ["padded+1f1b", "tokens+1f1b", "ragged+1f1b", "ragged+adaptive"]
MEMORY = 40_000_000_000
LENGTHS = [512, 1024, 2048, 4096, 8192]
# What stands before it on the page is written by people and stays.
MARK = "<!-- Tables by test/bench/dynapipe/figures.py -->"
BATCHES = [16384, 32768, 65536, 131072]


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.tool = pathlib.Path(arguments.build_dir) / "bin" / "dyna-plan"
        self.lengths = self.shuffled()

    def shuffled(self):
        with open(self.arguments.lengths, newline="") as file:
            rows = list(csv.DictReader(file))
        columns = self.arguments.length_columns.split(",")
        tokens = [sum(int(row[column]) for column in columns) for row in rows]
        tokens = [count for count in tokens if count > 0]
        random.Random(1).shuffle(tokens)
        path = self.folder / "lengths.txt"
        path.write_text("".join(f"{count}\n" for count in tokens))
        return path

    def config(self, size, positions):
        name, _, layers, width, heads = size
        path = self.folder / f"gpt-{name}-{positions}.json"
        path.write_text(json.dumps({"model_type": "gpt2", "vocab_size": 50257, "n_positions": positions, "n_embd": width,
                                    "n_layer": layers, "n_head": heads, "n_inner": 4 * width,
                                    "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                                    "attn_pdrop": 0.0}))
        return path

    def run(self, figure, size, positions, plans, *flags, lengths=None):
        devices = size[1]
        nodes, per_node = max(1, devices // 8), min(devices, 8)
        command = [self.tool, self.config(size, positions), "--cluster", f"a100-40g:{nodes}x{per_node}", "--compare",
                   ",".join(plans), "--lengths", lengths or self.lengths, "--json", *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            print(json.dumps({"figure": figure, "size": size[0], "failed": done.stderr.strip().splitlines()[-1]}))
            return []
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            row["peak_bytes"] = max(row["rank_peak_bytes"])
            row["fits"] = row["peak_bytes"] <= MEMORY
        return rows

    def best(self, figure, size, positions, batch):
        """By the words of a plan, its best degrees that fit."""
        rows = self.run(figure, size, positions, PLANS, "--strategy", "search", "--tokens-per-batch", batch, "--steps",
                        self.arguments.steps)
        best = {}
        for row in rows:
            degrees, words = row["plan"].rsplit(" ", 1)
            if row["fits"] and (words not in best or row["tokens_per_second"] > best[words]["tokens_per_second"]):
                best[words] = dict(row, degrees=degrees)
        for words in PLANS:
            line = {"figure": figure, "size": size[0], "devices": size[1], "maximum_length": positions, "tokens_per_step": batch,
                    "plan": words}
            if words in best:
                row = best[words]
                line |= {key: row[key] for key in ("degrees", "tokens_per_second", "bubble", "padding_share", "peak_bytes")}
            else:
                line["out_of_memory"] = True
            print(json.dumps(line), flush=True)
        return best

    def cells(self, best):
        def cell(words):
            if words not in best:
                return "out of memory"
            return f"{best[words]['tokens_per_second']:,.0f} ({best[words]['degrees'].replace(',zero=1', ' z')})"
        last = [best[words]["tokens_per_second"] if words in best else None for words in ("ragged+1f1b", "ragged+adaptive")]
        gain = f"{100 * (last[1] / last[0] - 1):+.1f} %" if all(last) else ""
        return [cell(words) for words in PLANS] + [gain]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def figures_13_14(bench):
    head = ["padded, 1F1B", "fixed tokens, 1F1B", "ragged, 1F1B", "ragged, adaptive", "adaptive over 1F1B"]
    page = ["## Throughput by maximum length (figure 13)", "",
            "Useful tokens a second, 65,536 tokens a step, each at its best degrees (dp, tp, pp; z: ZeRO-1).", ""]
    rows = []
    for size in SIZES:
        for positions in LENGTHS:
            rows.append([size[0], positions] + bench.cells(bench.best("13", size, positions, 65536)))
    page += table(["size", "length"] + head, rows)
    page += ["## Throughput by tokens a step (figure 14)", "", "Maximum length 2,048.", ""]
    rows = []
    for size in SIZES:
        for batch in BATCHES:
            rows.append([size[0], f"{batch:,}"] + bench.cells(bench.best("14", size, 2048, batch)))
    return page + table(["size", "tokens"] + head, rows)


def figure_16b(bench):
    page = ["## Schedules at the same degrees (figure 16b)", "",
            "GPT 6.7 B, 8 devices, four stages, maximum length 2,048; the paper states +10.1 % and +7.4 % over 1F1B for 16,384 and "
            "65,536 tokens a step.", ""]
    rows = []
    for batch in (16384, 65536):
        for strategy in ("dp=2,tp=1,pp=4,zero=1", "dp=1,tp=2,pp=4"):
            plans = bench.run("16b", SIZES[1], 2048, ["ragged+1f1b", "ragged+adaptive"], "--strategy", strategy,
                              "--tokens-per-batch", batch, "--steps", bench.arguments.steps)
            if len(plans) != 2:
                continue
            for plan in plans:
                print(json.dumps({"figure": "16b", "strategy": strategy, "tokens_per_step": batch} |
                                 {key: plan[key] for key in ("plan", "tokens_per_second", "bubble", "peak_bytes", "fits")}))
            one, adaptive = plans
            rows.append([f"{batch:,}", strategy, *(f"{plan['tokens_per_second']:,.0f}" for plan in plans),
                         f"{100 * (adaptive['tokens_per_second'] / one['tokens_per_second'] - 1):+.1f} %",
                         *(f"{100 * plan['bubble']:.1f} %" for plan in plans),
                         *(f"{max(plan['load_bound_seconds'], plan['path_bound_seconds']) / plan['seconds']:.3f}"
                           for plan in plans)])
    return page + table(["tokens", "degrees", "1F1B", "adaptive", "gain", "bubble of 1F1B", "of adaptive", "1F1B: bound / step",
                         "adaptive"], rows)


def figure_7(bench):
    page = ["## Noise in execution times (figure 7)", "",
            "GPT 6.7 B, pp=8, 32 equal samples of 1,024 tokens, one a micro-batch: the step under noise over the step as planned, "
            "mean of 20 seeds. The noise is that of each layer's function; a stage has four.", ""]
    equal = ",".join(["1024"] * 32)
    rows = []
    plans = ["ragged+1f1b", "ragged+adaptive", "ragged+gpipe"]
    still = None
    for noise in (0, 0.1, 0.2, 0.4, 0.8):
        seeds = range(20) if noise else range(1)
        sums = dict.fromkeys(plans, 0.0)
        for seed in seeds:
            for row in bench.run("7", SIZES[1], 2048, plans, "--strategy", "dp=1,pp=8", "--tokens-per-micro-batch", 1024,
                                 "--simulate", f"noise={noise},seed={seed}", lengths=equal):
                sums[row["plan"]] += row["seconds"] / len(seeds)
        still = still or dict(sums)
        print(json.dumps({"figure": "7", "noise": noise} | {plan: sums[plan] for plan in plans}))
        rows.append([noise] + [f"{sums[plan] / still[plan]:.3f}" if still[plan] else "" for plan in plans])
    return page + table(["deviation", "1F1B", "adaptive", "GPipe"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--lengths", required=True)
    parser.add_argument("--length-columns", default="tokens")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        page = figure_16b(bench) + figure_7(bench) + figures_13_14(bench)
    if arguments.out:
        out = pathlib.Path(arguments.out)
        text = out.read_text() if out.exists() else ""
        said = text.split(MARK)[0] if MARK in text else ""
        out.write_text(said + MARK + "\n\n" + "\n".join(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
