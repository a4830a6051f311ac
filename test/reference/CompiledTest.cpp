//===- CompiledTest.cpp - Compiled code against the evaluator -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random models go through the whole compiler and train one step on ragged
// micro-batches; the evaluator's own reverse mode runs the same logical graph.
// Compared are the loss, every activation between layers, every gradient and
// what AdamW makes of the parameters. Recomputation, the split backward and the
// number of micro-batches are drawn with the model.
//
// Twenty models are compiled at once: one module costs less than twenty.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "test/reference/CompiledModel.h"
#include "test/reference/Configuration.h"
#include "test/reference/Formulas.h"
#include "test/reference/LayerRun.h"
#include "test/reference/RandomModule.h"
#include "test/reference/Tolerances.h"
#include "test/runtime/device/TestDevice.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

namespace {

class CompiledTest
    : public testing::TestWithParam<std::tuple<Configuration, /*group=*/int>> {
protected:
  CompiledTest();

  Type element();
  void checkModel(const CompiledProgram &program, ModelOp model, uint64_t seed);
  void checkUpdate(CompiledModel &compiled, ModelOp model,
                   const NamedTensors &gradients);
  /// Compares tensors by name; distances count relative to the largest value
  /// of each, or to `floor` if that is more.
  void compare(const NamedTensors &given, const NamedTensors &wanted,
               double tolerance, double floor, const char *what);

  /// `given` is at most `bound`; remembers the largest value by `what`.
  void expectAtMost(double given, double bound, const std::string &what,
                    const std::string &of);
  static void SetUpTestSuite() { largestSeen.clear(); }
  static void TearDownTestSuite();

  const Configuration &configuration() { return std::get<0>(GetParam()); }

  MLIRContext mlirContext;
  std::unique_ptr<::dyna::Device> device;
  std::unique_ptr<::dyna::Stream> stream;
  dyna_context context = {};
  char message[256] = {};
  /// What tolerances are chosen by.
  static std::map<std::string, double> largestSeen;
};

} // namespace

std::map<std::string, double> CompiledTest::largestSeen;

void CompiledTest::TearDownTestSuite() {
  for (const auto &[what, value] : largestSeen)
    std::printf("largest error of %s: %.2g\n", what.c_str(), value);
}

void CompiledTest::expectAtMost(double given, double bound,
                                const std::string &what,
                                const std::string &of) {
  EXPECT_LE(given, bound) << what << " of " << of;
  double &seen = largestSeen[what];
  seen = given <= seen ? seen : given;
}

static constexpr int modelsPerGroup = 20;
static constexpr double kGradientScale = 0.7;

CompiledTest::CompiledTest() {
  mlirContext.loadDialect<DynaDialect>();
  // Two threads now and then: what they share is the kernels' own test's
  // business.
  device = ::dyna::makeTestDevice(std::get<1>(GetParam()) == 0 ? 2 : 1);
  stream = std::move(*device->createStream());
  context.abi_version = DYNA_ABI_VERSION;
  context.world = 1;
  context.message = message;
  context.message_capacity = sizeof(message);
  context.optimizer = {/*learning_rate=*/1e-2,
                       /*beta1=*/0.9,
                       /*beta2=*/0.95,
                       /*epsilon=*/1e-8,
                       /*weight_decay=*/0.1,
                       /*gradient_scale=*/&kGradientScale,
                       /*correction1=*/0.19,
                       /*correction2=*/0.0975};
}

Type CompiledTest::element() {
  const std::string &type = configuration().options.type;
  if (type == "f64")
    return Float64Type::get(&mlirContext);
  if (type == "bf16")
    return BFloat16Type::get(&mlirContext);
  return Float32Type::get(&mlirContext);
}

static double largest(const NamedTensors &tensors) {
  double result = 0;
  for (const auto &[name, tensor] : tensors)
    for (double value : tensor.values)
      result = std::max(result, std::abs(value));
  return result;
}

void CompiledTest::compare(const NamedTensors &given,
                           const NamedTensors &wanted, double tolerance,
                           double floor, const char *what) {
  for (const auto &[name, tensor] : wanted)
    expectAtMost(distance(given.at(name), tensor, floor), tolerance, what,
                 name);
}

static Optimizer optimizerOf(const dyna_optimizer &from) {
  Optimizer to;
  to.learningRate = from.learning_rate;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.epsilon;
  to.weightDecay = from.weight_decay;
  to.gradientScale = *from.gradient_scale;
  to.correction1 = from.correction1;
  to.correction2 = from.correction2;
  return to;
}

