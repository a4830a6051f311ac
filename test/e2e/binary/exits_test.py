#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with heads behind inner blocks: every strategy trains to the numbers of one rank, and counters are formulas."""

import functools
import json
import shutil

import common
import shared_binaries
import strategies_common as strategies
from strategies_common import Case

# One exit shares the table of the head, the other one has its own.
EXITS = {"gpt2": "h.1:0.3; h.4:0.5:own", "llama": "layers.2:0.25; layers.3:0.7"}
WEIGHTS = {"gpt2": {"h.1.exit": 0.3, "h.4.exit": 0.5, "head": 1}, "llama": {"layers.2.exit": 0.25, "layers.3.exit": 0.7, "head": 1}}
DEGREES = (1, 2)
WIDTH, VOCABULARY = 96, 257
F64 = 8

# Stages of `pp=2` and `pp=3` end before, between and behind exits.
CASES = [Case(family, *rest) for family, rest in [
    ("gpt2", (2, 2, 1, 1, 1, "none")), ("gpt2", (1, 1, 2, 0, 0, "full")), ("gpt2", (2, 1, 3, 1, 0, "selective")),
    ("llama", (4, 1, 1, 1, 0, "none")), ("llama", (1, 2, 2, 0, 1, "selective"))]]
FLAGS = [["--split-backward"], ["--slices=uniform:2"]]


@functools.lru_cache(maxsize=None)
def program(family, exits=None, degrees=DEGREES, more=()):
    folder = common.WORK / "exits"
    folder.mkdir(parents=True, exist_ok=True)
    words = [family, *(exits or "").split(";"), *more]
    stem = folder / "-".join("".join(c if c.isalnum() else "_" for c in word.strip(" -")) for word in words if word)
    config = stem.with_suffix(".json")
    config.write_text(json.dumps(strategies.FAMILIES[family]))
    module = stem.with_suffix(".mlir")
    common.succeed([common.DYNA_TRANSLATE, "--from-config", config, f"--exits={exits or EXITS[family]}", *more, "-o", module])
    return shared_binaries.compile_binary(common.DYNAC, module, stem.with_suffix(".bin"),
                                          ["--compute-type=f64", "--isa=avx2",
                                           *([f"--strategies={strategies.degree_list(degrees)}"] if degrees else [])])


def one_rank(family):
    return Case(family, 1, 1, 1, 0, 0, "none")


