#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `cmake --install` puts somewhere works from there."""

import json
import os

import common


class InstallTest(common.BinaryTest):
    def test_the_installed_tools_train(self):
        prefix = self.folder / "prefix"
        common.succeed([os.environ["DYNA_CMAKE"], "--install", os.environ["DYNA_BUILD"], "--prefix", prefix])
        tools = prefix / "bin"
        for tool in ("dynac", "dyna-translate", "dyna-opt"):
            self.assertTrue(os.access(tools / tool, os.X_OK), tool)
        # Moved away from where it was put, and with nothing of the build tree in sight.
        moved = self.folder / "elsewhere"
        prefix.rename(moved)
        tools = moved / "bin"
        build = os.environ["DYNA_BUILD"]
        for path in (moved / "lib" / "dyna" / "link-libraries.txt",):
            self.assertNotIn(build, path.read_text())
        config = self.folder / "config.json"
        config.write_text(json.dumps(common.GPT2))
        common.succeed([tools / "dyna-translate", "--gpt2", config, "-o", self.folder / "gpt.mlir"], cwd=self.folder)
        common.succeed([tools / "dyna-opt", "gpt.mlir", "--dyna-differentiate", "-o", "differentiated.mlir"], cwd=self.folder)
        common.succeed([tools / "dynac", "gpt.mlir", "-o", "train-gpt"], cwd=self.folder)
        common.succeed(common.training(self.folder / "train-gpt", self.corpus, f"--metrics={self.folder}/run.jsonl", steps=2))
        self.assertEqual(len(common.losses(self.folder / "run.jsonl")), 2)


if __name__ == "__main__":
    common.main()
