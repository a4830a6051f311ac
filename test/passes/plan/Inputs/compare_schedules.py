#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What schedules of one mini-batch take, and in which order that puts them.

    compare_schedules.py MODULE OPTIONS COSTS "a > b > c"

OPTIONS are those of --dyna-build-micro-batches; a, b and c are names of schedules, or `bound`, which no order beats.
`>` means by a twentieth or more.
"""
import re
import subprocess
import sys

SAID = re.compile(r"remark: replica 0: \d+ micro-batches in (\S+) s, no order takes less than (\S+) s; by stage, the safety "
                  r"stock is ([\d, ]+), and")


def expected(module, options, costs, schedule):
    done = subprocess.run(["dyna-opt", module, f"--dyna-build-micro-batches={options} costs={costs} schedule={schedule}",
                           f"--dyna-schedule=costs={costs} report", "-o", "/dev/null"], capture_output=True, text=True)
    found = SAID.search(done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return float(found[1]), float(found[2]), found[3]


def main():
    module, options, costs, order = sys.argv[1:]
    words = order.split()
    names, relations = words[::2], words[1::2]
    seconds = {}
    for name in names:
        if name == "bound":
            continue
        seconds[name], seconds["bound"], stock = expected(module, options, costs, name)
        print(f"{name} {seconds[name]:g} s, safety stock {stock}")
    print(f"bound {seconds['bound']:g} s")
    holds = {">": lambda a, b: a >= 1.05 * b, ">=": lambda a, b: a >= b, "=": lambda a, b: abs(a - b) <= 1e-5 * a}
    for a, relation, b in zip(names, relations, names[1:]):
        if not holds[relation](seconds[a], seconds[b]):
            print(f"{a} {relation} {b} does not hold")
            return 1
    print(f"holds: {order}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
