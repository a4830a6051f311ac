#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory phase takes seconds for a layer of thousands of ops, of whatever kind. Steps are counted by
RowGroupsTest; cubic, as it once was, this would take hours."""
import subprocess

import chain


def main():
    for kind in chain.KINDS:
        subprocess.run(["dyna-opt", "-", "--dyna-differentiate", "--dyna-memory", "-o", "/dev/null"],
                       input=chain.layer(kind, 3000), check=True, text=True, timeout=120)


if __name__ == "__main__":
    main()
