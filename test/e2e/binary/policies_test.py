#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-batches, schedules, recomputation and memory change no number: a cover of all pairs of choices."""

import common
import policies_common as policies
import strategies_common as strategies
from policies_common import Policy

TRIPLES = ((1, 1, 2), (2, 1, 2), (1, 2, 2), (1, 1, 4), (3, 1, 1))


class CoverTest(policies.PoliciesTest):
    def test_numbers_are_those_of_one_rank(self):
        every = policies.all_policies(("gpt2",), TRIPLES)
        cover = strategies.cover_of_pairs(every)
        self.assertEqual(set().union(*(policy.pairs() for policy in every)), set().union(*(policy.pairs() for policy in cover)))
        self.assertLess(len(cover), 45)
        self.assert_equal_policies(cover)
        # Little memory had something to decide.
        self.assertGreater(self.modes["none"], 0)
        self.assertGreater(self.modes["selective"] + self.modes["full"], 0)
        self.assertGreater(sum(count for name, count in self.fallbacks.items() if name != "none"), 0)


class PackedTest(policies.PoliciesTest):
    """With attention across, the same rows on one rank are what others are held against."""

    reference_flags = ("--micro-batches=packed",)

    def test_numbers_are_those_of_the_packed_data_on_one_rank(self):
        packed = self.reference("gpt2")
        # They are not those of the samples apart, nor of as many rows.
        apart = self.runs / "apart"
        strategies.train(self.program("gpt2"), self.corpus, strategies.Case("gpt2", 1, 1, 1, 0, 0, "none"), apart,
                         "--micro-batches=packed-masked")
        for one, other in zip(common.losses(f"{packed.stem}.jsonl"), common.losses(f"{apart}.jsonl"), strict=True):
            self.assertGreater(abs(one - other), 1e-4)
        for policy in (Policy("gpt2", 1, 1, 2, 0, 0, "none", "packed", "adaptive", 1, 0),
                       Policy("gpt2", 2, 1, 2, 1, 0, "selective", "packed", "1f1b", 0, 0),
                       Policy("gpt2", 1, 2, 2, 0, 1, "full", "packed", "cyclic", 0, 0),
                       Policy("gpt2", 1, 1, 4, 0, 0, "auto", "packed", "adaptive", 0, 1),
                       Policy("gpt2", 3, 1, 1, 1, 0, "none", "packed", "sequential", 0, 0)):
            with self.subTest(policy=policy.label):
                self.assertIsNone(self.run_policy(policy))


if __name__ == "__main__":
    common.main()
