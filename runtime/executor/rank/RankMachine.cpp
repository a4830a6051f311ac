//===- RankMachine.cpp - Holds the device and arena of one rank -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/RankMachine.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <utility>

namespace dyna {

Status RankMachine::start(int64_t persistentBytes, int64_t dynamicBytes,
                          uint64_t seed, int64_t reservedBytes) {
  parts_ = ArenaParts::atStart(persistentBytes, dynamicBytes);
  const int64_t used = parts_.arenaBytes;
  if (reservedBytes > used) {
    parts_.regionBytes += reservedBytes - used;
    parts_.arenaBytes = reservedBytes;
    isReserved_ = device_.takesMemoryLate();
  }
  usedBytes_ = used;
  takenBytes_ = isReserved_ ? used : parts_.arenaBytes;
  DYNA_ASSIGN_OR_RETURN(auto stream, device_.createStream());
  stream_ = std::move(stream);
  DYNA_ASSIGN_OR_RETURN(uploads_, device_.createStream());
  DYNA_ASSIGN_OR_RETURN(uploaded_, device_.createEvent());
  DYNA_ASSIGN_OR_RETURN(skipsLeft_, device_.allocate(sizeof(int64_t)));
  DYNA_ASSIGN_OR_RETURN(auto arena,
                        device_.reserve(parts_.arenaBytes, takenBytes_));
  arena_ = std::move(arena);
  DYNA_RETURN_IF_ERROR(fill(0, takenBytes_, 0));
  context_.abi_version = DYNA_ABI_VERSION;
  context_.rank = rank();
  context_.world = ranks();
  context_.message = message_;
  context_.message_capacity = sizeof(message_);
  context_.seed = seed;
  device_.bind(context_, *stream_);
  return synchronize();
}

Status RankMachine::layOut(const ArenaParts &parts, int64_t regionBytes) {
  parts_ = parts;
  usedBytes_ = parts.arenaBytes - parts.regionBytes + regionBytes;
  noteUse(usedBytes_);
  // A rank without a place has no tensors and no plans.
  isReleased_ = parts.persistentBytes == 0 && regionBytes == 0;
  if (!isReserved_ && !isReleased_)
    return Status::ok();
  return device_.giveBack(*arena_, parts.region + regionBytes,
                          parts.regionBytes - regionBytes);
}

StatusOr<RankMachine::StagingBlock *>
RankMachine::stagingBlock(StepInFlight &step, int64_t bytes) {
  int64_t held = 0;
  for (StagingBlock &block : step.staging) {
    if (block.room() >= bytes)
      return &block;
    held += block.onHost->bytes();
  }
  // The new block is as large as all blocks so far, so that after few
  // allocations one block has room for a whole step.
  StagingBlock block;
  const int64_t room = std::max(dyna_align_block(bytes), held);
  DYNA_ASSIGN_OR_RETURN(block.onHost, device_.allocateHost(room));
  if (device_.runsLate()) {
    DYNA_ASSIGN_OR_RETURN(block.onDevice, device_.allocate(room));
  }
  return &step.staging.emplace_back(std::move(block));
}

Status RankMachine::upload(int64_t offset, const void *source, int64_t bytes) {
  DYNA_ASSIGN_OR_RETURN(StagingBlock * block,
                        stagingBlock(openMemory(), bytes));
  const int64_t begin = block->used;
  block->used =
      std::min(begin + dyna_align_block(bytes), block->onHost->bytes());
  char *staged = static_cast<char *>(block->onHost->data()) + begin;
  std::copy_n(static_cast<const char *>(source), bytes, staged);
  if (!block->onDevice)
    return toDevice(offset, staged, bytes);
  // Earlier work may still need the old data at this place of the arena, so the
  // last copy follows the order of the stream.
  DYNA_RETURN_IF_ERROR(
      device_.copyToDevice(*uploads_, *block->onDevice, begin, staged, bytes));
  DYNA_RETURN_IF_ERROR(device_.record(*uploads_, *uploaded_));
  DYNA_RETURN_IF_ERROR(device_.streamWait(*stream_, *uploaded_));
  return device_.copy(*stream_, *arena_, offset, *block->onDevice, begin,
                      bytes);
}

static constexpr int64_t bytesOf(int64_t numbers) {
  return numbers * static_cast<int64_t>(sizeof(double));
}

/// A NaN that no arithmetic makes: stands for a number until its copy has come.
static constexpr uint64_t kNotArrived = 0x7ff4'6e6f'7468'6572;

Status RankMachine::takeResults(StepInFlight &step, int64_t bytes) {
  // Growing is rare, because mini-batches of a run have similar numbers of
  // micro-batches. Old buffers stay for steps in flight: freeing waits for
  // these.
  if (!results_ || results_->bytes() < bytes) {
    DYNA_ASSIGN_OR_RETURN(auto taken, device_.allocate(2 * bytes));
    outgrownResults_.push_back(std::exchange(results_, std::move(taken)));
  }
  const int64_t onHost = static_cast<int64_t>(sizeof(Given)) + bytes;
  if (!step.memory || step.memory->bytes() < onHost) {
    DYNA_ASSIGN_OR_RETURN(auto taken, device_.allocateHost(2 * onHost));
    outgrownMemory_.push_back(std::exchange(step.memory, std::move(taken)));
  }
  return Status::ok();
}

Status RankMachine::openStep(int64_t count, int64_t skipsLeft) {
  StepInFlight &step = openMemory();
  const int64_t bytes = bytesOf(kResultHead + count);
  DYNA_RETURN_IF_ERROR(takeResults(step, bytes));
  isOpen_ = true;
  step.count = count;
  *step.given() = {{0, 1}, skipsLeft};
  std::fill_n(step.resultBits(), kResultHead + count, kNotArrived);
  if (inFlight_ == 0)
    DYNA_RETURN_IF_ERROR(device_.copyToDevice(*stream_, *skipsLeft_, 0,
                                              &step.given()->skipsLeft,
                                              sizeof(step.given()->skipsLeft)));
  DYNA_RETURN_IF_ERROR(device_.fill(*stream_, *results_, bytesOf(kResultHead),
                                    bytesOf(count), 0));
  return device_.copyToDevice(*stream_, *results_, 0, step.given()->head,
                              sizeof(step.given()->head));
}

bool RankMachine::owns(const void *data, int64_t bytes) const {
  for (const Buffer *buffer : {arena_.get(), results_.get()})
    if (buffer) {
      const auto *begin = static_cast<const char *>(buffer->data());
      const auto *at = static_cast<const char *>(data);
      if (at >= begin && at + bytes <= begin + buffer->bytes())
        return true;
    }
  return false;
}

Status RankMachine::spoilResult(int64_t index) {
  constexpr uint8_t bitsOfNan = 0xFF;
  return device_.fill(*stream_, *results_, bytesOf(kResultHead + index),
                      bytesOf(1), bitsOfNan);
}

Status RankMachine::closeStep() {
  StepInFlight &step = openMemory();
  if (!step.done) {
    DYNA_ASSIGN_OR_RETURN(step.done, device_.createEvent());
  }
  // Only a copy to page-locked memory does not block the host without a
  // deadline.
  DYNA_RETURN_IF_ERROR(device_.copyToHost(*stream_, step.results(), *results_,
                                          0,
                                          bytesOf(kResultHead + step.count)));
  DYNA_RETURN_IF_ERROR(device_.record(*stream_, *step.done));
  ++inFlight_;
  isOpen_ = false;
  return Status::ok();
}

bool RankMachine::hasArrived(const StepInFlight &step) {
  // A failed copy may have delivered some parts, in any order.
  const volatile uint64_t *all = step.resultBits();
  for (int64_t i = 0; i < kResultHead + step.count; ++i)
    if (all[i] == kNotArrived)
      return false;
  return true;
}

StatusOr<RankMachine::Results> RankMachine::readStep() {
  if (inFlight_ == 0)
    return Status::internal("there is no step to be read");
  StepInFlight &step = steps_[first_];
  Status done =
      device_.wait(*step.done, std::chrono::steady_clock::now() + patience_);
  const bool isLast = inFlight_ == 1 && !isOpen_;
  if (!done.isOk() && (isLast || !hasArrived(step)))
    return done;
  first_ = (first_ + 1) % kStepsInFlight;
  for (StagingBlock &block : step.staging)
    block.used = 0;
  // Freeing waits for all work of the device, so free only when there is none.
  if (--inFlight_ == 0 && !isOpen_) {
    first_ = 0;
    outgrownResults_.clear();
    outgrownMemory_.clear();
  }
  const double *all = step.results();
  const double *numbers = all + kResultHead;
  return Results{all[0], {numbers, numbers + step.count}, !done.isOk()};
}

Status RankMachine::synchronize() {
  return device_.synchronize(*stream_,
                             std::chrono::steady_clock::now() + patience_);
}

Status RankMachine::outcome(dyna_status status) {
  if (status == DYNA_OK)
    return Status::ok();
  StatusCode code = status >= DYNA_INVALID_ARGUMENT && status <= DYNA_INTERNAL
                        ? static_cast<StatusCode>(status)
                        : StatusCode::Internal;
  std::string words = message();
  return Status(code, words.empty()
                          ? formatText("failed with status %d", status)
                          : words);
}

const char *RankMachine::message() {
  message_[sizeof(message_) - 1] = '\0';
  return message_;
}

} // namespace dyna
