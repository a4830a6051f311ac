#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables 1 and 2 and figures 3 and 4 of DynPipe, simulated by `dyna-plan` on described GPUs.

    test/bench/dynpipe/figures.py --build-dir build --out docs/results/dynpipe.md

The protocol is that of the authors' BERT script: width 1024, 16 heads, 64 samples of 512 tokens, micro-batches of 2 samples,
f32, 10,000 steps, gradual global magnitude pruning every 1,000 steps from 3,000 to 7,000, to 90 %. The model looks both ways.
How zeros spread over blocks is read from Inputs/spread.json, by the relative depth of a block (spread.py makes it).

Stages of the baseline have equal numbers of blocks, as Megatron-LM's; the embedding stands before the first stage and the head
behind the last one. The other sides cut layers again behind each event, by one policy each, and pay for the move:
`dyna-plan --rebalance` plans and simulates both cuts, and the switch between them. Figure 4 asks with `--repack`.

One JSON line for each result goes to standard output, tables to --out and a picture beside it. What a tool of the same bytes
has planned is read from dynpipe.jsonl in the build folder.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

import picture
import tables

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
WIDTH, HEADS, TOKENS, SAMPLES, MICRO, STEPS = 1024, 16, 512, 64, 2, 10000
VOCABULARY, NO_HEAD = 30592, 512  # of BERT, as Megatron-LM rounds it; of a head that takes 4 % of a block
INITIAL, FINAL, FIRST, LAST, EVERY = 0.0, 0.9, 3000, 7000, 1000
DEVICES = ("a100-40g", "v100")
POLICIES = ("time", "diffusion")
DELAYS = (1, 2, 3, 4)
# Mid-points of three equally likely parts of a normal distribution, in standard deviations.
QUANTILES = (-0.9674, 0.0, 0.9674)
TARGETS = (8, 6, 4, 2)
MOST = 0.999  # of zeros in a block


def sparsity_at(step):
    """Equation 2, with the last event."""
    return FINAL + (INITIAL - FINAL) * (1 - (step - FIRST) / (LAST - FIRST)) ** 3


def phases():
    """Steps with one sparsity, from one event to the next. The first event has the initial one."""
    events = [step for step in range(FIRST, LAST + 1, EVERY) if sparsity_at(step) > 0]
    ends = [*events, STEPS]
    return [(events[0], 0.0), *((end - begin, sparsity_at(begin)) for begin, end in zip(events, ends[1:]))]


class Spread:
    """Sparsities of blocks by depth, of a model that was trained, made wider by a factor."""

    def __init__(self, table, factor=1.0):
        self.table = {float(sparsity): shares for sparsity, shares in table.items()}
        self.factor = factor

    def of(self, layers, sparsity):
        """One for each block. Their mean is the sparsity; a block between two of the table has what is between theirs."""
        if sparsity == 0:
            return [0.0] * layers
        shares = self.table[min(self.table, key=lambda known: abs(known - sparsity))]
        own = []
        for block in range(layers):
            place = block * (len(shares) - 1) / (layers - 1)
            left = min(int(place), len(shares) - 2)
            own.append(shares[left] + (place - left) * (shares[left + 1] - shares[left]))
        mean = sum(own) / layers
        own = [sparsity + self.factor * (share - mean) for share in own]
        return own if min(own) >= 0 and max(own) <= MOST else moved(own, sparsity)


def moved(shares, mean):
    """All shares moved by as much, and cut at 0 and MOST, so that they have this mean."""
    low, high = -max(shares), MOST - min(shares)
    for _ in range(60):
        middle = (low + high) / 2
        within = [min(max(share + middle, 0.0), MOST) for share in shares]
        low, high = (middle, high) if sum(within) / len(within) < mean else (low, middle)
    return within


