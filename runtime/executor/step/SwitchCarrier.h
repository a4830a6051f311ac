//===- SwitchCarrier.h - Parameters on their way between graphs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What SWITCH instructions do on one rank. A start sends what goes to each other
// rank as one message of rows, from where they lie, and receives others straight
// into their place; what stays on the rank is copied, or added, at once. Until the
// wait both ends leave these places alone: nothing reads values before it, and
// what is sent changes only behind it.
//
// Gradients are added as they come, unless home computes before it waits for them:
// its backwards add to the same places. Then they come into memory of the switch
// (StepMemory.h), as does what is to be passed on, and are added by the wait.
//
// Between two steps the same messages carry the state of a graph to the one that
// replaces it (StateTensors.h).
//
// The host reaches the arena, as that of every device so far.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_SWITCHCARRIER_H
#define DYNA_RUNTIME_EXECUTOR_STEP_SWITCHCARRIER_H

#include "runtime/executor/rank/GraphSeat.h"
#include "runtime/executor/step/Step.h"
#include "runtime/plan/graph/SwitchTable.h"

#include <map>
#include <tuple>
#include <vector>

namespace dyna {

class SwitchCarrier {
public:
  /// One phase of a step: its switches and this rank's seats.
  struct Phase {
    SwitchTable::PhaseSwitches switches;
    GraphSeat *seat = nullptr;
    GraphSeat *before = nullptr; ///< of the phase before; null for the first
    /// Places in the arena for what waits (PhasePlaces).
    int64_t valueTransit = 0, gradientTransit = 0;
    bool addsLate = false; ///< its gradients wait to be added
  };
  /// For one step. `home` and the machine must outlive the carrier; a step that
  /// fails aborts the transport before the carrier goes.
  SwitchCarrier(RankMachine &machine, GraphSeat &home,
                std::vector<Phase> phases);
  /// For `carryState`.
  explicit SwitchCarrier(RankMachine &machine);
  SwitchCarrier(const SwitchCarrier &) = delete;

  Status start(const plan::Instruction &i);
  Status wait(const plan::Instruction &i);

  /// Carries the state of one graph to another one, between two steps. All ranks call
  /// it. A rank without a place in one of the graphs has no seat there (null). The
  /// seats share no memory. What the rank passes on lies at `transit` in the arena.
  /// Buckets with more than `bytesUnderWay` bytes together wait for earlier ones.
  /// Returns when this rank's part is done.
  Status carryState(const GraphSwitch &state, GraphSeat *before,
                    GraphSeat *behind, int64_t transit, int64_t bytesUnderWay);

  /// The name of a phase's strategy, as its graph has it.
  const char *strategyOf(int phase) const {
    return phases_[phase].seat->graph().strategy().name.c_str();
  }

  /// Bytes that were handed over for other ranks so far, by rank.
  const std::vector<SwitchedBytes> &sent() const { return sent_; }
  /// Places of the arena into which other ranks may be writing.
  std::vector<Strip> arriving() const;

private:
  /// All that goes from one rank to another in a bucket and is treated alike.
  struct Message {
    std::vector<Strip> strips;
    Ticket ticket = Ticket();
    /// Where it waits to be added to `strips`; null: it does not.
    char *late = nullptr;
  };
  /// (from, to, added to what is there). In this order all ranks start them, so
  /// that the first one that is not done has both its ends there.
  using MessageKey = std::tuple<int, int, bool>;
  struct Passing {
    int tensor;
    Box box;
    int64_t element;
    char *data;

    /// Where a part of the box lies.
    Strip rowsOf(const Box &part) const;
  };
  struct Bucket {
    std::map<MessageKey, Message> messages;
    std::vector<Passing> passing;
    int64_t passingBytes = 0;
  };
  struct Way {
    const GraphSwitch *what = nullptr;
    int64_t transit = 0; ///< in the arena
    bool isGradients = false;
    bool isLate = false;         ///< gradients are added by the wait
    int32_t element = kReplaces; ///< in which they are added
    GraphSeat *target = nullptr;
    /// Where what it sends lies: the first that has it.
    std::vector<GraphSeat *> sources;
  };
  /// (gradients, phase, bucket).
  using Key = std::tuple<bool, int, int>;

  StatusOr<Way> wayOf(const plan::Instruction &i) const;
  Status startBucket(const Way &way, const Key &key);
  Status waitBucket(const Way &way, const Key &key);
  StatusOr<Strip> sourceOf(const Way &way, const Key &key,
                           const SwitchTransfer &transfer) const;
  StatusOr<Strip> targetOf(const Way &way, int number, Bucket &bucket,
                           const SwitchTransfer &transfer);
  /// To another place of this rank, of as many bytes in as many rows, in the order
  /// of the stream.
  Status place(int32_t addedAs, const Strip &source, const Strip &target);
  Status startMessage(const Way &way, const MessageKey &key, Message &message);

  RankMachine &machine_;
  GraphSeat *const home_; ///< null between steps
  const std::vector<Phase> phases_;
  std::map<Key, Bucket> buckets_; ///< started
  std::vector<SwitchedBytes> sent_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_SWITCHCARRIER_H
