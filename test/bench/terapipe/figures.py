#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures 5 to 7 of TeraPipe (ICML'21), simulated by `dyna-plan` on described nodes.

    test/bench/terapipe/figures.py --build-dir build --out docs/results/terapipe.md

The ten settings of table 1: GPT-3 models on 192 to 384 V100 of p3.16xlarge, samples of 2,048 tokens, the batch sizes of the
paper, GPipe. The baseline has micro-batches of whole samples, with the best number of samples each. Slices are the exact cut
(`--slices exact`), the published program (`terapipe-code`), uniform ones (1 to 128 for each sample), and `auto`, which may
also use 1F1B. Constants are in Inputs/v100-p3.textproto: nothing is fitted to a total with slices.

One JSON line for each result goes to standard output, progress to standard error, and tables to --out.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).parent
MARK = "<!-- Tables by test/bench/terapipe/figures.py -->"


class Setting(typing.NamedTuple):
    number: str
    model: str
    batch: int
    dp: int
    pp: int
    tp: int
    published: float  # speedup of figure 5 or 7
    tokens: int = 2048


# Layers, width, heads.
MODELS = {"1B": (24, 2048, 16), "13B": (40, 5120, 40), "44B": (96, 6144, 48), "175B": (96, 12288, 96)}
FIGURE5 = [Setting("(1)", "1B", 128, 8, 24, 1, 1.21), Setting("(2)", "1B", 72, 2, 12, 8, 1.00),
           Setting("(3)", "1B", 72, 1, 24, 8, 1.00), Setting("(4)", "13B", 32, 2, 20, 8, 1.40),
           Setting("(5)", "13B", 32, 1, 40, 8, 1.40), Setting("(6)", "44B", 8, 4, 96, 1, 1.88),
           Setting("(7)", "44B", 8, 2, 24, 8, 1.56), Setting("(8)", "44B", 8, 1, 48, 8, 2.40),
           Setting("(9)", "175B", 2, 1, 96, 4, 6.75), Setting("(10)", "175B", 2, 1, 48, 8, 5.02)]
FIGURE7 = [Setting("(5)", "13B", batch, 1, 40, 8, published, tokens)
           for tokens, batch, published in ((4096, 8, 2.76), (6144, 4, 4.97), (8192, 2, 7.83))]
# Totals of the authors' repository: without slices, with slices.
TOTALS = {"(3)": (0.913, 0.913), "(5)": (1.863, 1.328), "(10)": (5.822, 1.160)}


def config(model, tokens):
    layers, width, heads = MODELS[model]
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": tokens, "n_embd": width, "n_layer": layers, "n_head": heads,
            "n_inner": 4 * width, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": True}