class ExitsTest(strategies.StrategiesTest):
    @classmethod
    def reference(cls, family):
        if family not in cls.references:
            stem = cls.runs / f"{family}-one"
            strategies.train(program(family), cls.corpus, one_rank(family), stem)
            cls.references[family] = strategies.Against(stem)
        return cls.references[family]

    def test_strategies_train_to_the_numbers_of_one_rank(self):
        for family in EXITS:
            self.reference(family)
        wrong = [text for text in (self.run_and_compare(case, binary=program(case.family)) for case in CASES) if text]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_split_backward_and_slices_change_no_number(self):
        self.reference("gpt2")
        case = Case("gpt2", 1, 1, 2, 0, 0, "none")
        wrong = [text for text in (self.run_and_compare(case, flags=flags, binary=program("gpt2")) for flags in FLAGS) if text]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_the_loss_is_the_weighted_sum(self):
        """Of the losses of layers, which all strategies report; an exit stands on another rank than the head."""
        for family, weights in WEIGHTS.items():
            self.reference(family)
            lines = common.lines_of(self.runs / f"{family}-one.jsonl")
            stem = self.runs / f"{family}-parts"
            strategies.train(program(family), self.corpus, Case(family, 2, 1, 2, 0, 0, "none"), stem)
            for line, other in zip(lines, common.lines_of(f"{stem}.jsonl")):
                self.assertEqual(list(line["losses"]), list(weights))
                self.assertAlmostEqual(line["loss"], sum(weights[name] * loss for name, loss in line["losses"].items()), delta=1e-12)
                for name, loss in line["losses"].items():
                    self.assertAlmostEqual(loss, other["losses"][name], delta=1e-10)
            self.assertEqual(len(set(lines[0]["losses"].values())), 3)

    def test_evaluation_has_all_losses(self):
        family = "gpt2"
        self.reference(family)
        stem = self.runs / "evaluated"
        done = common.succeed([program(family), "--evaluate", "--load", self.runs / f"{family}-one" / f"step-{strategies.STEPS}",
                               "--data", self.corpus, "--strategy=pp=2", "--threads=1", f"--metrics={stem}.jsonl"])
        line = common.lines_of(f"{stem}.jsonl")[0]
        self.assertAlmostEqual(line["loss"], sum(WEIGHTS[family][name] * loss for name, loss in line["losses"].items()), delta=1e-12)
        self.assertIn("loss of h.1.exit", done)
        # Bits and perplexity are those of the head.
        self.assertGreater(line["bits_per_byte"], 0)
        self.assertNotAlmostEqual(line["losses"]["head"], line["loss"])

    def test_resumes_bitwise_and_under_another_strategy(self):
        family = "gpt2"
        reference = self.reference(family)
        for case in (one_rank(family), Case(family, 2, 1, 2, 1, 0, "none")):
            stem = self.runs / f"resumed-{case.label}"
            strategies.train(program(family), self.corpus, one_rank(family), stem, steps=3)
            common.succeed([program(family), "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress",
                            f"--steps={strategies.STEPS}", f"--strategy={case.strategy}",
                            f"--tokens-per-micro-batch={case.micro_batch}", f"--save={stem}", "--threads=1"])
            if case.ranks == 1:
                for file in ("model.safetensors", "optimizer.safetensors"):
                    self.assertEqual(*((folder / f"step-{strategies.STEPS}" / file).read_bytes()
                                       for folder in (stem, self.runs / f"{family}-one")))
            for kind, (difference, where) in reference.compare(stem).items():
                self.assertLessEqual(difference, strategies.TOLERANCE, f"{kind} of {where}")

    def resumed(self, binary, stem, *flags):
        return common.run([binary, "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress", "--steps=4", "--threads=1", *flags])

    def test_a_resumed_run_says_that_its_weights_are_others(self):
        """Optimizer state stays, so weights can be changed while a model trains."""
        family, stem = "gpt2", self.runs / "other"
        strategies.train(program(family), self.corpus, one_rank(family), stem, steps=3)
        state = stem / "step-3" / "state.json"
        self.assertEqual(json.loads(state.read_text())["loss_weights"], WEIGHTS[family])
        other = program(family, "h.1:0.3; h.4:1.25:own", degrees=())
        done = self.resumed(other, stem)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: losses have other weights than in the saved run: h.4.exit is 0.5 there and 1.25 here", done.stderr)
        line = common.lines_of(f"{stem}.jsonl")[3]
        weights = {"h.1.exit": 0.3, "h.4.exit": 1.25, "head": 1}
        self.assertAlmostEqual(line["loss"], sum(weights[name] * loss for name, loss in line["losses"].items()), delta=1e-12)
        # The same weights are not mentioned. Checkpoints have checksums, so other states are for SavedWeightsTest.
        shutil.rmtree(stem / "step-4")
        done = self.resumed(program(family), stem)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("other weights", done.stderr)

    def test_a_checkpoint_without_exits_begins_them(self):
        family = "llama"
        base, stem = self.runs / "base", self.runs / "begun"
        strategies.train(strategies.program(family, degrees=()), self.corpus, one_rank(family), base, "--lr=0", "--min-lr=0", steps=1)
        strategies.train(program(family), self.corpus, one_rank(family), stem, f"--load={base / 'step-1'}", "--lr=0", "--min-lr=0", steps=1)
        plain, begun = common.lines_of(f"{base}.jsonl")[0], common.lines_of(f"{stem}.jsonl")[0]
        # Micro-batches may be others, and so the order of sums.
        self.assertAlmostEqual(plain["loss"], begun["losses"]["head"], delta=1e-12)
        self.assertNotIn("losses", plain)

    def test_an_exit_more_begins_anew(self):
        # Dropout depends on the number of a layer, so that a model without dropout is compared.
        family, stem, more = "llama", self.runs / "fewer", self.runs / "more"
        fewer = program(family, "layers.3:0.7", degrees=())
        strategies.train(fewer, self.corpus, one_rank(family), stem, "--lr=0", "--min-lr=0", steps=1)
        load = [f"--load={stem / 'step-1'}", f"--metrics={more}.jsonl", "--lr=0", "--min-lr=0"]
        done = common.run(strategies.command(program(family), self.corpus, Case(family, 2, 1, 2, 0, 0, "none"), *load, steps=1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step-1 has nothing that was added with layers.2.exit, which begins anew", done.stderr)
        there, here = (common.lines_of(f"{path}.jsonl")[0]["losses"] for path in (stem, more))
        self.assertEqual(list(here), ["layers.2.exit", "layers.3.exit", "head"])
        for name in there:
            self.assertAlmostEqual(there[name], here[name], delta=1e-12)
        # The other way round there is a tensor too many.
        strategies.train(program(family), self.corpus, one_rank(family), more, "--lr=0", "--min-lr=0", steps=1)
        done = common.run(strategies.command(fewer, self.corpus, one_rank(family), f"--load={more / 'step-1'}", steps=1))
        self.assertEqual(done.returncode, 2)
        self.assertIn("layers.2.exit.norm.weight of shape [96], which this model does not have", done.stderr)

    def test_adapters_beside_exits(self):
        """Exits train beside adapters. A checkpoint with exits has no adapters, which begin anew."""
        family, stem, adapted = "llama", self.runs / "exits-alone", self.runs / "adapted"
        binary = program(family, degrees=(), more=("--lora=q,v:4",))
        strategies.train(program(family), self.corpus, one_rank(family), stem, "--lr=0", "--min-lr=0", steps=1)
        load = f"--load={stem / 'step-1'}"
        done = common.run(strategies.command(binary, self.corpus, one_rank(family), load, f"--metrics={adapted}.jsonl", f"--save={adapted}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("has nothing that was added with layers.0, layers.1, layers.2 and 5 others, which begins anew", done.stderr)
        # Adapters begin with zero.
        there, here = (common.lines_of(f"{path}.jsonl")[0]["losses"] for path in (stem, adapted))
        for name, loss in there.items():
            self.assertAlmostEqual(loss, here[name], delta=1e-12)
        before, after = strategies.Against(stem, step=1).tensors, strategies.Against(adapted).tensors
        changed = {name for name in before if not name.endswith((".m", ".v")) and before[name] != after[name]}
        self.assertEqual(changed, {"model.layers.2.exit.norm.weight", "model.layers.3.exit.norm.weight"})
        self.references["adapted"] = strategies.Against(adapted)
        case = Case("adapted", 2, 1, 2, 1, 0, "full")
        self.assertIsNone(self.run_and_compare(case, flags=[load], binary=binary))

    def counts(self, binary, case, stem):
        path = self.runs / f"{stem}.counts.json"
        strategies.train(binary, self.corpus, case, self.runs / stem, f"--counts={path}", steps=1)
        return json.loads(path.read_text())["ranks"]

    def test_work_and_memory_are_those_of_the_formulas(self):
        family = "gpt2"
        plain = self.counts(strategies.program(family, degrees=()), one_rank(family), "plain")[0]
        exits = self.counts(program(family), one_rank(family), "exits")[0]
        self.assertEqual(exits["matrix_flops"], exits["formula_flops"])
        line = common.lines_of(self.runs / "exits.jsonl")[0]
        # Two heads more, each of three products.
        self.assertEqual(exits["matrix_flops"] - plain["matrix_flops"], 2 * 3 * 2 * line["targets"] * VOCABULARY * WIDTH)
        # Two norms, and one table.
        self.assertEqual(exits["master_bytes"] - plain["master_bytes"], F64 * (2 * 2 * WIDTH + VOCABULARY * WIDTH))


if __name__ == "__main__":
    common.main()
