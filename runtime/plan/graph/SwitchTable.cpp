//===- SwitchTable.cpp - Holds all switches between the graphs of a run ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/SwitchTable.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/program/PlanRules.h"

#include <algorithm>
#include <set>

namespace dyna {

std::vector<int> parametersByFirstUse(const Model &model) {
  std::vector<int> order;
  std::vector<char> seen(model.parameters(), 0);
  for (int l = 0; l < model.layers(); ++l)
    for (int p : model.layer(l).parameters())
      if (!seen[p]) {
        seen[p] = 1;
        order.push_back(p);
      }
  return order;
}

static void append(std::vector<RankBox> &all, std::vector<RankBox> more) {
  for (RankBox &one : more)
    if (!one.box.isEmpty())
      all.push_back(std::move(one));
}

std::vector<SwitchTensor> valueTensors(const ExecutableGraph &home,
                                       const ExecutableGraph *before,
                                       const ExecutableGraph &to) {
  const Model &model = home.model();
  std::vector<SwitchTensor> tensors;
  // The first layer that uses a parameter waits for it first.
  for (int p : parametersByFirstUse(model)) {
    SwitchTensor tensor;
    tensor.parameter = p;
    tensor.part = valuePart(model, p);
    tensor.elementBytes = elementBytes(typeOf(model, p, tensor.part));
    tensor.delivery = Delivery::All;
    append(tensor.from, home.currentBoxes(p));
    if (before && before != &home)
      append(tensor.from, before->boxes(p));
    append(tensor.to, to.boxes(p));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<SwitchTensor> gradientTensors(const ExecutableGraph &from,
                                          const ExecutableGraph &home) {
  const Model &model = home.model();
  std::vector<SwitchTensor> tensors;
  // Backward reaches the last layer first.
  std::vector<int> order = parametersByFirstUse(model);
  std::reverse(order.begin(), order.end());
  for (int p : order) {
    if (model.isFrozen(p))
      continue;
    SwitchTensor tensor;
    tensor.parameter = p;
    tensor.part = ParameterPart::Gradient;
    tensor.elementBytes = elementBytes(model.gradientType());
    tensor.delivery = Delivery::Once;
    append(tensor.from, from.currentBoxes(p));
    std::set<int> groups;
    const std::vector<RankBox> boxes = home.boxes(p);
    for (const RankBox &one : boxes)
      groups.insert(home.holderGroup(p, one.rank));
    for (int group : groups) {
      tensor.to.clear();
      const std::vector<int> &members = home.holderGroups()[group].ranks;
      for (const RankBox &one : boxes)
        if (std::find(members.begin(), members.end(), one.rank) !=
                members.end() &&
            home.holderGroup(p, one.rank) == group)
          append(tensor.to, {one});
      if (!tensor.to.empty())
        tensors.push_back(tensor);
    }
  }
  return tensors;
}

/// Removes boxes that layers read in home's memory.
static std::vector<SwitchTensor>
withoutHome(std::vector<SwitchTensor> tensors,
            const std::vector<std::vector<int64_t>> &rowsAtHome) {
  for (SwitchTensor &tensor : tensors)
    tensor.to.erase(
        std::remove_if(tensor.to.begin(), tensor.to.end(),
                       [&](const RankBox &one) {
                         return rowsAtHome[one.rank][tensor.parameter] >= 0;
                       }),
        tensor.to.end());
  return tensors;
}

static std::vector<GraphSwitch::Side> sidesOf(const GraphSwitch &one, int ranks,
                                              int parameters) {
  std::vector<GraphSwitch::Side> sides(ranks);
  for (GraphSwitch::Side &side : sides) {
    side.transfers.resize(one.plan.buckets.size());
    side.sent.resize(one.plan.buckets.size());
    side.meets.assign(one.plan.buckets.size(), 0);
    side.arrivals.resize(parameters);
  }
  auto note = [](std::vector<int> &list, int value) {
    if (std::find(list.begin(), list.end(), value) == list.end())
      list.push_back(value);
  };
  for (int b = 0; b < one.buckets(); ++b) {
    const std::vector<SwitchTransfer> &transfers =
        one.plan.buckets[b].transfers;
    for (GraphSwitch::Side &side : sides) {
      side.passed.push_back(side.passedBytes);
      side.got.push_back(side.gotBytes);
    }
    for (size_t number = 0; number < transfers.size(); ++number) {
      const SwitchTransfer &transfer = transfers[number];
      const int parameter = one.tensors[transfer.tensor].parameter;
      GraphSwitch::Side &from = sides[transfer.from], &to = sides[transfer.to];
      from.transfers[b].push_back(static_cast<int>(number));
      if (transfer.from != transfer.to) {
        to.transfers[b].push_back(static_cast<int>(number));
        from.meets[b] = to.meets[b] = 1;
      }
      const int64_t bytes = dyna_align_block(
          transfer.box.volume() * one.tensors[transfer.tensor].elementBytes);
      if (transfer.target == SwitchPlace::Passing)
        to.passedBytes += bytes;
      else if (transfer.from != transfer.to)
        to.gotBytes += bytes;
      if (transfer.target == SwitchPlace::New &&
          (to.arrivals[parameter].empty() ||
           to.arrivals[parameter].back() != b))
        to.arrivals[parameter].push_back(b);
      if (transfer.source == SwitchPlace::Old)
        note(from.sent[b], parameter);
    }
  }
  return sides;
}

StatusOr<GraphSwitch> GraphSwitch::create(std::vector<SwitchTensor> tensors,
                                          SwitchPlan plan, int ranks,
                                          int parameters) {
  DYNA_RETURN_IF_ERROR(checkSwitch(tensors, ranks, plan));
  GraphSwitch made;
  made.tensors = std::move(tensors);
  made.plan = std::move(plan);
  made.sides = sidesOf(made, ranks, parameters);
  return made;
}

int64_t GraphSwitch::sentBytes() const {
  int64_t bytes = 0;
  for (const SwitchBucket &bucket : plan.buckets)
    for (const SwitchTransfer &transfer : bucket.transfers)
      if (transfer.from != transfer.to)
        bytes += transfer.box.volume() * tensors[transfer.tensor].elementBytes;
  return bytes;
}

std::vector<int> GraphSwitch::ranksThatMeet(int bucket) const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < sides.size(); ++rank)
    if (sides[rank].meets[bucket])
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

Status checkSwitched(const std::vector<const ExecutableGraph *> &graphs) {
  for (size_t i = 0; i < graphs.size(); ++i) {
    const ExecutableGraph &graph = *graphs[i];
    if (graph.ranks() != graphs.front()->ranks())
      return Status::invalidArgument(formatText(
          "strategy '%s' has %d ranks, but '%s' has %d: those that a step "
          "switches between need equally many",
          graph.name(), graph.ranks(), graphs.front()->name(),
          graphs.front()->ranks()));
    for (size_t other = 0; other < i; ++other)
      if (graphs[other]->name() == graph.name())
        return Status::invalidArgument(
            graph.strategy().name.empty()
                ? formatText("strategy '%s' is given twice", graph.name())
                : formatText("strategies '%s' and '%s' are one, '%s': give the "
                             "lengths of both to one of them",
                             graphs[other]->strategy().name,
                             graph.strategy().name, graph.name()));
  }
  return Status::ok();
}

StatusOr<SwitchTable>
SwitchTable::create(const std::vector<const ExecutableGraph *> &graphs,
                    int home, const Make &make) {
  return createWays(graphs, home,
                    [&](const Way &, const std::vector<SwitchTensor> &tensors) {
                      return make(tensors);
                    });
}

SwitchTable SwitchTable::ofOne(const ExecutableGraph &graph) {
  // Without switches nothing can fail.
  return *createWays({&graph}, /*home=*/0, /*make=*/nullptr);
}

StatusOr<SwitchTable>
SwitchTable::createWays(const std::vector<const ExecutableGraph *> &graphs,
                        int home, const MakeWay &make) {
  DYNA_RETURN_IF_ERROR(checkSwitched(graphs));
  SwitchTable table;
  table.graphs_ = graphs;
  table.home_ = home;
  table.values_.resize(graphs.size(), std::vector<GraphSwitch>(graphs.size()));
  table.gradients_.resize(graphs.size());
  auto fill = [&](GraphSwitch &one, const Way &way,
                  std::vector<SwitchTensor> tensors) -> Status {
    DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, make(way, tensors));
    DYNA_ASSIGN_OR_RETURN(
        one, GraphSwitch::create(std::move(tensors), std::move(plan),
                                 graphs[home]->ranks(),
                                 graphs[home]->model().parameters()));
    return Status::ok();
  };
  for (const ExecutableGraph *graph : graphs)
    table.held_.push_back(heldOf(*graphs[home], *graph));
  for (int to = 0; to < table.graphs(); ++to) {
    if (to == home)
      continue;
    const auto atHome = rowsAtHome(*graphs[home], *graphs[to]);
    for (int before = 0; before < table.graphs(); ++before)
      if (before != to)
        DYNA_RETURN_IF_ERROR(
            fill(table.values_[before][to], {to, before == home ? -1 : before},
                 withoutHome(
                     valueTensors(*graphs[home], graphs[before], *graphs[to]),
                     atHome)));
    DYNA_RETURN_IF_ERROR(fill(table.gradients_[to], {to, -1, true},
                              gradientTensors(*graphs[to], *graphs[home])));
  }
  return table;
}

std::string SwitchTable::names() const {
  std::string all;
  for (const ExecutableGraph *graph : graphs_)
    all += formatText("%s'%s'", all.empty() ? "" : ", ", graph->name());
  return all;
}

int SwitchTable::find(const std::string &name) const {
  for (int index = 0; index < graphs(); ++index)
    if (graphs_[index]->name() == name)
      return index;
  return -1;
}

StatusOr<std::vector<SwitchTable::PhaseSwitches>>
SwitchTable::switchesOf(const plan::StepPlan &step) const {
  // P1 compares the name of the graph and gives a better message.
  if (graphs() == 1 && step.phaseCount() == 1)
    return std::vector<PhaseSwitches>(1);
  if (graphs() == 1)
    return refuse(PlanRule::Switched,
                  formatText("has %d phases, but this run has one strategy",
                             step.phaseCount()));
  std::vector<PhaseSwitches> phases;
  int before = -1;
  for (int number = 0; number < step.phaseCount(); ++number) {
    const std::string &name = step.phases[number].plan.graph;
    PhaseSwitches phase;
    phase.graph = find(name);
    phase.before = before;
    if (phase.graph < 0)
      return refuse(PlanRule::Switched,
                    formatText("phase %d is for strategy '%s', which is none "
                               "of this run's: it has %s; --strategies and "
                               "--ranges name those that plans are made for",
                               number, name, names()));
    for (const PhaseSwitches &other : phases)
      if (other.graph == phase.graph)
        return refuse(PlanRule::Switched,
                      formatText("phase %d is for strategy '%s', as an earlier "
                                 "one is",
                                 number, name));
    if (phase.graph != home_) {
      phase.values = &values(before, phase.graph);
      phase.gradients = &gradients(phase.graph);
    }
    before = phase.graph;
    phases.push_back(phase);
  }
  if (phases.empty() || phases.back().graph != home_)
    return refuse(PlanRule::Switched,
                  formatText("the last phase is not for '%s', which alone has "
                             "the masters",
                             graphs_[home_]->name()));
  return phases;
}

} // namespace dyna
