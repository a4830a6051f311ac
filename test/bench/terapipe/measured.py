"""Measures training with token slices on this machine.

    test/bench/terapipe/measured.py [--build-dir build] [--parts one,two,before] [--repeats N] [--before BINARY]

All runs train in f32 on documents of 8,192 tokens, one thread a rank. One JSON line each:

`one`: one rank, a document in 8 slices and whole, in turn. Processor seconds of a step are those of its instructions, by
the trace. `tokens_ratio` is the sliced run's tokens per processor second over the whole run's: of medians, and of the
shortest steps, which other programs slowed least. `attention` is a model whose time is nearly all in attention, `step`
one of width 768.
`two`: pp=2, one and two documents a step, seconds of steps by the clock, in turn: whole, in 8 slices under 1F1B, and as
`auto` plans them. `speedup` is the ratio of the shortest steps. `core_wait` is the part of the step in which ranks had no core: steps with a large one say little. `over_simulated`
is the time of the shortest step over what the simulator predicted with costs that the same machine was profiled for.
`on_own_cores` says the same of a busy machine: the instructions of each rank in their order, with the processor time that
they took, begin when what they wait for has ended. It leaves out messages.
`before`: processor seconds of whole samples, of this build's binary over those of the binary of an older build, which is
given: pairs in turn, in both orders.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENS = 8192
SLICES = 8


def emit(**record):
    print(json.dumps(record), flush=True)


def processor_seconds(command):
    """Runs a command and returns the processor time of it alone."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{said.decode()[-2000:]}")
    return used.ru_utime + used.ru_stime


def on_own_cores(events):
    """Seconds of the shortest step of two stages, if each rank had had a core for itself."""
    steps = collections.defaultdict(lambda: ([], []))
    for event in sorted((event for event in events if event["ph"] == "X"), key=lambda event: event["ts"]):
        kind = event["name"].split("_")[0]
        if kind in ("FORWARD", "BACKWARD", "RECOMPUTE", "UPDATE") and event["pid"] < 2 and "tdur" in event:
            args = event["args"]
            steps[args["step"]][event["pid"]].append((kind, args.get("micro_batch"), event["tdur"] / 1e6))
    shortest = float("inf")
    for ranks in list(steps.values())[1:]:
        left = collections.Counter((rank, kind, batch) for rank in (0, 1) for kind, batch, _ in ranks[rank])
        ended, clock, place = {}, [0.0, 0.0], [0, 0]
        while any(place[rank] < len(ranks[rank]) for rank in (0, 1)):
            moved = False
            for rank in (0, 1):
                while place[rank] < len(ranks[rank]):
                    kind, batch, seconds = ranks[rank][place[rank]]
                    waits = (1 - rank, kind, batch) if (rank, kind) in ((1, "FORWARD"), (0, "BACKWARD")) else None
                    if waits and left[waits]:
                        break
                    clock[rank] = max(clock[rank], ended.get(waits, 0.0)) + seconds
                    left[rank, kind, batch] -= 1
                    ended[rank, kind, batch] = clock[rank]
                    place[rank] += 1
                    moved = True
            if not moved:
                sys.exit("the order of a trace waits for itself")
        shortest = min(shortest, max(clock))
    return shortest


