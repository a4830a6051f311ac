//===- GoldenReferenceTest.cpp - The evaluator against PyTorch ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The golden files hold the reference evaluator as they hold compiled code: the
// oracle of the random tests is itself checked against numbers that nobody here
// computed. It also pins the order of documents, the initial values and the
// learning rates that make_golden.py wrote again.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/differentiate/Passes.h"
#include "runtime/data/BatchReader.h"
#include "runtime/data/OpenDataset.h"
#include "test/reference/Evaluator.h"
#include "test/reference/Formulas.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

static constexpr double tolerance = 1e-10;

static std::string goldenFile(const std::string &name) {
  return std::string(DYNA_GOLDEN_DIR) + "/" + name;
}

static llvm::json::Value readJson(const std::string &name) {
  auto buffer = llvm::MemoryBuffer::getFile(goldenFile(name));
  EXPECT_TRUE(buffer) << name;
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse((*buffer)->getBuffer());
  EXPECT_TRUE(static_cast<bool>(value)) << name;
  return std::move(*value);
}

/// The value of `--name=` among the flags of the golden run.
static double flag(const llvm::json::Object &golden, const std::string &name) {
  std::string start = "--" + name + "=";
  for (const llvm::json::Value &value : *golden.getArray("flags"))
    if (value.getAsString()->starts_with(start))
      return std::stod(value.getAsString()->drop_front(start.size()).str());
  ADD_FAILURE() << "no flag " << start;
  return 0;
}

static Batch joinSamples(const ::dyna::MiniBatch &miniBatch) {
  Batch batch;
  std::vector<int64_t> lengths;
  for (const ::dyna::Sample &sample : miniBatch.samples) {
    lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
    llvm::append_range(batch.ids, sample.tokens);
    llvm::append_range(batch.targets, sample.targets);
  }
  batch.segments = Segments::ofLengths(lengths);
  return batch;
}

namespace {
class GoldenTest : public testing::TestWithParam<const char *> {
protected:
  GoldenTest() { context.loadDialect<DynaDialect>(); }
  void SetUp() override;
  void step(int64_t index);
  double learningRateAt(double step);
  Optimizer optimizerAt(int64_t step, double norm);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ModelOp model;
  llvm::json::Object golden;
  std::unique_ptr<::dyna::BatchReader> reader;
  NamedTensors parameters, m, v;
};
} // namespace

void GoldenTest::SetUp() {
  std::string name = GetParam();
  module = parseSourceFile<ModuleOp>(goldenFile(name + ".mlir"), &context);
  ASSERT_TRUE(module);
  PassManager passes(&context);
  ConvertComputeTypeOptions options;
  options.type = "f64"; // so that initial values are not rounded
  passes.addPass(createConvertComputeType(options));
  ASSERT_TRUE(succeeded(passes.run(*module)));
  model = *module->getOps<ModelOp>().begin();
  golden = std::move(*readJson(name + ".json").getAsObject());

  std::string samples = golden.getString("samples").value_or(name).str();
  auto dataset = ::dyna::openDataset(
      {goldenFile(samples + "_inputs"), goldenFile(samples + "_targets")}, {});
  ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
  auto index =
      ::dyna::SampleIndex::create(*dataset, {model.getFacts().getPositions(),
                                             ::dyna::LongDocuments::Error});
  ASSERT_TRUE(index.isOk()) << index.status().message();
  ::dyna::BatchOptions batches;
  batches.shuffle = ::dyna::Shuffle::None;
  batches.seed = static_cast<uint64_t>(flag(golden, "seed"));
  reader = std::make_unique<::dyna::BatchReader>(*index, batches);
  parameters = initialParameters(*module, batches.seed);
  for (const auto &[key, tensor] : parameters)
    m[key] = v[key] = Tensor(tensor.shape);
}

double GoldenTest::learningRateAt(double step) {
  double lr = flag(golden, "lr"), warmup = flag(golden, "warmup");
  if (step < warmup)
    return lr * (step + 1) / warmup;
  double done = (step - warmup) / (flag(golden, "steps") - warmup);
  double low = flag(golden, "min-lr");
  return low + (lr - low) * 0.5 * (1 + std::cos(std::acos(-1.0) * done));
}

Optimizer GoldenTest::optimizerAt(int64_t step, double norm) {
  Optimizer optimizer;
  optimizer.learningRate = learningRateAt(static_cast<double>(step));
  optimizer.beta1 = flag(golden, "beta1");
  optimizer.beta2 = flag(golden, "beta2");
  optimizer.epsilon = flag(golden, "epsilon");
  optimizer.weightDecay = flag(golden, "weight-decay");
  optimizer.gradientScale = std::min(1.0, flag(golden, "clip") / norm);
  optimizer.correction1 =
      1 - std::pow(optimizer.beta1, static_cast<double>(step + 1));
  optimizer.correction2 =
      1 - std::pow(optimizer.beta2, static_cast<double>(step + 1));
  return optimizer;
}

void GoldenTest::step(int64_t index) {
  auto at = static_cast<size_t>(index);
  auto miniBatch =
      reader->next(static_cast<int64_t>(flag(golden, "tokens-per-batch")));
  ASSERT_TRUE(miniBatch.isOk()) << miniBatch.status().message();
  EXPECT_EQ(miniBatch->tokens, (*golden.getArray("tokens"))[at].getAsInteger());
  EXPECT_EQ(miniBatch->targets,
            (*golden.getArray("targets"))[at].getAsInteger());

  Context scalars;
  scalars.inverseTargets = 1.0 / static_cast<double>(miniBatch->targets);
  FailureOr<ModelGradients> gradients =
      differentiateModel(model, parameters, joinSamples(*miniBatch), scalars);
  ASSERT_TRUE(succeeded(gradients));
  double wanted = *(*golden.getArray("losses"))[at].getAsNumber();
  EXPECT_NEAR(gradients->loss * scalars.inverseTargets, wanted,
              tolerance * wanted);

  double square = 0;
  for (const auto &[name, gradient] : gradients->parameters) {
    if (module->lookupSymbol<ParameterOp>(name).getFrozen())
      continue;
    square += sumSquares(gradient);
    if (index != 0)
      continue;
    double norm = *golden.getObject("gradient_norms")->getNumber(name);
    EXPECT_NEAR(std::sqrt(sumSquares(gradient)), norm,
                tolerance * std::max(norm, 0.01))
        << name;
  }
  Optimizer optimizer = optimizerAt(index, std::sqrt(square));
  for (ParameterOp op : module->getOps<ParameterOp>()) {
    std::string name = op.getSymName().str();
    if (op.getFrozen())
      continue;
    adamw(parameters[name], gradients->parameters[name], m[name], v[name],
          op.getDecay(), optimizer);
  }
}

TEST_P(GoldenTest, EvaluatorComputesTheLossesOfPyTorch) {
  auto numSteps = static_cast<int64_t>(flag(golden, "steps"));
  for (int64_t index = 0; index < numSteps; ++index)
    step(index);
  for (const auto &[name, tensor] : parameters) {
    double norm = *golden.getObject("final_norms")->getNumber(name);
    EXPECT_NEAR(std::sqrt(sumSquares(tensor)), norm,
                tolerance * std::max(norm, 0.01))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values("gpt2", "llama", "lora", "exits"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
