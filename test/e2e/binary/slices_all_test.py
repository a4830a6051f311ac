#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token slices train to the numbers of whole samples: pairs of all choices, with degrees and families."""

import common
import slices_common as slices


class AllSlicesTest(slices.SlicesTest):
    def test_numbers_are_those_of_whole_samples(self):
        self.assert_equal_sliced(slices.cover(slices.FullCase))


if __name__ == "__main__":
    common.main()
