# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of compiled binaries share: tools, tiny models, runs, files.

The tools come by environment variables, which CMake sets: DYNA_DYNAC, DYNA_OPT,
DYNA_TRANSLATE, and DYNA_WORK, a folder that a test script has for itself.
"""

import errno
import functools
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time
import unittest

import shared_binaries

sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / folder) for folder in ("", "tools/Inputs")]
import nesting  # noqa: E402
from patience import PATIENCE, measured  # noqa: E402, F401

DYNAC = os.environ["DYNA_DYNAC"]
DYNA_OPT = os.environ["DYNA_OPT"]
DYNA_TRANSLATE = os.environ["DYNA_TRANSLATE"]
WORK = pathlib.Path(os.environ["DYNA_WORK"])
# The sanitizers of this build ("thread", "address,undefined"), or nothing.
SANITIZERS = os.environ.get("DYNA_SANITIZE", "")

GPT2 = {"model_type": "gpt2", "vocab_size": 257, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2,
        "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0}
LLAMA = {"model_type": "llama", "vocab_size": 257, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0, "max_position_embeddings": 64}
CONFIGS = {"gpt2": GPT2, "llama": LLAMA}


def run(command, **options):
    """Runs a command; the caller looks at the exit code.

    A binary that was just written may be busy for a moment, while another thread forks a process.
    """
    for left in reversed(range(100)):
        try:
            return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=PATIENCE, **options)
        except OSError as error:
            if error.errno != errno.ETXTBSY or left == 0:
                raise
            time.sleep(0.1)


def succeed(command, **options):
    """Runs a command that must succeed and returns what it printed."""
    done = run(command, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr}{done.stdout}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def missing_libraries(libraries):
    """What dynac says if it lacks an optional library of `--with=libraries`, else nothing. It looks for them before the model."""
    said = run([DYNAC, f"--with={libraries}", "-o", WORK / "none", WORK / "no-model.mlir"]).stderr
    if "this build of Dyna has" in said:
        return said
    if "cannot open input file" not in said:
        raise AssertionError(f"--with={libraries}: {said}")
    return ""


@functools.lru_cache(maxsize=None)
def model(name="gpt2", **changes):
    """Writes the module of a family, with some configuration changed; returns its path."""
    label = "-".join([name, *(f"{key}={value}" for key, value in sorted(changes.items()))])
    path = WORK / "models" / f"{label}.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    config = path.with_suffix(".json")
    config.write_text(json.dumps({**CONFIGS[name], **changes}))
    succeed([DYNA_TRANSLATE, "--from-config", config, "-o", path])
    return path


@functools.lru_cache(maxsize=None)
def binary(name="gpt2", compute_type="f32", flags=(), changes=()):
    """Compiles a model once; returns the path of the script's training binary.

    What LLVM makes of its code is tried elsewhere (test/reference, golden runs): unless flags say how far, it is not
    optimised, which takes a third of the time.
    """
    if not any(flag.startswith("-O") for flag in flags):
        flags = (*flags, "-O0")
    source = model(name, **dict(changes))
    path = WORK / "binaries" / "-".join([source.stem, compute_type, *(flag.strip("-") for flag in flags)])
    path.parent.mkdir(parents=True, exist_ok=True)
    return shared_binaries.compile_binary(DYNAC, source, path, [f"--compute-type={compute_type}", *flags])


def trace_events(path):
    """Reads a trace and returns its events; fails if Perfetto drops a slice."""
    return nesting.events_of(path)


# Where a kind of layer lists its functions and its saved tiers (runtime/abi/Abi.h).
ROLES = ("evaluate", "forward", "recompute_selective", "recompute_full", "backward", "backward_input", "backward_weight",
         "update", "grad_norm", "cast")
TIERS = ("saved_input", "products", "elementwise", "deferred")


def described(program):
    """What a binary says of itself; the JSON of protocol buffers writes 64-bit numbers as strings."""
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [plain(entry) for entry in value]
        return int(value) if isinstance(value, str) and value.isdigit() else value
    manifest = plain(json.loads(succeed([program, "--describe=json"])))
    for kind in [kind for holder in (manifest, *manifest["degrees"]) for kind in holder["kinds"]]:
        kind["roles"] = {role: entry for role, entry in zip(ROLES, kind["roles"], strict=True) if entry["present"]}
        kind["tiers"] = dict(zip(TIERS, kind["tiers"], strict=True))
    return manifest


def corpus(folder, documents=24, seed=1):
    """A directory of small documents of very different lengths."""
    generator = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    words = ["the", "ragged", "micro", "batch", "learns", "a", "token", "of", "text", "\u00e9t\u00e9", "\n"]
    for i in range(documents):
        length = 1 + int(generator.paretovariate(0.7)) % 40
        text = " ".join(generator.choice(words) for _ in range(length))
        (folder / f"document-{i}.txt").write_text(text, encoding="utf-8")
    return folder


def training(program, data, *flags, steps=4):
    """The command line of a small training run."""
    return [program, "--data", data, f"--steps={steps}", "--tokens-per-batch=400", "--lr=1e-2", "--seed=3",
            "--threads=2", "--no-progress", *flags]


def lines_of(metrics):
    """The JSON lines of a metrics file that are steps."""
    lines = [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()]
    return [line for line in lines if "held_out" not in line]


def losses(metrics):
    return [line["loss"] for line in lines_of(metrics)]


def tensors(path):
    """The tensors of a safetensors file, as lists of numbers."""
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    letters = {"F64": "d", "F32": "f"}
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = content[8 + size + begin:8 + size + end]
        letter = letters[entry["dtype"]]
        result[name] = struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)
    return result


def largest_difference(one, other):
    """The largest difference of two safetensors files of the same tensors."""
    one, other = tensors(one), tensors(other)
    if set(one) != set(other):
        raise AssertionError(f"other tensors: {sorted(set(one) ^ set(other))}")
    return max(abs(a - b) for name in one for a, b in zip(one[name], other[name]))


class BinaryTest(unittest.TestCase):
    """A test with a folder of its own and one corpus for the script."""

    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.corpus = corpus(WORK / "corpus")

    def setUp(self):
        self.folder = WORK / self.id().split(".")[-1]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def train(self, program, name, *flags, steps=4, data=None):
        """Trains with metrics and a checkpoint; returns their paths' stem."""
        stem = self.folder / name
        succeed(training(program, data or self.corpus, f"--metrics={stem}.jsonl", f"--save={stem}", *flags, steps=steps))
        return stem

    def assert_refused(self, done, *words, code=(2,)):
        """Exactly one line on stderr (notes and warnings apart), saying all of `words`."""
        self.assertIn(done.returncode, code, done.stderr + done.stdout)
        said = [line for line in done.stderr.splitlines() if not line.startswith(("note: ", "warning: "))]
        self.assertEqual(len(said), 1, done.stderr)
        for word in words:
            self.assertIn(str(word), said[0])


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main(module="__main__", verbosity=2)
