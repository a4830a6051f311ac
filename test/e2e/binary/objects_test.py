#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled objects: what they import and define, and their instruction sets."""

import os
import pathlib
import re
import unittest

import common

ISAS = ("avx512", "avx2")
TYPES = ("f64", "f32", "bf16")
ROLES = ("evaluate", "forward", "backward", "backward_input", "backward_weight", "update", "grad_norm")

# What objects may call, written down a second time on purpose: a function that is added to
# runtime/abi is let in here too, or found. Row-wise ops are generated: none belongs here.
ANYWHERE = {"dyna_launch", "dyna_check_ids", "dyna_check_positions"}
OF_TYPE = {
    "f64": {"dyna_attention_f64", "dyna_attention_grad_f64", "dyna_head_f64"},
    "f32": {"dyna_matmul_f32", "dyna_attention_f32", "dyna_attention_grad_f32", "dyna_head_f32"},
    "bf16": {"dyna_matmul_bf16", "dyna_matmul_bf16_f32", "dyna_attention_bf16", "dyna_attention_grad_bf16", "dyna_head_bf16"},
}
EXCHANGES = {"dyna_all_reduce", "dyna_all_gather", "dyna_reduce_scatter", "dyna_slice", "dyna_all_to_all", "dyna_exchange_all"}
# What the kernels of the runtime call, and no object does.
OF_KERNELS = {"dyna_progress"}
# What only objects for other devices call.
OF_OTHER_DEVICES = {"dyna_launch_kernel", "dyna_matmul_f64"}
# What the executor calls at the end of a step.
OF_EXECUTOR = {"dyna_note_losses", "dyna_clip_norm", "dyna_place_rows"}
# What the executor calls when a phase reads sparse weights.
OF_SPARSE_VALUES = {"dyna_take_sparse_values"}
# What objects of `dynac --sparse` call.
OF_SPARSE = {f"dyna_sparse_matmul_{name}" for name in ("f32", "f64", "bf16", "bf16_f32")}
MEMORY = {"memcpy", "memmove", "memset"}
# Functions of libm that f64 code may call.
LIBM = {"erfc", "exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "tanh", "erf", "sin", "cos", "sqrt", "floor", "fmod"}

# The one thing that is copied: a split backward keeps the gradient that came in, whose memory
# goes to the next layer, for the gradients of its weights. With dropout it keeps another one.
KEPT_GRADIENTS = {"gpt2": [], "llama": ["embed.backward_input.copy", "block.backward_input.copy"]}

# A layer that hands out its input: nothing computes its result where it belongs.
PASSING = """
dyna.layer @pass(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  dyna.return %x : tensor<?x32xf32>
}
dyna.model"""


def allowed(compute_type):
    return ANYWHERE | OF_TYPE[compute_type] | MEMORY | (LIBM if compute_type == "f64" else set())


def declared():
    """The functions that runtime/abi declares for compiled code."""
    headers = [pathlib.Path(os.environ["DYNA_SOURCE"]) / "runtime/abi" / name for name in ("Kernels.h", "Collectives.h")]
    text = "".join(header.read_text() for header in headers)
    return set(re.findall(r"^dyna_status (dyna_\w+)\(", text, re.MULTILINE))


def copies(lowered):
    """Functions of a lowered module that do nothing but copy, and copies of memory."""
    return (re.findall(r"llvm\.func [\w ]*@([\w.]+\.copy\d+)\(", lowered)
            + re.findall(r"llvm\.(?:intr\.)?mem(?:cpy|move)\S*|@mem(?:cpy|move)\b", lowered))


def symbols(path, *flags):
    return {line.split()[-1] for line in common.succeed(["nm", *flags, path]).splitlines() if line.strip()}


class ObjectsTest(common.BinaryTest):
    def test_the_abi_declares_what_is_on_the_list(self):
        self.assertEqual(declared(), ANYWHERE.union(EXCHANGES, OF_KERNELS, OF_OTHER_DEVICES, OF_EXECUTOR, OF_SPARSE_VALUES, OF_SPARSE, *OF_TYPE.values()))

    def test_imports_are_on_the_list(self):
        for name in ("gpt2", "llama"):
            for compute_type in TYPES:
                program = common.binary(name, compute_type, ("--keep-objects",))
                for isa in ISAS:
                    with self.subTest(model=name, type=compute_type, isa=isa):
                        imported = symbols(f"{program}.{isa}.o", "-u")
                        # Each does all of its products, attention and loss with them.
                        # LLaMA looks no positions up in tables.
                        needed = ANYWHERE - ({"dyna_check_positions"} if name == "llama" else set())
                        self.assertEqual("dyna_check_positions" in imported, name == "gpt2")
                        self.assertLessEqual(needed | OF_TYPE[compute_type], imported)
                        self.assertLessEqual(imported, allowed(compute_type))

    def test_an_import_that_is_not_on_the_list_is_found(self):
        source, compiled = self.folder / "norm.c", self.folder / "norm.o"
        source.write_text("int dyna_layer_norm(void *);\nint dyna_launch(void *);\n"
                          "int f(void *x) { return dyna_layer_norm(x) + dyna_launch(x); }\n")
        common.succeed(["cc", "-c", source, "-o", compiled])
        self.assertEqual(symbols(compiled, "-u") - allowed("f32"), {"dyna_layer_norm"})
        # Nor may one type's code call another's.
        program = common.binary("gpt2", "f32", ("--keep-objects",))
        self.assertFalse(symbols(f"{program}.avx2.o", "-u") <= allowed("bf16"))

    def test_code_for_cuda_leaves_all_to_the_device(self):
        for compute_type in TYPES:
            with self.subTest(type=compute_type):
                program = common.binary("gpt2", compute_type, ("--keep-objects", "--target=cuda", "--arch=emulated"))
                imported = symbols(f"{program}.emulated.o", "-u")
                emulated = {name for name in imported if name.startswith("dyna_emulated_")}
                self.assertIn("dyna_launch_kernel", imported)
                self.assertLessEqual(imported - emulated,
                                     (allowed(compute_type) | OF_OTHER_DEVICES) - LIBM - {"dyna_launch"})

    def test_tensor_degrees_import_exchanges(self):
        program = common.binary("gpt2", "f32", ("--keep-objects", "--isa=avx2", "--strategies=tp=2,sp=1"))
        imported = symbols(f"{program}.avx2.o", "-u")
        self.assertLessEqual({"dyna_all_gather", "dyna_reduce_scatter"}, imported)
        self.assertLessEqual(imported, allowed("f32") | EXCHANGES)

    def test_generated_products_import_no_library_product(self):
        program = common.binary("gpt2", "f32", ("--keep-objects", "--matmul=generated"))
        for isa in ISAS:
            self.assertLessEqual(symbols(f"{program}.{isa}.o", "-u"), allowed("f32") - {"dyna_matmul_f32"})

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

    def lower(self, source, compute_type="f32"):
        folder = self.folder / f"{source.stem}-{compute_type}"
        lowered = common.succeed([common.DYNAC, source, "--stop-after=lower", f"--compute-type={compute_type}",
                                  f"--dump-dir={folder}"])
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["differentiate.mlir", "lower.mlir", "memory.mlir", "parse.mlir"])
        self.assertEqual((folder / "lower.mlir").read_text(), lowered)
        # What `copies` matches is how functions of rows are named and printed.
        self.assertTrue(re.search(r"llvm\.func [\w ]*@block\.forward\.rows\d+\(", lowered))
        return lowered

    def test_nothing_else_copies_activations(self):
        for name in ("gpt2", "llama"):
            for compute_type in TYPES:
                with self.subTest(model=name, type=compute_type):
                    found = [re.sub(r"\d+$", "", copy) for copy in copies(self.lower(common.model(name), compute_type))]
                    self.assertEqual(found, KEPT_GRADIENTS[name])

    def test_a_copy_would_be_found(self):
        source = self.folder / "passing.mlir"
        text = (pathlib.Path(os.environ["DYNA_SOURCE"]) / "docs/examples/tiny.mlir").read_text()
        text = text.replace("\ndyna.model", PASSING, 1)
        text = text.replace("  %2 = dyna.call", "  %p = dyna.call \"pass\" @pass[](%1) : (tensor<?x32xf32>) -> tensor<?x32xf32>\n"
                            "  %2 = dyna.call", 1).replace("(%1, %targets)", "(%p, %targets)")
        source.write_text(text)
        found = copies(self.lower(source))
        self.assertLessEqual({f"pass.{role}.copy0" for role in ("evaluate", "forward", "backward", "backward_input")}, set(found))
        # The object has it under the same name: the optimiser does not hide it.
        common.succeed([common.DYNAC, source, "-o", self.folder / "passing", "--keep-objects"])
        for isa in ISAS:
            self.assertTrue(any(".copy" in name for name in symbols(f"{self.folder}/passing.{isa}.o", "--defined-only")))
        self.assertEqual(copies('llvm.call @memcpy(%0)\n"llvm.intr.memmove"(%1)'), ["@memcpy", 'llvm.intr.memmove"(%1)'])


if __name__ == "__main__":
    common.main()
