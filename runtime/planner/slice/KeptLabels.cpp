//===- KeptLabels.cpp - Holds plans as sums of seconds and bytes ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/KeptLabels.h"

#include <algorithm>

namespace dyna {

KeptLabels::KeptLabels(const SliceProblem &problem, const SliceTables &tables,
                       const CapProgram &program, const SliceCaps &caps,
                       double price)
    : problem_(problem), tables_(tables), program_(program), caps_(caps),
      price_(price), behindGroup_(tables.groups.size()),
      behindBundle_(tables.bundles.size()), fronts_(tables.groups.size()) {
  double behind = 0;
  for (size_t bundle = tables.bundles.size(); bundle-- > 0;) {
    behindBundle_[bundle] = behind;
    const SliceCost &cost =
        tables.bundles[bundle].modes[program.modeOf(tables.bundles[bundle])];
    behind += program.costOf(cost.forward, cost.backward, cost.bytes);
  }
  for (size_t group = tables.groups.size(); group-- > 0;) {
    behindGroup_[group] = behind;
    behind += program.sumOf(group, tables.groups[group].count());
    fronts_[group].resize(tables.tables.size());
  }
  all_ = behind;
}

/// Returns true if a plan below the limits may have the part, where all other parts have
/// at least the priced sum `rest`. The margin covers rounding: too many labels do no harm.
bool KeptLabels::mayLead(double seconds, int64_t bytes, double rest) const {
  // Keep the limit far below the end of the type, so that one slice more cannot
  // overflow.
  const int64_t limit = std::min(problem_.options.totalBytes, INT64_C(1) << 62);
  if (bytes > limit)
    return false;
  const double bound =
      seconds + rest +
      price_ * (static_cast<double>(bytes) - static_cast<double>(limit));
  const double scale = std::max(most_, price_ * static_cast<double>(limit));
  return bound <= most_ + 1e-9 * scale;
}

/// Keeps labels that no other one beats in both sums, by rising bytes.
void KeptLabels::keepBest(const std::vector<KeptLabel> &labels, Labels &at) {
  struct Sums {
    int64_t bytes;
    double seconds;
    int64_t label;
    bool operator<(const Sums &other) const {
      if (bytes != other.bytes)
        return bytes < other.bytes;
      return seconds != other.seconds ? seconds < other.seconds
                                      : label < other.label;
    }
  };
  // Store the sums contiguously, because sorting takes most of the time.
  std::vector<Sums> sums;
  sums.reserve(at.size());
  for (int64_t label : at)
    sums.push_back({labels[label].bytes, labels[label].seconds, label});
  std::sort(sums.begin(), sums.end());
  at.clear();
  double least = std::numeric_limits<double>::infinity();
  for (const Sums &own : sums)
    if (own.seconds < least) {
      least = own.seconds;
      at.push_back(own.label);
    }
}

/// Adds the labels with one slice more in front of a suffix that begins with the end
/// of a row.
void KeptLabels::extend(const JoinedTable &table, int64_t row, int64_t label,
                        double others, Labels &guess, Front &front,
                        std::vector<Labels> &at) const {
  const KeptLabel suffix = front.labels[label];
  for (size_t number = 0; number < table.modes.size(); ++number) {
    const ModeTable &mode = table.modes[number];
    // Several labels meet the same row one after another, so remember its first
    // begin.
    const int64_t first = guess[number] =
        firstBegin(table, mode, row, guess[number], caps_);
    for (int64_t begin = first; begin < table.count(row); ++begin) {
      const int64_t place = table.offsets[row] + begin;
      if (!caps_.allow(mode.forward[place], mode.backward[place]))
        continue;
      KeptLabel longer;
      longer.seconds =
          suffix.seconds + (mode.forward[place] + mode.backward[place]);
      longer.bytes = suffix.bytes + mode.bytes[place];
      longer.parent = label;
      longer.choice = begin;
      longer.detail = static_cast<int64_t>(number);
      if (!mayLead(longer.seconds, longer.bytes,
                   others + program_.valueOf(table, begin)))
        continue;
      at[begin].push_back(static_cast<int64_t>(front.labels.size()));
      front.labels.push_back(longer);
    }
  }
}

/// Returns all cuts of joined samples of a group that may be in the plan.
const KeptLabels::Front &KeptLabels::frontOf(size_t group,
                                             const JoinedTable &table) {
  Front &front = fronts_[group][table.joined - 1];
  if (front.isMade)
    return front;
  front.isMade = true;
  const LengthGroup &own = tables_.groups[group];
  // Sum of all parts except one such cut.
  const double others = all_ - program_.sumOf(group, own.count()) +
                        program_.sumOf(group, own.count() - table.joined);
  std::vector<Labels> at(own.units + 1);
  front.labels.emplace_back();
  const int64_t last = table.lastRow(own, group);
  Labels guess(table.modes.size(), last);
  extend(table, last, 0, others, guess, front, at);
  const int64_t top = last > table.units ? own.units : own.units - 1;
  for (int64_t row = top; row >= 0; --row) {
    keepBest(front.labels, at[row]);
    if (row > 0)
      for (int64_t label : at[row])
        extend(table, row, label, others, guess, front, at);
  }
  front.whole = std::move(at[0]);
  return front;
}

KeptLabels::Labels KeptLabels::addGroup(size_t group, const Labels &before) {
  const LengthGroup &own = tables_.groups[group];
  std::vector<Labels> at(own.samples.size() + 1); // [samples left]
  at[own.count()] = before;
  for (int64_t left = own.count(); left > 0; --left) {
    keepBest(chain_, at[left]);
    for (const JoinedTable &table : tables_.tables) {
      if (table.joined > left || at[left].empty())
        break;
      const double rest =
          program_.sumOf(group, left - table.joined) + behindGroup_[group];
      const Front &front = frontOf(group, table);
      for (int64_t label : at[left])
        for (int64_t cut : front.whole) {
          KeptLabel next;
          next.seconds = chain_[label].seconds + front.labels[cut].seconds;
          next.bytes = chain_[label].bytes + front.labels[cut].bytes;
          next.parent = label;
          next.choice = table.joined;
          next.detail = cut;
          if (!mayLead(next.seconds, next.bytes, rest))
            continue;
          at[left - table.joined].push_back(
              static_cast<int64_t>(chain_.size()));
          chain_.push_back(next);
        }
    }
  }
  keepBest(chain_, at[0]);
  return at[0];
}

KeptLabels::Labels KeptLabels::addBundle(size_t bundle, const Labels &before) {
  Labels after;
  const BundleCosts &own = tables_.bundles[bundle];
  for (int64_t label : before)
    for (size_t mode = 0; mode < own.modes.size(); ++mode) {
      const SliceCost &cost = own.modes[mode];
      if (!caps_.allow(cost.forward, cost.backward))
        continue;
      KeptLabel next;
      next.seconds = chain_[label].seconds + (cost.forward + cost.backward);
      next.bytes = chain_[label].bytes + cost.bytes;
      next.parent = label;
      next.choice = static_cast<int64_t>(mode);
      if (!mayLead(next.seconds, next.bytes, behindBundle_[bundle]))
        continue;
      after.push_back(static_cast<int64_t>(chain_.size()));
      chain_.push_back(next);
    }
  keepBest(chain_, after);
  return after;
}

std::vector<TokenSlice> KeptLabels::slicesOf(size_t group,
                                             const JoinedTable &table,
                                             int64_t label) const {
  const std::vector<KeptLabel> &labels =
      fronts_[group][table.joined - 1].labels;
  std::vector<TokenSlice> slices;
  // Walk from the first slice on: each label has the begin of its first slice.
  for (; labels[label].parent >= 0; label = labels[label].parent) {
    const KeptLabel &own = labels[label], &next = labels[own.parent];
    const int64_t begin = own.choice * tables_.grain;
    const int64_t end = next.parent >= 0 ? next.choice * tables_.grain
                                         : tables_.groups[group].tokens;
    slices.push_back({end - begin, table.modeNumbers[own.detail]});
  }
  return slices;
}

void KeptLabels::restore(int64_t label, SlicePlan &plan) const {
  plan.bundles.resize(tables_.bundles.size());
  for (size_t bundle = tables_.bundles.size(); bundle-- > 0;) {
    plan.bundles[bundle] = {problem_.bundles[bundle],
                            static_cast<int>(chain_[label].choice)};
    label = chain_[label].parent;
  }
  for (size_t group = tables_.groups.size(); group-- > 0;) {
    const std::vector<int64_t> &samples = tables_.groups[group].samples;
    for (auto end = samples.end(); end != samples.begin();) {
      const KeptLabel &own = chain_[label];
      const JoinedTable &table = tables_.tables[own.choice - 1];
      auto begin = end - table.joined;
      plan.cuts.push_back({{begin, end}, slicesOf(group, table, own.detail)});
      end = begin;
      label = own.parent;
    }
  }
  std::reverse(plan.cuts.begin(), plan.cuts.end());
}

bool KeptLabels::solve(double mostSeconds, SlicePlan &plan) {
  most_ = mostSeconds;
  chain_.assign(1, {});
  Labels labels = {0};
  for (size_t group = 0; group < tables_.groups.size(); ++group)
    labels = addGroup(group, labels);
  for (size_t bundle = 0; bundle < tables_.bundles.size(); ++bundle)
    labels = addBundle(bundle, labels);
  // The last label has the most bytes and the fewest seconds.
  if (labels.empty() || chain_[labels.back()].seconds >= mostSeconds)
    return false;
  plan = {};
  restore(labels.back(), plan);
  return true;
}

} // namespace dyna
