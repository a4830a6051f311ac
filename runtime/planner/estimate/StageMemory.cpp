//===- StageMemory.cpp - Estimates memory of stages -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageMemory.h"

#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dyna {
namespace {

/// Returns the smallest limit of the stage's ranks in one replica.
int64_t leastLimit(const ExecutableGraph &graph, int replica, int stage,
                   const PlanOptions &options,
                   const std::vector<int64_t> &beside) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int shard = 0; shard < graph.strategy().tp; ++shard) {
    int rank = graph.rankAt({replica, stage, shard});
    least = std::min(least, options.dynamicLimits[rank] - beside[rank]);
  }
  return std::max<int64_t>(least, 0);
}

/// Bytes of a bundle's first micro-batch, with stores and sums of gradients,
/// while it runs backward. Layers come in ascending order.
///
/// Without a split, sums are added when the bundle's last micro-batch runs
/// backward, layer by layer. The values that it kept of a layer are freed after
/// that layer. With a split, nothing is freed yet. A layer of the first
/// micro-batch then has its store, its sums and the values for weight gradients
/// at one time. Layers after it have only the last of these.
///
/// Another bundle may run forward before the first one has run backward. Then
/// the sums exist, and the values kept by the last micro-batch are not counted
/// any more. That is a few percent too little. Then PlanWriter::writeWithin
/// tightens the limits.
class FirstOfBundle {
public:
  void add(int64_t own, int64_t keys, int64_t sums, int64_t keptOfLast) {
    const int64_t both = std::min(sums, keptOfLast);
    whole_ += own + keys + sums - both;
    atATime_ = std::max(atATime_, both);
  }
  /// `behind`: bytes that stay for weight gradients; 0 if these are not
  /// separate.
  void addSplit(int64_t own, int64_t keys, int64_t sums, int64_t behind) {
    const int64_t running = std::max(own, behind) + keys + sums;
    most_ = std::max(whole_ + running, most_ + behind);
    whole_ += own + keys + sums;
  }
  int64_t bytes() const { return std::max(whole_ + atATime_, most_); }

private:
  int64_t whole_ = 0;   ///< before layers run backward
  int64_t atATime_ = 0; ///< more while one layer has both
  int64_t most_ = 0;    ///< while any of the layers runs
};

MicroBatchContents contentsOf(const plan::MicroBatch &microBatch) {
  MicroBatchContents contents;
  for (const plan::Segment &segment : microBatch.segments) {
    const bool isFirst = contents.firstSample < 0;
    contents.firstSample =
        isFirst ? segment.sample
                : std::min<int64_t>(contents.firstSample, segment.sample);
    contents.lastSample =
        std::max<int64_t>(contents.lastSample, segment.sample);
    contents.tokens += segment.length;
  }
  return contents;
}

} // namespace

void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanChoice &choice) {
  const Bundles bundles = findBundles(plan, microBatches);
  for (int m : microBatches)
    problem.contents.push_back(contentsOf(plan.microBatches[m]));
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    std::vector<int64_t> &kept = problem.kept.emplace_back();
    std::vector<int64_t> &late = problem.late.emplace_back();
    for (int m : microBatches) {
      const Load load = loadOf(plan.microBatches[m]);
      // Stores count with the bundle's first micro-batch, whose backward gives them
      // back. Its weight gradients do not need them.
      const BundlePart &part = bundles.of(m);
      const bool isFirst = part.bundle == m;
      const Load last = isFirst ? loadOf(plan.microBatches[part.last]) : Load();
      int64_t all = 0, left = 0;
      FirstOfBundle first;
      for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
        auto modeOf = [&](int microBatch) {
          return nearestMode(view.kind(l), choice.modeOf(l, microBatch));
        };
        const int64_t own = view.keptBytes(l, modeOf(m), load);
        int64_t behind = 0;
        if (splitsBackward(view.kind(l)))
          behind = own + view.lateBytes(l, modeOf(m), true, load);
        all += own;
        left += behind;
        if (!isFirst)
          continue;
        const int64_t keys = view.keyBytes(l, part.rows);
        const int64_t sums = view.keyGradientBytes(l, part.rows);
        if (choice.splitBackward)
          first.addSplit(own, keys, sums, behind);
        else
          first.add(own, keys, sums,
                    view.hasRole(l, DYNA_ROLE_BACKWARD)
                        ? view.keptBytes(l, modeOf(part.last), last)
                        : 0);
      }
      kept.push_back(isFirst ? first.bytes() : all);
      late.push_back(left);
    }
  }
}

