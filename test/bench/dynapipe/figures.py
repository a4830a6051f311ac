#!/usr/bin/env python3
"""Figures of DynaPipe (EuroSys'24), simulated by `dyna-plan` on described clusters.

    test/bench/dynapipe/figures.py --build-dir build --lengths multitask_lengths.csv \
        --length-columns input_tokens,target_tokens --out docs/results/dynapipe.md

GPT of table 1 on 4, 8, 16 and 32 A100 of 40 GB (nodes of eight), constants of `runtime/cost/descriptions`, none fitted.
Each kind of plan is searched over degrees (powers of two, tensor parallelism within a node, with and without ZeRO-1),
the size of micro-batches and recomputation on the first mini-batches of a shuffled epoch; the best three are simulated on more.

Results are kept in the build folder (dynapipe.jsonl) and not simulated again by the same `dyna-plan`: an interrupted run
goes on where it was. Progress goes to standard error, one JSON line for each result to standard output, tables to --out, each
as soon as it is there, and a picture beside it.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import picture
import plans
from plans import MASKED, PACKED, PADDED, RAGGED, RAGGED_1F1B, Side, Size

SIZES = [Size("3.35B", 4, 16, 4096, 32, 16384), Size("6.7B", 8, 32, 4096, 32, 16384), Size("13B", 16, 40, 5140, 40, 20560),
         Size("29B", 32, 16, 12288, 96, 49152)]
SETTINGS = {"stored": "Attention that stores its scores", "fused": "Fused causal attention"}
LENGTHS = [512, 1024, 2048, 4096, 8192]
BATCHES = [16384, 32768, 65536, 131072]
# What stands before it on the page is written by people and stays.
MARK = "<!-- Tables by test/bench/dynapipe/figures.py -->"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def degrees_of(row):
    numbers = dict(part.split("=") for part in row["degrees"].split(","))
    return "·".join(numbers[key] for key in ("dp", "tp", "pp")) + (" z" if numbers.get("zero") == "1" else "")


def cell(row, words=True):
    if not row:
        return "out of memory"
    speed = f"{row['tokens_per_second']:,.0f}"
    mode = row["recompute"][0] if row["recompute"] != "auto" else ""
    return f"{speed} ({degrees_of(row)}{', ' + mode if mode else ''}, {row['size'] / 1024:g}K)" if words else speed


def ratio(one, other, digits=2):
    return f"{one['tokens_per_second'] / other['tokens_per_second']:.{digits}f}" if one and other else ""


def gain(one, other):
    return f"{100 * (one['tokens_per_second'] / other['tokens_per_second'] - 1):+.1f} %" if one and other else ""


class Bench:
    def __init__(self, played, search_steps, steps):
        self.plans, self.search_steps, self.steps = played, search_steps, steps
        self.speeds = {}  # of figure 13, by setting, size, side: [(length, row)]
        self.rows = []  # all that was the best of something, for figures 17 and 18

    def best(self, figure, setting, size, side, positions, batch, **more):
        row = self.plans.best(size, side, positions, batch, setting, self.search_steps, self.steps, **more)
        line = {"figure": figure, "setting": setting, "model": size.name, "maximum_length": positions, "tokens_per_step": batch,
                "side": side.name, **(row or {"out_of_memory": True})}
        print(json.dumps(line), flush=True)
        if row:
            self.rows.append((setting, size, side, positions, batch, row))
        return row

    def sides(self, figure, setting, size, positions, batch):
        """By name; the packed baseline also at the degrees of the padded plans ("MLM+DS (c)")."""
        found = {side.name: self.best(figure, setting, size, side, positions, batch)
                 for side in (PACKED, MASKED, PADDED, RAGGED_1F1B, RAGGED)}
        other = found[PADDED.name]
        found["packed (c)"] = other and self.best(figure, setting, size, PACKED, positions, batch, degrees=other["degrees"])
        return found


SIDES = [PACKED, MASKED, PADDED, RAGGED_1F1B, RAGGED]
HEAD = ["packed", "packed, same degrees", "packed-masked", "padded, adaptive", "ragged, 1F1B", "ragged, adaptive",
        "padded / packed", "ragged / packed", "ragged / masked", "adaptive over 1F1B"]


def cells(found):
    packed, masked, padded, one, ragged = (found[side.name] for side in SIDES)
    return [cell(packed), cell(found["packed (c)"]), cell(masked), cell(padded), cell(one), cell(ragged), ratio(padded, packed),
            ratio(ragged, packed), ratio(ragged, masked), gain(ragged, one)]


def figures_13_15(bench, setting, sizes, lengths):
    page = [f"## Throughput by maximum length (figure 13): {SETTINGS[setting].lower()}", "",
            f"Useful tokens a second, 65,536 tokens a step, {bench.steps} steps. In brackets degrees (dp·tp·pp, z: ZeRO-1), what the baselines "
            "recompute (n, s, f: none, selective, full), tokens of a micro-batch at most.", ""]
    rows, padding = [], []
    for size in sizes:
        for positions in lengths:
            found = bench.sides("13", setting, size, positions, 65536)
            rows.append([size.name, positions] + cells(found))
            padding.append([size.name, positions] + [f"{1 - found[side.name]['padding_share']:.3f}" if found[side.name] else "" for side in SIDES])
            for side in SIDES:
                bench.speeds.setdefault((setting, size.name, side.name), []).append((positions, found[side.name]))
    page += table(["size", "length"] + HEAD, rows)
    page += [f"## Padding efficiency (figure 15): {SETTINGS[setting].lower()}", "", "Useful tokens of all that are computed.", ""]
    return page + table(["size", "length"] + [side.name for side in SIDES], padding)


def figure_14(bench, setting, sizes, batches):
    page = [f"## Throughput by tokens a step (figure 14): {SETTINGS[setting].lower()}", "", "Maximum length 2,048; otherwise as above.", ""]
    rows = [[size.name, f"{batch:,}"] + cells(bench.sides("14", setting, size, 2048, batch)) for size in sizes for batch in batches]
    return page + table(["size", "tokens"] + HEAD, rows)


def ablation(bench, sizes, lengths):
    """How much of the gain over packing is the baseline's: its mode, its size of micro-batches."""
    page = ["## What makes the gain over packing", "",
            "Gain of padded, adaptive plans over the packed baseline. In each column the baseline has one mode of recomputation or one number of rows, "
            f"or may choose both. Best degrees for each entry; first {bench.search_steps} of the mini-batches.", ""]
    rows = []
    for size in sizes:
        for positions in lengths:
            for setting in SETTINGS:
                packed = bench.plans.search(size, PACKED, positions, 65536, setting, bench.search_steps)
                padded = bench.plans.search(size, PADDED, positions, 65536, setting, bench.search_steps)
                if not padded:
                    continue
                row = [size.name, positions, setting]
                for holds in [lambda one, mode=mode: one["recompute"] == mode for mode in plans.MODES] + [
                        lambda one, rows=count: one["size"] == rows * positions for count in (1, 2, 4)] + [
                        lambda one: one["recompute"] == "full" and one["size"] == positions, lambda one: True]:
                    row.append(ratio(padded[0], next((one for one in packed if holds(one)), None)) or "OOM")
                print(json.dumps({"figure": "ablation", "row": row}))
                rows.append(row)
    return page + table(["size", "length", "attention", "none", "selective", "full", "1 row", "2 rows", "4 rows", "full, 1 row", "any"], rows)


