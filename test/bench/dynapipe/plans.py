"""Plans of DynaPipe's evaluation: what `dyna-plan` is asked, what it answers, and what it has answered before."""

import csv
import dataclasses
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

MEMORY = 40_000_000_000  # of an A100
SEED = 1


@dataclasses.dataclass(frozen=True)
class Size:
    """A row of table 1; heads have 128 channels."""
    name: str
    devices: int
    layers: int
    width: int
    heads: int
    inner: int

    def config(self, positions):
        config = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": positions, "n_embd": self.width, "n_layer": self.layers,
                  "n_head": self.heads, "n_inner": self.inner, "activation_function": "gelu_new", "resid_pdrop": 0.0,
                  "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        if self.width != 128 * self.heads:
            config["head_dim"] = 128
        return config

    def cluster(self):
        return f"a100-40g:{max(1, self.devices // 8)}x{min(self.devices, 8)}"


@dataclasses.dataclass(frozen=True)
class Side:
    """A way of planning, and what it is searched over beside degrees."""
    name: str
    words: str
    recompute: tuple
    rows: tuple = ()  # a micro-batch has so many rows of the maximum length ...
    tokens: tuple = ()  # ... or so many tokens, and room for one sample

    def sizes(self, positions):
        if self.rows:
            return [count * positions for count in self.rows if count == 1 or count * positions <= 8192]
        return sorted({max(count, positions) for count in self.tokens})

    def holds(self, row):
        """A fixed schedule that gave way to another one did not fit."""
        fixed = "1f1b" in self.words and "pp=1" not in row["degrees"].split(",")
        return row["peak_bytes"] <= MEMORY and (row["other_schedules"] == 0 or not fixed)


MODES = ("none", "selective", "full")
ROWS = (1, 2, 4, 8, 16)
PACKED = Side("packed", "packed+1f1b", MODES, rows=ROWS)
MASKED = Side("packed-masked", "packed-masked+1f1b", MODES, rows=ROWS)
PADDED = Side("padded, adaptive", "padded+adaptive", ("auto",), tokens=(4096,))
RAGGED_1F1B = Side("ragged, 1F1B", "ragged+1f1b", MODES, tokens=(4096,))
RAGGED = Side("ragged, adaptive", "ragged+adaptive", ("auto",), tokens=(4096,))

KEPT = ("plan", "steps", "samples", "tokens", "micro_batches", "largest_micro_batch", "padding_share", "seconds", "bound_seconds",
        "load_bound_seconds", "path_bound_seconds", "tokens_per_second", "bubble", "other_schedules", "plan_seconds",
        "longest_plan_seconds")


def parse(line):
    """A row of dyna-plan; its name says degrees (of a search), words, and what was searched."""
    row = json.loads(line)
    kept = {key: row[key] for key in KEPT if key in row}
    kept["peak_bytes"] = max(row["rank_peak_bytes"])
    for word in row["plan"].split(" "):
        if word.startswith("dp="):
            kept["degrees"] = word
        elif word.startswith("tokens="):
            kept["size"] = int(word[len("tokens="):])
        elif word.startswith("recompute="):
            kept["recompute"] = word[len("recompute="):]
        else:
            kept["words"] = word
    return kept


