//===- DealSamples.cpp - Which replica trains on which sample -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/DealSamples.h"

#include <algorithm>
#include <numeric>

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
  std::vector<double> work(replicas, 0);
  for (int64_t sample : order) {
    size_t least = std::min_element(work.begin(), work.end()) - work.begin();
    double length = static_cast<double>(lengths[sample]);
    work[least] += length + tokensPerPair * length * length / 2;
    dealt[least].push_back(sample);
  }
  for (std::vector<int64_t> &samples : dealt)
    std::sort(samples.begin(), samples.end());
  return dealt;
}

} // namespace dyna
