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

/// Counts the sums of gradients of a bundle. The backward of the bundle's last
/// micro-batch adds them, layer by layer. It frees what the micro-batch kept of a layer
/// after that layer.
///
/// Before this backward, a schedule reserves the most that it needs beside the kept
/// bytes. The sums exist from then until the first micro-batch has run backward.
class SumsOfBundle {
public:
  /// Layers come in ascending order. `freed`: bytes that the last micro-batch frees
  /// after the layer.
  void add(int64_t sums, int64_t freed) {
    reserved_ = std::max(sums, reserved_ + sums - freed);
    sums_ += sums;
  }
  int64_t reserved() const { return reserved_; }
  int64_t all() const { return sums_; }

private:
  int64_t reserved_ = 0; ///< most that comes beside, less what has gone by then
  int64_t sums_ = 0;
};

/// Counts the bytes of a bundle's first micro-batch if weight gradients run separately. The
/// values for weight gradients stay until these run. So a layer of the first micro-batch has its
/// store, its sums and these values at the same time. Later layers have only the values.
class FirstOfSplit {
public:
  /// `behind`: bytes that stay for weight gradients.
  void add(int64_t own, int64_t keys, int64_t sums, int64_t behind) {
    const int64_t running = std::max(own, behind) + keys + sums;
    most_ = std::max(whole_ + running, most_ + behind);
    whole_ += own + keys + sums;
  }
  int64_t bytes() const { return std::max(whole_, most_); }

private:
  int64_t whole_ = 0; ///< before layers run backward
  int64_t most_ = 0;  ///< while any of the layers runs
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

/// Bytes that one micro-batch holds on a stage.
struct Held {
  int64_t kept = 0;   ///< from forward to the end of backward
  int64_t late = 0;   ///< after backward; negative: another micro-batch held it
  int64_t beside = 0; ///< what backward needs beside the kept bytes
};

Held heldOf(const RankView &view, const PlanChoice &choice, int m,
            const Load &load, const BundlePart &part) {
  const bool isFirst = part.bundle == m, isLast = part.last == m;
  Held held;
  FirstOfSplit first;
  SumsOfBundle bundle;
  int64_t keys = 0, late = 0;
  for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
    if (!view.hasBackward(l))
      continue; // its keys are counted with the bytes beside the blocks
    const plan::Recompute mode = nearestMode(view.kind(l), choice.modeOf(l, m));
    const int64_t own = view.keptBytes(l, mode, load);
    int64_t behind = 0;
    if (splitsBackward(view.kind(l)))
      behind = own + view.lateBytes(l, mode, true, load);
    held.kept += own;
    late += behind;
    if (!isFirst && !isLast)
      continue;
    const int64_t store = view.keyBytes(l, part.rows);
    const int64_t sums = view.keyGradientBytes(l, part.rows);
    keys += store;
    first.add(own, store, sums, behind);
    bundle.add(sums, view.hasRole(l, DYNA_ROLE_BACKWARD) ? own : 0);
  }
  if (choice.splitBackward)
    return {isFirst ? first.bytes() : held.kept, late};
  // The first backward gives stores and sums back.
  if (isFirst) {
    held.kept += keys;
    held.late -= bundle.all();
  }
  if (isLast) {
    held.beside = bundle.reserved();
    held.late += bundle.all();
  }
  return held;
}

} // namespace

void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanChoice &choice, PipelineProblem::Bytes *beside) {
  const Bundles bundles = findBundles(plan, microBatches);
  std::vector<Load> loads;
  for (int m : microBatches) {
    problem.contents.push_back(contentsOf(plan.microBatches[m]));
    loads.push_back(loadOf(plan.microBatches[m]));
  }
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    std::vector<int64_t> &kept = problem.kept.emplace_back();
    std::vector<int64_t> &late = problem.late.emplace_back();
    if (beside)
      beside->emplace_back();
    for (size_t i = 0; i < microBatches.size(); ++i) {
      const int m = microBatches[i];
      const Held held = heldOf(view, choice, m, loads[i], bundles.of(m));
      kept.push_back(held.kept + (beside ? 0 : held.beside));
      if (beside)
        beside->back().push_back(held.beside);
      // If the schedule does not split, weight gradients run at once.
      late.push_back(
          choice.splitBackward && !problem.splitsBackward() ? 0 : held.late);
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
