//===- GradientTest.cpp - Gradients against finite differences -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every op alone in a layer, and whole blocks, go through the differentiate
// phase and are run by the evaluator in f64:
//
// - backward agrees with central differences of the layer itself;
// - backward_input and backward_weight together equal backward;
// - both recomputations give back exactly what forward saved;
// - evaluate and forward equal the layer without and with dropout.
//
// Random modules then hold backward against the evaluator's own reverse mode.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/differentiate/Passes.h"
#include "test/reference/Formulas.h"
#include "test/reference/LayerRun.h"
#include "test/reference/RandomModule.h"
#include "test/reference/Tolerances.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

static Context makeContext() {
  Context context;
  context.seed = 5;
  context.step = 3;
  context.layer = 2;
  context.inverseTargets = 0.25;
  return context;
}

namespace {

struct LayerCase {
  const char *name;
  const char *text; ///< parameters, inputs, result type and body
};

class DifferentiateTest : public testing::Test {
protected:
  DifferentiateTest() { context.loadDialect<DynaDialect>(); }

  OwningOpRef<ModuleOp> differentiate(OwningOpRef<ModuleOp> module) {
    PassManager passes(&context);
    passes.addPass(createDifferentiate());
    if (!module || failed(passes.run(*module)))
      return {};
    return module;
  }

  /// Differentiates and runs all checks for one layer on ragged segments.
  void checkLayer(ModuleOp module, LayerOp layer, bool withDifferences);
  void checkRun(ModuleOp module, LayerOp layer, const Segments &segments,
                bool withDifferences);
  void checkDifferences(LayerOp layer, const LayerRun &start,
                        const LayerRun &after);
  void checkOwnReverseMode(LayerOp layer, const LayerRun &start,
                           const LayerRun &after);

  LogicalResult run(ModuleOp module, LayerOp layer, Role role,
                    LayerRun &state) {
    FunctionOp function = findFunction(module, layer, role);
    EXPECT_TRUE(function) << stringifyRole(role).str();
    return function ? state.run(function, evaluation) : failure();
  }

  MLIRContext context;
  Context evaluation = makeContext();
};

} // namespace

static std::vector<Datum> layerArguments(LayerOp layer, const LayerRun &run) {
  std::vector<Datum> args(run.parameters.begin(), run.parameters.end());
  size_t next = 0;
  for (BlockArgument input : layer.getInputArguments())
    if (isa<SegmentsType>(input.getType()))
      args.push_back(run.segments);
    else
      args.push_back(run.inputs[next++]);
  return args;
}

/// The scalar whose gradient backward computes: the loss divided by the target
/// count, plus the product of the activation with its given gradient.
static double objective(LayerOp layer, const std::vector<Datum> &args,
                        const LayerRun &run, const Context &context) {
  FailureOr<std::vector<Datum>> data = evaluateResults(layer, args, context);
  double sum = 0.0;
  if (layer.givesLoss())
    sum = std::get<Tensor>(data->back())[0] * context.inverseTargets;
  if (!layer.givesActivation())
    return sum;
  const Tensor &result = std::get<Tensor>(data->front());
  for (size_t i = 0; i < result.values.size(); ++i)
    sum += result.values[i] * run.outputGradients[0].values[i];
  return sum;
}

void DifferentiateTest::checkDifferences(LayerOp layer, const LayerRun &start,
                                         const LayerRun &after) {
  std::vector<Datum> args = layerArguments(layer, start);
  size_t numParameters = start.parameters.size();
  for (size_t a = 0; a < args.size(); ++a) {
    Tensor *tensor = std::get_if<Tensor>(&args[a]);
    if (!tensor)
      continue;
    Tensor wanted(tensor->shape), given(tensor->shape);
    // Large tensors are probed; a stride prime to the sizes meets all columns.
    size_t stride = tensor->values.size() > 60 ? 7 : 1;
    for (size_t i = 0; i < tensor->values.size(); i += stride) {
      double saved = tensor->values[i];
      tensor->values[i] = saved + differenceStep;
      double above = objective(layer, args, start, evaluation);
      tensor->values[i] = saved - differenceStep;
      double below = objective(layer, args, start, evaluation);
      tensor->values[i] = saved;
      wanted.values[i] = (above - below) / (2 * differenceStep);
      given.values[i] = a < numParameters
                            ? after.accumulators[a].values[i] -
                                  start.accumulators[a].values[i]
                            : after.inputGradients.at(0).values[i];
    }
    EXPECT_LE(distance(given, wanted), differenceTolerance)
        << "argument " << a << " of @" << layer.getSymName().str();
  }
}

