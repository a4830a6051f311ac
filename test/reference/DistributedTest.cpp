//===- DistributedTest.cpp - Local programs against the logical one -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPT-2 and LLaMA layers go through the differentiate and distribute phases;
// the functions of all ranks, run in lockstep, must give what the logical
// functions give: outputs, saved values, gradients of inputs and (gathered and
// summed) of parameters, in every role. Widths and vocabulary are odd on
// purpose: 257 rows on 2, 3 and 4 ranks, tokens that no degree divides.
//
//===----------------------------------------------------------------------===//

#include "test/reference/Distributed.h"
#include "frontends/Frontends.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/distribute/Passes.h"
#include "test/passes/SmallConfigs.h"
#include "test/reference/RandomModule.h"
#include "test/reference/ReadModel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

static constexpr double tolerance = 1e-12;

namespace {

const std::string unusualLlama = smallLlama({8, 2, 6, 56, 1, true});

struct Case {
  const char *name;
  std::string config;
  const char *strategy;
};

class LocalPrograms : public testing::Test {
protected:
  LocalPrograms() {
    context.loadDialect<DynaDialect, dist::DistDialect>();
    evaluation.seed = 5;
    evaluation.step = 3;
    evaluation.layer = 2;
    evaluation.inverseTargets = 0.25;
  }

  /// Converts to f64, differentiates and distributes; null if that fails.
  OwningOpRef<ModuleOp> distribute(OwningOpRef<ModuleOp> logical,
                                   const char *strategy);
  void checkLayer(ModuleOp module, LayerOp local, const Segments &segments);
  void checkUpdate(LayerRun logicalRun, std::vector<LayerRun> runs);
  void checkRole(Role role, LayerRun &logicalRun, std::vector<LayerRun> &runs);
  void compareAll(const LayerRun &logicalRun, const std::vector<LayerRun> &runs,
                  FunctionOp function);

  MLIRContext context;
  Context evaluation;
  // Of the layer under test.
  ModuleOp module;
  LayerOp local, logical;
};

class DistributedTest : public LocalPrograms,
                        public testing::WithParamInterface<Case> {
protected:
  OwningOpRef<ModuleOp> distributed() {
    return distribute(readModel(&context, GetParam().config),
                      GetParam().strategy);
  }
};

} // namespace

OwningOpRef<ModuleOp> LocalPrograms::distribute(OwningOpRef<ModuleOp> result,
                                                const char *strategy) {
  PassManager passes(&context);
  ConvertPhaseOptions convert;
  convert.type = "f64";
  buildConvertPhase(passes, convert);
  buildDifferentiatePhase(passes);
  DistributePhaseOptions options;
  options.strategy = strategy;
  buildDistributePhase(passes, options);
  if (!result || failed(passes.run(*result)))
    return {};
  return result;
}

static dist::LayoutAttr layoutAt(Operation *op, StringRef name, size_t index) {
  return cast<dist::LayoutAttr>(op->getAttrOfType<ArrayAttr>(name)[index]);
}

/// What each rank has of a run's parameters, accumulators, inputs and incoming
/// gradients.
static std::vector<LayerRun> scatterRun(const LayerRun &run, LayerOp local,
                                        int64_t ranks) {
  std::vector<LayerRun> parts(ranks);
  size_t numParameters = run.parameters.size();
  auto typeAt = [&](size_t index) {
    return cast<RankedTensorType>(local.getArgumentTypes()[index]);
  };
  auto resultType = cast<RankedTensorType>(local.getResultTypes()[0]);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    LayerRun &part = parts[rank];
    part.segments = run.segments;
    for (size_t i = 0; i < numParameters; ++i) {
      part.parameters.push_back(
          scatter(run.parameters[i], layoutAt(local, dist::kArguments.name, i),
                  rank, typeAt(i)));
      part.accumulators.push_back(
          scatter(run.accumulators[i],
                  layoutAt(local, dist::kGradients.name, i), rank, typeAt(i)));
    }
    size_t argument = numParameters;
    for (const Datum &input : run.inputs) {
      while (isa<SegmentsType>(local.getArgumentTypes()[argument]))
        ++argument;
      if (auto *tensor = std::get_if<Tensor>(&input))
        part.inputs.push_back(
            scatter(*tensor, layoutAt(local, dist::kArguments.name, argument),
                    rank, typeAt(argument)));
      else
        part.inputs.push_back(input);
      ++argument;
    }
    part.outputGradients.push_back(
        scatter(run.outputGradients[0], layoutAt(local, dist::kResults.name, 0),
                rank, resultType));
  }
  return parts;
}

