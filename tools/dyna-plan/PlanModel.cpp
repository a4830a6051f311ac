//===- PlanModel.cpp - Loads the model that plans are made for ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/PlanModel.h"

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/text/ShortDiagnostics.h"
#include "dialects/dyna/text/TextInput.h"
#include "frontends/Frontends.h"
#include "frontends/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/plan/ManifestBuilder.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/ParseBytes.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/cost/StoredScores.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "tools/ExitShares.h"
#include "tools/SparsityFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace dyna {

int fail(const Status &status) {
  llvm::errs() << "dyna-plan: " << messageText(status.message()) << '\n';
  return 2;
}

/// Graphs and configurations are text.
bool isTrainingBinary(const std::string &path) {
  constexpr char magic[] = {'\x7f', 'E', 'L', 'F'};
  char begin[sizeof(magic)];
  auto file = openRegularFile(path);
  if (!file.isOk())
    return false; // reading it as text reports the error
  auto count = readAt(*file, path, 0, begin, sizeof(begin));
  return count.isOk() && *count == sizeof(begin) &&
         std::equal(begin, begin + sizeof(begin), magic);
}

namespace {

/// Returns the manifest that a training binary was compiled from, which it
/// prints.
StatusOr<Model> describeProgram(const PlanFlags &flags) {
  if (flags.computeType.getNumOccurrences() > 0)
    return Status::invalidArgument(
        "--compute-type is for models that are compiled here: " + flags.model +
        " has its own");
  auto refuse = [&](const std::string &why) {
    return Status::invalidArgument(flags.model +
                                   " is no training binary: " + why);
  };
  llvm::SmallString<128> printed;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("dyna-plan", "manifest", printed))
    return Status::invalidArgument("cannot make a temporary file: " +
                                   error.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove(printed); });
  // A name without a folder is a file of this folder, not a program of PATH.
  std::string program = flags.model;
  if (program.find('/') == std::string::npos)
    program.insert(0, "./");
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(), llvm::StringRef(printed), llvm::StringRef()};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(
      program, {program, "--describe=proto"}, /*Env=*/std::nullopt, redirects,
      /*SecondsToWait=*/60, /*MemoryLimit=*/0, &message);
  if (code != 0)
    return refuse(message.empty()
                      ? formatText("--describe=proto ends with %d", code)
                      : message);
  DYNA_ASSIGN_OR_RETURN(std::string bytes, readFile(printed.str().str()));
  auto model = Model::parse(bytes.data(), static_cast<int64_t>(bytes.size()));
  return model.isOk() ? std::move(model) : refuse(model.status().message());
}

/// Costs say what one compute type takes: unless another one is given, the model is
/// compiled in theirs.
std::string computeTypeOf(const PlanFlags &flags, const CostTable &table) {
  const std::string &measured = table.message().compute_type();
  return flags.computeType.getNumOccurrences() > 0 || measured.empty()
             ? flags.computeType.getValue()
             : measured;
}

/// Runs the phases up to the memory phase. `strategies` as text; empty: tensor
/// degree 1 alone.
mlir::LogicalResult runPhases(mlir::ModuleOp module, const PlanFlags &flags,
                              const CostTable &table,
                              const std::string &strategies) {
  mlir::PassManager passes(module.getContext(),
                           mlir::ModuleOp::getOperationName());
  passes.addPass(mlir::dyna::createCheckFamilies());
  mlir::dyna::ConvertPhaseOptions convert;
  convert.type = computeTypeOf(flags, table);
  mlir::dyna::buildConvertPhase(passes, convert);
  mlir::dyna::buildDifferentiatePhase(passes);
  if (!strategies.empty()) {
    mlir::dyna::DistributePhaseOptions distribute;
    distribute.strategy = strategies;
    mlir::dyna::buildDistributePhase(passes, distribute);
  }
  mlir::dyna::buildMemoryPhase(passes);
  return passes.run(module);
}

/// Returns the model; `strategies` is as above.
mlir::FailureOr<Model> modelOf(const PlanFlags &flags, const CostTable &table,
                               const std::string &strategies, bool isAgain) {
  if (isTrainingBinary(flags.model)) {
    auto model = describeProgram(flags);
    if (!model.isOk()) {
      fail(model.status());
      return mlir::failure();
    }
    return std::move(*model);
  }
  std::string message;
  auto buffer = mlir::dyna::openTextInput(flags.model, &message);
  if (!buffer) {
    fail(Status::invalidArgument(message));
    return mlir::failure();
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect>();
  mlir::MLIRContext context(registry);
  context.loadDialect<mlir::dyna::DynaDialect>();
  context.printOpOnDiagnostic(false);
  llvm::MemoryBufferRef text = buffer->getMemBufferRef();
  bool isConfig = text.getBuffer().ltrim().starts_with("{");
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  mlir::dyna::shortenDiagnostics(*sources);
  mlir::SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  mlir::ScopedDiagnosticHandler again(
      &context, [&](mlir::Diagnostic &diagnostic) {
        return mlir::success(isAgain && diagnostic.getSeverity() ==
                                            mlir::DiagnosticSeverity::Warning);
      });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      isConfig ? mlir::dyna::importConfig(&context, text)
               : mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module || mlir::failed(runPhases(*module, flags, table, strategies)))
    return mlir::failure();
  auto manifest = mlir::dyna::buildManifest(*module);
  if (mlir::failed(manifest))
    return mlir::failure();
  StatusOr<Model> model = dyna::Model::create(std::move(*manifest));
  if (!model.isOk()) {
    fail(model.status());
    return mlir::failure();
  }
  return std::move(*model);
}

} // namespace

