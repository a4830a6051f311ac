#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A strategy trains to the numbers of one rank: a cover of all pairs of choices, which strategies_all_test.py runs all."""

import common
import strategies_common as strategies


class EqualityTest(strategies.StrategiesTest):
    def test_the_cover_has_every_pair(self):
        cases = strategies.all_cases()
        cover = strategies.cover_of_pairs(cases)
        self.assertEqual(set().union(*(case.pairs() for case in cases)), set().union(*(case.pairs() for case in cover)))
        self.assertLess(len(cover), len(cases) / 3)

    def test_numbers_are_those_of_one_rank(self):
        self.assert_equal_numbers(strategies.cover_of_pairs(strategies.all_cases()))


if __name__ == "__main__":
    common.main()
