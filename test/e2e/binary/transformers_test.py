#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints load in HuggingFace transformers, and its models have the loss that ours have.

VARIANTS has a row for each kind of model that `dyna-translate --from-config` accepts. It was run with transformers 4.57
and 5. Another version that lies in a folder, as `pip install --target` makes it, is taken by PYTHONPATH.
"""

import json
import shutil
import unittest

import common

try:
    import torch
    import transformers
except ImportError:
    torch = None

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}

# Family, what differs from common.CONFIGS, flags of the run.
VARIANTS = {
    "gpt2": ("gpt2", {}, []),
    "gpt2-shards": ("gpt2", {}, ["--max-shard-size=20KiB"]),
    "gpt2-untied": ("gpt2", {"tie_word_embeddings": False}, []),
    "gpt2-untied-shards": ("gpt2", {"tie_word_embeddings": False}, ["--max-shard-size=40KiB"]),
    "gpt2-inner": ("gpt2", {"n_inner": 40, "layer_norm_epsilon": 1e-3}, []),
    "gpt2-nulls": ("gpt2", {"n_inner": None, "tie_word_embeddings": None, "activation_function": None,
                            "layer_norm_epsilon": None, "scale_attn_weights": None, "bos_token_id": None}, []),
    "gpt2-tokens": ("gpt2", {"bos_token_id": 50256, "eos_token_id": 50256}, []),
    **{f"gpt2-{name}": ("gpt2", {"activation_function": name}, [])
       for name in ("gelu", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu")},
    "llama": ("llama", {}, []),
    "llama-shards": ("llama", {}, ["--max-shard-size=20KiB"]),
    "llama-tied": ("llama", {"tie_word_embeddings": True}, []),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}, []),
    "llama-heads": ("llama", {"head_dim": 12, "num_key_value_heads": 1}, []),
    "llama-gelu": ("llama", {"hidden_act": "gelu", "rms_norm_eps": 1e-3}, []),
    "llama-nulls": ("llama", {"tie_word_embeddings": None, "attention_bias": None, "hidden_act": None, "head_dim": None,
                              "num_key_value_heads": None, "rope_scaling": None, "rope_theta": None,
                              "rms_norm_eps": None}, []),
    "llama-tokens": ("llama", {"bos_token_id": 128000, "eos_token_id": [128001, 128009]}, []),
    "llama-theta": ("llama", {"rope_theta": 50.0}, []),
    "llama-parameters": ("llama", {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}},
                         []),
    "llama-linear": ("llama", {"rope_scaling": {"type": "linear", "factor": 2.5}}, []),
    "llama-linear-parameters": ("llama", {"rope_theta": None, "rope_parameters": {"rope_type": "linear", "factor": 2.5,
                                                                                  "rope_theta": 50.0}}, []),
    "llama-llama3": ("llama", {"rope_scaling": LLAMA3}, []),
    "llama-llama3-parameters": ("llama", {"rope_theta": 500.0, "rope_parameters": {**LLAMA3, "rope_theta": 500.0}}, []),
}


@unittest.skipUnless(torch, "no transformers and torch here")
class TransformersTest(common.BinaryTest):
    def evaluate(self, program, model, data):
        """Loss and number of targets of our own evaluation."""
        metrics = self.folder / "evaluation.jsonl"
        common.succeed([program, "--evaluate", "--load", model, "--data", data, "--no-progress", f"--metrics={metrics}"])
        line = json.loads(metrics.read_text())
        return line["loss"], line["targets"]

    def load(self, path, tokens):
        """The loss of transformers' model of a checkpoint that must fit without a remark, and the model."""
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, output_loading_info=True)
        self.assertEqual({key: list(value) for key, value in report.items() if value}, {})
        with torch.no_grad():
            return model.eval()(tokens, labels=tokens).loss.item(), model

    def program(self, name, family, changes):
        """The binary of a configuration, whose values may be lists."""
        source = common.WORK / f"{name}.json"
        source.write_text(json.dumps({**common.CONFIGS[family], **changes}))
        module = source.with_suffix(".mlir")
        common.succeed([common.DYNA_TRANSLATE, "--from-config", source, "-o", module])
        path = source.with_suffix("")
        common.succeed([common.DYNAC, module, "-o", path, "--compute-type=f32", "-O0"])
        return path

    def test_models_have_the_same_loss(self):
        text = self.folder / "text.txt"
        text.write_text("the ragged micro batch learns a token of text")
        # A text is its bytes and the token that ends a document.
        tokens = torch.tensor([[*text.read_bytes(), 256]])
        print("transformers", transformers.__version__)
        for name, (family, changes, flags) in VARIANTS.items():
            with self.subTest(model=name):
                program = self.program(name, family, changes)
                step = self.train(program, name, *flags, steps=12) / "step-12"
                self.assertEqual((step / "model.safetensors.index.json").exists(), "shards" in name)
                ours, targets = self.evaluate(program, step, text)
                theirs, model = self.load(step, tokens)
                print(f"{name}: {ours:.6f} here, {theirs:.6f} there, {targets} targets")
                self.assertEqual(targets, tokens.shape[1] - 1)
                # Both compute in f32, in other orders.
                self.assertLess(abs(ours - theirs), 1e-5)
                # And back: what transformers saves, a run starts from, and a model is made from its configuration.
                saved = self.folder / f"{name}-theirs"
                model.save_pretrained(saved)
                back, _ = self.evaluate(program, saved, text)
                self.assertEqual(back, ours)
                module = self.folder / f"{name}.mlir"
                common.succeed([common.DYNA_TRANSLATE, "--from-config", saved / "config.json", "-o", module])
                self.assertEqual(self.layers(module), self.layers(common.WORK / f"{name}.mlir"))
                shutil.rmtree(saved)

    @staticmethod
    def layers(module):
        """The lines of a module but that of its facts, which keeps the configuration as it was written."""
        return [line for line in module.read_text().splitlines() if "facts<" not in line]


if __name__ == "__main__":
    common.main()
