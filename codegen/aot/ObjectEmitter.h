//===- ObjectEmitter.h - LLVM modules to object files --------- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One object per instruction-set variant, all from the same LLVM-dialect
// module, and one that holds what the runtime reads: the function tables of all
// variants and the manifest (`dyna_compiled_program`, runtime/abi/Abi.h).
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

/// An instruction set that code is generated for and chosen by at run time.
struct InstructionSet {
  llvm::StringRef name;           ///< as in `dynac --isa=` and in symbol names
  uint64_t features;              ///< DYNA_FEATURE_* bits it needs
  llvm::StringRef cpu;            ///< LLVM's processor
  llvm::StringRef targetFeatures; ///< LLVM's feature string
};

/// All known sets, best first.
llvm::ArrayRef<InstructionSet> getInstructionSets();
/// What the host's side of code for another device is compiled for: any x86-64,
/// or, where its kernels are emulated on the processor, one that computes them fast.
const InstructionSet &getLaunchingSet(bool isEmulated);
const InstructionSet *findInstructionSet(llvm::StringRef name);

struct EmitOptions {
  unsigned optimizationLevel = 3;
  /// Gets the optimised LLVM IR of the variant, if not null.
  std::string *optimizedText = nullptr;
};

/// Registers what the translation to LLVM IR needs in the module's context.
/// Call it once before `emitVariantObject` runs on several threads.
void prepareTranslation(ModuleOp module);

/// The bytes of an object file.
using ObjectBytes = llvm::SmallVector<char, 0>;

/// Compiles a module of the LLVM dialect for one instruction set. Its functions
/// get the suffix `.<isa>`.
LogicalResult emitVariantObject(ModuleOp module, const InstructionSet &isa,
                                const EmitOptions &options, ObjectBytes &bytes);

/// The object with the function tables and the manifest.
LogicalResult emitProgramObject(ModuleOp module,
                                const ::dyna::plan::Manifest &manifest,
                                llvm::ArrayRef<InstructionSet> isas,
                                ObjectBytes &bytes);

/// The LLVM IR of a module of the LLVM dialect, as text (`--stop-after=llvm`).
std::optional<std::string> printLlvmIr(ModuleOp module);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_OBJECTEMITTER_H
