//===- RankMachine.cpp - What one rank runs on ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankMachine.h"

#include <algorithm>

namespace dyna {

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

Status RankMachine::upload(int64_t offset, const void *source, int64_t bytes) {
  if (staging_.empty() || staging_.back()->bytes() - stagedBytes_ < bytes) {
    // Twice as much as there was: soon one block has room for a whole step.
    int64_t room = 2 * bytes;
    for (const auto &block : staging_)
      room += 2 * block->bytes();
    DYNA_ASSIGN_OR_RETURN(auto block, device_.allocateHost(room));
    staging_.push_back(std::move(block));
    stagedBytes_ = 0;
  }
  char *staged = static_cast<char *>(staging_.back()->data()) + stagedBytes_;
  stagedBytes_ += dyna_align_block(bytes);
  stagedBytes_ = std::min(stagedBytes_, staging_.back()->bytes());
  std::copy_n(static_cast<const char *>(source), bytes, staged);
  return toDevice(offset, staged, bytes);
}

static constexpr int64_t bytesOf(int64_t numbers) {
  return numbers * static_cast<int64_t>(sizeof(double));
}

Status RankMachine::openResults(int64_t count) {
  static constexpr double head[kResultHead] = {0, 1};
  const int64_t bytes = bytesOf(kResultHead + count);
  if (!results_ || results_->bytes() < bytes) {
    // Rarely: mini-batches of one run have about as many micro-batches.
    DYNA_ASSIGN_OR_RETURN(auto results, device_.allocate(2 * bytes));
    DYNA_ASSIGN_OR_RETURN(auto onHost, device_.allocateHost(2 * bytes));
    results_ = std::move(results);
    resultsOnHost_ = std::move(onHost);
  }
  resultCount_ = count;
  DYNA_RETURN_IF_ERROR(device_.fill(*stream_, *results_, bytesOf(kResultHead),
                                    bytesOf(count), 0));
  return device_.copyToDevice(*stream_, *results_, 0, head, sizeof(head));
}

StatusOr<RankMachine::Results> RankMachine::readResults() {
  // A copy to other memory would wait, and for longer than patience.
  const double *all = static_cast<double *>(resultsOnHost_->data());
  if (!read_) {
    DYNA_ASSIGN_OR_RETURN(read_, device_.createEvent());
  }
  DYNA_RETURN_IF_ERROR(device_.copyToHost(*stream_, resultsOnHost_->data(),
                                          *results_, 0,
                                          bytesOf(kResultHead + resultCount_)));
  DYNA_RETURN_IF_ERROR(device_.record(*stream_, *read_));
  DYNA_RETURN_IF_ERROR(
      device_.wait(*read_, std::chrono::steady_clock::now() + patience_));
  if (staging_.size() > 1)
    staging_.erase(staging_.begin(), staging_.end() - 1);
  stagedBytes_ = 0;
  const double *numbers = all + kResultHead;
  return Results{all[0], {numbers, numbers + resultCount_}};
}

Status RankMachine::synchronize() {
  return device_.synchronize(*stream_,
                             std::chrono::steady_clock::now() + patience_);
}

const char *RankMachine::message() {
  message_[sizeof(message_) - 1] = '\0';
  return message_;
}

} // namespace dyna
