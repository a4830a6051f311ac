#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 whose heads together are not as wide as its layers.

Three heads of 4 in layers 20 wide compute what five do of which two have weights of 0: these give nothing, get no
gradient and stay 0. The model of five heads is one that PyTorch was compared with (test/golden).
"""

import array
import json
import math
import struct

import common
import strategies_common as strategies

WIDTH, HEADS, SIZE, MORE = 20, 3, 4, 2
CONFIG = {"model_type": "gpt2", "vocab_size": 257, "n_positions": 64, "n_embd": WIDTH, "n_layer": 3, "n_head": HEADS,
          "head_dim": SIZE, "n_inner": 48, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
STRATEGIES = "; ".join(f"t{tp}s{sp}: tp={tp},sp={sp}" for tp in (3,) for sp in (0, 1))
STEPS = 5


def compiled(name, *flags, **changes):
    folder = common.WORK / "heads"
    folder.mkdir(parents=True, exist_ok=True)
    config, module, binary = (folder / f"{name}{end}" for end in (".json", ".mlir", ".bin"))
    config.write_text(json.dumps({key: value for key, value in {**CONFIG, **changes}.items() if value is not None}))
    common.succeed([common.DYNA_TRANSLATE, "--from-config", config, "-o", module])
    common.succeed([common.DYNAC, module, "-o", binary, "--compute-type=f64", "--isa=avx2", *flags])
    return binary


def read(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["shape"], array.array("d", content[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]))
            for name, entry in header.items()}


def write(path, tensors):
    header, offset = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [offset, offset + 8 * len(values)]}
        offset += 8 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for _, values in tensors.values()))


def with_more_heads(name, shape, values):
    """As GPT-2 stores it: [in, out], and the columns of queries, keys and values one behind the other."""
    own, more = HEADS * SIZE, MORE * SIZE
    if ".attn.c_attn." in name:
        columns = shape[-1]
        assert columns == 3 * own
        wider = array.array("d")
        for row in range(len(values) // columns):
            for part in range(3):
                wider.extend(values[row * columns + part * own:row * columns + (part + 1) * own])
                wider.extend([0.0] * more)
        return [*shape[:-1], 3 * (own + more)], wider
    if name.endswith(".attn.c_proj.weight"):
        assert shape == [own, WIDTH]
        return [own + more, WIDTH], values + array.array("d", [0.0] * (more * WIDTH))
    return shape, values


class HeadsTest(common.BinaryTest):
    def run_steps(self, binary, start, name, *flags):
        """Losses and gradient norms, and the parameters at the end."""
        stem = self.folder / name
        common.succeed([binary, "--load", start, "--data", self.corpus, f"--steps={STEPS}", "--tokens-per-batch=400", "--lr=1e-2",
                        "--seed=3", "--threads=1", "--no-progress", "--tokens-per-micro-batch=80", f"--save={stem}",
                        f"--metrics={stem}.jsonl", *flags])
        numbers = [(line["loss"], line["gradient_norm"]) for line in common.lines_of(f"{stem}.jsonl")]
        return numbers, read(stem / f"step-{STEPS}" / "model.safetensors")

    def assert_same(self, one, other, what):
        self.assertEqual(len(one[0]), STEPS)
        for a, b in zip(one[0], other[0], strict=True):
            for x, y in zip(a, b, strict=True):
                self.assertLessEqual(abs(x - y), strategies.TOLERANCE * abs(x), what)
        self.assertEqual(set(one[1]), set(other[1]))
        for name, (shape, values) in one[1].items():
            self.assertEqual(shape, other[1][name][0], name)
            largest = max(abs(x - y) for x, y in zip(values, other[1][name][1], strict=True))
            self.assertTrue(math.isfinite(largest))
            self.assertLessEqual(largest, strategies.TOLERANCE, f"{name}, {what}")

    def test_heads_of_any_size(self):
        narrow = compiled("narrow", f"--strategies={STRATEGIES}")
        whole = compiled("whole", n_head=HEADS + MORE, head_dim=None)
        facts = common.described(narrow)["facts"]
        self.assertEqual((facts["width"], facts["heads"], facts["head_dim"]), (WIDTH, HEADS, SIZE))

        first = self.train(narrow, "first", steps=1) / "step-1"
        wider = self.folder / "wider"
        wider.mkdir()
        tensors = read(first / "model.safetensors")
        write(wider / "model.safetensors", {name: with_more_heads(name, *tensor) for name, tensor in tensors.items()})
        config = json.loads((first / "config.json").read_text())
        self.assertEqual(config.pop("head_dim"), SIZE)
        (wider / "config.json").write_text(json.dumps({**config, "n_head": HEADS + MORE}))

        one = self.run_steps(narrow, first, "one")
        numbers, parameters = self.run_steps(whole, wider, "whole")
        padded = {name: with_more_heads(name, *tensor) for name, tensor in one[1].items()}
        self.assertGreater(sum(1 for name in padded if padded[name][0] != one[1][name][0]), 0)
        self.assert_same((one[0], padded), (numbers, parameters), "with two heads of zeros")
        # It is no accident of a model that does not learn.
        self.assertLess(one[0][-1][0], one[0][0][0])

        for strategy in ("pp=2", "pp=3", "tp=3", "tp=3,sp=1", "dp=2,pp=2,zero=1", "tp=3,pp=2"):
            with self.subTest(strategy=strategy):
                other = self.run_steps(narrow, first, strategy.replace(",", "-"), f"--strategy={strategy}")
                self.assert_same(one, other, strategy)

    def test_another_size_is_another_model(self):
        narrow, whole = compiled("narrow", f"--strategies={STRATEGIES}"), compiled("whole", n_head=HEADS + MORE, head_dim=None)
        first = self.train(narrow, "first", steps=1) / "step-1"
        done = common.run([whole, "--load", first, "--data", self.corpus, "--steps=1", "--no-progress"])
        self.assert_refused(done, "c_attn", "36")


if __name__ == "__main__":
    common.main()
