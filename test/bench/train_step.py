"""Times training steps of a GPT-2, next to their floor and to PyTorch, in one run.

    test/bench/train_step.py --build-dir build [--peer torch] [--work equal|lengths]
        [--dtype f32|bf16] [--steps N] [--python PYTHON]

`equal`: 6 layers, 384 wide, 6 heads, sequence 256, 4,096 tokens a step, vocabulary
50,257. `lengths`: the same model on the lengths of a multi-task mixture
(../shared/data/multitask_lengths.csv when present, else the shipped quantile table),
cut at 2,048 tokens; what counts is useful tokens, not padding.

The floor is the time that oneDNN, called directly, takes for the step's matrix products
(attention excluded, the head three times), each timed alone. The peer runs in its best
configuration: threads bound, huge pages, no trimming, the vocabulary padded to a multiple
of 128, micro-batches as large as Dyna's, eager and compiled, and (for AMD) with MKL's
Intel paths switched on. Prints one JSON line per figure.

`--python` names an interpreter with torch (`pip install torch numpy`).
"""
import argparse
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODEL = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 2048, "n_embd": 384, "n_layer": 6,
         "n_head": 6, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
         "attn_pdrop": 0.0, "tie_word_embeddings": True}
BATCH = 4096
CUT = 2048


def emit(**record):
    print(json.dumps(record), flush=True)


def real_lengths(count, seed=7, cut=CUT):
    path = ROOT.parent / "shared/data/multitask_lengths.csv"
    if path.exists():
        with path.open() as file:
            rows = list(csv.reader(file))[1:]
        rows = [min(cut, int(r[1]) + int(r[2])) for r in rows[:20000]]
        return random.Random(seed).sample(rows, count), path.name
    # Quantiles of the same mixture, interpolated.
    table = [(0, 2), (.01, 14), (.1, 30), (.25, 56), (.5, 102), (.75, 212), (.9, 402), (.95, 631),
             (.99, 1792), (1, cut)]
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        u = rng.random()
        (p, a), (q, b) = next((lo, hi) for lo, hi in zip(table, table[1:]) if u <= hi[0])
        out.append(int(a + (b - a) * (u - p) / (q - p)))
    return out, "shipped quantiles"


def batches_of(lengths):
    out, current = [], []
    for n in lengths:
        if current and sum(current) + n > BATCH:
            out.append(current)
            current = []
        current.append(n)
    return out  # the incomplete last one is left out


def run(command, **kwargs):
    result = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stderr[-2000:]}")
    return result.stdout


def dyna(args, folder, lengths, steps):
    tools = pathlib.Path(args.build_dir) / "bin"
    config, module, binary = folder / "gpt.json", folder / "gpt.mlir", folder / f"train-{args.dtype}{args.gradients}"
    config.write_text(json.dumps(MODEL))
    run([tools / "dyna-translate", "--gpt2", config, "-o", module])
    if not binary.exists():
        run([tools / "dynac", module, "-o", binary, f"--compute-type={args.dtype}", f"--gradients={args.gradients}"])
    (folder / "lengths.txt").write_text("\n".join(map(str, lengths)) + "\n")
    metrics = folder / "metrics.jsonl"
    run([binary, "--data", f"synthetic:lengths={folder / 'lengths.txt'}", "--tokens-per-batch", str(BATCH),
         "--tokens-per-micro-batch", str(BATCH), "--steps", str(steps + 2), "--lr", "3e-4", "--seed", "1",
         "--threads", str(args.threads), "--metrics", metrics, "--no-progress"])
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = [line for line in lines if "seconds" in line and "step" in line][2:]
    median = statistics.median(line["seconds"] for line in lines)
    # Steps of equal work: the median is not moved by what else the machine did.
    speed = (BATCH / median if args.work == "equal" else
             sum(line["tokens"] for line in lines) / sum(line["seconds"] for line in lines))
    return speed, median, len(lines)


