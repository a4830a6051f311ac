"""What DIR/run.sh of a packed folder runs on a machine with a GPU, most important first.

    DIR/run.sh [--out DIR] [--seconds N] [PART...]      --list names the parts

Each part prints JSON lines and adds them to OUT/results.jsonl at once, so that what was measured stays if the machine
goes; `--seconds` (540) is for all parts together, and one that would start behind it is left out, with a line that says
so; no part but the last gets more than half of what is left. Exit code 1: some line has an error. Numbers are medians of steps behind three warm ones; the same work is given to PyTorch, where it is there.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import site
import statistics
import subprocess
import sys
import tarfile
import time

import activity
import floors

HERE = pathlib.Path(__file__).resolve().parent
BINARIES = HERE / "binaries"
WARM = 3
# Of bf16, dense, as its makers say: what utilisation is counted against.
PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "B200": 2250e12}


class Machine:
    def __init__(self, out, seconds):
        self.out, self.end = out, time.monotonic() + seconds
        self.part_end, self.failures = self.end, 0
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sys.exit(f"parts.py: --out {out}: {error.strerror}")

    def begin_part(self, others):
        """One that hangs is not to cost those behind it: half of the time is theirs."""
        left = self.end - time.monotonic()
        self.part_end = self.end - (left / 2 if others else 0)

    def left(self):
        return self.part_end - time.monotonic()

    def emit(self, **record):
        self.failures += "error" in record
        line = json.dumps(record)
        print(line, flush=True)
        with (self.out / "results.jsonl").open("a") as file:
            file.write(line + "\n")

    def run(self, name, command, **options):
        """Output of a program that may fail, which is a result too; None if it did."""
        try:
            done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=max(1, self.left()), **options)
        except subprocess.TimeoutExpired:
            self.emit(what=name, error="out of time: of all that is left, a part has half, and the last one all (--seconds)")
            return None
        except OSError as error:
            self.emit(what=name, error=str(error))
            return None
        (self.out / f"{re.sub('[^a-z0-9.]+', '-', name.lower())}.log").write_text(done.stdout)
        if done.returncode != 0:
            lines = done.stdout.strip().splitlines()
            self.emit(what=name, error=f"exit code {done.returncode}: {lines[-1][:300] if lines else 'nothing was said'}")
            return None
        return done.stdout


def models():
    return sorted((path.name[len("train-"):] for path in BINARIES.glob("train-*")),
                  key=lambda name: config(name)["n_embd"] * config(name)["n_layer"])


def kernels_of_model(model):
    return json.loads((HERE / f"{model}.kernels.json").read_text())


def config(model):
    return json.loads((HERE / f"{model}.json").read_text())


def part_device(machine):
    """What there is: driver, GPU, what of it the binaries find; how fast it copies and multiplies."""
    said = machine.run("device.nvidia-smi", ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.max.sm,"
                                             "power.limit", "--format=csv,noheader"])
    if said:
        machine.emit(what="device", nvidia_smi=said.strip())
    said = machine.run("device.describe", [BINARIES / f"train-{models()[0]}", "--describe"])
    if said:
        machine.emit(what="device.described", text=said[said.find("\ncuda"):].strip().splitlines())
    bench = BINARIES / "attention"
    said = machine.run("device.properties", [bench, "--properties"]) if bench.exists() else None
    if said:
        # To replace test/runtime/device/cuda/h200.json, for which plans are made where there is no GPU.
        properties = said.strip().splitlines()[-1]
        (machine.out / "device-properties.json").write_text(properties + "\n")
        machine.emit(what="device.properties", properties=json.loads(properties))
    # Stand-ins compute it by loops.
    size = 8192 if peak_of(machine) else 32
    said = machine.run("device.ceilings", [bench, "--ceilings", size]) if bench.exists() else None
    if said:
        machine.emit(what="device.ceilings", **records_of(said)[-1])


def part_suites(machine):
    """The conformance suites of devices and kernels."""
    if not (BINARIES / "suites").exists():
        machine.emit(what="suites", error="not in this folder")
        return
    said = machine.run("suites", [BINARIES / "suites"])
    if said:
        found = {word: int(count) for word, count in re.findall(r"\[  (PASSED|SKIPPED) +\] (\d+) tests?", said)}
        passed, skipped = found.get("PASSED", 0), found.get("SKIPPED", 0)
        machine.emit(what="suites", passed=passed, skipped=skipped, **({} if passed else {"error": "no suite ran: log " + str(machine.out / "suites.log")}))


def part_golden(machine):
    """Training runs against PyTorch's golden numbers, in the types that were packed."""
    packed = {path.name.rsplit("-", 1)[1] for path in (BINARIES / "golden").glob("train-*")}
    types = [name for name in ("f64", "f32", "bf16") if name in packed]
    said = machine.run("golden", [sys.executable, HERE / "compare_golden.py", "--golden", HERE / "golden", "--work",
                                  BINARIES / "golden", "--types", ",".join(types)])
    if said:
        machine.emit(what="golden", compared=[line for line in said.splitlines() if "largest errors" in line])


