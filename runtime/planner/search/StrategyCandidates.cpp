//===- StrategyCandidates.cpp - Lists a search's candidates ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/StrategyCandidates.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/place/PlacePhases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

bool isCompiled(const Model &model, int tp, bool sp) {
  if (tp == 1)
    return !sp;
  const auto &degrees = model.manifest().degrees();
  return std::any_of(degrees.begin(), degrees.end(), [&](const auto &degree) {
    return degree.tp() == tp && degree.sp() == sp;
  });
}

/// Orders that number the ranks of such degrees differently, the first of each.
std::vector<std::array<std::string, 3>>
distinctOrders(const std::vector<std::array<std::string, 3>> &orders,
               const Strategy &strategy) {
  std::vector<std::array<std::string, 3>> distinct;
  std::set<std::string> known;
  for (const auto &order : orders) {
    std::string axes;
    for (const std::string &axis : order)
      if ((axis == "dp"   ? strategy.dp
           : axis == "tp" ? strategy.tp
                          : strategy.pp) > 1)
        axes += axis;
    if (known.insert(axes).second)
      distinct.push_back(order);
  }
  return distinct;
}

/// Returns the ranks of a tensor group on a node, by which tables differ
/// between orders of ranks.
std::vector<int> shardsPerNode(const ExecutableGraph &graph,
                               const CostModel &costs) {
  std::vector<int> shards;
  for (int stage = 0; stage < graph.stages(); ++stage)
    shards.push_back(dyna::shardsPerNode(graph, costs, stage));
  return shards;
}

/// Returns the load of a usual micro-batch with the mean number of pairs for each token.
Load usualLoad(const LengthDistribution &lengths) {
  const Load all =
      lengths.between(0, std::numeric_limits<int64_t>::max()).lengths.load;
  const double scale = static_cast<double>(kUsualMicroBatch) /
                       static_cast<double>(std::max<int64_t>(all.queries, 1));
  auto scaled = [&](int64_t count) {
    return std::llround(scale * static_cast<double>(count));
  };
  Load load;
  load.queries = load.keys = load.targets = kUsualMicroBatch;
  load.segments = std::max<int64_t>(scaled(all.segments), 1);
  load.pairs = scaled(all.pairs);
  load.causalPairs = scaled(all.causalPairs);
  return load;
}

} // namespace

/// Makes entries, and what several of them share once.
class StrategyCandidates::Maker {
public:
  Maker(StrategyCandidates &all, const CostModel &costs,
        const LengthDistribution &lengths)
      : all_(all), costs_(costs), space_(all.space_),
        longest_(std::min(lengths.longest(), maxMicroBatchTokens)),
        usual_(usualLoad(lengths)) {}

  Status addAll() {
    const Model &model = costs_.model();
    for (int tp = 1; tp <= space_.ranks; ++tp)
      for (int pp = 1; pp <= model.layers() && tp * pp <= space_.ranks; ++pp)
        for (bool sp : tp > 1 ? space_.sp : std::vector<bool>{false})
          if (space_.ranks % (tp * pp) == 0 && isSearched(pp) &&
              isCompiled(model, tp, sp))
            for (plan::Recompute mode : space_.recompute) {
              Strategy strategy;
              strategy.dp = space_.ranks / (tp * pp);
              strategy.tp = tp;
              strategy.pp = pp;
              strategy.sp = sp;
              strategy.recompute = mode;
              DYNA_RETURN_IF_ERROR(addVariants(strategy));
            }
    return Status::ok();
  }

  /// Returns the entry in another order of ranks.
  StatusOr<Entry> reordered(const Entry &entry,
                            const std::array<std::string, 3> &order) {
    Strategy strategy = entry.strategy;
    strategy.order = order;
    DYNA_ASSIGN_OR_RETURN(auto placed, place(strategy));
    const bool isAlike = shardsPerNode(placed->graph, costs_) ==
                         shardsPerNode(entry.placed->graph, costs_);
    DYNA_ASSIGN_OR_RETURN(Entry other,
                          make(strategy, entry.options,
                               isAlike ? entry.estimate->tables() : nullptr,
                               entry.needs));
    other.layersForLengths = entry.layersForLengths;
    return other;
  }

