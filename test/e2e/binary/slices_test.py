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

    def test_types_that_round_stay_near(self):
        for family, compute_type in (("gpt2", "f32"), ("llama", "bf16")):
            self.assert_near_in_type(family, compute_type, slices.typed_cases(family))

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

    def test_a_run_says_that_it_slices(self):
        """Summary, metrics and trace name slices; a run of whole samples names none."""
        run = ("--strategy=dp=1,tp=1,pp=2", "--pipeline=1f1b", "--tokens-per-micro-batch=64")
        for slices in ("none", "4"):
            metrics, trace = self.folder / f"said-{slices}.jsonl", self.folder / f"said-{slices}.json"
            done = common.run(common.training(common.binary("gpt2"), self.corpus, *run, f"--slices={slices}",
                                              f"--metrics={metrics}", f"--trace={trace}", steps=2))
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [line for line in common.lines_of(metrics) if "loss" in line]
            events = [event["args"] for event in common.trace_events(trace) if event["ph"] == "X" and "micro_batch" in event["args"]]
            if slices == "none":
                self.assertNotRegex(done.stdout + done.stderr, "(?m)^  slices ")
                self.assertFalse(any("slices" in line for line in lines) or any("tokens" in args for args in events))
                continue
            counts = [sum(line[name] for line in lines) for name in ("sliced_samples", "slices")]
            self.assertRegex(done.stdout + done.stderr, rf"(?m)^  slices +{counts[0]} samples? in {counts[1]} slices, in 2 steps$")
            for step, line in enumerate(lines):
                own = [args for args in events if args["step"] == step + 1]
                self.assertTrue(all("tokens" in args and ("sample" in args) != ("samples" in args) for args in own))
                # Each micro-batch once, however many events it has.
                tokens = {args["micro_batch"]: args["tokens"] for args in own}
                self.assertEqual(sum(tokens.values()), line["tokens"])
                self.assertTrue(any(args["context"] > 0 for args in own))


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


