//===- TurnChecker.cpp - Verifies that turns end --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/TurnChecker.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/Turns.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanRules.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace dyna {
namespace {

/// A point of a rank's program: an item begins or ends, or an exchange starts.
struct Event {
  enum class Kind { Begin, Start, End };

  Kind kind;
  int instruction;
  int number; ///< turn of an item, or index of a start
};

/// Runs the events of all ranks. Each rank runs its own one after another.
class TurnRun {
public:
  TurnRun(const ExecutableGraph &graph, const plan::Plan &plan)
      : graph_(graph), plan_(plan), turns_(graph, plan),
        starts_(ExchangeStarts::of(graph, plan)), events_(graph.ranks()),
        next_(graph.ranks(), 0), ended_(graph.ranks(), 0),
        counted_(graph.ranks(), std::numeric_limits<size_t>::max()) {
    for (const ExchangeStarts::Wire &wire : starts_.wires)
      arrived_.emplace_back(wire.sides.front().size(), 0);
    for (int rank = 0; rank < graph.ranks(); ++rank)
      collect(rank);
  }

  Status run(PlanPosition &failedAt) {
    for (int rank = graph_.ranks() - 1; rank >= 0; --rank)
      ready_.push_back(rank);
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      advance(rank);
    }
    int stuck = -1;
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      if (next_[rank] == events_[rank].size())
        continue;
      const Event &event = events_[rank][next_[rank]];
      if (stuck < 0 || event.kind == Event::Kind::Begin)
        stuck = rank;
      if (event.kind == Event::Kind::Begin)
        break;
    }
    if (stuck < 0)
      return Status::ok();
    const Event &event = events_[stuck][next_[stuck]];
    failedAt = {stuck, event.instruction};
    return refuse(
        PlanRule::Ends,
        formatText("the ranks wait for each other: %s %s; a device runs the "
                   "items of its two ranks by their slots",
                   describeAt(graph_, plan_, stuck, event.instruction),
                   event.kind == Event::Kind::Begin
                       ? formatText("waits for its turn behind rank %d",
                                    graph_.twinOf(stuck))
                       : std::string("waits for ever")));
  }

private:
  void collect(int rank) {
    std::vector<Event> &events = events_[rank];
    for (const Turns::Item &item : turns_.of(rank)) {
      events.push_back({Event::Kind::Begin, item.first, item.turn});
      events.push_back({Event::Kind::End, item.last, item.turn});
    }
    const auto &starts = starts_.starts[rank];
    for (size_t i = 0; i < starts.size(); ++i)
      events.push_back(
          {Event::Kind::Start, starts[i].instruction, static_cast<int>(i)});
    std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
      return std::tie(a.instruction, a.kind, a.number) <
             std::tie(b.instruction, b.kind, b.number);
    });
  }

  /// Runs the events of a rank until it has to wait.
  void advance(int rank) {
    const int twin = graph_.twinOf(rank);
    // Both ranks of a device count the turns that have ended.
    int &ended = ended_[std::min(rank, twin)];
    for (; next_[rank] < events_[rank].size(); ++next_[rank]) {
      const Event &event = events_[rank][next_[rank]];
      if (event.kind == Event::Kind::Begin && event.number != ended)
        return;
      if (event.kind == Event::Kind::Start)
        return arrive(rank, starts_.starts[rank][event.number]);
      if (event.kind == Event::Kind::End) {
        ++ended;
        ready_.push_back(twin);
      }
    }
  }

  /// Counts a rank at a start, once. The last one lets all of them go on.
  void arrive(int rank, const ExchangeStarts::Start &start) {
    if (std::exchange(counted_[rank], next_[rank]) == next_[rank])
      return;
    const ExchangeStarts::Wire &wire = starts_.wires[start.wire];
    if (++arrived_[start.wire][start.entry] <
        static_cast<int>(wire.ranks.size()))
      return;
    for (int member : wire.ranks) {
      ++next_[member];
      ready_.push_back(member);
    }
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  const Turns turns_;
  const ExchangeStarts starts_;
  std::vector<std::vector<Event>> events_; ///< by rank
  std::vector<size_t> next_;               ///< event, by rank
  std::vector<int> ended_;                 ///< turns, by the lower rank
  std::vector<std::vector<int>> arrived_;  ///< ranks, by wire and entry
  std::vector<size_t> counted_; ///< last start at which a rank was counted
  std::vector<int> ready_;
};

} // namespace

Status verifyTurns(const ExecutableGraph &graph, const plan::Plan &plan,
                   PlanPosition &failedAt) {
  return TurnRun(graph, plan).run(failedAt);
}

} // namespace dyna