  /// Estimates every entry alone, in all orders of ranks.
  Status estimateAll(const LengthDistribution &lengths) {
    const auto all = lengths.between(0, std::numeric_limits<int64_t>::max());
    for (const Entry &entry : all_.entries_) {
      all_.alone_.push_back(all_.estimateAlone(entry, all));
      const bool hasRoom = all_.alone_.back().reason.empty();
      const auto orders = distinctOrders(space_.orders, entry.strategy);
      // Memory does not depend on the order of ranks.
      for (size_t order = 1; order < orders.size() && hasRoom; ++order) {
        DYNA_ASSIGN_OR_RETURN(Entry other, reordered(entry, orders[order]));
        all_.alone_.push_back(all_.estimateAlone(other, all));
      }
    }
    return Status::ok();
  }

private:
  /// Adds the strategy with ZeRO and without; tables do not depend on it.
  Status addVariants(Strategy strategy) {
    PlanRequest request = space_.request;
    request.recompute.clear(); // the strategy has a mode
    request.tokensPerBatch = space_.tokensPerStep;
    if (!space_.orders.empty())
      strategy.order = space_.orders[0];
    request.strategy = strategy;
    // A run does not know its longest sample when it chooses its micro-batches.
    DYNA_ASSIGN_OR_RETURN(Policy run, choosePolicy(costs_, request));
    request.strategy = run.strategy;
    request.longestSample = longest_;
    DYNA_ASSIGN_OR_RETURN(Policy policy, choosePolicy(costs_, request));
    strategy = policy.strategy;
    policy.options.longestSample = longest_;
    DYNA_ASSIGN_OR_RETURN(auto placed, place(strategy));
    auto needs = std::make_shared<Needs>(placed->graph, costs_, run.options);
    const std::vector<int> layers =
        layersForLoad(costs_, strategy, policy.options.recompute, usual_);
    std::shared_ptr<const StageTables> tables;
    for (bool zero : strategy.dp > 1 ? space_.zero : std::vector<bool>{false}) {
      strategy.zero = zero;
      DYNA_ASSIGN_OR_RETURN(Entry entry,
                            make(strategy, policy.options, tables, needs));
      tables = entry.estimate->tables();
      entry.family = static_cast<int>(all_.entries_.size());
      entry.layersForLengths = layers;
      all_.entries_.push_back(std::move(entry));
    }
    return Status::ok();
  }

  StatusOr<Entry> make(const Strategy &strategy, const PlanOptions &options,
                       std::shared_ptr<const StageTables> tables,
                       std::shared_ptr<Needs> needs) {
    Entry entry;
    entry.strategy = strategy;
    entry.options = options;
    entry.needs = std::move(needs);
    DYNA_ASSIGN_OR_RETURN(entry.placed, place(strategy));
    const ExecutableGraph &graph = entry.placed->graph;
    if (!tables)
      tables = std::make_shared<StageTables>(
          graph, costs_, options, /*trains=*/true, options.mostTokens());
    entry.estimate = std::make_shared<PhaseEstimate>(graph, costs_, options,
                                                     std::move(tables));
    return entry;
  }

  StatusOr<std::shared_ptr<const Placed>> place(Strategy strategy) {
    strategy.recompute.reset();
    std::shared_ptr<const Placed> &known = known_[describeStrategy(strategy)];
    if (known)
      return known;
    DYNA_ASSIGN_OR_RETURN(auto graph,
                          ExecutableGraph::create(costs_.model(), strategy));
    Placed placed{std::move(graph), {}, {}};
    for (int rank = 0; rank < placed.graph.ranks(); ++rank) {
      // Under ZeRO with uneven rows, ranks differ, so ask each rank.
      const RankView view = placed.graph.rankView(rank);
      placed.homeBytes.push_back(persistentBytes(view, costs_.layerStates()));
      placed.guestBytes.push_back(
          persistentBytes(view, costs_.layerStates(), Persistent::Gradients));
    }
    known = std::make_shared<Placed>(std::move(placed));
    return known;
  }

