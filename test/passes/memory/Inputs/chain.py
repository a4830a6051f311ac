#!/usr/bin/env python3
# Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a layer of many ops: a chain of sums, or of products with sweeps between them."""
import sys

X, W, G = "tensor<?x16xf32>", "tensor<16x16xf32>", "tensor<16xf32>"
KINDS = {"add": [f"dyna.add {{last}}, %x : {X}"],
         "linear": [f"dyna.linear {{last}}, %w : {X}, {W}"],
         "mixed": [f"dyna.linear {{last}}, %w : {X}, {W}", f"dyna.silu {{last}} : {X}",
                   f"dyna.add {{last}}, %x : {X}", f"dyna.rms_norm {{last}}, %g {{{{epsilon = 1.0e-5 : f64}}}} : {X}, {G}"]}


def layer(kind, count):
    lines, last = [f"dyna.layer @long[%w: {W}, %g: {G}](%x: {X}) -> {X} {{"], "%x"
    for i in range(count):
        lines.append(f"  %v{i} = " + KINDS[kind][i % len(KINDS[kind])].format(last=last))
        last = f"%v{i}"
    return "\n".join(lines + [f"  dyna.return {last} : {X}", "}", ""])


if __name__ == "__main__":
    sys.stdout.write(layer(sys.argv[1], int(sys.argv[2])))
