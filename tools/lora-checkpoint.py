#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the adapters of a checkpoint as a PEFT directory, or merges them into the model.

    tools/lora-checkpoint.py saved/step-200 --peft adapter/ [--base gpt2]
    tools/lora-checkpoint.py saved/step-200 --merge merged/

The checkpoint is of a model made by `dyna-translate --lora`. --peft writes `adapter_config.json` and
`adapter_model.safetensors`, which `PeftModel.from_pretrained` loads beside the base model; --base names that model in the
configuration. --merge writes `config.json` and `model.safetensors` of the model without adapters, with
W + scaling * B A in place of W. It uses numpy if that is installed, and is slow without for large models.

GPT-2 has query, key and value in one matrix, `c_attn`. Its adapters are joined into one of the sum of their ranks: A is the
one on top of the other, and B has blocks. The product is the same.
"""
import argparse
import array
import json
import pathlib
import struct
import sys

try:
    import numpy
except ImportError:
    numpy = None

CODES = {"F64": "d", "F32": "f"}
NAMES = {
    "llama": {"attn.q": "self_attn.q_proj", "attn.k": "self_attn.k_proj", "attn.v": "self_attn.v_proj",
              "attn.o": "self_attn.o_proj", "mlp.gate": "mlp.gate_proj", "mlp.up": "mlp.up_proj",
              "mlp.down": "mlp.down_proj"},
    "gpt2": {"attn.q": "attn.c_attn", "attn.k": "attn.c_attn", "attn.v": "attn.c_attn", "attn.proj": "attn.c_proj",
             "mlp.fc": "mlp.c_fc", "mlp.proj": "mlp.c_proj"},
}
# Places of the parts of `c_attn`.
PARTS = {"attn.q": 0, "attn.k": 1, "attn.v": 2}


class Mistake(Exception):
    """What is wrong with the input, for people."""


class Tensor:
    """A matrix or vector of a file: its type, shape and bytes."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data

    def rows(self):
        """Rows as lists of numbers."""
        if self.dtype not in CODES:
            raise Mistake(f"adapters are expected in F32 or F64, but this checkpoint has {self.dtype}")
        values = array.array(CODES[self.dtype], self.data)
        width = self.shape[1]
        return [values[i * width:(i + 1) * width].tolist() for i in range(self.shape[0])]

    @staticmethod
    def of(dtype, rows):
        data = array.array(CODES[dtype])
        for row in rows:
            data.extend(row)
        return Tensor(dtype, [len(rows), len(rows[0])], data.tobytes())


