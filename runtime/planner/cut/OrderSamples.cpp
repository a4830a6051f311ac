//===- OrderSamples.cpp - Orders samples to cut micro-batches -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/OrderSamples.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace dyna {
namespace {

using Point = SampleLength;

int64_t distance(const Point &a, const Point &b) {
  return std::abs(a.tokens - b.tokens) +
         std::abs(a.decoderTokens - b.decoderTokens);
}

/// Steps that a change removes from a path or adds to it; 0 at the end of a
/// path.
using Steps = std::array<int64_t, 3>;

bool isBetter(SampleOrder order, Steps added, Steps removed) {
  if (order == SampleOrder::ShortestWay)
    return added[0] + added[1] + added[2] <
           removed[0] + removed[1] + removed[2];
  // Compare the longest steps first. Each better change makes the sorted list
  // of all steps smaller, so the search ends.
  std::sort(added.begin(), added.end(), std::greater<>());
  std::sort(removed.begin(), removed.end(), std::greater<>());
  return added < removed;
}

/// Returns the position of the point on a Hilbert curve that fills a square of
/// 2^bits.
uint64_t placeOnCurve(const Point &point, int bits) {
  uint64_t x = static_cast<uint64_t>(point.tokens),
           y = static_cast<uint64_t>(point.decoderTokens), place = 0;
  for (int bit = bits - 1; bit >= 0; --bit) {
    uint64_t right = x >> bit & 1, up = y >> bit & 1;
    place = place << 2 | ((3 * right) ^ up);
    // The first and last quarter of the curve are rotated.
    if (up == 0) {
      uint64_t mask = (UINT64_C(1) << bit) - 1;
      if (right == 1)
        x = mask - (x & mask), y = mask - (y & mask);
      std::swap(x, y);
    }
  }
  return place;
}

/// Points in the order of a visit.
class Way {
public:
  Way(const std::vector<Point> &points, SampleOrder order,
      std::vector<int> visits)
      : points_(points), order_(order), visits_(std::move(visits)),
        worthALook_(points.size(), true) {}

  void improve();
  const std::vector<int> &visits() const { return visits_; }
  bool isBetterThan(const Way &other) const;

private:
  /// Largest distance between the two ends of a change, in visits.
  static constexpr int window = 48;
  static constexpr int mostRounds = 60, longestPiece = 3;

  int count() const { return static_cast<int>(visits_.size()); }
  /// Returns the step from one visit to another; 0 beyond the ends of the path.
  int64_t step(int from, int to) const {
    if (from < 0 || to < 0 || from >= count() || to >= count())
      return 0;
    return distance(points_[visits_[from]], points_[visits_[to]]);
  }
  bool tryReverse(int begin, int end);
  bool tryMove(int begin, int end, int to);
  bool improveAt(int visit);
  void look(int begin, int end);
  std::vector<int64_t> steps() const;

