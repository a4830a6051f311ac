#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures 5 to 7 of TeraPipe (ICML'21), simulated by `dyna-plan` on described nodes, and what lies beyond them.

    test/bench/terapipe/figures.py --build-dir build --out docs/results/terapipe.md

The ten settings of table 1: GPT-3 models on 192 to 384 V100 of p3.16xlarge, samples of 2,048 tokens, the batch sizes of the
paper, GPipe. The baseline has micro-batches of whole samples, with the best number of samples each. Slices are the exact cut
(`--slices exact`), the published program (`terapipe-code`), uniform ones (1 to 128 for each sample), and `auto`, which may
also use 1F1B. Constants are in Inputs/v100-p3.textproto: nothing is fitted to a total with slices.

Beyond: 1F1B with the same cut, at the same batch and at the largest one that fits, and samples of up to 131,072 tokens.

One JSON line for each result goes to standard output, progress to standard error, tables to --out and a picture beside it.
What a tool of the same bytes has planned is read from terapipe.jsonl in the build folder.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import typing

import picture

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
FIGURE6 = ("(8)", "(9)")
UNIFORM = (1, 2, 4, 8, 16, 32, 64, 128)
# A step of as many tokens has fewer and longer samples; no figure of the paper.
LONGER = [Setting("(5)", "13B", max(1, 65536 // tokens), 1, 40, 8, 0, tokens)
          for tokens in (2048, 4096, 8192, 16384, 32768, 65536, 131072)]
# Totals of the authors' repository: without slices, with slices.
TOTALS = {"(3)": (0.913, 0.913), "(5)": (1.863, 1.328), "(10)": (5.822, 1.160)}


def config(model, tokens):
    layers, width, heads = MODELS[model]
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": tokens, "n_embd": width, "n_layer": layers, "n_head": heads,
            "n_inner": 4 * width, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": True}


class Bench:
    def __init__(self, build, tool, work, cluster):
        self.tool, self.work, self.cluster = tool, work, cluster
        self.store = build / "terapipe.jsonl"
        self.mark = hashlib.sha256(self.tool.read_bytes() + cluster.read_bytes()).hexdigest()[:16]
        self.known = {}
        if self.store.exists():
            for line in self.store.read_text().splitlines():
                entry = json.loads(line)
                self.known[entry["key"]] = entry["row"]

    def ask(self, model, words):
        """The row of dyna-plan; None if it has no plan. Asked once."""
        key = f"{self.mark} {model.name} {' '.join(words)}"
        if key not in self.known:
            done = subprocess.run([str(self.tool), str(model), "--costs", str(self.cluster), *words], capture_output=True, text=True)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            if not rows and done.returncode not in (0, 1, 2):
                raise SystemExit(f"figures.py: dyna-plan {' '.join(words)} ends with {done.returncode}: {done.stderr.strip()}")
            kept = None
            if rows:
                kept = {name: rows[0][name] for name in ("seconds", "bound_seconds", "micro_batches")}
                kept["fits"] = done.returncode == 0
                kept["peak_bytes"] = max(stage["peak_bytes"] for stage in rows[0]["stages"])
            self.known[key] = kept
            with self.store.open("a") as file:
                file.write(json.dumps({"key": key, "row": kept}) + "\n")
        return self.known[key]

    def plan(self, setting, samples, *flags, pipeline="gpipe"):
        """Plans one step with so many samples in a micro-batch."""
        model = self.work / f"{setting.model}-{setting.tokens}.json"
        model.write_text(json.dumps(config(setting.model, setting.tokens)))
        words = ["--strategy", f"dp={setting.dp},tp={setting.tp},pp={setting.pp}", "--lengths",
                 ",".join([str(setting.tokens)] * setting.batch), "--tokens-per-batch", setting.tokens * setting.batch,
                 "--tokens-per-micro-batch", setting.tokens * samples, "--pipeline", pipeline, "--json", *flags]
        return self.ask(model, [str(word) for word in words])

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


def noted(setting, name, found, progress):
    """What the result keeps of a plan."""
    row, samples, flags = found
    print(f"{setting.number} {setting.tokens}: {name} {row['seconds']:.3f} s", file=progress, flush=True)
    return {"seconds": row["seconds"], "bound": row["bound_seconds"], "samples": samples, "slices": flags[1] if flags else "none",
            "micro_batches": row["micro_batches"], "peak_bytes": row["peak_bytes"], "fits": row["fits"]}


def uniform_of(setting):
    """The uniform cuts whose slices have 16 tokens or more."""
    return [n for n in UNIFORM if setting.tokens // n >= 16]


def measure(bench, setting, progress):
    own = setting.batch // setting.dp
    sizes = [n for n in divisors(own) if n <= 16]
    result = {"setting": setting.number, "model": setting.model, "tokens": setting.tokens, "batch": setting.batch,
              "strategy": f"dp={setting.dp},tp={setting.tp},pp={setting.pp}", "published": setting.published}

    def note(name, found):
        if found:
            result[name] = noted(setting, name, found, progress)

    # Chunks of several samples are cut as a row of tokens; alone, each sample has a cut of its own.
    note("whole", bench.best(setting, [(n, ()) for n in sizes]))
    note("exact", bench.best(setting, [(1, ("--slices", "exact"))]))
    note("paper_code", bench.best(setting, [(1, ("--slices", "terapipe-code"))]))
    note("uniform", bench.best(setting, [(1, ("--slices", f"uniform:{n}")) for n in uniform_of(setting)]))
    # `auto` chooses between these and whole samples.
    note("auto", bench.best(setting, [(n, ("--slices", "auto")) for n in sizes]))
    note("one_f_one_b", bench.best(setting, [(1, ("--slices", "exact"))], pipeline="1f1b"))
    for name in ("exact", "paper_code", "uniform", "auto", "one_f_one_b"):
        if name in result:
            result[name]["speedup"] = result["whole"]["seconds"] / result[name]["seconds"]
    return result


def uniform_rows(bench, setting, progress):
    """Figure 6: each uniform cut beside the exact one."""
    rows = {n: bench.plan(setting, 1, "--slices", f"uniform:{n}") for n in uniform_of(setting)}
    exact = bench.plan(setting, 1, "--slices", "exact")
    print(f"{setting.number}: {len(rows)} uniform cuts", file=progress, flush=True)
    return {"figure": 6, "setting": setting.number, "exact": exact["seconds"], "uniform": {n: row["seconds"] for n, row in rows.items() if row}}


def largest_batch(bench, setting, pipeline, progress):
    """The largest of 1, 2, 4 and 8 times the batch that fits, with the exact cut, and its tokens a second."""
    found = None
    for times in (1, 2, 4, 8):
        more = setting._replace(batch=setting.batch * times)
        row = bench.plan(more, 1, "--slices", "exact", pipeline=pipeline)
        if not row or not row["fits"]:
            break
        found = {"batch": more.batch, "tokens_per_second": more.batch * more.tokens / row["seconds"], "peak_bytes": row["peak_bytes"]}
    print(f"{setting.number}: largest batch under {pipeline} {found['batch'] if found else 'none'}", file=progress, flush=True)
    return found


def cell(result, name, what="speedup"):
    if name not in result:
        return ""
    value = result[name][what]
    if what == "peak_bytes":
        return f"{value / 1e9:.1f}" + ("" if result[name]["fits"] else ", too many")
    return f"{value:.2f}x" if what == "speedup" else f"{value:.3f}"


def table(results):
    head = ["setting", "model", "tokens", "batch", "strategy", "whole, s", "exact, s", "published", "auto", "exact", "paper's code",
            "best uniform", "1F1B", "GB whole", "GB exact", "GB 1F1B"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for result in results:
        cells = [result["setting"], result["model"], result["tokens"], result["batch"], result["strategy"],
                 cell(result, "whole", "seconds"), cell(result, "exact", "seconds"), f"{result['published']:.2f}x" if result["published"] else "",
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


def uniform_table(rows):
    lines = ["| setting | exact | " + " | ".join(map(str, UNIFORM)) + " |", "|" + "---|" * (len(UNIFORM) + 2)]
    for row in rows:
        cells = [f"{row['uniform'][n] / row['exact']:.2f}" if n in row["uniform"] else "" for n in UNIFORM]
        lines.append(f"| {row['setting']} | {row['exact']:.3f} s | " + " | ".join(cells) + " |")
    return lines


def batch_table(rows):
    lines = ["| setting | batch, GPipe | tokens/s | GB | batch, 1F1B | tokens/s | GB |", "|" + "---|" * 7]
    for row in rows:
        cells = [row["setting"]]
        for name in ("gpipe", "1f1b"):
            found = row[name]
            cells += [found["batch"], f"{found['tokens_per_second']:.0f}", f"{found['peak_bytes'] / 1e9:.1f}"] if found else ["none fits", "", ""]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def write(path, tables, drawn):
    before = path.read_text().split(MARK)[0] if path.exists() else "# TeraPipe's figures, simulated\n\n"
    lines = [MARK]
    for title, rows in tables:
        if rows:
            lines += ["", f"## {title}", "", *rows]
    path.write_text(before + "\n".join(lines) + "\n")
    path.with_suffix(".svg").write_text(picture.draw(*drawn))


def chosen(settings, only):
    def name(setting):
        return setting.number + (f"@{setting.tokens}" if setting.tokens != 2048 else "")

    return [setting for setting in settings if not only or name(setting) in only]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--tool", type=pathlib.Path, help="dyna-plan; without it, that of the build folder")
    parser.add_argument("--cluster", type=pathlib.Path, default=HERE / "Inputs" / "v100-p3.textproto", help="costs of the devices and nodes")
    parser.add_argument("--out", type=pathlib.Path, help="page whose tables are replaced; the picture has its name and .svg")
    parser.add_argument("--only", help="settings, such as (10) or (5)@8192", nargs="*")
    options = parser.parse_args()
    tool = options.tool or options.build_dir / "bin" / "dyna-plan"
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build_dir.resolve(), tool.resolve(), pathlib.Path(work), options.cluster)
        results, uniform, longer, beyond, batches = [], [], [], [], []

        def tell(found, into):
            into.append(found)
            print(json.dumps(found), flush=True)
            if options.out:
                write(options.out, (("Figure 5", results and table(results)), ("Totals of the authors", results and totals(results)),
                                    ("Figure 6: uniform slices over the exact cut", uniform and uniform_table(uniform)),
                                    ("Figure 7", longer and table(longer)),
                                    ("Longer samples, 65,536 tokens or one sample a step", beyond and table(beyond)),
                                    ("Largest batch that fits", batches and batch_table(batches))),
                      (results, longer, beyond))

        for settings, into in ((FIGURE5, results), (FIGURE7, longer), (LONGER, beyond)):
            for setting in chosen(settings, options.only):
                tell(measure(bench, setting, sys.stderr), into)
        for setting in chosen(FIGURE5, options.only):
            if setting.number in FIGURE6:
                tell(uniform_rows(bench, setting, sys.stderr), uniform)
            tell({"setting": setting.number, **{name: largest_batch(bench, setting, name, sys.stderr) for name in ("gpipe", "1f1b")}}, batches)


if __name__ == "__main__":
    main()
