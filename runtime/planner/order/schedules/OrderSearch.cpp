//===- OrderSearch.cpp - Searches injection orders ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/OrderSearch.h"

#include "runtime/abi/Random.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/schedules/CyclicOrders.h"

#include <functional>
#include <numeric>

namespace dyna {
namespace {

/// Cuts sorted values into `count` clusters with the least squared differences.
/// Returns the ends of the clusters.
std::vector<int> clusterEnds(const std::vector<double> &sorted, int count) {
  const int n = static_cast<int>(sorted.size());
  std::vector<double> sums(n + 1, 0), squares(n + 1, 0);
  for (int i = 0; i < n; ++i) {
    sums[i + 1] = sums[i] + sorted[i];
    squares[i + 1] = squares[i] + sorted[i] * sorted[i];
  }
  auto spread = [&](int begin, int end) {
    double sum = sums[end] - sums[begin];
    return squares[end] - squares[begin] - sum * sum / (end - begin);
  };
  std::vector<double> best(n + 1, OrderSimulator::never);
  best[0] = 0;
  std::vector<std::vector<int>> from(count, std::vector<int>(n + 1, 0));
  for (int cluster = 0; cluster < count; ++cluster) {
    std::vector<double> next(n + 1, OrderSimulator::never);
    for (int end = cluster + 1; end <= n; ++end)
      for (int begin = cluster; begin < end; ++begin)
        if (double value = best[begin] + spread(begin, end);
            value < next[end]) {
          next[end] = value;
          from[cluster][end] = begin;
        }
    best = std::move(next);
  }
  std::vector<int> ends(count);
  for (int cluster = count - 1, end = n; cluster >= 0; --cluster) {
    ends[cluster] = end;
    end = from[cluster][end];
  }
  return ends;
}

std::vector<int> bySeconds(const std::vector<double> &seconds) {
  std::vector<int> order(seconds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return seconds[a] != seconds[b] ? seconds[a] < seconds[b] : a < b;
  });
  return order;
}

/// Returns an order with short ones first and last: they fill and drain a
/// pipeline in little time. Of every `rise` + `fall`, that many come before and
/// after the longest. With `lastFirst` the very shortest is the last.
std::vector<int> hill(const std::vector<int> &sorted, int rise, int fall,
                      bool lastFirst) {
  std::vector<int> front, back;
  for (size_t i = 0; i < sorted.size(); ++i) {
    int turn = static_cast<int>(i) % (rise + fall);
    bool toFront = lastFirst ? turn >= fall : turn < rise;
    (toFront ? front : back).push_back(sorted[i]);
  }
  front.insert(front.end(), back.rbegin(), back.rend());
  return front;
}

/// Returns true if all micro-batches are equal, so that all orders are equal
/// too.
bool areAlike(const PipelineProblem &problem) {
  auto same = [](const auto &table) {
    for (const auto &row : table)
      if (std::adjacent_find(row.begin(), row.end(), std::not_equal_to<>()) !=
          row.end())
        return false;
    return true;
  };
  return same(problem.forward) && same(problem.backward) &&
         same(problem.weight) && same(problem.recompute) &&
         same(problem.kept) && same(problem.late);
}

/// Returns micro-batches that follow each other, in order; each alone if none
/// does.
std::vector<std::vector<int>> chainsOf(const PipelineProblem &problem) {
  const int count = problem.microBatches();
  std::vector<int> next(count, -1);
  for (int m = 0; m < count && !problem.previous.empty(); ++m)
    if (problem.previous[m] >= 0)
      next[problem.previous[m]] = m;
  std::vector<std::vector<int>> chains;
  for (int m = 0; m < count; ++m) {
    if (!problem.previous.empty() && problem.previous[m] >= 0)
      continue;
    chains.emplace_back();
    for (int link = m; link >= 0; link = next[link])
      chains.back().push_back(link);
  }
  return chains;
}

/// Searches orders of units: micro-batches, or chains of them. A chain runs forward in
/// its order and backward in reverse, with nothing in between.
class Search {
public:
  Search(const PipelineProblem &problem, const std::vector<int> &mostKept)
      : problem_(problem), mostKept_(mostKept), chains_(chainsOf(problem)),
        count_(static_cast<int>(chains_.size())),
        isChained_(count_ < problem.microBatches()),
        alike_(!isChained_ && areAlike(problem)), simulator_(problem, mostKept),
        enough_(boundPipeline(problem).seconds() * (1 + 1e-9)) {}

