#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frozen parameters keep their bits and cost nothing; adapters beside them train to the numbers of one rank."""

import functools
import itertools
import json
import math
import os
import pathlib
import shutil
import sys

import common
import shared_binaries
import strategies_common as strategies
from strategies_common import Case

RANK = 4
# Linears whose output features ranks share, and one whose input features they share.
LORA = {"gpt2": f"q,v,attn.proj:{RANK}", "llama": f"q,v,o:{RANK}"}
DEGREES = (1, 2)
WIDTH, BLOCKS, VOCABULARY = 96, 8, 257
OUT = {"gpt2": {"q": 96, "v": 96, "proj": 96}, "llama": {"q": 96, "v": 24, "o": 96}}
F64 = 8

CASES = [Case(family, *rest) for family, rest in [
    ("gpt2", (2, 2, 1, 1, 1, "none")), ("gpt2", (2, 1, 2, 1, 0, "full")), ("llama", (4, 1, 1, 1, 0, "none")),
    ("llama", (1, 2, 2, 0, 1, "selective"))]]


@functools.lru_cache(maxsize=None)
def lora_program(family, compute_type="f64"):
    """The binary of a family with adapters."""
    folder = common.WORK / "lora"
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{family}-{compute_type}"
    config = stem.with_suffix(".json")
    config.write_text(json.dumps(strategies.FAMILIES[family]))
    module = stem.with_suffix(".mlir")
    common.succeed([common.DYNA_TRANSLATE, "--from-config", config, f"--lora={LORA[family]}", "-o", module])
    return shared_binaries.compile_binary(common.DYNAC, module, stem.with_suffix(".bin"),
                                          [f"--compute-type={compute_type}", "--isa=avx2",
                                           f"--strategies={strategies.degree_list(DEGREES)}"])


def is_adapter(name):
    return ".lora_A." in name or ".lora_B." in name