  StrategyCandidates &all_;
  const CostModel &costs_;
  const StrategySpace &space_;
  const int64_t longest_;
  const Load usual_; ///< of a micro-batch of such lengths
  std::map<std::string, std::shared_ptr<const Placed>> known_;
};

StatusOr<StrategyCandidates>
StrategyCandidates::create(const CostModel &costs, const StrategySpace &space,
                           const LengthDistribution &lengths) {
  StrategyCandidates all(costs, space);
  all.longest_ = std::min(lengths.longest(), maxMicroBatchTokens);
  Maker maker(all, costs, lengths);
  DYNA_RETURN_IF_ERROR(maker.addAll());
  for (const Entry &entry : all.entries_)
    all.considered_ += std::max<int>(
        1,
        static_cast<int>(distinctOrders(space.orders, entry.strategy).size()));
  DYNA_RETURN_IF_ERROR(maker.estimateAll(lengths));
  // Remove candidates whose parameters alone do not fit.
  auto isLost = [&](const Entry &entry) {
    return space.memoryBytes > 0 &&
           *std::max_element(entry.placed->guestBytes.begin(),
                             entry.placed->guestBytes.end()) >=
               space.memoryBytes;
  };
  if (std::all_of(all.entries_.begin(), all.entries_.end(), isLost)) {
    all.findLeastNeed();
    return all.lackOfRoom();
  }
  all.entries_.erase(
      std::remove_if(all.entries_.begin(), all.entries_.end(), isLost),
      all.entries_.end());
  all.findLeastNeed();
  all.keep(lengths);
  const int kept = all.candidates();
  for (int c = 0; c < kept; ++c) {
    all.entries_[c].family = all.familyOf(c);
    const auto orders = distinctOrders(space.orders, all.entries_[c].strategy);
    for (size_t order = 1; order < orders.size(); ++order) {
      DYNA_ASSIGN_OR_RETURN(Entry other,
                            maker.reordered(all.entries_[c], orders[order]));
      other.family = all.entries_[c].family;
      all.entries_.push_back(std::move(other));
    }
  }
  for (Entry &entry : all.entries_)
    entry.layout = std::make_shared<SwitchLayout>(entry.placed->graph);
  return all;
}

/// Quality of a strategy for some ranges of lengths.
struct StrategyCandidates::Merit {
  /// Least ratio of its time to the time of the best strategy.
  double least = never;
  /// Number of ranges for which it is the best.
  int wins = 0;
};

/// Powers of two from 256, up to the longest.
static std::vector<int64_t> endsOfParts(const LengthDistribution &lengths) {
  std::vector<int64_t> ends = {0};
  for (int64_t end = 256; end < lengths.longest(); end *= 2)
    ends.push_back(end);
  ends.push_back(lengths.longest());
  return ends;
}

int StrategyCandidates::smallestHome() const {
  auto bytesOf = [&](int c) {
    const auto &bytes = entries_[c].placed->homeBytes;
    return *std::max_element(bytes.begin(), bytes.end());
  };
  int small = 0;
  for (int c = 1; c < candidates(); ++c)
    if (bytesOf(c) < bytesOf(small))
      small = c;
  return small;
}

/// Returns the best candidate for some lengths. It is judged as home, or as a
/// guest beside the home that leaves most room.
int StrategyCandidates::judge(const LengthDistribution::Part &part, bool asHome,
                              int small, std::vector<Merit> &merits) const {
  std::vector<double> seconds(candidates());
  for (int c = 0; c < candidates(); ++c)
    seconds[c] = phaseSeconds(c,
                              asHome || c == small ? std::vector<int>{c}
                                                   : std::vector<int>{small, c},
                              part.lengths, part.longest);
  const auto best = std::min_element(seconds.begin(), seconds.end());
  for (int c = 0; c < candidates() && *best < never; ++c) {
    merits[c].least = std::min(merits[c].least, seconds[c] / *best);
    merits[c].wins += seconds[c] <= *best;
  }
  return static_cast<int>(best - seconds.begin());
}

