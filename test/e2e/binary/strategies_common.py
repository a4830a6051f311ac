# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two small models under every strategy, and what their runs are held against.

A run of a strategy has the same losses, gradient norms, parameters and moments
as one rank that takes the same samples: `Against.compare` says how far they are
apart, in units of the tolerance.
"""

import array
import concurrent.futures
import functools
import itertools
import json
import operator
import pathlib
import random
import shutil
import struct
import subprocess
import typing

import common
import shared_binaries

STEPS = 5
TOKENS = 512
# The largest sample: so that the 64 tokens of one of eight replicas make at
# least two micro-batches. One of one replica takes four times as many.
POSITIONS = 32
FAMILIES = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 257, "n_positions": POSITIONS, "n_embd": 96, "n_layer": 8, "n_head": 12,
             "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0, "tie_word_embeddings": True},
    "llama": {"model_type": "llama", "vocab_size": 257, "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 8,
              "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6,
              "rope_theta": 10000.0, "max_position_embeddings": POSITIONS, "tie_word_embeddings": False},
}
# Tensor degrees whose ranks get whole heads, and whole or equally many times
# repeated key/value heads.
DEGREES = {"gpt2": (1, 2, 3, 4, 6), "llama": (1, 2, 4, 8)}
RECOMPUTE = ("none", "selective", "full")

TOLERANCE = 1e-10
FLOOR = 0.01

# Lengths in tokens at even steps of probability, of short questions and
# answers: most are short, a tenth is longer than the model's positions.
QUANTILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 15, 17, 20, 23, 27, 33, 42, 60, 120)


class Case(typing.NamedTuple):
    family: str
    dp: int
    tp: int
    pp: int
    zero: int
    sp: int
    recompute: str

    @property
    def ranks(self):
        return self.dp * self.tp * self.pp

    @property
    def strategy(self):
        text = f"dp={self.dp},tp={self.tp},pp={self.pp}"
        for key in ("zero", "sp"):
            text += f",{key}=1" if getattr(self, key) else ""
        return f"{text},recompute={self.recompute}"

    @property
    def label(self):
        return f"{self.family}-{self.strategy}".replace(",", "-").replace("=", "")

    @property
    def micro_batch(self):
        """Tokens, so that every replica has two micro-batches or more."""
        return max(POSITIONS, TOKENS // 4 // self.dp)

    def factors(self):
        return {"triple": (self.dp, self.tp, self.pp), "zero": self.zero, "sp": self.sp, "recompute": self.recompute,
                "family": self.family}

    def pairs(self):
        """Each degree meets every other choice, and all degrees meet each other."""
        own = {**{name: value for name, value in self.factors().items() if name != "triple"},
               "dp": self.dp, "tp": self.tp, "pp": self.pp}
        return {*itertools.combinations(own.items(), 2), ("triple", (self.dp, self.tp, self.pp))}


def all_cases(most=8):
    """Every strategy of up to `most` ranks."""
    cases = []
    for family, degrees in DEGREES.items():
        for tp, dp, pp in itertools.product(degrees, range(1, most + 1), range(1, most + 1)):
            if dp * tp * pp > most:
                continue
            for zero, sp, recompute in itertools.product(range(1 + (dp > 1)), range(1 + (tp > 1)), RECOMPUTE):
                cases.append(Case(family, dp, tp, pp, zero, sp, recompute))
    return cases


def cover_of_pairs(cases, seed=1):
    """Few cases in which every pair of factors occurs that occurs in any; each is the one that adds most."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    missing = set().union(*(case.pairs() for case in order))
    cover = []
    while missing:
        best = max(order, key=lambda case: len(case.pairs() & missing))
        missing -= best.pairs()
        cover.append(best)
    return cover


def corpus(folder):
    """Documents of random letters, as long as the quantiles say."""
    generator = random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(120):
        place = generator.random() * (len(QUANTILES) - 1)
        low, high = QUANTILES[int(place)], QUANTILES[int(place) + 1]
        length = round(low + (high - low) * (place - int(place)))
        text = "".join(generator.choice("etaoin shrdlu") for _ in range(length))
        (folder / f"document-{i:03}.txt").write_text(text)
    return folder


def degree_list(degrees):
    """Of dynac: both forms of every tensor degree."""
    return "; ".join(f"t{tp}s{sp}: tp={tp},sp={sp}" for tp in degrees if tp > 1 for sp in (0, 1))


@functools.lru_cache(maxsize=None)
def program(family, compute_type="f64", degrees=None, flags=()):
    """The binary of a family, with all its tensor degrees unless told which."""
    folder = common.WORK / "strategies"
    folder.mkdir(parents=True, exist_ok=True)
    degrees = DEGREES[family] if degrees is None else degrees
    stem = folder / "-".join([family, compute_type, *map(str, degrees), *(flag.strip("-") for flag in flags)])
    config = stem.with_suffix(".json")
    config.write_text(json.dumps(FAMILIES[family]))
    module = stem.with_suffix(".mlir")
    common.succeed([common.DYNA_TRANSLATE, "--from-config", config, "-o", module])
    binary = stem.with_suffix(".bin")
    strategies = degree_list(degrees)
    return shared_binaries.compile_binary(common.DYNAC, module, binary,
                                          [f"--compute-type={compute_type}", "--isa=avx2", *flags,
                                           *([f"--strategies={strategies}"] if strategies else [])])


def command(binary, data, case, *flags, steps=STEPS):
    return [binary, "--data", data, f"--steps={steps}", f"--schedule-steps={STEPS}", "--warmup=1", "--lr=1e-3",
            "--clip=0.5", "--seed=3", f"--tokens-per-batch={TOKENS}", f"--tokens-per-micro-batch={case.micro_batch}",
            f"--strategy={case.strategy}", "--threads=1", "--no-progress", *flags]