/// Every result of `function` where the two runs have put it.
void LocalPrograms::compareAll(const LayerRun &logicalRun,
                               const std::vector<LayerRun> &runs,
                               FunctionOp function) {
  std::map<Memory, size_t> counts;
  bool isBackward = function.getRole() != Role::Forward &&
                    function.getRole() != Role::Evaluate;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    PlaceAttr place = function.getResultPlace(i);
    Memory memory = place.getMemory();
    size_t number = counts[memory]++;
    auto valueOf = [&](const LayerRun &run) -> const Tensor & {
      if (memory == Memory::Gradient)
        return run.accumulators.at(place.getIndex());
      if (memory == Memory::Output)
        return (isBackward ? run.inputGradients : run.outputs)
            .at(place.getIndex());
      return std::get<Tensor>(run.tiers.at(memory).at(number));
    };
    std::vector<Tensor> parts;
    for (const LayerRun &run : runs)
      parts.push_back(valueOf(run));
    const Tensor &wanted = valueOf(logicalRun);
    Tensor given =
        gather(parts, layoutAt(function, dist::kResults.name, i), wanted.shape);
    EXPECT_LE(distance(given, wanted), tolerance)
        << "result " << i << " of " << function.getSymName().str() << " in "
        << stringifyMemory(memory).str();
  }
}

void LocalPrograms::checkRole(Role role, LayerRun &logicalRun,
                              std::vector<LayerRun> &runs) {
  FunctionOp whole = findFunction(module, logical, role);
  FunctionOp part = findFunction(module, local, role);
  ASSERT_TRUE(whole && part);
  Context with = evaluation;
  with.dropout = role != Role::Evaluate;
  auto mesh = dist::kMesh.of(local);
  ASSERT_TRUE(succeeded(logicalRun.run(whole, with)));
  ASSERT_TRUE(succeeded(runLocal(part, mesh.getMesh(), runs, with)));
  compareAll(logicalRun, runs, part);
}

void LocalPrograms::checkLayer(ModuleOp module, LayerOp local,
                               const Segments &segments) {
  this->module = module;
  this->local = local;
  logical = module.lookupSymbol<LayerOp>(dist::kLogical.of(local).getAttr());
  int64_t ranks = dist::kMesh.of(local).getMesh().size();
  LayerRun start = makeRandomRun(logical, segments, 100);
  std::vector<LayerRun> runs = scatterRun(start, local, ranks);

  LayerRun evaluated = start;
  std::vector<LayerRun> evaluatedRuns = runs;
  checkRole(Role::Evaluate, evaluated, evaluatedRuns);
  checkRole(Role::Forward, start, runs);
  for (Role role : {Role::RecomputeSelective, Role::RecomputeFull}) {
    if (logical.givesLoss())
      continue;
    LayerRun again = start;
    std::vector<LayerRun> againRuns = runs;
    for (LayerRun &run : againRuns) {
      run.tiers.erase(Memory::Elementwise);
      if (role == Role::RecomputeFull)
        run.tiers.clear();
    }
    checkRole(role, again, againRuns);
  }
  LayerRun halves = start;
  std::vector<LayerRun> halvesRuns = runs;
  checkRole(Role::Backward, start, runs);
  checkRole(Role::BackwardInput, halves, halvesRuns);
  checkRole(Role::BackwardWeight, halves, halvesRuns);
  checkUpdate(start, runs);
}

