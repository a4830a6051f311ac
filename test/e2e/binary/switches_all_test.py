#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every ordered pair of triples of four and eight ranks, and longer sequences, train to the numbers of one rank."""

import common
import switches_common as switches


class AllSwitchesTest(switches.SwitchesTest):
    def test_numbers_are_those_of_one_rank(self):
        self.assert_equal_numbers(switches.all_cases())


if __name__ == "__main__":
    common.main()