/// AdamW starts from the gradients that the compiled code has, so that this
/// compares the update alone: a first step turns any noise into a full one.
void CompiledTest::checkUpdate(CompiledModel &compiled, ModelOp model,
                               const NamedTensors &gradients) {
  double square = 0;
  for (const auto &[name, tensor] : gradients)
    square += sumSquares(tensor);
  double norm = compiled.gradientNormSquared();
  expectAtMost(std::abs(norm - square) / std::max(square, 1e-6),
               configuration().tolerances.update, "gradient norm", "all");

  NamedTensors masters = compiled.masters(), m, v, zeros;
  Type accumulator = getAccumulatorType(element());
  uint64_t seed = 1;
  for (const auto &[name, tensor] : masters) {
    m[name] = initialParameter(name, tensor.shape, 0, 0.1, ++seed);
    v[name] = initialParameter(name, tensor.shape, 0, 0.1, ++seed);
    for (double &value : v[name].values)
      value = value * value;
    roundTo(accumulator, m[name]);
    roundTo(accumulator, v[name]);
    zeros[name] = Tensor(tensor.shape);
  }
  compiled.setMoments(m, v);
  compiled.update();
  ASSERT_EQ(compiled.failure, "");

  NamedTensors cleared = gradients;
  auto module = model->getParentOfType<ModuleOp>();
  for (auto &[name, tensor] : masters) {
    bool decay = module.lookupSymbol<ParameterOp>(name).getDecay();
    adamw(tensor, cleared[name], m[name], v[name], decay,
          optimizerOf(context.optimizer));
  }
  double tolerance = configuration().tolerances.update;
  compare(compiled.masters(), masters, tolerance, 1e-2, "new value");
  compare(compiled.firstMoments(), m, tolerance, 1e-3, "first moment");
  compare(compiled.secondMoments(), v, tolerance, 1e-4, "second moment");
  compare(compiled.gradients(), zeros, 0.0, 1.0, "cleared gradient");
  // Under bf16 the parameters follow their masters, correctly rounded.
  NamedTensors rounded = compiled.masters();
  for (auto &[name, tensor] : rounded)
    roundTo(element(), tensor);
  compare(compiled.parameters(), rounded, 0.0, 1.0, "new parameter");
}

void CompiledTest::checkModel(const CompiledProgram &program, ModelOp model,
                              uint64_t seed) {
  Choices choices(seed + 4242);
  StepOptions options;
  options.recompute =
      choices.oneOf({Recompute::None, Recompute::Selective, Recompute::Full});
  options.splitBackward = choices.chance(0.5);
  std::vector<Batch> batches;
  for (int64_t i = 0, n = choices.between(1, 2); i < n; ++i)
    batches.push_back(makeRandomBatch(model, seed, i));

  context.seed = seed;
  context.step = static_cast<int64_t>(seed % 7);
  context.inverse_targets = 1.0 / 64;
  Context scalars;
  scalars.seed = context.seed;
  scalars.step = static_cast<uint64_t>(context.step);
  scalars.inverseTargets = context.inverse_targets;

  auto module = model->getParentOfType<ModuleOp>();
  NamedTensors masters = initialParameters(module, seed);
  CompiledModel compiled(program, model, element(), context);
  compiled.setMasters(masters);
  ASSERT_EQ(compiled.failure, "");
  NamedTensors parameters;
  for (const auto &[name, tensor] : compiled.parameters()) {
    parameters[name] = masters.at(name);
    roundTo(element(), parameters[name]);
    EXPECT_EQ(distance(tensor, parameters[name]), 0.0) << name;
  }

  // Evaluation.
  const CompiledTolerances &tolerances = configuration().tolerances;
  Context noDropout = scalars;
  noDropout.dropout = false;
  double wanted = *evaluateModel(model, parameters, batches[0], noDropout);
  double evaluated = compiled.evaluate(batches[0]);
  expectAtMost(std::abs(evaluated - wanted) / std::max(1.0, std::abs(wanted)),
               tolerances.loss, "loss", "evaluation");
  ASSERT_EQ(compiled.failure, "");

  // One step.
  ModelGradients sum;
  for (const Batch &batch : batches) {
    ModelGradients one = *differentiateModel(model, parameters, batch, scalars);
    if (sum.parameters.empty()) {
      sum = std::move(one);
      continue;
    }
    sum.loss += one.loss;
    for (auto &[name, tensor] : sum.parameters)
      tensor = add(tensor, one.parameters[name]);
  }
  std::vector<Tensor> activations;
  double loss = compiled.train(batches, options, activations);
  ASSERT_EQ(compiled.failure, "");
  expectAtMost(std::abs(loss - sum.loss) / std::max(1.0, std::abs(sum.loss)),
               tolerances.loss, "loss", "training");
  for (size_t i = 0; i < activations.size(); ++i)
    expectAtMost(distance(activations[i], sum.activations[i], 0.1),
                 tolerances.activation, "activation",
                 "call " + std::to_string(i));
  NamedTensors gradients = compiled.gradients();
  NamedTensors wantedGradients;
  for (const auto &[name, tensor] : gradients)
    wantedGradients[name] = sum.parameters.at(name);
  // A gradient far smaller than the others is noise of the others.
  double floor = std::max(1e-4, 0.01 * largest(wantedGradients));
  compare(gradients, wantedGradients, tolerances.gradient, floor, "gradient");
  if (!HasFailure())
    checkUpdate(compiled, model, gradients);
}

