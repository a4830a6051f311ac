#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans random requests, and compares the plans of two builds byte for byte.

A change that only moves code must not change a plan. Run it before and after:

  plan_bytes.py BUILD --write before.json
  plan_bytes.py BUILD --expect before.json

A request has a model, strategies, lengths, limits, a schedule, a kind of micro-batches
and a recomputation, all drawn from --seed. Most requests go through dyna-opt; steps of
several graphs go through --dyna-orchestrate; and some are trained for two steps by a
compiled binary, which writes its plans with --dump-plans. What a tool refuses counts
with the first line that it prints.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

GPT = {"vocab_size": 257, "n_positions": 128, "n_embd": 48, "n_layer": 4, "n_head": 12, "n_inner": 96,
       "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
LLAMA = {"vocab_size": 257, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 6, "num_attention_heads": 6,
         "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "max_position_embeddings": 256, "tie_word_embeddings": True}
LAYERS = {"gpt2": 6, "llama": 8}  # with embedding and head
POSITIONS = {"gpt2": 128, "llama": 256}
SCHEDULES = ["", "", "adaptive", "1f1b", "gpipe", "cyclic", "sequential"]
KINDS = ["", "", "", "padded", "packed", "ragged"]
SLICES = ["", "", "", "auto", "3", "uniform:2"]
MODES = ["", "", "none", "selective", "full", "auto"]
# Of four ranks, so that all graphs of a step have as many.
STRATEGIES = ["dp=4", "dp=4,zero=1", "tp=2,dp=2", "tp=2,dp=2,zero=1", "tp=2,pp=2", "tp=2,pp=2,sp=1", "dp=2,pp=2",
              "dp=2,pp=2,zero=1", "pp=4", "dp=2,pp=2,recompute=full"]


def draw_lengths(random_, longest):
    kind = random_.randrange(3)
    count = random_.randint(1, 24)
    if kind == 0:
        return [random_.randint(1, longest) for _ in range(count)]
    if kind == 1:  # many short ones and a few long ones
        return [min(longest, 1 + int(random_.lognormvariate(3, 1))) for _ in range(count)]
    return [random_.choice((longest, longest // 2, 7))] * count


def draw_limits(random_):
    """Options that a pass and a binary both have."""
    options = {"pipeline": random_.choice(SCHEDULES), "micro-batches": random_.choice(KINDS),
               "slices": random_.choice(SLICES)}
    if random_.random() < 0.7:
        tokens = random_.choice((64, 128, 256, 512))
        options["tokens-per-micro-batch"] = str(tokens)
        if random_.random() < 0.6:
            # From too little to plenty.
            options["rank-memory"] = str(1_000_000 + tokens * random_.randint(6_000, 60_000))
    return {name: value for name, value in options.items() if value}


def draw_plan(random_):
    model = random_.choice(list(LAYERS))
    options = draw_limits(random_)
    options["strategy"] = random_.choice(STRATEGIES)
    if "recompute" not in options["strategy"]:
        options["recompute"] = random_.choice(MODES)
    if random_.random() < 0.2:
        options["split-backward"] = "true"
    elif random_.random() < 0.15:
        options["evaluate"] = "true"
    options["lengths"] = ",".join(map(str, draw_lengths(random_, POSITIONS[model])))
    return {"kind": "plan", "model": model, "options": {k: v for k, v in options.items() if v}}


def draw_ranges(random_, model):
    names = ["a", "b", "c"][:random_.randint(2, 3)]
    strategies = dict(zip(names, random_.sample(STRATEGIES, len(names))))
    cuts = sorted(random_.sample(range(8, POSITIONS[model] - 8, 4), len(names) - 1))
    parts = [f"{name}: {low}-{high}" for name, low, high in
             zip(names, [0, *(cut + 1 for cut in cuts)], [*cuts, ""])]
    return "; ".join(f"{name}: {text}" for name, text in strategies.items()), "; ".join(parts)


def draw_step(random_):
    model = random_.choice(list(LAYERS))
    strategies, ranges = draw_ranges(random_, model)
    options = draw_limits(random_)
    options.pop("rank-memory", None)
    options["lengths"] = ",".join(map(str, draw_lengths(random_, POSITIONS[model])))
    options["merge-ranges"] = "auto" if random_.random() < 0.5 else "never"
    return {"kind": "step", "model": model, "strategies": strategies, "ranges": ranges, "options": options}


def draw_run(random_):
    model = random_.choice(list(LAYERS))
    options = draw_limits(random_)
    if random_.random() < 0.5:
        strategies, ranges = draw_ranges(random_, model)
        options |= {"strategies": strategies, "ranges": ranges, "merge-ranges": random_.choice(("auto", "never"))}
    else:
        options["strategy"] = random_.choice(STRATEGIES)
        if "recompute" not in options["strategy"]:
            options["recompute"] = random_.choice(("none", "selective", "auto"))
    options |= {"tokens-per-batch": str(random_.choice((256, 1024))), "seed": str(random_.randint(0, 99))}
    return {"kind": "run", "model": model, "options": options,
            "lines": draw_lengths(random_, POSITIONS[model] - 1) * 4}


def draw_requests(seed, count):
    random_ = random.Random(seed)
    draws = [draw_plan] * 12 + [draw_step] * 5 + [draw_run] * 3
    return [random_.choice(draws)(random_) for _ in range(count)]


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Tools:
    def __init__(self, build, folder):
        self.bin, self.folder = build / "bin", folder
        self.planned, self.binaries = {}, {}
        for name, config in (("gpt2", GPT), ("llama", LLAMA)):
            source = folder / f"{name}.json"
            source.write_text(json.dumps(config))
            logical = folder / f"{name}.mlir"
            self.run(["dyna-translate", f"--{name}", source, "-o", logical])
            self.planned[name] = folder / f"{name}.planned.mlir"
            self.run(["dyna-opt", logical, "--dyna-differentiate", "--dyna-distribute=strategy='a: tp=2; b: tp=2,sp=1'",
                      "--dyna-memory", "-o", self.planned[name]])
            self.binaries[name] = folder / name
            self.run(["dynac", logical, "-o", self.binaries[name], "--strategies=a: tp=2,dp=2; b: tp=2,dp=2,sp=1",
                      "--isa=avx2"])

    def run(self, command):
        done = subprocess.run([str(self.bin / command[0]), *map(str, command[1:])], capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr.decode()}")

    def answer(self, command, cwd=None):
        done = subprocess.run(list(map(str, command)), capture_output=True, cwd=cwd)
        if done.returncode == 0:
            return done.stdout, True
        lines = [line for line in done.stderr.decode().splitlines() if "error" in line] or done.stderr.decode().splitlines()
        return (lines[0] if lines else "").replace(str(self.folder), "").encode(), False

    def plan(self, request):
        options = " ".join(f"{name}='{value}'" for name, value in request["options"].items())
        passes = []
        if request["kind"] == "step":
            passes.append(f"--dyna-orchestrate=strategies='{request['strategies']}' ranges='{request['ranges']}'")
        text, isPlanned = self.answer([self.bin / "dyna-opt", self.planned[request["model"]], *passes,
                                       f"--dyna-plan={options}"])
        return digest(text), isPlanned

    def train(self, number, request):
        folder = self.folder / f"run-{number}"
        folder.mkdir()
        (folder / "data.txt").write_text("\n\n".join("x" * length for length in request["lines"]))
        flags = [f"--{name}={value}" for name, value in request["options"].items()]
        text, isPlanned = self.answer([self.binaries[request["model"]], "--data=data.txt", "--steps=2", "--threads=1",
                                       "--dump-plans=plans", *flags], folder)
        if not isPlanned:
            return digest(text), False
        plans = sorted((folder / "plans").iterdir())
        return digest(b"".join(path.name.encode() + path.read_bytes() for path in plans)), True

    def make(self, numbered):
        number, request = numbered
        return self.train(number, request) if request["kind"] == "run" else self.plan(request)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of a build, with bin/dyna-opt in it")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=pathlib.Path, help="where to write one digest for each request")
    parser.add_argument("--expect", type=pathlib.Path, help="digests of another build; a request that differs is printed")
    arguments = parser.parse_args()
    requests = draw_requests(arguments.seed, arguments.count)
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(arguments.build.resolve(), pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(tools.make, enumerate(requests)))
    digests = [text for text, _ in made]
    planned = sum(isPlanned for _, isPlanned in made)
    if arguments.write:
        arguments.write.write_text(json.dumps({"seed": arguments.seed, "digests": digests}) + "\n")
    differ = []
    if arguments.expect:
        expected = json.loads(arguments.expect.read_text())
        if expected["seed"] != arguments.seed or len(expected["digests"]) != len(digests):
            raise SystemExit(f"{arguments.expect} is of seed {expected['seed']} and {len(expected['digests'])} requests")
        differ = [i for i, (a, b) in enumerate(zip(expected["digests"], digests)) if a != b]
        for number in differ:
            print(f"request {number} differs: {json.dumps(requests[number])}")
    print(f"{len(digests)} requests, {planned} planned, {len(digests) - planned} refused, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
