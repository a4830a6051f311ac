//===- ReportMemory.cpp - Prints the memory that a planned module needs ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/MemoryPlan.h"
#include "passes/plan/Passes.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/planner/graph/Planner.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_REPORTMEMORY
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct Line {
  std::string what;
  LinearBytes bytes;
  std::optional<LinearBytes> lowerBound;
};

struct LayerReport {
  std::string name;
  int64_t calls = 0;
  std::vector<Line> tiers;
  std::vector<Line> roles;
};

struct Persistent {
  int64_t parameters = 0; ///< in the compute type
  int64_t gradients = 0;
  int64_t masters = 0; ///< 0 if the parameters are the masters
  int64_t moments = 0; ///< two of the optimizer
  int64_t total() const { return parameters + gradients + masters + moments; }
};

/// Bytes of one rank in a step of one micro-batch, by what is recomputed.
struct Peak {
  int64_t persistent = 0;
  std::vector<std::pair<StringRef, int64_t>> dynamic;
};

struct Report {
  Persistent persistent;
  std::vector<LayerReport> layers;
  std::optional<Peak> peak;
};

/// Returns the peak of the plan that a training binary makes for `segments`
/// samples of `tokens` tokens together.
FailureOr<Peak> planPeak(ModuleOp module, int64_t tokens, int64_t segments) {
  FailureOr<::dyna::Model> model = modelOf(module);
  if (failed(model))
    return failure();
  auto refuse = [&](const ::dyna::Status &status) {
    return module.emitError("cannot plan a step: ") << status.message();
  };
  auto graph = ::dyna::ExecutableGraph::create(*model, ::dyna::Strategy());
  if (!graph.isOk())
    return refuse(graph.status());
  std::vector<int64_t> lengths;
  for (int64_t left = segments; left > 0; --left) {
    lengths.push_back(tokens / left);
    tokens -= lengths.back();
  }
  Peak peak;
  peak.persistent =
      ::dyna::persistentLayout(::dyna::RankView::whole(*model)).bytes;
  for (auto [name, mode] : {std::pair<StringRef, ::dyna::plan::Recompute>(
                                "none", ::dyna::plan::RECOMPUTE_NONE),
                            {"selective", ::dyna::plan::RECOMPUTE_SELECTIVE},
                            {"full", ::dyna::plan::RECOMPUTE_FULL}}) {
    ::dyna::PlanOptions options;
    options.recompute = {mode};
    options.maxTokensPerMicroBatch = 0;
    for (int64_t length : lengths)
      options.maxTokensPerMicroBatch += length;
    auto plan = ::dyna::Planner(*graph).training(
        lengths, options.maxTokensPerMicroBatch, options);
    if (!plan.isOk())
      return refuse(plan.status());
    peak.dynamic.push_back({name, plan->ranks[0].dynamicBytes});
  }
  return peak;
}

/// Counts every tensor in a block of its own, as the runtime lays them out.
Persistent countPersistent(ModuleOp module) {
  Persistent bytes;
  Type gradients;
  for (FunctionOp function : module.getOps<FunctionOp>())
    if (!gradients)
      gradients = function.getGradientElementType();
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    auto type = cast<RankedTensorType>(parameter.getType());
    Type element = type.getElementType();
    Type accumulator = getAccumulatorType(element);
    int64_t wide = bytesOf(type.clone(accumulator)).constant;
    bytes.parameters += bytesOf(type).constant;
    if (parameter.getFrozen())
      continue;
    bytes.gradients +=
        gradients ? bytesOf(type.clone(gradients)).constant : wide;
    bytes.moments += 2 * wide;
    if (element != accumulator)
      bytes.masters += wide;
  }
  return bytes;
}

FailureOr<LayerReport> reportLayer(StringAttr name, LayerOp layer,
                                   ArrayRef<FunctionOp> functions) {
  LayerReport report;
  report.name = name.str();
  FailureOr<TierPlan> tiers = planTiers(layer, functions);
  if (failed(tiers))
    return failure();
  for (auto [memory, size] : llvm::zip_equal(tierMemories, tiers->sizes))
    report.tiers.push_back({stringifyMemory(memory).str(), size, std::nullopt});
  for (FunctionOp function : functions) {
    PlaceAttr workspace = function.getWorkspaceAttr();
    if (!workspace)
      return function.emitOpError(
          "has no workspace; run dyna-plan-memory first");
    FailureOr<FunctionPlan> plan = planFunction(function, *tiers);
    if (failed(plan))
      return failure();
    report.roles.push_back({stringifyRole(function.getRole()).str(),
                            workspace.getOffset(), plan->lowerBound});
  }
  return report;
}

struct ReportMemory : mlir::dyna::impl::ReportMemoryBase<ReportMemory> {
  using Base::Base;

