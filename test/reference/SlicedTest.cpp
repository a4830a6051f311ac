//===- SlicedTest.cpp - Compiled code on slices against the evaluator -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiled models train one step on token slices, with whole samples beside them. The
// evaluator's reverse mode runs the same samples whole. Loss, activations and gradients
// must agree. Memory that nobody may read is filled with NaN, the stores of keys too.
//
// A second test loses each of the four carries of a store by itself: keys, values, and
// the gradients of both. The numbers must then differ by more than the tolerance.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "test/passes/SmallConfigs.h"
#include "test/reference/CompiledModel.h"
#include "test/reference/Configuration.h"
#include "test/reference/LayerRun.h"
#include "test/reference/RandomModule.h"
#include "test/reference/ReadModel.h"
#include "test/reference/SliceBatch.h"
#include "test/reference/Tolerances.h"
#include "test/runtime/device/TestDevice.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdio>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

namespace {

/// Distances from the evaluator, in units of the tolerances.
struct Errors {
  double loss = 0, activation = 0, gradient = 0;
};

class SlicedTest : public testing::TestWithParam<Configuration> {
protected:
  SlicedTest() {
    mlirContext.loadDialect<DynaDialect>();
    context.abi_version = DYNA_ABI_VERSION;
    context.world = 1;
    context.message = message;
    context.message_capacity = sizeof(message);
    context.inverse_targets = 1.0 / 64;
    device->bind(context, *stream);
  }

  Type element() {
    const std::string &type = GetParam().options.type;
    return type == "f64"    ? Type(Float64Type::get(&mlirContext))
           : type == "bf16" ? Type(BFloat16Type::get(&mlirContext))
                            : Type(Float32Type::get(&mlirContext));
  }

  /// Trains one step on the slices and compares it with the samples as a whole.
  Errors compare(const CompiledProgram &program, ModelOp model,
                 const Batch &batch, const SlicedBatch &sliced,
                 const StepOptions &options, uint64_t seed);
  Errors errorsOf(CompiledModel &compiled, const SlicedBatch &sliced,
                  const StepOptions &options, const ModelGradients &wanted);
  void checkConfig(const std::string &config, uint64_t seed);

  MLIRContext mlirContext;
  std::unique_ptr<::dyna::Device> device = ::dyna::makeTestDevice(2);
  std::unique_ptr<::dyna::Stream> stream = std::move(*device->createStream());
  dyna_context context = {};
  char message[256] = {};
};

/// Not smaller than any error, not a number included.
void note(double error, double tolerance, double &largest) {
  if (!(error / tolerance <= largest))
    largest = error / tolerance;
}

double relative(double given, double wanted) {
  return std::abs(given - wanted) / std::max(1.0, std::abs(wanted));
}

double largestOf(const NamedTensors &tensors) {
  double result = 0;
  for (const auto &[name, tensor] : tensors)
    for (double value : tensor.values)
      result = std::max(result, std::abs(value));
  return result;
}

Tensor rowsOf(const Tensor &all, const std::vector<int64_t> &rows) {
  Tensor some({static_cast<int64_t>(rows.size()), all.width()});
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t column = 0; column < all.width(); ++column)
      some.at(static_cast<int64_t>(i), column) = all.at(rows[i], column);
  return some;
}

} // namespace

Errors SlicedTest::errorsOf(CompiledModel &compiled, const SlicedBatch &sliced,
                            const StepOptions &options,
                            const ModelGradients &wanted) {
  const CompiledTolerances &tolerances = GetParam().tolerances;
  Errors errors;
  std::vector<std::vector<Tensor>> activations;
  const double loss = compiled.train(sliced.parts, options, activations);
  EXPECT_EQ(compiled.failure, "");
  note(relative(loss, wanted.loss), tolerances.loss, errors.loss);
  for (size_t part = 0; part < sliced.parts.size(); ++part)
    for (size_t i = 0; i < activations[part].size(); ++i)
      note(distance(activations[part][i],
                    rowsOf(wanted.activations[i], sliced.rows[part]), 0.1),
           tolerances.activation, errors.activation);
  NamedTensors wantedGradients;
  for (const auto &[name, tensor] : compiled.gradients())
    wantedGradients[name] = wanted.parameters.at(name);
  // A gradient far smaller than the others is noise of the others.
  const double floor = std::max(1e-4, 0.01 * largestOf(wantedGradients));
  for (const auto &[name, tensor] : compiled.gradients())
    note(distance(tensor, wantedGradients.at(name), floor), tolerances.gradient,
         errors.gradient);
  return errors;
}

