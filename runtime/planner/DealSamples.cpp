//===- DealSamples.cpp - Which replica trains on which sample -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/DealSamples.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace dyna {

std::vector<std::vector<int64_t>>
dealSamples(const std::vector<int64_t> &lengths, int replicas,
            double tokensPerPair) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  std::vector<std::vector<int64_t>> dealt(replicas);
  using Load = std::pair<double, int>; // work, replica
  std::vector<Load> loads;
  for (int replica = 0; replica < replicas; ++replica)
    loads.push_back({0, replica});
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least(
      std::greater<>(), std::move(loads));
  for (int64_t sample : order) {
    auto [work, replica] = least.top();
    double length = static_cast<double>(lengths[sample]);
    least.pop();
    work += length + tokensPerPair * length * length / 2;
    least.push({work, replica});
    dealt[replica].push_back(sample);
  }
  for (std::vector<int64_t> &samples : dealt)
    std::sort(samples.begin(), samples.end());
  return dealt;
}

} // namespace dyna
