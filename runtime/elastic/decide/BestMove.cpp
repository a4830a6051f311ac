//===- BestMove.cpp - Finds the cut with the largest net gain -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/decide/BestMove.h"

#include "runtime/planner/graph/LeastNumber.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace dyna {
namespace {

/// Returns the first layer of each stage, and the end of the last stage.
std::vector<int> bordersOf(const std::vector<int> &cut) {
  std::vector<int> borders(1, 0);
  for (int layers : cut)
    borders.push_back(borders.back() + layers);
  return borders;
}

std::vector<int64_t> sumsFromFront(const std::vector<int64_t> &values) {
  std::vector<int64_t> sums(1, 0);
  for (int64_t value : values)
    sums.push_back(sums.back() + value);
  return sums;
}

/// Returns the bytes of layers from `begin` to `end` that are also in another range.
int64_t sharedBytes(const std::vector<int64_t> &sums, int begin, int end,
                    int otherBegin, int otherEnd) {
  const int first = std::max(begin, otherBegin), last = std::min(end, otherEnd);
  return first < last ? sums[last] - sums[first] : 0;
}

/// Cuts under two limits.
class MoveSearch {
public:
  explicit MoveSearch(const MoveProblem &problem)
      : problem_(problem), layers_(static_cast<int>(problem.seconds.size())),
        stages_(static_cast<int>(problem.cut.size())),
        old_(bordersOf(problem.cut)), bytes_(sumsFromFront(problem.stateBytes)),
        sums_(static_cast<size_t>(layers_) * (layers_ + 1), 0) {
    for (int begin = 0; begin < layers_; ++begin) {
      double sum = 0;
      for (int end = begin; end < layers_; ++end)
        sums_[at(begin, end + 1)] = sum += problem.seconds[end];
    }
    if (problem.memory)
      for (int s = 0; s < stages_; ++s) {
        std::vector<int64_t> held;
        for (int l = 0; l < layers_; ++l)
          held.push_back(problem.memory->at(s, l));
        held_.push_back(sumsFromFront(held));
      }
  }

  struct Limits {
    double load = 0;  ///< of each stage, in seconds
    int64_t port = 0; ///< bytes that a stage sends, or gets
  };

  int64_t allBytes() const { return bytes_.back(); }

  /// Returns true if a cut is within the limits.
  bool reaches(const Limits &limits) const {
    std::vector<char> begins(layers_ + 1, 0);
    begins[0] = 1;
    for (int s = 0; s < stages_; ++s) {
      std::vector<int> change(layers_ + 2, 0);
      Range range;
      for (int begin = s; begin < layers_; ++begin) {
        if (!begins[begin])
          continue;
        widen(s, begin, limits, range);
        if (range.first > range.last)
          continue;
        ++change[range.first];
        --change[range.last + 1];
      }
      int ranges = 0;
      for (int end = 0; end <= layers_; ++end)
        begins[end] = (ranges += change[end]) > 0;
    }
    return begins[layers_];
  }

  /// Returns the smallest load up to `limits.load` that a cut reaches; that one does.
  double leastLoad(const Limits &limits, double least) const {
    return leastNumber(least, limits.load, [&](double load) {
      return reaches({load, limits.port});
    });
  }

  /// Returns the fewest bytes of a port up to `limits.port` that a cut reaches.
  int64_t leastPort(const Limits &limits) const {
    int64_t low = 0, high = limits.port;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (reaches({limits.load, middle}))
        high = middle;
      else
        low = middle + 1;
    }
    return high;
  }

