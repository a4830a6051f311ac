//===- SetTarget.cpp - Says which target the module is planned for --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/Passes.h"
#include "passes/memory/Target.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_SETTARGET
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

/// Whether some function has been through fusion or planning.
static bool isPlanned(ModuleOp module) {
  return llvm::any_of(module.getOps<FunctionOp>(), [](FunctionOp function) {
    return function.getWorkspaceAttr() ||
           !function.getBody().front().getOps<RowsOp>().empty();
  });
}

namespace {

struct SetTarget : mlir::dyna::impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    if (target.empty())
      return;
    ModuleOp module = getOperation();
    std::optional<TargetName> wanted = symbolizeTargetName(target);
    if (!wanted) {
      emitError(module.getLoc())
          << "expects a target cpu or cuda, but got '" << target << "'";
      return signalPassFailure();
    }
    if (*wanted == targetOf(module).name)
      return;
    if (isPlanned(module)) {
      (void)requireTarget(module, *wanted);
      return signalPassFailure();
    }
    kTarget.removeFrom(module);
    if (*wanted != TargetName::Cpu)
      kTarget.set(module,
                  StringAttr::get(&getContext(), stringifyTargetName(*wanted)));
  }
};

} // namespace