def train(machine, name, model, lengths, batch, micro, steps, *flags, environment=None):
    """Metrics of the steps behind the warm ones."""
    folder = machine.out / "work"
    folder.mkdir(exist_ok=True)
    lines, metrics = folder / "lengths.txt", folder / "metrics.jsonl"
    lines.write_text("\n".join(map(str, lengths)) + "\n")
    metrics.unlink(missing_ok=True)
    if machine.run(name, [BINARIES / f"train-{model}", "--data", f"synthetic:lengths={lines}", "--tokens-per-batch", batch,
                          "--tokens-per-micro-batch", micro, "--steps", steps + WARM, "--lr", "3e-4", "--seed", "1",
                          "--metrics", metrics, "--no-progress", *flags], env={**os.environ, **(environment or {})}) is None:
        return None
    found = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line for line in found if "seconds" in line and "step" in line][WARM:]


def torch(machine, name, job):
    said = machine.run(name, [sys.executable, HERE / "torch_train.py"], input=json.dumps(job))
    return json.loads(said.splitlines()[-1]) if said else None


def peak_of(machine):
    said = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout if os.access("/usr/bin/nvidia-smi", os.X_OK) else ""
    return next((peak for name, peak in PEAK_FLOPS.items() if name in said), None)


def contexts(model):
    return [n for n in (1024, 4096) if n <= config(model)["n_positions"]] or [config(model)["n_positions"]]


def tokens_of_step(context):
    """Enough to fill a GPU; few for models that only try these scripts."""
    return 16384 if context >= 1024 else 4 * context


def variants_of(machine):
    """Names and flags of runs: as they are, with timed algorithms, and with cuDNN's attention beside these. Stand-ins have
    nothing to choose from."""
    timed = ("--algorithms", machine.out / "algorithms")
    return {"": ()} if not peak_of(machine) else {"": (), "algorithms": timed, "cudnn": (*timed, "--attention=cudnn")}


def part_steps(machine, steps=10):
    """A step of each model, samples of one length: tokens a second, of the peak, and steps that were launched ahead."""
    for context in sorted({n for model in models() for n in contexts(model)}):
        for model in models():
            if context not in contexts(model):
                continue
            micro = tokens_of_step(context)
            for variant, flags in variants_of(machine).items():
                name = ".".join(filter(None, ("steps", model, str(context), variant)))
                measured = train(machine, name, model, [context] * 64, micro, micro, steps, *flags)
                if not measured:
                    continue
                median = statistics.median(line["seconds"] for line in measured)
                speed, peak = micro / median, peak_of(machine)
                machine.emit(what="steps", model=model, context=context, tokens=micro, steps=len(measured),
                             **({"variant": variant} if variant else {}), median_step_s=round(median, 5),
                             tokens_per_s=round(speed, 1), launched_ahead=sum(line["launched_ahead"] for line in measured),
                             mfu=round(speed * floors.flops_of_token(config(model), context) / peak, 4) if peak else None)


def part_breakdown(machine):
    """One traced step of each model: seconds per instruction, each with what the device waited before it."""
    for model in models():
        context = contexts(model)[0]
        trace = machine.out / f"trace-{model}.json"
        if not train(machine, f"breakdown.{model}", model, [context] * 64, tokens_of_step(context), tokens_of_step(context), 1, "--trace", trace):
            continue
        slices = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
        spent = {}
        for event in slices:
            key = event["name"].split()[0]
            spent[key] = spent.get(key, 0) + event["dur"] * 1e-6
        machine.emit(what="breakdown", model=model, slices=len(slices),
                     seconds={key: round(value, 6) for key, value in sorted(spent.items(), key=lambda kv: -kv[1])})