StatusOr<CostTable> openTable(const PlanFlags &flags) {
  DYNA_ASSIGN_OR_RETURN(
      CostTable table,
      !flags.costs.empty()
          ? CostTable::read(flags.costs)
          : CostTable::described(flags.cluster.getNumOccurrences() == 0
                                     ? std::string("host")
                                     : flags.cluster.getValue()));
  if (flags.attention == "stored")
    table.describeScores();
  if (flags.rankMemory.isGiven()) {
    DYNA_ASSIGN_OR_RETURN(int64_t bytes, parseBytes(flags.rankMemory));
    table.setMemory(bytes);
  }
  return table;
}

/// Gives layers the states of a file, and notes them.
static Status takeStates(CostModel &costs, const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(LayerStates states,
                        readLayerStates(path, costs.model()));
  if (Status status = costs.setStates(std::move(states)); !status.isOk())
    return Status::invalidArgument(path + ": " + status.message());
  std::string note = describeStates(costs.layerStates());
  if (costs.table().sparse().empty())
    note += formatText("; device '%s' has no durations of sparse products "
                       "(docs/costs.md), so zeros are only masked",
                       costs.table().device().name());
  llvm::errs() << "note: " << printable(note) << '\n';
  return Status::ok();
}

/// Sets how many tokens reach the layers, beside states that they have, and notes it.
static Status takeExits(CostModel &costs, const std::string &shares,
                        const std::string &unit) {
  LayerStates states = costs.layerStates();
  DYNA_RETURN_IF_ERROR(setExitShares(shares, unit, costs.model(), states));
  DYNA_RETURN_IF_ERROR(costs.setStates(std::move(states)));
  llvm::errs() << "note: " << printable(describeExits(costs.layerStates()))
               << '\n';
  return Status::ok();
}

StatusOr<CostModel> openCosts(const Model &model, CostTable table,
                              const PlanFlags &flags) {
  DYNA_ASSIGN_OR_RETURN(CostModel costs,
                        CostModel::create(model, std::move(table)));
  if (!flags.sparsity.empty())
    DYNA_RETURN_IF_ERROR(takeStates(costs, flags.sparsity));
  if (flags.exitShares.getNumOccurrences() > 0)
    DYNA_RETURN_IF_ERROR(takeExits(costs, flags.exitShares, flags.exitUnit));
  for (const std::string &note :
       {costs.describeOtherType(), costs.describeBasis()})
    if (!note.empty())
      llvm::errs() << "note: " << printable(note) << '\n';
  return costs;
}

void noteLacking(const CostModel &costs,
                 const std::vector<Strategy> &strategies) {
  for (const std::string &note : describeLacking(costs, strategies))
    llvm::errs() << "note: " << printable(note) << '\n';
}

static mlir::FailureOr<Model> compile(const PlanFlags &flags,
                                      const std::string &strategies,
                                      const CostTable &table, bool isAgain) {
  auto model = modelOf(flags, table, strategies, isAgain);
  if (mlir::failed(model) || !table.scores())
    return model;
  StatusOr<Model> keeps = keepScores(*model, *table.scores());
  if (keeps.isOk())
    return std::move(*keeps);
  fail(keeps.status());
  return mlir::failure();
}

mlir::FailureOr<Model> compileModel(const PlanFlags &flags,
                                    const Strategy &strategy,
                                    const CostTable &table, bool isAgain) {
  return compile(flags, strategy.tp > 1 ? describeStrategy(strategy) : "",
                 table, isAgain);
}

std::string splittingStrategies(const std::vector<Strategy> &strategies) {
  std::string text;
  for (Strategy one : strategies) {
    if (one.tp == 1)
      continue;
    one.name = formatText("s%d", text.size());
    text += (text.empty() ? "" : "; ") + describeStrategy(one);
  }
  return text;
}

StatusOr<Strategy> readStrategy(const std::string &flag,
                                const std::string &text,
                                const std::vector<Strategy> &known,
                                const std::string &more) {
  if (text.empty() || text.find('=') != std::string::npos)
    return parseStrategy(text);
  std::string names;
  for (const Strategy &strategy : known) {
    if (strategy.name == text)
      return strategy;
    names += (names.empty() ? "" : ", ") + strategy.name;
  }
  return Status::invalidArgument(formatText(
      "%s names strategy '%s', but %s: write one, such as dp=2,tp=2%s", flag,
      text, names.empty() ? "none has a name" : "there are " + names, more));
}

StatusOr<std::vector<Strategy>> compiledStrategies(const Model &model) {
  std::vector<Strategy> strategies;
  for (const std::string &text : model.manifest().strategies()) {
    DYNA_ASSIGN_OR_RETURN(Strategy strategy, parseStrategy(text));
    strategies.push_back(std::move(strategy));
  }
  return strategies;
}

mlir::FailureOr<Model> compileDegrees(const PlanFlags &flags,
                                      const std::string &strategies,
                                      const CostTable &table) {
  return compile(flags, strategies, table, /*isAgain=*/true);
}

} // namespace dyna
