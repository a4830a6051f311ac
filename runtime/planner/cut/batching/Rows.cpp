//===- Rows.cpp - Makes micro-batches of rows -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Rows.h"

#include <algorithm>

namespace dyna {
namespace {

int64_t tokensOf(const std::vector<plan::Segment> &row) {
  int64_t tokens = 0;
  for (const plan::Segment &segment : row)
    tokens += segment.length;
  return tokens;
}

} // namespace

std::vector<std::vector<int64_t>> fillRows(const std::vector<int64_t> &lengths,
                                           int64_t rowTokens) {
  std::vector<std::vector<int64_t>> rows;
  std::vector<int64_t> tokens;
  for (size_t sample = 0; sample < lengths.size(); ++sample) {
    size_t row = 0;
    while (row < rows.size() && tokens[row] + lengths[sample] > rowTokens)
      ++row;
    if (row == rows.size()) {
      rows.emplace_back();
      tokens.push_back(0);
    }
    rows[row].push_back(static_cast<int64_t>(sample));
    tokens[row] += lengths[sample];
  }
  return rows;
}

Rows rowsOfSamples(const BatchingProblem &problem) {
  Rows rows;
  for (size_t sample = 0; sample < problem.lengths.size(); ++sample)
    rows.push_back(
        {{static_cast<int64_t>(sample), 0, problem.lengths[sample]}});
  return rows;
}

MicroBatches dealRows(const BatchingProblem &problem, const Rows &rows,
                      bool toLongest) {
  const size_t count = static_cast<size_t>(
      std::max<int64_t>(1, problem.maxTokens / problem.rowTokens));
  MicroBatches microBatches;
  for (size_t begin = 0; begin < rows.size(); begin += count) {
    const size_t end = std::min(begin + count, rows.size());
    int64_t length = toLongest ? 0 : problem.rowTokens;
    for (size_t row = begin; row < end; ++row)
      length = std::max(length, tokensOf(rows[row]));
    plan::MicroBatch &microBatch = microBatches.emplace_back();
    microBatch.replica = static_cast<int>(begin / count % problem.replicas);
    for (size_t row = begin; row < end; ++row) {
      std::vector<plan::Segment> segments = rows[row];
      segments.back().length += length - tokensOf(segments);
      microBatch.segments.insert(microBatch.segments.end(), segments.begin(),
                                 segments.end());
    }
  }
  std::stable_sort(microBatches.begin(), microBatches.end(),
                   [](const plan::MicroBatch &a, const plan::MicroBatch &b) {
                     return a.replica < b.replica;
                   });
  return microBatches;
}

} // namespace dyna