def torch_environment(folder, preload):
    env = dict(os.environ, OMP_PROC_BIND="true", GLIBC_TUNABLES="glibc.malloc.hugetlb=1",
               MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="4294967296")
    if preload:
        source, library = folder / "intel.c", folder / "intel.so"
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        run(["cc", "-shared", "-fPIC", "-o", library, source])
        env["LD_PRELOAD"] = str(library)
    return env


def torch_peer(args, folder, mode, batches):
    """All variants of one mode; returns tokens/s by variant."""
    results = {}
    amd = "AuthenticAMD" in pathlib.Path("/proc/cpuinfo").read_text()
    for compile_it in (False, True):
        for preload in ((False, True) if amd else (False,)):
            name = ("compiled" if compile_it else "eager") + ("+mkl" if preload else "")
            if args.variants and name not in args.variants.split(","):
                continue
            job = {"model": MODEL, "dtype": args.dtype, "mode": mode, "batches": batches, "row": CUT,
                   "micro": BATCH, "compile": compile_it, "threads": args.threads, "warmup": 2}
            try:
                result = subprocess.run([args.python, HERE / "peers/torch_train.py"],
                                        input=json.dumps(job), capture_output=True, text=True,
                                        env=torch_environment(folder, preload), timeout=args.peer_timeout)
            except subprocess.TimeoutExpired:
                emit(what="train_step.peer", mode=mode, variant=name, dtype=args.dtype, error="timed out")
                continue
            if result.returncode != 0:
                emit(what="train_step.peer", mode=mode, variant=name, dtype=args.dtype,
                     error=result.stderr.strip().splitlines()[-1][:200] if result.stderr else "failed")
                continue
            record = json.loads(result.stdout.splitlines()[-1])
            results[name] = BATCH / record["median_step_s"] if mode == "equal" else record["tokens_per_s"]
            emit(what="train_step.peer", mode=mode, variant=name, dtype=args.dtype, threads=args.threads,
                 **record)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=str(ROOT / "build"))
    parser.add_argument("--peer", choices=["torch", "none"], default="none")
    parser.add_argument("--work", choices=["equal", "lengths"], default="equal")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--gradients", choices=["", "f32", "bf16"], default="", help="in which Dyna adds them up")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peer-timeout", type=int, default=900)
    parser.add_argument("--modes", default="", help="of the peer: some of padded, sorted, packed (default: all)")
    parser.add_argument("--variants", default="", help="of the peer: some of eager, eager+mkl, compiled, "
                                                       "compiled+mkl (default: all)")
    args = parser.parse_args()
    if args.work == "equal":
        lengths, source = [256] * (BATCH // 256 * (args.steps + 2)), "equal"
    else:
        lengths, source = real_lengths((args.steps + 4) * 30)
    batches = batches_of(lengths + [CUT])[:args.steps] if args.work == "lengths" else [
        [256] * 16] * args.steps
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inner = 4 * MODEL["n_embd"]
        floor = json.loads(run([pathlib.Path(args.build_dir) / "bin/step_floor", str(BATCH),
                                str(MODEL["n_embd"]), str(inner), str(MODEL["n_embd"]),
                                str(MODEL["n_layer"]), str(MODEL["vocab_size"]), args.dtype,
                                str(args.threads)]))
        emit(**floor)
        speed, median, steps = dyna(args, folder, lengths, args.steps)
        record = dict(what="train_step", work=args.work, lengths=source, dtype=args.dtype,
                      gradients=args.gradients, threads=args.threads, steps=steps, tokens_per_s=round(speed, 1),
                      median_step_s=round(median, 4), floor_tokens_per_s=floor["tokens_per_s"],
                      part_of_floor=round(speed / floor["tokens_per_s"], 3))
        if args.peer == "torch":
            modes = ["equal"] if args.work == "equal" else (args.modes or "padded,sorted,packed").split(",")
            for mode in modes:
                results = torch_peer(args, folder, mode, batches)
                if results:
                    best = max(results, key=results.get)
                    record[f"torch_{mode}"] = round(results[best], 1)
                    record[f"torch_{mode}_variant"] = best
                    record[f"over_torch_{mode}"] = round(speed / results[best], 3)
        emit(**record)


if __name__ == "__main__":
    main()