TEST_P(CompiledTest, AgreesWithTheEvaluator) {
  device->bind(context, *stream);
  uint64_t first =
      configuration().firstSeed +
      static_cast<uint64_t>(std::get<1>(GetParam())) * modelsPerGroup;
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&mlirContext));
  bool isSmooth = configuration().options.type == "bf16";
  std::vector<ModelOp> models;
  for (uint64_t seed = first; seed < first + modelsPerGroup; ++seed)
    models.push_back(
        addRandomModel(*module, "m" + std::to_string(seed), seed, isSmooth));
  std::unique_ptr<CompiledProgram> program =
      CompiledProgram::compile(*module, configuration().options);
  ASSERT_TRUE(program);
  for (size_t i = 0; i < models.size(); ++i) {
    SCOPED_TRACE("dyna-random-module --seed=" + std::to_string(first + i) +
                 (isSmooth ? " --smooth" : ""));
    checkModel(*program, models[i], first + i);
  }
}

/// Rows wider than what a warp keeps in registers, rotated rows that are read back,
/// and a last piece that not all threads have: random models are narrower. WIDTH is a
/// multiple of 48; TURN is rotary or relu.
static const char *const wideModel = R"(
dyna.parameter @wte : tensor<13xWIDTHxf32> normal 0.3 decay
dyna.parameter @g : tensor<WIDTHxf32> constant 1.0
dyna.parameter @b : tensor<WIDTHxf32>
dyna.layer @embed[%wte: tensor<13xWIDTHxf32>](%ids: tensor<?xi32>) -> tensor<?xWIDTHxf32> {
  %0 = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<13xWIDTHxf32>
  dyna.return %0 : tensor<?xWIDTHxf32>
}
dyna.layer @block[%g: tensor<WIDTHxf32>, %b: tensor<WIDTHxf32>](%x: tensor<?xWIDTHxf32>, %s: !dyna.segments) -> tensor<?xWIDTHxf32> {
  %r = dyna.TURN : tensor<?xWIDTHxf32>
  %h = dyna.add %x, %r : tensor<?xWIDTHxf32>
  %n = dyna.rms_norm %h, %g {epsilon = 1.0e-5 : f64} : tensor<?xWIDTHxf32>, tensor<WIDTHxf32>
  %m = dyna.layer_norm %n, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?xWIDTHxf32>, tensor<WIDTHxf32>
  %a = dyna.gelu %m erf : tensor<?xWIDTHxf32>
  %d = dyna.dropout %a, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?xWIDTHxf32>
  %z = dyna.add %h, %d : tensor<?xWIDTHxf32>
  dyna.return %z : tensor<?xWIDTHxf32>
}
dyna.layer @head[%w: tensor<13xWIDTHxf32>](%x: tensor<?xWIDTHxf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?xWIDTHxf32>, tensor<13xWIDTHxf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @wide(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 13, positions = 0, width = WIDTH, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?xWIDTHxf32>
  %1 = dyna.call "h.0" @block[@g, @b](%0, %s) : (tensor<?xWIDTHxf32>, !dyna.segments) -> tensor<?xWIDTHxf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?xWIDTHxf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
)";

class WideRowsTest : public CompiledTest {
protected:
  void checkWidth(int64_t width, bool isRotated);
};

void WideRowsTest::checkWidth(int64_t width, bool isRotated) {
  ASSERT_TRUE(device);
  device->bind(context, *stream);
  std::string text = wideModel;
  auto put = [&](const std::string &place, const std::string &what) {
    for (size_t at; (at = text.find(place)) != std::string::npos;)
      text.replace(at, place.size(), what);
  };
  put("WIDTH", std::to_string(width));
  put("TURN", isRotated
                  ? "rotary %x, %s {head_dim = 48 : i64, theta = 1.0e4 : f64}"
                  : "relu %x");
  auto module = parseSourceString<ModuleOp>(text, &mlirContext);
  ASSERT_TRUE(module);
  std::unique_ptr<CompiledProgram> program =
      CompiledProgram::compile(*module, configuration().options);
  ASSERT_TRUE(program);
  checkModel(*program, *module->getOps<ModelOp>().begin(),
             configuration().firstSeed);
}

TEST_P(WideRowsTest, AgreesWithTheEvaluator) { checkWidth(1104, true); }

/// Of as many threads as have enough registers, with several pieces each, the last of
/// which not all have; of such as have never enough, which read operands again.
TEST_P(WideRowsTest, WithFewRegistersAgreesToo) { checkWidth(6192, false); }
TEST_P(WideRowsTest, WithTooFewRegistersAgreesToo) { checkWidth(12336, false); }

static const Configuration f64Configuration = {
    "f64", {"f64", "library", 512}, f64Tolerances, 0};
static const Configuration f32Configuration = {
    "f32", {"f32", "library", 512}, f32Tolerances, 200};
static const Configuration f32GeneratedConfiguration = {
    "f32_generated", {"f32", "generated", 256}, f32Tolerances, 300};
static const Configuration bf16Configuration = {
    "bf16", {"bf16", "library", 512}, bf16Tolerances, 400};

/// Gradients rounded once for each of the one or two micro-batches.
static const Configuration bf16GradientsConfiguration = {
    "bf16_gradients",
    {"bf16", "library", 512, "", "bf16"},
    bf16Tolerances,
    500};

/// The same kernels that a GPU runs, a fiber per thread.
static const Configuration emulatedF64Configuration = {
    "emulated_f64", {"f64", "", 0, "", "", true}, f64Tolerances, 600};
static const Configuration emulatedF32Configuration = {
    "emulated_f32", {"f32", "", 0, "", "", true}, f32Tolerances, 700};
static const Configuration emulatedBf16Configuration = {
    "emulated_bf16", {"bf16", "", 0, "", "", true}, bf16Tolerances, 800};
static const Configuration emulatedBf16GradientsConfiguration = {
    "emulated_bf16_gradients",
    {"bf16", "", 0, "", "bf16", true},
    bf16Tolerances,
    900};

static std::string
nameOf(const testing::TestParamInfo<std::tuple<Configuration, int>> &info) {
  return std::string(std::get<0>(info.param).name) + "_" +
         std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(F64, CompiledTest,
                         testing::Combine(testing::Values(f64Configuration),
                                          testing::Range(0, 4)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(F32, CompiledTest,
                         testing::Combine(testing::Values(f32Configuration),
                                          testing::Range(0, 2)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    F32Generated, CompiledTest,
    testing::Combine(testing::Values(f32GeneratedConfiguration),
                     testing::Range(0, 2)),
    nameOf);
INSTANTIATE_TEST_SUITE_P(Bf16, CompiledTest,
                         testing::Combine(testing::Values(bf16Configuration),
                                          testing::Range(0, 2)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Bf16Gradients, CompiledTest,
    testing::Combine(testing::Values(bf16GradientsConfiguration),
                     testing::Range(0, 1)),
    nameOf);
// More of them.
INSTANTIATE_TEST_SUITE_P(CheckAllF64, CompiledTest,
                         testing::Combine(testing::Values(f64Configuration),
                                          testing::Range(4, 10)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    CheckAllOthers, CompiledTest,
    testing::Combine(testing::Values(f32Configuration, bf16Configuration,
                                     bf16GradientsConfiguration),
                     testing::Range(2, 5)),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Emulated, CompiledTest,
    testing::Combine(testing::Values(emulatedF64Configuration,
                                     emulatedF32Configuration,
                                     emulatedBf16Configuration,
                                     emulatedBf16GradientsConfiguration),
                     testing::Range(0, 1)),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Emulated, WideRowsTest,
    testing::Combine(testing::Values(f32Configuration, emulatedF64Configuration,
                                     emulatedF32Configuration,
                                     emulatedBf16Configuration,
                                     emulatedBf16GradientsConfiguration),
                     testing::Values(0)),
    nameOf);