def ceilings_of(machine):
    """What `device` measured, in this folder of results."""
    results = machine.out / "results.jsonl"
    found = records_of(results.read_text()) if results.exists() else []
    return next((record for record in reversed(found) if record.get("what") == "device.ceilings" and "product_flops" in record), None)


def part_floors(machine):
    """Floors of a step's parts and of all together, at measured or else published rates: what could be reached at all."""
    measured = ceilings_of(machine)
    rates, peak = measured or floors.PUBLISHED, peak_of(machine) or floors.PUBLISHED["product_flops"]
    for model in models():
        kernels = kernels_of_model(model)
        for context in contexts(model):
            tokens = tokens_of_step(context)
            of_kernels = floors.of_kernels(floors.calls_of_step(kernels), kernels["row_bytes"], tokens, rates)
            found = floors.of_step(config(model), context, tokens, rates, of_kernels)
            step = sum(found.values())
            machine.emit(what="floors", model=model, context=context, tokens=tokens, rates="measured" if measured else "published for an H200",
                         seconds={name: float(f"{seconds:.4g}") for name, seconds in found.items()}, step_s=float(f"{step:.4g}"),
                         mfu=round(tokens * floors.flops_of_token(config(model), context) / step / peak, 4))


def cupti():
    """CUPTI's library: beside CUDA's own that were asked for, of a Python package, of a toolkit."""
    folders = [*os.environ.get("DYNA_CUDA_LIBRARY_PATH", "").split(":"), *(f"{path}/nvidia/{part}/lib" for path in [*sys.path, *site.getsitepackages()]
               for part in ("cu13", "cuda_cupti")), "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"]
    return next((pathlib.Path(folder) / "libcupti.so.13" for folder in folders
                 if folder and (pathlib.Path(folder) / "libcupti.so.13").exists()), None)


def part_gaps(machine, steps=6):
    """Time without a kernel in steps, and what the rest goes on, each part over its floor."""
    probe, library = BINARIES / "probe.so", cupti()
    if not probe.exists() or not library:
        machine.emit(what="gaps", error="no libcupti.so.13" if probe.exists() else "not in this folder")
        return
    for model in models():
        context = contexts(model)[0]
        tokens, output = tokens_of_step(context), (machine.out / f"activity-{model}.txt").resolve()
        output.unlink(missing_ok=True)
        measured = train(machine, f"gaps.{model}", model, [context] * 64, tokens, tokens, steps, environment={
            "CUDA_INJECTION64_PATH": str(probe), "DYNA_PROBE_CUPTI": str(library), "DYNA_PROBE_OUTPUT": str(output)})
        if not measured:
            continue
        try:
            work, lost = activity.read(output.read_text())
            emit_gaps(machine, model, work, lost, measured)
        except (OSError, ValueError) as error:
            machine.emit(what="gaps", model=model, error=str(error))


def emit_gaps(machine, model, work, lost, measured):
    """What steps went on, each part over its floor."""
    context, tokens, rows = contexts(model)[0], measured[0]["tokens"], floors.rows_of(measured)
    steps = activity.steps_of(work, WARM)
    found, calls, slowest = activity.summary(steps), activity.calls(steps), activity.slowest(work, WARM, 20)
    rates, row_bytes = ceilings_of(machine), kernels_of_model(model)["row_bytes"]
    of_kernels = floors.of_kernels(calls, row_bytes, rows, rates) if rates else {}
    of_groups = floors.of_step(config(model), context, tokens, rates, of_kernels) if rates else {}
    floors.put(found["groups"], of_groups, calls, row_bytes)
    for line in slowest:
        floor = of_kernels.get(line["name"].split(" ", 1)[-1])
        line["over_floor"] = round(line["us"] * 1e-6 / floor, 3) if floor else None
    machine.emit(what="gaps", model=model, context=context, tokens=tokens, lost=lost, **found)
    machine.emit(what="gaps.kernels", model=model, kernels=slowest)


