//===- PlanTimes.cpp - What a plan takes, before it runs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanTimes.h"

#include "runtime/plan/ProgramBlocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace dyna {
namespace {

using plan::Instruction;

/// What several ranks come to: kind, then what tells it from others of its
/// kind, then how many of the same came before.
using Meeting = std::tuple<int, int, int, int, int, int>;
enum MeetingKind { Call, Norm, Reduction, Gather, Message };

class PlanTimer {
public:
  PlanTimer(const ExecutableGraph &graph, const plan::Plan &plan,
            const CostModel &costs)
      : graph_(graph), plan_(plan), costs_(costs), tasks_(plan.rankCount()) {}

  StatusOr<PlanTimes> run() {
    normSeconds_ = normSeconds();
    std::vector<std::vector<int>> taskOf(plan_.rankCount());
    for (int rank = 0; rank < plan_.rankCount(); ++rank) {
      seen_.clear();
      perNode_ = costs_.cluster()
                     .shapeOf(graph_.compiledGroup(rank, DYNA_GROUP_TP))
                     .perNode;
      if (graph_.strategy().zero)
        own_ = graph_.rankView(rank);
      for (const Instruction &i : plan_.ranks[rank].instructions)
        taskOf[rank].push_back(add(rank, i));
    }
    StatusOr<std::vector<TaskTime>> times = tasks_.run();
    if (!times.isOk())
      return Status::invalidArgument("plan: its ranks wait for each other");
    PlanTimes result;
    for (const std::vector<int> &own : taskOf) {
      RankTimes &rank = result.ranks.emplace_back();
      for (int task : own) {
        const TaskTime &time = (*times)[task];
        rank.instructions.push_back(time);
        rank.busy += time.end - time.start;
        result.makespan = std::max(result.makespan, time.end);
      }
    }
    return result;
  }

private:
  const RankView &view(int rank) const { return graph_.replicaView(rank); }

  /// The task of an instruction, with what it waits for and who waits for it.
  int add(int rank, const Instruction &i) {
    ExchangeOp op = exchangeOf(i.op);
    if (op.isMessage())
      return addMessage(rank, i, op);
    if (op.isOfParameters())
      return addParameters(rank, i, op);
    if (op.kind == ExchangeKind::Norm)
      return addTogether(rank, nth({Norm, 0, 0, 0, 0, 0}), normSeconds_);
    int role = roleOf(i);
    double seconds = secondsOf(rank, i);
    if (role < 0 || view(rank).exchanges(i.layer, role).empty())
      return tasks_.add(rank, seconds);
    // The shards of a stage run the same calls in one order.
    ExecutableGraph::Place place = graph_.placeOf(rank);
    return addTogether(rank, nth({Call, place.replica, place.stage, 0, 0, 0}),
                       seconds);
  }

  /// `meeting` with the number of those that this rank came to before.
  Meeting nth(Meeting meeting) {
    std::get<5>(meeting) = seen_[meeting]++;
    return meeting;
  }

  /// Begins when all who come to it are there.
  template <typename Seconds>
  int taskOf(const Meeting &meeting, Seconds seconds,
             int lane = TaskGraph::noLane) {
    auto [found, isNew] = meetings_.insert({meeting, 0});
    if (isNew)
      found->second = tasks_.add(lane, seconds());
    return found->second;
  }
  int taskOf(const Meeting &meeting) {
    return taskOf(meeting, [] { return 0.0; });
  }

  /// Begins when all members are there.
  int addTogether(int rank, const Meeting &meeting, double seconds) {
    tasks_.wait(taskOf(meeting), tasks_.add(rank, 0));
    int task = tasks_.add(rank, seconds);
    tasks_.wait(task, taskOf(meeting));
    return task;
  }

  int addMessage(int rank, const Instruction &i, const ExchangeOp &message) {
    int peer = graph_.peerOf(rank, message.stagesOn());
    int from = message.sends ? rank : peer;
    int to = message.sends ? peer : rank;
    int what = 2 * i.layer + (message.isGradient() ? 1 : 0);
    int task = tasks_.add(rank, 0);
    Meeting meeting = {Message, from, to, what, i.microBatch, 0};
    auto seconds = [&] { return messageSeconds(from, to, i); };
    if (message.starts)
      tasks_.wait(taskOf(meeting, seconds, laneOf(from, to)), task);
    else
      tasks_.wait(task, taskOf(meeting, seconds, laneOf(from, to)));
    return task;
  }

  int laneOf(int from, int to) {
    auto [found, isNew] = links_.insert({{from, to}, 0});
    if (isNew)
      found->second = tasks_.addLane();
    return found->second;
  }

