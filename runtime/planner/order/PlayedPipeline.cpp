//===- PlayedPipeline.cpp - Reads a simulated plan's pipeline -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PlayedPipeline.h"

#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/order/GraphLinks.h"

#include <algorithm>
#include <limits>
#include <map>

namespace dyna {

using plan::Instruction;

namespace {

/// One stage, instruction by instruction.
class StageReader {
public:
  StageReader(PlayedPipeline &pipeline, int stage, int endLayer)
      : problem_(pipeline.problem), items_(pipeline.orders[stage]),
        stage_(stage), endLayer_(endLayer) {}

  void add(const Instruction &i, int m, double seconds, const TaskTime &time) {
    switch (passOf(i.op)) {
    case Pass::Forward:
      problem_.forward[stage_][m] += seconds;
      return addItem(ItemKind::Forward, m, time);
    case Pass::Recompute:
      // Only recomputation of the layer that backward begins with can start
      // early.
      if (i.layer + 1 == endLayer_)
        problem_.recompute[stage_][m] += seconds;
      problem_.backward[stage_][m] += seconds;
      return addItem(ItemKind::Backward, m, time);
    case Pass::Backward:
      problem_.backward[stage_][m] += seconds;
      return addItem(ItemKind::Backward, m, time);
    case Pass::Weight:
      problem_.backward[stage_][m] += seconds;
      problem_.weight[stage_][m] += seconds;
      isSplit = true;
      return addItem(ItemKind::Weight, m, time);
    case Pass::Update:
    case Pass::None:
      return;
    }
  }

  bool isSplit = false;

private:
  void addItem(ItemKind kind, int m, const TaskTime &time) {
    auto [known, isNew] = index_.insert({{kind, m}, items_.size()});
    if (isNew) {
      PipelineItem item;
      item.kind = kind;
      item.microBatch = m;
      item.start = item.inputs = time.start;
      items_.push_back(item);
    }
    items_[known->second].end = time.end;
  }

  PipelineProblem &problem_;
  std::vector<PipelineItem> &items_;
  std::map<std::pair<ItemKind, int>, size_t> index_;
  const int stage_, endLayer_;
};

} // namespace

PlayedPipeline playedPipeline(const ExecutableGraph &graph,
                              const plan::Plan &plan, const PlanWork &work,
                              const PlanTimes &times, int replica,
                              const std::vector<int> &microBatches) {
  PlayedPipeline pipeline;
  PipelineProblem &problem = pipeline.problem;
  const std::vector<double> none(microBatches.size(), 0);
  for (auto *table : {&problem.forward, &problem.backward, &problem.weight,
                      &problem.recompute})
    table->assign(graph.stages(), none);
  pipeline.orders.resize(graph.stages());
  std::vector<int> place(plan.microBatchCount(), -1);
  for (size_t m = 0; m < microBatches.size(); ++m)
    place[microBatches[m]] = static_cast<int>(m);
  bool isSplit = false;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const int rank = graph.rankAt({replica, stage, 0});
    StageReader reader(pipeline, stage, graph.stage(stage).endLayer);
    const auto &program = plan.ranks[rank].instructions;
    for (size_t index = 0; index < program.size(); ++index)
      if (isPerMicroBatch(program[index].op))
        reader.add(program[index], place[program[index].microBatch],
                   work.steps(rank)[static_cast<int>(index)].seconds,
                   times.ranks[rank].instructions[index]);
    isSplit |= reader.isSplit;
  }
  if (!isSplit)
    problem.weight.clear();
  double message = std::numeric_limits<double>::infinity();
  for (const PlannedTransfer &transfer : work.transfers())
    if (transfer.isMessage() && place[transfer.microBatch] >= 0)
      message = std::min(message, transfer.seconds);
  problem.links = linksOf(graph, message < 1e18 ? message : 0);
  return pipeline;
}

} // namespace dyna
