//===- PlanWork.h - Converts plans to steps and transfers -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The simulator's input. Every instruction of a rank is a step with seconds. What
// ranks do together is a *transfer*, which steps start and wait for. A plan is
// converted once and can then be simulated with many options (PlanTimes.h).
//
// A message is a transfer of two ranks. The gradients of a layer that a group of
// ranks sums are one transfer, because the executor starts them as one call. The
// same holds for rows that a group gathers. Ranks that exchange inside a layer
// function, or combine norms, start a transfer and wait for it at once.
//
// A step runs the programs of all its phases one after another on each rank. Its
// switches go in buckets. One rank's *part* in a bucket is a transfer of this rank
// alone. It ends when all messages that the rank sends and receives in the bucket
// have ended. Parts have the first numbers of all transfers.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANWORK_H
#define DYNA_RUNTIME_SIM_PLANWORK_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/plan/graph/Turns.h"
#include "runtime/plan/program/Plan.h"
#include "runtime/sim/SwitchMessages.h"
#include "runtime/sim/SwitchNetwork.h"

#include <memory>
#include <vector>

namespace dyna {

/// Decides which links concurrent transfers share (PlanTimes.h).
enum class LinkSharing { None, Devices, Nodes };

struct PlannedTransfer {
  enum class Kind : uint8_t {
    Activation,
    Gradient,
    Reduction,
    Gather,
    Norm,
    Call,
    Switch ///< a rank's part in a bucket
  };

  Kind kind = Kind::Call;
  bool leavesNode = false; ///< its ranks are on several nodes
  int layer = -1, microBatch = -1;
  /// Ranks of the transfer, as a range of PlanWork::party. A message has two:
  /// from, to.
  int firstParty = 0, parties = 0;
  /// Transfers of one line run one after another, on any cluster. The messages from
  /// one rank to another are a line, and so are the exchanges of a group. -1: none.
  int line = -1;
  /// Duration without other traffic. A call lasts as long as its ranks' steps.
  /// `seconds` includes the latency.
  double latency = 0, seconds = 0;
  /// Bytes of a message, of the whole tensors of an exchange, or that a part sends.
  int64_t bytes = 0;

  bool isMessage() const {
    return kind == Kind::Activation || kind == Kind::Gradient;
  }
  /// Returns true if its ranks wait for it as soon as they start it.
  bool isMeeting() const { return kind == Kind::Norm || kind == Kind::Call; }
};

/// A phase of a step. Its plan has the instructions of switches.
struct PlannedPhase {
  const ExecutableGraph *graph;
  const plan::Plan *plan;
  const CostModel *costs;
  /// Switches of its values and gradients; null: none.
  const GraphSwitch *values = nullptr, *gradients = nullptr;
};

/// A bucket of a step.
struct PlannedBucket {
  int phase = 0;  ///< phase that its instructions name
  int number = 0; ///< number in its switch
  bool ofGradients = false;
};

class PlanWork {
public:
  /// Converts a plan that `verifyPlan` accepts for the graph. None of the arguments
  /// is needed afterwards. Linear in the number of instructions. Costs of every kind
  /// of layer are looked up once for each micro-batch.
  PlanWork(const ExecutableGraph &graph, const plan::Plan &plan,
           const CostModel &costs);
  /// Converts a step that `verifyStep` accepts. Ranks share devices in steps with one
  /// phase alone. For each switch this is linear in its
  /// transfers, too.
  explicit PlanWork(const std::vector<PlannedPhase> &phases);

  struct Step {
    enum class Kind : uint8_t { Run, Meet, Start, Wait };
    /// Duration of its functions and of the instruction itself.
    double seconds = 0;
    /// First of the transfers that it starts or waits for, as an index for `use`.
    int first = 0;
    int16_t count = 0;
    Kind kind = Kind::Run;
  };
  struct Steps {
    const Step *first, *last;
    const Step *begin() const { return first; }
    const Step *end() const { return last; }
    int size() const { return static_cast<int>(last - first); }
    const Step &operator[](int index) const { return first[index]; }
  };

  int ranks() const { return static_cast<int>(begins_.size()) - 1; }
  /// Returns a step for each instruction of the rank.
  Steps steps(int rank) const {
    return {steps_.data() + begins_[rank], steps_.data() + begins_[rank + 1]};
  }
  int stepCount() const { return static_cast<int>(steps_.size()); }
  int use(int index) const { return uses_[index]; }
  /// Returns the turns of ranks that share devices, and the other rank of a rank's device.
  const Turns &turns() const { return turns_; }
  int twinOf(int rank) const { return turns_.any() ? twins_[rank] : -1; }

  const std::vector<PlannedTransfer> &transfers() const { return transfers_; }
  int party(const PlannedTransfer &transfer, int index) const {
    return parties_[transfer.firstParty + index];
  }
  /// Returns the number of lines; they are numbered from 0.
  int lines() const { return lines_; }
  const Cluster &cluster() const { return cluster_; }
  /// Seconds before a rank's first step.
  double begin() const { return begin_; }

  /// Returns the number of parts; they are the first transfers.
  int parts() const { return parts_; }
  int bucketOf(int part) const { return bucketOfPart_[part]; }
  /// Returns the messages of all buckets. Valid if there are parts.
  const SwitchMessages &switches() const { return *switches_; }
  const PlannedBucket &bucket(int number) const { return buckets_[number]; }
  const SwitchNetwork &network() const { return network_; }
  /// Returns the transfers of a phase, without parts. PlanWork of its plan alone has
  /// them in the same order.
  const std::vector<int> &transfersOf(int phase) const {
    return phaseTransfers_[phase];
  }

private:
  class Writer;
  class Parts;
  void addParts(std::shared_ptr<const SwitchMessages> switches);

  std::vector<Step> steps_; ///< rank by rank
  std::vector<int> begins_;
  std::vector<int> uses_;
  std::vector<PlannedTransfer> transfers_;
  std::vector<int> parties_;
  Turns turns_;
  std::vector<int> twins_; ///< by rank, if ranks take turns
  int lines_ = 0;
  Cluster cluster_;
  double begin_ = 0;
  // Switches:
  int parts_ = 0;
  std::shared_ptr<const SwitchMessages> switches_;
  std::vector<PlannedBucket> buckets_;
  std::vector<int> bucketOfPart_;
  SwitchNetwork network_;
  std::vector<std::vector<int>> phaseTransfers_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANWORK_H
