//===- Rebalance.h - Moves layers when that makes steps faster --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --rebalance between two steps. Each step reports the seconds of
// its layers. After as many steps as `every=` says, the process of rank 0
// decides (MoveDecider.h), and all processes get the answer. A move is then a
// replacement of graphs, like those of --repack.
//
// The load of a layer is the median over these steps of its seconds for a
// micro-batch. The load of a stage also contains the seconds of its links,
// which are measured when a decision is due. It does not contain waits for
// slower stages, because that would count the imbalance twice.
//
// A decision simulates the micro-batches of the last step under each cut that it
// weighs, in the order of the run's schedule
// (runtime/elastic/decide/StepClock.h).
//
// The price of a move is estimated from three measurements. These are the
// bandwidth between two ranks, the time to size graphs, and the time to plan a
// step. After a move its own times replace the estimate.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_REBALANCE_H
#define DYNA_RUNTIME_TRAIN_REBALANCE_H

#include "runtime/train/flags/RebalanceFlag.h"
#include "runtime/train/loop/StepLoad.h"
#include "runtime/train/open/NextGraphs.h"

#include <deque>
#include <functional>
#include <optional>

namespace dyna {

class Rebalance {
public:
  /// `session` must outlive it.
  explicit Rebalance(Session &session);

  /// Changes the measured loads, and sets the price, before they are used. For
  /// tests.
  struct Probe {
    std::function<void(int64_t step, StepLoad &load)> load;
    std::optional<MovePrice> price;
  };
  void setProbe(Probe probe) { probe_ = std::move(probe); }

  bool isOn() const { return flag_.has_value(); }
  /// Tells that the model has changed. `hasOtherGraphs`: the run has also gone
  /// over to other graphs, so its next step is slow.
  void modelChanged(bool hasOtherGraphs = false);
  /// Tells that a step, counted from 0, has ended.
  void stepEnded(int64_t step, StepLoad load);
  /// Returns the next cut, or nothing if layers stay. `stepsLeft` steps run before the
  /// model changes again. All processes call it, and no step is in flight.
  StatusOr<std::optional<NextStrategy>> next(int64_t stepsLeft);
  /// Tells that the run has gone over to the cut. `seconds` passed meanwhile.
  void moved(const ReplacementCost &cost, double seconds);
  /// Tells that the cut was refused.
  void refused();

  /// Returns the last decision. Only the process of rank 0 has the numbers,
  /// here and in the functions below.
  const MoveDecision &decision() const { return decision_; }
  /// Loads of stages: `now` as measured, `then` as expected of the proposed
  /// cut.
  struct StageLoads {
    std::vector<double> now, then;
  };
  const StageLoads &loads() const { return loads_; }
  /// Returns the line of metrics about the effect of the last move, once, after
  /// it was measured; else an empty text. `step` steps are done.
  std::string takeOutcome(int64_t step);
  /// Returns a line for people about all moves.
  std::string describeEnd() const;

private:
  const Strategy &strategy() const { return session_.home().graph->strategy(); }
  /// Returns true if enough steps ran since the last answer.
  bool isDue() const;
  /// Measures the links between stages, with the bytes of a micro-batch.
  StatusOr<std::vector<double>> measureWaits();
  /// Measures the seconds that a byte needs between two ranks, and those of a byte
  /// of new memory, once.
  Status measureLink();
  MoveProblem problemOf(std::vector<double> waits, int64_t stepsLeft) const;
  MovePrice priceNow() const;
  /// Simulates the last step, whose layers take what `problem` says.
  StatusOr<std::optional<StepClock>> clockOf(const MoveProblem &problem) const;
  /// `parameters` counts the weights of layers that are not zero.
  StatusOr<MoveDecision> decide(const MoveProblem &problem,
                                std::vector<double> parameters);

  Session &session_;
  std::optional<RebalanceFlag> flag_;
  Probe probe_;
  MoveDecider decider_; ///< of the process of rank 0
  MoveDecision decision_;
  std::deque<StepLoad> steps_;   ///< the last ones under this cut
  int64_t count_ = 0;            ///< steps since the last answer
  bool skipsStep_ = false;       ///< the first one after other graphs
  bool deciderSkips_ = false;    ///< this step, by itself
  double secondsPerByte_ = -1;   ///< -1: not measured yet
  double secondsPerNewByte_ = 0; ///< to get memory for another cut
  /// Seconds of the last move without the transfer of its bytes; -1: there was none.
  double fixedSeconds_ = -1;
  double graphSeconds_ = 0; ///< to choose, size and plan
  StageLoads loads_;
  bool hasOutcome_ = false; ///< of the last move
  // Sums over all moves.
  int64_t moves_ = 0, takenBack_ = 0, sentBytes_ = 0;
  double seconds_ = 0;
  double firstImbalance_ = 0, lastImbalance_ = 0; ///< 0: not measured
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_REBALANCE_H
