//===- CompiledRanksTest.cpp - Compiled code on several ranks -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole models, compiled at a tensor degree, train one step on ranks that are
// threads, with the threads transport between them; the same model compiled
// for one rank must give the same loss and, put together from the ranks' parts,
// the same gradients. Recomputation, the split backward and evaluation too.
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/Patience.h"
#include "test/passes/SmallConfigs.h"
#include "test/reference/CompiledModel.h"
#include "test/reference/Distributed.h"
#include "test/reference/LayerRun.h"
#include "test/reference/RandomModule.h"
#include "test/reference/ReadModel.h"
#include "test/reference/SliceBatch.h"
#include "test/reference/Tolerances.h"
#include "test/runtime/device/TestDevice.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

namespace {

const std::string gpt2 = smallGpt2(/*layers=*/2);
const std::string llama = smallLlama({8, 2, 6, 56, /*layers=*/2});

struct Case {
  const char *name;
  std::string config;
  int ranks;
  bool sequence;
  const char *type;
  CompiledTolerances tolerances;
  StepOptions step;
  bool emulated = false; ///< kernels of a GPU, on the processor
  bool sliced = false;   ///< ranks have slices, and one rank whole samples
};

void PrintTo(const Case &test, std::ostream *stream) { *stream << test.name; }

/// What one step gives.
struct Step {
  double loss = 0, evaluation = 0;
  NamedTensors gradients;
};

class CompiledRanksTest : public testing::TestWithParam<Case> {
protected:
  CompiledRanksTest() {
    mlirContext.loadDialect<DynaDialect, dist::DistDialect>();
    std::string type = GetParam().type;
    element = type == "f64"    ? Type(Float64Type::get(&mlirContext))
              : type == "bf16" ? Type(BFloat16Type::get(&mlirContext))
                               : Type(Float32Type::get(&mlirContext));
  }

  std::string strategy() const {
    return "tp=" + std::to_string(GetParam().ranks) +
           (GetParam().sequence ? ",sp=1" : "");
  }
  std::string degree() const {
    return ".tp" + std::to_string(GetParam().ranks) +
           (GetParam().sequence ? ".sp" : "");
  }
  /// The layouts of local layers, and the groups; null if that fails.
  OwningOpRef<ModuleOp> distribute(ModuleOp module);
  ::dyna::Status runStep(CompiledModel &model, const NamedTensors &masters,
                         const std::vector<Batch> &batches, Step &step);
  ::dyna::Status runRank(::dyna::Transport &transport,
                         const CompiledProgram &program, ModuleOp local,
                         const NamedTensors &masters, Step &step);

  MLIRContext mlirContext;
  Type element;
  /// The step's micro-batches of whole samples, and those of the ranks.
  std::vector<Batch> batches, rankBatches;
};

/// A context on a device of one thread.
struct Rank {
  Rank() {
    context.abi_version = DYNA_ABI_VERSION;
    context.message = message;
    context.message_capacity = sizeof(message);
    context.seed = 5;
    context.step = 3;
    context.inverse_targets = 0.125;
    device->bind(context, *stream);
  }
  std::unique_ptr<::dyna::Device> device = ::dyna::makeTestDevice();
  std::unique_ptr<::dyna::Stream> stream = std::move(*device->createStream());
  dyna_context context = {};
  char message[512] = {};
};

/// Calls visit(name of a parameter, layout of it, layout of its gradient, type
/// of a rank's part) for all parameters.
template <typename Visit>
void forParameters(ModuleOp local, const std::string &degree, Visit visit) {
  for (ModelOp model : local.getOps<ModelOp>())
    for (CallOp call : model.getBody().front().getOps<CallOp>()) {
      auto layer = local.lookupSymbol<LayerOp>(call.getCallee().str() + degree);
      auto layouts = dist::kArguments.of(layer);
      auto gradients = dist::kGradients.of(layer);
      for (auto [slot, symbol] : llvm::enumerate(
               call.getParameters().getAsRange<FlatSymbolRefAttr>()))
        visit(symbol.getValue().str(), cast<dist::LayoutAttr>(layouts[slot]),
              cast<dist::LayoutAttr>(gradients[slot]),
              cast<RankedTensorType>(layer.getArgumentTypes()[slot]));
    }
}

} // namespace