void StrategyCandidates::keep(const LengthDistribution &lengths) {
  const int most = space_.mostKept;
  if (most == 0 || candidates() <= most)
    return;
  const int small = smallestHome();
  const std::vector<int64_t> ends = endsOfParts(lengths);
  std::vector<Merit> merits(candidates());
  // The best single strategy, which may be the only one for the longest
  // samples.
  int single = small;
  for (size_t i = 0; i + 1 < ends.size(); ++i)
    for (size_t j = i + 1; j < ends.size(); ++j) {
      const auto part = lengths.between(ends[i] + 1, ends[j]);
      if (part.probability == 0)
        continue;
      const int best = judge(part, true, small, merits);
      if (i == 0 && j + 1 == ends.size())
        single = best;
      judge(part, false, small, merits);
    }
  std::vector<int> order(candidates());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tuple(merits[a].least, -merits[a].wins, a) <
           std::tuple(merits[b].least, -merits[b].wins, b);
  });
  for (int needed : {single, small})
    std::rotate(order.begin(), std::find(order.begin(), order.end(), needed),
                std::find(order.begin(), order.end(), needed) + 1);
  order.resize(std::max(most, 2));
  std::sort(order.begin(), order.end());
  std::vector<Entry> kept;
  for (int c : order)
    kept.push_back(entries_[c]);
  entries_ = std::move(kept);
  inFlight_.clear();
  holds_.clear();
}

int StrategyCandidates::familyOf(int candidate) const {
  if (space_.request.recompute.empty())
    return candidate;
  // If the run overrides modes, strategies that differ only in these are the
  // same.
  auto withoutModes = [&](int c) {
    Strategy strategy = entries_[c].strategy;
    strategy.recompute.reset();
    strategy.layers.clear();
    return describeStrategy(strategy);
  };
  int first = 0;
  while (withoutModes(first) != withoutModes(candidate))
    ++first;
  return first;
}

const std::vector<HeldParameters> &
StrategyCandidates::heldBeside(const Placed &home, const Placed &other) const {
  auto [found, isNew] = held_.try_emplace({&home, &other});
  if (isNew)
    found->second = heldOf(home.graph, other.graph);
  return found->second;
}

std::vector<int64_t>
StrategyCandidates::roomOf(int candidate,
                           const std::vector<int> &graphs) const {
  const Placed &home = *entries_[graphs[0]].placed;
  const Placed &own = *entries_[candidate].placed;
  const bool isHome = candidate == graphs[0];
  const int64_t memory =
      space_.memoryBytes - (graphs.size() > 1 ? space_.passedBytes : 0);
  // As in a run, a phase needs room for home as on home's fullest rank.
  int64_t beside = 0;
  for (int rank = 0; rank < space_.ranks && !isHome; ++rank) {
    const HeldParameters &held = heldBeside(home, own)[rank];
    beside = std::max(beside, home.homeBytes[rank] + held.values +
                                  held.gradients - own.guestBytes[rank]);
  }
  std::vector<int64_t> room;
  for (int rank = 0; rank < space_.ranks; ++rank) {
    std::vector<HeldParameters> others;
    for (size_t i = 1; i < graphs.size(); ++i)
      others.push_back(heldBeside(home, *entries_[graphs[i]].placed)[rank]);
    if (others.size() > 1 &&
        mostSideBySide(others) > memory - home.homeBytes[rank])
      return std::vector<int64_t>(space_.ranks, -1);
    room.push_back(memory - beside -
                   (isHome ? home.homeBytes[rank] : own.guestBytes[rank]));
  }
  return room;
}

bool StrategyCandidates::holds(int candidate, const std::vector<int> &graphs,
                               int64_t tokens) const {
  if (space_.memoryBytes == 0)
    return true;
  std::vector<int64_t> key(graphs.begin(), graphs.end());
  std::sort(key.begin() + 1, key.end());
  key.push_back(candidate);
  key.push_back(tokens);
  auto [found, isNew] = holds_.try_emplace(std::move(key), false);
  if (!isNew)
    return found->second;
  const Entry &entry = entries_[candidate];
  // This fails only for options without any plan, which do not occur here.
  auto holds =
      entry.needs->least.hold(entry.placed->graph, roomOf(candidate, graphs),
                              entry.needs->microBatch, tokens);
  return found->second = holds.isOk() && *holds;
}