/// A step of the optimizer on every rank's own elements. The plan has reduced
/// gradients before.
void LocalPrograms::checkUpdate(LayerRun logicalRun,
                                std::vector<LayerRun> runs) {
  FunctionOp whole = findFunction(module, logical, Role::Update);
  FunctionOp part = findFunction(module, local, Role::Update);
  ASSERT_TRUE(whole && part);
  size_t numParameters = logicalRun.parameters.size();
  for (size_t i = 0; i < 3 * numParameters; ++i) {
    const Tensor &like = logicalRun.parameters[i / 3];
    logicalRun.optimizerState.push_back(i % 3 == 0 ? like
                                                   : Tensor(like.shape, 0.125));
  }
  auto mesh = dist::kMesh.of(local).getMesh();
  for (auto [rank, run] : llvm::enumerate(runs))
    for (size_t i = 0; i < numParameters; ++i) {
      dist::LayoutAttr layout = layoutAt(local, dist::kArguments.name, i);
      auto type = cast<RankedTensorType>(local.getArgumentTypes()[i]);
      run.accumulators[i] =
          scatter(logicalRun.accumulators[i], layout, rank, type);
      for (size_t k = 0; k < 3; ++k)
        run.optimizerState.push_back(
            scatter(logicalRun.optimizerState[3 * i + k], layout, rank, type));
    }
  ASSERT_TRUE(succeeded(logicalRun.run(whole, evaluation)));
  ASSERT_TRUE(succeeded(runLocal(part, mesh, runs, evaluation)));
  for (size_t i = 0; i < logicalRun.optimizerState.size(); ++i) {
    std::vector<Tensor> parts;
    for (const LayerRun &run : runs)
      parts.push_back(run.optimizerState[i]);
    const Tensor &wanted = logicalRun.optimizerState[i];
    EXPECT_EQ(
        distance(gather(parts, layoutAt(local, dist::kArguments.name, i / 3),
                        wanted.shape),
                 wanted),
        0.0)
        << "state " << i << " of " << part.getSymName().str();
  }
}

TEST_P(DistributedTest, EqualsTheLogicalProgram) {
  OwningOpRef<ModuleOp> module = distributed();
  ASSERT_TRUE(module);
  int layers = 0;
  for (LayerOp layer : module->getOps<LayerOp>()) {
    if (!dist::kMesh.isOn(layer))
      continue;
    ++layers;
    for (const std::vector<int64_t> &lengths :
         {std::vector<int64_t>{1, 5, 3}, {1}, {}, {7, 6}}) {
      SCOPED_TRACE(layer.getSymName().str() + " on segments " +
                   testing::PrintToString(lengths));
      checkLayer(*module, layer, Segments::ofLengths(lengths, 40));
    }
  }
  EXPECT_EQ(layers, 3);
}

/// Without any one collective the program is wrong, and verify-local says so.
TEST_P(DistributedTest, NeedsEveryCollective) {
  OwningOpRef<ModuleOp> module = distributed();
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(verifyLocal(*module)));
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  auto collectivesOf = [](ModuleOp module) {
    SmallVector<Operation *> found;
    module.walk([&](Operation *op) {
      if (isa_and_present<dist::DistDialect>(op->getDialect()) &&
          !isa<dist::ExchangeOp, dist::YieldOp>(op))
        found.push_back(op);
    });
    return found;
  };
  size_t count = collectivesOf(*module).size();
  EXPECT_GT(count, 8u);
  for (size_t i = 0; i < count; ++i) {
    OwningOpRef<ModuleOp> copy(module->clone());
    Operation *collective = collectivesOf(*copy)[i];
    ASSERT_EQ(collective->getOperand(0).getType(),
              collective->getResult(0).getType());
    // What a fused one gives, its exchange yields.
    collective->getResult(0).replaceAllUsesWith(collective->getOperand(0));
    collective->erase();
    EXPECT_TRUE(failed(verifyLocal(*copy))) << "collective " << i;
  }
}

