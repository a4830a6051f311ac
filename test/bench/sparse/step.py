#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times a training step before and behind one pruning event, in one run of one binary.

    test/bench/sparse/step.py --build-dir build [--sparsity 0.9] [--type f32] [--tokens 1024] [--steps 6]
        [--layers 12] [--width 768] [--masked]

GPT-2 124M by default: 12 layers, width 768, sequences of 1,024 tokens, vocabulary 50,257. Half of the steps have dense
weights, the others have the weights behind the event, in sparse form (`--masked`: masked). One thread. Times are processor
seconds of the process between two lines of metrics, so that other programs disturb them little; the least of each half
counts. The first step of each half is left out: it makes code for products, or prunes. Prints one JSON line.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def model(args):
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": args.width, "n_layer": args.layers,
            "n_head": args.width // 64, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "tie_word_embeddings": True}


def core_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def watch(command, metrics, steps):
    """Runs the command; returns the core seconds of each step and what the command said."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, text=True)
        marks = []
        while process.poll() is None and len(marks) <= steps:
            lines = metrics.read_text().count("\n") if metrics.exists() else 0
            now = core_seconds(process.pid) if process.poll() is None else None
            while now is not None and len(marks) < lines:
                marks.append(now)
            time.sleep(0.005)
        process.wait()
        said.seek(0)
        text = said.read()
    if process.returncode != 0:
        raise SystemExit(text)
    return [b - a for a, b in zip(marks, marks[1:])], text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--sparsity", type=float, default=0.9)
    parser.add_argument("--type", default="f32")
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=6, help="of each half")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--masked", action="store_true")
    args = parser.parse_args()
    tools = pathlib.Path(args.build_dir).resolve() / "bin"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "model.json").write_text(json.dumps(model(args)))
        subprocess.run([tools / "dyna-translate", "--gpt2", work / "model.json", "-o", work / "model.mlir"], check=True)
        subprocess.run([tools / "dynac", work / "model.mlir", f"--compute-type={args.type}", "--sparse", "-o",
                        work / "train"], check=True)
        (work / "lengths.txt").write_text(f"{min(args.tokens, 1024)}\n")
        metrics = work / "metrics.jsonl"
        steps = 2 * args.steps
        seconds, text = watch(
            [work / "train", "--data", f"synthetic:lengths={work / 'lengths.txt'}", f"--steps={steps}", f"--tokens-per-batch={args.tokens}",
             f"--tokens-per-micro-batch={args.tokens}", "--threads=1", "--no-progress", f"--metrics={metrics}",
             f"--prune=final={args.sparsity},from={args.steps + 1}", f"--sparse-from={1 if args.masked else 0.5}"],
            metrics, steps)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    # seconds[i] is of step i + 2; the event is before step `steps` / 2 + 1.
    dense, pruned = seconds[:args.steps - 1], seconds[args.steps:]
    event = next(line for line in lines if "prune_seconds" in line)
    print(json.dumps({
        "what": "step before and behind pruning", "type": args.type, "layers": args.layers, "width": args.width,
        "tokens": args.tokens, "sparsity": event["sparsity"], "form": "masked" if args.masked else "sparse",
        "dense_core_seconds": round(min(dense), 3), "pruned_core_seconds": round(min(pruned), 3),
        "ratio": round(min(dense) / min(pruned), 3), "event_seconds": event["prune_seconds"],
        "said": next((line for line in text.splitlines() if "sparse form" in line), ""),
    }), flush=True)


if __name__ == "__main__":
    main()