def figure_3(bench, lengths):
    """One sample through a layer that is like those of T5-11B: its slices in a trace."""
    page = ["## Time of one layer (figure 3)", "",
            "Milliseconds of one layer, forward and backward, for one sample of a length. The layer has 128 heads of 128, width 1,024, feed-forward 65,536, "
            "as in T5-11B's encoder. In brackets: time per token, relative to the first row.", ""]
    layer = Size("T5-11B", 1, 1, 1024, 128, 65536)
    rows, first = [], {}
    for positions in lengths:
        row = [positions]
        for setting in SETTINGS:
            trace = bench.plans.folder / "trace.json"
            bench.plans.ask_for_trace(layer.config(positions), trace, "--attention", setting, "--cluster", "a100-80g:1x1", "--strategy", "dp=1",
                                      "--tokens-per-micro-batch", positions, lengths=positions)
            seconds = sum(event["dur"] for event in json.loads(trace.read_text())["traceEvents"]
                          if event["ph"] == "X" and event["name"] in ("FORWARD", "BACKWARD") and event.get("cat") == "block") / 1e6
            first.setdefault(setting, seconds / positions)
            print(json.dumps({"figure": "3", "setting": setting, "length": positions, "seconds": seconds}))
            row.append(f"{1e3 * seconds:.2f} ({seconds / positions / first[setting]:.2f})")
        rows.append(row)
    return page + table(["length"] + [SETTINGS[setting].lower() for setting in SETTINGS], rows)


