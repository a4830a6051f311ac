#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks share the work: what each computes, holds and sends is what docs/strategies-counts.md says.

That the numbers are right says nothing of it: every rank could do everything.
The formulas here are written from the models' shapes and the strategy alone.
"""

import collections
import itertools
import json
import os
import pathlib
import re

import common
import strategies_common as strategies
from strategies_common import Case

F64 = 8
LENGTH = 32  # of every sample, so that replicas get the same work
ROWS = 64  # of every micro-batch
VOCABULARY, WIDTH, BLOCKS = 257, 96, 8
LAYERS = BLOCKS + 2  # with embedding and head
CUTS = {1: (10,), 2: (4, 6), 4: (3, 2, 2, 3)}
INNER = {"gpt2": 384, "llama": 256}
HEADS = {"gpt2": 12, "llama": 8}
KEY_VALUE = {"gpt2": 96, "llama": 24}  # features of all key/value heads
KEY_VALUE_HEADS = {"gpt2": 12, "llama": 2}

# How the ranks of a tensor axis have a parameter: whole; its rows, its columns
# or the vocabulary dealt to them; its rows dealt to as many ranks as there are
# key/value heads.
WHOLE, SPLIT_ROWS, SPLIT_COLUMNS, SPLIT_VOCABULARY, SPLIT_KEY_VALUE = range(5)
Parameter = collections.namedtuple("Parameter", "rows columns split")
Held = collections.namedtuple("Held", "rows columns holders index call")


def part(count, ranks, index):
    """Rows of `count` that belong to a rank."""
    size = -(-count // ranks)
    return max(0, min(count, (index + 1) * size) - min(count, index * size))


def round_rows(rows):
    """As all memory formulas round them."""
    return -(-rows // 32) * 32


def block_parameters(family):
    w, inner, kv = WIDTH, INNER[family], KEY_VALUE[family]
    products = [(w, w, SPLIT_ROWS), (kv, w, SPLIT_KEY_VALUE), (kv, w, SPLIT_KEY_VALUE), (w, w, SPLIT_COLUMNS),
                (inner, w, SPLIT_ROWS), (w, inner, SPLIT_COLUMNS)]
    if family == "llama":
        rest = [(inner, w, SPLIT_ROWS), (w, 1, WHOLE), (w, 1, WHOLE)]  # the gate; two norms
    else:
        # A bias is dealt like the rows of its weight; two norms with biases.
        rest = [(rows, 1, split if split != SPLIT_COLUMNS else WHOLE) for rows, _, split in products]
        rest += [(w, 1, WHOLE)] * 4
    return [Parameter(*shape) for shape in products + rest]


class Model:
    """What one rank has and does in a step."""

    def __init__(self, case, rank, micro_batches, slices=1):
        """With `slices` each sample passes in as many equal parts, each a micro-batch."""
        self.case, self.slices = case, slices
        self.family, self.t = case.family, case.tp
        self.replica, rest = divmod(rank, case.pp * case.tp)
        self.stage, self.shard = divmod(rest, case.tp)
        self.n = micro_batches // case.dp
        self.all = micro_batches
        cut = CUTS[case.pp]
        first = sum(cut[:self.stage])
        layers = range(first, first + cut[self.stage])
        self.embeds, self.ends = 0 in layers, LAYERS - 1 in layers
        self.blocks = len(layers) - self.embeds - self.ends
        self.held = [self.hold(*found) for found in self.parameters()]

    def parameters(self):
        """Parameter, the stages that have it, the layer that updates it here."""
        table = Parameter(VOCABULARY, WIDTH, SPLIT_VOCABULARY)
        here, first, last = [self.stage], 0, self.case.pp - 1
        found = [(p, here, block) for block in range(self.blocks) for p in block_parameters(self.family)]
        if self.family == "gpt2":
            if self.embeds:
                found.append((Parameter(LENGTH, WIDTH, WHOLE), here, "embedding"))  # positions
            if self.ends:
                found += [(Parameter(WIDTH, 1, WHOLE), here, "head")] * 2
            if self.embeds or self.ends:
                found.append((table, sorted({first, last}), "embedding" if self.embeds else "head"))  # tied
        else:
            found += [(table, here, "embedding")] * self.embeds
            if self.ends:
                found += [(table, here, "head"), (Parameter(WIDTH, 1, WHOLE), here, "head")]
        return found

    def hold(self, p, stages, layer):
        """This rank's part, and the ranks that add to its gradient."""
        t, rows, columns, beside = self.t, p.rows, p.columns, [self.shard]
        if p.split == SPLIT_ROWS:
            rows //= t
        elif p.split == SPLIT_COLUMNS:
            columns //= t
        elif p.split == SPLIT_VOCABULARY:
            rows = part(rows, t, self.shard)
        elif p.split == SPLIT_KEY_VALUE:
            owners = min(t, KEY_VALUE_HEADS[self.family])
            rows //= owners
            same = t // owners
            beside = [self.shard // same * same + i for i in range(same)]
        elif self.case.sp:
            beside = list(range(t))  # each has seen a part of the tokens
        holders = [(r, s, j) for r in range(self.case.dp) for s in stages for j in beside]
        call = (layer, *holders) if len(stages) == 1 else ("on several stages", *holders)
        return Held(rows, columns, len(holders), holders.index((self.replica, self.stage, self.shard)), call)

    def updated(self, held):
        return part(held.rows, held.holders, held.index) if self.case.zero else held.rows

    # Memory.

    def parameter_bytes(self):
        return F64 * sum(p.rows * p.columns for p in self.held)

    def moment_bytes(self):
        return F64 * sum(self.updated(p) * p.columns for p in self.held)

    def kept_bytes(self):
        """The most at one time, under 1F1B. What is split over heads or inner features counts 1/t, what lies between, 1/t
        only with sp."""
        between = WIDTH // self.t if self.case.sp else WIDTH
        inner, heads = INNER[self.family] // self.t, HEADS[self.family] // self.t
        kv = KEY_VALUE[self.family] // min(self.t, KEY_VALUE_HEADS[self.family])
        products = 2 * WIDTH // self.t + 2 * kv + heads + between  # query, output; key, value; log-sums; residual
        products += inner * (2 if self.family == "llama" else 1)
        elementwise = 2 * between + inner  # both norms; the activation
        block = between + {"none": products + elementwise, "selective": products, "full": 0}[self.case.recompute]
        numbers = self.blocks * block
        if self.ends:
            numbers += 2 * between  # input; its gradient, made in the forward
        stages = self.case.pp
        kept = self.in_flight() * (F64 * numbers + (4 if self.embeds else 0))
        if self.stage > 0:
            kept += F64 * block  # of the first layer, for the message that is awaited
        if self.stage < stages - 1:
            kept += 2 * F64 * between  # a message on its way, and the next one
        return kept * (ROWS if self.slices == 1 else round_rows(LENGTH // self.slices))

    def in_flight(self):
        """Micro-batches, or slices, that are kept at one time under 1F1B."""
        count = self.n if self.slices == 1 else self.n * ROWS // LENGTH * self.slices
        return min(self.case.pp - self.stage - 1 + self.slices, count)

    def store_bytes(self):
        """The most in stores at one time: when the first slice of a sample runs backward, whose sums are there too. In a
        pipeline the next sample has begun."""
        if self.slices == 1:
            return 0
        heads = KEY_VALUE_HEADS[self.family] // min(self.t, KEY_VALUE_HEADS[self.family])
        features = KEY_VALUE[self.family] // KEY_VALUE_HEADS[self.family]
        stores = 1 + (-(-(self.in_flight() - 1) // self.slices) if self.case.pp > 1 else 0)
        numbers = 2 * heads * (stores * features + -(-features // 16) * 16)
        return F64 * self.blocks * round_rows(LENGTH) * numbers

    # Work.

    def matrix_flops(self):
        t, full = self.t, self.case.recompute == "full"
        kv = KEY_VALUE[self.family] // min(t, KEY_VALUE_HEADS[self.family])
        elements = 2 * WIDTH * WIDTH // t + 2 * WIDTH * kv + (3 if self.family == "llama" else 2) * WIDTH * INNER[self.family] // t
        tokens = self.n * ROWS
        pairs = self.n * ROWS // LENGTH * (LENGTH * (LENGTH + 1) // 2)
        products, attention = 2 * elements * tokens, 2 * WIDTH // t * pairs
        # Attention has two products; backward computes the scores once more beside twice that.
        block = 3 * products + (2 + 5) * attention
        if full:  # the last product, down, is not needed again
            block += products - 2 * WIDTH * INNER[self.family] // t * tokens + 2 * attention
        head = 2 * WIDTH * part(VOCABULARY, t, self.shard) * tokens if self.ends else 0
        return self.blocks * block + 3 * head

    # Exchanges.

    def exchanges(self):
        """{kind: [count, bytes that leave this rank]}"""
        found = {kind: [0, 0] for kind in ("messages", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")}

        def add(kind, times, sent):
            found[kind][0] += times
            found[kind][1] += times * sent

        def reduce_all(times, numbers, size, index):
            own = part(numbers, size, index)
            add("all_reduce", times, F64 * (numbers - own + (size - 1) * own))

        def scatter(times, rows, columns, size, index):
            add("reduce_scatter", times, F64 * columns * (rows - part(rows, size, index)))

        def gather(times, rows, columns, size, index):
            add("all_gather", times, F64 * columns * (size - 1) * part(rows, size, index))

        case, n, t = self.case, self.n, self.t
        full = case.recompute == "full"
        if t > 1:
            activation = (ROWS, WIDTH, t, self.shard)
            if case.sp:
                # Of a block forward 2, backward 2 and what is gathered again 2, recomputed 2.
                gather(n * (self.blocks * (6 + 2 * full) + self.embeds + self.ends), *activation)
                scatter(n * (self.blocks * (4 + full) + self.embeds + self.ends), *activation)
            else:
                reduce_all(n * (self.blocks * (4 + full) + self.embeds + self.ends), ROWS * WIDTH, t, self.shard)
            if self.ends:
                reduce_all(n, ROWS, t, self.shard)  # largest logits
                reduce_all(n, 2 * ROWS, t, self.shard)  # sums of exponentials, targets' logits
        message = F64 * WIDTH * (part(ROWS, t, self.shard) if case.sp else ROWS)
        add("messages", n * ((self.stage < case.pp - 1) + (self.stage > 0)), message)
        for p in self.held:
            if p.holders == 1:
                continue
            if case.zero:
                scatter(1, p.rows, p.columns, p.holders, p.index)
                gather(1, p.rows, p.columns, p.holders, p.index)
            else:
                reduce_all(1, p.rows * p.columns, p.holders, p.index)
        if case.ranks > 1:
            rank = (self.replica * case.pp + self.stage) * t + self.shard
            reduce_all(1, LAYERS, case.ranks, rank)  # squared norms
            reduce_all(1, self.all + 7 * case.ranks + LAYERS, case.ranks, rank)  # losses; RankUse of every rank; seconds of layers
        return found

    def collective_calls(self):
        """Of the four gathers of a block's backward with sp, two and two go as one; so do a layer's parameters that the
        same ranks hold."""
        kinds = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
        fused = 2 * self.n * self.blocks if self.case.sp and self.t > 1 else 0
        shared = [p.call for p in self.held if p.holders > 1]
        fused += (len(shared) - len(set(shared))) * (2 if self.case.zero else 1)
        return sum(count for kind, (count, _) in self.exchanges().items() if kind in kinds) - fused


CASES = [Case("gpt2", *triple, zero, sp, recompute)
         for triple, zero, sp, recompute in (
             ((1, 1, 1), 0, 0, "none"), ((1, 1, 1), 0, 0, "selective"), ((1, 1, 1), 0, 0, "full"),
             ((2, 1, 1), 0, 0, "none"), ((2, 1, 1), 1, 0, "none"), ((4, 1, 1), 1, 0, "full"),
             ((1, 2, 1), 0, 0, "none"), ((1, 2, 1), 0, 1, "none"), ((1, 4, 1), 0, 1, "full"), ((1, 4, 1), 0, 0, "full"),
             ((1, 2, 1), 0, 1, "selective"), ((1, 1, 2), 0, 0, "none"), ((1, 1, 4), 0, 0, "full"),
             ((2, 2, 2), 0, 0, "none"), ((2, 2, 2), 1, 1, "none"), ((2, 2, 2), 1, 1, "full"), ((1, 4, 2), 0, 1, "none"))]
CASES += [Case("llama", *triple, zero, sp, recompute)
          for triple, zero, sp, recompute in (
              ((1, 1, 1), 0, 0, "none"), ((2, 1, 1), 1, 0, "none"), ((1, 2, 1), 0, 1, "none"), ((1, 4, 1), 0, 0, "none"),
              ((1, 8, 1), 0, 1, "selective"), ((1, 8, 1), 0, 0, "full"), ((2, 4, 1), 1, 1, "full"), ((2, 4, 1), 0, 0, "none"),
              ((2, 2, 2), 1, 0, "selective"), ((1, 2, 4), 0, 1, "none"), ((2, 1, 4), 1, 0, "none"))]
SLICED = [Case("gpt2", 1, 1, 2, 0, 0, "none"), Case("gpt2", 1, 1, 4, 0, 0, "full"), Case("llama", 1, 2, 2, 0, 1, "selective"),
          Case("llama", 2, 1, 1, 1, 0, "none")]


class CountsTest(strategies.StrategiesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.even = common.WORK / "even"
        cls.even.mkdir(exist_ok=True)
        for i in range(64):
            (cls.even / f"document-{i:02}.txt").write_text(chr(97 + i % 26) * LENGTH)

    @staticmethod
    def program(family):
        return strategies.program(family)

    def counts(self, case, *flags, micro_batches=strategies.TOKENS // ROWS):
        path, metrics = (self.folder / f"{case.label}{end}" for end in (".counts", ".jsonl"))
        cut = "+".join(map(str, CUTS[case.pp]))
        common.succeed(strategies.command(self.program(case.family), self.even, case, f"--counts={path}",
                                          f"--metrics={metrics}", f"--strategy={case.strategy},layers={cut}",
                                          f"--tokens-per-micro-batch={ROWS}", "--micro-batches=tokens", "--pipeline=1f1b",
                                          *flags, steps=1))
        step, = common.lines_of(metrics)
        self.assertEqual((step["tokens"], step["targets"]), (strategies.TOKENS, strategies.TOKENS))
        self.assertEqual(step["micro_batches"], micro_batches)
        return json.loads(path.read_text())["ranks"]

    def test_counts_are_those_of_the_formulas(self):
        strategies.two_at_a_time(self.program, strategies.FAMILIES)
        for case in CASES:
            with self.subTest(case=case.label):
                ranks = self.counts(case)
                self.assertEqual([rank["rank"] for rank in ranks], list(range(case.ranks)))
                for rank in ranks:
                    model = Model(case, rank["rank"], strategies.TOKENS // ROWS)
                    expected = {"rank": rank["rank"], "master_bytes": model.parameter_bytes(), "copy_bytes": 0,
                                "gradient_bytes": model.parameter_bytes(), "first_moment_bytes": model.moment_bytes(),
                                "second_moment_bytes": model.moment_bytes(), "kept_bytes": model.kept_bytes(), "store_bytes": 0,
                                "matrix_flops": model.matrix_flops(), "formula_flops": model.matrix_flops(),
                                "collective_calls": model.collective_calls(),
                                **{kind: {"count": count, "bytes": sent}
                                   for kind, (count, sent) in model.exchanges().items()}}
                    self.assertEqual(rank, expected)

    def test_slices_keep_what_the_formulas_say(self):
        """Stores of keys and sums of their gradients beside; flops and bytes of messages are those of whole samples."""
        strategies.two_at_a_time(self.program, strategies.FAMILIES)
        for case, (slices, split) in itertools.product(SLICED, ((2, True), (4, False))):
            with self.subTest(case=case.label, slices=slices, split=split):
                flags = [f"--slices={slices * ROWS // LENGTH}", *(["--split-backward"] if split else [])]
                for rank in self.counts(case, *flags, micro_batches=slices * strategies.TOKENS // LENGTH):
                    model = Model(case, rank["rank"], strategies.TOKENS // ROWS, slices)
                    expected = {"kept_bytes": model.kept_bytes(), "store_bytes": model.store_bytes(),
                                "matrix_flops": model.matrix_flops(), "formula_flops": model.matrix_flops()}
                    self.assertEqual({key: rank[key] for key in expected}, expected)
                    self.assertEqual(rank["messages"]["bytes"], model.exchanges()["messages"][1])

    def test_the_trace_shows_exchanges_inside_layers(self):
        """Of tp=2, all-reduces of layer functions are slices within those of the instructions that call them."""
        case = Case("gpt2", 1, 2, 1, 0, 0, "none")
        trace = self.folder / "exchanges.trace"
        ranks = self.counts(case, f"--trace={trace}")
        events = [event for event in common.trace_events(trace) if event["ph"] == "X"]
        for rank in ranks:
            model = Model(case, rank["rank"], strategies.TOKENS // ROWS)
            own = [event for event in events if event["pid"] == rank["rank"]]
            inner = [event for event in own if event["cat"] == "exchange" and event["name"] == "all_reduce"]
            # All but those of the plan: norms and losses, and gradients that several ranks have.
            plan = 2 + sum(p.holders > 1 for p in model.held)
            self.assertEqual(len(inner), rank["all_reduce"]["count"] - plan)
            self.assertGreater(len(inner), 0)
            outer = [event for event in own if event["name"] in ("FORWARD", "BACKWARD")]
            for event in inner:
                around = [o for o in outer if o["ts"] <= event["ts"] and
                          event["ts"] + event["dur"] <= o["ts"] + o["dur"]]
                self.assertEqual(len(around), 1, event)
                self.assertEqual(event["args"]["layer"], around[0]["args"]["layer"])

    def test_ranks_of_a_step_together_do_it_once(self):
        whole, = self.counts(Case("gpt2", 1, 1, 1, 0, 0, "none"))
        for case in (Case("gpt2", 2, 1, 2, 0, 0, "none"), Case("gpt2", 4, 1, 1, 1, 0, "none")):
            with self.subTest(case=case.label):
                ranks = self.counts(case)
                self.assertEqual(sum(rank["matrix_flops"] for rank in ranks), whole["matrix_flops"])
        # What ZeRO deals, the ranks have once between them.
        self.assertEqual(sum(rank["first_moment_bytes"] for rank in ranks), whole["first_moment_bytes"])


class RandomModelsTest(strategies.StrategiesTest):
    """What kernels count is what the manifest states, whatever the layers: parts of them stay whole at a tensor degree."""

    MODELS = 5
    REFUSALS = "tensor-parallel ranks cannot share evenly|choose a tensor degree that divides|must divide them|split in another way|" \
               "tied parameters are split alike"

    def modules(self):
        """The first random modules that can be split over two ranks."""
        maker, found = pathlib.Path(os.environ["DYNA_BUILD"]) / "bin" / "dyna-random-module", 0
        for seed in itertools.count(1):
            text = common.succeed([maker, f"--seed={seed}"])
            module = self.folder / f"{seed}.mlir"
            module.write_text(re.sub(r"ignore_index = -?\d+", "ignore_index = -1", text))
            done = common.run([common.DYNA_OPT, module, "--dyna-differentiate", "--dyna-distribute=strategy=tp=2,sp=1", "-o", os.devnull])
            if done.returncode != 0:
                self.assertRegex(done.stderr, self.REFUSALS)
                continue
            yield module
            found += 1
            if found == self.MODELS:
                return

    def test_counted_work_is_stated_work(self):
        lengths, counts = self.folder / "lengths.txt", self.folder / "counts.json"
        # Parts of tokens that are not equal, and of one token: of which one rank has none.
        lengths.write_text("\n".join(map(str, (7, 1, 12, 24, 5, 3, 17, 2))) + "\n")
        parts = 0
        for module in self.modules():
            program = module.with_suffix(".bin")
            common.succeed([common.DYNAC, module, "-o", program, "--isa=avx2", "-O0", "--strategies=t: tp=2; s: tp=2,sp=1"])
            split = [kind for degree in common.described(program)["degrees"] for kind in degree["kinds"]
                     if any(role.get("flops_per_part_token", 0) for role in kind["roles"].values())]
            parts += bool(split)
            for sp, recompute, micro in itertools.product((0, 1), ("none", "selective", "full"), (25, 24)):
                with self.subTest(module=module.name, sp=sp, recompute=recompute, micro=micro):
                    common.succeed([program, "--data", f"synthetic:lengths={lengths}", "--steps=2", "--tokens-per-batch=71",
                                    f"--tokens-per-micro-batch={micro}", "--lr=1e-3", f"--strategy=tp=2,sp={sp},recompute={recompute}",
                                    "--threads=1", "--no-progress", f"--counts={counts}"])
                    for rank in json.loads(counts.read_text())["ranks"]:
                        self.assertGreater(rank["matrix_flops"], 0)
                        self.assertEqual(rank["matrix_flops"], rank["formula_flops"])
        # It was about something.
        self.assertGreaterEqual(parts, 2)


if __name__ == "__main__":
    common.main()