void DifferentiateTest::checkOwnReverseMode(LayerOp layer,
                                            const LayerRun &start,
                                            const LayerRun &after) {
  std::vector<Tensor> dResults;
  if (layer.givesActivation())
    dResults.push_back(start.outputGradients[0]);
  if (layer.givesLoss())
    dResults.push_back(Tensor({1}, evaluation.inverseTargets));
  FailureOr<LayerGradients> wanted = differentiateLayer(
      layer, layerArguments(layer, start), dResults, evaluation);
  ASSERT_TRUE(succeeded(wanted));
  for (size_t i = 0; i < start.parameters.size(); ++i)
    EXPECT_LE(distance(after.accumulators[i],
                       add(wanted->parameters[i], start.accumulators[i])),
              sameFormulaTolerance)
        << "parameter " << i << " of @" << layer.getSymName().str();
  if (!wanted->input.shape.empty())
    EXPECT_LE(distance(after.inputGradients.at(0), wanted->input),
              sameFormulaTolerance)
        << "input of @" << layer.getSymName().str();
}

static double tierDistance(const std::vector<Datum> &a,
                           const std::vector<Datum> &b) {
  if (a.size() != b.size())
    return std::numeric_limits<double>::infinity();
  double result = 0.0;
  for (size_t i = 0; i < a.size(); ++i)
    result = std::max(result,
                      distance(std::get<Tensor>(a[i]), std::get<Tensor>(b[i])));
  return result;
}

void DifferentiateTest::checkRun(ModuleOp module, LayerOp layer,
                                 const Segments &segments,
                                 bool withDifferences) {
  const LayerRun start = makeRandomRun(layer, segments, 100);
  LayerRun whole = start;
  ASSERT_TRUE(succeeded(run(module, layer, Role::Forward, whole)));
  auto expectResults = [&](const LayerRun &run, const Context &with) {
    FailureOr<std::vector<Datum>> wanted =
        evaluateResults(layer, layerArguments(layer, start), with);
    ASSERT_EQ(run.outputs.size(), wanted->size());
    for (size_t i = 0; i < wanted->size(); ++i)
      EXPECT_EQ(distance(run.outputs[i], std::get<Tensor>((*wanted)[i])), 0.0);
  };
  expectResults(whole, evaluation);

  Context noDropout = evaluation;
  noDropout.dropout = false;
  LayerRun evaluated = start;
  ASSERT_TRUE(succeeded(run(module, layer, Role::Evaluate, evaluated)));
  expectResults(evaluated, noDropout);

  if (!layer.givesLoss()) {
    LayerRun selective = whole, full = whole;
    selective.tiers[Memory::Elementwise].clear();
    ASSERT_TRUE(
        succeeded(run(module, layer, Role::RecomputeSelective, selective)));
    full.tiers.clear();
    ASSERT_TRUE(succeeded(run(module, layer, Role::RecomputeFull, full)));
    for (Memory memory : {Memory::Products, Memory::Elementwise}) {
      EXPECT_EQ(tierDistance(selective.tiers[memory], whole.tiers[memory]), 0);
      EXPECT_EQ(tierDistance(full.tiers[memory], whole.tiers[memory]), 0);
    }
  }

  LayerRun halves = whole;
  ASSERT_TRUE(succeeded(run(module, layer, Role::Backward, whole)));
  ASSERT_TRUE(succeeded(run(module, layer, Role::BackwardInput, halves)));
  ASSERT_TRUE(succeeded(run(module, layer, Role::BackwardWeight, halves)));
  ASSERT_EQ(whole.inputGradients.size(), halves.inputGradients.size());
  if (!whole.inputGradients.empty())
    EXPECT_LE(distance(halves.inputGradients[0], whole.inputGradients[0]),
              sameFormulaTolerance);
  for (size_t i = 0; i < whole.accumulators.size(); ++i)
    EXPECT_LE(distance(halves.accumulators[i], whole.accumulators[i]),
              sameFormulaTolerance);

  checkOwnReverseMode(layer, start, whole);
  if (withDifferences)
    checkDifferences(layer, start, whole);
}

