//===- BalanceReplicas.cpp - Assigns micro-batches to replicas ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/BalanceReplicas.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace dyna {
namespace {

/// A hundred megabytes, and less than a second.
constexpr int64_t mostParts = 1 << 22;

/// Items that some replica will get together: a list through `Chains`.
struct Part {
  double sum = 0;
  int64_t first = -1, last = -1; ///< -1: none
};

/// One part for every replica, largest sum first.
struct Split {
  std::vector<Part> parts;
  int64_t made = 0; ///< orders equal differences: oldest first

  double difference() const { return parts.front().sum - parts.back().sum; }
};

/// The item behind each in its part.
using Chains = std::vector<int64_t>;

void join(Part &to, const Part &from, Chains &chains) {
  to.sum += from.sum;
  if (from.first < 0)
    return;
  if (to.first < 0)
    to.first = from.first;
  else
    chains[to.last] = from.first;
  to.last = from.last;
}

Dealt differencing(const std::vector<double> &seconds, int replicas) {
  const int64_t count = static_cast<int64_t>(seconds.size());
  Dealt dealt(replicas);
  if (count == 0)
    return dealt;
  Chains chains(count, -1);
  std::vector<Split> splits(count);
  // Take the split with the largest difference first.
  auto isLess = [&](int64_t a, int64_t b) {
    double one = splits[a].difference(), two = splits[b].difference();
    return one != two ? one < two : splits[a].made > splits[b].made;
  };
  std::priority_queue<int64_t, std::vector<int64_t>, decltype(isLess)> queue(
      isLess);
  for (int64_t item = 0; item < count; ++item) {
    splits[item].parts.resize(replicas);
    splits[item].parts[0] = {seconds[item], item, item};
    splits[item].made = item;
    queue.push(item);
  }
  for (int64_t made = count; queue.size() > 1; ++made) {
    Split &one = splits[queue.top()];
    int64_t slot = queue.top();
    queue.pop();
    Split &two = splits[queue.top()];
    queue.pop();
    for (int part = 0; part < replicas; ++part)
      join(one.parts[part], two.parts[replicas - 1 - part], chains);
    two.parts = {};
    std::sort(one.parts.begin(), one.parts.end(),
              [](const Part &a, const Part &b) {
                return a.sum != b.sum ? a.sum > b.sum : a.first > b.first;
              });
    one.made = made;
    queue.push(slot);
  }
  const Split &last = splits[queue.top()];
  for (int replica = 0; replica < replicas; ++replica)
    for (int64_t item = last.parts[replica].first; item >= 0;
         item = chains[item])
      dealt[replica].push_back(item);
  return dealt;
}

/// Sorts items ascending and adds them up in this order. So no distribution is
/// better by rounding alone.
double sortAndSum(const std::vector<double> &seconds, Dealt &dealt) {
  double largest = 0;
  for (std::vector<int64_t> &items : dealt) {
    std::sort(items.begin(), items.end());
    double sum = 0;
    for (int64_t item : items)
      sum += seconds[item];
    largest = std::max(largest, sum);
  }
  return largest;
}

} // namespace

Dealt dealLargestFirst(const std::vector<double> &seconds, int replicas) {
  std::vector<int64_t> order(seconds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return seconds[a] != seconds[b] ? seconds[a] > seconds[b] : a < b;
  });
  Dealt dealt(replicas);
  using Load = std::pair<double, int>; // seconds, replica
  std::vector<Load> loads;
  for (int replica = 0; replica < replicas; ++replica)
    loads.push_back({0, replica});
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least(
      std::greater<>(), std::move(loads));
  for (int64_t item : order) {
    auto [sum, replica] = least.top();
    least.pop();
    least.push({sum + seconds[item], replica});
    dealt[replica].push_back(item);
  }
  for (std::vector<int64_t> &items : dealt)
    std::sort(items.begin(), items.end());
  return dealt;
}

Dealt balanceReplicas(const std::vector<double> &seconds, int replicas) {
  Dealt balanced = dealLargestFirst(seconds, replicas);
  const int64_t count = static_cast<int64_t>(seconds.size());
  // With one item for each replica no deal is better. Differencing begins with
  // as many parts as the product of both numbers.
  if (count > replicas && count <= mostParts / replicas) {
    Dealt differenced = differencing(seconds, replicas);
    if (sortAndSum(seconds, differenced) <= sortAndSum(seconds, balanced))
      balanced = std::move(differenced);
  }
  std::sort(balanced.begin(), balanced.end(),
            [](const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
              return a.empty() || b.empty() ? !a.empty() && b.empty() : a < b;
            });
  return balanced;
}

} // namespace dyna
