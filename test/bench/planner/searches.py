"""Compares the search of the best strategy with brute force.

    test/bench/planner/searches.py --build-dir build [--scenarios 0,3,7] [--tokens-per-batch N] [--limit RATIO] [--percent N]

Each scenario has a model, a cluster and a distribution of lengths. `dyna-plan --strategy search` answers it once as users
ask, and once with --exhaustive, which simulates every strategy and searches other choices of more of them. With
--percent N this leaves out what its estimate puts more than N percent above the best. Large models need that: the least
ratio of simulated to estimated seconds of all others is 0.79, so 30 leaves out nothing that is near the best. Prints one
JSON line for each scenario: both answers, the simulated seconds of the one over those of the other, the seconds of CPU
that each took, and how far the estimates of steps are from simulated seconds (least, median and largest ratio of
simulated to estimated). Exits with 1 if a ratio is above the limit, or if no scenario was run.

Lengths are those of real mixtures if ../shared/data is there, and otherwise drawn from their quantiles.
"""
import argparse
import csv
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Quantiles of tokens of a sample.
QUANTILES = {
    "multitask": [(0, 2), (.01, 14), (.1, 30), (.25, 56), (.5, 102), (.75, 212), (.9, 402), (.95, 631), (.99, 1792), (1, 38519)],
    "code": [(0, 2), (.01, 21), (.1, 100), (.25, 261), (.5, 740), (.75, 2247), (.9, 6228), (.95, 11461), (.99, 32768), (1, 32768)],
}
COLUMNS = {"multitask": ("input_tokens", "target_tokens"), "code": ("tokens",)}


def gpt(layers, width, heads, positions):
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": positions, "n_embd": width, "n_layer": layers,
            "n_head": heads, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def llama(layers, width, inner, heads, kv_heads, positions, vocabulary=32000):
    return {"model_type": "llama", "vocab_size": vocabulary, "hidden_size": width, "intermediate_size": inner,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "max_position_embeddings": positions, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False}


# Name, model, cluster, lengths.
SCENARIOS = [
    ("gpt 0.1B", gpt(12, 768, 12, 2048), "v100:1x4", "multitask"),
    ("gpt 0.3B", gpt(24, 1024, 16, 4096), "v100:1x8", "code"),
    ("gpt 0.8B", gpt(36, 1280, 20, 2048), "a100-40g:1x4", "multitask"),
    ("gpt 1.6B", gpt(48, 1600, 25, 2048), "v100:1x8", "multitask"),
    ("gpt 1.3B", gpt(24, 2048, 16, 8192), "a100-40g:1x8", "code"),
    ("llama 1.1B", llama(22, 2048, 5632, 32, 4, 8192), "h100:1x4", "code"),
    ("gpt 2.7B", gpt(32, 2560, 32, 4096), "v100:2x8", "multitask"),
    ("gpt 2.7B", gpt(32, 2560, 32, 16384), "a100-80g:1x8", "code"),
    ("llama 7B", llama(32, 4096, 11008, 32, 32, 8192), "a100-80g:1x8", "multitask"),
    ("llama 7B", llama(32, 4096, 11008, 32, 32, 16384), "h100:2x4", "code"),
    ("llama 8B", llama(32, 4096, 14336, 32, 8, 8192, 128256), "a100-40g:2x8", "code"),
    ("gpt 6.7B", gpt(32, 4096, 32, 16384), "a100-80g:2x8", "code"),
    ("llama 13B", llama(40, 5120, 13824, 40, 40, 8192), "h100:2x4", "multitask"),
    ("llama 13B", llama(40, 5120, 13824, 40, 40, 8192), "a800-80g:2x8", "code"),
    ("llama 13B", llama(40, 5120, 13824, 40, 40, 16384), "a100-40g:4x8", "multitask"),
    ("gpt 18B", gpt(40, 6144, 48, 8192), "h200:1x8", "code"),
    ("llama 32B", llama(62, 6656, 17920, 64, 64, 16384), "a800-80g:4x8", "code"),
    ("llama 32B", llama(62, 6656, 17920, 64, 64, 8192), "h100:2x8", "multitask"),
    ("llama 70B", llama(80, 8192, 28672, 64, 8, 8192, 128256), "h100:8x8", "code"),
    ("llama 70B", llama(80, 8192, 28672, 64, 8, 8192, 128256), "h200:4x8", "multitask"),
]


