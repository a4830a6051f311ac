//===- Target.cpp - States the properties of a target for planning --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/abi/Abi.h"
#include "runtime/abi/DeviceLimits.h"
#include "runtime/plan/model/HeadChunks.h"

using namespace mlir;
using namespace mlir::dyna;

static constexpr Target targets[] = {
    {TargetName::Cpu, Target::Epilogues::AnySweep, DYNA_MAX_CHUNKS,
     ::dyna::headChunkRows("cpu"), false, false, 0, 0},
    // A GPU of 132 processors runs four blocks of a norm's sweep on each.
    {TargetName::Cuda, Target::Epilogues::Described, 512,
     ::dyna::headChunkRows("cuda"), true, true,
     DYNA_BATCH_TOKEN_RUNS | DYNA_BATCH_POSITION_RUNS | DYNA_BATCH_TARGET_ROWS,
     DYNA_CUDA_HEAD_DIM},
};

const Target &Target::get(TargetName name) {
  const Target &target = targets[static_cast<size_t>(name)];
  assert(target.name == name && "targets in the order of their names");
  return target;
}

const Target &mlir::dyna::targetOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  StringAttr name = module ? kTarget.of(module) : StringAttr();
  std::optional<TargetName> known =
      name ? symbolizeTargetName(name.getValue()) : std::nullopt;
  return Target::get(known.value_or(TargetName::Cpu));
}

LogicalResult mlir::dyna::checkLimits(ModuleOp module, const Target &target) {
  WalkResult result = module.walk([&](AttentionOp op) {
    if (target.headDim == 0 || op.getHeadDim() <= target.headDim)
      return WalkResult::advance();
    op.emitOpError("has heads of ")
        << op.getHeadDim() << " elements, of which a module for "
        << stringifyTargetName(target.name) << " has at most "
        << target.headDim;
    return WalkResult::interrupt();
  });
  return success(!result.wasInterrupted());
}

LogicalResult mlir::dyna::requireTarget(ModuleOp module, TargetName name) {
  TargetName planned = targetOf(module).name;
  if (planned == name)
    return success();
  return emitError(module.getLoc())
         << "expects a module planned for " << stringifyTargetName(name)
         << ", but this one is planned for " << stringifyTargetName(planned)
         << "; run --dyna-memory=target=" << stringifyTargetName(name)
         << " on one without places";
}
