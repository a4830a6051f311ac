#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures 5 to 7 of TeraPipe (ICML'21), simulated by `dyna-plan` on described nodes, and what lies beyond them.

    test/bench/terapipe/figures.py --build-dir build --out docs/results/terapipe.md

The ten settings of table 1: GPT-3 models on 192 to 384 V100 of p3.16xlarge, samples of 2,048 tokens, the batch sizes of the
paper, GPipe. The baseline has micro-batches of whole samples, with the best number of samples each. Slices are the exact cut
(`--slices exact`), the published program (`terapipe-code`), uniform ones (1 to 128 for each sample), and `auto`.
Constants are in Inputs/v100-p3.textproto: fit.py fits them to totals without slices. terms.py says what a step consists of.

Beyond: 1F1B with the same cut, at the same batch and at larger ones, and samples of up to 131,072 tokens.

One JSON line for each result goes to standard output, progress to standard error, tables to --out and a picture beside it.
Each plan is one line of terapipe.jsonl in the build folder, with its processor seconds. So a run that is started again goes on
where it ended, if the tool and the costs have the same bytes. Plans that were not made in time are listed behind the tables.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import picture
import plans
import terms
from plans import FIGURE5, FIGURE6, FIGURE7, LONGER, TOTALS, UNIFORM

TIMES = (1, 2, 4, 8)
MARK = "<!-- Tables by test/bench/terapipe/figures.py -->"


def first_best(tries, worse):
    """The fastest row of `tries`, pairs of a name and a function that plans. Ends when one is `worse` times as slow as the best."""
    best = None
    for name, plan in tries:
        row = plan()
        if row and best and row["seconds"] > worse * best[0]["seconds"]:
            break
        if row and (best is None or row["seconds"] < best[0]["seconds"]):
            best = (row, name)
    return best


def noted(found):
    """What the result keeps of a plan."""
    row, name = found
    return {"seconds": row["seconds"], "bound": row["bound_seconds"], "choice": name, "micro_batches": row["micro_batches"],
            "cut": row["cut"], "peak_bytes": row["peak_bytes"], "fits": row["fits"]}


