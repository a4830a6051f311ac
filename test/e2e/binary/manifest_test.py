#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a binary says of itself and of its runs."""

import json
import math

import common


class ManifestTest(common.BinaryTest):
    def test_facts_of_a_gpt2(self):
        manifest = common.described(common.binary("gpt2", "f32"))
        self.assertEqual(manifest["format"], 1)
        self.assertEqual(manifest["compute_type"], "F32")
        self.assertEqual(manifest["matmul"], "library")
        facts = manifest["facts"]
        config = json.loads(facts.pop("config_json"))
        defaults = json.loads(facts.pop("config_defaults"))
        self.assertEqual(defaults, {"vocab_size": 50257, "bos_token_id": 50256, "eos_token_id": 50256})
        self.assertEqual(facts.pop("stored_prefix"), "transformer.")
        self.assertEqual(facts.pop("skipped_buffers"), [".attn.bias", ".attn.masked_bias"])
        self.assertEqual(facts, {"family": "gpt2", "vocabulary": 257, "positions": 64, "width": 32, "heads": 2, "kv_heads": 2,
                                 "head_dim": 16, "feed_forward": 128, "loss_weights": []})
        for key, value in common.GPT2.items():
            self.assertEqual(config[key], value, key)
        shapes = {entry["name"]: entry["shape"] for entry in manifest["parameters"]}
        self.assertEqual(shapes["wte"], [257, 32])
        self.assertEqual(shapes["wpe"], [64, 32])
        stored = {entry["name"]: entry["stored"] for entry in manifest["parameters"]}
        self.assertEqual(stored["wte"], {"name": "transformer.wte.weight", "part": 0, "parts": 1, "transposed": False,
                                         "copy": "lm_head.weight"})
        self.assertEqual(stored["h.1.attn.v.weight"], {"name": "transformer.h.1.attn.c_attn.weight", "part": 2, "parts": 3,
                                                       "transposed": True, "copy": ""})
        self.assertEqual(shapes["h.1.mlp.fc.weight"], [128, 32])
        block = 4 * (32 * 32 + 32) + 2 * 32 * 128 + 128 + 32 + 4 * 32
        self.assertEqual(sum(math.prod(shape) for shape in shapes.values()), 257 * 32 + 64 * 32 + 2 * block + 64)
        self.assertEqual([manifest["kinds"][layer["kind"]]["name"] for layer in manifest["layers"]],
                         ["embed", "block", "block", "head"])
        kinds = {kind["name"]: kind for kind in manifest["kinds"]}
        # Two per multiply and add: q, k, v, proj, and the two of the feed-forward.
        self.assertEqual(kinds["block"]["flops_per_token"], 2 * (4 * 32 * 32 + 2 * 32 * 128))
        self.assertEqual(kinds["head"]["flops_per_target"], 2 * 32 * 257)
        # Scores and their product with the values, over all heads.
        self.assertEqual(kinds["block"]["attention_flops_per_pair"], 2 * 2 * 32)
        self.assertTrue(kinds["block"]["causal"])

    def test_facts_of_a_llama(self):
        manifest = common.described(common.binary("llama", "bf16"))
        self.assertEqual(manifest["compute_type"], "BF16")
        facts = manifest["facts"]
        facts.pop("config_json")
        self.assertEqual(json.loads(facts.pop("config_defaults")),
                         {"vocab_size": 32000, "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000})
        self.assertEqual(facts.pop("stored_prefix"), "")
        self.assertEqual(facts.pop("skipped_buffers"), [".rotary_emb.inv_freq"])
        self.assertEqual(facts, {"family": "llama", "vocabulary": 257, "positions": 64, "width": 32, "heads": 4, "kv_heads": 2,
                                 "head_dim": 8, "feed_forward": 48, "loss_weights": []})
        kinds = {kind["name"]: kind for kind in manifest["kinds"]}
        self.assertEqual(kinds["block"]["flops_per_token"], 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48))
        self.assertIn("cast", kinds["block"]["roles"])

    def test_f64_products_are_generated(self):
        manifest = common.described(common.binary("gpt2", "f64"))
        self.assertEqual((manifest["compute_type"], manifest["matmul"]), ("F64", "generated"))
        self.assertNotIn("cast", manifest["kinds"][1]["roles"])

    def test_tensor_degrees(self):
        program = self.folder / "program"
        common.succeed([common.DYNAC, common.model("gpt2"), "-o", program, "--isa=avx2",
                        "--strategies=a: dp=2,tp=2; b: tp=2,sp=1; c: dp=4,zero=1"])
        manifest = common.described(program)
        self.assertEqual(manifest["strategies"], ["a: dp=2,tp=2,pp=1", "b: dp=1,tp=2,pp=1,sp=1", "c: dp=4,tp=1,pp=1,zero=1"])
        self.assertEqual([(degree["tp"], degree["sp"]) for degree in manifest["degrees"]], [(2, False), (2, True)])
        for degree, suffix in zip(manifest["degrees"], (".tp2", ".tp2.sp")):
            self.assertEqual([kind["name"] for kind in degree["kinds"]], [kind["name"] + suffix for kind in manifest["kinds"]])
            block = degree["kinds"][manifest["layers"][1]["kind"]]
            shapes = [parameter["shape"] for parameter in block["parameters"]]
            whole = [manifest["parameters"][p]["shape"] for p in manifest["layers"][1]["parameters"]]
            for split, part, shape in zip(block["splits"], shapes, whole, strict=True):
                expected = list(shape)
                if split["parts"]:
                    self.assertEqual(split["parts"], [{"stride": 1, "size": 2}])
                    expected[split["dim"]] //= 2
                self.assertEqual(part, expected)
            # Norms are whole on every rank; under sp each rank sees its own tokens.
            norm = block["splits"][whole.index([32])]
            self.assertEqual(norm["parts"], [])
            self.assertEqual(norm["gradient_partial"], [{"stride": 1, "size": 2}] if degree["sp"] else [])
            self.assertEqual(block["inputs"][0]["rows"], "TQ_PART" if degree["sp"] else "TQ")
            # Half of the matrix products, of the two halves of the kind for one rank.
            self.assertEqual(2 * block["flops_per_token"], manifest["kinds"][manifest["layers"][1]["kind"]]["flops_per_token"])
        # 257 rows of the vocabulary on two ranks.
        self.assertEqual(manifest["degrees"][0]["kinds"][0]["parameters"][0]["shape"], [129, 32])

    def test_strategies_that_cannot_be(self):
        for strategies, words in ((("tp=3",), ("2 heads", "tp=3")), (("a: tp=2; a: dp=2",), ("'a'",)), (("a: tp",), ("key=value",)),
                                  (("a: xp=2",), ("'xp'", "dp, tp, pp"))):
            done = common.run([common.DYNAC, common.model("gpt2"), "-o", self.folder / "no", f"--strategies={strategies[0]}"])
            self.assertEqual(done.returncode, 2, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertFalse((self.folder / "no").exists())

    def test_the_table_names_parameters_and_memory(self):
        table = common.succeed([common.binary("gpt2", "f32"), "--describe"])
        for word in ("gpt2", "vocabulary 257", "h.0.attn.q.weight", "block"):
            self.assertIn(word, table)

    def test_the_same_module_gives_the_same_binary(self):
        programs = [self.folder / name for name in ("one", "other")]
        for program in programs:
            common.succeed([common.DYNAC, common.model(), "-o", program])
        self.assertEqual(programs[0].read_bytes(), programs[1].read_bytes())

    def test_bits_per_byte(self):
        program = common.binary("gpt2", "f32")
        stem = self.train(program, "run", steps=8)
        metrics = self.folder / "evaluation.jsonl"
        out = common.succeed([program, "--evaluate", "--load", stem, "--data", self.corpus, f"--metrics={metrics}", "--no-progress"])
        self.assertIn("bits per byte", out)
        line = json.loads(metrics.read_text())
        # Every document ends with one token that is no byte, and is predicted too.
        size = sum(len(path.read_bytes()) for path in self.corpus.iterdir())
        self.assertGreater(line["targets"], 0)
        self.assertGreaterEqual(line["bits_per_byte"], line["loss"] / math.log(2))
        self.assertLess(line["bits_per_byte"], 9)
        bytes_ = line["loss"] * line["targets"] / math.log(2) / line["bits_per_byte"]
        self.assertAlmostEqual(bytes_, round(bytes_), delta=1e-6 * bytes_)
        self.assertLessEqual(bytes_, size)

    def test_other_vocabularies_report_none(self):
        program = common.binary("gpt2", "f32", (), (("vocab_size", 300),))
        out = common.succeed([program, "--evaluate", "--data", "synthetic:equal=20:documents=5", "--no-progress"])
        self.assertNotIn("bits per byte", out)
        # Nor do they read text: its bytes would be the ids of other tokens.
        self.assert_refused(common.run(common.training(program, self.corpus)), self.corpus, "300", "257", ".idx")


if __name__ == "__main__":
    common.main()
