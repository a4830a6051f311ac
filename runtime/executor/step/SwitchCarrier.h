//===- SwitchCarrier.h - Carries parameters and gradients between graphs --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs SWITCH instructions on one rank. A start sends all data for another rank
// as one message of rows, in place. It receives messages directly into their
// place. Data that stay on the rank are copied, or added, at once. Until the
// wait both ends leave these places alone. Nothing reads values before it, and
// sent data change only after it.
//
// Gradients are added as they arrive, unless home computes before it waits for
// them: its backwards add to the same places. Then they arrive in memory of the
// switch (StepMemory.h), and the wait adds them. Data that are passed on arrive
// there too.
//
// Between two steps the same messages carry the state of a graph to the one
// that replaces it (StateTensors.h).
//
// The host must reach the arena directly, as on all devices so far.
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
    /// Places of transit buffers in the arena (PhasePlaces).
    int64_t valueTransit = 0, gradientTransit = 0;
    bool addsLate = false; ///< gradients wait in memory to be added
  };
  /// Makes a carrier for one step. `home` and the machine must outlive it. A
  /// step that fails aborts the transport before the carrier is destroyed.
  SwitchCarrier(RankMachine &machine, GraphSeat &home,
                std::vector<Phase> phases);
  /// Makes a carrier for `carryState`.
  explicit SwitchCarrier(RankMachine &machine);
  SwitchCarrier(const SwitchCarrier &) = delete;

  Status start(const plan::Instruction &i);
  Status wait(const plan::Instruction &i);

  /// Carries the state of one graph to another one, between two steps. All
  /// ranks call it. A rank without a place in one of the graphs has no seat
  /// there (null). The seats share no memory. Data that the rank passes on are
  /// at `transit` in the arena. Buckets with more than `bytesUnderWay` bytes
  /// together wait for earlier ones. Returns when this rank's part is done.
  Status carryState(const GraphSwitch &state, GraphSeat *before,
                    GraphSeat *behind, int64_t transit, int64_t bytesUnderWay);

  /// Returns the name of a phase's strategy, as in its graph.
  const char *strategyOf(int phase) const {
    return phases_[phase].seat->graph().strategy().name.c_str();
  }

  /// Returns the bytes that were sent to other ranks so far, by rank.
  const std::vector<SwitchedBytes> &sent() const { return sent_; }
  /// Returns the places of the arena that other ranks may be writing.
  std::vector<Strip> arriving() const;

private:
  /// All data of a bucket from one rank to another that are treated alike.
  struct Message {
    std::vector<Strip> strips;
    Ticket ticket = Ticket();
    /// Memory from which it is added to `strips` later; null: it is not.
    char *late = nullptr;
  };
  /// (from, to, added to the target). All ranks start messages in this order.
  /// So both ends of the first unfinished message have been started.
  using MessageKey = std::tuple<int, int, bool>;
  struct Passing {
    int tensor;
    Box box;
    int64_t element;
    char *data;

    /// Returns the rows of a part of the box.
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
    int32_t element = kReplaces; ///< type in which gradients are added
    GraphSeat *target = nullptr;
    /// Seats from which it sends: the first one that has the data.
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
  /// Copies or adds rows to another place of this rank, with equally many bytes
  /// in equally many rows, in the order of the stream.
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