class Bench:
    def __init__(self, args, folder):
        self.tools = pathlib.Path(args.build_dir).resolve() / "bin"
        self.folder, self.args = folder, args
        (folder / "lengths.txt").write_text(f"{TOKENS}\n" * 8)

    def binary(self, name, layers, width, heads):
        config, module, binary = (self.folder / f"{name}{suffix}" for suffix in (".json", ".mlir", ""))
        config.write_text(json.dumps({"model_type": "gpt2", "vocab_size": 1024, "n_positions": TOKENS, "n_embd": width,
                                      "n_layer": layers, "n_head": heads, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                                      "attn_pdrop": 0.0}))
        subprocess.run([self.tools / "dyna-translate", "--from-config", config, "-o", module], check=True)
        subprocess.run([self.tools / "dynac", module, "-o", binary, "--compute-type=f32"], check=True)
        return binary

    def command(self, binary, steps, documents, *flags):
        return [binary, "--data", f"synthetic:lengths={self.folder / 'lengths.txt'}", f"--steps={steps}",
                f"--tokens-per-batch={documents * TOKENS}", f"--tokens-per-micro-batch={TOKENS}", "--threads=1",
                "--no-progress", "--seed=1", *flags]

    def steps_of(self, command):
        """Processor seconds of a run's steps but the first, by the instructions of its trace."""
        trace = self.folder / "one.trace"
        processor_seconds([*command, f"--trace={trace}"])
        seconds = collections.Counter()
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event["ph"] == "X" and "step" in event.get("args", {}):
                seconds[event["args"]["step"]] += event.get("tdur", 0) / 1e6
        return [seconds[step] for step in sorted(seconds)[1:]]

    def one(self):
        for what, shape, steps in (("attention", (4, 128, 2), 4), ("step", (2, 768, 12), 2)):
            binary = self.binary(f"one-{what}", *shape)
            seconds = {"none": [], str(SLICES): []}
            for _ in range(self.args.repeats):
                for slices, found in seconds.items():
                    found += self.steps_of(self.command(binary, steps + 1, 1, f"--slices={slices}"))
            medians, shortest = ([function(found) for found in seconds.values()] for function in (statistics.median, min))
            emit(what=f"slices.one.{what}", layers=shape[0], width=shape[1], tokens=TOKENS, slices=SLICES,
                 steps=len(seconds["none"]), whole_seconds=[round(part[0], 3) for part in (medians, shortest)],
                 sliced_seconds=[round(part[1], 3) for part in (medians, shortest)],
                 tokens_ratio=round(medians[0] / medians[1], 3), of_shortest=round(shortest[0] / shortest[1], 3),
                 must_be=0.9 if what == "attention" else 0.93)

    def two(self):
        binary = self.binary("two", 4, 128, 2)
        costs = self.folder / "two.costs"
        subprocess.run([binary, "--profile", costs, "--profile-seconds=20", "--threads=2", "--strategy=pp=2",
                        f"--tokens-per-micro-batch={TOKENS}"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        ways = {"none": ("--pipeline=1f1b",), str(SLICES): ("--pipeline=1f1b",), "auto": ()}
        for documents, must_be in ((1, 1.5), (2, 1.25)):
            best, alone = {}, {}
            trace = self.folder / "two.trace"
            for _ in range(self.args.repeats):
                for slices, flags in ways.items():
                    metrics = self.folder / "two.jsonl"
                    metrics.unlink(missing_ok=True)
                    subprocess.run([str(word) for word in self.command(
                        binary, 3, documents, "--strategy=pp=2,layers=3+3", f"--slices={slices}", *flags,
                        f"--costs={costs}", f"--metrics={metrics}", f"--trace={trace}")], check=True,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    seconds = on_own_cores(json.loads(trace.read_text())["traceEvents"])
                    alone[slices] = min(alone.get(slices, seconds), seconds)
                    for line in map(json.loads, metrics.read_text().splitlines()[1:]):
                        if "step" in line and (slices not in best or line["seconds"] < best[slices]["seconds"]):
                            best[slices] = line

            def over_whole(seconds):
                return {name: round(seconds["none"] / one, 3) for name, one in seconds.items() if name != "none"}

            emit(what="slices.two", documents=documents, must_be=must_be,
                 seconds={name: round(line["seconds"], 3) for name, line in best.items()},
                 speedup=over_whole({name: line["seconds"] for name, line in best.items()}),
                 on_own_cores={name: round(seconds, 3) for name, seconds in alone.items()},
                 on_own_cores_speedup=over_whole(alone),
                 simulated_speedup=over_whole({name: line["predicted_seconds"] for name, line in best.items()}),
                 over_simulated={name: round(line["seconds"] / line["predicted_seconds"], 3)
                                 for name, line in best.items()},
                 core_wait={name: round(line["core_wait_seconds"] / line["seconds"], 3) for name, line in best.items()})

    def before(self):
        """Training without slices, beside a binary that knows none."""
        now = self.binary("now", 4, 128, 2)
        seconds = {self.args.before: [], now: []}
        flags = ("--tokens-per-micro-batch=2048", "--tokens-per-batch=8192")
        for turn in range(2 * self.args.repeats):
            for binary in (self.args.before, now) if turn % 2 else (now, self.args.before):
                runs = [processor_seconds([*self.command(binary, steps, 1), *flags]) for steps in (1, 4)]
                seconds[binary].append((runs[1] - runs[0]) / 3)
        pairs = [new / old for old, new in zip(*seconds.values())]
        emit(what="slices.before", seconds=round(statistics.median(seconds[now]), 3),
             older_seconds=round(statistics.median(seconds[self.args.before]), 3),
             ratio=round(statistics.median(pairs), 4), of_shortest=round(min(seconds[now]) / min(seconds[self.args.before]), 4),
             pairs=[round(pair, 4) for pair in pairs], must_be="within 0.01 of 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build-dir", default=str(ROOT / "build"))
    parser.add_argument("--parts", default="one,two", help="some of one, two, before")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=pathlib.Path, help="a binary of GPT-2 as in `before`, of an older build")
    args = parser.parse_args()
    parts = args.parts.split(",")
    if not set(parts) <= {"one", "two", "before"} or ("before" in parts) != bool(args.before):
        parser.error("--parts has words of one, two and before; before needs --before, and no other part has it")
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(args, pathlib.Path(name))
        for part in parts:
            getattr(bench, part)()


if __name__ == "__main__":
    main()
