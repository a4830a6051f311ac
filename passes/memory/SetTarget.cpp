//===- SetTarget.cpp - Sets the target for which the module is planned ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/Passes.h"
#include "passes/memory/value/Target.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_SETTARGET
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

/// Returns true if any function was already fused or planned.
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
    ModuleOp module = getOperation();
    if (failed(setTarget(module)) ||
        failed(checkLimits(module, targetOf(module))))
      signalPassFailure();
  }

  LogicalResult setTarget(ModuleOp module) {
    if (target.empty())
      return success();
    std::optional<TargetName> wanted = symbolizeTargetName(target);
    if (!wanted)
      return emitError(module.getLoc())
             << "expects a target cpu or cuda, but got '" << target << "'";
    if (*wanted == targetOf(module).name)
      return success();
    if (isPlanned(module))
      return requireTarget(module, *wanted);
    kTarget.removeFrom(module);
    if (*wanted != TargetName::Cpu)
      kTarget.set(module,
                  StringAttr::get(&getContext(), stringifyTargetName(*wanted)));
    return success();
  }
};

} // namespace