OwningOpRef<ModuleOp> CompiledRanksTest::distribute(ModuleOp module) {
  OwningOpRef<ModuleOp> copy(module.clone());
  PassManager passes(&mlirContext);
  DistributePhaseOptions options;
  options.strategy = strategy();
  buildDifferentiatePhase(passes);
  buildDistributePhase(passes, options);
  if (failed(passes.run(*copy)))
    return {};
  return copy;
}

::dyna::Status CompiledRanksTest::runStep(CompiledModel &model,
                                          const NamedTensors &masters,
                                          const std::vector<Batch> &batches,
                                          Step &step) {
  model.setMasters(masters);
  std::vector<Tensor> activations;
  step.evaluation = model.evaluate(batches);
  step.loss = model.train(batches, GetParam().step, activations);
  step.gradients = model.gradients();
  return model.failure.empty() ? ::dyna::Status::ok()
                               : ::dyna::Status::internal(model.failure);
}

::dyna::Status CompiledRanksTest::runRank(::dyna::Transport &transport,
                                          const CompiledProgram &program,
                                          ModuleOp local,
                                          const NamedTensors &masters,
                                          Step &step) {
  transport.setTimeout(::dyna::kPatience);
  std::vector<std::unique_ptr<::dyna::Group>> made;
  std::vector<dyna_group> groups(DYNA_GROUP_COUNT, ::dyna::toAbi(nullptr));
  auto join = [&](const ::dyna::Mesh &mesh, const ::dyna::AxisParts &parts,
                  dyna_group &group) -> ::dyna::Status {
    std::vector<int64_t> wide = mesh.groupRanks(transport.rank(), parts);
    auto created = transport.createGroup(
        std::vector<int>(wide.begin(), wide.end()), transport.deadline());
    DYNA_RETURN_IF_ERROR(created.status());
    made.push_back(std::move(*created));
    group = ::dyna::toAbi(made.back().get());
    return ::dyna::Status::ok();
  };
  auto tp = *::dyna::Mesh::create({{"tp", transport.ranks()}});
  DYNA_RETURN_IF_ERROR(join(tp, {tp.wholeAxis(0)}, groups[DYNA_GROUP_TP]));
  if (auto factors = dist::kGroups.of(local))
    for (auto factor : factors.getAsRange<dist::GroupAttr>()) {
      groups.push_back({});
      DYNA_RETURN_IF_ERROR(join(tp, factor.getParts(), groups.back()));
    }
  Rank rank;
  rank.context.groups = groups.data();
  rank.context.group_count = static_cast<int32_t>(groups.size());

  NamedTensors parts;
  forParameters(local, degree(),
                [&](const std::string &name, dist::LayoutAttr layout,
                    dist::LayoutAttr, RankedTensorType type) {
                  parts[name] =
                      scatter(masters.at(name), layout, transport.rank(), type);
                });
  CompiledModel model(program, *local.getOps<ModelOp>().begin(), element,
                      rank.context, degree());
  return runStep(model, parts, rankBatches, step);
}