  /// Returns the cut within the limits of the least sum of squares. There is one.
  std::vector<int> mostEven(const Limits &limits) const {
    struct Rest {
      double squares = 0;
      int take = 0; ///< layers of its first stage; 0: no cut
    };
    std::vector<std::vector<Rest>> rest(stages_ + 1,
                                        std::vector<Rest>(layers_ + 1));
    rest[stages_][layers_].take = 1;
    for (int s = stages_ - 1; s >= 0; --s) {
      Range range;
      for (int begin = s; begin < layers_; ++begin) {
        widen(s, begin, limits, range);
        Rest &best = rest[s][begin];
        for (int end = range.first; end <= range.last; ++end) {
          if (rest[s + 1][end].take == 0)
            continue;
          const double load = sums_[at(begin, end)] + wait(s);
          const double squares = load * load + rest[s + 1][end].squares;
          // Take as many layers as possible. Sums of the same numbers differ by
          // rounding.
          if (best.take == 0 || squares <= best.squares * (1 + 1e-12))
            best = {squares, end - begin};
        }
      }
    }
    std::vector<int> cut;
    for (int s = 0, begin = 0; s < stages_; begin += cut.back(), ++s)
      cut.push_back(rest[s][begin].take);
    return cut;
  }

private:
  /// Ends that a stage may have: all from the first one to the last one.
  struct Range {
    int first = 0, last = 0;
  };

  size_t at(int begin, int end) const {
    return static_cast<size_t>(begin) * (layers_ + 1) + end;
  }

  double wait(int stage) const {
    return problem_.waits.empty() ? 0 : problem_.waits[stage];
  }

  int64_t kept(int stage, int begin, int end) const {
    return sharedBytes(bytes_, begin, end, old_[stage], old_[stage + 1]);
  }

  bool canEndAt(int stage, int begin, int end, const Limits &limits) const {
    if (!(sums_[at(begin, end)] + wait(stage) <= limits.load))
      return false;
    if (problem_.memory && held_[stage][end] - held_[stage][begin] >
                               problem_.memory->limits[stage])
      return false;
    return bytes_[end] - bytes_[begin] - kept(stage, begin, end) <= limits.port;
  }

  /// Makes the range of a begin into that of a later one. Whatever begins later may end
  /// later, and has to, as it shares less with the present stage.
  void widen(int stage, int begin, const Limits &limits, Range &range) const {
    const int64_t own = bytes_[old_[stage + 1]] - bytes_[old_[stage]];
    range.first = std::max(range.first, begin + 1);
    while (range.first <= layers_ &&
           own - kept(stage, begin, range.first) > limits.port)
      ++range.first;
    range.last = std::max(range.last, begin);
    while (range.last < layers_ &&
           canEndAt(stage, begin, range.last + 1, limits))
      ++range.last;
  }

  const MoveProblem &problem_;
  const int layers_, stages_;
  const std::vector<int> old_;
  const std::vector<int64_t> bytes_;
  std::vector<double> sums_; ///< [begin][end]
  std::vector<std::vector<int64_t>> held_;
};

double slowestOf(const std::vector<double> &loads) {
  return *std::max_element(loads.begin(), loads.end());
}

double stepSecondsOf(const MoveProblem &problem, const std::vector<int> &cut) {
  return problem.clock
             ? problem.clock->seconds(cut)
             : stepSeconds(stageLoads(problem.seconds, cut, problem.waits),
                           problem.microBatches);
}

} // namespace

MovedBytes movedBytes(const std::vector<int64_t> &stateBytes,
                      const std::vector<int> &from,
                      const std::vector<int> &to) {
  const std::vector<int64_t> sums = sumsFromFront(stateBytes);
  const std::vector<int> old = bordersOf(from), next = bordersOf(to);
  MovedBytes moved;
  for (size_t s = 0; s < from.size(); ++s) {
    const int64_t kept =
        sharedBytes(sums, next[s], next[s + 1], old[s], old[s + 1]);
    const int64_t sent = sums[old[s + 1]] - sums[old[s]] - kept;
    const int64_t got = sums[next[s + 1]] - sums[next[s]] - kept;
    moved.all += got;
    moved.port = std::max({moved.port, sent, got});
  }
  return moved;
}

