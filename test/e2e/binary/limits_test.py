#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of a process, from where a binary cannot start to where it runs: one clear line, no signal."""

import os
import resource
import shutil
import unittest

import common

MIB = 1 << 20
# What the loader ends with, in its own words.
CANNOT_LOAD = 127


@unittest.skipIf(common.SANITIZERS, "sanitizers reserve more addresses than any of these limits allows")
class LimitsTest(common.BinaryTest):
    def limited(self, limit, command, which=resource.RLIMIT_AS):
        return common.run(command, preexec_fn=lambda: resource.setrlimit(which, (limit, limit)))

    def assert_clear(self, done):
        """The run is done, or one line says why it is not."""
        self.assertIn(done.returncode, (0, 2, CANNOT_LOAD), f"{done.stderr}{done.stdout}")
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("note: ", "warning: "))]
        self.assertEqual(len(lines), 1 if done.returncode else 0, done.stderr)
        if done.returncode == CANNOT_LOAD:
            self.assertIn("error while loading shared libraries", done.stderr)
        elif done.returncode:
            self.assertRegex(lines[0], "memory|addresses|thread")
        return done.returncode

    def least(self, command):
        """The lowest limit, up to a MiB, with which the program prints its version."""
        low, high = MIB, 1024 * MIB
        while high - low > MIB // 4:
            middle = (low + high) // 2
            done = self.limited(middle, command)
            self.assert_clear(done)
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high

    def sweep(self, program, strategy, *flags, runs):
        """Codes at limits above what starting takes, of which the last is to be that of a run."""
        command = common.training(program, self.corpus, f"--strategy={strategy}", *flags, steps=2)
        start = self.least([program, "--version"])
        codes = []
        for more in (-2, -1, 0, 1, 3, 6, 9, 12, 15, 18, 21, 25, 30, 40, 50, 58, 66, 75, 90, 110, runs):
            with self.subTest(strategy=strategy, flags=flags, more=more):
                codes.append(self.assert_clear(self.limited(start + more * MIB, command)))
                shutil.rmtree(self.folder / "save", ignore_errors=True)
        self.assertEqual(codes[-1], 0)
        self.assertIn(2, codes)

    def test_addresses(self):
        program = common.binary("gpt2", "f32", ("--strategies=a: dp=2,tp=2",))
        for strategy in ("dp=1", "dp=2", "dp=2,tp=2"):
            for flags in ((), (f"--save={self.folder}/save",)):
                self.sweep(program, strategy, *flags, runs=200)

    def test_addresses_for_the_code_of_products(self):
        self.sweep(common.binary("gpt2", "bf16"), "dp=2", runs=2000)

    def test_writable_memory(self):
        program = common.binary("gpt2", "f32", ("--strategies=a: dp=2,tp=2",))
        command = common.training(program, self.corpus, "--strategy=dp=2", steps=2)
        codes = {self.assert_clear(self.limited(limit * MIB, command, resource.RLIMIT_DATA))
                 for limit in (1, 3, 6, 10, 20, 30, 40, 60, 80, 200)}
        self.assertEqual(codes, {0, 2})

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody who has no other process")
    def test_threads(self):
        program = common.binary("gpt2", "f32", ("--strategies=a: dp=2,tp=2",))
        nobody = 65432  # root has no such limit
        shutil.copytree(self.corpus, self.folder / "corpus")

        def limit(count):
            resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
            os.setresuid(nobody, nobody, nobody)

        if common.run([program, "--version"], preexec_fn=lambda: limit(1)).returncode != 0:
            self.skipTest("others may not enter this folder")
        for strategy, enough in (("dp=1", 2), ("dp=2", 3), ("dp=2,tp=2", 6)):
            command = common.training(program, self.folder / "corpus", f"--strategy={strategy}", steps=1)
            codes = [self.assert_clear(common.run(command, preexec_fn=lambda: limit(count))) for count in range(1, enough + 1)]
            self.assertEqual((codes[0], codes[-1]), (2, 0), strategy)


if __name__ == "__main__":
    common.main()
