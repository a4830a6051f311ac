//===- Passes.td - Passes of the CUDA code generator -------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_PASSES_TD
#define DYNA_CODEGEN_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertToCuda : Pass<"dyna-convert-to-cuda", "::mlir::ModuleOp"> {
  let summary = "Turns layer functions into host code that launches kernels.";
  let description = [{
    The input is that of `--dyna-convert-to-cpu`.

    Each function becomes an `llvm.func` of the same name with the signature of `runtime/abi/Abi.h`,
    which runs on the host. A module `@dyna_kernels` inside the module has an `llvm.func` for each
    kernel. It has the attributes `nvvm.kernel` and `nvvm.maxntid` (threads per block), and one
    parameter, an array of words by value. Kernels are `scf` loops over `arith`, `math` and `vector`
    ops with special registers, shuffles and barriers of the `nvvm` dialect. The host launches them
    by their number in that module through `dyna_launch_kernel`. `@dyna_device_code` has their code,
    which `--dyna-embed-kernels` fills in. Products, attention and the head are calls of the
    device's kernels.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def EmbedKernels : Pass<"dyna-embed-kernels", "::mlir::ModuleOp"> {
  let summary = "Compiles the kernels and embeds the result.";
  let description = [{
    The input is a module of the LLVM dialect with its `@dyna_kernels`.

    The result is the host's module alone. Its `@dyna_device_code` has an image per architecture and
    the table of kernels. The images of `sm_*` are cubins, made by `ptxas`. The PTX of the lowest
    architecture follows, for devices that are newer than all. Without `ptxas` there is the PTX
    alone, with a warning. The image of `emulated` is a table of functions of the module itself.
    Their special registers, shuffles and barriers are calls of test/standins/Fibers.h.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_80,sm_90,sm_100,sm_120\"",
           "Architectures: some of sm_80, sm_90, sm_100, sm_120; or emulated.">,
    Option<"ptxas", "ptxas", "std::string", "\"\"",
           "The assembler; none; or empty: the one of $CUDA_HOME, of PATH or of /usr/local/cuda.">,
    Option<"dump", "dump", "std::string", "\"\"",
           "Folder for the PTX of each architecture, as kernels.sm_*.ptx.">,
  ];
}

#endif // DYNA_CODEGEN_CUDA_PASSES_TD
