"""Lengths of the samples of a step, in their order: lengths_of_step.py MODULE."""

import re
import sys

# By plan, those of its own samples, and which ones of the step these are.
own, lengths = {}, {}
for line in open(sys.argv[1]):
    if found := re.search(r"exec\.plan @(\S+)", line):
        plan = own.setdefault(found[1], {})
    # A sample in slices has a length for each.
    for sample, length in re.findall(r"sample (\d+)(?: [a-z]+ \d+)* length (\d+)", line):
        plan[int(sample)] = plan.get(int(sample), 0) + int(length)
    if found := re.search(r"phase @(\S+) samples \[([0-9, ]*)\]", line):
        for number, sample in enumerate(found[2].split(", ")):
            lengths[int(sample)] = own[found[1]][number]
assert sorted(lengths) == list(range(len(lengths))) and len(lengths) > 10, lengths
print("tokens", *(lengths[sample] for sample in sorted(lengths)), sep="\n")
