#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Token slices train to the numbers of whole samples: pairs of all choices, with degrees and families."""

import common
import slices_common as slices
import strategies_common as strategies


class AllSlicesTest(slices.SlicesTest):
    def test_numbers_are_those_of_whole_samples(self):
        self.assert_equal_sliced(slices.cover(slices.FullCase))

    def test_types_that_round_stay_near(self):
        for family in strategies.FAMILIES:
            cases = [case for case in slices.cover(slices.SlicedCase)
                     if case.base.family == family and case.base.tp in (1, 2)]
            for compute_type in slices.TYPES:
                self.assert_near_in_type(family, compute_type, [*slices.typed_cases(family), *cases])


if __name__ == "__main__":
    common.main()