  StageOrders run() {
    start();
    if (isChained_ &&
        std::min(makespan_, cyclicMakespan_) == OrderSimulator::never)
      return {}; // chains need more memory at a time than one micro-batch
    if (makespan_ < OrderSimulator::never) {
      chooseRule();
      refine();
    }
    StageOrders dispatched;
    if (makespan_ == OrderSimulator::never)
      return std::move(cyclic_);
    simulator_.setRule(rule_);
    simulator_.play(expand(best_), dispatched);
    return std::min(makespan_, cyclicMakespan_) == makespan_
               ? std::move(dispatched)
               : std::move(cyclic_);
  }

private:
  void start();
  /// Returns the micro-batches of an order of units.
  const MicroBatchOrder &expand(const MicroBatchOrder &order);
  void tryCyclic(const std::vector<int> &injected);
  bool take(const MicroBatchOrder &order);
  void chooseRule();
  void refine();
  bool change(MicroBatchOrder &order);
  int below(int count) {
    return static_cast<int>(dyna_mix64(drawn_++) %
                            static_cast<uint64_t>(count));
  }
  bool isGoodEnough() const { return makespan_ <= enough_; }

  const PipelineProblem &problem_;
  const std::vector<int> &mostKept_;
  const std::vector<std::vector<int>> chains_;
  const int count_; ///< units
  const bool isChained_;
  const bool alike_;
  OrderSimulator simulator_;
  const double enough_; ///< the lower bound: nothing is better
  DispatchRule rule_, tried_;
  MicroBatchOrder best_;     ///< of units
  MicroBatchOrder expanded_; ///< by `expand`
  double makespan_ = OrderSimulator::never;
  StageOrders cyclic_;
  double cyclicMakespan_ = OrderSimulator::never;
  uint64_t drawn_ = 1;
};

const MicroBatchOrder &Search::expand(const MicroBatchOrder &order) {
  if (!isChained_)
    return order;
  expanded_.forwards.clear();
  expanded_.backwards.clear();
  for (int unit : order.forwards)
    expanded_.forwards.insert(expanded_.forwards.end(), chains_[unit].begin(),
                              chains_[unit].end());
  for (int unit : order.backwards)
    expanded_.backwards.insert(expanded_.backwards.end(),
                               chains_[unit].rbegin(), chains_[unit].rend());
  return expanded_;
}

/// Keeps what is better than all before.
bool Search::take(const MicroBatchOrder &order) {
  double makespan = simulator_.evaluate(expand(order), makespan_);
  if (makespan >= makespan_)
    return false;
  makespan_ = makespan;
  best_ = order;
  rule_ = tried_;
  return true;
}

/// Tries Algorithm 1 itself, on the same clock: the result is never longer.
void Search::tryCyclic(const std::vector<int> &injected) {
  StageOrders orders = cyclicOrders(problem_, expand({injected, {}}).forwards);
  std::vector<int> peak(orders.size(), 0);
  for (size_t s = 0; s < orders.size(); ++s) {
    int kept = 0;
    for (const PipelineItem &item : orders[s])
      peak[s] = std::max(peak[s], kept += item.isForward() ? 1 : -1);
    if (peak[s] > mostKept_[s])
      return;
  }
  if (problem_.splitsBackward())
    addWeights(orders);
  ClockOptions clock;
  clock.fillsGaps = true;
  Status timed = timeItems(orders, problem_, clock);
  if (!timed.isOk())
    return;
  if (double makespan = makespanOf(orders); makespan < cyclicMakespan_) {
    cyclicMakespan_ = makespan;
    cyclic_ = std::move(orders);
  }
}

void Search::start() {
  const std::vector<double> ofEach = totalSeconds(problem_);
  std::vector<double> seconds;
  for (const std::vector<int> &chain : chains_) {
    seconds.push_back(0);
    for (int m : chain)
      seconds.back() += ofEach[m];
  }
  // Chains take long to simulate, so climb fewer hills.
  const int mostHills = isChained_ ? 2 : 4;
  std::vector<int> sorted = bySeconds(seconds);
  std::vector<std::vector<int>> paper, all;
  all.emplace_back(count_);
  std::iota(all.back().begin(), all.back().end(), 0);
  for (int clusters : {3, 4})
    if (!alike_ && (!isChained_ || clusters == 3))
      for (auto &order : clusterOrders(seconds, clusters))
        paper.push_back(std::move(order));
  all.insert(all.end(), paper.begin(), paper.end());
  if (!alike_)
    for (int rise = 1; rise <= mostHills; ++rise)
      for (int fall = 1; fall <= mostHills; ++fall)
        for (bool lastFirst : {false, true})
          all.push_back(hill(sorted, rise, fall, lastFirst));
  for (bool fillsFirst : {false, true}) {
    tried_.fillsFirst = fillsFirst;
    simulator_.setRule(tried_);
    for (const std::vector<int> &order : all)
      if (!isGoodEnough())
        take({order, order});
  }
  if (paper.empty())
    paper.push_back(all.front());
  for (const std::vector<int> &order : paper)
    if (!isGoodEnough())
      tryCyclic(order);
}

void Search::chooseRule() {
  std::vector<double> patience = {0.5};
  if (problem_.splitsBackward())
    patience = {0, 0.5, 1};
  const MicroBatchOrder order = best_;
  for (bool fillsFirst : {false, true})
    for (double share : patience) {
      if (isGoodEnough())
        return;
      tried_.fillsFirst = fillsFirst;
      tried_.patience = share;
      simulator_.setRule(tried_);
      take(order);
    }
}

/// Makes a random change: two micro-batches change places, or one moves. It
/// affects the order of forwards, of backwards, or both.
bool Search::change(MicroBatchOrder &order) {
  constexpr int near = 8;
  int kind = below(10), from = below(count_), to = below(count_);
  if (below(2) == 0)
    to = std::clamp(from + below(2 * near + 1) - near, 0, count_ - 1);
  if (from == to)
    return false;
  auto move = [](std::vector<int> &list, int from, int to) {
    if (from < to)
      std::rotate(list.begin() + from, list.begin() + from + 1,
                  list.begin() + to + 1);
    else
      std::rotate(list.begin() + to, list.begin() + from,
                  list.begin() + from + 1);
  };
  auto find = [](const std::vector<int> &list, int m) {
    return static_cast<int>(std::find(list.begin(), list.end(), m) -
                            list.begin());
  };
  if (kind < 4) {
    int m = order.forwards[from], other = order.forwards[to];
    std::swap(order.forwards[from], order.forwards[to]);
    std::swap(order.backwards[find(order.backwards, m)],
              order.backwards[find(order.backwards, other)]);
  } else if (kind < 7) {
    int at = find(order.backwards, order.forwards[from]);
    move(order.forwards, from, to);
    move(order.backwards, at, std::clamp(at + to - from, 0, count_ - 1));
  } else {
    move(kind < 9 ? order.backwards : order.forwards, from, to);
  }
  return true;
}

/// Descends along plateaus. The effect of a change shows a few micro-batches
/// later.
void Search::refine() {
  constexpr int shows = 4;
  if (alike_ || isGoodEnough())
    return;
  simulator_.setRule(rule_);
  simulator_.adopt(expand(best_));
  const int64_t begin = simulator_.items();
  MicroBatchOrder order = best_;
  for (int turn = 0; turn < 20 * count_ && !isGoodEnough() &&
                     simulator_.items() - begin < problem_.searchItems;
       ++turn) {
    order.forwards = best_.forwards;
    order.backwards = best_.backwards;
    if (!change(order))
      continue;
    double makespan = simulator_.evaluate(expand(order), makespan_, shows);
    if (makespan > makespan_)
      continue;
    makespan_ = makespan;
    std::swap(best_, order);
    simulator_.adopt(expand(best_));
  }
}

} // namespace

