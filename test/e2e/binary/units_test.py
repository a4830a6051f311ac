#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention heads and feed-forward channels that are pruned together, in compiled binaries.

What dynac finds in a model, which heads survive beside a sort of their sums, and strategies beside one rank.
"""

import json
import pathlib
import struct

import common

FLAGS = ("--strategies=a: dp=2,zero=1; b: tp=2,pp=2",)
HEADS, CHANNELS = "HEAD", "CHANNEL"
# Matrices of a block of the tiny LLaMA as files name them, with the rows or columns of a unit.
HEAD_PARTS = (("self_attn.q_proj", 0), ("self_attn.k_proj", 0), ("self_attn.v_proj", 0), ("self_attn.o_proj", 1))
MASKS = {"self_attn.q_proj": "attn.q", "self_attn.k_proj": "attn.k", "self_attn.v_proj": "attn.v", "self_attn.o_proj": "attn.o"}


def groups_of(program):
    """The groups of the block, as (kind, count, parts)."""
    kind = common.described(program)["kinds"][1]
    return [(groups.get("kind", HEADS), groups["count"],
             [(part.get("parameter", 0), part.get("dimension", 0)) for part in groups["parts"]])
            for groups in kind["weight_groups"]]


def masks_of(path):
    """The masks of a checkpoint, by parameter, as lists of rows."""
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    masks = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name.endswith(".mask"):
            begin, end = entry["data_offsets"]
            masks[name.removesuffix(".weight.mask")] = rows_of(content[8 + size + begin:8 + size + end], entry["shape"])
    return masks


def rows_of(values, shape):
    rows, columns = shape
    return [values[row * columns:(row + 1) * columns] for row in range(rows)]


def unit_of(rows, dimension, count, unit):
    """The elements of one unit of a matrix."""
    if dimension == 0:
        width = len(rows) // count
        return [value for row in rows[unit * width:(unit + 1) * width] for value in row]
    width = len(rows[0]) // count
    return [value for row in rows for value in row[unit * width:(unit + 1) * width]]


class UnitsTest(common.BinaryTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = common.binary("llama", "f64", FLAGS)

    def prune(self, name, words, *flags, steps=4):
        stem = self.folder / name
        common.succeed(common.training(self.program, self.corpus, f"--metrics={stem}.jsonl", f"--save={stem}", "--keep=9",
                                       "--schedule-steps=6", "--warmup=1", *([f"--prune={words}"] if words else []), *flags,
                                       steps=steps))
        return stem

    def test_units_are_found(self):
        # Two heads of keys and values, with two query heads each.
        self.assertEqual(groups_of(self.program), [(HEADS, 2, [(1, 0), (2, 0), (3, 0), (4, 1)]),
                                                   (CHANNELS, 48, [(6, 0), (7, 0), (8, 1)])])
        gpt2 = common.binary("gpt2", "f64", FLAGS)
        self.assertEqual(groups_of(gpt2), [(HEADS, 2, [(2, 0), (4, 0), (6, 0), (8, 1)]), (CHANNELS, 128, [(12, 0), (14, 1)])])
        for kind in (0, 2):
            self.assertEqual(common.described(gpt2)["kinds"][kind]["weight_groups"], [])

    def test_heads_with_the_largest_sums_survive(self):
        before = self.prune("before", None, steps=2)
        after = self.prune("after", "final=0.5,from=3,structure=head", steps=3)
        weights = common.tensors(before / "step-2/model.safetensors")
        masks = masks_of(after / "step-3/optimizer.safetensors")
        self.assertEqual(len(masks), 8)
        sums, alive = [], []
        for layer in range(2):
            for head in range(2):
                total, marks = 0, set()
                for name, dimension in HEAD_PARTS:
                    mask = masks[f"layers.{layer}.{MASKS[name]}"]
                    rows = rows_of(weights[f"model.layers.{layer}.{name}.weight"], (len(mask), len(mask[0])))
                    total += sum(map(abs, unit_of(rows, dimension, 2, head)))
                    marks |= set(unit_of(mask, dimension, 2, head))
                sums.append(total)
                self.assertEqual(len(marks), 1)  # a head is whole or gone
                alive += marks
        order = sorted(range(4), key=lambda unit: (-sums[unit], unit))
        self.assertEqual([alive[unit] for unit in order], [1, 1, 0, 0])

    def test_strategies_agree_with_one_rank(self):
        for structure in ("head", "channel"):
            words = f"initial=0.25,final=0.75,from=2,until=4,every=2,criterion=gradient,structure={structure}"
            one = self.prune(f"{structure}-one", words, steps=5)
            for strategy in ("dp=2,zero=1", "tp=2,pp=2"):
                with self.subTest(structure=structure, strategy=strategy):
                    stem = self.prune(f"{structure}-{strategy}", words, f"--strategy={strategy}", steps=5)
                    folders = [path / "step-5" for path in (one, stem)]
                    self.assertEqual(*(masks_of(folder / "optimizer.safetensors") for folder in folders))
                    self.assertLess(common.largest_difference(*(folder / "model.safetensors" for folder in folders)), 1e-10)
                    for first, second in zip(common.losses(f"{one}.jsonl"), common.losses(f"{stem}.jsonl"), strict=True):
                        self.assertLess(abs(first - second), 1e-10)

    def test_work_of_attention_is_that_of_the_heads_that_are_left(self):
        def flops(name, words):
            counts = self.folder / name
            self.prune(f"{name}-run", words, f"--counts={counts}", steps=3)
            return sum(rank["formula_flops"] for rank in json.loads(counts.read_text())["ranks"])
        dense, half, quarter = (flops(name, words) for name, words in (
            ("dense", None), ("half", "final=0.5,from=1,structure=head,scope=layer"),
            ("channels", "final=0.75,from=1,structure=channel,scope=layer")))
        self.assertLess(half, dense)
        # A block has 3,072 weights in attention, and 4,608 in its channels.
        kind = common.described(self.program)["kinds"][1]
        self.assertEqual(kind["flops_per_token"], 2 * (3072 + 4608))
        products = (dense - quarter) / (0.75 * 4608)  # for each weight of a block, in all passes
        attention = 2 * (dense - half - products * 3072 / 2)
        self.assertGreater(attention, 0)
        self.assertLess(attention, dense - products * (3072 + 4608))


if __name__ == "__main__":
    common.main()
