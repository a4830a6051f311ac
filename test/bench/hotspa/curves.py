#!/usr/bin/env python3
"""Loss curves with and without switches: a small model trained here under --ranges and on one rank, over the same samples.

    test/bench/hotspa/curves.py --build-dir build --out docs/results/hotspa.md

In f32, in bf16, and in bf16 with gradients in bf16: 200 steps of three graphs on two ranks as threads (short samples on two
replicas with ZeRO, middle ones on two shards, long ones on two stages) beside one rank without any strategy. One JSON line a step
goes to standard output; with --out a table replaces what stands behind the mark on that page, and a picture is drawn beside it.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import table3
from matrix import text

MARK, END = "<!-- Tables by test/bench/hotspa/curves.py -->", "<!-- End of the tables by test/bench/hotspa/curves.py -->"
CONFIG = {"model_type": "llama", "vocab_size": 257, "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4,
          "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
          "max_position_embeddings": 256, "tie_word_embeddings": False}
STRATEGIES = "short: dp=2,zero=1; mid: tp=2,sp=1; long: pp=2"
RANGES = "short: 0-48; mid: 49-128; long: 129-"
# Name, flags of dynac.
KINDS = {"f32": ["--compute-type=f32"], "bf16": ["--compute-type=bf16"], "bf16, bf16 gradients": ["--compute-type=bf16", "--gradients=bf16"]}
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 150, 52, 34, 40


def write_corpus(folder, documents=400, seed=7):
    """Sentences of a small vocabulary whose words follow one another more or less often: something to learn, at all lengths."""
    draw = random.Random(seed)
    words = ["".join(draw.choice("aeioudlnrst") for _ in range(draw.randint(2, 7))) for _ in range(60)]
    after = {word: draw.sample(words, 5) for word in words}
    for number in range(documents):
        word, out = draw.choice(words), []
        for _ in range(max(1, min(48, int(draw.paretovariate(0.9) * 3)))):
            out.append(word)
            word = after[word][min(4, int(draw.expovariate(1.0)))]
        (folder / f"{number:03}.txt").write_text(" ".join(out))


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"curves.py: {' '.join(map(str, command))} ends with {done.returncode}: {done.stderr.strip()}")


def losses(program, corpus, metrics, steps, flags):
    """Of each step, and the most phases that one had."""
    run([program, "--data", corpus, f"--steps={steps}", "--warmup=10", "--lr=3e-3", "--clip=1", "--seed=5", "--tokens-per-batch=2048",
         "--tokens-per-micro-batch=512", "--threads=1", "--no-progress", f"--metrics={metrics}", *flags])
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = [line for line in lines if "loss" in line]
    return [line["loss"] for line in lines], max(line.get("phases", 1) for line in lines)


def rounding(curves, kind):
    """How far the type alone takes one rank's losses from those in f32, at most and in the mean: what differences are small against."""
    if kind == "f32" or "f32" not in curves:
        return ""
    apart = [abs(one - other) for one, other in zip(curves[kind][1], curves["f32"][1])]
    return f"{max(apart):.1e}, {sum(apart) / len(apart):.1e}"


def row_of(kind, phases, curves):
    switched, alone = curves[kind]
    apart = [abs(one - other) for one, other in zip(switched, alone)]
    step = max(range(len(apart)), key=apart.__getitem__)
    return [kind, str(phases), f"{alone[0]:.4f}", f"{alone[-1]:.4f}", f"{switched[-1]:.4f}", f"{apart[step]:.1e} (step {step + 1})",
            f"{max(a / b for a, b in zip(apart, alone)):.1e}", f"{sum(apart) / len(apart):.1e}", rounding(curves, kind)]


def page_of(rows):
    head = ["type", "phases", "first loss", "last loss, one rank", "last loss, switched", "largest difference", "relatively", "in the mean",
            "one rank from one rank in f32"]
    return ["## Loss curves with and without switches", "", "![Loss curves](hotspa-curves.svg)", ""] + table3.table(head, rows)