void limitStages(PipelineProblem &problem, const ExecutableGraph &graph,
                 int replica, const PlanChoice &choice,
                 const std::vector<int64_t> &beside) {
  problem.mostKept = choice.mostKept;
  for (int stage = 0; stage < graph.stages(); ++stage)
    problem.limits.push_back(leastLimit(graph, replica, stage, choice, beside));
}

HeldBytes::HeldBytes(const ExecutableGraph &graph, const PlanOptions &options) {
  const std::vector<int64_t> none(graph.ranks(), 0);
  std::vector<int64_t> limits(graph.stages(),
                              std::numeric_limits<int64_t>::max());
  for (int stage = 0; stage < graph.stages(); ++stage)
    for (int replica = 0; replica < graph.replicas(); ++replica)
      limits[stage] = std::min(
          limits[stage], leastLimit(graph, replica, stage, options, none));
  limit_ = *std::min_element(limits.begin(), limits.end());
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    Row kept, late;
    for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
      const plan::LayerKind &kind = view.kind(l);
      const plan::Recompute mode =
          nearestMode(kind, modeOf(options.recompute, l));
      const bool isApart = ruleOf(options.schedule).adapts &&
                           options.splitBackward && splitsBackward(kind);
      for (int tier = 0; tier < DYNA_TIER_COUNT; ++tier) {
        if (keepsTier(mode, tier))
          add(kept, kind.tiers(tier));
        if (isApart)
          add(late, kind.tiers(tier));
      }
      if (options.slices.any()) // all tokens may be tokens of sliced samples
        kept.query += static_cast<double>(kind.key_bytes());
      const auto scores = static_cast<double>(kind.score_bytes_per_pair());
      if (keepsTier(mode, DYNA_TIER_ELEMENTWISE))
        kept.pair += scores;
      if (isApart)
        late.pair += scores;
    }
    const double scale =
        limits[stage] > 0
            ? static_cast<double>(limit_) / static_cast<double>(limits[stage])
            : 1;
    take(kept, scale);
    take(late, scale);
  }
}

void HeldBytes::add(Row &row, const plan::LinearBytes &formula) {
  row.query += static_cast<double>(formula.tq());
  row.key += static_cast<double>(formula.tkv());
  row.segment += static_cast<double>(formula.s());
  row.constant += static_cast<double>(formula.constant());
}

void HeldBytes::take(Row row, double scale) {
  row = {row.query * scale, row.key * scale, row.segment * scale,
         row.constant * scale, row.pair * scale};
  for (const Row &other : rows_)
    if (row.isAtMost(other))
      return;
  rows_.erase(
      std::remove_if(rows_.begin(), rows_.end(),
                     [&](const Row &other) { return other.isAtMost(row); }),
      rows_.end());
  rows_.push_back(row);
}

int64_t HeldBytes::of(const Load &load) const {
  const auto queries = static_cast<double>(dyna_round_rows(load.queries));
  const auto keys = static_cast<double>(dyna_round_rows(load.keys));
  const auto segments = static_cast<double>(dyna_round_rows(load.segments));
  const auto pairs = static_cast<double>(load.pairs);
  double most = 0;
  for (const Row &row : rows_)
    most = std::max(most, row.query * queries + row.key * keys +
                              row.segment * segments + row.constant +
                              row.pair * pairs);
  return std::llround(std::min(std::floor(most), 0x1p62));
}

} // namespace dyna
