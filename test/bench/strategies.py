"""Times strategies against one rank, and the distribute phase for a large model.

    test/bench/strategies.py --build-dir build [--steps N] [--repeats N] [--parts LIST]

Training: 6 layers, 384 wide, 6 heads, vocabulary 257, f32, 8,192 tokens a step in
micro-batches of at most 2,048, on the lengths of a multi-task mixture
(bench/train_step.py). One rank of two threads against two ranks of one thread each; the
runs of one repeat stand side by side, and the median of the ratios counts.

Pipelining: pp=2 as it is by default (ragged, adaptive) against packed rows under 1F1B,
the same model and samples, cut at 2,048 and at 8,192 tokens, eight rows a step.

Compiling: `--dyna-distribute` for GPT-3 175B (96 layers, width 12288) and five
strategies on 384 ranks; differentiate alone is timed and taken off.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

from train_step import emit, real_lengths, run

MODEL = {"model_type": "gpt2", "vocab_size": 257, "n_positions": 2048, "n_embd": 384, "n_layer": 6, "n_head": 6,
         "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
GPT3 = dict(MODEL, vocab_size=50257, n_embd=12288, n_layer=96, n_head=96)
STRATEGIES = ["dp=2", "dp=2,zero=1", "tp=2", "tp=2,sp=1", "pp=2"]
LARGE = ("a: dp=6,tp=8,pp=8; b: dp=12,tp=4,pp=8,zero=1; c: dp=3,tp=8,pp=16,sp=1; d: dp=24,tp=2,pp=8; "
         "e: dp=12,tp=8,pp=4,zero=1,sp=1")


def tokens_per_second(binary, folder, steps, strategy, batch=8192, micro_batch=2048, flags=()):
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    flags = ["--strategy", strategy, *flags] if strategy else flags
    run([binary, "--data", f"synthetic:lengths={folder / 'lengths.txt'}", "--tokens-per-batch", str(batch),
         "--tokens-per-micro-batch", str(micro_batch), "--steps", str(steps + 1), "--threads", "2", "--metrics", metrics,
         "--no-progress", *flags])
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return statistics.median(line["tokens"] / line["seconds"] for line in lines[1:] if "step" in line)


def training(args, tools, folder):
    config, module, binary = folder / "gpt.json", folder / "gpt.mlir", folder / "train"
    config.write_text(json.dumps(MODEL))
    run([tools / "dyna-translate", "--gpt2", config, "-o", module])
    run([tools / "dynac", module, "-o", binary, "--strategies", "t: tp=2; s: tp=2,sp=1"])
    lengths, source = real_lengths(4000)
    (folder / "lengths.txt").write_text("\n".join(map(str, lengths)) + "\n")
    rates = {strategy: [] for strategy in [""] + STRATEGIES}
    for _ in range(args.repeats):
        for strategy in rates:
            rates[strategy].append(tokens_per_second(binary, folder, args.steps, strategy))
    for strategy in STRATEGIES:
        ratios = [a / b for a, b in zip(rates[strategy], rates[""])]
        emit(what="strategy", strategy=strategy, lengths=source, ranks=2, threads=2,
             tokens_per_s=round(statistics.median(rates[strategy])),
             one_rank_tokens_per_s=round(statistics.median(rates[""])), ratio=round(statistics.median(ratios), 3))


def pipelining(args, tools, folder):
    packed = ("--micro-batches", "packed", "--pipeline", "1f1b")
    for cut, steps, repeats in [(2048, args.steps, args.repeats), (8192, max(1, args.steps // 2), args.repeats)]:
        config, module, binary = folder / "gpt.json", folder / "gpt.mlir", folder / "train"
        config.write_text(json.dumps(dict(MODEL, n_positions=cut)))
        run([tools / "dyna-translate", "--gpt2", config, "-o", module])
        run([tools / "dynac", module, "-o", binary])
        lengths, source = real_lengths(4000, cut=cut)
        (folder / "lengths.txt").write_text("\n".join(map(str, lengths)) + "\n")
        rates = {flags: [] for flags in [(), packed]}
        for _ in range(repeats):
            for flags in rates:
                rates[flags].append(tokens_per_second(binary, folder, steps, "pp=2", 8 * cut, cut, flags))
        ratios = [a / b for a, b in zip(rates[()], rates[packed])]
        emit(what="over packed 1f1b", strategy="pp=2", lengths=source, cut=cut, tokens_per_batch=8 * cut,
             tokens_per_s=round(statistics.median(rates[()])), packed_tokens_per_s=round(statistics.median(rates[packed])),
             ratio=round(statistics.median(ratios), 3), ratios=[round(ratio, 3) for ratio in ratios])


def compiling(tools, folder):
    config, module = folder / "gpt3.json", folder / "gpt3.mlir"
    config.write_text(json.dumps(GPT3))
    run([tools / "dyna-translate", "--gpt2", config, "-o", module])

    def seconds(*passes):
        times = []
        for _ in range(3):
            begin = time.monotonic()
            run([tools / "dyna-opt", module, "--dyna-differentiate", *passes, "-o", "/dev/null"])
            times.append(time.monotonic() - begin)
        return statistics.median(times)

    before = seconds()
    one = seconds("--dyna-distribute=strategy=dp=6,tp=8,pp=8")
    five = seconds(f"--dyna-distribute=strategy='{LARGE}'")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    emit(what="distribute", model="gpt3-175b", ranks=384, strategies=5, seconds=round(five - before, 3),
         one_strategy_seconds=round(one - before, 3), differentiate_seconds=round(before, 3),
         peak_mib=round(peak / 2**20), limit_seconds=10, limit_mib=2048)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", default="compiling,training,pipelining")
    args = parser.parse_args()
    tools = pathlib.Path(args.build_dir).resolve() / "bin"
    with tempfile.TemporaryDirectory() as folder:
        for part in args.parts.split(","):
            {"compiling": lambda: compiling(tools, pathlib.Path(folder)),
             "training": lambda: training(args, tools, pathlib.Path(folder)),
             "pipelining": lambda: pipelining(args, tools, pathlib.Path(folder))}[part]()


if __name__ == "__main__":
    main()
