//===- CutLayers.cpp - Cuts layers into stages exactly --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/CutLayers.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/LeastNumber.h"

#include <algorithm>

namespace dyna {
namespace {

class LayerCutter {
public:
  LayerCutter(const std::vector<double> &costs, int stages,
              const LayerBytes *bytes, const std::vector<double> &waits = {})
      : costs_(costs), bytes_(bytes), waits_(waits),
        layers_(static_cast<int>(costs.size())), stages_(stages) {
    for (int s = 0; s < stages && bytes; ++s)
      for (int l = 0; l < layers_; ++l)
        fitAlone_ &= bytes->at(s, l) <= bytes->limits[s];
  }

  /// Returns the layers of each stage; empty if no cut has room.
  std::vector<int> cut() {
    double largest = 0, all = 0;
    for (double cost : costs_) {
      largest = std::max(largest, cost);
      all += cost;
    }
    for (double wait : waits_)
      all += wait;
    limit_ = all;
    if (!reaches())
      return {};
    limit_ = leastNumber(largest, all, [&](double limit) {
      limit_ = limit;
      return reaches();
    });
    return mostEven();
  }

private:
  double wait(int stage) const { return waits_.empty() ? 0 : waits_[stage]; }

  /// Returns the end of the most layers that a stage can have from one on.
  int endOf(int stage, int begin) const {
    double sum = wait(stage);
    int64_t held = 0;
    int end = begin;
    for (; end < layers_; ++end) {
      sum += costs_[end];
      if (!(sum <= limit_))
        break;
      if (bytes_ && (held += bytes_->at(stage, end)) > bytes_->limits[stage])
        break;
    }
    return end;
  }

  /// Returns true if a cut is within the limits.
  bool reaches() const {
    if (!fitAlone_)
      return reachable().back()[layers_];
    // A stage that begins later may end later, so the reachable ends have no
    // gaps.
    int end = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      const int begin = end;
      end = endOf(stage, begin);
      if (end == begin)
        return end == layers_ && begin > 0;
    }
    return end == layers_;
  }

  /// Returns the possible ends of the last stage, for each number of stages.
  std::vector<std::vector<char>> reachable() const {
    std::vector<std::vector<char>> ends(stages_ + 1,
                                        std::vector<char>(layers_ + 1, 0));
    ends[0][0] = 1;
    for (int stage = 0; stage < stages_; ++stage)
      for (int begin = stage; begin < layers_; ++begin)
        if (ends[stage][begin])
          for (int end = endOf(stage, begin); end > begin; --end)
            ends[stage + 1][end] = 1;
    return ends;
  }

  /// Layers at which a stage can begin: the first one, and how many.
  struct Band {
    int first = 0, count = 0;
  };

  std::vector<Band> bands() const {
    std::vector<Band> bands(stages_ + 1);
    if (!fitAlone_) {
      for (int s = 0; s < stages_; ++s)
        bands[s] = {s, layers_ - stages_ + 1};
      bands[stages_] = {layers_, 1};
      return bands;
    }
    int end = 0;
    for (int s = 0; s < stages_; ++s) {
      bands[s].count = std::min(end, layers_ - (stages_ - s)) + 1;
      end = endOf(s, end);
    }
    bands[stages_] = {layers_, 1};
    // From the end: find the first layers with which later stages can still
    // take the rest.
    for (int s = stages_ - 1; s >= 0; --s) {
      int first = bands[s + 1].first - 1;
      while (first > s && endOf(s, first - 1) >= bands[s + 1].first)
        --first;
      bands[s].first = std::max(first, s);
      bands[s].count -= bands[s].first;
    }
    return bands;
  }

  /// Returns the cut within the limits of the least sum of squares. There is one.
  std::vector<int> mostEven() const {
    constexpr int nothing = 0;
    struct Rest {
      double squares = 0;
      int take = nothing; ///< layers of its first stage
    };
    const std::vector<Band> bands = this->bands();
    std::vector<std::vector<Rest>> rest(stages_ + 1);
    for (int s = stages_ - 1; s >= 0; --s) {
      rest[s].resize(bands[s].count);
      const Band &next = bands[s + 1];
      for (int b = 0; b < bands[s].count; ++b) {
        const int begin = bands[s].first + b;
        const int end = std::min(endOf(s, begin), next.first + next.count - 1);
        Rest &best = rest[s][b];
        double sum = wait(s);
        for (int at = begin; at < end; ++at) {
          sum += costs_[at];
          const int behind = at + 1 - next.first;
          if (behind < 0)
            continue;
          const Rest none;
          const Rest &other = s + 1 < stages_ ? rest[s + 1][behind] : none;
          if (s + 1 < stages_ && other.take == nothing)
            continue;
          // Take as many layers as possible. Sums of the same numbers differ by
          // rounding.
          const double squares = sum * sum + other.squares;
          if (best.take == nothing || squares <= best.squares * (1 + 1e-12))
            best = {squares, at + 1 - begin};
        }
      }
    }
    std::vector<int> cut;
    for (int s = 0, begin = 0; s < stages_; begin += cut.back(), ++s)
      cut.push_back(rest[s][begin - bands[s].first].take);
    return cut;
  }

  const std::vector<double> &costs_;
  const LayerBytes *bytes_;
  const std::vector<double> waits_;
  const int layers_, stages_;
  bool fitAlone_ = true; ///< every layer in every stage
  double limit_ = 0;
};

} // namespace

std::vector<double> stageSums(const std::vector<double> &costs,
                              const std::vector<int> &cut) {
  std::vector<double> sums;
  size_t layer = 0;
  for (int layers : cut) {
    double &sum = sums.emplace_back(0);
    for (int i = 0; i < layers; ++i)
      sum += costs[layer++];
  }
  return sums;
}

std::vector<int> partitionLayers(const std::vector<double> &costs, int stages) {
  return LayerCutter(costs, stages, nullptr).cut();
}

StatusOr<std::vector<int>>
partitionLayersWithin(const std::vector<double> &costs, int stages,
                      const LayerBytes &bytes,
                      const std::vector<double> &waits) {
  std::vector<int> cut = LayerCutter(costs, stages, &bytes, waits).cut();
  if (cut.empty())
    return Status::resourceExhausted(
        formatText("no cut of %d layers into %d stages fits the memory of each "
                   "stage: use more stages, recomputation, or ZeRO",
                   costs.size(), stages));
  return cut;
}

} // namespace dyna