/// Random layers either give the same numbers or are refused for a reason that
/// a user can do something about.
TEST_F(LocalPrograms, RandomLayersAreEqualOrRefused) {
  int layers = 0, refused = 0;
  std::string message;
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str() + "\n";
    return success();
  });
  for (const char *strategy : {"tp=2", "tp=3", "tp=2,sp=1"})
    for (uint64_t seed = 0; seed < 150; ++seed) {
      SCOPED_TRACE(std::string(strategy) + ", seed " + std::to_string(seed));
      OwningOpRef<ModuleOp> random =
          ModuleOp::create(UnknownLoc::get(&context));
      addRandomModel(*random, "m", seed);
      message.clear();
      OwningOpRef<ModuleOp> module = distribute(std::move(random), strategy);
      if (!module) {
        ++refused;
        EXPECT_THAT(message,
                    testing::ContainsRegex("does not divide|must divide|cannot "
                                           "share evenly|in another way|split "
                                           "alike"));
        continue;
      }
      for (LayerOp layer : module->getOps<LayerOp>())
        if (dist::kMesh.isOn(layer)) {
          ++layers;
          checkLayer(*module, layer, Segments::ofLengths({1, 6, 2}, 40));
        }
    }
  RecordProperty("layers", layers);
  RecordProperty("refused", refused);
  EXPECT_GT(layers, 300);
}

//===----------------------------------------------------------------------===//
// Sums over ranks in front of every op
//===----------------------------------------------------------------------===//

namespace {
/// An op from `$in` to `$out`; `$` makes other values its own.
struct Consumer {
  const char *name, *text;
};
class SumsTest : public LocalPrograms,
                 public testing::WithParamInterface<Consumer> {};
} // namespace

/// In forward the op reads the result of a row-parallel linear, and its
/// gradient that of a column-parallel one, both sums over ranks and with
/// nothing in between. Where a sum passes through what is not linear, numbers
/// differ.
static std::string layerOfSums(StringRef consumer) {
  auto between = [&](StringRef in, StringRef out, StringRef number) {
    std::string text = consumer.str();
    for (auto [from, to] :
         {std::pair("$instance", number), {"$in", in}, {"$out", out}})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, StringRef(from).size(), to);
    for (size_t at; (at = text.find('$')) != std::string::npos;)
      text.replace(at, 1, out);
    return text;
  };
  return R"(
dyna.layer @l[%up: tensor<24x12xf64>, %down: tensor<12x24xf64>, %g: tensor<12xf64>, %b: tensor<12xf64>](%x: tensor<?x12xf64>, %s: !dyna.segments) -> tensor<?x12xf64> {
  )" + between("%x", "%n", "0") +
         R"(
  %u = dyna.linear %n, %up : tensor<?x12xf64>, tensor<24x12xf64>
  %a = dyna.silu %u : tensor<?x24xf64>
  %d = dyna.linear %a, %down : tensor<?x24xf64>, tensor<12x24xf64>
  )" + between("%d", "%o", "1") +
         R"(
  %y = dyna.add %o, %x : tensor<?x12xf64>
  dyna.return %y : tensor<?x12xf64>
})";
}

TEST_P(SumsTest, PassOnlyThroughWhatIsLinear) {
  std::string text = layerOfSums(GetParam().text);
  for (const char *strategy : {"tp=2", "tp=3", "tp=2,sp=1"}) {
    SCOPED_TRACE(strategy);
    OwningOpRef<ModuleOp> module =
        distribute(parseSourceString<ModuleOp>(text, &context), strategy);
    ASSERT_TRUE(module) << text;
    for (LayerOp layer : module->getOps<LayerOp>())
      if (dist::kMesh.isOn(layer))
        checkLayer(*module, layer, Segments::ofLengths({1, 5, 3}, 40));
  }
}

