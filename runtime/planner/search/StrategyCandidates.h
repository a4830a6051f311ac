//===- StrategyCandidates.h - Lists a search's candidates -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The strategies of a model on a number of ranks, with their costs.
// PhaseEstimate.h estimates phases, SwitchEstimate.h switches, and the memory
// of stages gives the memory. Candidates have all tensor degrees that were
// compiled and divide the ranks, with and without ZeRO and sp. They have each
// mode of recomputation and each numbering of ranks. That is hundreds, of which
// an exact search keeps those that are among the best for some lengths.
//
// Memory of a rank in a phase (Orchestrate.h):
//
//     home's persistent memory
//     values and gradients of the phase's graph, if that is not home
//     the least memory that plans of the phase need
//
// Beside home's memory there are two other graphs, because phases follow each
// other. Transit buffers of switches are not counted, because they are not
// known before switches are planned. The planner says what plans need, as in a
// run (RankMemory.h). So a search accepts the samples that a run of its result
// accepts. The number of micro-batches that fit at one time is estimated, and
// with it the time of a pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H
#define DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H

#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/estimate/SwitchEstimate.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/search/StrategySearch.h"

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>

namespace dyna {

/// Returns true if a degree is tried: a power of two, or three times one. Three times
/// one matters if it divides the ranks.
constexpr bool isSearched(int64_t degree) {
  while (degree % 2 == 0)
    degree /= 2;
  return degree == 1 || degree == 3;
}

struct StrategySpace {
  int ranks = 1;
  int64_t memoryBytes = 0; ///< of a rank; 0: not limited
  /// Bytes of it reserved for switch transit buffers, in steps of several
  /// strategies. They are known only after switches are planned.
  int64_t passedBytes = 0;
  /// Samples that no strategy has room for count as if they were no longer than one
  /// has room for, as runs cut them.
  bool shortens = false;
  int64_t tokensPerStep = defaultTokensPerBatch;
  /// A run is asked for this beside strategies and ranges.
  PlanRequest request;
  /// Lets the answer have flags of a run beside strategies and ranges: chosen
  /// recomputation, kinds and sizes of micro-batches.
  bool searchesFlags = false;
  /// True if steps of several strategies are simulated beside single ones,
  /// which takes as long as planning some steps.
  bool plays = true;
  /// Optional progress callback, called about every `tellEvery` with the next
  /// part of the work.
  std::function<void(const std::string &next)> tell;
  std::chrono::milliseconds tellEvery = std::chrono::seconds(10);
  std::vector<bool> zero = {false, true};
  /// Values of sp to try for tensor degrees above 1, if both were compiled.
  std::vector<bool> sp = {false, true};
  std::vector<plan::Recompute> recompute = {
      plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};
  /// Orders to try. Orders that number ranks alike, because degrees are 1,
  /// count once.
  std::vector<std::array<std::string, 3>> orders = {
      {"dp", "pp", "tp"}, {"pp", "dp", "tp"}, {"dp", "tp", "pp"},
      {"pp", "tp", "dp"}, {"tp", "dp", "pp"}, {"tp", "pp", "dp"}};
  /// Strategies that are kept for the search, each in all orders; 0: all.
  int mostKept = 8;
};

/// A strategy for samples of all lengths.
struct AloneEstimate {
  Strategy strategy;  ///< with its mode of recomputation, layers and order
  double seconds = 0; ///< of a step; infinite without room
  /// Seconds of a step if memory were not limited.
  double unlimitedSeconds = 0;
  /// Seconds beside the pipeline: update, last reductions, and gathers.
  double besideSeconds = 0;
  std::string reason; ///< why it has no room, for people; else empty
  std::string slices; ///< slices of the estimated request
  /// Layers of each stage, cut by what they take of these lengths.
  std::vector<int> layersForLengths;
};

class StrategyCandidates : public StepCosts {
public:
  /// The model of `costs` must outlive it. Fails where no strategy has the
  /// number of ranks, or none has room for its parameters, with the numbers.
  /// Makes tables and graphs of all strategies. Switches are estimated only
  /// between those that are kept, each pair at its first use, by one thread at
  /// a time.
  static StatusOr<StrategyCandidates> create(const CostModel &costs,
                                             const StrategySpace &space,
                                             const LengthDistribution &lengths);

  int candidates() const override { return static_cast<int>(entries_.size()); }
  const Strategy &strategy(int candidate) const {
    return entries_[candidate].strategy;
  }
  /// Returns the graph, which does not depend on the mode of recomputation.
  const ExecutableGraph &graph(int candidate) const {
    return entries_[candidate].placed->graph;
  }
  /// Returns every strategy alone in every order of ranks, before most are
  /// dropped from the search for sets.
  const std::vector<AloneEstimate> &alone() const { return alone_; }
  /// Returns the number of candidates before pruning.
  int considered() const { return considered_; }