  double messageSeconds(int from, int to, const Instruction &i) const {
    Extent extent = extentOf(plan_.microBatches[i.microBatch]);
    return costs_.cluster().messageSeconds(
        from, to,
        static_cast<double>(view(from).messageBytes(i.layer, extent)));
  }

  int addParameters(int rank, const Instruction &i, const ExchangeOp &op) {
    const RankView &own = view(rank);
    int task = tasks_.add(rank, 0);
    const auto &list = own.layer(i.layer).parameters();
    for (int slot = 0; slot < list.size(); ++slot) {
      int p = list.Get(slot);
      if (!own.updates(i.layer, slot) || own.place(p).holders == 1)
        continue;
      // Starts and waits of one rank are counted apart.
      Meeting meeting = {op.kind == ExchangeKind::Reduction ? Reduction
                                                            : Gather,
                         graph_.holderGroup(p, rank),
                         p,
                         op.starts,
                         0,
                         0};
      meeting = nth(meeting);
      std::get<3>(meeting) = 0;
      auto seconds = [&] { return exchangeSeconds(rank, p, op.kind); };
      if (op.starts)
        tasks_.wait(taskOf(meeting, seconds), task);
      else
        tasks_.wait(task, taskOf(meeting, seconds));
    }
    return task;
  }

  double exchangeSeconds(int rank, int parameter, ExchangeKind kind) {
    const RankView &own = view(rank);
    int group = graph_.holderGroup(parameter, rank);
    auto [shape, isNew] = shapes_.insert({group, {}});
    if (isNew)
      shape->second =
          costs_.cluster().shapeOf(graph_.holderGroups()[group].ranks);
    bool gathers = kind == ExchangeKind::Gather;
    int64_t bytes =
        own.elements(parameter) *
        elementBytes(gathers ? own.computeType(parameter) : own.gradientType());
    return costs_.cluster().exchangeSeconds(
        gathers                  ? plan::LayerExchange::ALL_GATHER
        : graph_.strategy().zero ? plan::LayerExchange::REDUCE_SCATTER
                                 : plan::LayerExchange::ALL_REDUCE,
        static_cast<double>(bytes), shape->second);
  }

  /// The squares of all layers, summed over all ranks.
  double normSeconds() const {
    std::vector<int> all(plan_.rankCount());
    std::iota(all.begin(), all.end(), 0);
    return costs_.cluster().exchangeSeconds(plan::LayerExchange::ALL_REDUCE,
                                            8.0 * graph_.model().layers(),
                                            costs_.cluster().shapeOf(all));
  }

  double secondsOf(int rank, const Instruction &i) const {
    cost::Direction direction = directionOf(roleOf(i));
    if (direction == cost::DIRECTION_UNKNOWN)
      return 0;
    const Strategy &strategy = graph_.strategy();
    KindAt at{view(rank).layer(i.layer).kind(), strategy.tp, strategy.sp,
              perNode_};
    return isPerMicroBatch(i.op)
               ? costs_.seconds(at, direction, workOf(rank, i))
               : costs_.seconds(at, direction, {}) * updatedShare(i.layer);
  }

  Work workOf(int rank, const Instruction &i) const {
    Work work;
    for (const plan::Segment &segment :
         plan_.microBatches[i.microBatch].segments) {
      work.tokens += segment.length;
      work.pairs += visiblePairs(view(rank).kind(i.layer), segment.length);
    }
    work.targets = work.tokens; // no plan says which of them have one
    return work;
  }

  /// Of the rows that the layer updates, those of this rank (ZeRO).
  double updatedShare(int layer) const {
    if (!own_)
      return 1;
    double updated = 0, all = 0;
    const auto &list = own_->layer(layer).parameters();
    for (int slot = 0; slot < list.size(); ++slot)
      if (own_->updates(layer, slot)) {
        int p = list.Get(slot);
        updated += static_cast<double>(own_->updatedElements(p));
        all += static_cast<double>(own_->elements(p));
      }
    return all > 0 ? updated / all : 0;
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  const CostModel &costs_;
  TaskGraph tasks_;
  std::map<Meeting, int> meetings_;
  std::map<std::pair<int, int>, int> links_; ///< lanes of messages
  std::map<int, GroupShape> shapes_;         ///< of groups of holders
  // Of the rank whose program is being added.
  std::map<Meeting, int> seen_;
  double normSeconds_ = 0;
  int perNode_ = 1;             ///< of its tensor-parallel group on one node
  std::optional<RankView> own_; ///< with ZeRO: the rows that it updates
};

} // namespace

StatusOr<PlanTimes> timePlan(const ExecutableGraph &graph,
                             const plan::Plan &plan, const CostModel &costs) {
  return PlanTimer(graph, plan, costs).run();
}

} // namespace dyna
