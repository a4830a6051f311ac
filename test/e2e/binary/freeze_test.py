#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers freeze and thaw while compiled models with exits train. Every strategy trains to the numbers of one rank."""

import functools
import json
import operator

import common
import shared_binaries
import strategies_common as strategies
from strategies_common import Case

MODEL = {**strategies.FAMILIES["gpt2"], "tie_word_embeddings": False}
# The first exit has a table of its own, so it can freeze with the blocks before it.
EXITS = "h.1:0.3:own; h.4:0.5"
PREFIX = "embed+h.0-h.1+h.1.exit+h.2"
# A prefix grows over an exit, a layer in the middle freezes, and a layer of the prefix thaws.
EVENTS = f"embed+h.0@1; h.1+h.1.exit+h.2+h.5@2; thaw=h.1@4"
DEGREES = (1, 2)

# Stages of `pp=3` end before, in and after what is frozen.
CASES = [Case("gpt2", *rest) for rest in [
    (2, 2, 1, 1, 1, "none"), (1, 1, 2, 0, 0, "full"), (2, 1, 3, 1, 0, "selective"), (1, 2, 2, 0, 1, "selective")]]
FLAGS = [["--split-backward"], ["--slices=uniform:2"], ["--pipeline=1f1b"]]
ONE = Case("gpt2", 1, 1, 1, 0, 0, "none")


@functools.lru_cache(maxsize=None)
def program(frozen=""):
    """The binary whose layers freeze at run time, or one that has layers frozen from the start."""
    folder = common.WORK / "freeze"
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / ("static" if frozen else "freezable")
    config, module = stem.with_suffix(".json"), stem.with_suffix(".mlir")
    config.write_text(json.dumps(MODEL))
    common.succeed([common.DYNA_TRANSLATE, "--from-config", config, f"--exits={EXITS}", *([f"--freeze={frozen}"] if frozen else []), "-o", module])
    return shared_binaries.compile_binary(common.DYNAC, module, stem.with_suffix(".bin"),
                                          ["--compute-type=f64", "--isa=avx2", f"--strategies={strategies.degree_list(DEGREES)}",
                                           *([] if frozen else ["--freezable"])])


class FreezeTest(strategies.StrategiesTest):
    @classmethod
    def reference(cls):
        if "one" not in cls.references:
            strategies.train(program(), cls.corpus, ONE, cls.runs / "one", f"--freeze={EVENTS}")
            cls.references["one"] = strategies.Against(cls.runs / "one")
        return cls.references["one"]

    def check(self, case, stem, *flags):
        strategies.train(program(), self.corpus, case, self.runs / stem, f"--freeze={EVENTS}", *flags)
        for kind, (difference, where) in self.reference().compare(self.runs / stem).items():
            self.assertLessEqual(difference, strategies.TOLERANCE, f"{stem}: {kind} of {where}")

    def test_strategies_train_to_the_numbers_of_one_rank(self):
        for case in CASES:
            self.check(case, case.label)

    def test_split_backward_slices_and_orders_change_no_number(self):
        for number, flags in enumerate(FLAGS):
            self.check(Case("gpt2", 1, 1, 2, 0, 0, "none"), f"flags-{number}", *flags)

    def test_frozen_before_the_first_step_is_frozen_in_the_model(self):
        """Micro-batches may be others, and so the order of sums."""
        static, dynamic = self.runs / "static", self.runs / "dynamic"
        case = Case("gpt2", 1, 1, 2, 0, 0, "none")
        strategies.train(program(PREFIX), self.corpus, case, static)
        strategies.train(program(), self.corpus, case, dynamic, f"--freeze={PREFIX}@0")
        ours, theirs = (common.lines_of(f"{stem}.jsonl") for stem in (static, dynamic))
        theirs = [line for line in theirs if "loss" in line]
        for a, b in zip(ours, theirs, strict=True):
            for name, loss in a["losses"].items():
                self.assertAlmostEqual(loss, b["losses"][name], delta=1e-12)
            self.assertAlmostEqual(a["gradient_norm"], b["gradient_norm"], delta=1e-11)
        values, others = (strategies.arrays(stem / f"step-{strategies.STEPS}" / "model.safetensors") for stem in (static, dynamic))
        self.assertEqual(set(values), set(others))
        for name in values:
            self.assertLessEqual(strategies.largest(map(operator.sub, values[name], others[name])), 1e-12, name)
        # Moments of frozen parameters rest at zero, where the other model has none.
        moments, fewer = (strategies.arrays(stem / f"step-{strategies.STEPS}" / "optimizer.safetensors") for stem in (dynamic, static))
        resting = set(moments) - set(fewer)
        self.assertGreater(len(resting), 0)
        self.assertEqual(resting, {name for name, moment in moments.items() if not any(moment)})

    def test_resumes_bitwise_at_every_step(self):
        self.reference()
        for step in range(1, strategies.STEPS):
            stem = self.runs / f"resumed-{step}"
            strategies.train(program(), self.corpus, ONE, stem, f"--freeze={EVENTS}", steps=step)
            common.succeed([program(), "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress", f"--steps={strategies.STEPS}",
                            f"--save={stem}", "--threads=1"])
            for file in ("model.safetensors", "optimizer.safetensors"):
                self.assertEqual(*((folder / f"step-{strategies.STEPS}" / file).read_bytes() for folder in (stem, self.runs / "one")))

    def test_work_is_that_of_the_formulas(self):
        for number, frozen in enumerate((PREFIX, "h.5", f"{PREFIX}+h.5", "h.4.exit")):
            path = self.runs / f"counts-{number}.json"
            if frozen == "h.4.exit":
                # Its table is that of the head, which trains.
                done = common.run([program(), "--data", self.corpus, "--steps=1", f"--freeze={frozen}@0"])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("h.4.exit", done.stderr)
                continue
            strategies.train(program(), self.corpus, Case("gpt2", 1, 2, 2, 0, 1, "selective"), self.runs / f"counts-{number}",
                             f"--counts={path}", f"--freeze={frozen}@0", steps=1)
            for rank in json.loads(path.read_text())["ranks"]:
                self.assertEqual(rank["matrix_flops"], rank["formula_flops"], frozen)


if __name__ == "__main__":
    common.main()
