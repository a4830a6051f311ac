//===- AutoPack.h - Chooses how many ranks a run has ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `--repack auto` chooses ranks between two steps. It measures some steps at the start and
// after each change of the model. Then the process of rank 0 packs the layers
// (runtime/elastic/pack), and all processes learn the answer.
//
// Seconds of layers are measured. Seconds under other modes of recomputation and other
// micro-batches are estimated from these. Bytes of parameters and of kept blocks are exact.
// The rest of a plan's memory is known only when a packing is sized. So packings are sized
// as a move is, in the order of the goal. The first one that has room is used.
//
// Fewer ranks are chosen only if the model changed. More ranks come back if an entry of
// --repack asks for them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_AUTOPACK_H
#define DYNA_RUNTIME_TRAIN_AUTOPACK_H

#include "runtime/elastic/pack/PackGoals.h"
#include "runtime/train/loop/StepLoad.h"
#include "runtime/train/open/NextGraphs.h"

#include <deque>
#include <optional>

namespace dyna {

class AutoPack {
public:
  /// `session` must outlive it.
  explicit AutoPack(Session &session) : session_(session) {}

  /// Forgets measured steps, because the model or the graphs changed.
  void modelChanged();
  /// Adds a step that has ended.
  void stepEnded(StepLoad load);
  /// Returns true once enough steps ran since the model changed.
  bool isDue() const { return !isAnswered_ && steps_.size() >= measuredSteps; }
  /// Returns the strategy of the packing that is nearest to the goal, or nothing if the run
  /// stays as it is. All processes call it, and no step is in flight.
  StatusOr<std::optional<NextStrategy>> choose(PackGoal goal);
  /// Returns a line for people about the last answer, on the process of rank 0.
  const std::string &answer() const { return answer_; }

private:
  static constexpr size_t measuredSteps = 5;
  /// Share by which a rate has to become higher.
  static constexpr double leastShare = 0.01;

  StatusOr<PackProblem> problem() const;
  /// Returns measured over estimated seconds of each layer; 1 if nothing was measured.
  StatusOr<std::vector<double>> ratios(const Load &load) const;
  /// Returns the bytes that a rank may have.
  StatusOr<int64_t> rankLimit() const;
  std::vector<plan::Recompute> modes() const;
  Strategy strategyOf(const PackProblem &problem, const Packing &packing) const;
  /// Returns the strategy with its cut if a run can go over to it; else nothing, and why.
  StatusOr<std::optional<Strategy>> tryStrategy(Strategy next,
                                                std::string &refusal) const;
  StatusOr<std::optional<Strategy>> chooseHere(PackGoal goal);

  Session &session_;
  std::deque<StepLoad> steps_;
  bool isAnswered_ = false;
  std::string answer_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_AUTOPACK_H
