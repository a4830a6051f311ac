//===- MicroBatchBench.h - Orders, cuts, bins and replicas, timed ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_PLANNER_MICROBATCHBENCH_H
#define DYNA_TEST_BENCH_PLANNER_MICROBATCHBENCH_H

#include <functional>

namespace dyna {

/// Milliseconds of processor time, the median of 7; -1 if the work fails.
double medianMs(const std::function<bool()> &work);

/// 2,048 samples with lognormal lengths; then, for each two arguments,
///
///     FILE.csv TOKENS            a column of lengths
///     FILE.csv TOKENS,DECODER    pairs, and their sums as lengths
///
/// the first 2,048 rows of the file, cut at 8,192. One line each:
///
/// - "order": how long the way through the pairs is, beside sorting;
/// - "partition": padded, 64 layers over the stages, costs from a table over
///   powers of two, with and without a limit of memory; `seconds` is the
///   objective, `padding` the share of tokens that are none;
/// - "hardest": the same with lengths cut at 128, 512, 2,048 and 8,192, for 1 to 16
///   stages and 1 or 8 replicas: the largest number of programs and of milliseconds;
/// - "bins": ragged, the same layers; `over_bound` beside what no bins are
///   better than;
/// - "replicas": the micro-batches over replicas; `imbalance` is the largest sum
///   over the mean, less 1.
///
/// The number of failures.
int measureMicroBatches(int argc, char **argv);

} // namespace dyna

#endif // DYNA_TEST_BENCH_PLANNER_MICROBATCHBENCH_H
