#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of tensors are data of a module: whoever wrote them there, checkpoints have them."""

import hashlib
import re

import common

STORED = re.compile(r" stored<[^>]*>")


class StoredTest(common.BinaryTest):
    def compile(self, name, text):
        source = self.folder / f"{name}.mlir"
        source.write_text(text)
        program = self.folder / name
        common.succeed([common.DYNAC, source, "-o", program, "-O0", "--compute-type=f32"])
        return program

    def save(self, program, *flags):
        """Trains two steps, and returns the folder of the checkpoint."""
        out = self.folder / f"{program.name}-saved"
        common.succeed(common.training(program, self.corpus, f"--save={out}", *flags, steps=2))
        return out / "step-2"

    def digests(self, folder, names=("model.safetensors", "config.json", "optimizer.safetensors")):
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}

    def test_modules_that_say_nothing_get_the_names_of_their_family(self):
        for family, ours, theirs in (("gpt2", "h.0.attn.k.weight", "transformer.h.0.attn.c_attn.weight"),
                                     ("llama", "layers.0.attn.k.weight", "model.layers.0.self_attn.k_proj.weight")):
            text = common.model(family).read_text()
            bare = re.sub(r', (prefix|defaults) = "(\\.|[^"\\])*"|, buffers = \[[^]]*\]', "", STORED.sub("", text))
            self.assertNotEqual(text, bare)
            self.assertNotIn("buffers", bare)
            self.assertNotIn("prefix", bare)
            said = self.save(common.binary(family, "f32"))
            names = common.tensors(said / "model.safetensors")
            self.assertIn(theirs, names)
            self.assertNotIn(ours, names)
            # Not even the text of the model decides, only what it computes.
            unsaid = self.save(self.compile(f"{family}-unsaid", bare))
            self.assertEqual(self.digests(said), self.digests(unsaid), family)
            self.assertEqual(common.described(self.folder / f"{family}-unsaid")["hash"],
                             common.described(common.binary(family, "f32"))["hash"])

    def test_a_model_of_no_family_has_names_too(self):
        text = common.model("gpt2").read_text().replace('family = "gpt2"', 'family = "custom"')
        text = re.sub(r'config = "(\\.|[^"\\])*"', 'config = ""', text)
        own = self.save(self.compile("own", STORED.sub("", text)))
        self.assertIn("h.0.attn.k.weight", common.tensors(own / "model.safetensors"))
        program = self.compile("named", text)
        named = self.save(program)
        family = self.save(common.binary("gpt2", "f32"))
        self.assertEqual(self.digests(named, ["model.safetensors"]), self.digests(family, ["model.safetensors"]))
        # And it reads what it writes, on its own and from the family.
        for folder in (named, family):
            common.succeed(common.training(program, self.corpus, f"--load={folder}", steps=1))
        refused = common.run(common.training(program, self.corpus, f"--load={own}", steps=1))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("has no tensor wte.weight, which this model needs", refused.stderr)


if __name__ == "__main__":
    common.main()