void weighAgain(const MoveProblem &problem, double stepSecondsNow,
                double stepSecondsThen, double priceSeconds,
                WeighedMove &move) {
  const double saved = stepSecondsNow - stepSecondsThen;
  move.stepSecondsNow = stepSecondsNow;
  move.stepSecondsThen = stepSecondsThen;
  move.priceSeconds = priceSeconds;
  move.gainSeconds = saved * static_cast<double>(problem.stepsLeft);
  const double steps = saved > 0 ? std::ceil(priceSeconds / saved) : -1;
  // From 9e15 on a double cannot count single steps.
  move.stepsToEarn = steps < 9e15 ? static_cast<int64_t>(steps) : -1;
  move.pays = saved > 0 && saved >= problem.test.leastShare * stepSecondsNow &&
              move.gainSeconds >= (1 + problem.test.margin) * priceSeconds;
}

WeighedMove weighMove(const MoveProblem &problem, const std::vector<int> &cut) {
  WeighedMove move;
  move.cut = cut;
  const double now = stepSecondsOf(problem, problem.cut);
  if (cut == problem.cut) {
    move.stepSecondsNow = move.stepSecondsThen = now;
    return move;
  }
  move.bytes = movedBytes(problem.stateBytes, problem.cut, cut);
  weighAgain(problem, now, stepSecondsOf(problem, cut),
             problem.price.seconds(move.bytes.port), move);
  return move;
}

/// Finds the best cut of the formula.
static WeighedMove bestByFormula(const MoveProblem &problem) {
  const WeighedMove stay = weighMove(problem, problem.cut);
  const auto others = static_cast<double>(problem.microBatches - 1);
  // The time of all steps for each second of the slowest stage.
  const double perLoad = others * static_cast<double>(problem.stepsLeft);
  if (!(perLoad > 0))
    return stay;
  const double factor = 1 + problem.test.margin;
  const double fixed = factor * problem.price.seconds(0);
  const double perByte = factor * problem.price.secondsPerByte;
  const double now =
      slowestOf(stageLoads(problem.seconds, problem.cut, problem.waits));
  const double most =
      now - problem.test.leastShare * stay.stepSecondsNow / others;
  constexpr double slack = 1 + 1e-12; // sums are rounded
  const MoveSearch search(problem);
  MoveSearch::Limits limits{0, search.allBytes()}, best;
  double value = 0, least = 0;
  bool found = false;
  while (limits.port >= 0) {
    limits.load = std::min(most, now - (value + fixed) / perLoad) * slack;
    if (!(limits.load >= least) || !search.reaches(limits))
      break;
    limits.load = least = search.leastLoad(limits, least);
    limits.port = search.leastPort(limits);
    const double room = perLoad * (now - limits.load) - fixed;
    const double next = room - perByte * static_cast<double>(limits.port);
    if (limits.load < now && (next > value || (!found && next >= 0))) {
      best = limits;
      value = next;
      found = true;
    }
    if (!(perByte > 0))
      break;
    // A slower cut is only better if it sends fewer bytes than this.
    const double bytes = std::floor((room - value) / perByte);
    limits.port = bytes < static_cast<double>(limits.port)
                      ? static_cast<int64_t>(bytes)
                      : limits.port - 1;
  }
  if (!found)
    return stay;
  WeighedMove move = weighMove(problem, search.mostEven(best));
  return move.pays ? move : stay;
}