class Plans:
    def __init__(self, build, lengths, columns, folder, tool=None):
        self.tool = pathlib.Path(shutil.which(tool) if tool else build / "bin" / "dyna-plan")
        self.folder = folder
        self.store = build / "dynapipe.jsonl"
        self.mark = hashlib.sha256(self.tool.read_bytes()).hexdigest()[:16]
        self.known = {}
        if self.store.exists():
            for line in self.store.read_text().splitlines():
                entry = json.loads(line)
                self.known[entry["key"]] = entry
        self.asked = self.answered = 0
        self.lengths = self.shuffled(lengths, columns)

    def shuffled(self, path, columns):
        """Samples of an epoch in a random order, which is always the same: the first steps are a sample of all."""
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.columns = columns
        self.samples = [[int(row[column]) for column in columns] for row in rows]
        self.samples = [sample for sample in self.samples if sum(sample) > 0]
        random.Random(SEED).shuffle(self.samples)
        return self.write("lengths.txt", "".join(f"{sum(sample)}\n" for sample in self.samples))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def steps_of_epoch(self, positions, batch):
        steps, tokens = 0, batch + 1
        for sample in self.samples:
            count = min(sum(sample), positions)
            if tokens + count > batch:
                steps, tokens = steps + 1, 0
            tokens += count
        return steps

    def ask(self, config, *flags, lengths=None):
        """Rows, or none with a reason; asked once for a version of the tool."""
        text = json.dumps(config)
        words = [str(flag) for flag in flags]
        given = self.lengths if lengths is None else lengths
        content = pathlib.Path(given).read_bytes() if lengths is None else str(lengths).encode()
        key = hashlib.sha256("\0".join([self.mark, text, hashlib.sha256(content).hexdigest(), *words]).encode()).hexdigest()
        self.asked += 1
        if key not in self.known:
            begin = time.monotonic()
            model = self.write("config.json", text)
            done = subprocess.run([self.tool, model, "--lengths", given, "--json", *words], capture_output=True, text=True)
            # A search also lists what does not fit, with the reason instead of numbers.
            fitting = [line for line in done.stdout.splitlines() if json.loads(line).get("fits", True)]
            entry = {"key": key, "rows": [parse(line) for line in fitting]}
            if done.returncode != 0:
                entry["refused"] = done.stderr.strip().splitlines()[-1]
            self.known[key] = entry
            self.answered += 1
            with open(self.store, "a") as file:
                file.write(json.dumps(entry) + "\n")
            print(f"{time.strftime('%H:%M:%S')} {self.asked}: {time.monotonic() - begin:.1f} s, {len(entry['rows'])} rows: {' '.join(words)}"
                  f"{' ' + entry['refused'] if 'refused' in entry else ''}", file=sys.stderr, flush=True)
        return self.known[key]["rows"]

    def ask_for_trace(self, config, path, *flags, lengths):
        words = [str(word) for word in flags]
        subprocess.run([self.tool, self.write("config.json", json.dumps(config)), "--lengths", str(lengths), "--trace", path, "--json", *words],
                       capture_output=True, text=True, check=True)

    def flags(self, size, side, positions, batch, attention):
        flags = ["--cluster", size.cluster(), "--attention", attention, "--tokens-per-batch", batch, "--compare", side.words]
        sizes = side.sizes(positions)
        flags += ["--tokens-per-micro-batch", ",".join(str(tokens) for tokens in sizes)]
        for mode in side.recompute:
            flags += ["--recompute", mode]
        return flags

    def search(self, size, side, positions, batch, attention, steps, degrees=None):
        """All degrees (or the given ones), sizes and modes on the first steps, the fastest of those that fit first."""
        rows = self.ask(size.config(positions), *self.flags(size, side, positions, batch, attention), "--strategy", degrees or "search",
                        "--steps", steps)
        sizes = side.sizes(positions)
        rows = [{"size": sizes[0], "recompute": side.recompute[0], "degrees": degrees, **row} for row in rows]
        return sorted((row for row in rows if side.holds(row)), key=lambda row: -row["tokens_per_second"])

    def play(self, size, side, positions, batch, attention, steps, row, *more):
        """One of them, on more steps."""
        rows = self.ask(size.config(positions), "--cluster", size.cluster(), "--attention", attention, "--tokens-per-batch", batch, "--compare",
                        side.words, "--tokens-per-micro-batch", row["size"], "--recompute", row["recompute"], "--strategy", row["degrees"],
                        "--steps", steps, "--plan-times", *more)
        rows = [{**one, **{key: row[key] for key in ("degrees", "size", "recompute")}} for one in rows]
        rows = [one for one in rows if side.holds(one)]
        return rows[0] if rows else None

    def best(self, size, side, positions, batch, attention, search_steps, steps, degrees=None, candidates=3):
        """The fastest of the best candidates of a search, on more steps; none where nothing fits."""
        found = self.search(size, side, positions, batch, attention, search_steps, degrees)
        best, played = None, 0
        for row in found:
            one = self.play(size, side, positions, batch, attention, steps, row)
            if not one:
                continue  # longer samples came
            if not best or one["tokens_per_second"] > best["tokens_per_second"]:
                best = one
            played += 1
            if played == candidates:
                break
        return best