def figure_5(bench, setting, size, lengths):
    """Micro-batches of so many tokens or so many samples, beside the cut that is the optimum, at its degrees."""
    page = [f"## Sizes of micro-batches (figure 5): {SETTINGS[setting].lower()}", "",
            f"GPT {size.name}, 65,536 tokens a step, at the degrees at which padded, adaptive plans are best. The schedule is 1F1B with the best of the three modes "
            "of recomputation. Throughput over that of the padded, adaptive plans; OOM: no mode fits.", ""]
    counts = (1, 2, 4, 8, 16, 32)
    rows = []
    for positions in lengths:
        top = bench.best("5", setting, size, PADDED, positions, 65536)
        if not top:
            continue
        for name, sizes in (("tokens", [positions * count for count in counts]), ("samples", [positions * count for count in counts])):
            row = [positions, name]
            for tokens in sizes:
                side = Side(f"{name} {tokens}", f"{name}+1f1b", plans.MODES, tokens=(tokens,))
                best = None
                for mode in plans.MODES:
                    one = bench.plans.play(size, side, positions, 65536, setting, bench.search_steps * 4,
                                           {"size": tokens, "recompute": mode, "degrees": top["degrees"]})
                    if one and (not best or one["tokens_per_second"] > best["tokens_per_second"]):
                        best = one
                print(json.dumps({"figure": "5", "setting": setting, "maximum_length": positions, "micro_batches": name, "tokens": tokens,
                                  **(best or {"out_of_memory": True})}), flush=True)
                row.append(ratio(best, top) if best else "OOM")
            rows.append(row)
    return page + table(["length", "micro-batches of"] + [f"{count} x the length" if count > 1 else "the length" for count in counts], rows)


def figure_7(bench, size):
    page = ["## Noise in execution times (figure 7)", "",
            "GPT 6.7 B, pp=8, 32 equal samples of 1,024 tokens, one a micro-batch. Duration of the step under noise over that of the planned step, "
            "mean of 20 seeds. The noise is that of each layer's function; a stage has four.", ""]
    equal = ",".join(["1024"] * 32)
    words = ["ragged+1f1b", "ragged+adaptive", "ragged+gpipe"]
    rows, still = [], None
    for noise in (0, 0.1, 0.2, 0.4, 0.8):
        seeds = range(20) if noise else range(1)
        sums = dict.fromkeys(words, 0.0)
        for seed in seeds:
            for row in bench.plans.ask(size.config(2048), "--cluster", size.cluster(), "--compare", ",".join(words), "--strategy", "dp=1,pp=8",
                                       "--tokens-per-micro-batch", 1024, "--simulate", f"noise={noise},seed={seed}", lengths=equal):
                sums[row["words"]] += row["seconds"] / len(seeds)
        still = still or dict(sums)
        print(json.dumps({"figure": "7", "noise": noise, **sums}))
        rows.append([noise] + [f"{sums[word] / still[word]:.3f}" if still[word] else "" for word in words])
    return page + table(["deviation", "1F1B", "adaptive", "GPipe"], rows)


