//===- StrategyCandidates.h - What a search may choose from -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The strategies of a model on so many ranks, and what they take: phases by
// PhaseEstimate.h, switches by SwitchEstimate.h, memory by what stages hold. All degrees in powers of two that were compiled, with and without
// ZeRO and sp, each mode of recomputation and numbering of ranks: hundreds, of which
// a search that is exact keeps what is among the best for some lengths.
//
// Memory of a rank in a phase (Orchestrate.h):
//
//     home's persistent memory
//     values and gradients of all other graphs
//     as many micro-batches as the pipeline holds
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H
#define DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H

#include "runtime/planner/StrategySearch.h"
#include "runtime/planner/SwitchEstimate.h"

#include <array>
#include <map>
#include <memory>

namespace dyna {

struct StrategySpace {
  int ranks = 1;
  int64_t memoryBytes = 0; ///< of a rank; 0: not limited
  int64_t tokensPerStep = 65536;
  std::vector<bool> zero = {false, true};
  /// Of tensor degrees above 1, where both were compiled.
  std::vector<bool> sp = {false, true};
  std::vector<plan::Recompute> recompute = {
      plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};
  /// Those that number ranks alike, as degrees are 1, count once.
  std::vector<std::array<std::string, 3>> orders = {
      {"dp", "pp", "tp"}, {"pp", "dp", "tp"}, {"dp", "tp", "pp"},
      {"pp", "tp", "dp"}, {"tp", "dp", "pp"}, {"tp", "pp", "dp"}};
  /// Strategies that are kept for the search, each in all orders; 0: all.
  int mostKept = 8;
};

class StrategyCandidates : public StepCosts {
public:
  /// The model of `costs` must outlive it. Fails where no strategy has the number
  /// of ranks, or none has room for its parameters. Tables and graphs of all
  /// strategies are made, switches only estimated between those that are kept, each
  /// pair when it is first asked for: one thread at a time.
  static StatusOr<StrategyCandidates> create(const CostModel &costs,
                                             const StrategySpace &space,
                                             const LengthDistribution &lengths);

  int candidates() const override { return static_cast<int>(entries_.size()); }
  const Strategy &strategy(int candidate) const {
    return entries_[candidate].strategy;
  }
  /// Without the mode of recomputation, on which it does not depend.
  const ExecutableGraph &graph(int candidate) const {
    return entries_[candidate].placed->graph;
  }
  /// That there were to choose from.
  int considered() const { return considered_; }

  double phaseSeconds(int candidate, const std::vector<int> &graphs,
                      const PhaseLoad &load, int64_t longest) const override;
  double updateSeconds(int home) const override {
    return entries_[home].estimate->updateSeconds();
  }
  double switchSeconds(SwitchKind kind, int from, int to) const override;
  int family(int candidate) const override {
    return entries_[candidate].family;
  }
  /// Tokens of the longest sample for which a rank has room beside the graphs of
  /// a run, home first; 0: not even for parameters.
  int64_t mostTokens(int candidate, const std::vector<int> &graphs) const;

private:
  /// What does not depend on recomputation.
  struct Placed {
    ExecutableGraph graph;
    std::vector<int64_t> homeBytes, guestBytes; ///< of each rank
  };
  struct Entry {
    Strategy strategy;
    std::shared_ptr<const Placed> placed;
    PlanOptions options;
    std::shared_ptr<const PhaseEstimate> estimate;
    std::shared_ptr<const SwitchLayout> layout; ///< of those that are kept
    int family = 0;
  };

  StrategyCandidates(const CostModel &costs, const StrategySpace &space)
      : space_(space), switching_(costs.model(), costs.cluster()) {}
  class Maker;
  void keep(const LengthDistribution &lengths);
  int64_t bytesOn(int rank, const std::vector<int> &graphs) const;
  bool hasRoomFor(const Entry &entry, const std::vector<int64_t> &limits,
                  int64_t tokens) const;

  StrategySpace space_;
  SwitchEstimator switching_;
  std::vector<Entry> entries_;
  int considered_ = 0;
  mutable std::map<std::array<int, 3>, double> switches_;
  mutable std::map<std::vector<int>, int64_t> mostTokens_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H
