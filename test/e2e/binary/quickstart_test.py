#!/usr/bin/env python3
# Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/quickstart.sh on the build that is there: what it makes, and where."""

import json
import os
import pathlib

import common

SCRIPT = pathlib.Path(os.environ["DYNA_SOURCE"]) / "tools" / "quickstart.sh"
BUILD = os.environ["DYNA_BUILD"]


class QuickstartTest(common.BinaryTest):
    def quickstart(self, *arguments):
        return common.run([SCRIPT, "--no-build", "--build-dir", BUILD, *arguments], cwd=self.folder)

    def test_trains_on_relative_paths(self):
        common.corpus(self.folder / "my corpus")
        (self.folder / "model.json").write_text(json.dumps(common.GPT2))
        done = self.quickstart("--data", "my corpus", "--steps=2", "--model", "model.json", "--out=made/here")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        for word in ("training loss", "held-out bits per byte", "tokens/s", "peak memory", "trace"):
            self.assertIn(word, done.stdout)
        [run] = (self.folder / "made" / "here").iterdir()
        self.assertEqual(len(common.losses(run / "metrics.jsonl")), 2)
        self.assertTrue((run / "checkpoints" / "step-2" / "model.safetensors").exists())
        self.assertTrue(json.loads((run / "trace.json").read_text()))
        self.assertTrue((run / "train").exists())
        # Several sources, each as it stands where the user is.
        common.corpus(self.folder / "other", seed=2)
        done = self.quickstart("--data", "my corpus,other", "--steps", "1", "--model", "model.json", "--out", "second")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_refuses_what_is_not_there(self):
        for arguments, word in ((["--data", "nowhere"], "nowhere"), (["--model", "none.json"], "none.json"),
                                (["--steps", "0"], "'0'"), (["--stepps", "3"], "--stepps"), (["--data"], "--data")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.quickstart(*arguments), word)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    common.main()
