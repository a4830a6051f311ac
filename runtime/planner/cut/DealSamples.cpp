//===- DealSamples.cpp - Assigns samples to replicas ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/DealSamples.h"

#include "runtime/planner/cut/BalanceReplicas.h"

namespace dyna {

std::vector<std::vector<int64_t>>
dealSamples(const std::vector<int64_t> &lengths, int replicas,
            double tokensPerPair) {
  std::vector<double> work;
  for (int64_t tokens : lengths) {
    double length = static_cast<double>(tokens);
    work.push_back(length + tokensPerPair * length * length / 2);
  }
  return dealLargestFirst(work, replicas);
}

} // namespace dyna
