//===- CapProgram.cpp - Minimises sums of slices below caps ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/CapProgram.h"

#include <algorithm>
#include <cassert>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns the smallest `values[k] + (forward[k] + backward[k])` of slices
/// below the caps.
double smallestSum(const double *values, const double *forward,
                   const double *backward, int64_t count,
                   const SliceCaps &caps) {
  constexpr int64_t lanes = 4;
  double smallest[lanes] = {infinity, infinity, infinity, infinity};
  auto look = [&](int64_t k, int64_t lane) {
    const double total = forward[k] + backward[k];
    double sum = values[k] + total;
    sum = forward[k] <= caps.forward ? sum : infinity;
    sum = backward[k] <= caps.backward ? sum : infinity;
    sum = total <= caps.total ? sum : infinity;
    smallest[lane] = sum < smallest[lane] ? sum : smallest[lane];
  };
  int64_t k = 0;
  // Use separate lanes, so that the compiler vectorizes them.
  for (; k + lanes <= count; k += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      look(k + lane, lane);
  for (; k < count; ++k)
    look(k, 0);
  return std::min(std::min(smallest[0], smallest[1]),
                  std::min(smallest[2], smallest[3]));
}

/// Copies the row from begin `first` on to the end of another table.
void appendRow(const JoinedTable &from, int64_t row, int64_t first,
               JoinedTable &to) {
  const int64_t begin = from.at(row, first), end = from.offsets[row + 1];
  auto append = [&](const auto &values, auto &copy) {
    if (!values.empty())
      copy.insert(copy.end(), values.begin() + begin, values.begin() + end);
  };
  for (size_t mode = 0; mode < from.modes.size(); ++mode) {
    append(from.modes[mode].forward, to.modes[mode].forward);
    append(from.modes[mode].backward, to.modes[mode].backward);
    append(from.modes[mode].lowForward, to.modes[mode].lowForward);
    append(from.modes[mode].lowBackward, to.modes[mode].lowBackward);
    append(from.modes[mode].bytes, to.modes[mode].bytes);
  }
  to.firsts.push_back(first);
  to.offsets.push_back(to.offsets.back() + end - begin);
}

} // namespace

int64_t firstBegin(const JoinedTable &table, const ModeTable &mode, int64_t row,
                   int64_t guess, const SliceCaps &caps) {
  const double *forward = mode.lowestForward() + table.offsets[row],
               *backward = mode.lowestBackward() + table.offsets[row];
  const int64_t first = table.firsts[row], count = table.count(row);
  int64_t k = std::clamp<int64_t>(guess - first, 0, count);
  while (k < count && !caps.allow(forward[k], backward[k]))
    ++k;
  while (k > 0 && caps.allow(forward[k - 1], backward[k - 1]))
    --k;
  return first + k;
}

CapProgram::CapProgram(const SliceProblem &problem, const SliceTables &tables)
    : problem_(problem), tables_(tables), sums_(tables.groups.size()),
      packed_(tables.groups.size()) {
  for (const JoinedTable &table : tables.tables)
    values_.emplace_back(table.rows(), 0), seen_.emplace_back(table.rows());
  for (size_t group = 0; group < tables.groups.size(); ++group)
    packed_[group].resize(tables.groups[group].samples.size() + 1);
  findLowest();
}

/// Finds the smallest possible largest cost of a cut, for each of the three
/// costs. Every group may use any number of joined samples, so the smallest of
/// these counts.
void CapProgram::findLowest() {
  lowest_ = {0, 0, 0};
  std::vector<SliceCaps> ofGroup(tables_.groups.size());
  for (const JoinedTable &table : tables_.tables) {
    std::vector<SliceCaps> values(table.rows());
    values[0] = {0, 0, 0};
    for (int64_t row = 1; row < table.rows(); ++row)
      for (const ModeTable &mode : table.modes)
        for (int64_t begin = 0; begin < table.count(row); ++begin) {
          const double f = mode.forward[table.offsets[row] + begin],
                       b = mode.backward[table.offsets[row] + begin];
          SliceCaps &own = values[row], &before = values[begin];
          own.forward = std::min(own.forward, std::max(before.forward, f));
          own.backward = std::min(own.backward, std::max(before.backward, b));
          own.total = std::min(own.total, std::max(before.total, f + b));
        }
    lowestOfTable_.emplace_back();
    for (size_t group = 0; group < ofGroup.size(); ++group) {
      if (table.tails[group] < 0)
        continue;
      const SliceCaps &own =
          values[table.lastRow(tables_.groups[group], group)];
      for (SliceCaps *caps : {&ofGroup[group], &lowestOfTable_.back()}) {
        caps->forward = std::min(caps->forward, own.forward);
        caps->backward = std::min(caps->backward, own.backward);
        caps->total = std::min(caps->total, own.total);
      }
    }
  }
  for (const BundleCosts &bundle : tables_.bundles) {
    SliceCaps caps;
    for (const SliceCost &cost : bundle.modes) {
      caps.forward = std::min(caps.forward, cost.forward);
      caps.backward = std::min(caps.backward, cost.backward);
      caps.total = std::min(caps.total, cost.forward + cost.backward);
    }
    ofGroup.push_back(caps);
  }
  for (const SliceCaps &caps : ofGroup) {
    lowest_.forward = std::max(lowest_.forward, caps.forward);
    lowest_.backward = std::max(lowest_.backward, caps.backward);
    lowest_.total = std::max(lowest_.total, caps.total);
  }
}