Errors SlicedTest::compare(const CompiledProgram &program, ModelOp model,
                           const Batch &batch, const SlicedBatch &sliced,
                           const StepOptions &options, uint64_t seed) {
  context.seed = seed;
  context.step = static_cast<int64_t>(seed % 7);
  Context scalars;
  scalars.seed = seed;
  scalars.step = static_cast<uint64_t>(context.step);
  scalars.inverseTargets = context.inverse_targets;
  NamedTensors masters =
      initialParameters(model->getParentOfType<ModuleOp>(), seed);
  CompiledModel compiled(program, model, element(), context);
  compiled.setMasters(masters);
  NamedTensors parameters;
  for (const auto &[name, tensor] : compiled.parameters()) {
    parameters[name] = masters.at(name);
    roundTo(element(), parameters[name]);
  }
  Context noDropout = scalars;
  noDropout.dropout = false;
  if (!options.lost) {
    const double wanted = *evaluateModel(model, parameters, batch, noDropout);
    EXPECT_LE(relative(compiled.evaluate(sliced.parts), wanted),
              GetParam().tolerances.loss)
        << "evaluation";
  }
  return errorsOf(compiled, sliced, options,
                  *differentiateModel(model, parameters, batch, scalars));
}

//===----------------------------------------------------------------------===//
// Random models
//===----------------------------------------------------------------------===//

TEST_P(SlicedTest, RandomModelsAgreeWithTheEvaluator) {
  constexpr size_t count = 6;
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&mlirContext));
  const bool isSmooth = GetParam().options.type == "bf16";
  std::vector<std::pair<uint64_t, ModelOp>> models;
  for (uint64_t seed = GetParam().firstSeed; models.size() < count; ++seed) {
    // Slices of a model without attention have nothing to do with each other.
    OwningOpRef<ModuleOp> alone =
        ModuleOp::create(UnknownLoc::get(&mlirContext));
    const std::string name = "m" + std::to_string(seed);
    if (addRandomModel(*alone, name, seed).getFacts().getHeads() > 0)
      models.push_back({seed, addRandomModel(*module, name, seed, isSmooth)});
  }
  module->walk([](AttentionOp op) { op.setCausal(true); });
  std::unique_ptr<CompiledProgram> program =
      CompiledProgram::compile(*module, GetParam().options);
  ASSERT_TRUE(program);
  int withStore = 0;
  Errors worst;
  for (auto [seed, model] : models) {
    SCOPED_TRACE("dyna-random-module --seed=" + std::to_string(seed));
    Choices choices(seed + 991);
    for (int64_t number = 0; number < 4; ++number) {
      const Batch batch = makeRandomBatch(model, seed, number);
      const SlicedBatch sliced =
          sliceBatch(batch, seed + static_cast<uint64_t>(number));
      withStore += sliced.parts.front().stored > 0;
      StepOptions options;
      options.recompute = choices.oneOf(
          {Recompute::None, Recompute::Selective, Recompute::Full});
      options.splitBackward = choices.chance(0.5);
      const Errors errors =
          compare(*program, model, batch, sliced, options, seed);
      EXPECT_LE(errors.loss, 1);
      EXPECT_LE(errors.activation, 1);
      EXPECT_LE(errors.gradient, 1);
      note(errors.loss, 1, worst.loss);
      note(errors.activation, 1, worst.activation);
      note(errors.gradient, 1, worst.gradient);
    }
  }
  EXPECT_GE(withStore, 12) << "too few batches read keys of earlier slices";
  std::printf("%s: %d batches with stores; largest errors in tolerances: loss "
              "%.2g, activation %.2g, gradient %.2g\n",
              GetParam().name, withStore, worst.loss, worst.activation,
              worst.gradient);
}

