//===- ExchangeStarts.h - Lists the exchanges that ranks start together ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The messages and exchanges of a plan in the order in which each rank starts
// them. The verifier compares and simulates them (P9 to P11, PlanVerifier.h).
// The planner looks for points that all ranks of a switch can reach at one
// time, and inserts the starts of the switch there.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H
#define DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H

#include "runtime/plan/graph/ExecutableGraph.h"

#include <optional>
#include <vector>

namespace dyna {

/// Returns true for a function that works on a micro-batch.
bool callsLayer(const plan::Instruction &i);

struct ExchangeStarts {
  /// Ranks that exchange something in one order: the two ends of a channel, or
  /// a group. `sides[i]` lists the starts of rank `ranks[i]`.
  struct Wire {
    struct Entry {
      int instruction;
      /// Parameter whose gradients or rows are exchanged; -1 for messages,
      /// norms and layer functions.
      int parameter;
    };
    bool isChannel = false;
    std::vector<int> ranks;
    std::vector<std::vector<Entry>> sides;
  };
  /// One start of a rank: an entry of a wire. The start of a switch belongs to
  /// two graphs. It has no wire (-1) until its step gives it one.
  struct Start {
    int wire, entry, instruction;
    int phase = 0; ///< of a step
  };
  std::vector<Wire> wires;
  std::vector<std::vector<Start>> starts; ///< by rank

  /// Collects the starts. Every program must have passed P3. Linear in the
  /// starts of all ranks, times a logarithm of the groups.
  static ExchangeStarts of(const ExecutableGraph &graph,
                           const plan::Plan &plan);
};

/// Simulates ranks that run their starts one after another. An entry is done
/// when all ranks of its wire have reached it. Waits need no check: they wait
/// for earlier starts, which are done. All sides of a wire have the same number
/// of entries (P9, P10).
class Rendezvous {
public:
  /// `starts` must outlive it.
  explicit Rendezvous(const ExchangeStarts &starts);

  /// Returns the rank's position: the instructions before it are done. If the
  /// last one starts several things, some may be left (`next`).
  int position(int rank) const { return position_[rank]; }
  /// Advances the rank to that instruction of its program, and others only as
  /// far as needed. Returns false if they wait for each other. All calls
  /// together are linear in the starts of ranks, times the ranks of a wire.
  bool advance(int rank, int instruction);
  /// Advances all ranks to their ends; returns a rank that cannot get there, if
  /// any.
  std::optional<int> finish();

  /// Returns the start that the rank would run next; null at its end.
  const ExchangeStarts::Start *next(int rank) const;
  /// Returns a rank that has not reached the entry at which this one waits.
  int blocker(int rank) const;

private:
  void pass(const ExchangeStarts::Start &start);

  const ExchangeStarts &starts_;
  std::vector<size_t> next_; ///< of each rank's starts
  std::vector<int> position_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H
