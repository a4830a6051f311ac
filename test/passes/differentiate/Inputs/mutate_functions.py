"""Writes a differentiated module once for each fault, behind each other as
-split-input-file reads them, and on standard error how many there are: an op that adds to
an accumulator is deleted, a number is doubled, two operands of one type change places.

    mutate_functions.py MODULE > FAULTS 2> COUNT
"""
import re
import sys

# What may change places without another result.
COMMUTES = {"dyna.add", "dyna.mul"}
op = re.compile(r"^\s+(%\w+) = (dyna\.\w+) (%[^{:]*?)((?: \{.*\})? : .*)$")
number = re.compile(r"= ([0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?)")
text = open(sys.argv[1]).read().split("\n")


def end_of(begin):
    return next(at for at in range(begin, len(text)) if text[at] == "  }")


def accumulates(name):
    return name.endswith(("grad_weight", "bias_grad", "sum_squares"))


def types_of(tail):
    return [one.strip() for one in tail.split(" : ")[-1].split(", ")]


faults = []
inside = None
for at, line in enumerate(text):
    if line.startswith("  dyna.function"):
        inside = end_of(at)
    if inside is None or at > inside:
        continue
    if found := number.search(line):
        changed = text[:]
        start, stop = found.span(1)
        changed[at] = line[:start] + "%.6e" % (2 * float(found[1])) + line[stop:]
        faults.append(changed)
    if not (found := op.match(line)):
        continue
    result, name, operands, tail = found.groups()
    operands = [one.strip() for one in operands.split(",")]
    if accumulates(name):
        changed = text[:]
        rest = "\n".join(changed[at + 1:inside + 1])
        changed[at:inside + 1] = re.sub(re.escape(result) + r"\b", operands[-1], rest).split("\n")
        faults.append(changed)
    types = types_of(tail)
    same = len(operands) == len(types) == 2 and types[0] == types[1]
    if same and operands[0] != operands[1] and name not in COMMUTES:
        changed = text[:]
        changed[at] = line.replace(", ".join(operands), ", ".join(reversed(operands)), 1)
        faults.append(changed)
print("\n// -----\n".join("\n".join(one) for one in faults))
print("faults", len(faults), file=sys.stderr)
