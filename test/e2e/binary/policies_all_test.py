#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same as policies_test.py for both families and up to eight ranks: a cover of all pairs, and others that are drawn."""

import random

import common
import policies_common as policies
import strategies_common as strategies

TRIPLES = tuple((dp, tp, pp) for dp in (1, 2, 3, 4) for tp in (1, 2) for pp in (1, 2, 3, 4) if 1 < dp * tp * pp <= 8)
DRAWN = 200


class AllPoliciesTest(policies.PoliciesTest):
    def test_numbers_are_those_of_one_rank(self):
        every = policies.all_policies(("gpt2", "llama"), TRIPLES)
        chosen = strategies.cover_of_pairs(random.Random(3).sample(every, 4000))
        chosen += [policy for policy in random.Random(7).sample(every, DRAWN) if policy not in chosen]
        self.assert_equal_policies(chosen)
        self.assertGreater(self.modes["selective"] + self.modes["full"], 0)


if __name__ == "__main__":
    common.main()
