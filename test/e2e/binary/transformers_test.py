#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints load in HuggingFace transformers, and its models have the loss that ours have."""

import json
import unittest

import common

try:
    import torch
    import transformers
except ImportError:
    torch = None


@unittest.skipUnless(torch, "no transformers and torch here")
class TransformersTest(common.BinaryTest):
    def evaluate(self, program, model, data):
        """Loss and number of targets of our own evaluation."""
        metrics = self.folder / "evaluation.jsonl"
        common.succeed([program, "--evaluate", "--load", model, "--data", data, "--no-progress", f"--metrics={metrics}"])
        line = json.loads(metrics.read_text())
        return line["loss"], line["targets"]

    def test_models_have_the_same_loss(self):
        text = self.folder / "text.txt"
        text.write_text("the ragged micro batch learns a token of text")
        # A text is its bytes and the token that ends a document.
        tokens = torch.tensor([[*text.read_bytes(), 256]])
        for name in ("gpt2", "llama"):
            with self.subTest(model=name):
                program = common.binary(name)
                step = self.train(program, name, steps=30) / "step-30"
                ours, targets = self.evaluate(program, step, text)
                model, report = transformers.AutoModelForCausalLM.from_pretrained(
                    step, dtype=torch.float32, output_loading_info=True)
                self.assertEqual({key: list(value) for key, value in report.items() if value}, {})
                with torch.no_grad():
                    theirs = model.eval()(tokens, labels=tokens).loss.item()
                print(f"{name}: {ours:.6f} here, {theirs:.6f} there, {targets} targets")
                self.assertEqual(targets, tokens.shape[1] - 1)
                # Both compute in f32, in other orders.
                self.assertLess(abs(ours - theirs), 1e-5)
                # And back: what transformers saves, a run starts from.
                model.save_pretrained(self.folder / f"{name}-theirs")
                back, _ = self.evaluate(program, self.folder / f"{name}-theirs", text)
                self.assertEqual(back, ours)


if __name__ == "__main__":
    common.main()
