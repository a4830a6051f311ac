#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same run gives the same bits; the same work in other portions the same numbers."""

import common

FILES = ("model.safetensors", "optimizer.safetensors")


class DeterminismTest(common.BinaryTest):
    def assert_same_run(self, one, other, step=4):
        self.assertEqual(common.losses(f"{one}.jsonl"), common.losses(f"{other}.jsonl"))
        for name in FILES:
            self.assertEqual((one / f"step-{step}" / name).read_bytes(), (other / f"step-{step}" / name).read_bytes(), name)

    def assert_close(self, one, other, bound):
        """Losses and everything saved differ by less than `bound`."""
        for a, b in zip(common.losses(f"{one}.jsonl"), common.losses(f"{other}.jsonl"), strict=True):
            self.assertLess(abs(a - b), bound)
        for name in FILES:
            self.assertLess(common.largest_difference(one / "step-4" / name, other / "step-4" / name), bound, name)

    def test_two_runs_are_bitwise_equal(self):
        for name, compute_type in (("gpt2", "f32"), ("llama", "bf16"), ("llama", "f64")):
            with self.subTest(model=name, type=compute_type):
                program = common.binary(name, compute_type)
                one = self.train(program, f"{name}-{compute_type}-1")
                other = self.train(program, f"{name}-{compute_type}-2")
                self.assert_same_run(one, other)

    def test_the_seed_matters(self):
        program = common.binary("gpt2", "f32")
        one, other = self.train(program, "one"), self.train(program, "other", "--seed=4")
        self.assertNotEqual(common.losses(f"{one}.jsonl"), common.losses(f"{other}.jsonl"))

    def test_micro_batches_do_not_matter(self):
        # The GPT-2 drops: which values it drops must not depend on the micro-batch.
        for name in ("gpt2", "llama"):
            program = common.binary(name, "f64")
            whole = self.train(program, f"{name}-whole", "--tokens-per-micro-batch=400")
            counts = {max(line["micro_batches"] for line in common.lines_of(f"{whole}.jsonl"))}
            for tokens in (64, 100, 170):
                with self.subTest(model=name, tokens=tokens):
                    cut = self.train(program, f"{name}-{tokens}", f"--tokens-per-micro-batch={tokens}")
                    self.assert_close(whole, cut, 1e-10)
                    counts.add(max(line["micro_batches"] for line in common.lines_of(f"{cut}.jsonl")))
            self.assertGreater(len(counts), 2, "the mini-batches were not cut in different ways")

    def test_dropout_is_on(self):
        drops = self.train(common.binary("gpt2", "f64"), "drops")
        keeps = self.train(common.binary("gpt2", "f64", (), (("resid_pdrop", 0.0), ("embd_pdrop", 0.0))), "keeps")
        self.assertNotEqual(common.losses(f"{drops}.jsonl")[0], common.losses(f"{keeps}.jsonl")[0])

    def test_threads_matter_little(self):
        program = common.binary("gpt2", "f64")
        two, one = self.train(program, "two"), self.train(program, "one", "--threads=1")
        self.assert_close(two, one, 1e-10)
        equal = all((one / "step-4" / name).read_bytes() == (two / "step-4" / name).read_bytes() for name in FILES)
        print(f"one and two threads are {'' if equal else 'not '}bitwise equal in f64")
        program = common.binary("gpt2", "f32")
        two, one = self.train(program, "two32"), self.train(program, "one32", "--threads=1")
        for a, b in zip(common.losses(f"{one}.jsonl"), common.losses(f"{two}.jsonl"), strict=True):
            self.assertLess(abs(a - b), 1e-4)

    def test_instruction_sets_agree(self):
        # The bounds are those of 20 golden losses (docs/numerics.md), and so is the learning
        # rate: ten steps later a larger one makes anything of a rounding.
        have = common.pathlib.Path("/proc/cpuinfo").read_text()
        if not all(f" {feature} " in have for feature in ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")):
            self.skipTest("this machine has no AVX-512")
        for compute_type, bound in (("f64", 1e-10), ("f32", 1e-5), ("bf16", 3e-3)):
            for name in ("gpt2", "llama"):
                with self.subTest(model=name, type=compute_type):
                    program = common.binary(name, compute_type)
                    losses = []
                    for isa in ("avx2", "avx512"):
                        stem = self.train(program, f"{name}-{compute_type}-{isa}", f"--isa={isa}", "--lr=3e-3", steps=20)
                        losses.append(common.losses(f"{stem}.jsonl"))
                    largest = max(abs(a - b) / abs(b) for a, b in zip(*losses, strict=True))
                    print(f"{name} {compute_type}: AVX2 and AVX-512 differ by {largest:.1e}")
                    self.assertLess(largest, bound)
                    if compute_type != "f64":
                        self.assertGreater(largest, 0, "both runs seem to have taken the same code")

    def test_ways_of_running_a_plan_do_not_matter(self):
        for name in ("gpt2", "llama"):
            program = common.binary(name, "f64")
            plain = self.train(program, f"{name}-plain", "--tokens-per-micro-batch=100")
            for number, flags in enumerate((["--recompute=selective"], ["--recompute=full"], ["--split-backward"], ["--in-flight=3"],
                                            ["--recompute=full", "--split-backward", "--in-flight=2"])):
                with self.subTest(model=name, flags=flags):
                    other = self.train(program, f"{name}-{number}", "--tokens-per-micro-batch=100", *flags)
                    self.assert_close(plain, other, 1e-10)


if __name__ == "__main__":
    common.main()
