#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training binary stands on its own: no LLVM, no MLIR, no Python, no compiler."""

import os
import pathlib
import re
import unittest

import common

# What a binary may load: C and C++, and oneDNN with what that loads itself.
ALLOWED = {"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libgcc_s", "libstdc++", "libpthread", "libdl", "librt",
           "libdnnl", "libOpenCL", "libgomp"}
if common.SANITIZERS:
    ALLOWED |= {"libresolv"}  # of which clang's sanitizers intercept functions


def libraries(program):
    names = set()
    for line in common.succeed(["ldd", program]).splitlines():
        name = line.split()[0].rsplit("/", 1)[-1]
        names.add(re.sub(r"\.so.*$", "", name))
    return names


class LinkTest(common.BinaryTest):
    def test_libraries_are_on_the_list(self):
        for compute_type in ("f64", "f32", "bf16"):
            loaded = libraries(common.binary("gpt2", compute_type))
            self.assertIn("libc", loaded)
            self.assertLessEqual(loaded, ALLOWED, compute_type)

    def test_the_list_would_notice_the_compiler(self):
        self.assertFalse(libraries(common.DYNA_OPT) <= ALLOWED)

    def test_no_path_into_the_build_is_searched(self):
        dynamic = common.succeed(["readelf", "-d", common.binary()])
        self.assertIn("NEEDED", dynamic)
        self.assertNotRegex(dynamic, "RPATH|RUNPATH")

    def test_runs_with_llvm_hidden_and_nothing_on_the_path(self):
        program = common.binary()
        llvm = pathlib.Path(os.environ["DYNA_LLVM"]).parent
        metrics = self.folder / "hidden.jsonl"
        (self.folder / "empty").mkdir()
        # Also the libraries of LLVM that lie in the system's folder would not be found:
        # the compiler, started the same way, must fail, or nothing was hidden.
        script = f"""
          mount -t tmpfs none '{llvm}' || exit 99
          for library in /usr/lib/x86_64-linux-gnu/lib{{LLVM,MLIR}}*.so* /lib/x86_64-linux-gnu/lib{{LLVM,MLIR}}*.so*; do
            [ ! -e "$library" ] || mount --bind /dev/null "$library" || exit 99
          done
          export PATH='{self.folder}/empty'
          '{common.DYNAC}' --version >/dev/null 2>&1 && exit 98
          exec "$@"
        """
        command = common.training(program, self.corpus, f"--metrics={metrics}")
        inside = ["unshare", "-rm"]
        if common.run([*inside, "mount", "-t", "tmpfs", "none", llvm]).returncode != 0:
            self.skipTest("this machine allows no mount namespaces")
        done = common.run([*inside, "/bin/bash", "-c", script, "bash", *command])
        self.assertNotEqual(done.returncode, 99, "cannot hide LLVM: " + done.stderr)
        self.assertNotEqual(done.returncode, 98, "dynac still runs: LLVM is not hidden")
        self.assertEqual(done.returncode, 0, done.stderr)
        # The same numbers as with everything in place.
        other = self.train(program, "open")
        self.assertEqual(common.losses(metrics), common.losses(f"{other}.jsonl"))

    def test_runs_without_an_environment(self):
        done = common.run(common.training(common.binary(), self.corpus), env={})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    common.main()