int64_t StrategyCandidates::mostTokens(int candidate,
                                       const std::vector<int> &graphs) const {
  if (holds(candidate, graphs, longest_))
    return longest_;
  int64_t low = 0, high = longest_;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(candidate, graphs, middle) ? low : high) = middle;
  }
  return low;
}

AloneEstimate
StrategyCandidates::estimateAlone(const Entry &entry,
                                  const LengthDistribution::Part &all) const {
  AloneEstimate alone;
  alone.strategy = entry.strategy;
  alone.slices = space_.request.slices;
  alone.layersForLengths = entry.layersForLengths;
  const double beside = entry.estimate->updateSeconds() +
                        all.probability * entry.estimate->gatherSeconds();
  alone.besideSeconds = beside + entry.estimate->lastReductionSeconds();
  auto secondsIn = [&](const std::vector<int64_t> &room) {
    return beside +
           all.probability *
               phaseSeconds(entry, all.lengths, all.longest, [&](int n) {
                 return tokensInFlight(entry, room, n);
               });
  };
  alone.unlimitedSeconds =
      beside + all.probability *
                   entry.estimate->seconds(
                       all.lengths, std::max(all.longest, kUsualMicroBatch));
  if (space_.memoryBytes == 0) {
    alone.seconds = alone.unlimitedSeconds;
    return alone;
  }
  const std::vector<int64_t> &held = entry.placed->homeBytes;
  std::vector<int64_t> room;
  for (int64_t bytes : held)
    room.push_back(space_.memoryBytes - bytes);
  const int64_t most = *std::max_element(held.begin(), held.end());
  if (most >= space_.memoryBytes) {
    alone.reason =
        formatText("parameters and their state take %s of a rank, which has %s",
                   formatBytes(most), formatBytes(space_.memoryBytes));
  } else if (auto holds =
                 entry.needs->least.hold(entry.placed->graph, room,
                                         entry.needs->microBatch, all.longest);
             !holds.isOk() || !*holds) {
    alone.reason = formatText(
        "beside %s for parameters and their state, a sample of %d tokens has "
        "no room in the %s of a rank",
        formatBytes(most), all.longest, formatBytes(space_.memoryBytes));
  }
  alone.seconds = alone.reason.empty() ? secondsIn(room) : never;
  return alone;
}

void StrategyCandidates::findLeastNeed() {
  if (space_.memoryBytes == 0)
    return;
  int64_t least = std::numeric_limits<int64_t>::max();
  int found = 0;
  for (int c = 0; c < candidates(); ++c) {
    const Entry &entry = entries_[c];
    auto needed = entry.needs->least.of(
        std::min(entry.needs->microBatch, longest_), longest_);
    if (!needed.isOk())
      continue;
    const ExecutableGraph &graph = entry.placed->graph;
    LeastNeed need;
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      const int64_t persistent = entry.placed->homeBytes[rank],
                    dynamic = (*needed)[graph.indexInReplica(rank)];
      if (persistent + dynamic > need.persistent + need.dynamic) {
        need.persistent = persistent;
        need.dynamic = dynamic;
      }
    }
    if (need.persistent + need.dynamic >= least)
      continue;
    least = need.persistent + need.dynamic;
    leastNeed_ = need;
    leastNeed_.strategy = entry.strategy;
    found = c;
  }
  if (least > space_.memoryBytes)
    leastNeed_.tokens = mostTokens(found, {found});
}

Status StrategyCandidates::lackOfRoom() const {
  const LeastNeed &least = leastNeed_;
  const std::string has =
      least.tokens > 0
          ? formatText("; it has room for samples of at most %d", least.tokens)
          : std::string();
  return Status::resourceExhausted(formatText(
      "of %d strategies on %d ranks none has room for samples of %d tokens in "
      "%s of a rank: '%s' needs least, %s for parameters and their state and "
      "%s for such a sample (%d bytes are enough)%s",
      considered_, space_.ranks, longest_, formatBytes(space_.memoryBytes),
      describeStrategy(least.strategy), formatBytes(least.persistent),
      formatBytes(least.dynamic), least.persistent + least.dynamic, has));
}

} // namespace dyna