std::vector<double> totalSeconds(const PipelineProblem &problem) {
  std::vector<double> seconds(problem.microBatches(), 0);
  for (int s = 0; s < problem.stages(); ++s)
    for (int m = 0; m < problem.microBatches(); ++m)
      seconds[m] += problem.forward[s][m] + problem.backward[s][m];
  return seconds;
}

std::vector<std::vector<int>> clusterOrders(const std::vector<double> &seconds,
                                            int count) {
  count = std::min(count, static_cast<int>(seconds.size()));
  if (count == 0)
    return {};
  std::vector<int> sorted = bySeconds(seconds);
  std::vector<double> values;
  for (int m : sorted)
    values.push_back(seconds[m]);
  std::vector<std::vector<int>> clusters;
  int begin = 0;
  for (int end : clusterEnds(values, count)) {
    clusters.emplace_back(sorted.begin() + begin, sorted.begin() + end);
    std::sort(clusters.back().begin(), clusters.back().end());
    begin = end;
  }
  std::vector<int> turns(count);
  std::iota(turns.begin(), turns.end(), 0);
  std::vector<std::vector<int>> orders;
  do {
    std::vector<int> &order = orders.emplace_back();
    for (int cluster : turns)
      order.insert(order.end(), clusters[cluster].begin(),
                   clusters[cluster].end());
  } while (std::next_permutation(turns.begin(), turns.end()));
  return orders;
}

StageOrders searchOrders(const PipelineProblem &problem,
                         const std::vector<int> &mostKept) {
  if (problem.microBatches() == 0)
    return StageOrders(problem.stages());
  return Search(problem, mostKept).run();
}

} // namespace dyna