  double phaseSeconds(int candidate, const std::vector<int> &graphs,
                      const PhaseLengths &lengths,
                      int64_t longest) const override;
  double updateSeconds(int home) const override {
    return entries_[home].estimate->updateSeconds();
  }
  double switchSeconds(SwitchKind kind, int from, int to) const override;
  int family(int candidate) const override {
    return entries_[candidate].family;
  }
  /// Returns true if a run of these graphs, home first, can hold samples of
  /// this many tokens under the candidate.
  bool holds(int candidate, const std::vector<int> &graphs,
             int64_t tokens) const;
  /// Returns the tokens of the longest existing sample that a run can hold; 0
  /// if none fits. O(log tokens) calls of `holds`.
  int64_t mostTokens(int candidate, const std::vector<int> &graphs) const;
  /// Returns the failure if no strategy fits the longest sample. It names the
  /// need of the strategy that needs least, and a sufficient amount of memory.
  Status lackOfRoom() const;
  /// Returns the longest sample that the strategy of `lackOfRoom` can hold, in
  /// tokens; 0 if none.
  int64_t longestHeld() const { return leastNeed_.tokens; }

private:
  /// The part of a candidate that does not depend on recomputation.
  struct Placed {
    ExecutableGraph graph;
    std::vector<int64_t> homeBytes, guestBytes; ///< of each rank
  };
  /// Memory that plans need; neither ZeRO nor the numbering of ranks changes
  /// it.
  struct Needs {
    Needs(const ExecutableGraph &graph, const CostModel &costs,
          const PlanOptions &options)
        : planner(graph, costs), least(planner, options, /*training=*/true),
          microBatch(options.maxTokensPerMicroBatch) {}
    Planner planner;
    LeastRegions least;
    int64_t microBatch; ///< tokens of a micro-batch in a run, if they fit
  };
  struct Entry {
    Strategy strategy;
    std::shared_ptr<const Placed> placed;
    PlanOptions options;
    std::shared_ptr<Needs> needs;
    std::shared_ptr<const PhaseEstimate> estimate;
    std::shared_ptr<const SwitchLayout> layout; ///< only if it is kept
    std::vector<int> layersForLengths;
    int family = 0;
  };

  StrategyCandidates(const CostModel &costs, const StrategySpace &space)
      : space_(space), switching_(costs.model(), costs.cluster()) {}
  class Maker;
  struct Merit;
  void keep(const LengthDistribution &lengths);
  int smallestHome() const;
  int familyOf(int candidate) const;
  int judge(const LengthDistribution::Part &part, bool asHome, int small,
            std::vector<Merit> &merits) const;
  /// Returns the bytes that ranks have for micro-batches under one of the
  /// graphs of a run, home first. Only this function decides which parameters
  /// count for which graph.
  std::vector<int64_t> roomOf(int candidate,
                              const std::vector<int> &graphs) const;
  /// Returns the parameters that each rank holds of one graph beside another
  /// that is home. Results are kept.
  const std::vector<HeldParameters> &heldBeside(const Placed &home,
                                                const Placed &other) const;
  bool hasRoomFor(const Entry &entry, const std::vector<int64_t> &limits,
                  int64_t tokens, int inFlight) const;
  /// Returns about the largest tokens of micro-batches of which `inFlight` fit
  /// a replica.
  int64_t tokensInFlight(const Entry &entry, const std::vector<int64_t> &limits,
                         int inFlight) const;
  /// Returns the seconds of a phase. `tokensOf(n)` returns the tokens of
  /// micro-batches of which n fit at a time.
  double phaseSeconds(const Entry &entry, const PhaseLengths &lengths,
                      int64_t longest,
                      const std::function<int64_t(int)> &tokensOf) const;
  /// Estimates the entry alone, in one order of ranks.
  AloneEstimate estimateAlone(const Entry &entry,
                              const LengthDistribution::Part &all) const;
  /// Pairs of the micro-batches in flight and the largest tokens of each that
  /// then fit. Micro-batches in flight increase.
  using RoomInFlight = std::vector<std::pair<int, int64_t>>;
  /// Returns the mean number of micro-batches in flight: `room[first]`, or
  /// fewer for longer samples.
  static double meanInFlight(const RoomInFlight &room, size_t first,
                             const PhaseLengths &lengths);
  /// Sets what lackOfRoom says.
  void findLeastNeed();

  StrategySpace space_;
  int64_t longest_ = 0; ///< tokens of a sample
  SwitchEstimator switching_;
  std::vector<Entry> entries_;
  std::vector<AloneEstimate> alone_;
  int considered_ = 0;
  mutable std::map<std::array<int, 3>, double> switches_;
  /// Results, by candidate and number, and by the graphs. Only the place of
  /// home in the order of graphs counts.
  mutable std::map<std::vector<int>, int64_t> inFlight_;
  mutable std::map<std::vector<int64_t>, bool> holds_;
  mutable std::map<std::pair<const Placed *, const Placed *>,
                   std::vector<HeldParameters>>
      held_;
  struct LeastNeed {
    Strategy strategy;
    int64_t persistent = 0, dynamic = 0; ///< bytes of the fullest rank
    int64_t tokens = 0; ///< of the longest sample that it has room for
  } leastNeed_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STRATEGYCANDIDATES_H
