//===- ProfileGrid.cpp - Chooses what to measure, and summarises times ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/ProfileGrid.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace dyna {
namespace {

constexpr int fewTargets = 25; ///< per cent

/// Samples of this length, and one of what is left.
std::vector<int64_t> fill(int64_t tokens, int64_t length) {
  std::vector<int64_t> lengths(tokens / length, length);
  if (tokens % length != 0)
    lengths.push_back(tokens % length);
  return lengths;
}

/// Returns an odd size between this power of two and the one below, another one
/// for each `index`.
int64_t oddSize(int64_t tokens, int index) {
  constexpr int parts = 16, jump = 3;
  const int64_t less = (1 + index * jump % (parts / 2)) * tokens / parts;
  return std::max(tokens / 2 + 1, (tokens - less) | 1);
}

/// Returns the next number of a sequence between 0 and 1.
double nextPart(uint64_t &state) {
  constexpr double scale = 1.0 / (UINT64_C(1) << 53);
  return static_cast<double>(dyna_mix64(state++) >> 11) * scale;
}

/// Returns a number between the two, evenly in the logarithm.
int64_t between(int64_t low, int64_t high, double part) {
  double factor = static_cast<double>(high) / static_cast<double>(low);
  auto value =
      static_cast<int64_t>(static_cast<double>(low) * std::pow(factor, part));
  return std::clamp(value, low, high);
}

} // namespace

int64_t ProfileShape::tokens() const {
  return std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
}

int64_t ProfileShape::targets() const {
  int64_t targets = 0;
  for (int64_t length : lengths)
    targets += targetsOf(length);
  return targets;
}

std::vector<ProfileShape> profileGrid(int64_t mostTokens, int64_t positions) {
  std::vector<int64_t> sizes;
  for (int64_t tokens = shortestProfiled; tokens < mostTokens; tokens *= 2)
    sizes.push_back(tokens);
  sizes.push_back(mostTokens);
  std::vector<ProfileShape> grid;
  // Plans may have slices this short, and they show the least time of a call.
  for (int64_t tokens = 1; tokens < std::min(shortestProfiled, mostTokens);
       tokens *= 2)
    grid.push_back(
        {fill(tokens, positions > 0 ? std::min(tokens, positions) : tokens)});
  int next = 0;
  for (int64_t tokens : sizes) {
    int64_t longest = positions > 0 ? std::min(tokens, positions) : tokens;
    grid.push_back({fill(tokens, longest), fewTargets});
    for (int64_t length = longest;
         length == longest || length >= shortestProfiled; length /= 4) {
      const bool isWhole = length == longest;
      grid.push_back(
          {fill(isWhole ? tokens : oddSize(tokens, next++), length)});
    }
  }
  auto size = [](const ProfileShape &shape) {
    return std::make_tuple(shape.tokens(), shape.targets(),
                           shape.lengths.size());
  };
  std::sort(grid.begin(), grid.end(),
            [&](const ProfileShape &a, const ProfileShape &b) {
              return size(a) < size(b);
            });
  return grid;
}

std::vector<ProfileShape> randomShapes(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed) {
  uint64_t state = dyna_mix64(seed);
  const int64_t least = std::min(shortestProfiled, mostTokens);
  const int64_t longest =
      positions > 0 ? std::min(positions, mostTokens) : mostTokens;
  std::vector<ProfileShape> shapes(count);
  for (ProfileShape &shape : shapes) {
    shape.isHeldOut = true;
    int64_t tokens = between(least, mostTokens, nextPart(state));
    // The limit makes samples of one length or of all lengths, as real data
    // have both.
    int64_t limit = between(std::min(least, longest), longest, nextPart(state));
    while (tokens > 0) {
      int64_t length = std::min(
          tokens, between(std::min(least, limit), limit, nextPart(state)));
      shape.lengths.push_back(length);
      tokens -= length;
    }
  }
  return shapes;
}

/// Slices between two powers of two of earlier tokens, and so on up to `tokens`.
static std::vector<int64_t> slicesOfAllSizes(int64_t tokens) {
  constexpr int64_t first = 16, quarter = 4;
  std::vector<int64_t> slices = {first};
  for (int64_t at = first; at < tokens; at *= 2) {
    int64_t room = std::min(2 * at, tokens) - at;
    for (int64_t size = 1; size <= room;
         size = std::max(shortestProfiled, size * quarter)) {
      slices.push_back(size);
      room -= size;
    }
    if (room > 0)
      slices.push_back(room);
  }
  return slices;
}

std::vector<ProfileShape> contextGrid(int64_t mostTokens, int64_t positions) {
  const int64_t longest =
      positions > 0 ? std::min(positions, mostTokens) : mostTokens;
  std::vector<ProfileShape> grid;
  for (int64_t tokens = longest; tokens >= shortestSliced; tokens /= 4) {
    grid.push_back({{tokens}});
    grid.back().slices = slicesOfAllSizes(tokens);
  }
  std::reverse(grid.begin(), grid.end());
  return grid;
}

std::vector<ProfileShape> randomSlices(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed) {
  const int64_t longest =
      positions > 0 ? std::min(positions, mostTokens) : mostTokens;
  std::vector<ProfileShape> shapes;
  if (longest < shortestSliced)
    return shapes;
  uint64_t state = dyna_mix64(seed);
  for (int i = 0; i < count; ++i) {
    ProfileShape &shape = shapes.emplace_back();
    shape.isHeldOut = true;
    int64_t tokens = between(shortestSliced, longest, nextPart(state));
    shape.lengths = {tokens};
    while (tokens > 0) {
      const int64_t size =
          std::min(tokens, between(shortestProfiled, longest, nextPart(state)));
      shape.slices.push_back(size);
      tokens -= size;
    }
  }
  return shapes;
}

