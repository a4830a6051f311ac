//===- PlanWork.h - What the instructions of a plan take --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan in the terms of a clock: every rank's instructions as steps that take
// seconds, and what ranks do together as *transfers* that steps start and wait
// for. A plan is put into these terms once and may then be played under many
// conditions (PlanTimes.h).
//
// A message is a transfer of two ranks. Gradients of a layer that are summed, or
// rows that are gathered, over one group of ranks are one transfer, as the
// executor starts them as one call. Ranks that exchange inside a layer function,
// or combine norms, do so in a transfer that each starts and waits for at once.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANWORK_H
#define DYNA_RUNTIME_SIM_PLANWORK_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/program/Plan.h"

#include <vector>

namespace dyna {

struct PlannedTransfer {
  enum class Kind : uint8_t {
    Activation,
    Gradient,
    Reduction,
    Gather,
    Norm,
    Call
  };

  Kind kind = Kind::Call;
  bool leavesNode = false; ///< its ranks are on several nodes
  int layer = -1, microBatch = -1;
  int firstParty = 0, parties = 0; ///< PlanWork::parties; a message: from, to
  /// Those of one line go one after another, on any cluster: messages of one rank
  /// to another, exchanges of one group. -1: of none.
  int line = -1;
  /// When nothing else is under way; that of a call is its ranks' own.
  double latency = 0, seconds = 0; ///< `seconds` counts the latency
  int64_t bytes =
      0; ///< of a message; of an exchange, those of the whole tensors

  bool isMessage() const {
    return kind == Kind::Activation || kind == Kind::Gradient;
  }
  /// Whoever starts it waits for it at once, and nothing else goes on.
  bool isMeeting() const { return kind == Kind::Norm || kind == Kind::Call; }
};

class PlanWork {
public:
  /// `plan` is one that `verifyPlan` accepts for the graph; all three may go
  /// afterwards. Linear in the number of instructions, and for each micro-batch
  /// the costs of every kind of layer.
  PlanWork(const ExecutableGraph &graph, const plan::Plan &plan,
           const CostModel &costs);

  struct Step {
    enum class Kind : uint8_t { Run, Meet, Start, Wait };
    /// In functions, and what the instruction itself takes.
    double seconds = 0;
    int first = 0; ///< of `uses`: the transfers that it starts or waits for
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
  /// One for each instruction of the rank.
  Steps steps(int rank) const {
    return {steps_.data() + begins_[rank], steps_.data() + begins_[rank + 1]};
  }
  int stepCount() const { return static_cast<int>(steps_.size()); }
  int use(int index) const { return uses_[index]; }

  const std::vector<PlannedTransfer> &transfers() const { return transfers_; }
  int party(const PlannedTransfer &transfer, int index) const {
    return parties_[transfer.firstParty + index];
  }
  /// Numbers of lines are below.
  int lines() const { return lines_; }
  const Cluster &cluster() const { return cluster_; }
  /// Before a rank's first step.
  double begin() const { return begin_; }

private:
  class Writer;

  std::vector<Step> steps_; ///< rank by rank
  std::vector<int> begins_;
  std::vector<int> uses_;
  std::vector<PlannedTransfer> transfers_;
  std::vector<int> parties_;
  int lines_ = 0;
  Cluster cluster_;
  double begin_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANWORK_H
