//===- CompiledProgram.h - A module compiled in this process ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All phases of the compiler, then LLVM's JIT instead of a linker, with the
// real kernels of the host behind it. What the runtime would read from the
// manifest (sizes of tiers and workspaces) is read off the IR between the
// memory phase and code generation.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_COMPILEDPROGRAM_H
#define DYNA_TEST_REFERENCE_COMPILEDPROGRAM_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/memory/value/OpScratch.h"
#include "runtime/abi/Abi.h"

#include <map>
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace mlir::dyna::reference {

struct CompiledFunction {
  dyna_layer_function function = nullptr;
  LinearBytes workspace;
};

/// What slices hand on in a store: keys and values to later slices, and their gradients
/// to earlier ones.
enum class Carry { Keys, Values, KeyGradients, ValueGradients };
constexpr Carry allCarries[] = {Carry::Keys, Carry::Values, Carry::KeyGradients,
                                Carry::ValueGradients};

struct CompiledLayer {
  /// Of the tiers saved_input, products, elementwise, deferred.
  LinearBytes tiers[4];
  /// Bytes of a token in the store of keys and in that of their gradients.
  int64_t keyRowBytes = 0, gradientRowBytes = 0;
  /// First byte and size of each attention's part of such a row.
  std::map<Carry, std::vector<std::pair<int64_t, int64_t>>> carries;
  std::map<Role, CompiledFunction> functions;
};

struct CompileOptions {
  std::string type = "f32"; ///< f64, f32 or bf16
  std::string matmul = "library";
  int64_t vectorBits = 512;
  /// Also the tensor degrees of these strategies; none if empty.
  std::string strategies = {};
  /// In which gradients are added up; empty: the accumulator type.
  std::string gradients = {};
  /// Code for a GPU, whose kernels run on the processor.
  bool emulated = false;
};

class CompiledProgram {
public:
  /// Compiles all layers of a copy of `module`. Null, with diagnostics, on
  /// failure.
  static std::unique_ptr<CompiledProgram>
  compile(ModuleOp module, const CompileOptions &options);
  ~CompiledProgram();

  /// In which the gradients of parameters are added up.
  Type gradientElement() const { return gradients; }
  /// DYNA_BATCH_*: what its code reads of a micro-batch beside its segments.
  uint32_t batchTables() const { return tables; }
  const CompiledLayer &layer(StringRef kind) const {
    return layers.at(kind.str());
  }

private:
  CompiledProgram();

  bool readMemory(ModuleOp module);
  bool readStores(ModuleOp module);
  bool translate(ModuleOp module);

  std::unique_ptr<llvm::orc::LLJIT> jit;
  Type gradients;
  uint32_t tables = 0;
  std::map<std::string, CompiledLayer> layers;
};

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_COMPILEDPROGRAM_H