double medianSeconds(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t middle = times.size() / 2;
  return times.size() % 2 != 0 ? times[middle]
                               : (times[middle - 1] + times[middle]) / 2;
}

double typicalSeconds(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t most = times.size() / 2 + 1;
  size_t first = 0;
  for (size_t i = 1; i + most <= times.size(); ++i)
    if (times[i + most - 1] - times[i] < times[first + most - 1] - times[first])
      first = i;
  return medianSeconds({times.begin() + static_cast<ptrdiff_t>(first),
                        times.begin() + static_cast<ptrdiff_t>(first + most)});
}

std::string MachineNoise::describe() const {
  const std::string differ =
      formatText("repeats of a call differ by %.1f %%", 100 * spread);
  return withheld < 0
             ? differ
             : formatText("ranks had no core for %.1f %% of the time, %s",
                          100 * withheld, differ);
}

void Measurements::add(const CostKey &function, const Load &load,
                       CallSeconds seconds, bool waits) {
  Times &times = calls_[{
      function, {load.queries, load.pairs, load.targets, load.context}}];
  const bool isOfDevice = seconds.core < 0;
  times.seconds.push_back(waits || isOfDevice ? seconds.wall : seconds.core);
  times.onWall |= waits;
  isOfDevices_ |= isOfDevice;
  if (waits || isOfDevice)
    return;
  wall_ += seconds.wall;
  core_ += seconds.core;
}

std::vector<Measurements::Typical> Measurements::typical() const {
  std::vector<Typical> result;
  for (const auto &[call, times] : calls_) {
    const auto &[queries, pairs, targets, context] = call.second;
    result.push_back(
        {call.first, callLoad(queries, pairs, targets), times.typical()});
    result.back().load.context = context;
  }
  return result;
}

MachineNoise Measurements::noise() const {
  MachineNoise noise;
  // Both clocks are not read at the same moment, so the difference may be
  // negative.
  if (wall_ > 0)
    noise.withheld = std::max(0.0, 1 - core_ / wall_);
  else if (isOfDevices_)
    noise.withheld = -1;
  double sum = 0;
  int count = 0;
  for (const auto &[call, times] : calls_) {
    const double typical = times.typical();
    if (times.seconds.size() < 2 || typical < shortCall)
      continue;
    double distance = 0;
    for (double time : times.seconds)
      distance += std::abs(time - typical);
    sum += distance / static_cast<double>(times.seconds.size()) / typical;
    ++count;
  }
  noise.spread = count > 0 ? sum / count : 0;
  return noise;
}

cost::Table Measurements::table() const {
  cost::Table table;
  const CostKey *last = nullptr;
  const std::vector<Typical> all = typical();
  for (const Typical &one : all) {
    const CostKey &key = one.function;
    if (!last || *last < key || key < *last) {
      cost::Entry &entry = *table.add_entries();
      entry.set_kind(key.kind);
      if (key.tp > 1 || key.sp)
        entry.set_tp(key.tp);
      entry.set_sp(key.sp);
      entry.set_direction(key.direction);
    }
    last = &key;
    cost::Point &point =
        *table.mutable_entries(table.entries_size() - 1)->add_points();
    point.set_tokens(one.load.queries);
    point.set_pairs(one.load.pairs);
    point.set_targets(one.load.targets);
    point.set_context(one.load.context);
    point.set_seconds(one.seconds);
  }
  return table;
}

int repeatsOf(const ProfileShape &shape) {
  constexpr int64_t small = 1024, most = 4;
  const int64_t least = shape.isHeldOut ? 2 : 1;
  return static_cast<int>(
      std::clamp(small / std::max<int64_t>(shape.tokens(), 1), least, most));
}

std::vector<size_t> passOrder(size_t shapes, int pass) {
  std::vector<size_t> order(shapes);
  std::iota(order.begin(), order.end(), size_t(0));
  if (pass == 0 || shapes < 3)
    return order;
  // Jump by about the golden section, with no common divisor.
  size_t jump = std::max<size_t>(1, shapes * 5 / 8);
  while (std::gcd(jump, shapes) != 1)
    ++jump;
  for (size_t i = 0; i < shapes; ++i)
    order[i] = (static_cast<size_t>(pass) + i * jump) % shapes;
  return order;
}

StatusOr<ProfilePasses>
runProfile(const std::vector<ProfileShape> &shapes, int firstPass, int passes,
           const std::function<StatusOr<bool>()> &isOver,
           const std::function<Status(const ProfileShape &, int pass)> &run) {
  ProfilePasses done;
  for (; done.passes < passes; ++done.passes, done.reached = 0)
    for (size_t next : passOrder(shapes.size(), firstPass + done.passes)) {
      if (done.passes > 0 || done.reached > 0) {
        DYNA_ASSIGN_OR_RETURN(bool over, isOver());
        if (over)
          return done;
      }
      DYNA_RETURN_IF_ERROR(run(shapes[next], firstPass + done.passes));
      ++done.reached;
    }
  return done;
}

} // namespace dyna