def line(points, colour, width, dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"{dash}/>')


def axis(x, y, height, low, high, words):
    """A frame with its least and largest value beside it."""
    return [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" fill="none" stroke="#bbbbbb"/>', text(x - 5, y + 10, words.format(high), "end"),
            text(x - 5, y + height, words.format(low), "end")]


def draw(curves):
    """Above both curves over each other, below how far they are apart, relatively, on a scale of tenfolds."""
    low = math.floor(min(min(one + other) for one, other in curves.values()) * 2) / 2
    high = math.ceil(max(max(one + other) for one, other in curves.values()) * 2) / 2
    apart = {name: [abs(a - b) / b for a, b in zip(*pair)] for name, pair in curves.items()}
    least = -9
    most = max(least + 1, math.ceil(math.log10(max(max(one) for one in apart.values()) or 1)))
    width, height = len(curves) * (LEFT + WIDTH + 12), TOP + HEIGHT + GAP + HEIGHT // 2 + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for index, (name, (switched, alone)) in enumerate(curves.items()):
        x0, below = index * (LEFT + WIDTH + 12) + LEFT, TOP + HEIGHT + GAP
        xs = [x0 + (i + 0.5) * WIDTH / len(alone) for i in range(len(alone))]
        out += axis(x0, TOP, HEIGHT, low, high, "{:g}")
        out.append(text(x0, TOP - 20, f"{name}: loss of each step", "start", 12))
        for values, colour, wide, dash, place, label in ((alone, "#ccbb44", 5, "", 0, "one rank"), (switched, "#4477aa", 1.5, "", 80, "three graphs on two ranks")):
            out.append(line([(x, TOP + HEIGHT * (high - value) / (high - low)) for x, value in zip(xs, values)], colour, wide, dash))
            out.append(line([(x0 + place, TOP - 9), (x0 + place + 14, TOP - 9)], colour, wide) + text(x0 + place + 18, TOP - 6, label, "start"))
        out += axis(x0, below, HEIGHT // 2, least, most, "1e{:g}")
        out.append(text(x0, below - 6, f"apart, relatively: at most {max(apart[name]):.1e}", "start"))
        levels = [min(most, max(least, math.log10(value))) if value > 0 else least for value in apart[name]]
        out.append(line([(x, below + HEIGHT / 2 * (most - level) / (most - least)) for x, level in zip(xs, levels)], "#aa3377", 1))
        for i in (1, len(alone)):
            out.append(text(xs[i - 1], below + HEIGHT / 2 + 14, i))
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default="build", type=pathlib.Path)
    parser.add_argument("--steps", default=200, type=int)
    parser.add_argument("--kinds", default=";".join(KINDS), help="of them, with ; between")
    parser.add_argument("--out", type=pathlib.Path, help="page whose table is replaced; the picture is hotspa-curves.svg beside it")
    options = parser.parse_args()
    tools = options.build_dir / "bin"
    curves, rows = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "corpus").mkdir()
        write_corpus(folder / "corpus")
        (folder / "model.json").write_text(json.dumps(CONFIG))
        run([tools / "dyna-translate", "--from-config", folder / "model.json", "-o", folder / "model.mlir"])
        for kind in options.kinds.split(";"):
            program = folder / "train"
            run([tools / "dynac", folder / "model.mlir", "-o", program, "--strategies", STRATEGIES, *KINDS[kind]])
            alone, _ = losses(program, folder / "corpus", folder / "alone.jsonl", options.steps, [])
            switched, phases = losses(program, folder / "corpus", folder / "switched.jsonl", options.steps,
                                      ["--ranges", RANGES, "--merge-ranges=never"])
            for step, (one, other) in enumerate(zip(switched, alone, strict=True), 1):
                print(json.dumps({"type": kind, "step": step, "switched": one, "alone": other}), flush=True)
            curves[kind] = (switched, alone)
            rows.append(row_of(kind, phases, curves))
    if options.out:
        table3.write(options.out, page_of(rows), MARK, END)
        (options.out.parent / "hotspa-curves.svg").write_text(draw(curves))
    return 0


if __name__ == "__main__":
    sys.exit(main())