static const Consumer consumers[] = {
    {"GeluTanh", "$out = dyna.gelu $in tanh : tensor<?x12xf64>"},
    {"GeluErf", "$out = dyna.gelu $in erf : tensor<?x12xf64>"},
    {"Silu", "$out = dyna.silu $in : tensor<?x12xf64>"},
    {"Relu", "$out = dyna.relu $in : tensor<?x12xf64>"},
    {"Scale", "$out = dyna.scale $in {factor = 0.5 : f64} : tensor<?x12xf64>"},
    {"Square", "$out = dyna.mul $in, $in : tensor<?x12xf64>"},
    {"Product", "$out = dyna.mul $in, %x : tensor<?x12xf64>"},
    {"Add", "$out = dyna.add $in, $in : tensor<?x12xf64>"},
    {"AddWhole", "$out = dyna.add %x, $in : tensor<?x12xf64>"},
    {"Bias", "$out = dyna.bias $in, %b : tensor<?x12xf64>, tensor<12xf64>"},
    {"LayerNorm", "$out = dyna.layer_norm $in, %g, %b {epsilon = 1.0e-5 : f64} "
                  ": tensor<?x12xf64>, tensor<12xf64>"},
    {"RmsNorm", "$out = dyna.rms_norm $in, %g {epsilon = 1.0e-5 : f64} : "
                "tensor<?x12xf64>, tensor<12xf64>"},
    {"Dropout",
     "$out = dyna.dropout $in, %s {instance = $instance : i64, probability "
     "= 1.0e-1 : f64} : tensor<?x12xf64>"},
    {"Rotary", "$out = dyna.rotary $in, %s {head_dim = 2 : i64, theta = 1.0e2 "
               ": f64} : tensor<?x12xf64>"},
    {"Query",
     "$out, $lse = dyna.attention $in, %x, %x, %s {causal, heads = 6 : i64, "
     "kv_heads = 6 : i64, scale = 0.5 : f64} : tensor<?x12xf64>, "
     "tensor<?x12xf64>, tensor<?x12xf64>"},
    {"KeyAndValue",
     "$out, $lse = dyna.attention %x, $in, $in, %s {causal, heads = 6 : i64, "
     "kv_heads = 6 : i64, scale = 0.5 : f64} : tensor<?x12xf64>, "
     "tensor<?x12xf64>, tensor<?x12xf64>"},
};
INSTANTIATE_TEST_SUITE_P(Ops, SumsTest, testing::ValuesIn(consumers),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

INSTANTIATE_TEST_SUITE_P(
    Strategies, DistributedTest,
    testing::Values(Case{"Gpt2Tp2", smallGpt2(), "tp=2"},
                    Case{"Gpt2Tp3", smallGpt2(), "tp=3"},
                    Case{"Gpt2Tp4", smallGpt2(), "tp=4"},
                    Case{"Gpt2Tp2Sp", smallGpt2(), "tp=2,sp=1"},
                    Case{"Gpt2Tp3Sp", smallGpt2(), "tp=3,sp=1"},
                    Case{"Gpt2Tp4Sp", smallGpt2(), "tp=4,sp=1"},
                    Case{"LlamaTp2", smallLlama(eightHeads), "tp=2"},
                    Case{"LlamaTp4", smallLlama(eightHeads), "tp=4"},
                    Case{"LlamaTp8", smallLlama(eightHeads), "tp=8"},
                    Case{"LlamaTp2Sp", smallLlama(eightHeads), "tp=2,sp=1"},
                    Case{"LlamaTp4Sp", smallLlama(eightHeads), "tp=4,sp=1"},
                    Case{"DroppingTp2", smallDropping(), "tp=2"},
                    Case{"DroppingTp4", smallDropping(), "tp=4"},
                    Case{"DroppingTp8", smallDropping(), "tp=8"},
                    Case{"DroppingTp4Sp", smallDropping(), "tp=4,sp=1"},
                    Case{"LlamaBiasesTp4", unusualLlama, "tp=4"},
                    Case{"LlamaBiasesTp8Sp", unusualLlama, "tp=8,sp=1"}),
    [](const auto &info) { return std::string(info.param.name); });
