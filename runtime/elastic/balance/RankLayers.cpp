//===- RankLayers.cpp - Assigns layers to ranks in any order --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/RankLayers.h"

#include <algorithm>

namespace dyna {

RankLayers RankLayers::ofCut(const std::vector<int> &cut) {
  RankLayers result;
  int layer = 0;
  for (int layers : cut) {
    std::vector<int> &rank = result.ranks.emplace_back();
    for (int i = 0; i < layers; ++i)
      rank.push_back(layer++);
  }
  return result;
}

bool RankLayers::keepsOrder() const {
  int next = 0;
  for (const std::vector<int> &rank : ranks)
    for (int layer : rank)
      if (layer != next++)
        return false;
  return true;
}

std::vector<int> RankLayers::cut() const {
  if (!keepsOrder() || active() < static_cast<int>(ranks.size()))
    return {};
  std::vector<int> cut;
  for (const std::vector<int> &rank : ranks)
    cut.push_back(static_cast<int>(rank.size()));
  return cut;
}

int RankLayers::active() const {
  return static_cast<int>(
      std::count_if(ranks.begin(), ranks.end(),
                    [](const auto &rank) { return !rank.empty(); }));
}

int RankLayers::borders() const {
  std::vector<std::pair<int, int>> places; // layer, rank
  for (size_t r = 0; r < ranks.size(); ++r)
    for (int layer : ranks[r])
      places.emplace_back(layer, static_cast<int>(r));
  std::sort(places.begin(), places.end());
  int borders = 0;
  for (size_t l = 1; l < places.size(); ++l)
    borders += places[l].second != places[l - 1].second;
  return borders;
}

std::vector<double> RankLayers::sums(const std::vector<double> &values) const {
  std::vector<double> sums;
  for (const std::vector<int> &rank : ranks) {
    double &sum = sums.emplace_back(0);
    for (int layer : rank)
      sum += values[layer];
  }
  return sums;
}

} // namespace dyna