class Bench:
    def __init__(self, build, tool, translate, work):
        self.tool, self.translate, self.work = tool, translate, work
        self.store = build / "dynpipe.jsonl"
        self.mark = hashlib.sha256(tool.read_bytes()).hexdigest()[:16]
        self.known = {}
        if self.store.exists():
            self.known = {entry["key"]: entry["rows"] for entry in map(json.loads, self.store.read_text().splitlines())}

    def model(self, layers, vocabulary):
        """A file with the model: GPT-2's layers, with attention that looks both ways, as in BERT."""
        path = self.work / f"bert-{layers}-{vocabulary}.mlir"
        if not path.exists():
            config = {"model_type": "gpt2", "vocab_size": vocabulary, "n_positions": TOKENS, "n_embd": WIDTH, "n_layer": layers, "n_head": HEADS,
                      "n_inner": 4 * WIDTH, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": True}
            path.with_suffix(".json").write_text(json.dumps(config))
            subprocess.run([self.translate, "--gpt2", path.with_suffix(".json"), "-o", path], check=True)
            text = path.read_text().replace("{causal, ", "{").replace('family = "gpt2"', 'family = "custom"')
            path.write_text(re.sub(r', config = ".*">', ', config = "">', text))
        return path

    def ask(self, model, words, costs, states):
        """The rows of dyna-plan. Asked once. `costs`: a device's name, or the text of a file."""
        key = hashlib.sha256(json.dumps([self.mark, model.name, words, costs, states]).encode()).hexdigest()[:32]
        if key not in self.known:
            more = ["--cluster", costs]
            if "{" in costs:
                (self.work / "costs.textproto").write_text(costs)
                more = ["--costs", self.work / "costs.textproto"]
            if any(states):
                (self.work / "layers.csv").write_text("".join(f"h.{block},{share:.6f}\n" for block, share in enumerate(states)))
                more += ["--sparsity", self.work / "layers.csv"]
            done = subprocess.run([self.tool, model, *more, *words], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"figures.py: dyna-plan {' '.join(map(str, words))} ends with {done.returncode}: {done.stderr.strip()}")
            self.known[key] = [json.loads(row) for row in done.stdout.splitlines()]
            with self.store.open("a") as file:
                file.write(json.dumps({"key": key, "rows": self.known[key]}) + "\n")
        return self.known[key]

    def rows(self, layers, gpus, states, costs, flags, cut="", vocabulary=VOCABULARY):
        """The rows of --rebalance or --repack, by their names, and those of published policies with how many ranks they wanted. Without a cut, it is that of the dense layers."""
        words = ["--strategy", f"pp={gpus}" + (f",layers={cut}" if cut else ""), "--compute-type", "f32", "--pipeline", "1f1b", "--micro-batches",
                 "tokens", "--json", "--tokens-per-batch", str(SAMPLES * TOKENS), "--tokens-per-micro-batch", str(MICRO * TOKENS), "--lengths",
                 ",".join([str(TOKENS)] * SAMPLES), *flags]
        found = {}
        for row in self.ask(self.model(layers, vocabulary), words, costs, states):
            for kind in ("present", "rebalance", "repack"):
                if kind in row:
                    found[row[kind]] = row
            if "policy" in row:
                found[row["policy"], row["wanted"]] = row
        return found


def cut_text(row):
    return "+".join(map(str, row["cut"]))


def even_cut(layers, gpus):
    """Equal numbers of blocks, as near as can be, with the embedding and the head on top."""
    blocks = [layers * (stage + 1) // gpus - layers * stage // gpus for stage in range(gpus)]
    blocks[0] += 1
    blocks[-1] += 1
    return "+".join(map(str, blocks))


def run_policy(bench, layers, gpus, spread, costs, policy, vocabulary):
    """A run that cuts again by a policy behind each event: seconds of all steps, and its moves. It stays if that is faster."""
    held, seconds, moves, last = even_cut(layers, gpus), 0.0, [], {}
    for steps, sparsity in phases():
        rows = bench.rows(layers, gpus, spread.of(layers, sparsity), costs, ["--rebalance", policy], held, vocabulary)
        last = rows["present"]
        if rows[policy]["moved_bytes"] > 0 and rows[policy]["step_seconds"] < last["step_seconds"]:
            last = rows[policy]
            seconds += last["move_seconds"]
            moves.append({"bytes": last["moved_bytes"], "seconds": last["move_seconds"], "earned": last["steps_to_earn"]})
            held = cut_text(last)
        seconds += steps * last["step_seconds"]
    return {"seconds": seconds, "moves": moves, "cut": held, "last": last}


def run_fixed(bench, layers, gpus, spread, costs, cut, vocabulary):
    """A run that keeps a cut; of none, that of the dense layers."""
    seconds, peak, first, last = 0.0, 0, 0.0, {}
    for steps, sparsity in phases():
        last = bench.rows(layers, gpus, spread.of(layers, sparsity), costs, ["--rebalance", POLICIES[0]], cut, vocabulary)["present"]
        seconds += steps * last["step_seconds"]
        first = first or last["step_seconds"]
        peak = max(peak, last["peak_bytes"])
    return {"seconds": seconds, "cut": cut_text(last), "last": last, "peak": peak, "first": first}


def run(bench, layers, gpus, device, spread, vocabulary=VOCABULARY, costs=None, policies=POLICIES):
    """Samples a second of each side of a whole run, and what moves. `dense` is cut once, by the seconds of dense layers; `unpruned` is
    the even cut without pruning."""
    costs = costs or f"{device}:1x8"
    sides = {policy: run_policy(bench, layers, gpus, spread, costs, policy, vocabulary) for policy in policies}
    for name, cut in (("even", even_cut(layers, gpus)), ("dense", "")):
        sides[name] = run_fixed(bench, layers, gpus, spread, costs, cut, vocabulary)
    rates = {name: SAMPLES * STEPS / side["seconds"] for name, side in sides.items()}
    rates["unpruned"] = SAMPLES / sides["even"]["first"]
    best = max(policies, key=lambda policy: rates[policy])
    return {"layers": layers, "gpus": gpus, "device": device, "rates": rates, "best": best, "gain": rates[best] / rates["even"],
            "gain_over_dense_cut": rates[best] / rates["dense"], "gain_over_unpruned": rates[best] / rates["unpruned"], "moves": {policy: sides[policy]["moves"] for policy in policies},
            "cuts": {name: side["cut"] for name, side in sides.items()}, "peak": sides["even"]["peak"],
            "idle": {"even": sides["even"]["last"]["idle"], "best": sides[best]["last"]["idle"]}}


def price(bench, layers, device, spread):
    """Of each policy of table 1, the dearest move from even stages."""
    most = {}
    for _, sparsity in phases()[1:]:
        rows = bench.rows(layers, 8, spread.of(layers, sparsity), f"{device}:1x8", ["--rebalance", ",".join(tables.TABLE1_POLICIES)], even_cut(layers, 8))
        for policy in tables.TABLE1_POLICIES:
            own = rows[policy]
            found = {"bytes": own["moved_bytes"], "seconds": own["move_seconds"], "rounds": own["rounds"], "earned": own["steps_to_earn"],
                     "iterations": own["move_seconds"] / rows["present"]["step_seconds"]}
            if policy not in most or found["iterations"] > most[policy]["iterations"]:
                most[policy] = found
    return {"layers": layers, "device": device, "price": most}


def memory(bench, layers, gpus, device):
    """Bytes of rank 0: the plan of the dense model with stored scores, and what Algorithm 1 has there beside it at its first event.

    Nothing is pruned yet, so k is all weights. The rank has a copy of its own weights, their magnitudes, and its top k (4 + 4 + 12 bytes of each:
    values and indices of 8 bytes). It gathers those of all ranks, and takes the top k of these (12 + 12)."""
    even = even_cut(layers, gpus)
    found = bench.rows(layers, gpus, [0.0] * layers, f"{device}:1x8", ["--rebalance", POLICIES[0], "--attention", "stored"], even)["present"]
    own, every = 12 * WIDTH ** 2 * (int(even.split("+")[0]) - 1), 12 * WIDTH ** 2 * layers
    return {"layers": layers, "gpus": gpus, "device": device, "plan": found["peak_bytes"], "pruning": 20 * own + 24 * every}


def described(device):
    return (ROOT / "runtime" / "cost" / "descriptions" / f"{device}.textproto").read_text()


def delayed(device, factor):
    """One GPU in each node, whose network is slower by a factor."""
    def slower(found):
        return f"between {{ latency_seconds: {float(found.group(1)) * factor:g} bytes_per_second: {float(found.group(2)) / factor:g} }}"

    text = described(device).replace("devices_per_node: 8", "nodes: 8 devices_per_node: 1")
    return re.sub(r"between \{ latency_seconds: (\S+) bytes_per_second: (\S+) \}", slower, text)


def figure3(bench, layers, device, spread, delays=DELAYS):
    """Tokens a second under normal delays of at most each factor: means of equally likely delays."""
    for most in delays:
        mean, deviation = (1 + most) / 2, (most - 1) / 6
        found = [run(bench, layers, 8, device, spread, costs=delayed(device, mean + at * deviation), policies=POLICIES[:1])
                 for at in (QUANTILES if most > 1 else (0.0,))]
        rates = {name: TOKENS * len(found) / sum(1 / one["rates"][name] for one in found) for name in ("even", POLICIES[0])}
        yield {"layers": layers, "device": device, "delay": f"{most:g}", "rates": rates, "gain": rates[POLICIES[0]] / rates["even"],
               "network": {name: sum(one["idle"][name]["network"] for one in found) / len(found) for name in ("even", "best")}}


def figure4(bench, layers, device, spread):
    """Packed into fewer GPUs behind the first event whose model fits the memory that the dense model fills on eight."""
    costs, even = f"{device}:1x8", even_cut(layers, 8)
    room = bench.rows(layers, 8, [0.0] * layers, costs, ["--rebalance", POLICIES[0]], even)["present"]["peak_bytes"]
    flags = ["--repack", ",".join(map(str, TARGETS)), "--rank-memory", str(room)]
    for target in TARGETS:
        seconds, gpu_steps, gpu_seconds, at, published, done = 0.0, 0, 0.0, -1, -1, 0
        for steps, sparsity in phases():
            rows = bench.rows(layers, 8, spread.of(layers, sparsity), costs, flags, even)
            fits = "refused" not in rows[str(target)] and rows[str(target)]["fits"]
            if fits and at < 0:
                at = done
            if rows["first-fit", target]["left"] <= target and published < 0:
                published = done
            gpus = target if at >= 0 else TARGETS[0]
            seconds += steps * rows[str(gpus)]["step_seconds"]
            gpu_seconds += gpus * steps * rows[str(gpus)]["step_seconds"]
            gpu_steps += gpus * steps
            done += steps
        rate, gpus = SAMPLES * TOKENS * STEPS / seconds, gpu_steps / STEPS
        yield {"layers": layers, "device": device, "target": target, "gpus": gpus, "rate": rate, "rate_per_gpu": rate / gpus,
               "per_gpu_second": SAMPLES * TOKENS * STEPS / gpu_seconds, "packed_at": at, "first_fit_at": published, "room": room}


def wider(bench, layers, gpus, device, table, factor):
    """How much more is gained if zeros spread as many times as wide."""
    spread = Spread(table, factor)
    own = spread.of(layers, FINAL)
    return {"layers": layers, "gpus": gpus, "device": device, "factor": factor, "least": min(own), "most": max(own),
            "gain": run(bench, layers, gpus, device, spread, NO_HEAD, policies=POLICIES[:1])["gain"]}


def results(bench, options):
    """All results, each with the name of its list."""
    table = json.loads(options.spread.read_text())["sparsities"]
    spread = Spread(table)
    first, largest = options.devices[0], max(options.gpus)
    for device in options.devices:
        for layers in options.layers:
            for gpus in options.gpus if device == first else [largest]:
                found = run(bench, layers, gpus, device, spread)
                if device == first:
                    bare = run(bench, layers, gpus, device, spread, NO_HEAD, policies=POLICIES[:1])
                    found["without_head"] = {name: bare[name] for name in ("gain", "gain_over_dense_cut", "gain_over_unpruned")}
                yield "table2", found
                if device == first and 1 in options.tables:
                    yield "memory", memory(bench, layers, gpus, device)
            if 1 in options.tables:
                yield "table1", price(bench, layers, device, spread)
    for layers in options.layers:
        for factor in options.wider:
            yield "wider", wider(bench, layers, largest, first, table, factor)
        if 3 in options.figures and layers in options.delayed:
            for row in figure3(bench, layers, first, spread, options.delays):
                yield "figure3", row
        if 4 in options.figures:
            for row in figure4(bench, layers, first, spread):
                yield "figure4", row


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--tool", type=pathlib.Path, help="dyna-plan; without it, that of the build folder")
    parser.add_argument("--translate", type=pathlib.Path, help="dyna-translate; without it, that of the build folder")
    parser.add_argument("--spread", type=pathlib.Path, default=HERE / "Inputs" / "spread.json")
    parser.add_argument("--layers", type=int, nargs="+", default=sorted({layers for layers, _ in tables.TABLE2}))
    parser.add_argument("--gpus", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--devices", nargs="+", default=DEVICES, help="the first one has all results, others those of the most GPUs")
    parser.add_argument("--wider", type=float, nargs="*", default=[2, 4], help="factors by which the spread is made wider")
    parser.add_argument("--delayed", type=int, nargs="*", default=[24, 56], help="layers of figure 3")
    parser.add_argument("--delays", type=float, nargs="+", default=DELAYS, help="of figure 3: how many times slower links are at most")
    parser.add_argument("--tables", type=int, nargs="*", default=[1], help="beside table 2")
    parser.add_argument("--figures", type=int, nargs="*", default=[3, 4])
    parser.add_argument("--out", type=pathlib.Path, help="page whose tables are replaced; the picture has its name and .svg")
    return parser.parse_args()


def main():
    options = parsed()
    tool = options.tool or options.build_dir / "bin" / "dyna-plan"
    translate = options.translate or options.build_dir / "bin" / "dyna-translate"
    lists = {name: [] for name in tables.LISTS}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.build_dir.resolve(), tool.resolve(), translate.resolve(), pathlib.Path(work))
        for name, row in results(bench, options):
            lists[name].append(row)
            print(json.dumps({"result": name, **row}), flush=True)
    if options.out:
        tables.write(options.out, lists)
        options.out.with_suffix(".svg").write_text(picture.draw(lists["table2"], lists["figure4"], tables.TABLE2))


if __name__ == "__main__":
    main()
