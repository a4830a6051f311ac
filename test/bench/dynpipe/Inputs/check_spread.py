# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""spread.py against a sort by hand: check_spread.py SPREAD FOLDER"""

import json
import pathlib
import random
import struct
import subprocess
import sys

script, folder = sys.argv[1], pathlib.Path(sys.argv[2])
draw = random.Random(1)
blocks = [[draw.gauss(0, 1 + block) for _ in range(60)] for block in range(3)]
header, data = {}, b""
for name, shape, values in [*((f"h.{block}.fc.weight", [6, 10], values) for block, values in enumerate(blocks)), ("wte.weight", [2, 2], [9.0] * 4),
                            ("h.0.fc.bias", [3], [1e-9] * 3)]:
    begin = len(data)
    data += struct.pack(f"<{len(values)}d", *values)
    header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [begin, len(data)]}
text = json.dumps(header).encode()
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
done = subprocess.run([sys.executable, script, folder / "model.safetensors", "0.5", "0.9"], check=True, capture_output=True, text=True)
found = json.loads(done.stdout)
every = sorted(abs(weight) for block in blocks for weight in block)
for sparsity in (0.5, 0.9):
    pruned = set(every[:round(sparsity * len(every))])
    expected = [round(sum(abs(weight) in pruned for weight in block) / len(block), 4) for block in blocks]
    assert found[f"{sparsity:g}"] == expected, (found, expected)
