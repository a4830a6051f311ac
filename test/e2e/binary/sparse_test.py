#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned weights in sparse form, against the same weights masked.

`--sparse-from` says at which share of zeros a weight becomes sparse. So one binary runs masked, sparse and mixed. In f64
all of them agree, under every strategy.
"""

import json
import pathlib
import re
import subprocess

import common

# Products of 140 features fill more than one tile of an index, and split unevenly over two ranks.
MODEL = (("n_inner", 140),)
FLAGS = ("--sparse", "--strategies=a: dp=2; b: tp=2,pp=2; c: dp=2,zero=1; d: pp=2")
# Two events: 30 % and 70 % of all linear weights of blocks.
PRUNE = "initial=0.3,final=0.7,from=3,until=5,every=2"
STEPS = 6
# No weight, some of them, all of them.
MASKED, MIXED, SPARSE = "--sparse-from=1", "--sparse-from=0.7", "--sparse-from=0.2"
TOLERANCE = 1e-10
FILES = ("model.safetensors", "optimizer.safetensors")


class SparseTest(common.BinaryTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = common.binary("gpt2", "f64", FLAGS, MODEL)

    def prune(self, name, *flags, program=None, steps=STEPS, words=PRUNE):
        """Trains with two events; returns the stem and what was said about each event."""
        stem = self.folder / name
        done = common.run(common.training(program or self.program, self.corpus, f"--metrics={stem}.jsonl", f"--save={stem}",
                                          f"--counts={stem}.counts", "--keep=9", f"--prune={words}",
                                          f"--schedule-steps={STEPS}", "--warmup=2", "--tokens-per-micro-batch=120",
                                          *flags, steps=steps))
        self.assertEqual(done.returncode, 0, done.stderr)
        forms = [tuple(map(int, found)) for found in re.findall(r"(\d+) of (\d+) parameters are in sparse form", done.stderr)]
        return stem, forms

    def assert_near(self, one, other, steps=STEPS, tolerance=TOLERANCE):
        # Lines about moves have no loss.
        a, b = ([line for line in common.lines_of(f"{stem}.jsonl") if "loss" in line] for stem in (one, other))
        self.assertEqual([line["survivors"] for line in a], [line["survivors"] for line in b])
        for key in ("loss", "gradient_norm"):
            for first, second in zip(a, b, strict=True):
                self.assertLess(abs(first[key] - second[key]), tolerance * max(1, abs(first[key])), key)
        folders = [stem / f"step-{steps}" for stem in (one, other)]
        self.assertLess(common.largest_difference(*(folder / FILES[0] for folder in folders)), tolerance)
        return a

    def flops(self, stem):
        counts = json.loads(pathlib.Path(f"{stem}.counts").read_text(encoding="utf-8"))
        return sum(rank["matrix_flops"] for rank in counts["ranks"])

    def test_forms_agree_over_two_events(self):
        masked, forms = self.prune("masked", MASKED)
        self.assertEqual([count for count, _ in forms], [0, 0])
        every = forms[0][1]
        self.assertEqual(every, 12)  # six matrices in each of two blocks
        sparse, forms = self.prune("sparse", SPARSE)
        self.assertEqual(forms, [(every, every)] * 2)
        mixed, forms = self.prune("mixed", MIXED)
        self.assertEqual(forms[0][0], 0)
        self.assertTrue(0 < forms[1][0] < every, forms)
        lines = self.assert_near(masked, sparse)
        self.assert_near(masked, mixed)
        self.assertGreater(lines[-1]["sparsity"], lines[2]["sparsity"])
        # Work is that of survivors alone.
        self.assertLess(self.flops(sparse), 0.95 * self.flops(mixed))
        self.assertLess(self.flops(mixed), 0.99 * self.flops(masked))

    def test_weights_grow_again_in_every_form(self):
        # The steps before events 4 and 6 need gradients of pruned weights: their products are dense.
        words = "final=0.7,from=2,until=6,every=2,regrow=0.3,criterion=gradient"
        masked, _ = self.prune("masked", MASKED, words=words)
        for name, strategy in (("alone", "dp=1"), ("ranks", "tp=2,pp=2")):
            with self.subTest(strategy=strategy):
                sparse, forms = self.prune(name, SPARSE, f"--strategy={strategy}", words=words)
                # Of the first rank, which has one of two blocks.
                blocks = 1 if "pp=2" in strategy else 2
                self.assertEqual([count for count, _ in forms], [6 * blocks] * 3)
                self.assert_near(masked, sparse)
                self.assertLess(self.flops(sparse), 0.95 * self.flops(masked))

    def test_strategies_agree_with_one_masked_rank(self):
        masked, _ = self.prune("masked", MASKED)
        for strategy in ("dp=2", "tp=2,pp=2", "dp=2,zero=1", "pp=2"):
            for form in (SPARSE, MIXED):
                with self.subTest(strategy=strategy, form=form):
                    stem, forms = self.prune(f"{strategy}{form}", form, f"--strategy={strategy}")
                    self.assertGreater(forms[-1][0], 0)
                    self.assert_near(masked, stem)

    def test_recomputation_and_a_split_backward_use_the_forms(self):
        masked, _ = self.prune("masked", MASKED)
        for flags in (["--recompute=full"], ["--recompute=selective"], ["--strategy=pp=2", "--split-backward"]):
            with self.subTest(flags=flags):
                self.assert_near(masked, self.prune("".join(flags), SPARSE, *flags)[0])

    def test_other_graphs_and_ranges(self):
        masked, _ = self.prune("masked", MASKED)
        moved, _ = self.prune("moved", SPARSE, "--strategy=dp=2,zero=1", "--repack=tp=2,pp=2@3; pp=2@5")
        self.assert_near(masked, moved)
        self.assertLess(self.flops(moved), 0.95 * self.flops(masked))
        ranges, _ = self.prune("ranges", SPARSE, "--ranges=a: 0-20; d: 21-")
        self.assert_near(masked, ranges)

    def test_resuming_is_bitwise_the_same(self):
        for strategy in ("dp=1", "dp=2,zero=1"):
            whole, _ = self.prune(f"whole-{strategy}", MIXED, f"--strategy={strategy}", "--save-every=1")
            for step in range(1, STEPS):
                with self.subTest(strategy=strategy, step=step):
                    part, _ = self.prune(f"part-{strategy}-{step}", MIXED, f"--strategy={strategy}", steps=step)
                    common.succeed([self.program, "--resume", part, f"--metrics={part}.jsonl", "--no-progress",
                                    f"--steps={STEPS}"])
                    self.assertEqual(common.losses(f"{whole}.jsonl"), common.losses(f"{part}.jsonl"))
                    for name in FILES:
                        self.assertEqual(*((stem / f"step-{STEPS}" / name).read_bytes() for stem in (whole, part)), name)

    def test_other_types_train_alike(self):
        for compute_type, tolerance in (("f32", 1e-4), ("bf16", 0.05)):
            with self.subTest(type=compute_type):
                program = common.binary("gpt2", compute_type, ("--sparse",), MODEL)
                masked, _ = self.prune(f"{compute_type}-masked", MASKED, program=program)
                sparse, forms = self.prune(f"{compute_type}-sparse", SPARSE, program=program)
                self.assertEqual(forms[-1], (12, 12))
                for one, other in zip(common.losses(f"{masked}.jsonl"), common.losses(f"{sparse}.jsonl"), strict=True):
                    self.assertLess(abs(one - other), tolerance * one)

    def test_dense_and_masked_runs_keep_their_bits(self):
        plain = common.binary("gpt2", "f64", FLAGS[1:], MODEL)
        one, other = (common.described(program) for program in (plain, self.program))
        self.assertEqual(one["hash"], other["hash"])
        self.assertEqual([kind.get("sparse_parameters", []) for kind in other["kinds"]],
                         [[], [2, 4, 6, 8, 12, 14], []])
        self.assertFalse(any(kind.get("sparse_parameters") for kind in one["kinds"]))
        runs = [self.prune("plain", program=plain)[0], self.prune("masked", MASKED)[0]]
        self.assertEqual(*(common.losses(f"{stem}.jsonl") for stem in runs))
        for name in FILES:
            self.assertEqual(*((stem / f"step-{STEPS}" / name).read_bytes() for stem in runs), name)

    def test_bad_input_is_refused(self):
        plain = common.binary("gpt2", "f64", FLAGS[1:], MODEL)
        prune = f"--prune={PRUNE}"
        for program, flags, words in (
                (self.program, ["--sparse-from=0.5"], ["--sparse-from", "--prune"]),
                (plain, [prune, "--sparse-from=0.5"], ["--sparse-from", "dynac --sparse"]),
                (self.program, [prune, "--sparse-from=1.5"], ["--sparse-from", "1.5"]),
                (self.program, [prune, "--sparse-from=most"], ["--sparse-from", "most"]),
                # Embeddings stay dense.
                (self.program, ["--prune=final=0.5,from=2,params=*wte*", "--sparse-from=0.5"], ["--sparse-from"])):
            with self.subTest(flags=flags):
                self.assert_refused(common.run(common.training(program, self.corpus, *flags)), *words)
        done = subprocess.run([common.DYNAC, common.model("gpt2"), "--sparse", "--target=cuda", "-o", self.folder / "none"],
                              capture_output=True, text=True, check=False)
        self.assert_refused(done, "--sparse", "--target=cpu")


if __name__ == "__main__":
    common.main()