//===----------------------------------------------------------------------===//
// Models of the families, and what they lose
//===----------------------------------------------------------------------===//

static const char *wordOf(Carry carry) {
  switch (carry) {
  case Carry::Keys:
    return "keys";
  case Carry::Values:
    return "values";
  case Carry::KeyGradients:
    return "gradients of keys";
  case Carry::ValueGradients:
    return "gradients of values";
  }
  return "";
}

void SlicedTest::checkConfig(const std::string &config, uint64_t seed) {
  OwningOpRef<ModuleOp> module = readModel(&mlirContext, config);
  ASSERT_TRUE(module);
  ModelOp model = *module->getOps<ModelOp>().begin();
  auto program = CompiledProgram::compile(*module, GetParam().options);
  ASSERT_TRUE(program);
  const Batch batch = makeBatch(model, {37, 1, 20, 9, 2}, seed);
  for (uint64_t cut = 0; cut < 3; ++cut) {
    const SlicedBatch sliced = sliceBatch(batch, seed + cut);
    ASSERT_GT(sliced.parts.front().stored, 0);
    StepOptions options;
    options.recompute = static_cast<Recompute>(cut);
    options.splitBackward = cut == 1;
    const Errors errors =
        compare(*program, model, batch, sliced, options, seed);
    EXPECT_LE(errors.loss, 1) << "cut " << cut;
    EXPECT_LE(errors.activation, 1) << "cut " << cut;
    EXPECT_LE(errors.gradient, 1) << "cut " << cut;
    // What bf16 rounds is larger than what a single carry does.
    const std::string &type = GetParam().options.type;
    if (type == "bf16" || (cut > 0 && type != "f64"))
      continue;
    for (Carry carry : allCarries) {
      options.lost = carry;
      const Errors lost =
          compare(*program, model, batch, sliced, options, seed);
      const bool isGradient =
          carry == Carry::KeyGradients || carry == Carry::ValueGradients;
      EXPECT_GT(lost.gradient, 10) << wordOf(carry) << ", cut " << cut;
      if (isGradient)
        EXPECT_EQ(lost.loss, errors.loss) << wordOf(carry) << ", cut " << cut;
      else if (type == "f64")
        EXPECT_GT(lost.loss, 10) << wordOf(carry) << ", cut " << cut;
    }
  }
}

TEST_P(SlicedTest, Gpt2NeedsEveryCarry) {
  checkConfig(smallGpt2(/*layers=*/2), 3);
}
TEST_P(SlicedTest, LlamaNeedsEveryCarry) {
  checkConfig(smallLlama({8, 2, 6, 56, /*layers=*/2}), 5);
}
TEST_P(SlicedTest, DroppedValuesNeedEveryCarry) {
  checkConfig(smallDropping(), 7);
}

static std::string nameOf(const testing::TestParamInfo<Configuration> &info) {
  return info.param.name;
}

static const CompileOptions emulatedF64 = {"f64", "", 0, "", "", true};
static const CompileOptions emulatedBf16 = {"bf16", "", 0, "", "", true};

INSTANTIATE_TEST_SUITE_P(
    Types, SlicedTest,
    testing::Values(
        Configuration{"f64", {"f64", "library", 512}, f64Tolerances, 0},
        Configuration{"f32", {"f32", "library", 512}, f32Tolerances, 1200},
        Configuration{"bf16", {"bf16", "library", 512}, bf16Tolerances, 1400},
        Configuration{"emulated_f64", emulatedF64, f64Tolerances, 1600},
        Configuration{"emulated_bf16", emulatedBf16, bf16Tolerances, 1800}),
    nameOf);
// More of them.
INSTANTIATE_TEST_SUITE_P(
    CheckAllTypes, SlicedTest,
    testing::Values(
        Configuration{"f64", {"f64", "library", 512}, f64Tolerances, 2000},
        Configuration{
            "f64_again", {"f64", "library", 256}, f64Tolerances, 2100},
        Configuration{"f32", {"f32", "generated", 512}, f32Tolerances, 2200},
        Configuration{"bf16", {"bf16", "library", 512}, bf16Tolerances, 2300},
        Configuration{"emulated_f64", emulatedF64, f64Tolerances, 2400}),
    nameOf);