class PlansTest(common.BinaryTest):
    """Plans of slices are files too. Edits that break the order of a sample's tokens are refused before training."""

    FLAGS = ("--strategy=dp=1,tp=1,pp=2", "--pipeline=1f1b", "--slices=4", "--tokens-per-micro-batch=64")
    SEGMENT = re.compile(r"sample (\d+)(?: begin (\d+))? length (\d+)")

    def setUp(self):
        super().setUp()
        self.program = common.binary("gpt2", "f64")
        self.good = self.folder / "good"
        self.made = self.train(self.program, "made", *self.FLAGS, f"--dump-plans={self.good}", steps=1)
        text = common.succeed([common.DYNA_TRANSLATE, "--plan-to-mlir", self.good / "step-1.plan"])
        self.lines = text.splitlines()
        # Micro-batches that are one slice, neither the first nor the last of a sample.
        self.inner = [number for number, line in enumerate(self.lines)
                      if "micro_batch replica" in line and len(found := self.SEGMENT.findall(line)) == 1 and found[0][1]]

    def refused(self, name, changes):
        folder = self.folder / name
        folder.mkdir()
        lines = [changes.get(number, line) for number, line in enumerate(self.lines)]
        source = folder / "plan.mlir"
        source.write_text("\n".join(lines) + "\n")
        common.succeed([common.DYNA_TRANSLATE, "--mlir-to-plan", source, "-o", folder / "step-1.plan"])
        metrics = folder / "metrics.jsonl"
        done = common.run(common.training(self.program, self.corpus, *self.FLAGS, f"--plans={folder}",
                                          f"--metrics={metrics}", steps=1))
        self.assert_refused(done, "step-1.plan: ")
        self.assertEqual(common.lines_of(metrics) if metrics.exists() else [], [])
        return done.stderr

    def changed(self, number, begin, length):
        """The line of a slice, with numbers added."""
        return self.SEGMENT.sub(
            lambda found: f"sample {found[1]} begin {int(found[2]) + begin} length {int(found[3]) + length}",
            self.lines[number])

    def test_plans_run_again(self):
        again = self.train(self.program, "again", *self.FLAGS, f"--plans={self.good}", steps=1)
        for name in ("loss", "gradient_norm"):
            self.assertEqual(*([line[name] for line in common.lines_of(f"{stem}.jsonl")] for stem in (self.made, again)))

    def test_gaps_and_overlaps(self):
        number = self.inner[0]
        self.assertIn("a plan for", self.refused("shorter", {number: self.changed(number, 0, -1)}))
        self.assertIn("a plan for", self.refused("longer", {number: self.changed(number, -1, 1)}))
        # As many tokens as the mini-batch has.
        for name, change in (("later", (1, 0)), ("earlier", (-1, 0)), ("far", (1 << 40, 0))):
            self.assertIn("(P2)", self.refused(name, {number: self.changed(number, *change)}))

    def test_other_orders(self):
        """Two slices of a sample change places: none of the programs runs in order of tokens any more."""
        pairs = [(one, other) for one, other in zip(self.inner, self.inner[1:])
                 if self.SEGMENT.findall(self.lines[one])[0][0] == self.SEGMENT.findall(self.lines[other])[0][0]]
        self.assertTrue(pairs)
        one, other = pairs[0]
        self.assertRegex(self.refused("swapped", {one: self.lines[other], other: self.lines[one]}), r"\(P\d+\)")
        self.assertIn("(P2)", self.refused("doubled", {other: self.changed(one, 0, 0)}))


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
        for policy in ("uniform", "seq1f1b"):
            self.assertIn("asks for 65 slices, but a micro-batch has 64 tokens at most",
                          self.refused(f"--slices={policy}:65", "--tokens-per-micro-batch=64"))
        self.assertIn("asks for chunks of 65 tokens, but micro-batches of several samples have 64 at most",
                      self.refused("--slices=chunkflow:65", "--tokens-per-micro-batch=64"))

    def test_lists_that_do_not_add_up(self):
        """The last slice repeats, so a list adds up if there are tokens for all slices before it."""
        for text, first in (("64+1", "first has 64"), ("200+1+1", "first has 200"), ("30+30+4+1", "first 3 have 64"),
                            ("16777216+16777216", "first has 16777216")):
            self.assertIn(f"but the {first} tokens, and a micro-batch has 64 at most",
                          self.refused(f"--slices={text}", "--tokens-per-micro-batch=64"))
        common.succeed(common.training(common.binary("gpt2"), self.corpus, "--slices=63+1",
                                       "--tokens-per-micro-batch=64", steps=1))

    def test_keys_beyond_the_limit(self):
        """The message says bytes, and what is enough; a run with that much trains."""
        run = ("--slices=8", "--strategy=dp=1,tp=1,pp=2", "--pipeline=1f1b")
        said = self.refused(*run, "--rank-memory=200K")
        self.assertRegex(said, r"a rank may take 200\.0 KiB, but rank \d needs [\d.]+ [KM]iB at least")
        self.assertIn("fewer slices", said)
        enough = int(re.search(r"--rank-memory (\d+) is enough", said)[1])
        whole = self.refused("--slices=none", *run[1:], "--rank-memory=200K")
        # Keys and values of slices take more than whole samples do.
        self.assertGreater(enough, int(re.search(r"--rank-memory (\d+) is enough", whole)[1]))
        common.succeed(common.training(common.binary("gpt2"), self.corpus, *run, f"--rank-memory={enough}", steps=1))

    def test_one_stage(self):
        for slices in ("4", "exact"):
            done = common.run(common.training(common.binary("gpt2"), self.corpus, f"--slices={slices}", steps=1))
            self.assertIn(f"--slices {slices} gains nothing", done.stderr)

    def test_padded_samples_are_cut(self):
        """--pad comes before the cut: each micro-batch of padded samples has all its slices."""
        counts = []
        for flags in (("--slices=none",), ("--slices=2",)):
            metrics = self.folder / f"padded-{len(counts)}.jsonl"
            common.succeed(common.training(common.binary("gpt2"), self.corpus, "--pad", "--strategy=dp=1,tp=1,pp=2", "--pipeline=1f1b",
                                           f"--metrics={metrics}", *flags, steps=1))
            counts.append(common.lines_of(metrics)[0]["micro_batches"])
        self.assertEqual(counts[1], 2 * counts[0])

    def test_small_chunks(self):
        """Rows of each chunk are rounded up; memory is taken for that."""
        for tokens in (1, 5, 31):
            common.succeed(common.training(common.binary("gpt2"), self.corpus, f"--slices=chunkflow:{tokens}",
                                           "--strategy=dp=1,tp=1,pp=2", "--pipeline=1f1b", steps=1))

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
