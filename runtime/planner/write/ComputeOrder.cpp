//===- ComputeOrder.cpp - Orders compute without exchanges ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/ComputeOrder.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <array>

namespace dyna {

using plan::Instruction;

void keepCompute(plan::Plan &plan) {
  for (plan::RankProgram &program : plan.ranks) {
    auto &list = program.instructions;
    list.erase(
        std::remove_if(list.begin(), list.end(),
                       [](const Instruction &i) { return !isCompute(i.op); }),
        list.end());
    for (Instruction &i : list)
      i.places.fill(plan::noPlace);
    program.dynamicBytes = 0;
  }
}

namespace {

/// Returns true if weight gradients of a stage are items of their own.
bool hasWeightItems(const RankView &view, const PlanOptions &options) {
  if (!ruleOf(options.schedule).adapts || !options.splitBackward)
    return false;
  for (int l = view.firstLayer(); l < view.endLayer(); ++l)
    if (splitsBackward(view.kind(l)))
      return true;
  return false;
}

/// Returns true if all layers split backward into two instructions.
bool isSplit(const ExecutableGraph &graph, const plan::Plan &plan) {
  bool any = false;
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    for (const Instruction &i : plan.ranks[rank].instructions) {
      if (i.layer < 0 || i.layer >= graph.model().layers())
        continue;
      if (i.op == Instruction::BACKWARD &&
          splitsBackward(graph.model().kind(i.layer)))
        return false;
      any |= i.op == Instruction::BACKWARD_INPUT;
    }
  return any;
}

/// The items of one rank.
class ProgramItems {
public:
  ProgramItems(const ExecutableGraph &graph, const plan::Plan &plan, int rank,
               const std::vector<int> &own, const PlanOptions &options,
               ComputeOrder &order)
      : view_(graph.replicaView(rank)), plan_(plan), rank_(rank), own_(own),
        schedule_(options.schedule),
        weightItems_(hasWeightItems(view_, options)), order_(order),
        numbers_(plan.microBatchCount(), -1), begun_(own.size()) {
    for (size_t m = 0; m < own.size(); ++m)
      numbers_[own[m]] = static_cast<int>(m);
  }

  StatusOr<std::vector<PipelineItem>> read() {
    for (const Instruction &i : plan_.ranks[rank_].instructions)
      if (isCompute(i.op))
        DYNA_RETURN_IF_ERROR(take(i));
    DYNA_RETURN_IF_ERROR(check());
    return std::move(items_);
  }

private:
  Status take(const Instruction &i) {
    if (i.microBatch < 0 || i.microBatch >= plan_.microBatchCount() ||
        numbers_[i.microBatch] < 0)
      return Status::invalidArgument(
          formatText("rank %d: %s: the micro-batch is none of its replica",
                     rank_, describeInstruction(i)));
    if (namesLayer(i.op) &&
        (i.layer < view_.firstLayer() || i.layer >= view_.endLayer()))
      return Status::invalidArgument(formatText(
          "rank %d: %s: its stage has layers %d to %d", rank_,
          describeInstruction(i), view_.firstLayer(), view_.endLayer() - 1));
    const bool isFirst = i.layer == view_.firstLayer();
    const bool isLast = i.layer == view_.endLayer() - 1;
    switch (passOf(i.op)) {
    case Pass::Forward:
      if (order_.trains != (i.op == Instruction::FORWARD))
        return Status::invalidArgument(
            "a plan trains on all micro-batches or evaluates all, but rank " +
            formatText("%d has %s", rank_, describeInstruction(i)));
      order_.modes[i.microBatch][i.layer] = i.recompute;
      if (isFirst)
        add(ItemKind::Forward, i.microBatch);
      break;
    case Pass::Backward:
      if (isLast)
        add(ItemKind::Backward, i.microBatch);
      break;
    case Pass::Weight:
      if (weightItems_ && !isInside(ItemKind::Weight, i.microBatch))
        add(ItemKind::Weight, i.microBatch);
      if (!weightItems_ && !isInside(ItemKind::Backward, i.microBatch))
        return Status::invalidArgument(formatText(
            "rank %d: %s stands apart from its backward, which a schedule has "
            "to allow: '%s' does not",
            rank_, describeInstruction(i), ruleOf(schedule_).name));
      break;
    default:
      break;
    }
    return Status::ok();
  }

  bool isInside(ItemKind kind, int microBatch) const {
    return !items_.empty() && items_.back().kind == kind &&
           items_.back().microBatch == numbers_[microBatch];
  }