  const std::vector<Point> &points_;
  SampleOrder order_;
  std::vector<int> visits_;
  /// Points beside which something changed since they were tried.
  std::vector<bool> worthALook_;
};

void Way::look(int begin, int end) {
  for (int visit : {begin - 1, begin, end - 1, end})
    if (visit >= 0 && visit < count())
      worthALook_[visits_[visit]] = true;
}

/// Tries to visit [begin, end) in reverse.
bool Way::tryReverse(int begin, int end) {
  Steps removed = {step(begin - 1, begin), step(end - 1, end), 0};
  Steps added = {step(begin - 1, end - 1), step(begin, end), 0};
  if (!isBetter(order_, added, removed))
    return false;
  std::reverse(visits_.begin() + begin, visits_.begin() + end);
  look(begin, end);
  return true;
}

/// Visits [begin, end) between `to` - 1 and `to`, which are outside, in the
/// better of both directions.
bool Way::tryMove(int begin, int end, int to) {
  Steps removed = {step(begin - 1, begin), step(end - 1, end),
                   step(to - 1, to)};
  int64_t closed = step(begin - 1, end);
  Steps straight = {closed, step(to - 1, begin), step(end - 1, to)};
  Steps turned = {closed, step(to - 1, end - 1), step(begin, to)};
  bool turn = isBetter(order_, turned, straight);
  if (!isBetter(order_, turn ? turned : straight, removed))
    return false;
  auto first = visits_.begin();
  if (turn)
    std::reverse(first + begin, first + end);
  look(begin, end);
  int length = end - begin;
  if (to > end) {
    std::rotate(first + begin, first + end, first + to);
    look(to - length, to);
  } else {
    std::rotate(first + to, first + begin, first + end);
    look(to, to + length);
  }
  return true;
}

bool Way::improveAt(int visit) {
  int low = std::max(0, visit - window);
  int high = std::min(count(), visit + window);
  for (int end = visit + 2; end <= high; ++end)
    if (tryReverse(visit, end))
      return true;
  for (int begin = visit - 1; begin >= low; --begin)
    if (tryReverse(begin, visit + 1))
      return true;
  for (int length = 1; length <= longestPiece; ++length) {
    int end = visit + length;
    for (int to = low; end <= count() && to <= high; ++to)
      if ((to < visit || to > end) && tryMove(visit, end, to))
        return true;
  }
  return false;
}

void Way::improve() {
  bool changed = true;
  for (int round = 0; changed && round < mostRounds; ++round) {
    changed = false;
    for (int visit = 0; visit < count(); ++visit) {
      int point = visits_[visit];
      if (!worthALook_[point])
        continue;
      worthALook_[point] = false;
      changed |= improveAt(visit);
    }
  }
}

std::vector<int64_t> Way::steps() const {
  std::vector<int64_t> steps;
  for (int visit = 1; visit < count(); ++visit)
    steps.push_back(step(visit - 1, visit));
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

bool Way::isBetterThan(const Way &other) const {
  std::vector<int64_t> own = steps(), others = other.steps();
  if (order_ == SampleOrder::ShortestStep)
    return own < others;
  return std::accumulate(own.begin(), own.end(), INT64_C(0)) <
         std::accumulate(others.begin(), others.end(), INT64_C(0));
}

/// Orders distinct points, which are sorted by both keys first.
std::vector<int> salesman(const std::vector<Point> &points, SampleOrder order) {
  std::vector<int> sorted(points.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  Point low = points.front(), high = low;
  for (const Point &point : points) {
    low.decoderTokens = std::min(low.decoderTokens, point.decoderTokens);
    high.tokens = std::max(high.tokens, point.tokens);
    high.decoderTokens = std::max(high.decoderTokens, point.decoderTokens);
  }
  int64_t side = std::max(high.tokens - low.tokens,
                          high.decoderTokens - low.decoderTokens);
  int bits = 1;
  while (bits < 31 && side >> bits != 0)
    ++bits;
  std::vector<uint64_t> places;
  for (const Point &point : points)
    places.push_back(placeOnCurve(
        {point.tokens - low.tokens, point.decoderTokens - low.decoderTokens},
        bits));
  std::vector<int> alongCurve = sorted;
  std::sort(alongCurve.begin(), alongCurve.end(), [&](int a, int b) {
    return places[a] != places[b] ? places[a] < places[b] : a < b;
  });
  Way best(points, order, std::move(sorted));
  Way other(points, order, std::move(alongCurve));
  best.improve();
  other.improve();
  return other.isBetterThan(best) ? other.visits() : best.visits();
}

} // namespace

std::vector<int64_t> orderSamples(const std::vector<SampleLength> &lengths,
                                  SampleOrder order) {
  std::vector<int64_t> samples(lengths.size());
  std::iota(samples.begin(), samples.end(), 0);
  auto key = [&](int64_t sample) {
    return std::make_tuple(lengths[sample].tokens,
                           lengths[sample].decoderTokens, sample);
  };
  std::sort(samples.begin(), samples.end(),
            [&](int64_t a, int64_t b) { return key(a) < key(b); });
  bool onALine = std::all_of(
      lengths.begin(), lengths.end(), [&](const SampleLength &length) {
        return length.decoderTokens == lengths.front().decoderTokens;
      });
  if (order == SampleOrder::Length || onALine)
    return samples;
  // Equal samples are one point, because the step between them has length 0.
  std::vector<Point> points;
  std::vector<size_t> begins; // in `samples`
  for (size_t i = 0; i < samples.size(); ++i)
    if (points.empty() || !(points.back() == lengths[samples[i]])) {
      points.push_back(lengths[samples[i]]);
      begins.push_back(i);
    }
  begins.push_back(samples.size());
  std::vector<int64_t> visited;
  for (int point : salesman(points, order))
    visited.insert(visited.end(), samples.begin() + begins[point],
                   samples.begin() + begins[point + 1]);
  return visited;
}

} // namespace dyna
