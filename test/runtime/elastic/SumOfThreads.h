//===- SumOfThreads.h - Sums of counts over threads -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_ELASTIC_SUMOFTHREADS_H
#define DYNA_TEST_RUNTIME_ELASTIC_SUMOFTHREADS_H

#include "runtime/base/error/Status.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace dyna {

/// Adds up counts of so many threads. All of them call `sum` equally often, with as many
/// counts.
class SumOfThreads {
public:
  explicit SumOfThreads(int count) : count_(count) {}

  Status sum(std::vector<int64_t> &counts) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (arrived_ == 0)
      sum_.assign(counts.size(), 0);
    for (size_t i = 0; i < counts.size(); ++i)
      sum_[i] += counts[i];
    const int64_t turn = turn_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      total_ = sum_;
      bytes_ += static_cast<int64_t>(counts.size() * sizeof(int64_t));
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return turn_ != turn; });
    counts = total_;
    return Status::ok();
  }
  /// Returns the bytes of all counts that a thread gave.
  int64_t bytes() const { return bytes_; }

private:
  const int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> sum_, total_;
  int arrived_ = 0;
  int64_t turn_ = 0, bytes_ = 0;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_ELASTIC_SUMOFTHREADS_H