def content(path):
    """The bytes of every tensor of a safetensors file, by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return {name: (entry["dtype"], data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def one_rank(family):
    return Case(family, 1, 1, 1, 0, 0, "none")


class LoraTest(strategies.StrategiesTest):
    @classmethod
    def reference(cls, family):
        if family not in cls.references:
            stem = cls.runs / f"{family}-one"
            strategies.train(lora_program(family), cls.corpus, one_rank(family), stem)
            cls.references[family] = strategies.Against(stem)
        return cls.references[family]

    def saved(self, stem, step=strategies.STEPS):
        folder = stem / f"step-{step}"
        return content(folder / "model.safetensors"), content(folder / "optimizer.safetensors")

    def test_strategies_train_to_the_numbers_of_one_rank(self):
        for family in LORA:
            self.reference(family)
        wrong = [text for text in (self.run_and_compare(case, binary=lora_program(case.family)) for case in CASES) if text]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_frozen_parameters_keep_their_bits(self):
        """A step with learning rate 0 leaves all parameters as they began."""
        for family in LORA:
            self.reference(family)
            begun = self.begun(family).parent
            before, _ = self.saved(begun, 1)
            after, moments = self.saved(self.runs / f"{family}-one")
            self.assertEqual(before, {name: value for name, value in after.items() if not is_adapter(name)})
            adapters = {name for name in after if is_adapter(name)}
            self.assertEqual(len(adapters), BLOCKS * 2 * len(OUT[family]))
            self.assertEqual(len(moments), 2 * len(adapters))
            self.assertTrue(all(is_adapter(name) for name in moments))
            # B begins at zero: the model begins as the one without adapters. Micro-batches may be others, and so the order of sums.
            self.assertAlmostEqual(common.lines_of(f"{begun}.jsonl")[0]["loss"],
                                   common.lines_of(self.runs / f"{family}-one.jsonl")[0]["loss"], delta=1e-12)

    def test_a_checkpoint_without_adapters_begins_them(self):
        base = self.begun("llama").parent
        stem = self.runs / "begun-from-base"
        strategies.train(lora_program("llama"), self.corpus, one_rank("llama"), stem, f"--load={base}", steps=2)
        before, _ = self.saved(base, 1)
        after, _ = self.saved(stem, 2)
        self.assertEqual(before, {name: value for name, value in after.items() if not is_adapter(name)})

    def test_resumes_bitwise_and_under_another_strategy(self):
        family = "llama"
        reference = self.reference(family)
        for case in (one_rank(family), Case(family, 2, 2, 1, 1, 1, "none")):
            stem = self.runs / f"resumed-{case.label}"
            binary = lora_program(family)
            strategies.train(binary, self.corpus, one_rank(family), stem, steps=3)
            common.succeed([binary, "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress",
                            f"--steps={strategies.STEPS}", f"--strategy={case.strategy}",
                            f"--tokens-per-micro-batch={case.micro_batch}", f"--save={stem}", "--threads=1"])
            if case.ranks == 1:
                self.assertEqual(self.saved(stem), self.saved(self.runs / f"{family}-one"))
            self.assertIsNone(self.largest_difference(reference, stem))

    def checkpoint_tool(self, *options):
        return common.run([sys.executable, pathlib.Path(os.environ["DYNA_SOURCE"]) / "tools" / "lora-checkpoint.py", *options])

    def loss_of(self, binary, family, stem, loaded):
        """Of the first step, before anything moves."""
        strategies.train(binary, self.corpus, one_rank(family), stem, f"--load={loaded}", "--lr=0", "--min-lr=0", steps=1)
        return common.lines_of(f"{stem}.jsonl")[0]["loss"]

    def test_adapters_are_merged(self):
        """The model with adapters and the plain one that they are merged into have one loss."""
        for family in LORA:
            self.reference(family)
            step = self.runs / f"{family}-one" / f"step-{strategies.STEPS}"
            merged = self.runs / f"{family}-merged"
            done = self.checkpoint_tool(step, "--merge", merged)
            self.assertEqual(done.returncode, 0, done.stderr)
            plain = strategies.program(family, degrees=())
            losses = [self.loss_of(lora_program(family), family, self.runs / f"{family}-unmerged", step),
                      self.loss_of(plain, family, self.runs / f"{family}-merged-run", merged),
                      self.loss_of(plain, family, self.runs / f"{family}-begun-run", self.begun(family))]
            self.assertLess(abs(losses[0] - losses[1]), 1e-13 * losses[0])
            self.assertGreater(abs(losses[0] - losses[2]), 1e-6)

    def test_adapters_are_written_for_peft(self):
        for family, linears in LORA.items():
            self.reference(family)
            folder = self.runs / f"{family}-peft"
            done = self.checkpoint_tool(self.runs / f"{family}-one" / f"step-{strategies.STEPS}", "--peft", folder,
                                        "--base", "a-base")
            self.assertEqual(done.returncode, 0, done.stderr)
            config = json.loads((folder / "adapter_config.json").read_text())
            self.assertEqual(config["base_model_name_or_path"], "a-base")
            tensors = strategies.arrays(folder / "adapter_model.safetensors")
            saved = strategies.arrays(self.runs / f"{family}-one" / f"step-{strategies.STEPS}" / "model.safetensors")
            if family == "llama":
                self.assertEqual(config["target_modules"], ["self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"])
                self.assertEqual((config["r"], config["lora_alpha"], config["rank_pattern"]), (RANK, 8, {}))
                self.assertEqual(tensors["base_model.model.model.layers.3.self_attn.v_proj.lora_A.weight"],
                                 saved["model.layers.3.attn.v.lora_A.weight"])
                self.assertEqual(len(tensors), BLOCKS * 6)
                continue
            self.assertEqual(config["target_modules"], ["attn.c_attn", "attn.c_proj"])
            self.assertEqual((config["r"], config["rank_pattern"], config["alpha_pattern"]),
                             (RANK, {"attn.c_attn": 2 * RANK}, {"attn.c_attn": 16}))
            # B A of query, key and value, one element of each.
            down, up = (tensors[f"base_model.model.transformer.h.2.attn.c_attn.lora_{part}.weight"] for part in "AB")
            for part, name in ((0, "q"), (1, None), (2, "v")):
                row, column = part * WIDTH + 5, 7
                joined = math.fsum(up[row * 2 * RANK + r] * down[r * WIDTH + column] for r in range(2 * RANK))
                own = name and math.fsum(
                    saved[f"transformer.h.2.attn.{name}.lora_B.weight"][5 * RANK + r]
                    * saved[f"transformer.h.2.attn.{name}.lora_A.weight"][r * WIDTH + column] for r in range(RANK))
                self.assertAlmostEqual(joined, own or 0, delta=1e-15)

    def begun(self, family):
        """A checkpoint of the model without adapters as it begins."""
        stem = self.runs / f"{family}-begun"
        if not stem.exists():
            strategies.train(strategies.program(family, degrees=()), self.corpus, one_rank(family), stem, "--lr=0",
                             "--min-lr=0", steps=1)
        return stem / "step-1"

    def largest_difference(self, reference, stem):
        for kind, (difference, where) in reference.compare(stem).items():
            if not difference <= strategies.TOLERANCE:
                return f"{kind} of {where} differs by {difference:.2e}"
        return None

    def counts(self, binary, case, stem):
        path = self.runs / f"{stem}.counts.json"
        strategies.train(binary, self.corpus, case, self.runs / stem, f"--counts={path}", steps=1)
        return json.loads(path.read_text())["ranks"]

    def test_memory_and_work_are_those_of_the_formulas(self):
        """What a run with adapters has less than a full one, from shapes alone."""
        for family, out in OUT.items():
            adapters = BLOCKS * sum(RANK * (WIDTH + rows) for rows in out.values())
            full = self.counts(strategies.program(family, degrees=()), one_rank(family), f"{family}-full")[0]
            lora = self.counts(lora_program(family), one_rank(family), f"{family}-lora")[0]
            self.assertEqual(lora["master_bytes"], full["master_bytes"] + F64 * adapters)
            for part in ("gradient_bytes", "first_moment_bytes", "second_moment_bytes"):
                self.assertEqual(lora[part], F64 * adapters, part)
            self.assertEqual(lora["matrix_flops"], lora["formula_flops"])
            line = common.lines_of(self.runs / f"{family}-lora.jsonl")[0]
            tokens, targets = line["tokens"], line["targets"]
            linears = 2 * WIDTH**2 + 2 * WIDTH * (96 if family == "gpt2" else 24)  # q, o; k, v
            linears += WIDTH * (2 * 384 if family == "gpt2" else 3 * 256)
            less = 2 * tokens * BLOCKS * linears + 2 * targets * VOCABULARY * WIDTH  # gradients of weights
            # The embedding runs forward alone, so the first block gives no gradient of its input: that of q, k, v and of A of q and v.
            less += 2 * tokens * WIDTH * (WIDTH + 2 * (96 if family == "gpt2" else 24) + 2 * RANK)
            self.assertEqual(full["matrix_flops"] - lora["matrix_flops"], less - 6 * tokens * adapters)

    def test_only_adapters_go_between_replicas(self):
        for family, out in OUT.items():
            adapters = BLOCKS * sum(RANK * (WIDTH + rows) for rows in out.values())
            plain = self.counts(strategies.program(family, degrees=()), Case(family, 2, 1, 1, 0, 0, "none"), f"{family}-full-dp")
            lora = self.counts(lora_program(family), Case(family, 2, 1, 1, 0, 0, "none"), f"{family}-lora-dp")
            for rank, other in zip(lora, plain):
                parameters = other["gradient_bytes"]
                # Beside the gradients go the norms of the layers, the same number in both.
                rest = other["all_reduce"]["bytes"] - parameters
                self.assertEqual(rank["all_reduce"]["bytes"], F64 * adapters + rest)

    def test_bf16_keeps_one_copy_of_what_is_frozen(self):
        """Frozen parameters have no master beside the copy; files are of the same width as others."""
        rank = self.counts(lora_program("llama", "bf16"), Case("llama", 2, 1, 1, 1, 0, "none"), "bf16")[0]
        full = self.counts(strategies.program("llama", "bf16", degrees=()), one_rank("llama"), "bf16-full")[0]
        adapters = BLOCKS * sum(RANK * (WIDTH + rows) for rows in OUT["llama"].values())
        frozen = full["copy_bytes"] // 2
        self.assertEqual(rank["copy_bytes"], 2 * adapters)
        # ZeRO: half of the masters of adapters; all of what is frozen, in bf16.
        self.assertEqual(rank["master_bytes"], 4 * adapters // 2 + 2 * frozen)
        stem = self.runs / "bf16"
        tensors, _ = self.saved(stem, 1)
        self.assertEqual({kind for kind, _ in tensors.values()}, {"F32"})
        # Rounding what is read gives the same bits again.
        again = self.runs / "bf16-again"
        strategies.train(lora_program("llama", "bf16"), self.corpus, one_rank("llama"), again, f"--load={stem}", steps=1)
        reread, _ = self.saved(again, 1)
        for name, value in tensors.items():
            if not is_adapter(name):
                self.assertEqual(value, reread[name], name)
        shutil.rmtree(again)


if __name__ == "__main__":
    common.main()
