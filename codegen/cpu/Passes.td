//===- Passes.td - Passes of the CPU code generator --------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CPU_PASSES_TD
#define DYNA_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertToCpu : Pass<"dyna-convert-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Turns layer functions into code for the CPU.";
  let description = [{
    The input has `dyna.function`s whose values all have a place (`--dyna-plan-memory`), with every
    row-wise op in a `dyna.rows`.

    Each becomes an `llvm.func` of the same name with the signature of `runtime/abi/Abi.h`. It hands
    internal functions over ranges of rows to `dyna_launch`. The bodies are `scf` loops over
    `arith`, `math` and `vector` ops on vectors of constant width. Loads and stores use raw
    pointers. Products, attention and the head are calls of kernels (`runtime/abi/Kernels.h`).
    Layers, parameters and models are erased. Nothing else is changed.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
  let options = [
    Option<"matmul", "matmul", "std::string", "\"library\"",
           "Matrix products in f32: `library` or `generated` (f64 ones always are).">,
    Option<"vectorBits", "vector-bits", "int64_t", "512",
           "Bits of the vectors that loops work in: 128, 256 or 512.">,
    Option<"streamingBytes", "streaming-bytes", "int64_t", "134217728",
           "Sweeps that write more bytes than this bypass the cache.">,
  ];
}

#endif // DYNA_CODEGEN_CPU_PASSES_TD