namespace {

bool hasRoom(const MoveProblem &problem, const std::vector<int> &cut) {
  if (!problem.memory)
    return true;
  int layer = 0;
  for (size_t s = 0; s < cut.size(); ++s) {
    int64_t held = 0;
    for (int i = 0; i < cut[s]; ++i)
      held += problem.memory->at(static_cast<int>(s), layer++);
    if (held > problem.memory->limits[s])
      return false;
  }
  return true;
}

/// Returns the number of cuts, or a number above `mostCuts` if there are more.
int64_t countCuts(int layers, int stages) {
  int64_t count = 1; // of ways to place some of the borders
  for (int border = 1; border < stages && count <= mostCuts; ++border)
    count = count * (layers - border) / border;
  return count;
}

/// Calls `add` with each way to cut the rest of the layers.
void forEachCut(int layers, int stages, std::vector<int> &cut,
                const std::function<void()> &add) {
  if (stages == 1) {
    cut.push_back(layers);
    add();
    cut.pop_back();
    return;
  }
  for (int first = layers - stages + 1; first >= 1; --first) {
    cut.push_back(first);
    forEachCut(layers - first, stages - 1, cut, add);
    cut.pop_back();
  }
}

/// Cuts to simulate, the most promising one first.
class Candidates {
public:
  struct One {
    std::vector<int> cut;
    double most; ///< that it gains beyond the price that the test asks for
  };

  Candidates(const MoveProblem &problem, double now)
      : problem_(problem), now_(now) {
    const auto layers = static_cast<int>(problem.seconds.size());
    const auto stages = static_cast<int>(problem.cut.size());
    std::vector<int> cut;
    if (countCuts(layers, stages) <= mostCuts)
      forEachCut(layers, stages, cut, [&] { add(cut); });
    else
      addNear();
    // As many layers as possible in early stages come first among equal ones.
    std::sort(list_.begin(), list_.end(), [](const One &a, const One &b) {
      return a.most != b.most ? a.most > b.most : a.cut > b.cut;
    });
  }

  const std::vector<One> &list() const { return list_; }

private:
  void add(const std::vector<int> &cut) {
    if (cut == problem_.cut || !hasRoom(problem_, cut))
      return;
    const double saved = now_ - problem_.clock->bound(cut);
    const double price = problem_.price.seconds(
        movedBytes(problem_.stateBytes, problem_.cut, cut).port);
    const double most = saved * static_cast<double>(problem_.stepsLeft) -
                        (1 + problem_.test.margin) * price;
    if (most >= 0 && saved > 0)
      list_.push_back({cut, most});
  }

  /// Adds the cuts of the formula, and those that differ from them by a layer.
  void addNear() {
    MoveProblem formula = problem_;
    formula.clock = nullptr;
    std::set<std::vector<int>> cuts = {bestByFormula(formula).cut};
    formula.price = {};
    formula.test = {0, 0};
    cuts.insert(bestByFormula(formula).cut);
    for (std::vector<int> cut : std::set<std::vector<int>>(cuts))
      for (size_t s = 0; s + 1 < cut.size(); ++s)
        for (int step : {1, -1}) {
          cut[s] += step;
          cut[s + 1] -= step;
          if (cut[s] > 0 && cut[s + 1] > 0)
            cuts.insert(cut);
          cut[s] -= step;
          cut[s + 1] += step;
        }
    for (const std::vector<int> &cut : cuts)
      add(cut);
  }

  const MoveProblem &problem_;
  const double now_;
  std::vector<One> list_;
};

WeighedMove bestSimulated(const MoveProblem &problem) {
  WeighedMove best = weighMove(problem, problem.cut);
  const int64_t items =
      problem.clock->items(static_cast<int>(problem.cut.size()));
  int64_t left = mostItems;
  double value = 0;
  const Candidates candidates(problem, best.stepSecondsNow);
  for (const Candidates::One &one : candidates.list()) {
    if ((best.pays && one.most <= value) || left < 0)
      break;
    left -= items;
    WeighedMove move = weighMove(problem, one.cut);
    const double beyond =
        move.gainSeconds - (1 + problem.test.margin) * move.priceSeconds;
    if (!move.pays || (best.pays && beyond <= value))
      continue;
    value = beyond;
    best = std::move(move);
  }
  return best;
}

} // namespace

WeighedMove bestMove(const MoveProblem &problem) {
  return problem.clock ? bestSimulated(problem) : bestByFormula(problem);
}

} // namespace dyna