  void runOnOperation() override {
    for (int64_t count : {int64_t(tq), int64_t(tkv), int64_t(s)})
      if (count < 0 || count > ::dyna::maxMicroBatchTokens) {
        getOperation().emitError("expects counts from 0 to ")
            << ::dyna::maxMicroBatchTokens
            << ", the most tokens of a micro-batch, but got tq=" << int64_t(tq)
            << " tkv=" << int64_t(tkv) << " s=" << int64_t(s);
        return signalPassFailure();
      }
    FailureOr<Report> report = collect();
    if (failed(report))
      return signalPassFailure();
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (json)
      printJson(*report, stream);
    else
      printTable(*report, stream);
    if (::dyna::Status status = ::dyna::writeOutput(output, text);
        !status.isOk()) {
      getOperation().emitError("cannot write the report: ") << status.message();
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  FailureOr<Report> collect() {
    Report report;
    report.persistent = countPersistent(getOperation());
    // Without functions nothing needs memory, and an empty table would look
    // like an answer.
    if (getOperation().getOps<FunctionOp>().empty())
      return getOperation().emitError("has no functions to report the memory "
                                      "of; run dyna-differentiate and "
                                      "dyna-memory first");
    SymbolTable symbols(getOperation());
    for (auto &[name, functions] : functionsByLayer(getOperation())) {
      FailureOr<LayerReport> layer =
          reportLayer(name, symbols.lookup<LayerOp>(name), functions);
      if (failed(layer))
        return failure();
      getOperation().walk([&, name = name](CallOp call) {
        layer->calls += call.getCalleeAttr().getAttr() == name;
      });
      report.layers.push_back(std::move(*layer));
    }
    // A step needs a model, samples that have tokens, and keys of its own
    // micro-batches.
    bool isStep = s > 0 && s <= tq && (tkv == 0 || tkv == tq) &&
                  !getOperation().getOps<ModelOp>().empty();
    if (!isStep)
      return report;
    FailureOr<Peak> peak = planPeak(getOperation(), tq, s);
    if (failed(peak))
      return failure();
    report.peak = *peak;
    return report;
  }

  int64_t at(const LinearBytes &bytes) const {
    return bytes.at({tq, tkv > 0 ? tkv : tq, s});
  }

  void printTable(const Report &report, raw_ostream &os) {
    const Persistent &kept = report.persistent;
    os << "persistent bytes: " << kept.total() << " (parameters "
       << kept.parameters << ", gradients " << kept.gradients << ", masters "
       << kept.masters << ", optimizer " << kept.moments << ")\n"
       << "totals for Tq=" << tq << " Tkv=" << (tkv > 0 ? tkv : tq)
       << " S=" << s << "\n";
    if (report.peak)
      for (auto [mode, bytes] : report.peak->dynamic)
        os << "peak bytes of a step, recomputing " << mode << ": "
           << report.peak->persistent + bytes << " (persistent "
           << report.peak->persistent << ", dynamic " << bytes << ")\n";
    for (const LayerReport &layer : report.layers) {
      os << "\nlayer @" << layer.name << ", called " << layer.calls
         << " times\n";
      for (const Line &line : layer.tiers)
        printLine("tier", line, os);
      for (const Line &line : layer.roles)
        printLine("workspace of", line, os);
    }
  }

  void printLine(StringRef kind, const Line &line, raw_ostream &os) {
    os << llvm::formatv("  {0,-34} {1,14}  {2}", (kind + " " + line.what).str(),
                        at(line.bytes), line.bytes.str());
    if (line.lowerBound && !(*line.lowerBound == line.bytes))
      os << "  (most alive: " << line.lowerBound->str() << ")";
    os << "\n";
  }

  void printJson(const Report &report, raw_ostream &os) {
    llvm::json::OStream out(os, 2);
    const Persistent &kept = report.persistent;
    out.object([&] {
      out.attributeObject("counts", [&] {
        out.attribute("tq", int64_t(tq));
        out.attribute("tkv", tkv > 0 ? int64_t(tkv) : int64_t(tq));
        out.attribute("s", int64_t(s));
      });
      out.attributeObject("persistent", [&] {
        out.attribute("parameters", kept.parameters);
        out.attribute("gradients", kept.gradients);
        out.attribute("masters", kept.masters);
        out.attribute("optimizer", kept.moments);
        out.attribute("total", kept.total());
      });
      if (report.peak)
        out.attributeObject("peak", [&] {
          for (auto [mode, bytes] : report.peak->dynamic)
            out.attribute(mode, report.peak->persistent + bytes);
        });
      out.attributeArray("layers", [&] {
        for (const LayerReport &layer : report.layers)
          out.object([&] { writeLayer(layer, out); });
      });
    });
    os << "\n";
  }

  void writeLayer(const LayerReport &layer, llvm::json::OStream &out) {
    out.attribute("name", layer.name);
    out.attribute("calls", layer.calls);
    auto writeLines = [&](StringRef name, ArrayRef<Line> lines) {
      out.attributeObject(name, [&] {
        for (const Line &line : lines)
          out.attributeObject(line.what, [&] {
            writeBytes(line.bytes, out);
            if (line.lowerBound)
              out.attributeObject("most_alive",
                                  [&] { writeBytes(*line.lowerBound, out); });
          });
      });
    };
    writeLines("tiers", layer.tiers);
    writeLines("workspace", layer.roles);
  }

  void writeBytes(const LinearBytes &bytes, llvm::json::OStream &out) {
    out.attribute("tq", bytes.tq);
    out.attribute("tkv", bytes.tkv);
    out.attribute("s", bytes.s);
    out.attribute("constant", bytes.constant);
    out.attribute("total", at(bytes));
  }
};

} // namespace
