#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures a run that is pruned to 90 %, re-balanced, and packed to one rank on this machine.

    test/bench/dynpipe/measured.py --data DATA [--build-dir build] [--work FOLDER] [--width 512] [--layers 12]

DATA is text of the vocabulary of GPT-2, such as a .bin file of token ids. A model of two stages trains in f32, one thread
a rank. Its stages have equally many layers. Weights of blocks are pruned in three events, to 0, 78.75 and 90 %. The head is
dense, so it is more and more of the work. One run keeps its cut, the other one re-balances by time and is then packed to
one rank. Prints one JSON line each:

`rates`: tokens a second by sparsity, of steps that no event or move is part of, and their ratio.
`move`: the seconds of steps that the run expected under its old and its new cut, beside those of the steps before and
after the move, which are scaled to the tokens of the steps before. `layers_slower` is the time of a token in all layers
after the move over that before. It is 1 if ranks do not slow each other, and a decision cannot know it.
`packed`: tokens a second and rank on two ranks and on one, and the seconds of a token on one rank over the busy seconds on
two.

On a busy machine, start it by `chrt -f 20`: ranks then have the cores for themselves.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
EVENTS = (4, 20, 36)
PACKED, STEPS = 52, 64
SETTLED = 2  # steps after an event that are left out: times are measured there


def build(options):
    options.work.mkdir(parents=True, exist_ok=True)
    config, module, binary = (options.work / f"measured{end}" for end in (".json", ".mlir", ""))
    config.write_text(json.dumps({
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 256, "n_embd": options.width, "n_layer": options.layers,
        "n_head": options.width // 64, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "tie_word_embeddings": False}))
    tools = options.build_dir.resolve() / "bin"
    subprocess.run([tools / "dyna-translate", "--gpt2", config, "-o", module], check=True)
    subprocess.run([tools / "dynac", module, "-o", binary, "--sparse"], check=True)
    return binary


def train(options, binary, name, steps, *flags):
    """Returns the lines of steps, and those of moves."""
    metrics = options.work / f"{name}.jsonl"
    metrics.unlink(missing_ok=True)
    half = (options.layers + 2) // 2
    subprocess.run([binary, "--data", options.data, f"--steps={steps}", "--tokens-per-batch=1536",
                    "--tokens-per-micro-batch=256", "--threads=1", "--pipeline=1f1b", "--no-progress",
                    f"--strategy=pp=2,layers={options.layers + 2 - half}+{half}", f"--metrics={metrics}",
                    f"--prune=final=0.9,from={EVENTS[0]},until={EVENTS[-1]},every={EVENTS[1] - EVENTS[0]}", *flags],
                   check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line for line in lines if "loss" in line], [line for line in lines if "move" in line]


def between(lines, first, last, moves=()):
    """The steps of this range that no event and no move has slowed."""
    slow = {step for change in (*EVENTS, *(move["step"] for move in moves)) for step in range(change, change + SETTLED + 1)}
    return [line for line in lines if first <= line["step"] < last and line["step"] not in slow]


def rate(lines):
    return sum(line["tokens"] for line in lines) / sum(line["seconds"] for line in lines)


def seconds_per_token(lines):
    return statistics.median(line["seconds"] / line["tokens"] for line in lines)


def layer_seconds_per_token(lines):
    return statistics.median(sum(line["layer_seconds"]) * line["micro_batches"] / line["tokens"] for line in lines)


def emit(what, **fields):
    print(json.dumps({"what": what, **fields}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/dyna-measured"))
    for name, default in (("width", 512), ("layers", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    binary = build(options)
    kept, _ = train(options, binary, "kept", PACKED)
    balanced, moves = train(options, binary, "balanced", STEPS, "--rebalance=time", f"--repack=1@{PACKED}")
    for first, last in zip(EVENTS, (*EVENTS[1:], PACKED)):
        cut = [move["move"]["to"] for move in moves if move["step"] < last]
        # The last move of a range decides what is compared.
        begin = max([first, *(move["step"] + 1 for move in moves if move["step"] < last)])
        even, cut_again = rate(between(kept, first, last)), rate(between(balanced, begin, last, moves))
        emit("rates", sparsity=kept[first]["sparsity"], cut=cut[-1] if cut else "", even=round(even, 1),
             balanced=round(cut_again, 1), gain=round(cut_again / even, 3),
             bubble={name: round(statistics.mean(line["bubble"] for line in lines), 3) for name, lines in (
                 ("even", between(kept, first, last)), ("balanced", between(balanced, begin, last, moves)))})
    for move in moves:
        decision, step = move["move"].get("rebalance"), move["step"]
        if not decision:
            continue
        before = [line for line in balanced if step - 4 < line["step"] <= step]
        after = between(balanced, step + 1, step + 1 + SETTLED + 4, moves)
        tokens = statistics.mean(line["tokens"] for line in before)
        now, then = (seconds_per_token(lines) * tokens for lines in (before, after))
        emit("move", step=step, to=move["move"]["to"], expected_now=round(decision["step_seconds_now"], 3), measured_now=round(now, 3),
             expected_then=round(decision["step_seconds_then"], 3), measured_then=round(then, 3),
             over_expected=round(then / decision["step_seconds_then"], 3),
             layers_slower=round(layer_seconds_per_token(after) / layer_seconds_per_token(before), 3), carry_seconds=move["move"]["carry_seconds"])
    two, one = between(balanced, PACKED - 8, PACKED), between(balanced, PACKED + 1, STEPS, moves)
    busy = statistics.median(sum(stage["busy_seconds"] for stage in line["stages"]) / line["tokens"] for line in two)
    emit("packed", tokens_per_rank={"two": round(rate(two) / 2, 1), "one": round(rate(one), 1)},
         gain=round(2 * rate(one) / rate(two), 3), over_busy=round(seconds_per_token(one) / busy, 3))


if __name__ == "__main__":
    main()