TEST_P(CompiledRanksTest, EqualsOneRank) {
  const Case &test = GetParam();
  OwningOpRef<ModuleOp> module = readModel(&mlirContext, test.config);
  ASSERT_TRUE(module);
  OwningOpRef<ModuleOp> local = distribute(*module);
  ASSERT_TRUE(local);
  CompileOptions options;
  options.type = test.type;
  options.strategies = strategy();
  options.emulated = test.emulated;
  auto program = CompiledProgram::compile(*module, options);
  ASSERT_TRUE(program);
  ModelOp model = *module->getOps<ModelOp>().begin();
  for (int i = 0; i < 3; ++i)
    batches.push_back(makeRandomBatch(model, /*seed=*/11, i));
  rankBatches = batches;
  if (test.sliced) {
    batches = {makeBatch(model, {37, 1, 20, 9, 2}, /*seed=*/11)};
    SlicedBatch sliced = sliceBatch(batches[0], /*seed=*/11);
    ASSERT_GT(sliced.parts[0].stored, 0);
    rankBatches = std::move(sliced.parts);
  }
  NamedTensors masters = initialParameters(*module, /*seed=*/3);

  Rank alone;
  CompiledModel whole(*program, model, element, alone.context);
  Step wanted;
  ::dyna::Status status = runStep(whole, masters, batches, wanted);
  ASSERT_TRUE(status.isOk()) << status.message();

  std::vector<Step> steps(static_cast<size_t>(test.ranks));
  status = ::dyna::runRanks(test.ranks, [&](::dyna::Transport &transport) {
    return runRank(transport, *program, *local, masters,
                   steps[static_cast<size_t>(transport.rank())]);
  });
  ASSERT_TRUE(status.isOk()) << status.message();

  for (const Step &step : steps) {
    EXPECT_EQ(step.loss, steps[0].loss) << "the same bits on all ranks";
    EXPECT_NEAR(step.loss, wanted.loss, test.tolerances.loss * wanted.loss);
    EXPECT_NEAR(step.evaluation, wanted.evaluation,
                test.tolerances.loss * wanted.evaluation);
  }
  double largest = 0;
  for (const auto &[name, tensor] : wanted.gradients)
    for (double value : tensor.values)
      largest = std::max(largest, std::abs(value));
  double worst = 0;
  forParameters(*local, degree(),
                [&](const std::string &name, dist::LayoutAttr,
                    dist::LayoutAttr layout, RankedTensorType) {
                  const Tensor &gradient = wanted.gradients.at(name);
                  std::vector<Tensor> parts;
                  for (const Step &step : steps)
                    parts.push_back(step.gradients.at(name));
                  double error = distance(gather(parts, layout, gradient.shape),
                                          gradient, largest);
                  EXPECT_LE(error, test.tolerances.gradient) << name;
                  worst = std::max(worst, error);
                });
  std::printf("%s: largest error of gradients %.2g, of the loss %.2g\n",
              test.name, worst, std::abs(steps[0].loss / wanted.loss - 1));
}

INSTANTIATE_TEST_SUITE_P(
    Models, CompiledRanksTest,
    testing::Values(
        Case{"Gpt2Tp2F64", gpt2, 2, false, "f64", f64Tolerances, {}},
        Case{"Gpt2Tp3SpF64",
             gpt2,
             3,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Full, false}},
        Case{"LlamaTp2SpF64",
             llama,
             2,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Selective, true}},
        Case{"LlamaTp4F64", llama, 4, false, "f64", f64Tolerances, {}},
        Case{"LlamaTp8SpF64", llama, 8, true, "f64", f64Tolerances, {}},
        Case{"Gpt2Tp4SpF32", gpt2, 4, true, "f32", f32Tolerances, {}},
        Case{"LlamaTp4SpBf16", llama, 4, true, "bf16", bf16Tolerances, {}},
        Case{"DroppingTp2F64",
             smallDropping(),
             2,
             false,
             "f64",
             f64Tolerances,
             {Recompute::Selective, true}},
        Case{"DroppingTp4SpF64",
             smallDropping(),
             4,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Full, false}},
        Case{"EmulatedDroppingTp4F64",
             smallDropping(),
             4,
             false,
             "f64",
             f64Tolerances,
             {},
             true},
        // Runs of rows where a rank has a part of the tokens, or of the table.
        Case{"EmulatedGpt2Tp3SpF64",
             gpt2,
             3,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Full, false},
             true},
        // Slices: each rank has its heads' keys in a store of its own.
        Case{"SlicedGpt2Tp3SpF64",
             gpt2,
             3,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Full, false},
             false,
             true},
        Case{"SlicedLlamaTp4SpF64",
             llama,
             4,
             true,
             "f64",
             f64Tolerances,
             {Recompute::Selective, true},
             false,
             true},
        Case{"SlicedLlamaTp2F32",
             llama,
             2,
             false,
             "f32",
             f32Tolerances,
             {},
             false,
             true},
        Case{"SlicedLlamaTp2Bf16",
             llama,
             2,
             false,
             "bf16",
             bf16Tolerances,
             {},
             false,
             true}),
    [](const testing::TestParamInfo<Case> &info) { return info.param.name; });