def figure_16b(bench, setting, size):
    page = [f"## Schedules of the same degrees (figure 16b): {SETTINGS[setting].lower()}", "",
            f"GPT {size.name}, {size.devices} devices, four stages, {bench.steps} steps; recomputation is chosen for every schedule. `cyclic` is the adaptive "
            "schedule without a search for the order of micro-batches. Bound: of the pipeline, over the step. The paper states +10.1 % and +7.4 % "
            "over 1F1B for 16,384 and 65,536 tokens a step.", ""]
    rows = []
    for batch in (16384, 65536):
        for positions in (2048, 4096):
            for strategy in ("dp=2,tp=1,pp=4,zero=1", "dp=1,tp=2,pp=4"):
                for batching in ("padded", "ragged"):
                    found = {}
                    for schedule in ("1f1b", "cyclic", "adaptive"):
                        side = Side(f"{batching} {schedule}", f"{batching}+{schedule}", ("auto",), tokens=(4096,))
                        found[schedule] = bench.plans.play(size, side, positions, batch, setting, bench.steps,
                                                           {"size": max(4096, positions), "recompute": "auto", "degrees": strategy})
                        print(json.dumps({"figure": "16b", "setting": setting, "maximum_length": positions, "tokens_per_step": batch,
                                          "degrees": strategy, "side": side.name, **(found[schedule] or {"out_of_memory": True})}), flush=True)
                    one, cyclic, adaptive = found.values()
                    rows.append([f"{batch:,}", positions, strategy, batching, cell(one, False), gain(cyclic, one), gain(adaptive, one)] +
                                [f"{max(row['load_bound_seconds'], row['path_bound_seconds']) / row['seconds']:.3f}" if row else "" for row in (one, adaptive)])
    return page + table(["tokens", "length", "degrees", "micro-batches", "1F1B, tokens/s", "cyclic", "adaptive", "1F1B: bound / step", "adaptive"], rows)


def figure_16a(bench, arguments):
    """Pairs of lengths: what the planner has for encoder-decoder models, on layers that bench_t5 describes."""
    program = arguments.build_dir / "bin" / "bench_t5"
    if not program.exists() or len(bench.plans.columns) != 2:
        return []
    page = ["## Batchings (figure 16a)", "",
            "T5-11B, described layers, eight devices, tp=8, no pipeline, maximum length 4,096, 65,536 tokens a step, 40 steps. Each batching has its best size "
            "of micro-batches and recomputation. Rows of the packed baseline have 4,096 tokens in the encoder and 1,024 in the decoder.", ""]
    rows = []
    pairs = bench.plans.write("pairs.csv", "encoder,decoder\n" + "".join(f"{a},{b}\n" for a, b in bench.plans.samples))
    done = subprocess.run([program, pairs, "4096", "40"], capture_output=True, text=True, check=True)
    first = {}
    for line in map(json.loads, done.stdout.splitlines()):
        print(json.dumps({"figure": "16a", **line}))
        packed = first.setdefault(line["attention"], line)
        speeds = [line.get("tokens_per_second"), packed.get("tokens_per_second")]
        rows.append([line["attention"], line["method"]] + ([f"{speeds[0]:,.0f}", f"{speeds[0] / speeds[1]:.2f}" if speeds[1] else "", line["size"] or "",
                                                            line["recompute"], f"{1 - line['padding_share']:.3f}"] if speeds[0] else ["out of memory"] + [""] * 4))
    return page + table(["attention", "micro-batches", "tokens/s", "over packed", "rows or tokens", "recompute", "padding efficiency"], rows)


