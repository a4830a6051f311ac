//===- Pipelines.cpp - Builds the phases of the compiler ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/differentiate/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/orchestrate/Passes.h"
#include "passes/plan/Passes.h"

using namespace mlir;
using namespace mlir::dyna;

void mlir::dyna::buildConvertPhase(OpPassManager &manager,
                                   const ConvertPhaseOptions &options) {
  if (options.type.empty())
    return;
  ConvertComputeTypeOptions convert;
  convert.type = options.type;
  manager.addPass(createConvertComputeType(convert));
}

void mlir::dyna::buildDifferentiatePhase(
    OpPassManager &manager, const DifferentiatePhaseOptions &options) {
  DifferentiateOptions differentiate;
  differentiate.gradients = options.gradients;
  differentiate.freezable = options.freezable;
  manager.addPass(createDifferentiate(differentiate));
  manager.addPass(createVerifyDifferentiated());
}

void mlir::dyna::buildDistributePhase(OpPassManager &manager,
                                      const DistributePhaseOptions &options) {
  DeduceLayoutsOptions deduce;
  deduce.strategy = options.strategy;
  manager.addPass(createDeduceLayouts(deduce));
  manager.addPass(createMaterializeCollectives());
  manager.addPass(createFuseCollectives());
  VerifyLocalOptions verify;
  verify.allowNone = true;
  manager.addPass(createVerifyLocal(verify));
  SelectFunctionsOptions select{options.layer, options.role};
  if (!select.layer.empty() || !select.role.empty())
    manager.addPass(createSelectFunctions(select));
}

void mlir::dyna::buildMemoryPhase(OpPassManager &manager,
                                  const MemoryPhaseOptions &options) {
  // The target comes first, because all later passes ask for it.
  SetTargetOptions target;
  target.target = options.target;
  manager.addPass(createSetTarget(target));
  // Fuse before planning: values inside a sweep need no memory.
  manager.addNestedPass<FunctionOp>(createFuseRows());
  // Join after fusing, which may have moved a sweep from between two products.
  manager.addNestedPass<FunctionOp>(createJoinProducts());
  if (options.sparse)
    manager.addPass(createAcceptSparse());
  manager.addPass(createPlanMemory());
  manager.addPass(createVerifyMemory());
}

void mlir::dyna::registerPhases() {
  registerDifferentiatePasses();
  registerDistributePasses();
  registerDynaMemoryPasses();
  registerOrchestratePasses();
  registerPlanPasses();
  PassPipelineRegistration<DistributePhaseOptions>(
      "dyna-distribute",
      "The distribute phase: layers and their functions at the tensor degrees "
      "of the strategies.",
      buildDistributePhase);
  PassPipelineRegistration<MemoryPhaseOptions>(
      "dyna-memory",
      "The memory phase: fuses row-wise ops, plans and verifies memory.",
      buildMemoryPhase);
}
