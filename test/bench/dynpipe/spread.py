#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparsity of each block of a trained model if its smallest weights are pruned, over all blocks together.

    test/bench/dynpipe/spread.py MODEL/step-N/model.safetensors 0.52 0.7875 0.886 0.9 > spread.json

Weights are the matrices of layers `h.N`: those of linear layers, without embeddings and head. The largest ones of all blocks
together survive: gradual global magnitude pruning without the training in between. Of weights at the threshold all survive.
"""

import argparse
import array
import bisect
import json
import re
import sys

BLOCK = re.compile(r"(?:^|\.)h\.(\d+)\..*weight$")
TYPES = {"F32": "f", "F64": "d"}


def magnitudes(path):
    """Those of the weights of each block, ascending."""
    blocks = {}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin = file.tell()
        for name, tensor in header.items():
            found = BLOCK.search(name)
            if not found or len(tensor["shape"]) < 2:
                continue
            first, end = tensor["data_offsets"]
            file.seek(begin + first)
            numbers = array.array(TYPES[tensor["dtype"]], file.read(end - first))
            if sys.byteorder == "big":
                numbers.byteswap()
            blocks.setdefault(int(found.group(1)), []).extend(map(abs, numbers))
    return [sorted(blocks[number]) for number in sorted(blocks)]


def spread(blocks, sparsity):
    """The share of each block's weights that are smaller than the first one that survives."""
    every = sorted(weight for block in blocks for weight in block)
    threshold = every[min(round(sparsity * len(every)), len(every) - 1)]
    return [bisect.bisect_left(block, threshold) / len(block) for block in blocks]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("sparsities", type=float, nargs="+")
    options = parser.parse_args()
    blocks = magnitudes(options.model)
    print(json.dumps({f"{sparsity:g}": [round(share, 4) for share in spread(blocks, sparsity)] for sparsity in options.sparsities}))


if __name__ == "__main__":
    main()
