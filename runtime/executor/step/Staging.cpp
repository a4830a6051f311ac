//===- Staging.cpp - Prepares a micro-batch for the device ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/step/Staging.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace dyna {
namespace {

Status checkSample(const Model &model, const Sample &sample) {
  const plan::ModelFacts &facts = model.manifest().facts();
  if (sample.targets.size() != sample.tokens.size())
    return Status::internal(formatText("sample %d has %d tokens but %d targets",
                                       sample.id, sample.tokens.size(),
                                       sample.targets.size()));
  if (facts.positions() > 0 &&
      static_cast<int64_t>(sample.tokens.size()) > facts.positions())
    return Status::invalidArgument(
        formatText("sample %d has %d tokens, the model has %d positions",
                   sample.id, sample.tokens.size(), facts.positions()));
  for (int32_t token : sample.tokens)
    if (token < 0 || token >= facts.vocabulary())
      return Status::invalidArgument(
          formatText("sample %d has token id %d, the vocabulary ends at %d",
                     sample.id, token, facts.vocabulary() - 1));
  for (int32_t target : sample.targets)
    if (target != ignoreTarget && (target < 0 || target >= facts.vocabulary()))
      return Status::invalidArgument(
          formatText("sample %d has target id %d, the vocabulary ends at %d",
                     sample.id, target, facts.vocabulary() - 1));
  return Status::ok();
}

/// Sorts the numbers of rows by their keys, which are not negative. Gives the
/// starts of the runs of equal keys, and the end of the last one. Rows of a key
/// stay in order, because it sorts digit by digit, from the lowest. Returns the
/// number of runs.
template <typename Key>
int64_t makeRuns(const Key *keys, int64_t count, int32_t *rows,
                 int32_t *starts) {
  constexpr int bits = 11, digits = 1 << bits;
  Key largest = 0;
  for (int64_t row = 0; row < count; ++row)
    largest = std::max(largest, keys[row]);
  int passes = 0;
  for (Key rest = largest; rest > 0; rest >>= bits)
    ++passes;
  // Passes write to both buffers by turns, and the last pass to `rows`.
  std::vector<int32_t> spare(static_cast<size_t>(count));
  int32_t *from = passes % 2 == 0 ? rows : spare.data();
  int32_t *to = passes % 2 == 0 ? spare.data() : rows;
  std::iota(from, from + count, 0);
  for (int pass = 0; pass < passes; ++pass, std::swap(from, to)) {
    auto digitOf = [&](int32_t row) {
      return static_cast<size_t>(keys[row] >> (pass * bits)) % digits;
    };
    std::array<int32_t, digits + 1> places = {};
    for (int64_t i = 0; i < count; ++i)
      ++places[digitOf(from[i]) + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    for (int64_t i = 0; i < count; ++i)
      to[places[digitOf(from[i])]++] = from[i];
  }
  int64_t runs = 0;
  for (int64_t i = 0; i < count; ++i)
    if (i == 0 || keys[rows[i]] != keys[rows[i - 1]])
      starts[runs++] = static_cast<int32_t>(i);
  starts[runs] = static_cast<int32_t>(count);
  return runs;
}

/// Fills the tables that the layout has room for, from the staged rows.
void addTables(Staging &staging) {
  const BatchLayout &layout = staging.layout;
  const int64_t rows = staging.load.queries;
  unsigned char *batch = staging.batch.data();
  auto table = [&](int64_t offset) {
    return reinterpret_cast<int32_t *>(batch + offset);
  };
  if (layout.offsets >= 0) {
    const auto *segments =
        reinterpret_cast<const dyna_segment *>(batch + layout.segments);
    int32_t *offsets = table(layout.offsets);
    for (int64_t i = 0; i < staging.load.segments; ++i)
      offsets[i] = static_cast<int32_t>(segments[i].q_begin);
    offsets[staging.load.segments] = static_cast<int32_t>(rows);
  }
  if (layout.tokenRuns.rows >= 0)
    staging.tokenRuns =
        makeRuns(staging.tokens.data(), rows, table(layout.tokenRuns.rows),
                 table(layout.tokenRuns.starts));
  if (layout.positionRuns.rows >= 0)
    staging.positionRuns = makeRuns(
        reinterpret_cast<const int64_t *>(batch + layout.rowPosition), rows,
        table(layout.positionRuns.rows), table(layout.positionRuns.starts));
  if (layout.targetRows >= 0) {
    const int32_t *targets = table(layout.targets);
    int32_t *used = table(layout.targetRows);
    for (int64_t row = 0; row < rows; ++row)
      if (targets[row] != ignoreTarget)
        *used++ = static_cast<int32_t>(row);
  }
}

} // namespace

StatusOr<Staging> stage(const Model &model, const plan::MicroBatch &microBatch,
                        const BundlePart &bundle,
                        const std::vector<int64_t> &samples,
                        const MiniBatch &miniBatch) {
  Staging staging;
  staging.stored = bundle.rows;
  staging.load = loadOf(microBatch);
  staging.layout = batchLayout(staging.load, model.batchTables());
  staging.tokens.resize(staging.load.queries);
  staging.batch.resize(staging.layout.bytes, 0);
  unsigned char *batch = staging.batch.data();
  auto *targets = reinterpret_cast<int32_t *>(batch + staging.layout.targets);
  auto *segments =
      reinterpret_cast<dyna_segment *>(batch + staging.layout.segments);
  auto *rowSample =
      reinterpret_cast<int64_t *>(batch + staging.layout.rowSample);
  auto *rowPosition =
      reinterpret_cast<int64_t *>(batch + staging.layout.rowPosition);
  int64_t row = 0;
  for (const plan::Segment &segment : microBatch.segments) {
    const Sample &sample = miniBatch.samples[samples[segment.sample]];
    DYNA_RETURN_IF_ERROR(checkSample(model, sample));
    const int64_t length = segment.length;
    // Tokens after the sample's end are padding.
    const int64_t end = static_cast<int64_t>(sample.tokens.size());
    const size_t index = &segment - microBatch.segments.data();
    const int64_t inStore = bundle.bundle < 0 ? -1 : bundle.storeRows[index];
    const int64_t firstKey =
        inStore < 0 ? row : staging.load.keys + inStore + segment.keys().begin;
    *segments++ = {sample.id,    row, length, firstKey, segment.keys().length,
                   segment.begin};
    for (int64_t i = 0; i < length; ++i) {
      int64_t position = segment.begin + i;
      bool isReal = position < end;
      int32_t target = isReal ? sample.targets[position] : ignoreTarget;
      staging.tokens[row + i] = isReal ? sample.tokens[position] : 0;
      targets[row + i] = target;
      rowSample[row + i] = sample.id;
      rowPosition[row + i] = position;
      staging.load.targets += target != ignoreTarget;
    }
    staging.longestQuery = std::max(staging.longestQuery, length);
    staging.longestKey = std::max(staging.longestKey, segment.keys().length);
    row += length;
  }
  addTables(staging);
  return staging;
}

dyna_segments segmentsAt(const Staging &staging, const void *address) {
  const BatchLayout &layout = staging.layout;
  const char *batch = static_cast<const char *>(address);
  auto at = [&](auto *&pointer, int64_t offset) {
    if (offset >= 0)
      pointer =
          reinterpret_cast<std::decay_t<decltype(pointer)>>(batch + offset);
  };
  auto runsAt = [&](dyna_row_runs &runs, const BatchLayout::Runs &places,
                    int64_t count) {
    at(runs.rows, places.rows);
    at(runs.starts, places.starts);
    runs.count = count;
  };
  dyna_segments segments = {};
  at(segments.data, layout.segments);
  at(segments.row_sample, layout.rowSample);
  at(segments.row_position, layout.rowPosition);
  segments.count = staging.load.segments;
  segments.tq = staging.load.queries;
  segments.tkv = staging.load.keys;
  segments.longest_query = staging.longestQuery;
  segments.longest_key = staging.longestKey;
  segments.targets = staging.load.targets;
  segments.pairs = staging.load.pairs;
  segments.causal_pairs = staging.load.causalPairs;
  segments.stored = staging.stored;
  segments.keys_are_queries = staging.stored == 0;
  at(segments.offsets, layout.offsets);
  runsAt(segments.token_runs, layout.tokenRuns, staging.tokenRuns);
  runsAt(segments.position_runs, layout.positionRuns, staging.positionRuns);
  at(segments.target_rows, layout.targetRows);
  return segments;
}

int64_t countTargets(const MiniBatch &miniBatch) {
  int64_t targets = 0;
  for (const Sample &sample : miniBatch.samples)
    targets += std::count_if(sample.targets.begin(), sample.targets.end(),
                             [](int32_t t) { return t != ignoreTarget; });
  return targets;
}

} // namespace dyna
