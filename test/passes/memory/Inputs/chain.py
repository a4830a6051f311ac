#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a layer of many ops: a chain of sums, or of products with sweeps between them, or one whose ops read values of
long before as well."""
import random
import sys

X, W, G = "tensor<?x16xf32>", "tensor<16x16xf32>", "tensor<16xf32>"
KINDS = {"add": [f"dyna.add {{last}}, %x : {X}"],
         "linear": [f"dyna.linear {{last}}, %w : {X}, {W}"],
         "mixed": [f"dyna.linear {{last}}, %w : {X}, {W}", f"dyna.silu {{last}} : {X}",
                   f"dyna.add {{last}}, %x : {X}", f"dyna.rms_norm {{last}}, %g {{{{epsilon = 1.0e-5 : f64}}}} : {X}, {G}"],
         "half-sum": [f"dyna.add {{last}}, {{earlier}} : {X}"]}
# Of op i of n, which earlier one it reads; -1: %x.
EARLIER = {"palindrome": lambda i, n: n - i - 1 if i > n // 2 else -1,
           "half": lambda i, n: i // 2 if i and i % 3 == 0 else -1,
           "random": lambda i, n: random.Random(i).randrange(-1, i) if i else -1}
KINDS |= {kind: [f"dyna.mul {{last}}, {{earlier}} : {X}"] for kind in EARLIER}
EARLIER["half-sum"] = EARLIER["half"]


def layer(kind, count):
    lines, last = [f"dyna.layer @long[%w: {W}, %g: {G}](%x: {X}) -> {X} {{"], "%x"
    for i in range(count):
        before = EARLIER[kind](i, count) if kind in EARLIER else -1
        earlier = f"%v{before}" if before >= 0 else "%x"
        lines.append(f"  %v{i} = " + KINDS[kind][i % len(KINDS[kind])].format(last=last, earlier=earlier))
        last = f"%v{i}"
    return "\n".join(lines + [f"  dyna.return {last} : {X}", "}", ""])


if __name__ == "__main__":
    sys.stdout.write(layer(sys.argv[1], int(sys.argv[2])))
