//===- RankMachine.cpp - What one rank runs on ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankMachine.h"

#include <chrono>

namespace dyna {

/// Longer than any instruction takes; a device that hangs is noticed.
static constexpr std::chrono::minutes patience{30};
static constexpr int64_t pageBytes = 4096;

Status RankMachine::start(int64_t persistentBytes, int64_t dynamicBytes,
                          uint64_t seed) {
  dynamicStart_ = (persistentBytes + pageBytes - 1) / pageBytes * pageBytes;
  DYNA_ASSIGN_OR_RETURN(auto stream, device_.createStream());
  stream_ = std::move(stream);
  DYNA_ASSIGN_OR_RETURN(auto arena,
                        device_.allocate(dynamicStart_ + dynamicBytes));
  arena_ = std::move(arena);
  DYNA_RETURN_IF_ERROR(fill(0, arena_->bytes(), 0));
  context_.abi_version = DYNA_ABI_VERSION;
  context_.rank = rank();
  context_.world = ranks();
  context_.message = message_;
  context_.message_capacity = sizeof(message_);
  context_.seed = seed;
  device_.bind(context_, *stream_);
  return synchronize();
}

Status RankMachine::openResults(int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(double));
  if (!results_ || results_->bytes() < bytes) {
    // Rarely: mini-batches of one run have about as many micro-batches.
    DYNA_ASSIGN_OR_RETURN(auto results, device_.allocate(2 * bytes));
    results_ = std::move(results);
  }
  resultCount_ = count;
  return device_.fill(*stream_, *results_, 0, bytes, 0);
}

StatusOr<std::vector<double>> RankMachine::readResults() {
  std::vector<double> values(resultCount_);
  DYNA_RETURN_IF_ERROR(
      device_.copyToHost(*stream_, values.data(), *results_, 0,
                         resultCount_ * static_cast<int64_t>(sizeof(double))));
  DYNA_RETURN_IF_ERROR(synchronize());
  return values;
}

Status RankMachine::synchronize() {
  return device_.synchronize(*stream_,
                             std::chrono::steady_clock::now() + patience);
}

const char *RankMachine::message() {
  message_[sizeof(message_) - 1] = '\0';
  return message_;
}

} // namespace dyna
