#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad input to what plans: costs, devices, links, lengths and limits, of a training binary and of dyna-plan; and what is
odd, but no mistake: fewer samples than replicas, an epoch that ends with a mini-batch."""

import json
import pathlib
import random

import common

DYNA_PLAN = pathlib.Path(common.DYNAC).parent / "dyna-plan"
GOOD = "".join(f'entries {{ kind: "{kind}" direction: {direction} points {{ tokens: 4096 seconds: 0.5 }} }}\n'
               for kind in ("embed", "block", "head") for direction in ("FORWARD", "BACKWARD"))
DEVICE = 'device {{ name: "d" f64_flops: 1e12 f32_flops: {} bf16_flops: 1e12 bytes_per_second: 1e11 }}\n'


def entry(point, kind="block", direction="UPDATE", head=""):
    return f'{GOOD}entries {{ kind: "{kind}" direction: {direction} {head} {point} }}\n'


def point(**numbers):
    return "points { " + " ".join(f"{name}: {value}" for name, value in numbers.items()) + " }"


# Name, text, words of the message.
COSTS = [
    ("negative", entry(point(tokens=64, seconds=-0.25)), ["entry 7 (block tp=1 UPDATE)", "point 1", "-0.25"]),
    ("nan", entry(point(tokens=64, seconds="nan")), ["entry 7", "nan"]),
    ("inf", entry(point(tokens=64, seconds="inf")), ["entry 7", "inf"]),
    ("huge", entry(point(tokens=64, seconds="1e308")), ["entry 7", "1e+308"]),
    ("tokens", entry(point(tokens=-64, seconds=1)), ["entry 7", "tokens expects 0 to", "-64"]),
    ("overflow", entry(point(tokens=99999999999999999999, seconds=1)), ["overflow.costs:7:"]),
    ("hole", entry(""), ["entry 7 (block tp=1 UPDATE)", "has no points"]),
    ("twice", GOOD + GOOD, ["entry 7 (embed tp=1 FORWARD)", "is there twice"]),
    ("contradicting", entry(point(tokens=64, seconds=1) + point(tokens=64, seconds=2)),
     ["points 1 and 2 are of one work (tokens 64, pairs 0, targets 0), with 1 and 2 seconds"]),
    ("kind", entry(point(seconds=1), kind="tail"), ["no kind of layer 'tail'", "embed, block, head"]),
    ("direction", entry(point(seconds=1), direction="SIDEWAYS"), ["direction.costs:7:", "SIDEWAYS"]),
    ("degree", entry(point(seconds=1), head="tp: -2"), ["tp expects 1 or more, but got -2"]),
    ("rate", DEVICE.format("nan"), ["device 'd'", "f32_flops", "nan"]),
    ("standing", DEVICE.format(0), ["device 'd'", "f32_flops", "at least 1", "got 0"]),
    ("link", GOOD + "cluster { nodes: 2 devices_per_node: 1 inside { bytes_per_second: 1e9 } }\n",
     ["cluster: nodes of 1 devices, but between is not said"]),
    ("slow", GOOD + "cluster { inside { bytes_per_second: -1e9 } }\n", ["cluster: inside: bytes_per_second", "-1e+09"]),
    ("late", GOOD + "cluster { inside { latency_seconds: inf bytes_per_second: 1e9 } }\n", ["inside: latency_seconds", "inf"]),
    ("instant", GOOD + "cluster { inside { latency_seconds: 1e-6 } }\n",
     ["cluster: inside: latency_seconds is 1e-06, but bytes_per_second is not said"]),
    ("timeless", entry(point(tokens=0, seconds=1), head="tp: 2", direction="FORWARD"),
     ["entry 7 (block tp=2 FORWARD)", "point 1", "has no tokens"]),
    ("type", GOOD + 'compute_type: "f16"\n', ["compute_type expects f64, f32 or bf16, but got 'f16'"]),
    ("nodes", GOOD + "cluster { nodes: -4 devices_per_node: 8 }\n", ["cluster: nodes expects 0 or more, but got -4"]),
    ("cut", GOOD[:-20], ["cut.costs:6:"]),
    ("junk", random.Random(3).randbytes(3000), ["junk.costs:"]),
    ("nested", "entries { " * 100000, ["nested.costs:"]),
    ("empty", "", ["empty.costs: has no entries and no device"]),
]


class BadPlansTest(common.BinaryTest):
    def setUp(self):
        super().setUp()
        self.program = common.binary()

    def plan(self, *flags):
        """dyna-plan of the same model, in the same type."""
        return common.run([DYNA_PLAN, common.model(), "--compute-type=f32", *flags])

    def test_costs(self):
        for name, text, words in COSTS:
            path = self.folder / f"{name}.costs"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            with self.subTest(costs=name, tool="binary"):
                metrics = self.folder / f"{name}.jsonl"
                done = common.run(common.training(self.program, self.corpus, "--strategy=pp=2", f"--costs={path}",
                                                  f"--metrics={metrics}"))
                self.assert_refused(done, *words)
                self.assertFalse(metrics.exists())
            with self.subTest(costs=name, tool="dyna-plan"):
                self.assert_refused(self.plan("--strategy=pp=2", "--lengths=30,5", f"--costs={path}"), *words)
        for path, words in ((self.folder / "none.costs", ["none.costs", "No such file"]), (self.folder, [self.folder]),
                            ("/dev/zero", ["/dev/zero", "regular file"])):
            with self.subTest(costs=path):
                self.assert_refused(common.run(common.training(self.program, self.corpus, f"--costs={path}")), *words)
                self.assert_refused(self.plan("--lengths=30", f"--costs={path}"), *words)
        # More than costs can be; a file with a hole in it takes no room.
        path = self.folder / "large.costs"
        with open(path, "wb") as file:
            file.truncate(1 << 33)
        self.assert_refused(common.run(common.training(self.program, self.corpus, f"--costs={path}")), "large.costs")
        self.assert_refused(self.plan("--lengths=30", f"--costs={path}"), "large.costs")

    def test_what_costs_lack_is_said(self):
        """An estimate beside measurements is never silent."""
        path = self.folder / "half.costs"
        path.write_text("".join(line + "\n" for line in GOOD.splitlines() if '"head" direction: BACKWARD' not in line))
        done = common.run(common.training(self.program, self.corpus, "--strategy=pp=2", f"--costs={path}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for said in (done, self.plan("--strategy=pp=2", "--lengths=30,5", f"--costs={path}")):
            self.assertIn("it lacks head tp=1 BACKWARD: estimated from flops and bytes of device 'host'", said.stderr)

    def test_devices(self):
        for cluster, *words in (("b200:1x8", "no device 'b200' is described: expects a100-40g, a100-80g"),
                                ("h100:0x8", "h100:0x8"), ("h100:4", "h100:4"), ("h100:-1x8", "h100:-1x8"),
                                ("h100:4x8x2", "h100:4x8x2"), ("h100:9999999999x8", "h100:9999999999x8"), (":1x8", "''"),
                                ("h100:1x1", "the strategy has 2 ranks, but the cluster 1 devices")):
            with self.subTest(cluster=cluster):
                self.assert_refused(self.plan("--lengths=30", "--strategy=pp=2", f"--cluster={cluster}"), *words)

    def test_lengths(self):
        def refuse(text, *words, flags=()):
            with self.subTest(lengths=str(text)[:30]):
                self.assert_refused(self.plan(f"--lengths={text}", *flags), *words)

        for text, word in (("0", "entry 1 of --lengths: a sample of 0 tokens"),
                           ("30,0,5", "entry 2 of --lengths: a sample of 0 tokens"), ("-3", "'-3'"),
                           ("30,-5", "entry 2 of --lengths: expects a number of tokens, but got '-5'"),
                           ("30,,5", "''"), ("30,5,", "''"), ("1e308", "'1e308'"), ("nan", "nan"), ("3.5", "'3.5'"),
                           ("99999999999999999999", "'99999999999999999999'"), ("30;5", "30;5")):
            refuse(text, word)

        def file(name, content):
            path = self.folder / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            return path

        refuse(file("zero", "30\n0\n"), "zero:2: a sample of 0 tokens")
        refuse(file("negative", "30\n-4\n"), "negative:2:", "'-4'")
        refuse(file("first", "-4\n30\n"), "first:1:", "'-4'")
        refuse(file("real", "30\n1e3\n"), "real:2:", "'1e3'")
        refuse(file("columns", "tokens,other\n30,1\n30\n"), "columns:3: expects 2 fields, but has 1")
        refuse(file("name", "a,b\n30,1\n"), "name:1:", "which of the columns a, b")
        refuse(file("name2", "a_tokens,b_tokens\n30,1\n"), "name2:1:", "which of the columns")
        refuse(file("twice", "tokens,tokens\n30,1\n"), "twice:1:", "which of the columns")
        refuse(file("void", ""), "void has no lengths")
        refuse(file("head", "tokens\n"), "head has no lengths")
        refuse(file("junk", random.Random(5).randbytes(3000)), "junk:")
        refuse(file("line", b"3" * 5000000), "line:1:")
        refuse(self.folder, self.folder)
        refuse("/dev/zero", "/dev/zero", "regular file")
        refuse(self.folder / "none", "No such file")
        # Above the model's positions they are cut, as a training run cuts them.
        done = self.plan("--lengths=30,65,1000", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: 2 samples are cut at the model's 64 positions", done.stderr)
        self.assertEqual(json.loads(done.stdout)["tokens"], 30 + 64 + 64)
        # Many are no mistake.
        done = self.plan(f"--lengths={file('many', 200000 * chr(10).join(['', '8', '']))}", "--steps=1", "--tokens-per-batch=1000", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["tokens"], 125 * 8)

    def test_memory_below_what_is_needed(self):
        for strategy in ("dp=1", "pp=2"):
            for kibibytes in (1, 100):
                done = common.run(common.training(self.program, self.corpus, f"--strategy={strategy}", f"--rank-memory={kibibytes}K"))
                self.assert_refused(done, f"a rank may take {kibibytes}.0 KiB, but rank 0 needs", "at least", "for parameters and their state")
        for limit, word in (("0", "'0'"), ("-1GiB", "-1GiB"), ("nan", "nan"), ("inf", "inf"), ("1e308GiB", "1e308GiB"), ("lots", "lots"),
                            ("5 apples", "5 apples")):
            with self.subTest(limit=limit):
                done = common.run(common.training(self.program, self.corpus, f"--rank-memory={limit}"))
                self.assert_refused(done, "--rank-memory", word)

    def test_words_of_plans(self):
        for flag, word in (("--micro-batches=paddded", "padded"), ("--pipeline=2f2b", "1f1b"), ("--recompute=some", "auto"),
                           ("--plan-ahead=65", "'65'"), ("--plan-ahead=-1", "'-1'"), ("--plan-threads=0", "'0'"),
                           ("--store-retry=5", "--store"), ("--plan-only=0/1", "--store"), ("--dump-plans=/proc/no/such", "/proc/no/such"),
                           (f"--dump-plans={self.program}", self.program)):
            with self.subTest(flag=flag):
                self.assert_refused(common.run(common.training(self.program, self.corpus, flag)), word)
        for flag, word in (("--compare=paddded", "'paddded'"), ("--compare=", "''"), ("--recompute=some", "some"), ("--strategy=pp=0", "pp"),
                           ("--strategy=pp=99", "99"), ("--steps=-1", "--steps"), ("--tokens-per-batch=-5", "-5"),
                           ("--tokens-per-micro-batch=-1", "-1"), ("--simulate=noise=nan", "noise=nan"), ("--trace=/proc/no/such", "/proc/no/such"),
                           ("--svg=/proc/no/such", "/proc/no/such")):
            with self.subTest(flag=flag):
                self.assert_refused(self.plan("--lengths=30,5", flag), word)

    def test_models_of_dyna_plan(self):
        junk = self.folder / "junk"
        junk.write_bytes(b"\x7fELF" + random.Random(8).randbytes(500))
        text = self.folder / "model.json"
        text.write_text("{")
        for model, word in ((junk, "junk is no training binary"), (text, "model.json"), (self.folder / "none", "none"), (self.folder, "irectory")):
            with self.subTest(model=model):
                done = common.run([DYNA_PLAN, model, "--lengths=30"])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)

    def test_fewer_samples_than_replicas(self):
        few = self.folder / "few"
        few.mkdir()
        for i, length in enumerate((20, 33)):
            (few / f"{i}.txt").write_text("abcdefgh"[i] * length)
        program = common.binary("gpt2", "f64")
        runs = {strategy: self.train(program, strategy, f"--strategy={strategy}", "--tokens-per-batch=60", "--threads=1", data=few)
                for strategy in ("dp=1", "dp=3", "dp=4,zero=1", "dp=3,pp=2")}
        counts = {line["micro_batches"] for line in common.lines_of(f"{runs['dp=4,zero=1']}.jsonl")}
        self.assertLessEqual(max(counts), 3)
        for strategy, stem in runs.items():
            with self.subTest(strategy=strategy):
                self.assertLess(common.largest_difference(runs["dp=1"] / "step-4/model.safetensors", stem / "step-4/model.safetensors"), 1e-10)
        # dyna-plan: replicas that have nothing to do.
        done = self.plan("--lengths=30", "--strategy=dp=4,pp=2,zero=1", "--compare=ragged,padded,tokens,samples,packed,packed-masked", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)["samples"] for line in done.stdout.splitlines()], 6 * [1])

    def test_an_epoch_that_ends_with_a_mini_batch(self):
        """Evaluation reads one epoch: what would come next is empty, and no mini-batch."""
        even = self.folder / "even"
        even.mkdir()
        for i in range(8):
            (even / f"{i}.txt").write_text("abcdefgh"[i] * 32)
        program = common.binary("gpt2", "f64")
        saved = self.train(program, "saved", data=even)

        def loss(*flags):
            said = common.succeed([program, "--evaluate", "--load", saved, "--data", even, "--threads=1", *flags])
            return [line for line in said.splitlines() if "loss" in line][0].split()

        # 8 samples of 32 tokens, in mini-batches of all, a half, one, and some that are not full.
        expected = loss("--tokens-per-batch=256")
        for tokens in (128, 32, 96, 100, 255, 1000):
            for strategy in ("dp=1", "dp=3", "dp=2,pp=2"):
                with self.subTest(tokens=tokens, strategy=strategy):
                    self.assertEqual(loss(f"--tokens-per-batch={tokens}", f"--strategy={strategy}"), expected)
        # Training goes on with the next epoch, whose samples are the same in another order.
        stem = self.train(program, "epochs", "--tokens-per-batch=256", data=even, steps=3)
        self.assertEqual([line["tokens"] for line in common.lines_of(f"{stem}.jsonl")], 3 * [256])


if __name__ == "__main__":
    common.main()