int64_t CapProgram::reached(size_t group) {
  const LengthGroup &own = tables_.groups[group];
  const JoinedTable &table = tables_.tables[0];
  caps_ = {};
  weights_ = {};
  run(0);
  if (values_[0][table.lastRow(own, group)] < infinity)
    return own.tokens;
  int64_t row = own.rest > 0 ? own.units : own.units - 1;
  while (values_[0][row] == infinity)
    --row;
  return row * tables_.grain;
}

/// Returns the weighted cost that a slice or bundle adds to the sum.
double CapProgram::costOf(double f, double b, int64_t bytes) const {
  return weights_.seconds * (f + b) +
         weights_.bytes * static_cast<double>(bytes);
}

double CapProgram::costOf(const ModeTable &mode, int64_t at) const {
  return costOf(mode.forward[at], mode.backward[at],
                mode.bytes.empty() ? 0 : mode.bytes[at]);
}

/// `starts` has the first begin of each mode in the row before, and gets the row's.
double CapProgram::scan(const JoinedTable &table, int64_t row,
                        int64_t *starts) const {
  const double *values = values_[table.joined - 1].data();
  double smallest = infinity;
  for (size_t number = 0; number < table.modes.size(); ++number) {
    const ModeTable &mode = table.modes[number];
    const int64_t start = firstBegin(table, mode, row, starts[number], caps_),
                  at = table.at(row, start), end = table.offsets[row + 1];
    starts[number] = start;
    if (!weights_.areBytesPriced()) {
      smallest = std::min(
          smallest, smallestSum(values + start, mode.forward.data() + at,
                                mode.backward.data() + at, end - at, caps_));
      continue;
    }
    for (int64_t k = 0; k < end - at; ++k)
      if (caps_.allow(mode.forward[at + k], mode.backward[at + k]))
        smallest = std::min(smallest, values[start + k] + costOf(mode, at + k));
  }
  return smallest;
}

void CapProgram::narrow(const SliceCaps &caps) {
  std::vector<JoinedTable> tables;
  for (const JoinedTable &all : tables_.tables) {
    const JoinedTable &from = tableOf(all.joined);
    JoinedTable to = {from.joined, from.units, {0}, {}, from.tails, {}, {}};
    to.modes.resize(from.modes.size());
    to.modeNumbers = from.modeNumbers;
    std::vector<int64_t> starts(from.modes.size(), 0);
    for (int64_t row = 0; row < from.rows(); ++row) {
      int64_t first = from.firsts[row] + from.count(row);
      for (size_t mode = 0; mode < from.modes.size(); ++mode) {
        starts[mode] =
            firstBegin(from, from.modes[mode], row, starts[mode], caps);
        first = std::min(first, starts[mode]);
      }
      appendRow(from, row, first, to);
    }
    tables.push_back(std::move(to));
  }
  narrow_ = std::move(tables);
}

void CapProgram::run(size_t number) {
  const JoinedTable &table = tableOf(static_cast<int64_t>(number) + 1);
  std::vector<double> &values = values_[number];
  std::vector<int64_t> starts(table.modes.size(), 0);
  values[0] = 0;
  for (int64_t row = 1; row < table.rows(); ++row)
    values[row] = scan(table, row, starts.data());
}

/// Returns the longest slice with which the value of the row is reached.
CapProgram::Step CapProgram::lastSlice(const JoinedTable &table,
                                       int64_t row) const {
  const std::vector<double> &values = values_[table.joined - 1];
  const int64_t end = table.firsts[row] + table.count(row);
  for (int64_t begin = table.firsts[row]; begin < end; ++begin)
    for (size_t mode = 0; mode < table.modes.size(); ++mode) {
      const int64_t at = table.at(row, begin);
      const ModeTable &own = table.modes[mode];
      if (caps_.allow(own.forward[at], own.backward[at]) &&
          values[begin] + costOf(own, at) == values[row])
        return {begin, mode};
    }
  assert(false && "some slice reaches the value");
  return {};
}

