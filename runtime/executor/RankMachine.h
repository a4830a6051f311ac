//===- RankMachine.h - What one rank runs on --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's device, stream and end of the wires, the context of compiled calls,
// and one arena:
//
//     | persistent: tensors that stay | region of plans |
//
// It knows of no graph: what a rank has of one is a GraphSeat. In the region plans
// have their dynamic regions, and phases of steps what they have of parameters
// (StepMemory.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANKMACHINE_H
#define DYNA_RUNTIME_EXECUTOR_RANKMACHINE_H

#include "runtime/abi/Abi.h"
#include "runtime/device/Device.h"
#include "runtime/transport/Transport.h"

#include <chrono>
#include <memory>
#include <vector>

namespace dyna {

class RankMachine {
public:
  /// `device` and `transport`, which is null for the only rank, must outlive
  /// the machine. The device is given up when it takes longer than `patience`.
  RankMachine(Device &device, Transport *transport,
              std::chrono::seconds patience)
      : device_(device), transport_(transport), patience_(patience) {}
  RankMachine(const RankMachine &) = delete;

  /// Takes the arena, filled with zeros: ResourceExhausted when there is not
  /// that much memory.
  Status start(int64_t persistentBytes, int64_t dynamicBytes, uint64_t seed);

  Device &device() const { return device_; }
  Transport *transport() const { return transport_; }
  int rank() const { return transport_ ? transport_->rank() : 0; }
  int ranks() const { return transport_ ? transport_->ranks() : 1; }
  /// What this rank has sent so far.
  Traffic traffic() const {
    return transport_ ? transport_->traffic() : Traffic();
  }

  Buffer &arena() const { return *arena_; }
  Stream &stream() const { return *stream_; }
  int64_t dynamicStart() const { return dynamicStart_; }
  int64_t dynamicBytes() const { return arena_->bytes() - dynamicStart_; }
  /// Addresses; offsets count from the start of the arena, and of its dynamic
  /// region.
  void *persistent(int64_t offset) const {
    return static_cast<char *>(arena_->data()) + offset;
  }
  void *dynamic(int64_t offset) const {
    return persistent(dynamicStart_ + offset);
  }

  /// In the order of the stream; offsets count from the start of the arena.
  Status fill(int64_t offset, int64_t bytes, uint8_t value) {
    return device_.fill(*stream_, *arena_, offset, bytes, value);
  }
  Status toDevice(int64_t offset, const void *source, int64_t bytes) {
    return device_.copyToDevice(*stream_, *arena_, offset, source, bytes);
  }
  /// The same of data that need not stay: it goes through memory of the host that
  /// is kept until the results of the step are read.
  Status upload(int64_t offset, const void *source, int64_t bytes);
  Status toHost(void *target, int64_t offset, int64_t bytes) {
    return device_.copyToHost(*stream_, target, *arena_, offset, bytes);
  }
  /// What a step leaves for the host lies in one block of device memory: the
  /// norm of its gradient (0), the factor of clipping (1), then numbers (f64) that
  /// functions write, as many from now on, all 0.
  Status openResults(int64_t count);
  double *gradientNorm() const { return result(-2); }
  double *gradientScale() const { return result(-1); }
  /// Where a function writes one of the numbers.
  double *result(int64_t index) const {
    return static_cast<double *>(results_->data()) + kResultHead + index;
  }
  struct Results {
    double gradientNorm;
    std::vector<double> numbers;
  };
  /// All of it, once what writes it is done: one copy, and the one wait of a step.
  StatusOr<Results> readResults();
  /// Waits until all of it is done, but not for ever.
  Status synchronize();

  /// What compiled functions get.
  dyna_context &context() { return context_; }
  /// A failed call's own words, else "".
  const char *message();
  void clearMessage() { message_[0] = '\0'; }

private:
  Device &device_;
  Transport *transport_;
  const std::chrono::seconds patience_;
  std::unique_ptr<Buffer> arena_;
  static constexpr int64_t kResultHead = 2;
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<StagingMemory> resultsOnHost_; ///< as long
  int64_t resultCount_ = 0;
  std::unique_ptr<Event> read_; ///< the results are on the host
  /// Of this step's uploads; the last one has room after `stagedBytes_`.
  std::vector<std::unique_ptr<StagingMemory>> staging_;
  int64_t stagedBytes_ = 0;
  std::unique_ptr<Stream> stream_;
  int64_t dynamicStart_ = 0;
  char message_[1024] = {};
  dyna_context context_ = {};
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANKMACHINE_H
