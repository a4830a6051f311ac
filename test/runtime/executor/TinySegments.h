//===- TinySegments.h - What segments must say of themselves ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The hand-written model holds what it is told of a micro-batch against its rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYSEGMENTS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYSEGMENTS_H

#include "runtime/abi/Kernels.h"
#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <map>
#include <vector>

namespace dyna {

/// Whether the segments say of themselves what they are.
inline bool areDescribed(const dyna_segments &segments) {
  int64_t query = 0, key = 0, pairs = 0, causalPairs = 0;
  bool areOwn = true;
  for (int64_t s = 0; s < segments.count; ++s) {
    query = std::max(query, segments.data[s].q_len);
    key = std::max(key, segments.data[s].kv_len);
    pairs += dyna_visible_pairs(&segments.data[s], 0);
    causalPairs += dyna_visible_pairs(&segments.data[s], 1);
    areOwn &= segments.data[s].kv_begin == segments.data[s].q_begin &&
              segments.data[s].kv_len == segments.data[s].q_len;
  }
  return segments.longest_query == query && segments.longest_key == key &&
         segments.pairs == pairs && segments.causal_pairs == causalPairs &&
         (segments.keys_are_queries != 0) == areOwn;
}

/// Whether these are the runs of rows with equal keys, or nobody asked.
template <typename Key>
inline bool areRuns(uint32_t table, const dyna_row_runs &runs, const Key *keys,
                    int64_t rows) {
  if (!(tinySizes.batchTables & table))
    return !runs.rows && !runs.starts && runs.count == 0;
  std::map<Key, std::vector<int32_t>> rowsOf;
  for (int64_t row = 0; row < rows; ++row)
    rowsOf[keys[row]].push_back(static_cast<int32_t>(row));
  const int32_t *start = runs.starts;
  if (runs.count != static_cast<int64_t>(rowsOf.size()) || *start != 0)
    return false;
  for (const auto &[key, run] : rowsOf) {
    const auto length = static_cast<int32_t>(run.size());
    if (start[1] != start[0] + length ||
        !std::equal(run.begin(), run.end(), runs.rows + start[0]))
      return false;
    ++start;
  }
  return true;
}

/// The same of the other tables.
inline bool areOffsets(const dyna_segments &segments) {
  const int32_t *offsets = segments.offsets;
  if (!(tinySizes.batchTables & DYNA_BATCH_OFFSETS))
    return !offsets;
  for (int64_t s = 0; s < segments.count; ++s)
    if (*offsets++ != segments.data[s].q_begin)
      return false;
  return *offsets == segments.tq;
}
inline bool areTargetRows(const dyna_segments &segments,
                          const int32_t *targets) {
  const int32_t *rows = segments.target_rows;
  if (!(tinySizes.batchTables & DYNA_BATCH_TARGET_ROWS))
    return !rows;
  for (int32_t row = 0; row < segments.tq; ++row)
    if (targets[row] >= 0 && *rows++ != row)
      return false;
  return rows == segments.target_rows + segments.targets;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYSEGMENTS_H
