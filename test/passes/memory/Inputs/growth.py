#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of the memory phase grows less than with the square of a layer's ops, of whatever kind. Steps are counted by
RowGroupsTest; cubic, as it once was, this would take hours."""
import resource
import subprocess

import chain

SMALL, LARGE = 750, 3000


def work(kind, ops):
    """Seconds of processors, which no other program takes from it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(["dyna-opt", "-", "--dyna-differentiate", "--dyna-memory", "-o", "/dev/null"],
                   input=chain.layer(kind, ops), check=True, text=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    for kind in chain.KINDS:
        small, large = work(kind, SMALL), work(kind, LARGE)
        if large > (LARGE / SMALL) ** 2 * small:
            raise SystemExit(f"{kind}: {small:.2f} s for {SMALL} ops, {large:.2f} s for {LARGE}")


if __name__ == "__main__":
    main()