def part_torch(machine, steps=10):
    """PyTorch on the steps of `steps`, compiled."""
    for model in models():
        for context in contexts(model):
            micro = tokens_of_step(context)
            found = torch(machine, f"torch.{model}.{context}", {
                "model": config(model), "dtype": "bf16", "mode": "equal", "batches": [[context] * (micro // context)] * steps,
                "row": context, "micro": micro, "compile": True, "threads": 8, "warmup": WARM, "device": "cuda"})
            if found:
                machine.emit(what="torch", model=model, context=context,
                             tokens_per_s=round(micro / found["median_step_s"], 1), **found)


def part_lengths(machine, steps=10, batch=65536, micro=16384):
    """Real lengths: ours, and PyTorch's padded and packed ones."""
    lengths = [int(word) for word in (HERE / "lengths.txt").read_text().split()]
    for model in models():
        most = config(model)["n_positions"]
        cut = [min(n, most) for n in lengths]
        measured = train(machine, f"lengths.{model}", model, cut, batch, micro, steps)
        if measured:
            machine.emit(what="lengths", model=model, steps=len(measured),
                         tokens_per_s=round(sum(line["tokens"] for line in measured) / sum(line["seconds"] for line in measured), 1))
        batches, current = [], []
        for n in cut:
            if sum(current) + n > batch:
                batches.append(current)
                current = []
            current.append(n)
        for mode in ("padded", "varlen"):
            found = torch(machine, f"lengths.torch.{model}.{mode}", {
                "model": config(model), "dtype": "bf16", "mode": mode, "batches": batches[:steps], "row": most,
                "micro": micro, "compile": True, "threads": 8, "warmup": WARM, "device": "cuda"})
            if found:
                machine.emit(what="lengths.torch", model=model, mode=mode, **found)


def profile(machine, model, costs, micro, most):
    """What --profile says. Stand-ins have few sizes, and a processor that may be busy: they get little time, and more of it as
    long as that ends the first pass."""
    seconds, room = most if peak_of(machine) else 4, max(1, machine.left() / 8)
    while True:
        seconds = int(min(seconds, room))
        costs.unlink(missing_ok=True)
        said = machine.run(f"costs.{model}", [BINARIES / f"train-{model}", "--profile", costs, "--profile-seconds", seconds,
                                              "--tokens-per-micro-batch", micro, "--no-progress"])
        if said is None or "--profile-seconds ended the first pass" not in said or peak_of(machine) or seconds >= int(room):
            return said
        seconds *= 4


def part_costs(machine, most=45, steps=8):
    """What --profile measures of each model, its error off the grid, and how far steps are from what it predicts."""
    lengths = [int(word) for word in (HERE / "lengths.txt").read_text().split()]
    for model in models():
        micro = tokens_of_step(contexts(model)[0])
        costs = machine.out / f"{model}.costs"
        said = profile(machine, model, costs, micro, most)
        if said is None:
            continue
        found = re.findall(r"error off the grid: mean ([\d.]+) %.*?(calls of 0.1 ms and more|shorter calls)", said)
        spread = re.search(r"repeats of a call differ by ([\d.]+) %", said)
        machine.emit(what="costs", model=model, micro=micro, spread=float(spread[1]) / 100,
                     off_grid={"long" if "0.1" in kind else "short": float(mean) / 100 for mean, kind in found})
        cut = [min(n, config(model)["n_positions"]) for n in lengths]
        measured = train(machine, f"costs.steps.{model}", model, cut, 4 * micro, micro, steps, "--costs", costs)
        if measured:
            errors = [abs(line["predicted_seconds"] / line["seconds"] - 1) for line in measured]
            machine.emit(what="costs.steps", model=model, steps=len(errors), mean_error=round(statistics.mean(errors), 4))


def kernels_of(text):
    """From ncu's CSV: calls, seconds and bytes of memory by kernel."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    found = {}
    for row in csv.DictReader(lines[head:]) if head is not None else []:
        kernel = found.setdefault(row["Kernel Name"], {"calls": 0, "seconds": 0.0, "bytes": 0.0})
        value = float(row["Metric Value"].replace(",", ""))
        unit = row["Metric Unit"].lower()
        if row["Metric Name"] == "gpu__time_duration.sum":
            kernel["calls"] += 1
            kernel["seconds"] += value * {"s": 1, "ms": 1e-3, "us": 1e-6, "usecond": 1e-6, "ns": 1e-9, "nsecond": 1e-9}[unit]
        elif row["Metric Name"] == "dram__bytes.sum":
            kernel["bytes"] += value * {"gbyte": 1e9, "mbyte": 1e6, "kbyte": 1e3, "byte": 1}[unit]
    return found


def part_kernels(machine):
    """Kernels of a step by what ncu says of each: time, bytes a second."""
    model = models()[min(1, len(models()) - 1)]
    lines = machine.out / "kernel-lengths.txt"
    lines.write_text("1024\n" * 32)
    said = machine.run("kernels", ["ncu", "--clock-control", "none", "--csv", "--metrics",
                                   "gpu__time_duration.sum,dram__bytes.sum", "--launch-count", 4000, BINARIES / f"train-{model}",
                                   "--data", f"synthetic:lengths={lines}", "--tokens-per-batch", 8192, "--steps", 1, "--lr",
                                   "1e-4", "--seed", 1, "--no-progress"])
    for name, kernel in sorted(kernels_of(said or "").items(), key=lambda item: -item[1]["seconds"]):
        machine.emit(what="kernels", model=model, kernel=name, calls=kernel["calls"], us=round(kernel["seconds"] * 1e6, 1),
                     bytes_per_s=round(kernel["bytes"] / kernel["seconds"]) if kernel["seconds"] else None)


def part_attention(machine):
    """Attention alone, by own kernels, by cuDNN and by PyTorch's varlen_attn, and which is fastest."""
    bench = BINARIES / "attention"
    if not bench.exists():
        machine.emit(what="attention", error="not in this folder")
        return
    peak = peak_of(machine)
    said = machine.run("attention", [bench, *(["--peak", peak / 1e12] if peak else [])])
    records = records_of(said or "")
    sizes = list(dict.fromkeys(record["size"] for record in records if "size" in record))
    peer = machine.run("attention.torch", [sys.executable, HERE / "torch_attention.py"], input=json.dumps({"sizes": sizes})) if sizes else None
    records += records_of(peer or "")
    for record in [*records, *faster_paths(records)]:
        machine.emit(**record)


def records_of(text):
    """Of lines that are whole."""
    found = []
    for line in text.splitlines():
        try:
            found += [json.loads(line)] if line.startswith("{") else []
        except ValueError:
            pass
    return found


def faster_paths(records):
    """Of each call: the path that took least time, and how much longer the others took."""
    calls = {}
    for record in records:
        if "median_ms" in record:
            calls.setdefault((record["what"], record["size"]), {})[record["path"]] = record["median_ms"]
    for (what, size), paths in calls.items():
        best = min(paths, key=paths.get)
        yield {"what": f"{what}.fastest", "size": size, "path": best,
               "times": {path: round(time / paths[best], 3) for path, time in sorted(paths.items())}}


def part_sanitizer(machine):
    """compute-sanitizer over the suites: what kernels access, and races of shared memory."""
    for tool in ("memcheck", "racecheck"):
        said = machine.run(f"sanitizer.{tool}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                                                 BINARIES / "suites", "--gtest_brief=1"])
        if said:
            machine.emit(what="sanitizer", tool=tool, errors=0)


PARTS = {name[len("part_"):]: function for name, function in list(globals().items()) if name.startswith("part_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of: " + ", ".join(PARTS) + " (default: all, in this order)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, function in PARTS.items():
            print(f"{name:10} {function.__doc__.splitlines()[0]}")
        return
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    archive = HERE / "binaries.tar.xz"
    if not BINARIES.exists() and archive.exists():
        # Beside it first: a folder that is there is whole.
        part = HERE / "binaries.part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(archive) as packed:
            packed.extractall(part)
        (part / "binaries").rename(BINARIES)
        shutil.rmtree(part)
    if not list(BINARIES.glob("train-*")):
        parser.error(f"{HERE} has no training binaries: run.sh --pack DIR makes a folder that has")
    machine = Machine(options.out, options.seconds)
    names = options.parts or list(PARTS)
    for i, name in enumerate(names):
        machine.begin_part(names[i + 1:])
        if machine.left() <= 0:
            machine.emit(what=name, error="left out: the time is up")
            continue
        begin = time.monotonic()
        try:
            PARTS[name](machine)
        except Exception as error:  # the machine is there for minutes: other parts run
            machine.emit(what=name, error=f"{type(error).__name__}: {error}")
        machine.emit(what="part", name=name, seconds=round(time.monotonic() - begin, 1))
    # All that is known is in the lines; this is for who waits for the end.
    sys.exit(1 if machine.failures else 0)


if __name__ == "__main__":
    main()
