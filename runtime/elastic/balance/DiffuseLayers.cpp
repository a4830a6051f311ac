//===- DiffuseLayers.cpp - Moves layers between neighbours ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/DiffuseLayers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {
namespace {

/// A move has to lower the squares by more than sums are rounded.
constexpr double certain = 1 - 1e-12;

class Diffusion {
public:
  Diffusion(const std::vector<double> &costs, const std::vector<int> &cut,
            const LayerBytes *bytes)
      : costs_(costs), bytes_(bytes), begins_(1, 0) {
    for (int layers : cut)
      begins_.push_back(begins_.back() + layers);
  }

  /// Lets all neighbours compare loads once. Returns how many layers moved.
  int64_t round() {
    int64_t moves = 0;
    for (int s = 0; s + 2 < static_cast<int>(begins_.size()); ++s)
      moves += exchange(s);
    return moves;
  }

  std::vector<int> cut() const {
    std::vector<int> cut;
    for (size_t s = 0; s + 1 < begins_.size(); ++s)
      cut.push_back(begins_[s + 1] - begins_[s]);
    return cut;
  }

private:
  double load(int begin, int end) const {
    double sum = 0;
    for (int l = begin; l < end; ++l)
      sum += costs_[l];
    return sum;
  }

  bool hasRoom(int stage, int begin, int end) const {
    if (!bytes_)
      return true;
    int64_t held = 0;
    for (int l = begin; l < end; ++l)
      held += bytes_->at(stage, l);
    return held <= bytes_->limits[stage];
  }

  double squares(int begin, int border, int end) const {
    const double left = load(begin, border), right = load(border, end);
    return left * left + right * right;
  }

  /// Moves layers over the border behind a stage, as long as that lowers the squares.
  int64_t exchange(int stage) {
    const int begin = begins_[stage], end = begins_[stage + 2];
    int &border = begins_[stage + 1];
    int64_t moves = 0;
    for (int step : {-1, 1})
      for (double now = squares(begin, border, end);; ++moves) {
        const int next = border + step;
        if (next <= begin || next >= end)
          break;
        const double after = squares(begin, next, end);
        const bool fits = step < 0 ? hasRoom(stage + 1, next, end)
                                   : hasRoom(stage, begin, next);
        if (!(after < now * certain) || !fits)
          break;
        now = after;
        border = next;
      }
    return moves;
  }

  const std::vector<double> &costs_;
  const LayerBytes *bytes_;
  std::vector<int> begins_; ///< of stages, and the end of the last one
};

} // namespace

DiffusedCut diffuseLayers(const std::vector<double> &costs,
                          std::vector<int> cut, const LayerBytes *bytes) {
  Diffusion diffusion(costs, cut, bytes);
  DiffusedCut result;
  for (int64_t moves = 1; moves > 0; ++result.rounds) {
    moves = diffusion.round();
    result.moves += moves;
  }
  result.layers = diffusion.cut();
  return result;
}

double varianceOf(const std::vector<double> &loads) {
  const auto stages = static_cast<double>(loads.size());
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / stages;
  double variance = 0;
  for (double load : loads)
    variance += (load - mean) * (load - mean) / stages;
  return variance;
}

double varianceOf(const std::vector<double> &costs,
                  const std::vector<int> &cut) {
  return varianceOf(stageSums(costs, cut));
}

double roundsOfLemma2(int workers, int stages, double gamma) {
  const double n = workers, s = stages;
  return std::min(n * n * std::log(s * n / gamma) * std::log(n),
                  s * n * std::log(n) / gamma);
}

} // namespace dyna