def figure_17(bench):
    page = ["## Planning time (figure 17)", "",
            "Seconds of one thread to plan and verify a step of the best plans above, beside the simulated seconds of the step. The last column is "
            "the number of planning threads that keep up with it. Measured on a machine with other work.", ""]
    rows = []
    for setting in SETTINGS:
        for size in SIZES:
            for side in (PADDED, RAGGED):
                own = [row for s, z, d, _, _, row in bench.rows if (s, z, d) == (setting, size, side) and row.get("plan_seconds")]
                if not own:
                    continue
                shares = [row["plan_seconds"] / row["seconds"] for row in own]
                rows.append([setting, size.name, side.name, f"{sum(row['plan_seconds'] for row in own) / sum(row['steps'] for row in own):.3f}",
                             f"{max(row['longest_plan_seconds'] for row in own):.3f}", f"{sum(row['seconds'] for row in own) / sum(row['steps'] for row in own):.2f}",
                             f"{max(shares):.3f}", max(1, -int(-max(shares) // 1))])
                print(json.dumps({"figure": "17", "setting": setting, "size": size.name, "side": side.name, "largest_share": max(shares)}))
    return page + table(["attention", "size", "plans", "mean to plan", "longest", "mean step", "most, of a step", "threads needed"], rows)


def figure_18(bench):
    page = ["## Predictions (figure 18)", "",
            "Predicted steps beside the same plans simulated under conditions that the planner does not know. Functions deviate by a tenth "
            "(`noise=0.1`), and transfers under way share the ports of nodes (`links=nodes`). For the best adaptive plans above: the mean and the "
            "largest |predicted - simulated| / simulated.", ""]
    rows = []
    for setting in SETTINGS:
        for side in (PADDED, RAGGED):
            errors = []
            for s, size, d, positions, batch, row in bench.rows:
                if (s, d) != (setting, side):
                    continue
                played = bench.plans.play(size, side, positions, batch, setting, bench.steps, row, "--simulate", "noise=0.1,links=nodes,seed=1")
                if played:
                    errors.append((abs(row["seconds"] - played["seconds"]) / played["seconds"], played["peak_bytes"] - row["peak_bytes"]))
            if errors:
                rows.append([setting, side.name, len(errors), f"{100 * sum(time for time, _ in errors) / len(errors):.1f} %",
                             f"{100 * max(time for time, _ in errors):.1f} %", max(abs(peak) for _, peak in errors)])
                print(json.dumps({"figure": "18", "setting": setting, "side": side.name, "errors": errors}))
    return page + table(["attention", "plans", "points", "mean error", "largest", "bytes that peaks are off"], rows)


class Page:
    def __init__(self, out):
        self.out, self.lines = out and pathlib.Path(out), []

    def add(self, lines):
        self.lines += lines
        if not self.out:
            return
        text = self.out.read_text() if self.out.exists() else ""
        said = text.split(MARK)[0] if MARK in text else ""
        self.out.write_text(said + MARK + "\n\n" + "\n".join(self.lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--tool", help="another dyna-plan than that of the build folder")
    parser.add_argument("--lengths", required=True)
    parser.add_argument("--length-columns", default="tokens")
    parser.add_argument("--search-steps", type=int, default=1, help="of the search for degrees")
    parser.add_argument("--steps", type=int, default=10, help="of the best; 0: an epoch")
    parser.add_argument("--sizes", default="3.35B,6.7B,13B,29B")
    parser.add_argument("--max-lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)))
    parser.add_argument("--figures", default="13,ablation,16b,16a,5,14,3,7,17,18")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    wanted = arguments.figures.split(",")
    sizes = [size for size in SIZES if size.name in arguments.sizes.split(",")]
    lengths = [int(length) for length in arguments.max_lengths.split(",")]
    batches = [int(batch) for batch in arguments.batches.split(",")]
    page = Page(arguments.out)
    with tempfile.TemporaryDirectory() as folder:
        played = plans.Plans(arguments.build_dir, arguments.lengths, arguments.length_columns.split(","), pathlib.Path(folder), arguments.tool)
        bench = Bench(played, arguments.search_steps, arguments.steps)
        middle = next((size for size in sizes if size.name == "6.7B"), sizes[0])
        by_setting = {"13": lambda setting: figures_13_15(bench, setting, sizes, lengths),
                      "16b": lambda setting: figure_16b(bench, setting, middle),
                      "5": lambda setting: figure_5(bench, setting, middle, [length for length in lengths if length in (512, 2048, 8192)] or lengths[:1]),
                      "14": lambda setting: figure_14(bench, setting, sizes, batches)}
        alone = {"ablation": lambda: ablation(bench, sizes, lengths), "16a": lambda: figure_16a(bench, arguments), "3": lambda: figure_3(bench, lengths), "7": lambda: figure_7(bench, middle), "17": lambda: figure_17(bench),
                 "18": lambda: figure_18(bench)}
        for figure in wanted:
            if figure in alone:
                page.add(alone[figure]())
                continue
            for setting in arguments.settings.split(","):
                page.add(by_setting[figure](setting))
        if arguments.out and bench.speeds:
            path = pathlib.Path(arguments.out).with_suffix(".svg")
            path.write_text(picture.draw(bench.speeds, SETTINGS, [side.name for side in SIDES]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
