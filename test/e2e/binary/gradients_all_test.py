#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gradients_test.py for all families."""

import common
import strategies_common as strategies
from gradients_test import GradientsTest


class AllGradientsTest(GradientsTest):
    families = tuple(strategies.FAMILIES)


del GradientsTest  # or it would run again


if __name__ == "__main__":
    common.main()
