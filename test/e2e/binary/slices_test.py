#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token slices train to the numbers of one rank that has whole samples; what cannot be sliced is refused."""

import json
import re

import common
import slices_common as slices
import strategies_common as strategies


class SlicesTest(slices.SlicesTest):
    def test_numbers_are_those_of_whole_samples(self):
        self.assert_equal_sliced(slices.cover(slices.SlicedCase))

    def test_slices_are_in_the_plan(self):
        """More micro-batches run than without slices, and runs repeat bitwise."""
        case = strategies.Case("gpt2", 1, 1, 2, 0, 0, "none")
        counts, models = {}, []
        for number, flags in enumerate(([], ["--slices=4"], ["--slices=4"])):
            stem = self.runs / f"counted-{number}"
            strategies.train(strategies.program("gpt2"), self.corpus, case, stem, "--pipeline=1f1b", *flags)
            counts[number] = sum(line["micro_batches"] for line in common.lines_of(f"{stem}.jsonl"))
            models.append((stem / f"step-{strategies.STEPS}" / "model.safetensors").read_bytes())
        self.assertGreater(counts[1], 3 * counts[0])
        self.assertLessEqual(counts[1], 4 * counts[0])
        self.assertEqual(models[1], models[2])


    def test_work_is_that_of_whole_samples(self):
        """No slice computes a product twice: flops are counted where the work is done, and equal the manifest's."""
        for text in ("dp=1,tp=1,pp=2", "dp=1,tp=2,pp=1,sp=1"):
            for family in ("gpt2", "llama"):
                degrees = dict(part.split("=") for part in text.split(","))
                case = strategies.Case(family, int(degrees["dp"]), int(degrees["tp"]), int(degrees["pp"]), 0,
                                       int(degrees.get("sp", 0)), "none")
                flops, sent = [], []
                for number, flags in enumerate(([], ["--slices=5"])):
                    stem = self.runs / f"work-{case.label}-{number}"
                    counts = stem.with_suffix(".counts")
                    strategies.train(strategies.program(family), self.corpus, case, stem, f"--counts={counts}", *flags)
                    ranks = json.loads(counts.read_text())["ranks"]
                    for rank in ranks:
                        self.assertEqual(rank["matrix_flops"], rank["formula_flops"])
                    flops.append([rank["matrix_flops"] for rank in ranks])
                    sent.append([rank["messages"]["bytes"] for rank in ranks])
                self.assertEqual(flops[0], flops[1])
                self.assertEqual(sent[0], sent[1])


class BadInputTest(common.BinaryTest):
    def refused(self, *flags, program=None):
        done = common.run(common.training(program or common.binary("gpt2"), common.corpus(common.WORK / "corpus"), *flags))
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_words_are_checked(self):
        for text in ("0", "-1", "four", "1+", "+2", "2+0", "1.5", "99999999999", ""):
            self.assertIn("--slices expects", self.refused(f"--slices={text}"))

    def test_more_slices_than_tokens(self):
        self.assertIn("asks for 5000 slices, but a micro-batch has", self.refused("--slices=5000"))

    def test_padded_micro_batches(self):
        self.assertIn("padded", self.refused("--slices=2", "--micro-batches=padded"))

    def test_attention_that_is_not_causal(self):
        text = common.model("gpt2").read_text().replace("{causal, ", "{")
        # No family of configurations has such a layer.
        text = text.replace('family = "gpt2"', 'family = "custom"')
        text = re.sub(r'config = "(\\.|[^"\\])*"', 'config = ""', text)
        source = common.WORK / "not-causal.mlir"
        source.write_text(text)
        program = common.WORK / "not-causal"
        common.succeed([common.DYNAC, source, "-o", program, "-O0"])
        self.assertIn("needs causal attention, but 'block'", self.refused("--slices=2", program=program))


if __name__ == "__main__":
    common.main()
