#!/usr/bin/env python3
# Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled objects: what they import and define, and their instruction sets."""

import os
import pathlib
import re
import unittest

import common

ISAS = ("avx512", "avx2")
MEMORY = {"memcpy", "memmove", "memset"}
# Functions of libm that f64 code may call.
LIBM = {"erfc", "exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "tanh", "erf", "sin", "cos", "sqrt", "floor", "fmod"}
ROLES = ("evaluate", "forward", "backward", "backward_input", "backward_weight", "update", "grad_norm")


def kernels():
    """The functions that runtime/abi declares for compiled code."""
    headers = [pathlib.Path(os.environ["DYNA_SOURCE"]) / "runtime/abi" / name for name in ("Kernels.h", "Collectives.h")]
    text = "".join(header.read_text() for header in headers)
    return set(re.findall(r"^dyna_status (dyna_\w+)\(", text, re.MULTILINE))


def symbols(path, *flags):
    return {line.split()[-1] for line in common.succeed(["nm", *flags, path]).splitlines() if line.strip()}


class ObjectsTest(common.BinaryTest):
    def test_imports_are_on_the_list(self):
        self.assertIn("dyna_matmul_f32", kernels())
        for name in ("gpt2", "llama"):
            for compute_type in ("f64", "f32", "bf16"):
                flags = ("--keep-objects",)
                program = common.binary(name, compute_type, flags)
                allowed = kernels() | MEMORY | (LIBM if compute_type == "f64" else set())
                for isa in ISAS:
                    with self.subTest(model=name, type=compute_type, isa=isa):
                        imported = symbols(f"{program}.{isa}.o", "-u")
                        self.assertTrue(imported)
                        self.assertLessEqual(imported, allowed)

    def test_tensor_degrees_import_exchanges(self):
        program = common.binary("gpt2", "f32", ("--keep-objects", "--isa=avx2", "--strategies=tp=2,sp=1"))
        imported = symbols(f"{program}.avx2.o", "-u")
        self.assertLessEqual({"dyna_all_gather", "dyna_reduce_scatter"}, imported)
        self.assertLessEqual(imported, kernels() | MEMORY)

    def test_generated_products_import_no_library_product(self):
        program = common.binary("gpt2", "f32", ("--keep-objects", "--matmul=generated"))
        for isa in ISAS:
            imported = symbols(f"{program}.{isa}.o", "-u")
            self.assertLessEqual(imported, kernels() | MEMORY)
            self.assertNotIn("dyna_matmul_f32", imported)

    def test_the_program_object_imports_the_variants_only(self):
        program = common.binary("gpt2", "f32", ("--keep-objects",))
        imported = symbols(f"{program}.program.o", "-u")
        defined = set()
        for isa in ISAS:
            variant = symbols(f"{program}.{isa}.o", "--defined-only", "--extern-only")
            self.assertTrue(all(name.endswith("." + isa) for name in variant), variant)
            defined |= variant
        self.assertLessEqual(imported, defined)
        self.assertEqual(symbols(f"{program}.program.o", "--defined-only", "--extern-only"), {"dyna_compiled_program"})

    def test_both_variants_have_every_function(self):
        program = common.binary("gpt2", "f32", ("--keep-objects",))
        for isa in ISAS:
            defined = symbols(f"{program}.{isa}.o", "--defined-only")
            for layer in ("embed", "block", "head"):
                for role in ROLES:
                    self.assertIn(f"{layer}.{role}.{isa}", defined)

    def test_variants_use_their_registers(self):
        program = common.binary("gpt2", "f32", ("--keep-objects",))
        code = {isa: common.succeed(["objdump", "-d", "--no-show-raw-insn", f"{program}.{isa}.o"]) for isa in ISAS}
        self.assertIn("%zmm", code["avx512"])
        self.assertNotIn("%zmm", code["avx2"])
        self.assertIn("%ymm", code["avx2"])

    def test_variants_agree(self):
        if "avx512f" not in pathlib.Path("/proc/cpuinfo").read_text():
            self.skipTest("this processor has no AVX-512")
        for name in ("gpt2", "llama"):
            program = common.binary(name, "f32", ("--keep-objects",))
            given = {isa: common.losses(f"{self.train(program, f'{name}-{isa}', f'--isa={isa}')}.jsonl") for isa in ISAS}
            for wide, narrow in zip(given["avx512"], given["avx2"]):
                self.assertAlmostEqual(wide, narrow, delta=1e-4 * wide)

    def test_one_variant_alone(self):
        program = common.binary("gpt2", "f32", ("--isa=avx2",))
        done = common.run(common.training(program, self.corpus, "--isa=avx512"))
        self.assert_refused(done, "--isa", "avx512", "avx2")
        self.assertNotIn("Usage", done.stderr)
        self.assertEqual(common.run(common.training(program, self.corpus, "--isa=avx2")).returncode, 0)

    def test_unknown_instruction_sets_are_refused(self):
        self.assert_refused(common.run(common.training(common.binary("gpt2", "f32", ("--keep-objects",)), self.corpus, "--isa=neon")),
                            "neon", "avx2")
        self.assert_refused(common.run([common.DYNAC, common.model(), "-o", self.folder / "x", "--isa=neon"]), "neon", "avx2")

    def test_nothing_copies_buffers(self):
        for name in ("gpt2", "llama"):
            for compute_type in ("f64", "f32", "bf16"):
                with self.subTest(model=name, type=compute_type):
                    folder = self.folder / f"{name}-{compute_type}"
                    lowered = common.succeed([common.DYNAC, common.model(name), "--stop-after=lower",
                                              f"--compute-type={compute_type}", f"--dump-dir={folder}"])
                    self.assertIn("llvm.func", lowered)
                    dumps = sorted(path.name for path in folder.iterdir())
                    self.assertEqual(dumps, ["differentiate.mlir", "lower.mlir", "memory.mlir", "parse.mlir"])
                    for path in folder.iterdir():
                        self.assertNotIn("memref.copy", path.read_text())
                    # What a copy would have become: results are computed where they belong.
                    self.assertNotRegex(lowered, r"llvm\.(intr\.)?mem(cpy|move)|@mem(cpy|move)")
                    self.assertEqual((folder / "lower.mlir").read_text(), lowered)


if __name__ == "__main__":
    common.main()
