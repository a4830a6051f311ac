# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the parameters of a small model with an adapter and an exit."""

import json
import struct
import sys

SHAPES = {"model.layers.0.self_attn.q_proj.weight": [2, 2], "model.layers.0.attn.q.lora_A.weight": [1, 2],
          "model.layers.0.attn.q.lora_B.weight": [2, 1], "model.layers.0.exit.norm.weight": [2, 1]}

header, end = {}, 0
for name, shape in SHAPES.items():
    begin, end = end, end + 4 * shape[0] * shape[1]
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + bytes(end))