def lengths_of(kind, count, seed=11):
    draw = random.Random(seed)
    path = ROOT.parent / f"shared/data/{kind}_lengths.csv"
    if path.exists():
        with path.open() as file:
            rows = [sum(int(row[name]) for name in COLUMNS[kind]) for row, _ in zip(csv.DictReader(file), range(20000))]
        return draw.sample(rows, count), path.name
    table = QUANTILES[kind]
    drawn = []
    for _ in range(count):
        u = draw.random()
        (p, a), (q, b) = next((low, high) for low, high in zip(table, table[1:]) if u <= high[0])
        drawn.append(round(a * (b / a) ** ((u - p) / (q - p))))
    return drawn, "quantiles"


def search(tool, config, cluster, lengths, tokens, flags=()):
    """The rows of all strategies that fit, the best first, and the seconds of CPU that the search took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([tool, config, "--lengths", lengths, "--cluster", cluster, "--strategy", "search", "--json", "--steps", "1",
                             "--tokens-per-batch", str(tokens), *flags], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, result.args))}:\n{result.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in rows if "seconds" in row], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--scenarios", default=",".join(map(str, range(len(SCENARIOS)))), help="numbers of scenarios, with commas")
    parser.add_argument("--tokens-per-batch", type=int, default=131072)
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("--percent", type=int, help="of --exhaustive-percent")
    args = parser.parse_args()
    exhaustive = ["--exhaustive"] + ([] if args.percent is None else [f"--exhaustive-percent={args.percent}"])
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in map(int, args.scenarios.split(",")):
            name, model, cluster, kind = SCENARIOS[number]
            config, file = pathlib.Path(folder, "model.json"), pathlib.Path(folder, "lengths.csv")
            config.write_text(json.dumps(model))
            positions = model.get("n_positions") or model["max_position_embeddings"]
            # Enough for a step, whatever their mean.
            drawn, source = lengths_of(kind, 4000)
            taken, total = [], 0
            for length in drawn:
                if total >= args.tokens_per_batch:
                    break
                taken.append(min(length, positions))
                total += taken[-1]
            file.write_text("tokens\n" + "\n".join(map(str, taken)) + "\n")
            tool = args.build_dir / "bin/dyna-plan"
            found, found_cpu = search(tool, config, cluster, file, args.tokens_per_batch)
            every, every_cpu = search(tool, config, cluster, file, args.tokens_per_batch, exhaustive)
            best = min(found + every, key=lambda row: row["seconds"])
            ratio = found[0]["seconds"] / best["seconds"]
            worst = max(worst, ratio)
            errors = sorted(row["seconds"] / row["estimated_seconds"] for row in every if row["estimated_seconds"])
            print(json.dumps({"what": "search", "scenario": number, "model": name, "cluster": cluster, "lengths": source, "positions": positions,
                              "samples": len(taken), "found": found[0]["plan"], "seconds": found[0]["seconds"], "best": best["plan"],
                              "best_seconds": best["seconds"], "over_best": round(ratio, 4), "simulated": len(found),
                              "simulated_exhaustively": len(every), "cpu_seconds": round(found_cpu, 1),
                              "cpu_seconds_exhaustively": round(every_cpu, 1), "simulated_over_estimated":
                              [round(errors[0], 3), round(statistics.median(errors), 3), round(errors[-1], 3)]}), flush=True)
    return 0 if 0 < worst <= args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
