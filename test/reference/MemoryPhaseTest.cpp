//===- MemoryPhaseTest.cpp - The memory phase changes no value ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every layer function of random modules computes the same before and behind
// the memory phase, which splits biases off, adds inside of products and
// gathers row-wise ops into sweeps. (Whether places collide, only compiled code
// shows.)
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "test/reference/Formulas.h"
#include "test/reference/LayerRun.h"
#include "test/reference/RandomModule.h"
#include "test/reference/Tolerances.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

/// A value for each argument; tensors in [0, 1), as second moments must be.
static std::vector<Datum> randomArguments(FunctionOp function,
                                          const Segments &segments) {
  std::vector<Datum> args;
  uint64_t seed = 0;
  for (Type type : function.getArgumentTypes()) {
    auto tensorType = dyn_cast<RankedTensorType>(type);
    if (!tensorType) {
      args.push_back(segments);
      continue;
    }
    if (tensorType.getElementType().isInteger()) {
      // Every table has two rows at least.
      Ids ids;
      for (int64_t t = 0; t < segments.tokens(); ++t)
        ids.push_back(static_cast<int32_t>(t % 2));
      args.push_back(std::move(ids));
      continue;
    }
    std::vector<int64_t> shape = tensorType.getShape().vec();
    if (tensorType.isDynamicDim(0))
      shape[0] = segments.tokens();
    Tensor tensor(shape);
    ++seed;
    for (size_t i = 0; i < tensor.values.size(); ++i)
      tensor.values[i] = uniform(seed, i);
    args.push_back(std::move(tensor));
  }
  return args;
}

static void compareFunctions(FunctionOp before, FunctionOp after) {
  Context scalars;
  scalars.seed = 3;
  std::vector<Datum> args =
      randomArguments(before, Segments::ofLengths({1, 5, 2}));
  auto wanted = evaluateFunction(before, args, scalars);
  auto given = evaluateFunction(after, args, scalars);
  ASSERT_TRUE(succeeded(wanted) && succeeded(given));
  ASSERT_EQ(given->size(), wanted->size());
  for (size_t i = 0; i < wanted->size(); ++i)
    EXPECT_LE(
        distance(std::get<Tensor>((*given)[i]), std::get<Tensor>((*wanted)[i])),
        sameFormulaTolerance)
        << "result " << i;
}

TEST(MemoryPhaseTest, KeepsTheResultsOfAllFunctions) {
  MLIRContext context;
  context.loadDialect<DynaDialect>();
  int64_t numSweeps = 0;
  for (uint64_t seed = 500; seed < 560; ++seed) {
    OwningOpRef<ModuleOp> before = ModuleOp::create(UnknownLoc::get(&context));
    addRandomModel(*before, "m", seed);
    PassManager differentiate(&context), memory(&context);
    buildDifferentiatePhase(differentiate);
    ASSERT_TRUE(succeeded(differentiate.run(*before)));
    OwningOpRef<ModuleOp> after(before->clone());
    buildMemoryPhase(memory);
    ASSERT_TRUE(succeeded(memory.run(*after)));
    after->walk([&](RowsOp) { ++numSweeps; });
    for (FunctionOp function : before->getOps<FunctionOp>()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " +
                   function.getSymName().str());
      auto other = after->lookupSymbol<FunctionOp>(function.getSymNameAttr());
      ASSERT_TRUE(other);
      compareFunctions(function, other);
    }
  }
  EXPECT_GT(numSweeps, 1000);
}
