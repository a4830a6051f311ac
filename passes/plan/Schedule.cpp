//===- Schedule.cpp - Orders the computation of ranks ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/PlanSteps.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/PipelineTimes.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_SCHEDULE
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

using ::dyna::formatText;
using ::dyna::ItemKind;
using ::dyna::Status;

/// Returns the largest number of micro-batches that a stage holds at one time.
static int mostHeld(const std::vector<::dyna::PipelineItem> &items) {
  const bool apart = llvm::any_of(
      items, [](const auto &item) { return item.kind == ItemKind::Weight; });
  int held = 0, most = 0;
  for (const ::dyna::PipelineItem &item : items) {
    if (item.isForward())
      most = std::max(most, ++held);
    else if (item.isBackward() != apart)
      --held;
  }
  return most;
}

static std::string describe(int replica,
                            const ::dyna::ExpectedPipeline &pipeline) {
  const ::dyna::StageOrders &orders = pipeline.schedule.stages;
  std::string stock, held;
  for (const ::dyna::SafetyStock &stage :
       safetyStockOf(orders, pipeline.problem))
    stock += formatText("%s%d", stock.empty() ? "" : ", ", stage.median);
  for (const auto &items : orders)
    held += formatText("%s%d", held.empty() ? "" : ", ", mostHeld(items));
  return formatText(
      "replica %d: %d micro-batches in %.6g s, no order takes less than %.6g "
      "s; by stage, the safety stock is %s, and %s micro-batches are held at a "
      "time",
      replica, pipeline.problem.microBatches(), makespanOf(orders),
      boundPipeline(pipeline.problem).seconds(), stock, held);
}

namespace {

struct Schedule : mlir::dyna::impl::ScheduleBase<Schedule> {
  using ScheduleBase::ScheduleBase;
  Schedule() = default;
  Schedule(const Schedule &other) : ScheduleBase(other) {}

  void runOnOperation() override {
    if (failed(scheduleAll()))
      signalPassFailure();
  }

private:
  LogicalResult scheduleAll() {
    ModuleOp module = getOperation();
    FailureOr<PlanInputs> inputs = openInputs(module, words);
    if (failed(inputs))
      return failure();
    SmallVector<exec::PlanOp> drafts;
    for (auto plan : module.getOps<exec::PlanOp>()) {
      if (plan.isDraft() && plan.hasPrograms())
        return plan.emitOpError("is scheduled already; run "
                                "--dyna-order-communication on it");
      if (plan.isDraft())
        drafts.push_back(plan);
    }
    if (drafts.empty())
      return module.emitError("has no exec.plan that is a draft of "
                              "micro-batches; run --dyna-build-micro-batches "
                              "first");
    for (exec::PlanOp draft : drafts)
      if (failed(scheduleOne(draft, *inputs)))
        return failure();
    return success();
  }

  LogicalResult scheduleOne(exec::PlanOp op, const PlanInputs &inputs) {
    FailureOr<PlanDraft> draft = readDraft(op, *inputs.model);
    if (failed(draft))
      return failure();
    Status status = change(*draft, inputs.words);
    if (status.isOk())
      status = schedulePlan(*draft, inputs.costs);
    if (status.isOk() && report)
      status = addReport(*draft, inputs.costs);
    if (!status.isOk())
      return refuse(op, status);
    sayNotes(op, draft->notes);
    return replacePlan(op, std::move(*draft), /*isComplete=*/false);
  }

  /// Replaces options of the draft by those that are given.
  Status change(PlanDraft &draft, const ::dyna::PlanningValues &asked) const {
    ::dyna::PlanOptions &options = draft.options;
    if (draft.evaluate && asked.splitBackward)
      return Status::invalidArgument("split-backward says how gradients are "
                                     "made, but the draft evaluates: "
                                     "there are none");
    options.splitBackward |= asked.splitBackward;
    if (const int64_t bytes = bytesOf(asked.rankMemory); bytes > 0)
      draft.rankMemory = bytes;
    if (!asked.recompute.empty()) {
      options.chooseRecompute = asked.recompute == ::dyna::chooseRecomputeWord;
      options.recompute = {::dyna::plan::RECOMPUTE_NONE};
      if (!options.chooseRecompute) {
        DYNA_ASSIGN_OR_RETURN(
            options.recompute,
            ::dyna::parseRecompute(asked.recompute,
                                   draft.graph.model().layers()));
      }
    }
    const ::dyna::Schedule before = options.schedule;
    if (!asked.pipeline.empty()) {
      DYNA_ASSIGN_OR_RETURN(options.schedule,
                            ::dyna::findSchedule(asked.pipeline));
    }
    if (draft.graph.stages() == 1)
      options.schedule = before; // only one schedule is possible
    if (options.schedule == before && asked.inFlight == 0)
      return Status::ok();
    size_t most = 0;
    for (const auto &own :
         ::dyna::microBatchesOfReplicas(draft.plan, draft.graph.replicas()))
      most = std::max(most, own.size());
    setInFlight(options, asked.inFlight, draft.graph.stages(),
                static_cast<int64_t>(most), draft.notes);
    return Status::ok();
  }

  Status addReport(PlanDraft &draft, const ::dyna::CostModel &costModel) {
    ::dyna::Planner planner(draft.graph, costModel);
    DYNA_ASSIGN_OR_RETURN(auto pipelines,
                          planner.expect(draft.plan, draft.options));
    for (auto [replica, pipeline] : llvm::enumerate(pipelines))
      draft.notes.push_back(describe(static_cast<int>(replica), pipeline));
    return Status::ok();
  }

  WordOptions words{*this,
                    {::dyna::Word::Costs, ::dyna::Word::Cluster,
                     ::dyna::Word::Pipeline, ::dyna::Word::InFlight,
                     ::dyna::Word::SplitBackward, ::dyna::Word::Recompute,
                     ::dyna::Word::RankMemory}};
};

} // namespace
