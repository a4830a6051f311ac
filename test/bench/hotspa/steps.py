"""Phases of HotSPa's evaluation: what `dyna-plan` is asked, and how rows, ranges and lengths are made."""

import dataclasses
import json
import math
import pathlib
import subprocess
import tempfile

K = 1024


@dataclasses.dataclass(frozen=True)
class Size:
    """LLaMA-like, vocabulary 30,592."""
    name: str
    layers: int
    width: int
    inner: int
    heads: int

    def config(self, positions):
        return {"model_type": "llama", "vocab_size": 30592, "max_position_embeddings": positions, "hidden_size": self.width,
                "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.heads,
                "intermediate_size": self.inner, "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False}


SIZES = {"7B": Size("7B", 32, 4096, 11008, 32), "13B": Size("13B", 40, 5120, 13824, 40), "32B": Size("32B", 60, 6656, 17920, 64)}
MODES = ("none", "selective", "full")


def degrees_text(degrees):
    dp, tp, pp = degrees
    return f"dp={dp},tp={tp},pp={pp}" + (",zero=1" if dp > 1 else "") + (",sp=1" if tp > 1 else "")


def costs_text(reach, call_seconds, devices):
    """A800 of 80 GB in nodes of eight; what is reached of the rate, and what a call takes before it begins, are fitted."""
    return (f'device {{ name: "a800-fitted" f64_flops: 9.7e12 f32_flops: 1.95e13 bf16_flops: 3.12e14 bytes_per_second: 2.039e12 '
            f'launch_seconds: {call_seconds:.9g} flops_reach: {reach:.9g} bytes_reach: 0.9 memory_bytes: 80000000000 }}\n'
            f'cluster {{ nodes: {max(1, devices // 8)} devices_per_node: 8 inside {{ latency_seconds: 5e-6 bytes_per_second: 2e11 }} '
            f'between {{ latency_seconds: 1.5e-5 bytes_per_second: 2.5e10 }} }}\n')


def pack(lengths, end):
    """Rows of `end` tokens, first fit decreasing: how many whole samples need."""
    rows = []
    for length in sorted(lengths, reverse=True):
        place = next((i for i, left in enumerate(rows) if left >= length), None)
        if place is None:
            rows.append(end - length)
        else:
            rows[place] -= length
    return len(rows)


def split(lengths, ends):
    """The lengths of each range that ends there."""
    begins = [0] + ends[:-1]
    return [[length for length in lengths if begin < length <= end] for begin, end in zip(begins, ends)]


def quantiles(lengths, count):
    """A step without luck: the middles of equal shares."""
    lengths = sorted(lengths)
    return [lengths[int((i + 0.5) * len(lengths) / count)] for i in range(count)]


class Player:
    """Asks dyna-plan, each question once."""

    def __init__(self, tool, size, devices):
        self.tool, self.size, self.devices = tool, size, devices
        self.folder = tempfile.TemporaryDirectory()
        self.known = {}
        self.reach, self.call_seconds = 0.5, 1e-3

    def ask(self, degrees, positions, lengths, words, tokens, modes):
        """The fastest row that fits the devices; None: none does."""
        key = (self.reach, self.call_seconds, degrees, positions, tuple(lengths), words, tokens, modes)
        if key not in self.known:
            self.known[key] = self._ask(degrees, positions, lengths, words, tokens, modes)
        return self.known[key]

    def run(self, positions, lengths, *flags):
        folder = pathlib.Path(self.folder.name)
        (folder / "model.json").write_text(json.dumps(self.size.config(positions)))
        if lengths:
            (folder / "lengths.txt").write_text("".join(f"{length}\n" for length in lengths))
            flags = ("--lengths", folder / "lengths.txt") + flags
        (folder / "cluster.costs").write_text(costs_text(self.reach, self.call_seconds, self.devices))
        done = subprocess.run([self.tool, folder / "model.json", "--costs", folder / "cluster.costs", "--json", *flags],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"dyna-plan {' '.join(map(str, flags))}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def switch(self, path):
        """Seconds of bf16 values from home, the last one, through the others, and of the gradients of each back home, as they are planned."""
        texts = [degrees_text(degrees) + ",order=pp+dp+tp" for degrees in path]
        home, guests = texts[-1], texts[:-1]
        return sum(self.way(*pair) for pair in list(zip([home] + guests, guests)) + [(guest, home) for guest in guests])

    def way(self, one, other):
        if (one, other) not in self.known:
            self.known[one, other] = self.run(4 * K, [], "--switch", f"{one} -> {other}")[0]["seconds"]
        return self.known[one, other]

    def search(self, lengths):
        return self.run(max(lengths), lengths, "--strategies", "search", "--tokens-per-batch", str(sum(lengths)))[0]

    def _ask(self, degrees, positions, lengths, words, tokens, modes):
        flags = ["--strategy", degrees_text(degrees), "--compare", words, "--tokens-per-batch", "200000000",
                 "--tokens-per-micro-batch", ",".join(map(str, tokens))]
        for mode in modes:
            flags += ["--recompute", mode]
        rows = self.run(positions, lengths, *flags)
        fitting = [row for row in rows if max(row["rank_peak_bytes"]) <= 80e9 and row["other_schedules"] == 0]
        return min(fitting, key=lambda row: row["seconds"]) if fitting else None

    def rows(self, degrees, end, count, positions=None):
        """Seconds of `count` full rows of `end` tokens, one a micro-batch, under 1F1B; between whole numbers of rows a mean.

        Of equal rows the time is a line in the rows of a replica, from as many on as there are stages."""
        if count <= 0:
            return 0.0
        whole = math.floor(count)
        if whole != count:
            share = count - whole
            return (1 - share) * self.rows(degrees, end, whole, positions) + share * self.rows(degrees, end, whole + 1, positions)
        dp, _, pp = degrees
        each = math.ceil(whole / dp)
        if each <= max(8, 2 * pp):
            return self._rows(degrees, end, whole)
        low, high = max(4, pp), max(8, 2 * pp)
        first, second = (self._rows(degrees, end, n * dp) for n in (low, high))
        return second + (each - high) * (second - first) / (high - low)

    def _rows(self, degrees, end, count):
        # What is not made again takes no time: the first mode that fits is the fastest.
        asked = (self.ask(degrees, end, [end] * count, "ragged+1f1b", (end,), (mode,)) for mode in MODES)
        row = next((row for row in asked if row), None)
        if row is None:
            raise RuntimeError(f"{degrees_text(degrees)}: rows of {end} tokens do not fit")
        return row["seconds"]

    def ours(self, degrees, lengths):
        """Seconds of ragged micro-batches in the adaptive schedule, recomputation chosen; None: does not fit."""
        if not lengths:
            return 0.0
        longest = max(lengths)
        sizes = tuple(sorted({max(longest, tokens) for tokens in (4 * K, 16 * K)}))
        row = self.ask(degrees, max(longest, 16 * K), sorted(lengths), "ragged+adaptive", sizes, ("auto",))
        return row["seconds"] if row else None