class Bench:
    def __init__(self, build, work):
        self.tool = build / "bin" / "dyna-plan"
        self.work = work

    def plan(self, setting, samples, *flags, pipeline="gpipe"):
        """Plans one step with so many samples in a micro-batch, and returns the row of dyna-plan."""
        model = self.work / f"{setting.model}-{setting.tokens}.json"
        model.write_text(json.dumps(config(setting.model, setting.tokens)))
        command = [self.tool, model, "--costs", HERE / "Inputs" / "v100-p3.textproto", "--strategy",
                   f"dp={setting.dp},tp={setting.tp},pp={setting.pp}", "--lengths", ",".join([str(setting.tokens)] * setting.batch),
                   "--tokens-per-batch", setting.tokens * setting.batch, "--tokens-per-micro-batch", setting.tokens * samples,
                   "--pipeline", pipeline, "--json", *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        if not rows:
            return None
        row = rows[0]
        row["fits"] = done.returncode == 0
        row["peak_bytes"] = max(stage["peak_bytes"] for stage in row["stages"])
        return row

    def best(self, setting, choices, **options):
        """The fastest plan of (samples in a micro-batch, flags); with its choice."""
        best = None
        for samples, flags in choices:
            row = self.plan(setting, samples, *flags, **options)
            if row and (best is None or row["seconds"] < best[0]["seconds"]):
                best = (row, samples, flags)
        return best


def divisors(number):
    return [n for n in range(1, number + 1) if number % n == 0]


def measure(bench, setting, progress):
    own = setting.batch // setting.dp
    sizes = [n for n in divisors(own) if n <= 16]
    result = {"setting": setting.number, "model": setting.model, "tokens": setting.tokens, "batch": setting.batch,
              "strategy": f"dp={setting.dp},tp={setting.tp},pp={setting.pp}", "published": setting.published}

    def note(name, found):
        if not found:
            return
        row, samples, flags = found
        result[name] = {"seconds": row["seconds"], "bound": row["bound_seconds"], "samples": samples,
                        "slices": flags[1] if flags else "none", "micro_batches": row["micro_batches"],
                        "peak_bytes": row["peak_bytes"]}
        print(f"{setting.number} {setting.tokens}: {name} {row['seconds']:.3f} s", file=progress, flush=True)

    # Chunks of several samples are cut as a row of tokens; alone, each sample has a cut of its own.
    note("whole", bench.best(setting, [(n, ()) for n in sizes]))
    note("exact", bench.best(setting, [(1, ("--slices", "exact"))]))
    note("paper_code", bench.best(setting, [(1, ("--slices", "terapipe-code"))]))
    uniform = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if setting.tokens // n >= 16]
    note("uniform", bench.best(setting, [(1, ("--slices", f"uniform:{n}")) for n in uniform]))
    # `auto` chooses between these and whole samples.
    note("auto", bench.best(setting, [(n, ("--slices", "auto")) for n in sizes]))
    note("one_f_one_b", bench.best(setting, [(1, ("--slices", "exact"))], pipeline="1f1b"))
    for name in ("exact", "paper_code", "uniform", "auto", "one_f_one_b"):
        if name in result:
            result[name]["speedup"] = result["whole"]["seconds"] / result[name]["seconds"]
    return result


def cell(result, name, what="speedup"):
    if name not in result:
        return ""
    value = result[name][what]
    return f"{value:.2f}x" if what == "speedup" else f"{value / 1e9:.1f}" if what == "peak_bytes" else f"{value:.3f}"


def table(results):
    head = ["setting", "model", "tokens", "batch", "strategy", "whole, s", "exact, s", "published", "auto", "exact", "paper's code",
            "best uniform", "1F1B", "GB whole", "GB exact", "GB 1F1B"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for result in results:
        cells = [result["setting"], result["model"], result["tokens"], result["batch"], result["strategy"],
                 cell(result, "whole", "seconds"), cell(result, "exact", "seconds"), f"{result['published']:.2f}x",
                 *(cell(result, name) for name in ("auto", "exact", "paper_code", "uniform", "one_f_one_b")),
                 *(cell(result, name, "peak_bytes") for name in ("whole", "exact", "one_f_one_b"))]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def totals(results):
    lines = ["| setting | whole, measured | whole, simulated | sliced, measured | sliced, simulated |", "|---|---|---|---|---|"]
    for result in results:
        if result["setting"] in TOTALS and result["tokens"] == 2048:
            whole, sliced = TOTALS[result["setting"]]
            best = min(result[name]["seconds"] for name in ("whole", "exact", "auto") if name in result)
            lines.append(f"| {result['setting']} | {whole} | {result['whole']['seconds']:.3f} | {sliced} | {best:.3f} |")
    return lines


def write(path, results, longer):
    before = path.read_text().split(MARK)[0] if path.exists() else "# TeraPipe's figures, simulated\n\n"
    lines = [MARK, "", "## Figure 5", "", *table(results), "", "## Totals of the authors", "", *totals(results)]
    if longer:
        lines += ["", "## Figure 7", "", *table(longer)]
    path.write_text(before + "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", help="settings, such as (10) or (5)@8192", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build_dir.resolve(), pathlib.Path(work))
        results, longer = [], []
        for settings, found in ((FIGURE5, results), (FIGURE7, longer)):
            for setting in settings:
                name = setting.number + (f"@{setting.tokens}" if setting.tokens != 2048 else "")
                if options.only and name not in options.only:
                    continue
                found.append(measure(bench, setting, sys.stderr))
                print(json.dumps(found[-1]), flush=True)
                if options.out:
                    write(options.out, results, longer)


if __name__ == "__main__":
    main()