def read_tensors(path):
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from error
    try:
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        return {name: Tensor(entry["dtype"], entry["shape"],
                             data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
                for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise Mistake(f"{path} is no file of tensors: {error}") from error


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise Mistake(f"{path} is no JSON: {error}") from error


def read_checkpoint(folder):
    """The configuration and all tensors; of a model in shards, those of all files."""
    config = read_json(folder / "config.json")
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return config, read_tensors(folder / "model.safetensors")
    tensors = {}
    for name in sorted(set(read_json(index)["weight_map"].values())):
        tensors.update(read_tensors(folder / name))
    return config, tensors


def write_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in sorted(tensors.items()):
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, at + len(tensor.data)]}
        at += len(tensor.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            file.write(tensor.data)


class Adapters:
    """The adapters of a checkpoint, by the name of the module that has them."""

    def __init__(self, folder):
        self.config, self.tensors = read_checkpoint(folder)
        self.family = self.config.get("model_type")
        if self.family not in NAMES:
            raise Mistake(f"expects a checkpoint of {' or '.join(NAMES)}, but {folder} has the model type {self.family!r}")
        self.scaling = self.config.get("lora_scaling")
        if not isinstance(self.scaling, (int, float)):
            raise Mistake(f"{folder}/config.json has no 'lora_scaling': the model was not made by dyna-translate --lora")
        self.base = {name: tensor for name, tensor in self.tensors.items() if ".lora_" not in name}
        # Module: {linear of Dyna: (A, B)}.
        self.modules = {}
        for name in sorted(self.tensors):
            if name.endswith(".lora_A.weight"):
                self.add(name.removesuffix(".lora_A.weight"))
        if not self.modules:
            raise Mistake(f"{folder} has no adapters")

    def add(self, stem):
        for linear, theirs in NAMES[self.family].items():
            if stem.endswith("." + linear):
                module = stem.removesuffix(linear) + theirs
                pair = tuple(self.tensors.get(f"{stem}.lora_{part}.weight") for part in "AB")
                if f"{module}.weight" not in self.base or None in pair:
                    raise Mistake(f"the checkpoint has {stem}.lora_A.weight, but not {module}.weight or lora_B beside it")
                self.modules.setdefault(module, {})[linear] = pair
                return
        raise Mistake(f"{stem} is no linear of {self.family}")

    def joined(self, module):
        """A and B of a module of PEFT."""
        pairs = self.modules[module]
        if self.family != "gpt2" or not module.endswith("attn.c_attn"):
            return next(iter(pairs.values()))
        dtype = next(iter(pairs.values()))[0].dtype
        width = self.base[f"{module}.weight"].shape[1] // 3
        ranks = {linear: a.shape[0] for linear, (a, _) in pairs.items()}
        rank = sum(ranks.values())
        down, up, before = [], [[0.0] * rank for _ in range(3 * width)], 0
        for linear, (a, b) in pairs.items():
            down += a.rows()
            for i, row in enumerate(b.rows()):
                up[PARTS[linear] * width + i][before:before + ranks[linear]] = row
            before += ranks[linear]
        return Tensor.of(dtype, down), Tensor.of(dtype, up)

    def write_peft(self, folder, base):
        tensors, ranks = {}, {}
        for module in self.modules:
            down, up = self.joined(module)
            ranks[".".join(module.split(".")[-2:])] = down.shape[0]
            tensors[f"base_model.model.{module}.lora_A.weight"] = down
            tensors[f"base_model.model.{module}.lora_B.weight"] = up
        rank = min(ranks.values())
        others = {module: r for module, r in sorted(ranks.items()) if r != rank}
        config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "r": rank,
                  "lora_alpha": self.scaling * rank, "rank_pattern": others,
                  "alpha_pattern": {module: self.scaling * r for module, r in others.items()},
                  "target_modules": sorted(ranks), "lora_dropout": 0.0, "bias": "none",
                  "fan_in_fan_out": self.family == "gpt2", "inference_mode": True, "use_rslora": False}
        write_tensors(folder / "adapter_model.safetensors", tensors)
        (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

    def tell_what_is_left_out(self, folder):
        """Exits train beside adapters, and PEFT has no place for them."""
        exits = [name for name in sorted(self.base) if ".exit." in name]
        if exits:
            print(f"lora-checkpoint: note: {folder} has no exits, which were trained, too: {len(exits)} "
                  f"tensor{'s' if len(exits) > 1 else ''}, the first is {exits[0]}; --merge keeps them", file=sys.stderr)

    def merged(self, module):
        weight = self.base[f"{module}.weight"]
        down, up = self.joined(module)
        # GPT-2 keeps [in, out].
        left, right = (transposed(down), transposed(up)) if self.family == "gpt2" else (up.rows(), down.rows())
        if numpy:
            kind = numpy.dtype(CODES[weight.dtype]).newbyteorder("<")
            sum_ = numpy.frombuffer(weight.data, kind).reshape(weight.shape) + self.scaling * (
                numpy.array(left, "f8") @ numpy.array(right, "f8"))
            return Tensor(weight.dtype, weight.shape, sum_.astype(kind).tobytes())
        columns = list(zip(*right))
        return Tensor.of(weight.dtype, [
            [value + self.scaling * sum(a * b for a, b in zip(row, column)) for value, column in zip(values, columns)]
            for values, row in zip(weight.rows(), left)])

    def write_merged(self, folder):
        tensors = dict(self.base)
        for module in self.modules:
            tensors[f"{module}.weight"] = self.merged(module)
        config = {key: value for key, value in self.config.items() if key != "lora_scaling"}
        write_tensors(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def transposed(tensor):
    return [list(column) for column in zip(*tensor.rows())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path, help="a step that a run saved, as saved/step-200")
    parser.add_argument("--peft", type=pathlib.Path, metavar="DIR", help="new folder for the adapters alone")
    parser.add_argument("--merge", type=pathlib.Path, metavar="DIR", help="new folder for the model with adapters added up")
    parser.add_argument("--base", metavar="NAME", help="name or path of the base model, for --peft")
    options = parser.parse_args()
    try:
        if not options.peft and not options.merge:
            raise Mistake("say what to write: --peft DIR or --merge DIR")
        if options.base and not options.peft:
            raise Mistake("--base goes with --peft")
        adapters = Adapters(options.checkpoint)
        for folder in filter(None, (options.peft, options.merge)):
            try:
                folder.mkdir(parents=True)
            except OSError as error:
                raise Mistake(f"cannot make the folder {folder}: {error.strerror}") from error
        if options.peft:
            adapters.write_peft(options.peft, options.base)
            adapters.tell_what_is_left_out(options.peft)
        if options.merge:
            adapters.write_merged(options.merge)
    except Mistake as mistake:
        print(f"lora-checkpoint: {mistake}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