  void add(ItemKind kind, int microBatch) {
    const int m = numbers_[microBatch];
    items_.push_back({kind, m});
    ++begun_[m][static_cast<int>(kind)];
  }

  /// Checks the order of items of a micro-batch: forward, then backward, then
  /// weight gradients.
  Status check() const {
    for (size_t m = 0; m < own_.size(); ++m)
      for (ItemKind kind :
           {ItemKind::Forward, ItemKind::Backward, ItemKind::Weight}) {
        const int times = begun_[m][static_cast<int>(kind)];
        const bool there =
            kind == ItemKind::Forward ||
            (order_.trains && (kind == ItemKind::Weight
                                   ? weightItems_
                                   : view_.hasBackward(view_.endLayer() - 1)));
        if (times == (there ? 1 : 0))
          continue;
        const char *what = kind == ItemKind::Forward    ? "forward"
                           : kind == ItemKind::Backward ? "backward"
                                                        : "weight gradients";
        return Status::invalidArgument(formatText(
            "rank %d: %s of micro-batch %d stands there %d times, expects %d",
            rank_, what, own_[m], times, there ? 1 : 0));
      }
    return Status::ok();
  }

  const RankView &view_;
  const plan::Plan &plan_;
  const int rank_;
  const std::vector<int> &own_;
  const Schedule schedule_;
  const bool weightItems_;
  ComputeOrder &order_;
  std::vector<int> numbers_; ///< in the replica, by the plan's; -1: of another
  std::vector<PipelineItem> items_;
  std::vector<std::array<int, 3>>
      begun_; ///< of kinds, by number in the replica
};

} // namespace

StatusOr<ComputeOrder> readComputeOrder(const ExecutableGraph &graph,
                                        const plan::Plan &plan,
                                        const PlanOptions &options) {
  if (plan.rankCount() != graph.ranks())
    return Status::invalidArgument(
        formatText("programs of %d ranks, but the strategy has %d",
                   plan.rankCount(), graph.ranks()));
  ComputeOrder order;
  order.splitsBackward = options.splitBackward || isSplit(graph, plan);
  PlanOptions read = options;
  read.splitBackward = order.splitsBackward;
  for (const plan::RankProgram &program : plan.ranks)
    for (const Instruction &i : program.instructions)
      order.trains &= i.op != Instruction::EVALUATE;
  order.modes.assign(
      plan.microBatchCount(),
      RecomputeModes(graph.model().layers(), plan::RECOMPUTE_NONE));
  const auto own = microBatchesOfReplicas(plan, graph.replicas());
  for (int replica = 0; replica < graph.replicas(); ++replica) {
    StageOrders &stages = order.replicas.emplace_back();
    for (int stage = 0; stage < graph.stages(); ++stage) {
      const int rank = graph.rankAt({replica, stage, 0});
      DYNA_ASSIGN_OR_RETURN(
          auto items,
          ProgramItems(graph, plan, rank, own[replica], read, order).read());
      stages.push_back(std::move(items));
    }
  }
  return order;
}

void dropEmptyItems(const ExecutableGraph &graph, const PlanOptions &options,
                    StageOrders &orders) {
  for (int stage = 0; stage < graph.stages(); ++stage) {
    if (hasWeightItems(graph.replicaView(graph.rankAt({0, stage, 0})), options))
      continue;
    auto &items = orders[stage];
    items.erase(std::remove_if(items.begin(), items.end(),
                               [](const PipelineItem &item) {
                                 return item.kind == ItemKind::Weight;
                               }),
                items.end());
  }
}

Status checkSameCompute(const plan::Plan &plan, const plan::Plan &ordered) {
  plan::Plan a = plan, b = ordered;
  keepCompute(a);
  keepCompute(b);
  for (int rank = 0; rank < a.rankCount(); ++rank) {
    const auto &given = a.ranks[rank].instructions;
    const auto &made = b.ranks[rank].instructions;
    for (size_t k = 0; k < std::max(given.size(), made.size()); ++k) {
      if (k < given.size() && k < made.size() && given[k] == made[k])
        continue;
      auto name = [&](const std::vector<Instruction> &list) {
        return k < list.size() ? describeInstruction(list[k])
                               : std::string("nothing");
      };
      return Status::invalidArgument(formatText(
          "rank %d: computation %d is %s where a planner's program has %s: "
          "communication is ordered between whole forwards and backwards of "
          "micro-batches",
          rank, k, name(given), name(made)));
    }
  }
  return Status::ok();
}

} // namespace dyna