void DifferentiateTest::checkLayer(ModuleOp module, LayerOp layer,
                                   bool withDifferences) {
  for (const std::vector<int64_t> &lengths :
       {std::vector<int64_t>{1, 5, 3, 1}, {1}, {}, {7}, {2, 2}}) {
    SCOPED_TRACE("segments of lengths " + testing::PrintToString(lengths));
    checkRun(module, layer, Segments::ofLengths(lengths, 40), withDifferences);
  }
}

//===----------------------------------------------------------------------===//
// Every op alone, whole blocks
//===----------------------------------------------------------------------===//

static const LayerCase layerCases[] = {
#include "test/reference/LayerCases.inc"
};

namespace {
class LayerCaseTest : public DifferentiateTest,
                      public testing::WithParamInterface<LayerCase> {};
} // namespace

TEST_P(LayerCaseTest, AgreesWithFiniteDifferences) {
  std::string text =
      std::string("dyna.layer @") + GetParam().name + GetParam().text;
  OwningOpRef<ModuleOp> module =
      differentiate(parseSourceString<ModuleOp>(text, &context));
  ASSERT_TRUE(module) << text;
  checkLayer(*module, *module->getOps<LayerOp>().begin(),
             /*withDifferences=*/true);
}

INSTANTIATE_TEST_SUITE_P(Ops, LayerCaseTest, testing::ValuesIn(layerCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

//===----------------------------------------------------------------------===//
// Random layers
//===----------------------------------------------------------------------===//

TEST_F(DifferentiateTest, RandomLayersAgreeWithTheEvaluatorsReverseMode) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    addRandomModel(*module, "m", seed);
    module = differentiate(std::move(module));
    ASSERT_TRUE(module);
    for (LayerOp layer : module->getOps<LayerOp>())
      checkRun(*module, layer, Segments::ofLengths({1, 6, 3}),
               /*withDifferences=*/false);
  }
}

/// The formulas of the evaluator's own reverse mode, through whole models with
/// tied parameters.
TEST_F(DifferentiateTest, ModelGradientsAgreeWithFiniteDifferences) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    ModelOp model = addRandomModel(*module, "m", seed);
    NamedTensors parameters = initialParameters(*module, seed);
    Batch batch = makeRandomBatch(model, seed, 0);
    FailureOr<ModelGradients> gradients =
        differentiateModel(model, parameters, batch, evaluation);
    ASSERT_TRUE(succeeded(gradients));
    for (auto &[name, tensor] : parameters) {
      size_t i = static_cast<size_t>(uniform(seed, 1) *
                                     static_cast<double>(tensor.values.size()));
      double saved = tensor.values[i];
      tensor.values[i] = saved + differenceStep;
      double above = *evaluateModel(model, parameters, batch, evaluation);
      tensor.values[i] = saved - differenceStep;
      double below = *evaluateModel(model, parameters, batch, evaluation);
      tensor.values[i] = saved;
      double wanted =
          (above - below) / (2 * differenceStep) * evaluation.inverseTargets;
      EXPECT_NEAR(gradients->parameters[name].values[i], wanted,
                  differenceTolerance * std::max(1.0, std::abs(wanted)))
          << name;
    }
  }
}
