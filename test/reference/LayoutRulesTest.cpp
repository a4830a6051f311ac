//===- LayoutRulesTest.cpp - Sums pass only through linear ops ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A factor rule says in which operands an op is linear; sums over ranks are
// then not reduced in front of it. Here every op that evaluate, forward and
// backward of the layer cases hold is asked: with those operands in two random
// addends, and the accumulators too, do the results add up to the result?
//
// Programs of ranks cannot ask this of all operands: what a gradient op reads
// of forward was saved, and none is saved as a sum.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/LayoutRules.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/differentiate/Passes.h"
#include "test/reference/Formulas.h"
#include "test/reference/LayerRun.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

static constexpr double tolerance = 1e-12;

namespace {

struct LayerCase {
  const char *name;
  const char *text;
};

class LayoutRulesTest : public testing::Test {
protected:
  LayoutRulesTest() {
    DialectRegistry registry;
    registry.insert<DynaDialect>();
    registerLayoutRules(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<DynaDialect, dist::DistDialect>();
    evaluation.inverseTargets = 0.25;
  }

  /// Runs all functions of a layer, and checks the claims of each of their ops.
  void checkLayer(ModuleOp module, LayerOp layer);
  void checkFunction(FunctionOp function, LayerRun &run);
  void checkSet(Operation *op, const dist::FactorRule &rule,
                ArrayRef<int> linearIn, Environment &environment);

  MLIRContext context;
  Context evaluation;
  std::set<std::string> seen;
  uint64_t seed = 0;
  int claims = 0;
};

} // namespace

static const LayerCase layerCases[] = {
#include "test/reference/LayerCases.inc"
};

/// A head whose weight is frozen. Only calls say so, so it needs a model.
static const char frozenHead[] = R"(
dyna.parameter @wte : tensor<33x8xf64> normal 0.02
dyna.parameter @w : tensor<33x8xf64> normal 0.02 frozen
dyna.layer @embed[%w: tensor<33x8xf64>](%ids: tensor<?xi32>)
    -> tensor<?x8xf64> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf64>
  dyna.return %x : tensor<?x8xf64>
}
dyna.layer @head[%w: tensor<33x8xf64>](%x: tensor<?x8xf64>,
    %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets
      : tensor<?x8xf64>, tensor<33x8xf64>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>,
    %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8,
          heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0,
          config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids)
      : (tensor<?xi32>) -> tensor<?x8xf64>
  %1 = dyna.call "head" @head[@w](%0, %targets)
      : (tensor<?x8xf64>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
})";

/// Makes `whole` what is left of it without a random addend, which is returned.
static Tensor takeAddend(Tensor &whole, uint64_t seed) {
  Tensor addend(whole.shape);
  for (size_t i = 0; i < whole.values.size(); ++i) {
    addend.values[i] = 2 * uniform(seed, i) - 1;
    whole.values[i] -= addend.values[i];
  }
  return addend;
}

void LayoutRulesTest::checkSet(Operation *op, const dist::FactorRule &rule,
                               ArrayRef<int> linearIn,
                               Environment &environment) {
  SmallVector<int> inAddends(linearIn);
  for (auto [operand, result] : rule.tied)
    if (!llvm::is_contained(inAddends, operand))
      inAddends.push_back(operand);
  // Operands of its own: one value may be two of them, only one as a sum.
  Block block;
  OwningOpRef<Operation *> copy(op->clone());
  Environment first, second;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value own = block.addArgument(operand.getType(), op->getLoc());
    (*copy)->setOperand(i, own);
    first[own] = environment.at(operand);
    Datum rest = environment.at(operand);
    if (llvm::is_contained(inAddends, i))
      first[own] = takeAddend(std::get<Tensor>(rest), ++seed);
    second[own] = std::move(rest);
  }
  ASSERT_TRUE(succeeded(evaluateOperation(*copy, first, evaluation)));
  ASSERT_TRUE(succeeded(evaluateOperation(*copy, second, evaluation)));
  for (auto [own, result] :
       llvm::zip_equal((*copy)->getResults(), op->getResults())) {
    Tensor sum = std::get<Tensor>(first.at(own));
    const Tensor &other = std::get<Tensor>(second.at(own));
    ASSERT_EQ(sum.shape, other.shape);
    for (size_t i = 0; i < sum.values.size(); ++i)
      sum.values[i] += other.values[i];
    EXPECT_LE(distance(sum, std::get<Tensor>(environment.at(result))),
              tolerance)
        << op->getName().getStringRef().str() << " has the rule "
        << describeRule(rule) << ", but is not linear in operands "
        << testing::PrintToString(linearIn.vec());
  }
}

void LayoutRulesTest::checkFunction(FunctionOp function, LayerRun &run) {
  Block &block = function.getBody().front();
  std::vector<Datum> args = run.collectArguments(function);
  Environment environment;
  for (auto [argument, datum] : llvm::zip_equal(block.getArguments(), args))
    environment[argument] = std::move(datum);
  for (Operation &op : block.without_terminator()) {
    ASSERT_TRUE(succeeded(evaluateOperation(&op, environment, evaluation)));
    FailureOr<dist::FactorRule> rule = getLayoutRule(&op);
    ASSERT_TRUE(succeeded(rule));
    seen.insert(op.getName().getStringRef().str());
    for (ArrayRef<int> set : rule->linearIn) {
      ++claims;
      checkSet(&op, *rule, set, environment);
    }
  }
  std::vector<Datum> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(environment.at(value));
  run.setResults(function, std::move(results));
}

void LayoutRulesTest::checkLayer(ModuleOp module, LayerOp layer) {
  LayerRun run = makeRandomRun(layer, Segments::ofLengths({1, 5, 3}, 40), 100);
  for (Role role : {Role::Evaluate, Role::Forward, Role::Backward}) {
    FunctionOp function = findFunction(module, layer, role);
    ASSERT_TRUE(function);
    checkFunction(function, run);
  }
}

TEST_F(LayoutRulesTest, SumsPassOnlyThroughWhatIsLinear) {
  auto check = [&](const std::string &text, StringRef layer) {
    SCOPED_TRACE(layer.str());
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    PassManager passes(&context);
    passes.addPass(createDifferentiate());
    ASSERT_TRUE(module && succeeded(passes.run(*module)));
    checkLayer(*module, module->lookupSymbol<LayerOp>(layer));
  };
  for (const LayerCase &layerCase : layerCases)
    check(std::string("dyna.layer @") + layerCase.name + layerCase.text,
          layerCase.name);
  check(frozenHead, "head");
  EXPECT_GT(claims, 20);
  // These stand in update and cast alone, behind all sums.
  const std::set<std::string> ofUpdates = {"dyna.adamw", "dyna.cast",
                                           "dyna.sum_squares"};
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    std::string text = name.getStringRef().str();
    if (name.hasInterface<dist::LayoutRuleOpInterface>() &&
        !ofUpdates.count(text)) {
      EXPECT_THAT(seen, testing::Contains(text))
          << "has a layout rule, but is in none of the layer cases";
    }
  }
}
