//===- SwitchCarrier.h - Parameters on their way between graphs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What SWITCH instructions do on one rank. A start packs what goes to each other
// rank into one message and starts to send and receive; what stays on the rank is
// copied at once. A wait unpacks what has come: values are written, gradients
// added. Between the two a bucket has memory for what it sends, gets and passes
// on.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_SWITCHCARRIER_H
#define DYNA_RUNTIME_EXECUTOR_SWITCHCARRIER_H

#include "runtime/executor/GraphSeat.h"
#include "runtime/plan/SwitchTable.h"

#include <map>
#include <memory>
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
  };
  /// For one step. `home` and the machine must outlive the carrier.
  SwitchCarrier(RankMachine &machine, GraphSeat &home,
                std::vector<Phase> phases)
      : machine_(machine), home_(home), phases_(std::move(phases)) {}

  Status start(const plan::Instruction &i);
  Status wait(const plan::Instruction &i);

  /// Bytes that went to other ranks so far, of values and of gradients.
  int64_t sentBytes() const { return sentBytes_; }

private:
  using Bytes = std::vector<unsigned char>;
  /// Of what goes to one rank, or comes from it.
  struct Message {
    Bytes bytes;
    std::vector<int> transfers; ///< numbers in the bucket, in their order
    Ticket ticket = Ticket();
  };
  struct Passing {
    int tensor;
    Box box;
    Bytes bytes;
  };
  struct Bucket {
    std::map<int, Message> sends, receives; ///< by rank
    std::vector<Passing> passing;
  };
  struct Way {
    const GraphSwitch *what = nullptr;
    bool isGradients = false;
    GraphSeat *target = nullptr;
    /// Where what it sends lies: the first that has it.
    std::vector<GraphSeat *> sources;
  };
  /// (gradients, phase, bucket).
  using Key = std::tuple<bool, int, int>;

  StatusOr<Way> wayOf(const plan::Instruction &i) const;
  Status take(const Way &way, const Key &key, const SwitchTransfer &transfer,
              unsigned char *bytes);
  Status give(const Way &way, Bucket &bucket, const SwitchTransfer &transfer,
              const unsigned char *bytes);
  int64_t bytesOf(const Way &way, const SwitchTransfer &transfer) const;

  RankMachine &machine_;
  GraphSeat &home_;
  const std::vector<Phase> phases_;
  std::map<Key, Bucket> buckets_; ///< started; those that pass on stay
  int64_t sentBytes_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_SWITCHCARRIER_H
