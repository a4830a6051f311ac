#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every strategy of up to eight ranks trains to the numbers of one rank."""

import common
import strategies_common as strategies


class AllStrategiesTest(strategies.StrategiesTest):
    def test_numbers_are_those_of_one_rank(self):
        self.assert_equal_numbers(strategies.all_cases())


if __name__ == "__main__":
    common.main()
