#!/usr/bin/env python3
"""Where switching wins on this machine, and where it stops to: two ranks as threads, real steps.

    test/bench/hotspa/measured.py --build-dir build --out docs/results/hotspa.md

A GPT-2 128 wide with 4 layers in f32, whose steps have one sample of 2,048 tokens and more and more short ones beside it. Two replicas
cannot share the long sample, two shards can, but take longer for short ones; --ranges gives each its own. All three run over the same
steps in turns; rates are medians over all steps. What switches take is what ranks are held up in them, from traces of the same steps: in
waits until the other rank has begun its side, which is between the phases of two ranks and not the switch's, and else, beside their bytes
over the rate of one thread that copies, taken in the same turns; what is hidden of them is the rest of the time between first start and last
wait. Bytes are what comes to the two replicas, from the other rank or their own, and the gradients of one of them. One JSON line for each
size goes to standard output; with --out a table replaces what stands behind the mark on that page, --with FILE has lines of earlier calls
for it.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import table3

MARK, END = "<!-- Tables by test/bench/hotspa/measured.py -->", "<!-- End of the tables by test/bench/hotspa/measured.py -->"
LONG, SHORT = 2048, 256
CONFIG = {"model_type": "gpt2", "vocab_size": 257, "n_positions": LONG, "n_embd": 128, "n_layer": 4, "n_head": 4,
          "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
STRATEGIES = "short: dp=2; long: tp=2"
WAYS = {"dp=2": ["--strategy=short"], "tp=2": ["--strategy=long"],
        "switched": [f"--ranges=short: 0-{SHORT}; long: {SHORT + 1}-", "--merge-ranges=never"]}
BESIDE = [0, 512, 1024, 2048, 4096, 8192]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"measured.py: {' '.join(map(str, command))} ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def short_lengths(tokens, draw):
    lengths = []
    while tokens > 0:
        lengths.append(min(tokens, draw.randint(16, SHORT)))
        tokens -= lengths[-1]
    return lengths


def moved_bytes(tool, model):
    """Of values to both replicas, and gradients of one of them."""
    line = run([tool, model, "--cluster", "a800-80g:1x2", "--compute-type=f32", "--switch", "tp=2 -> dp=2", "--json"])
    found = json.loads(line)
    return 1.5 * (found["local_bytes"] + found["inside_bytes"])


def copy_seconds(source, target):
    """Of one byte, by one thread: the least of some, the first of which makes pages."""
    least = math.inf
    for _ in range(4):
        begin = time.perf_counter()
        target[:] = source
        least = min(least, time.perf_counter() - begin)
    return least / len(source)


class Runs:
    """One size of steps, by all ways."""

    def __init__(self, program, folder, steps, beside):
        self.program, self.folder, self.steps, self.tokens = program, folder, steps, LONG + beside
        draw = random.Random(beside)
        lengths = [length for _ in range(steps + 1) for length in [LONG] + short_lengths(beside, draw)]
        self.lengths = folder / "lengths.txt"
        self.lengths.write_text("\n".join(map(str, lengths)) + "\n")
        self.lines, self.held, self.own, self.shares = {way: [] for way in WAYS}, [], [], []

    def take(self, way, *flags):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        run([self.program, f"--data=synthetic:lengths={self.lengths}", "--shuffle=none", f"--tokens-per-batch={self.tokens}",
             "--tokens-per-micro-batch=512", f"--steps={self.steps + 1}", "--threads=2", "--no-progress", f"--metrics={metrics}", *WAYS[way], *flags])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        self.lines[way] += [line for line in lines if "seconds" in line and "loss" in line][1:]

    def rate(self, way, pick=statistics.median):
        return pick(line["tokens"] / line["seconds"] for line in self.lines[way])

    def take_switched(self):
        trace = self.folder / "trace.json"
        self.take("switched", f"--trace={trace}")
        found = json.loads(trace.read_text())
        parts = [part for step, part in sorted(held_parts(found).items()) if step > 1]
        self.held += [held for held, _ in parts]
        self.own += [own for _, own in parts]
        if parts:
            self.shares.append(hidden_share(found))


def events_of(trace):
    return [event for event in (trace["traceEvents"] if isinstance(trace, dict) else trace) if event.get("ph") == "X"]


def held_parts(trace):
    """Of each step: milliseconds in instructions of switches, and those in which all ranks had begun theirs; of the rank with most."""
    began, held, own = {}, {}, {}
    events = [event for event in events_of(trace) if event["tid"] == 0 and event["name"].startswith("SWITCH")]
    for event in events:
        args, name, is_start = event["args"], event["name"].rsplit("_", 1)[0], event["name"].endswith("_START")
        event["switch"] = (args["step"], name, args["phase"], args["bucket"])
        if is_start:
            began[event["switch"]] = max(began.get(event["switch"], -math.inf), event["ts"])
    for event in events:
        rank = (event["args"]["step"], event["pid"])
        late = 0 if event["name"].endswith("_START") else min(max(began[event["switch"]] - event["ts"], 0), event["dur"])
        held[rank] = held.get(rank, 0) + event["dur"] / 1e3
        own[rank] = own.get(rank, 0) + (event["dur"] - late) / 1e3
    return {step: (max(held[rank] for rank in held if rank[0] == step), max(own[rank] for rank in own if rank[0] == step))
            for step, _ in held}


def hidden_share(trace):
    under_way = held = 0
    for event in events_of(trace):
        if event["tid"] != 0:
            under_way += event["dur"]
        elif event["name"].startswith("SWITCH"):
            held += event["dur"]
    return max(0.0, 1 - held / under_way) if under_way else None


def row_of(runs, copy, moved):
    rates = {way: runs.rate(way) for way in WAYS}
    switched = [line for line in runs.lines["switched"] if line.get("phases", 1) > 1]
    row = {"what": "measured", "long_tokens": LONG, "short_tokens": runs.tokens - LONG, "steps": len(runs.lines["switched"]),
           "tokens_per_s": {way: round(rate) for way, rate in rates.items()},
           "best_tokens_per_s": {way: round(runs.rate(way, max)) for way in WAYS},
           "over_best": round(rates["switched"] / max(rates["dp=2"], rates["tp=2"]), 3)}
    if switched:
        lost, own = statistics.median(runs.held), statistics.median(runs.own)
        row |= {"switch_ms": round(lost, 3), "least_switch_ms": round(min(runs.held), 3), "own_ms": round(own, 3), "least_own_ms": round(min(runs.own), 3),
                "sent_bytes": switched[0]["switch_bytes"], "moved_bytes": int(moved), "copy_ms": round(moved * copy * 1e3, 3),
                "lost_over_copy": round(lost / (moved * copy * 1e3), 2), "own_over_copy": round(own / (moved * copy * 1e3), 2),
                "part_of_step": round(lost / 1e3 / statistics.median(line["seconds"] for line in switched), 3),
                "hidden": round(statistics.median(runs.shares), 3)}
    return row


def page_of(rows):
    head = ["short tokens beside 2,048", "dp=2, tokens/s", "tp=2", "switched", "over the better one", "of the fastest steps", "switches hold ranks up, ms: middle, least", "without waits for a rank to begin", "bytes over copy rate, ms", "hidden"]
    lines = []
    for row in rows:
        rate, best = row["tokens_per_s"], row["best_tokens_per_s"]
        what = [f"{row['switch_ms']:.1f}, {row['least_switch_ms']:.1f}", f"{row['own_ms']:.1f}, {row['least_own_ms']:.1f}", f"{row['copy_ms']:.1f}", f"{100 * row['hidden']:.0f} %"] if "switch_ms" in row else [""] * 4
        lines.append([f"{row['short_tokens']:,}", f"{rate['dp=2']:,}", f"{rate['tp=2']:,}", f"{rate['switched']:,}", f"{row['over_best']:.2f}", f"{best['switched'] / max(best['dp=2'], best['tp=2']):.2f}"] + what)
    return table3.table(head, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--steps", default=6, type=int)
    parser.add_argument("--repeats", default=3, type=int)
    parser.add_argument("--beside", default=",".join(map(str, BESIDE)), help="tokens of short samples in a step, with , between")
    parser.add_argument("--with", dest="earlier", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    tools = options.build_dir / "bin"
    source, target = bytearray(b"x") * (64 << 20), bytearray(64 << 20)
    rows = [json.loads(line) for line in options.earlier.read_text().splitlines()] if options.earlier else []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.json").write_text(json.dumps(CONFIG))
        run([tools / "dyna-translate", "--from-config", folder / "model.json", "-o", folder / "model.mlir"])
        run([tools / "dynac", folder / "model.mlir", "-o", folder / "train", "--strategies", STRATEGIES])
        moved = moved_bytes(tools / "dyna-plan", folder / "model.mlir")
        for beside in map(int, options.beside.split(",") if options.beside else []):
            runs, copies = Runs(folder / "train", folder, options.steps, beside), []
            for _ in range(options.repeats):
                copies.append(copy_seconds(source, target))
                for way in WAYS:
                    runs.take_switched() if way == "switched" else runs.take(way)
            rows.append(row_of(runs, statistics.median(copies), moved))
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        table3.write(options.out, page_of(sorted(rows, key=lambda row: row["short_tokens"])), MARK, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
