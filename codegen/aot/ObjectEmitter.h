//===- ObjectEmitter.h - Compiles LLVM modules to object files --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All instruction-set variants come from the same LLVM-dialect module, each in
// an object of its own. One more object holds the function tables of all
// variants and the manifest (`dyna_compiled_program`, runtime/abi/Abi.h), which
// the runtime reads.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_OBJECTEMITTER_H
#define DYNA_CODEGEN_AOT_OBJECTEMITTER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Manifest.pb.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace mlir::dyna {

/// An instruction set that code is generated for. The runtime selects one.
struct InstructionSet {
  llvm::StringRef name; ///< used in `dynac --isa=` and in symbol names
  uint64_t features;    ///< DYNA_FEATURE_* bits it needs
  llvm::StringRef cpu;  ///< LLVM's processor
  llvm::StringRef targetFeatures; ///< LLVM's feature string
};

/// Returns all known sets, best first.
llvm::ArrayRef<InstructionSet> getInstructionSets();
/// Returns the set for host code that launches work on another device: any
/// x86-64. Emulated kernels run on the processor, so their set is chosen for
/// speed.
const InstructionSet &getLaunchingSet(bool isEmulated);
const InstructionSet *findInstructionSet(llvm::StringRef name);

struct EmitOptions {
  unsigned optimizationLevel = 3;
  /// Receives the optimised LLVM IR of the variant, if not null.
  std::string *optimizedText = nullptr;
};

/// Registers dialect translations to LLVM IR in the module's context. Call it
/// once before `emitVariantObject` runs on several threads.
void prepareTranslation(ModuleOp module);

/// The bytes of an object file.
using ObjectBytes = llvm::SmallVector<char, 0>;

/// Compiles a module of the LLVM dialect for one instruction set. Its functions
/// get the suffix `.<isa>`.
LogicalResult emitVariantObject(ModuleOp module, const InstructionSet &isa,
                                const EmitOptions &options, ObjectBytes &bytes);

/// Compiles the object with the function tables and the manifest.
LogicalResult emitProgramObject(ModuleOp module,
                                const ::dyna::plan::Manifest &manifest,
                                llvm::ArrayRef<InstructionSet> isas,
                                ObjectBytes &bytes);

/// Returns the LLVM IR of a module of the LLVM dialect as text
/// (`--stop-after=llvm`).
std::optional<std::string> printLlvmIr(ModuleOp module);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_OBJECTEMITTER_H