def uniform_of(setting):
    """The uniform cuts whose slices have 16 tokens or more."""
    return [n for n in UNIFORM if setting.tokens // n >= 16]


def best_uniform(bench, setting, whole):
    """The best uniform cut; None if a plan of them is missing. None is made whose fixed time alone is longer than `whole`."""
    counts = [n for n in uniform_of(setting)[1:] if bench.fixed_seconds(setting, n) < whole]
    missing = len(bench.left)
    found = first_best([(n, lambda n=n: bench.uniform(setting, n)) for n in counts], 1.25)
    return found if len(bench.left) == missing else None


def measure(bench, setting, progress):
    """All plans of a setting, with their speedups over whole samples. Those of baselines if a speedup is published."""
    sizes = [n for n in plans.divisors(setting.own) if n <= 16]
    result = {"setting": setting.number, "model": setting.model, "tokens": setting.tokens, "batch": setting.batch,
              "strategy": f"dp={setting.dp},tp={setting.tp},pp={setting.pp}", "published": setting.published}

    def note(name, found):
        if found:
            result[name] = noted(found)
            print(f"{setting.name()}: {name} {found[0]['seconds']:.3f} s", file=progress, flush=True)

    def sizes_with(*flags):
        return [(n, lambda n=n: bench.plan(setting, n, *flags)) for n in sizes]

    # Chunks of several samples are cut as a row of tokens; alone, each sample has a cut of its own.
    note("whole", first_best(sizes_with(), 1.05))
    note("exact", first_best([(1, lambda: bench.plan(setting, 1, "--slices", "exact"))], 1))
    note("one_f_one_b", first_best([(1, lambda: bench.plan(setting, 1, "--slices", "exact", pipeline="1f1b"))], 1))
    # `auto` chooses between these and whole samples.
    note("auto", first_best(sizes_with("--slices", "auto"), 1.05))
    if setting.published:
        note("paper_code", first_best([(1, lambda: bench.plan(setting, 1, "--slices", "terapipe-code"))], 1))
        note("uniform", best_uniform(bench, setting, result.get("whole", {"seconds": float("inf")})["seconds"]))
    for name in ("exact", "paper_code", "uniform", "auto", "one_f_one_b"):
        if name in result and "whole" in result:
            result[name]["speedup"] = result["whole"]["seconds"] / result[name]["seconds"]
    return result


def uniform_rows(bench, setting, progress):
    """Figure 6: each uniform cut beside the exact one."""
    rows = {n: bench.uniform(setting, n) for n in uniform_of(setting)}
    exact = bench.plan(setting, 1, "--slices", "exact")
    print(f"{setting.number}: {len(rows)} uniform cuts", file=progress, flush=True)
    return {"figure": 6, "setting": setting.number, "exact": exact and exact["seconds"],
            "uniform": {n: row["seconds"] for n, row in rows.items() if row}}


def part_rows(bench, setting, progress):
    """The terms of a setting's whole samples and of its exact cut."""
    whole = first_best([(n, lambda n=n: bench.plan(setting, n)) for n in plans.divisors(setting.own) if n <= 16], 1.05)
    exact = bench.plan(setting, 1, "--slices", "exact")
    print(f"{setting.number}: terms", file=progress, flush=True)
    return terms.measure(bench, setting, whole, (exact, 1)) if whole and exact else None


def largest_batch(bench, setting, pipeline, progress):
    """The largest of 1, 2, 4 and 8 times the batch that fits, with the exact cut, and its tokens a second; `open` if more may fit. None without a plan."""
    found = None
    for times in TIMES:
        more = setting._replace(batch=setting.batch * times)
        row = bench.plan(more, 1, "--slices", "exact", pipeline=pipeline)
        if not row:
            break
        # A step that does not fit under its schedule has another one.
        if not row["fits"] or row["other_schedules"]:
            return (found or {"batch": 0}) | {"open": False}
        found = {"batch": more.batch, "open": True, "tokens_per_second": more.batch * more.tokens / row["seconds"], "peak_bytes": row["peak_bytes"]}
        print(f"{setting.number}: batch of {more.batch} fits under {pipeline}", file=progress, flush=True)
    return found


def cell(result, name, what="speedup"):
    if what not in result.get(name, {}):
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
    lines = ["| setting | whole, measured | whole, simulated | error | sliced, measured | sliced, simulated | error |", "|" + "---|" * 7]
    for result in results:
        if result["setting"] in TOTALS and result["tokens"] == 2048:
            whole, sliced = TOTALS[result["setting"]]
            best = min(result[name]["seconds"] for name in ("whole", "exact", "auto") if name in result)
            errors = (result["whole"]["seconds"] / whole - 1, best / sliced - 1)
            lines.append(f"| {result['setting']} | {whole} | {result['whole']['seconds']:.3f} | {errors[0]:+.1%} | {sliced} | {best:.3f} | {errors[1]:+.1%} |")
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
            if found and found["batch"]:
                more = " or more" if found["open"] else ""
                cells += [f"{found['batch']}{more}", f"{found['tokens_per_second']:.0f}", f"{found['peak_bytes'] / 1e9:.1f}"]
            else:
                cells += ["none fits" if found else "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def write(path, tables, drawn):
    before = path.read_text().split(MARK)[0] if path.exists() else "# TeraPipe's figures, simulated\n\n"
    lines = [MARK]
    for title, rows in tables:
        if len(rows) > 2 or rows and not rows[0].startswith("|"):
            lines += ["", f"## {title}", "", *rows]
    path.write_text(before + "\n".join(lines) + "\n")
    path.with_suffix(".svg").write_text(picture.draw(*drawn))


def chosen(settings, only):
    return [setting for setting in settings if not only or setting.name() in only]


PARTS = ("figure5", "figure7", "terms", "stored", "figure6", "longer", "batches")


def run(bench, options, progress):
    """Makes the parts one after another; yields the name of a part with what was found."""
    for part in options.parts:
        if part in ("figure5", "figure7", "longer"):
            for setting in chosen({"figure5": FIGURE5, "figure7": FIGURE7, "longer": LONGER}[part], options.only):
                yield part, measure(bench, setting, progress)
            continue
        if part == "stored":
            for setting in chosen([setting for setting in FIGURE5 if setting.number == "(5)"] + FIGURE7, options.only):
                yield part, terms.stored(bench, setting)
            continue
        for setting in chosen(FIGURE5, options.only):
            if part == "terms":
                yield part, part_rows(bench, setting, progress)
            elif part == "figure6" and setting.number in FIGURE6:
                yield part, uniform_rows(bench, setting, progress)
            elif part == "batches":
                yield part, {"setting": setting.number, **{name: largest_batch(bench, setting, name, progress) for name in ("gpipe", "1f1b")}}


def tables(found, left):
    """Titles and lines of what was found."""
    figure5, figure7, longer = ([result for result in found[part] if "whole" in result] for part in ("figure5", "figure7", "longer"))
    return (("Figure 5", table(figure5)), ("Totals of the authors", totals(figure5)),
            ("Terms of a step", terms.table(found["terms"])), ("Speedups under what the authors' program does otherwise", terms.differences(found["terms"])),
            ("Figure 6: uniform slices over the exact cut", uniform_table([row for row in found["figure6"] if row["exact"]])), ("Figure 7", table(figure7)),
            ("Figure 7 with stored scores", terms.stored_table(found["stored"])),
            ("Longer samples, 65,536 tokens or one sample a step", table(longer)), ("Largest batch that fits", batch_table([row for row in found["batches"] if row["gpipe"] or row["1f1b"]])),
            ("Plans that were not made", not_made(left)))


def not_made(left):
    """A line for each setting: what was left out, and why."""
    groups = {}
    for key, why in dict(left).items():
        words = key.split()
        if len(words) == 2:
            name, what = words
        else:
            flags = dict(zip(words[3::2], words[4::2]))
            degrees = flags["--strategy"].split(",layers")[0]
            name = f"{words[2].rsplit('-', 1)[0]} {degrees} {flags['--lengths'].count(',') + 1} samples"
            more = [word if word.count("+") < 3 else f"{word.count('+') + 1} slices" for word in words[words.index("--json") + 1:]]
            what = " ".join([flags["--pipeline"], *more])
        groups.setdefault((name, why), []).append(f"`{what}`")
    return [f"- {name}: {', '.join(dict.fromkeys(what))} ({why})" for (name, why), what in groups.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"), help="folder of terapipe.jsonl")
    parser.add_argument("--tool", type=pathlib.Path, help="dyna-plan; without it, that of the build folder")
    parser.add_argument("--costs", type=pathlib.Path, default=plans.COSTS, help="costs of the devices and nodes")
    parser.add_argument("--out", type=pathlib.Path, help="page whose tables are replaced; the picture has its name and .svg")
    parser.add_argument("--only", help="settings, such as (10) or (5)@8192", nargs="*")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--row-seconds", type=int, default=0, help="processor seconds after which a plan is given up (default: never)")
    parser.add_argument("--most-micro-batches", type=int, default=0, help="no uniform cuts with more for a replica (default: all)")
    parser.add_argument("--known", action="store_true", help="tables of what terapipe.jsonl has; nothing is planned")
    options = parser.parse_args()
    tool = options.tool or options.build_dir / "bin" / "dyna-plan"
    with tempfile.TemporaryDirectory() as work:
        bench = plans.Bench(options.build_dir.resolve(), tool.resolve(), pathlib.Path(work), options.costs, options.row_seconds,
                            options.most_micro_batches, not options.known)
        found = {part: [] for part in PARTS}
        for part, result in run(bench, options, sys.stderr):
            if result:
                found[part].append(result)
                print(json.dumps(result), flush=True)
        if options.out:
            drawn = ([result for result in found[part] if "whole" in result] for part in ("figure5", "figure7", "longer"))
            write(options.out, tables(found, bench.left), tuple(drawn))


if __name__ == "__main__":
    main()