def train(binary, data, case, stem, *flags, launcher=(), steps=STEPS):
    """One run; its metrics are `stem`.jsonl, its checkpoints `stem`/step-N."""
    common.succeed([*launcher, *command(binary, data, case, f"--metrics={stem}.jsonl", f"--save={stem}", *flags,
                                        steps=steps)])


def arrays(path):
    """The f64 tensors of a safetensors file."""
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F64":
            raise AssertionError(f"{name} is of {entry['dtype']}")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = array.array("d", content[begin:end])
    return tensors


def largest(values):
    return max(map(abs, values), default=0.0)


def part_of(name):
    """Moments are smaller than parameters, so each kind has its own floor."""
    return name[-2:] if name.endswith((".m", ".v")) else "parameter"


class Against:
    """A run of one rank, which others are compared with."""

    def __init__(self, stem, step=STEPS):
        self.stem, self.step = stem, step
        self.tensors = self.read(stem)
        self.sizes = {name: largest(values) for name, values in self.tensors.items()}
        self.floors = {}
        for name, size in self.sizes.items():
            part = part_of(name)
            self.floors[part] = max(self.floors.get(part, 0.0), size)

    def read(self, stem):
        step = pathlib.Path(stem) / f"step-{self.step}"
        return {**arrays(step / "model.safetensors"), **arrays(step / "optimizer.safetensors")}

    def compare(self, stem):
        """The largest relative difference of every kind, and where it is."""
        found = {}

        def note(kind, where, difference):
            # Not `max`: a NaN must not hide behind a number.
            if kind not in found or not difference <= found[kind][0]:
                found[kind] = (difference, where)

        # Other lines tell of changes between steps.
        ours, theirs = ([line for line in common.lines_of(f"{one}.jsonl") if "loss" in line] for one in (self.stem, stem))
        if len(ours) != len(theirs):
            raise AssertionError(f"{len(theirs)} steps, expected {len(ours)}")
        for a, b in zip(ours, theirs):
            for kind in ("loss", "gradient_norm"):
                note(kind, f"step {a['step']}", abs(a[kind] - b[kind]) / max(abs(a[kind]), FLOOR))
            for kind in ("tokens", "targets"):
                if a[kind] != b[kind]:
                    raise AssertionError(f"step {a['step']}: {b[kind]} {kind}, expected {a[kind]}")
        others = self.read(stem)
        if set(others) != set(self.tensors):
            raise AssertionError(f"other tensors: {sorted(set(others) ^ set(self.tensors))}")
        for name, values in self.tensors.items():
            if len(values) != len(others[name]):
                raise AssertionError(f"{name}: {len(others[name])} elements, expected {len(values)}")
            part = part_of(name)
            size = max(self.sizes[name], FLOOR * min(1.0, self.floors[part]))
            difference = largest(map(operator.sub, values, others[name]))
            # A NaN anywhere makes the sum one; `largest` may overlook it.
            if sum(others[name]) != sum(others[name]):
                difference = float("nan")
            note(part, name, difference / size)
        return found


def two_at_a_time(function, items):
    """The results in order; runs keep two cores busy between them."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


class StrategiesTest(common.BinaryTest):
    """Runs cases and compares them; ends with the largest differences."""

    errors = {}

    @classmethod
    def setUpClass(cls):
        cls.corpus = corpus(common.WORK / "corpus")
        cls.runs = common.WORK / "runs"
        shutil.rmtree(cls.runs, ignore_errors=True)
        cls.runs.mkdir(parents=True)
        cls.references = {}

    @classmethod
    def tearDownClass(cls):
        for (family, kind), (difference, where) in sorted(cls.errors.items()):
            print(f"largest difference, {family}, {kind}: {difference:.2e} ({where})")

    @classmethod
    def reference(cls, family):
        if family not in cls.references:
            stem = cls.runs / f"{family}-one"
            train(program(family), cls.corpus, Case(family, 1, 1, 1, 0, 0, "none"), stem)
            cls.references[family] = Against(stem)
        return cls.references[family]

    def run_and_compare(self, case, launcher=(), flags=(), binary=None):
        """What is wrong with a case, or None."""
        stem = self.runs / case.label
        try:
            train(binary or program(case.family), self.corpus, case, stem, *flags, launcher=launcher)
            return self.differences(case, stem)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            return f"{case.family} under {case.strategy}: {error}"
        finally:
            shutil.rmtree(stem, ignore_errors=True)

    def differences(self, case, stem, first=0):
        """The same of a run that is over, whose steps from `first` on were the case's."""
        batches = min(line["micro_batches"] for line in common.lines_of(f"{stem}.jsonl")[first:])
        if batches < 2 * case.dp:
            return f"{case.label}: only {batches} micro-batches"
        for kind, (difference, where) in self.references[case.family].compare(stem).items():
            if not difference <= self.errors.get((case.family, kind), (0.0, ""))[0]:
                self.errors[case.family, kind] = (difference, f"{where} under {case.strategy}")
            if not difference <= TOLERANCE:
                return f"{case.family} under {case.strategy}: {kind} of {where} differs by {difference:.2e}"
        return None

    def assert_equal_numbers(self, cases):
        families = sorted({case.family for case in cases})
        two_at_a_time(self.reference, families)
        wrong = [text for text in two_at_a_time(self.run_and_compare, cases) if text]
        print(f"{len(cases)} runs of {STEPS} steps")
        self.assertFalse(wrong, "\n".join(wrong[:20]))
