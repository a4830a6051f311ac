//===- ExchangeStarts.h - What ranks start together -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The messages and exchanges of a plan as each rank comes to them. The proof
// (P9 to P11, PlanVerifier.h) compares and carries them out; what is put into
// programs later, the starts of switches, finds places among them where all that
// take part can be at one time.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H
#define DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H

#include "runtime/plan/graph/ExecutableGraph.h"

#include <optional>
#include <vector>

namespace dyna {

/// A function that works on a micro-batch.
bool callsLayer(const plan::Instruction &i);

struct ExchangeStarts {
  /// Ranks that exchange something in one order: the two ends of a channel, or a
  /// group. What rank `ranks[i]` starts there is in `sides[i]`.
  struct Wire {
    struct Entry {
      int instruction;
      /// Whose gradients or rows; -1 for messages, norms and layer functions.
      int parameter;
    };
    bool isChannel = false;
    std::vector<int> ranks;
    std::vector<std::vector<Entry>> sides;
  };
  /// What a rank starts, in order: an entry of a wire. The start of a switch,
  /// which is of two graphs, has no wire (-1) until its step gives it one.
  struct Start {
    int wire, entry, instruction;
    int phase = 0; ///< of a step
  };
  std::vector<Wire> wires;
  std::vector<std::vector<Start>> starts; ///< by rank

  /// Every program has passed P3 on its own. Linear in what all ranks start, but
  /// for a logarithm of the groups.
  static ExchangeStarts of(const ExecutableGraph &graph,
                           const plan::Plan &plan);
};

/// Lets ranks carry out what they start, one thing after another: an entry is
/// done when all ranks of its wire have come to it. Waits need not be looked at:
/// what is waited for was started before, and so is done. All wires have entries
/// of equal number on each of their sides (P9, P10).
class Rendezvous {
public:
  /// `starts` must outlive it.
  explicit Rendezvous(const ExchangeStarts &starts);

  /// Of the rank's program, what has been done by now: instructions before it;
  /// of the last one, where it starts several things, maybe not all (`next`).
  int position(int rank) const { return position_[rank]; }
  /// Lets the rank come to that instruction of its program, and others only as
  /// far as they must for that. False where they wait for each other. Linear, all
  /// calls together, in what ranks start times the ranks of a wire.
  bool advance(int rank, int instruction);
  /// Lets all ranks come to their ends; a rank that cannot, if there is one.
  std::optional<int> finish();

  /// What the rank would start next; null at its end.
  const ExchangeStarts::Start *next(int rank) const;
  /// A rank that has not come to where this one stands.
  int blocker(int rank) const;

private:
  void pass(const ExchangeStarts::Start &start);

  const ExchangeStarts &starts_;
  std::vector<size_t> next_; ///< of each rank's starts
  std::vector<int> position_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXCHANGESTARTS_H
