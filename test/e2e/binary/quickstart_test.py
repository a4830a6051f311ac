#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/quickstart.sh on the build that is there: what it makes, and where."""

import json
import os
import pathlib
import re

import common

SCRIPT = pathlib.Path(os.environ["DYNA_SOURCE"]) / "tools" / "quickstart.sh"
BUILD = os.environ["DYNA_BUILD"]


class QuickstartTest(common.BinaryTest):
    def quickstart(self, *arguments):
        return common.run([SCRIPT, "--no-build", "--build-dir", BUILD, *arguments], cwd=self.folder)

    def check_pairs(self, run, stdout, steps):
        """Pairs of runs of both kinds, in turn; what is said is the median of the steps that they share."""
        ratios, order = [], []
        for pair in (1, 2, 3):
            plain, padded = (common.lines_of(run / f"{kind}-{pair}.jsonl") for kind in ("plain", "padded"))
            self.assertEqual([step["step"] for step in plain], list(range(1, steps + 1)))
            self.assertEqual([step["tokens"] for step in plain], [step["tokens"] for step in padded])
            self.assertAlmostEqual(plain[0]["loss"], padded[0]["loss"], delta=1e-4)
            ratios += [(b["seconds"] / a["seconds"], a["tokens"]) for a, b in zip(plain[1:], padded[1:])]
            kinds = sorted(("plain", "padded"), key=lambda kind: (run / f"{kind}-{pair}.txt").stat().st_mtime_ns)
            order += [(kind, (run / f"{kind}-{pair}.txt").stat().st_mtime_ns) for kind in kinds]
        self.assertEqual([kind for kind, _ in order], ["plain", "padded", "padded", "plain", "plain", "padded"])
        self.assertEqual([at for _, at in order], sorted(at for _, at in order))
        ratios.sort()
        median = ratios[(len(ratios) - 1) // 2][0]
        padded, plain, ratio, count = re.search(
            r"the same samples +([0-9]+) tokens/s padded, ([0-9]+) tokens/s as they are: ([0-9.]+) times as fast "
            r"\(median of ([0-9]+) steps\)", stdout).groups()
        self.assertEqual(int(count), len(ratios))
        self.assertAlmostEqual(float(ratio), median, delta=0.006)
        self.assertAlmostEqual(int(plain) / int(padded), median, delta=0.01 * median)

    def test_trains_on_relative_paths(self):
        common.corpus(self.folder / "my corpus")
        (self.folder / "model.json").write_text(json.dumps(common.GPT2))
        done = self.quickstart("--data", "my corpus", "--steps=2", "--model", "model.json", "--out=made/here")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        for word in ("training loss", "held-out bits per byte", "tokens/s", "peak memory", "trace", "padding avoided",
                     "times as fast (median of 3 steps)"):
            self.assertIn(word, done.stdout)
        [run] = (self.folder / "made" / "here").iterdir()
        self.assertEqual(len(common.losses(run / "metrics.jsonl")), 2)
        self.assertTrue((run / "checkpoints" / "step-2" / "model.safetensors").exists())
        self.assertTrue(json.loads((run / "trace.json").read_text()))
        self.assertTrue((run / "train").exists())
        self.check_pairs(run, done.stdout, 2)
        # Several sources, each as it stands where the user is.
        common.corpus(self.folder / "other", seed=2)
        done = self.quickstart("--data", "my corpus,other", "--steps", "1", "--model", "model.json", "--out", "second")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_one_text_holds_nothing_out(self):
        (self.folder / "text.md").write_text("a b c d e f g h. " * 3000)
        (self.folder / "model.json").write_text(json.dumps(common.GPT2))
        done = self.quickstart("--data", "text.md", "--steps=2", "--model", "model.json", "--out", "out")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertNotIn("held-out", done.stdout)
        self.assertIn("times as fast", done.stdout)

    def test_learns_what_it_holds_out(self):
        """The whole of it: the data that it brings, the model, the steps that a user gets."""
        done = common.run([SCRIPT, "--no-build", "--build-dir", BUILD, "--out", "out"], cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        [run] = (self.folder / "out").iterdir()
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "held_out" not in line]
        [held_out] = [line["loss"] for line in lines if line.get("held_out") == "end"]
        # The order is that of all samples: what the last steps read is what any text is.
        last = sum(step["loss"] for step in steps[-10:]) / 10
        self.assertLess(abs(last - held_out), 0.1, f"training loss {last}, held out {held_out}")
        self.assertLess(last, 0.6 * steps[0]["loss"])
        # It says what it reads: a real mixture of lengths.
        for pattern in (r"data: [0-9,]+ documents, [0-9,]+ tokens, [0-9,]+ too long and split",
                        r"samples: [0-9,]+ of [0-9,]+ to 1,024 tokens \(half of them up to [0-9,]+, .*\), about [0-9]+ a step",
                        r"held out: [0-9,]+ documents"):
            self.assertRegex(done.stderr, pattern)
        # The first pair has the samples of the run, and so its loss before the first update.
        padded = common.lines_of(run / "padded-1.jsonl")
        self.assertEqual([step["tokens"] for step in padded], [step["tokens"] for step in steps[:len(padded)]])
        self.assertAlmostEqual(padded[0]["loss"], steps[0]["loss"], delta=1e-4)
        self.check_pairs(run, done.stdout, 3)
        avoided = float(re.search(r"padding avoided +([0-9.]+) %", done.stdout).group(1))
        self.assertGreater(avoided, 20)
        self.assertRegex(done.stdout, r"the same samples +[0-9]+ tokens/s padded, [0-9]+ tokens/s as they are: [0-9.]+ times")

    def test_refuses_what_is_not_there(self):
        for arguments, word in ((["--data", "nowhere"], "nowhere"), (["--model", "none.json"], "none.json"),
                                (["--steps", "0"], "'0'"), (["--stepps", "3"], "--stepps"), (["--data"], "--data")):
            with self.subTest(arguments=arguments):
                # By the script, before it makes anything: later a tool would complain of it, with all the rest made.
                self.assert_refused(self.quickstart("--out", "made", *arguments), "quickstart: ", word)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    common.main()