/// Looks at the slices of one sample of the group, as far as they are not seen.
void CapProgram::note(const JoinedTable &table, size_t group,
                      CappedCuts &cuts) {
  std::vector<bool> &seen = seen_[table.joined - 1];
  for (int64_t row = table.lastRow(tables_.groups[group], group);
       row > 0 && !seen[row];) {
    seen[row] = true;
    Step step = lastSlice(table, row);
    const int64_t at = table.at(row, step.begin);
    cuts.note(table.modes[step.mode].forward[at],
              table.modes[step.mode].backward[at]);
    row = step.begin;
  }
}

std::vector<TokenSlice> CapProgram::slicesOf(const JoinedTable &table,
                                             size_t group) const {
  std::vector<TokenSlice> slices;
  int64_t end = tables_.groups[group].tokens;
  for (int64_t row = table.lastRow(tables_.groups[group], group); row > 0;) {
    Step step = lastSlice(table, row);
    const int64_t begin = step.begin * tables_.grain;
    slices.push_back({end - begin, table.modeNumbers[step.mode]});
    end = begin;
    row = step.begin;
  }
  std::reverse(slices.begin(), slices.end());
  return slices;
}

/// Returns smallest sum of all samples of a group, over all ways to join them.
double CapProgram::pack(size_t group) {
  const LengthGroup &own = tables_.groups[group];
  std::vector<double> &sums = sums_[group];
  sums.assign(own.samples.size() + 1, infinity);
  sums[0] = 0;
  for (int64_t samples = 1; samples <= own.count(); ++samples)
    for (const JoinedTable &table : tables_.tables) {
      if (table.joined > samples)
        break;
      const double value = values_[table.joined - 1][table.lastRow(own, group)];
      if (sums[samples - table.joined] + value <= sums[samples]) {
        sums[samples] = sums[samples - table.joined] + value;
        packed_[group][samples] = table.joined;
      }
    }
  return sums.back();
}

/// Returns the mode with the smallest sum below the caps; -1 if there is none.
int CapProgram::modeOf(const BundleCosts &bundle) const {
  int best = -1;
  double least = infinity;
  for (size_t mode = 0; mode < bundle.modes.size(); ++mode) {
    const SliceCost &cost = bundle.modes[mode];
    const double own = costOf(cost.forward, cost.backward, cost.bytes);
    if (caps_.allow(cost.forward, cost.backward) && own < least)
      least = own, best = static_cast<int>(mode);
  }
  return best;
}

CappedCuts CapProgram::solve(const SliceCaps &caps, double) {
  return solveWeighted(caps, {});
}

CappedCuts CapProgram::solveWeighted(const SliceCaps &caps,
                                     const SliceWeights &weights) {
  caps_ = caps;
  weights_ = weights;
  double sum = 0;
  for (size_t number = 0; number < tables_.tables.size(); ++number) {
    const SliceCaps &low = lowestOfTable_[number];
    seen_[number].assign(seen_[number].size(), false);
    if (low.forward <= caps.forward && low.backward <= caps.backward &&
        low.total <= caps.total)
      run(number);
    else
      std::fill(values_[number].begin() + 1, values_[number].end(), infinity);
  }
  for (size_t group = 0; group < tables_.groups.size() && sum < infinity;
       ++group)
    sum += pack(group);
  CappedCuts cuts;
  for (const BundleCosts &bundle : tables_.bundles) {
    const int mode = modeOf(bundle);
    if (mode < 0)
      return {};
    sum += costOf(bundle.modes[mode].forward, bundle.modes[mode].backward,
                  bundle.modes[mode].bytes);
    cuts.note(bundle.modes[mode].forward, bundle.modes[mode].backward);
  }
  if (sum == infinity)
    return {};
  for (size_t group = 0; group < tables_.groups.size(); ++group)
    for (int64_t left = tables_.groups[group].count(); left > 0;
         left -= packed_[group][left])
      note(tableOf(packed_[group][left]), group, cuts);
  cuts.sum = sum;
  return cuts;
}

SlicePlan CapProgram::plan() const {
  SlicePlan plan;
  for (size_t group = 0; group < tables_.groups.size(); ++group) {
    const LengthGroup &own = tables_.groups[group];
    auto sample = own.samples.begin();
    for (int64_t left = own.count(); left > 0;) {
      const JoinedTable &table = tableOf(packed_[group][left]);
      auto end = sample + table.joined;
      plan.cuts.push_back({{sample, end}, slicesOf(table, group)});
      sample = end;
      left -= table.joined;
    }
  }
  for (size_t bundle = 0; bundle < tables_.bundles.size(); ++bundle)
    plan.bundles.push_back(
        {problem_.bundles[bundle], modeOf(tables_.bundles[bundle])});
  return plan;
}

} // namespace dyna
