#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dynac from outside: phases, dumps, options, and what it says to bad input."""

import os
import pathlib
import unittest

import common

PHASES = ("parse", "differentiate", "memory", "lower")
TYPES = ("f64", "f32", "bf16")

# Widths that do not fit: the weight takes 8 values, the activations have 16.
MISMATCH = """dyna.parameter @w : tensor<16x8xf32>
dyna.layer @layer(%w: tensor<16x8xf32>, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = dyna.linear %x, %w : tensor<?x16xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  dyna.return %y : tensor<?x16xf32>
}
"""


class PhasesTest(common.BinaryTest):
    def dynac(self, *arguments, **options):
        return common.run([common.DYNAC, *arguments], **options)

    def test_every_phase_prints_what_dyna_opt_reads(self):
        for name in ("gpt2", "llama"):
            for compute_type in TYPES:
                for phase in PHASES:
                    with self.subTest(model=name, type=compute_type, phase=phase):
                        text = common.succeed([common.DYNAC, common.model(name), f"--stop-after={phase}",
                                               f"--compute-type={compute_type}"])
                        # Reading and printing gives the same text.
                        self.assertEqual(common.succeed([common.DYNA_OPT], input=text).rstrip(), text.rstrip())

    def test_phases_do_their_work(self):
        printed = {phase: common.succeed([common.DYNAC, common.model(), f"--stop-after={phase}"]) for phase in (*PHASES, "llvm")}
        self.assertNotIn("dyna.function", printed["parse"])
        self.assertIn("dyna.function", printed["differentiate"])
        self.assertNotIn("dyna.rows", printed["differentiate"])
        self.assertIn("dyna.rows", printed["memory"])
        self.assertNotIn("dyna.function", printed["lower"])
        self.assertIn("llvm.func @block.forward(", printed["lower"])
        self.assertRegex(printed["llvm"], r"(?m)^define .*@block\.forward\(")

    def test_phases_are_dyna_opts_phases(self):
        # The user of dyna-opt walks the same road.
        stopped = common.succeed([common.DYNAC, common.model(), "--stop-after=differentiate"])
        self.assertEqual(common.succeed([common.DYNA_OPT, common.model(), "--dyna-differentiate"]).rstrip(), stopped.rstrip())

    def test_output_file_instead_of_printing(self):
        for phase in (*PHASES, "llvm"):
            path = self.folder / f"{phase}.txt"
            self.assertEqual(common.succeed([common.DYNAC, common.model(), f"--stop-after={phase}", "-o", path]), "")
            self.assertEqual(path.read_text(), common.succeed([common.DYNAC, common.model(), f"--stop-after={phase}"]))
        self.assertEqual(len(list(self.folder.iterdir())), 5)

    def test_dumps_while_compiling(self):
        folder = self.folder / "deep" / "dumps"
        program = self.folder / "program"
        common.succeed([common.DYNAC, common.model(), "-o", program, "-O0", f"--dump-dir={folder}"])
        names = {f"{phase}.mlir" for phase in PHASES} | {"optimised.avx2.ll", "optimised.avx512.ll"}
        self.assertEqual({path.name for path in folder.iterdir()}, names)
        for phase in PHASES:
            self.assertEqual((folder / f"{phase}.mlir").read_text(), common.succeed([common.DYNAC, common.model(), f"--stop-after={phase}"]))
        self.assertIn("@block.forward.avx2(", (folder / "optimised.avx2.ll").read_text())
        # Nothing else is left beside the program.
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"deep", "program"})

    def test_time_passes(self):
        done = self.dynac(common.model(), "-o", self.folder / "program", "-O0", "--time-passes")
        self.assertEqual(done.returncode, 0)
        for word in ("parser", "differentiate", "memory", "lower", "objects", "link", "Total"):
            self.assertIn(word, done.stderr)
        self.assertNotIn("Total", self.dynac(common.model(), "-o", self.folder / "program", "-O0").stderr)

    def test_names_the_output_after_the_input(self):
        done = self.dynac(common.model(), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["gpt2"])
        self.assertTrue(os.access(self.folder / "gpt2", os.X_OK))

    def test_bad_options(self):
        output = self.folder / "program"
        for arguments, words in (
            (["--compute-type=f16"], ["--compute-type", "f32", "'f16'"]),
            (["--stop-after=nowhere"], ["--stop-after", "differentiate", "'nowhere'"]),
            (["--isa=sse"], ["--isa", "avx2", "'sse'"]),
            (["--matmul=magic"], ["--matmul", "generated", "'magic'"]),
            (["--matmul=generated", "--compute-type=bf16"], ["--matmul=generated", "bf16"]),
            (["--gradients=f16"], ["--gradients", "bf16", "'f16'"]),
            (["--gradients=bf16"], ["--gradients=bf16", "--compute-type=bf16", "f32"]),
            (["--gradients=f32", "--compute-type=f64"], ["--gradients=f32", "f64"]),
            (["--with=nccl"], ["--with=nccl"]),
            (["-O7"], ["-O", "7"]),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.dynac(common.model(), "-o", output, *arguments), *words)
        for arguments in (["--no-such-option"], ["-Obig"], ["--verify-machineinstrs"]):
            with self.subTest(arguments=arguments):
                done = self.dynac(common.model(), "-o", output, *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(arguments[0][:2], done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assert_refused(self.dynac(), "dynac model.mlir")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_versions(self):
        for program in (common.DYNAC, common.DYNA_OPT, common.DYNA_TRANSLATE, common.binary()):
            self.assertRegex(common.succeed([program, "--version"]), r"Dyna \d+\.\d+\.\d+")

    def test_missing_and_unreadable_input(self):
        self.assert_refused(self.dynac(self.folder / "none.mlir"), "none.mlir", "No such file")
        self.assert_refused(self.dynac(self.folder), self.folder.name)

    def test_unwritable_output(self):
        for output in ("/no/such/folder/program", "/proc/program"):
            for phase in ([], ["--stop-after=lower"]):
                with self.subTest(output=output, phase=phase):
                    done = self.dynac(common.model(), "-o", output, *phase)
                    self.assert_refused(done, output)
        # A folder stands where the program should: it stays, and nothing lies beside it.
        (self.folder / "program").mkdir()
        for phase in ([], ["--stop-after=lower"]):
            self.assert_refused(self.dynac(common.model(), "-o", self.folder / "program", *phase), "program", "directory")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["program"])
        self.assertEqual(list((self.folder / "program").iterdir()), [])
        self.assert_refused(self.dynac(common.model(), "-o", self.folder / "x", "--dump-dir=/proc/dumps"), "--dump-dir", "/proc/dumps")
        # Before the work: a module that the parser would refuse must not come so far.
        source = self.folder / "model.mlir"
        source.write_text("no module")
        for output in ("/no/such/folder/program", self.folder / "program"):
            self.assert_refused(self.dynac(source, "-o", output), output)
        self.assertIn("model.mlir:1:1: error", self.dynac(source, "-o", self.folder / "x").stderr)

    def test_what_cannot_be_linked_is_found_before_the_work(self):
        runtime = self.folder / "runtime"
        runtime.mkdir()
        (runtime / "link-libraries.txt").write_text("@/libdyna_some.a\n-lm\n")
        (runtime / "link-fast.txt").write_text("-Wl,-u,symbol\n@/libdyna_fast.a\n")
        # A module that the parser would refuse: it must not come so far.
        source = self.folder / "model.mlir"
        source.write_text("no module")
        command = [source, "-o", self.folder / "program", f"--runtime-dir={runtime}", "--with=fast"]
        self.assert_refused(self.dynac(*command), "libdyna_some.a", "link-libraries.txt", "quickstart-tools")
        (runtime / "libdyna_some.a").touch()
        self.assert_refused(self.dynac(*command), "libdyna_fast.a", "link-fast.txt", "quickstart-tools")
        (runtime / "libdyna_fast.a").touch()
        self.assert_refused(self.dynac(*command, "--linker=no-such-linker"), "'no-such-linker' is not on PATH")
        self.assertIn("model.mlir:1:1: error", self.dynac(*command).stderr)

    def test_the_tools_come_with_all_that_they_link(self):
        # Built with the tools is whatever --with offers here.
        listed = common.run(["ninja", "-C", os.environ["DYNA_BUILD"], "-t", "query", "tools/quickstart-tools"])
        if listed.returncode != 0:
            self.skipTest("the build is not ninja's")
        for path in (pathlib.Path(common.DYNAC).parent.parent / "lib").glob("link-*.txt"):
            for line in path.read_text().splitlines():
                if line.startswith("@/libdyna"):
                    self.assertIn(f"lib/{line[2:]}", listed.stdout, path.name)

    def test_a_missing_linker(self):
        done = self.dynac(common.model(), "-o", self.folder / "program", "-O0", "--linker=no-such-linker")
        self.assert_refused(done, "no-such-linker")
        done = self.dynac(common.model(), "-o", self.folder / "program", "-O0", "--linker=false")
        self.assert_refused(done, "false", "it said nothing")
        # Of many lines the one that says most; all of them only when asked for.
        linker = self.folder.parent / "linker"
        linker.write_text("#!/bin/sh\necho 'in function f:'\necho 'undefined reference to g'\necho 'error: exit 1'\nexit 1\n")
        linker.chmod(0o755)
        done = self.dynac(common.model(), "-o", self.folder / "program", "-O0", f"--linker={linker}")
        self.assert_refused(done, "undefined reference to g", "--verbose")
        done = self.dynac(common.model(), "-o", self.folder / "program", "-O0", f"--linker={linker}", "--verbose")
        self.assertEqual(done.returncode, 2)
        self.assertIn("in function f:", done.stderr)
        self.assertIn("-Wl,--gc-sections", done.stderr)
        done = self.dynac(common.model(), "-o", self.folder / "program", "--runtime-dir=/no/such")
        self.assert_refused(done, "/no/such", "--runtime-dir")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_malformed_modules(self):
        text = common.model().read_text()
        cases = {
            "syntax": (text.replace("dyna.return", "dyna.return (", 1), ["expected"]),
            "cut": (text[:len(text) // 2], ["error"]),
            "unknown": (text.replace("dyna.layer_norm", "dyna.layer_morn", 1), ["layer_morn"]),
            "types": (text.replace("tensor<257x32xf32>", "tensor<257x32xi8>"), ["i8"]),
            "shapes": (MISMATCH, ["16", "8"]),
            "foreign": ("func.func @f() { return }\n", ["func"]),
            "binary": ("\0\1\2", ["error"]),
        }
        for name, (content, words) in cases.items():
            with self.subTest(case=name):
                source = self.folder / f"{name}.mlir"
                source.write_text(content)
                done = self.dynac(source, "-o", self.folder / "program")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr.splitlines()[0], rf"{name}\.mlir:\d+:\d+: error: ")
                for word in words:
                    self.assertIn(word, done.stderr)
                self.assertFalse((self.folder / "program").exists())
        self.assertEqual({path.suffix for path in self.folder.iterdir()}, {".mlir"})

    def test_modules_without_a_model(self):
        for name, content in (("empty", ""), ("parameter", "dyna.parameter @w : tensor<4xf32>\n")):
            source = self.folder / f"{name}.mlir"
            source.write_text(content)
            done = self.dynac(source, "-o", self.folder / "program")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{name}.mlir", done.stderr)
            self.assertIn("dyna.model", done.stderr)
            self.assertFalse((self.folder / "program").exists())

    def test_a_failed_compilation_leaves_an_old_program_alone(self):
        program = self.folder / "program"
        program.write_text("old")
        self.dynac(common.model(), "-o", program, "-O0", "--linker=false")
        self.assertEqual(program.read_text(), "old")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["program"])


class DepthTest(unittest.TestCase):
    def test_code_does_not_grow_with_depth(self):
        functions, sizes = {}, {}
        for depth in (2, 96):
            path = common.model("gpt2", n_embd=1024, n_head=16, n_layer=depth, n_positions=1024, vocab_size=50257)
            text = common.succeed([common.DYNAC, path, "--stop-after=lower"])
            functions[depth] = sorted(line.split("@")[1].split("(")[0] for line in text.splitlines() if "llvm.func" in line and "@" in line)
            sizes[depth] = len(text)
        self.assertGreater(len(functions[2]), 20)
        self.assertEqual(functions[2], functions[96])
        self.assertEqual(sizes[2], sizes[96])


if __name__ == "__main__":
    common.main()
