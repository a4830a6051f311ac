//===- dyna-plan.cpp - What plans would take, on any cluster ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans mini-batches of given lengths as a training binary would, under one
// strategy and several schedules, and plays them with the costs of a described
// cluster. The model is compiled up to its manifest: there is no code.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/TextInput.h"
#include "frontends/Frontends.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/plan/ManifestBuilder.h"
#include "runtime/base/Printable.h"
#include "runtime/base/Text.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/planner/PlanReport.h"
#include "runtime/planner/Planner.h"
#include "runtime/planner/Policy.h"
#include "tools/ToolSupport.h"
#include "tools/dyna-plan/LengthsFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace cl = llvm::cl;
using dyna::Status;
using dyna::StatusOr;

namespace {

struct Flags {
  cl::OptionCategory category{"dyna-plan options"};
  cl::opt<std::string> model{cl::Positional,
                             cl::desc("<model.mlir or config.json>"),
                             cl::cat(category)};
  cl::opt<std::string> strategy{
      "strategy",
      cl::desc("Strategy, such as dp=4,pp=8; or search: the best of all "
               "dp, tp, pp in powers of two, with and without ZeRO, on the "
               "devices of --cluster"),
      cl::cat(category)};
  cl::opt<std::string> lengths{
      "lengths",
      cl::desc("Tokens of the samples: 30,5,40, or a file with one per line or "
               "with columns that its first line names"),
      cl::cat(category)};
  cl::list<std::string> columns{
      "length-columns",
      cl::desc("Columns of that file to add up (default: the one that is "
               "called tokens or ends in _tokens)"),
      cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> cluster{
      "cluster",
      cl::desc("Described devices, and nodes x devices of each, such as "
               "a100-40g:4x8 (default: host)"),
      cl::cat(category)};
  cl::opt<std::string> costs{
      "costs", cl::desc("Measured costs (docs/costs.md), instead of --cluster"),
      cl::cat(category)};
  cl::list<std::string> compare{
      "compare", cl::desc("Schedules to plan with (default: the first): "),
      cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> computeType{"compute-type",
                                   cl::desc("f64, f32 or bf16 (default: bf16)"),
                                   cl::init("bf16"), cl::cat(category)};
  cl::opt<int64_t> tokensPerBatch{
      "tokens-per-batch", cl::desc("Tokens of a step, about (default: 65536)"),
      cl::init(65536), cl::cat(category)};
  cl::opt<int64_t> tokensPerMicroBatch{
      "tokens-per-micro-batch",
      cl::desc("Tokens of a micro-batch at most (default: as a run chooses)"),
      cl::init(0), cl::cat(category)};
  cl::opt<int64_t> steps{"steps",
                         cl::desc("Steps to plan, 0: all (default: 10)"),
                         cl::init(10), cl::cat(category)};
  cl::opt<std::string> recompute{
      "recompute", cl::desc("none, selective or full, or one per layer"),
      cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("One JSON object per line, no table"),
                     cl::cat(category)};

  Status check() const {
    auto expect = [](bool holds, const std::string &what) {
      return holds ? Status::ok() : Status::invalidArgument(what);
    };
    DYNA_RETURN_IF_ERROR(expect(
        !model.empty(), "expects a model: a .mlir file or a config.json"));
    DYNA_RETURN_IF_ERROR(expect(
        !lengths.empty(), "expects --lengths: numbers, or a file of them"));
    DYNA_RETURN_IF_ERROR(
        expect(cluster.empty() || costs.empty(),
               "--costs and --cluster both say what things take: give one"));
    DYNA_RETURN_IF_ERROR(expect(
        tokensPerBatch >= 1 && tokensPerBatch <= dyna::maxTokensPerBatch,
        dyna::formatText("--tokens-per-batch expects 1 to %d, but got %d",
                         dyna::maxTokensPerBatch, tokensPerBatch.getValue())));
    DYNA_RETURN_IF_ERROR(expect(
        tokensPerMicroBatch >= 0 &&
            tokensPerMicroBatch <= dyna::maxMicroBatchTokens,
        dyna::formatText("--tokens-per-micro-batch expects 0 to %d, but got %d",
                         dyna::maxMicroBatchTokens,
                         tokensPerMicroBatch.getValue())));
    return expect(steps >= 0, "--steps expects 0 or more");
  }
};

int fail(const Status &status) {
  llvm::errs() << "dyna-plan: " << dyna::printable(status.message()) << '\n';
  return 2;
}

/// Compiled up to the memory phase at the strategy's tensor degree. Diagnostics
/// have been printed where it fails.
mlir::FailureOr<dyna::Model> compileModel(const Flags &flags,
                                          const dyna::Strategy &strategy) {
  std::string message;
  auto buffer = mlir::dyna::openTextInput(flags.model, &message);
  if (!buffer) {
    fail(Status::invalidArgument(message));
    return mlir::failure();
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect>();
  mlir::dyna::registerFamilies(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<mlir::dyna::DynaDialect>();
  context.printOpOnDiagnostic(false);
  llvm::MemoryBufferRef text = buffer->getMemBufferRef();
  bool isConfig = text.getBuffer().ltrim().starts_with("{");
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      isConfig ? mlir::dyna::importConfig(&context, text)
               : mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return mlir::failure();
  mlir::PassManager passes(&context, mlir::ModuleOp::getOperationName());
  mlir::dyna::ConvertPhaseOptions convert;
  convert.type = flags.computeType.getValue();
  mlir::dyna::buildConvertPhase(passes, convert);
  mlir::dyna::buildDifferentiatePhase(passes);
  if (strategy.tp > 1) {
    mlir::dyna::DistributePhaseOptions distribute;
    distribute.strategy = describeStrategy(strategy);
    mlir::dyna::buildDistributePhase(passes, distribute);
  }
  mlir::dyna::buildMemoryPhase(passes);
  if (mlir::failed(passes.run(*module)))
    return mlir::failure();
  auto manifest = mlir::dyna::buildManifest(*module);
  if (mlir::failed(manifest))
    return mlir::failure();
  StatusOr<dyna::Model> model = dyna::Model::create(std::move(*manifest));
  if (!model.isOk()) {
    fail(model.status());
    return mlir::failure();
  }
  return std::move(*model);
}

/// Mini-batches in the order of the samples, each as full as whole samples make
/// it; what is longer than the model's positions is cut.
std::vector<std::vector<int64_t>> dealSteps(const std::vector<int64_t> &lengths,
                                            int64_t positions,
                                            const Flags &flags) {
  std::vector<std::vector<int64_t>> steps;
  int64_t cut = 0, tokens = 0;
  for (int64_t length : lengths) {
    if (positions > 0 && length > positions) {
      length = positions;
      ++cut;
    }
    if (steps.empty() || tokens + length > flags.tokensPerBatch) {
      if (flags.steps > 0 && int64_t(steps.size()) == flags.steps)
        break;
      steps.emplace_back();
      tokens = 0;
    }
    steps.back().push_back(length);
    tokens += length;
  }
  if (cut > 0)
    llvm::errs() << dyna::formatText(
        "note: %d samples are cut at the model's %d positions\n", cut,
        positions);
  return steps;
}

StatusOr<dyna::PlanReport>
planSteps(const dyna::CostModel &costs, dyna::PlanRequest request,
          const std::vector<std::vector<int64_t>> &steps,
          std::vector<std::string> &notes) {
  DYNA_ASSIGN_OR_RETURN(dyna::Policy policy,
                        choosePolicy(costs, std::move(request)));
  notes = policy.notes;
  DYNA_ASSIGN_OR_RETURN(auto graph, dyna::ExecutableGraph::create(
                                        costs.model(), policy.strategy));
  int64_t devices = costs.cluster().devices();
  if (devices > 0 && graph.ranks() > devices)
    return Status::invalidArgument(dyna::formatText(
        "the strategy has %d ranks, but the cluster %d devices", graph.ranks(),
        devices));
  dyna::Planner planner(graph, costs);
  dyna::PlanReport all;
  for (const std::vector<int64_t> &lengths : steps) {
    int64_t tokens = 0;
    for (int64_t length : lengths)
      tokens += length;
    DYNA_ASSIGN_OR_RETURN(auto plan,
                          planner.training(lengths, tokens, policy.options));
    dyna::VerifyOptions verify;
    verify.dynamicLimit = std::numeric_limits<int64_t>::max();
    DYNA_RETURN_IF_ERROR(verifyPlan(graph, plan, lengths, verify));
    DYNA_ASSIGN_OR_RETURN(auto report, reportPlan(graph, plan, costs));
    all.add(report);
  }
  return all;
}

StatusOr<dyna::CostModel> openCosts(const dyna::Model &model,
                                    const Flags &flags) {
  if (!flags.costs.empty())
    return dyna::CostModel::open(model, flags.costs);
  DYNA_ASSIGN_OR_RETURN(
      auto table, dyna::CostTable::described(flags.cluster.empty()
                                                 ? std::string("host")
                                                 : flags.cluster.getValue()));
  return dyna::CostModel::create(model, std::move(table));
}

using Reports = std::vector<std::pair<std::string, dyna::PlanReport>>;

bool fits(const dyna::PlanReport &report, int64_t memory) {
  return memory == 0 || report.peakBytes() <= memory;
}

void print(const Reports &reports, int64_t memory, bool json) {
  if (json) {
    for (const auto &[name, report] : reports)
      llvm::outs() << report.json(name) << '\n';
    return;
  }
  llvm::outs() << dyna::describeReports(reports);
  for (const auto &[name, report] : reports)
    if (!fits(report, memory))
      llvm::outs() << dyna::formatText(
          "%s does not fit: a rank takes %s, a device has %s\n", name,
          dyna::formatBytes(report.peakBytes()), dyna::formatBytes(memory));
}

/// What all plans have in common.
dyna::PlanRequest requestOf(const Flags &flags,
                            const std::vector<std::vector<int64_t>> &steps) {
  dyna::PlanRequest request;
  request.recompute = flags.recompute;
  request.tokensPerBatch = flags.tokensPerBatch;
  request.tokensPerMicroBatch = flags.tokensPerMicroBatch;
  for (const std::vector<int64_t> &step : steps)
    for (int64_t length : step)
      request.longestSample = std::max(request.longestSample, length);
  return request;
}

std::vector<std::string> schedulesOf(const Flags &flags) {
  std::vector<std::string> names(flags.compare.begin(), flags.compare.end());
  if (names.empty())
    names.push_back(dyna::scheduleNames().front());
  return names;
}

/// Degrees in powers of two that use all devices; tensor parallelism stays on a
/// node and divides the heads.
std::vector<dyna::Strategy> candidates(const dyna::Model &model, int tp,
                                       int64_t devices) {
  std::vector<dyna::Strategy> all;
  for (int pp = 1; pp <= model.layers() && devices % (tp * pp) == 0; pp *= 2)
    for (bool zero : {false, true}) {
      dyna::Strategy strategy;
      strategy.dp = static_cast<int>(devices / (tp * pp));
      strategy.tp = tp;
      strategy.pp = pp;
      strategy.zero = zero;
      if (!zero || strategy.dp > 1)
        all.push_back(strategy);
    }
  return all;
}

/// Adds what can be planned; why the last of the others cannot, if any.
std::string tryStrategies(const dyna::CostModel &costs,
                          const std::vector<dyna::Strategy> &strategies,
                          const Flags &flags,
                          const std::vector<std::vector<int64_t>> &steps,
                          Reports &reports) {
  std::string refused;
  dyna::PlanRequest request = requestOf(flags, steps);
  for (const dyna::Strategy &strategy : strategies)
    for (const std::string &schedule : schedulesOf(flags)) {
      request.strategy = strategy;
      request.pipeline = schedule;
      std::vector<std::string> notes;
      auto report = planSteps(costs, request, steps, notes);
      if (report.isOk())
        reports.emplace_back(describeStrategy(strategy) + " " + schedule,
                             std::move(*report));
      else
        refused = report.status().message();
    }
  return refused;
}

int search(const Flags &flags, const std::vector<int64_t> &lengths) {
  auto table = dyna::CostTable::described(flags.cluster);
  if (!table.isOk())
    return fail(table.status());
  const int64_t devices = table->cluster().devices();
  const int64_t memory = table->device().memory_bytes();
  const int perNode = table->cluster().description().devices_per_node();
  if (devices == 0)
    return fail(Status::invalidArgument(
        "--strategy search needs to know the devices: --cluster such as "
        "a100-40g:4x8"));
  Reports reports;
  std::vector<std::vector<int64_t>> steps;
  std::string refused;
  int64_t heads = 1;
  for (int tp = 1;
       tp <= perNode && devices % tp == 0 && (heads == 0 || heads % tp == 0);
       tp *= 2) {
    dyna::Strategy degree;
    degree.tp = tp;
    auto model = compileModel(flags, degree);
    if (mlir::failed(model))
      return 2;
    if (tp == 1) {
      heads = model->manifest().facts().heads();
      steps = dealSteps(lengths, model->manifest().facts().positions(), flags);
    }
    auto costs = dyna::CostModel::create(*model, *table);
    if (!costs.isOk())
      return fail(costs.status());
    refused = tryStrategies(*costs, candidates(*model, tp, devices), flags,
                            steps, reports);
  }
  if (reports.empty())
    return fail(
        Status::invalidArgument("no strategy can be planned: " + refused));
  auto rank = [&](const auto &entry) {
    return std::tuple(!fits(entry.second, memory),
                      -entry.second.tokensPerSecond(), entry.first);
  };
  llvm::sort(reports,
             [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
  int64_t fitting =
      std::count_if(reports.begin(), reports.end(), [&](const auto &entry) {
        return fits(entry.second, memory);
      });
  llvm::errs() << dyna::formatText(
      "note: %d plans of %d devices tried, %d fit; the best first\n",
      reports.size(), devices, fitting);
  constexpr size_t mostShown = 10;
  if (!flags.json && reports.size() > mostShown)
    reports.resize(mostShown);
  print(reports, memory, flags.json);
  return 0;
}

int run(const Flags &flags) {
  if (Status status = flags.check(); !status.isOk())
    return fail(status);
  std::vector<std::string> columns(flags.columns.begin(), flags.columns.end());
  auto lengths = dyna::readLengths(flags.lengths, columns);
  if (!lengths.isOk())
    return fail(lengths.status());
  if (flags.strategy == "search")
    return search(flags, *lengths);
  auto strategy = dyna::parseStrategy(
      flags.strategy.empty() ? "dp=1" : flags.strategy.getValue());
  if (!strategy.isOk())
    return fail(strategy.status());
  auto model = compileModel(flags, *strategy);
  if (mlir::failed(model))
    return 2;
  auto costs = openCosts(*model, flags);
  if (!costs.isOk())
    return fail(costs.status());
  auto steps =
      dealSteps(*lengths, model->manifest().facts().positions(), flags);
  dyna::PlanRequest request = requestOf(flags, steps);
  request.strategy = *strategy;
  Reports reports;
  for (const std::string &name : schedulesOf(flags)) {
    request.pipeline = name;
    std::vector<std::string> notes;
    auto report = planSteps(*costs, request, steps, notes);
    if (!report.isOk())
      return fail(report.status());
    if (reports.empty())
      for (const std::string &note : notes)
        llvm::errs() << "note: " << dyna::printable(note) << '\n';
    reports.emplace_back(name, std::move(*report));
  }
  print(reports, costs->table().device().memory_bytes(), flags.json);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
  mlir::dyna::hideLibraryOptions();
  mlir::dyna::setVersion("dyna-plan");
  mlir::dyna::endCrashes();
  mlir::dyna::explainFatalErrors("dyna-plan");
  Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  if (!mlir::dyna::parseToolOptions(
          argc, argv,
          "Plans training steps for lengths, and plays them on a cluster.\n"))
    return 2;
  return run(flags);
}
