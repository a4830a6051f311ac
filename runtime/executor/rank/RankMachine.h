//===- RankMachine.h - Holds the device and arena of one rank ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's machine has its device, stream and end of the wires, the context of
// compiled calls, and one arena:
//
//     | persistent: tensors that stay | region of plans |
//
// Between two steps the two parts may change ends (ArenaParts.h).
//
// The machine knows no graph; GraphSeat holds a rank's data of one graph. The
// region has the dynamic regions of plans, and tensors of parameters during
// phases of steps (StepMemory.h).
//
// A step is opened, given to the stream and closed. Its results for the host
// are read later. On a device that runs late, the next step is opened before
// that. So the data of a step on the host, and of its copies, exist once for
// each of the `kStepsInFlight`. Data of kernels exist once, because the stream
// runs one step after another.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_RANKMACHINE_H
#define DYNA_RUNTIME_EXECUTOR_RANK_RANKMACHINE_H

#include "runtime/abi/Abi.h"
#include "runtime/device/Device.h"
#include "runtime/executor/rank/ArenaParts.h"
#include "runtime/transport/Transport.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

namespace dyna {

/// Largest number of steps that were launched and are not read. The device has
/// work while the host reads one step and launches the next.
inline constexpr int kStepsInFlight = 2;

class RankMachine {
public:
  /// Makes a machine. `device` and `transport`, which is null for the only
  /// rank, must outlive it. A device that takes longer than `patience` counts
  /// as lost.
  RankMachine(Device &device, Transport *transport,
              std::chrono::seconds patience)
      : device_(device), transport_(transport), patience_(patience) {}
  RankMachine(const RankMachine &) = delete;

  /// Allocates the arena, filled with zeros. Fails with ResourceExhausted if
  /// there is too little memory. The arena has at least `reservedBytes`. If the
  /// device can, memory for the rest is allocated when it is needed.
  Status start(int64_t persistentBytes, int64_t dynamicBytes, uint64_t seed,
               int64_t reservedBytes = 0);

  Device &device() const { return device_; }
  Transport *transport() const { return transport_; }
  int rank() const { return transport_ ? transport_->rank() : 0; }
  int ranks() const { return transport_ ? transport_->ranks() : 1; }
  /// Returns the bytes that this rank has sent so far.
  Traffic traffic() const {
    return transport_ ? transport_->traffic() : Traffic();
  }

  Buffer &arena() const { return *arena_; }
  Stream &stream() const { return *stream_; }
  const ArenaParts &parts() const { return parts_; }
  /// Lays out the arena again, between two steps. Moves no byte. Plans use
  /// `regionBytes` of the next region. Memory after these bytes is given back,
  /// if it was reserved.
  Status layOut(const ArenaParts &parts, int64_t regionBytes);
  /// Records that `bytes` bytes of the arena are used at one time.
  void noteUse(int64_t bytes) {
    takenBytes_ = std::max(takenBytes_, std::min(bytes, parts_.arenaBytes));
  }
  /// Returns the bytes of the arena that tensors and plans use at present.
  int64_t usedBytes() const { return usedBytes_; }
  /// Returns the bytes of the arena that have memory at present. Without a
  /// reserve these are all, or none if the rank has no place.
  int64_t residentBytes() const {
    return isReleased_ ? 0 : isReserved_ ? usedBytes_ : parts_.arenaBytes;
  }
  /// Returns the largest number of bytes of the arena that were used at one
  /// time. That is all of it, unless it was reserved.
  int64_t takenBytes() const { return takenBytes_; }
  int64_t dynamicStart() const { return parts_.region; }
  int64_t dynamicBytes() const { return parts_.regionBytes; }
  /// Return addresses. Offsets count from the start of the arena, or of its
  /// dynamic region.
  void *persistent(int64_t offset) const {
    return static_cast<char *>(arena_->data()) + offset;
  }
  void *dynamic(int64_t offset) const {
    return persistent(parts_.region + offset);
  }

  /// Returns true if the bytes are in the arena or in the results of steps.
  bool owns(const void *data, int64_t bytes) const;

  /// The functions below work in the order of the stream. Offsets count from
  /// the start of the arena.
  Status fill(int64_t offset, int64_t bytes, uint8_t value) {
    return device_.fill(*stream_, *arena_, offset, bytes, value);
  }
  Status zeroWhere(int64_t offset, int64_t mask, int64_t count,
                   int64_t elementBytes) {
    return device_.zeroWhere(*stream_, *arena_, offset, *arena_, mask, count,
                             elementBytes);
  }
  Status addScores(const ScoredWeights &scored) {
    return device_.addScores(*stream_, *arena_, scored);
  }
  Status toDevice(int64_t offset, const void *source, int64_t bytes) {
    return device_.copyToDevice(*stream_, *arena_, offset, source, bytes);
  }
  /// Copies data for the open step to the arena; the source may change at once.
  /// The data pass through memory that is kept until the results of the step
  /// are read. If the device runs late, they arrive there on a stream of their
  /// own, beside kernels.
  Status upload(int64_t offset, const void *source, int64_t bytes);
  Status toHost(void *target, int64_t offset, int64_t bytes) {
    return device_.copyToHost(*stream_, target, *arena_, offset, bytes);
  }
  /// Opens a step; `canOpenStep` must be true. Its results are in one block of
  /// device memory. It has the norm of the gradient (0), the factor of clipping
  /// (1), and then `count` numbers (f64) that functions write, all 0 now.
  /// `skipsLeft` is the number of steps that may still be skipped because they
  /// are not finite. While another step is in flight only the device knows it,
  /// and the argument is ignored.
  Status openStep(int64_t count, int64_t skipsLeft);
  /// Returns true if another step may be opened.
  bool canOpenStep() const { return inFlight_ < kStepsInFlight; }
  /// Closes the open step, and gives the copy of its results to the stream.
  Status closeStep();
  int stepsInFlight() const { return inFlight_; }
  double *gradientNorm() const { return result(-2); }
  double *gradientScale() const { return result(-1); }
  /// Returns the address at which a function writes one of the numbers.
  double *result(int64_t index) const {
    return static_cast<double *>(results_->data()) + kResultHead + index;
  }
  /// Makes one of the numbers NaN, in the order of the stream.
  Status spoilResult(int64_t index);
  /// Returns the count of skips left, which stays from step to step. dyna_clip
  /// counts it down.
  int64_t *skipsLeft() const {
    return static_cast<int64_t *>(skipsLeft_->data());
  }
  struct Results {
    double gradientNorm;
    std::vector<double> numbers;
    bool hasFailedBehind; ///< a later step failed; the device answers no more
  };
  /// Waits until the first step in flight is done, and returns its results: the
  /// only wait of a step. If the device failed in the step after it, the
  /// results are still returned. Then reading that step fails.
  StatusOr<Results> readStep();
  /// Waits until all work is done, for at most `patience`.
  Status synchronize();

  /// Returns the context that compiled functions get.
  dyna_context &context() { return context_; }
  /// Returns the outcome of a call with the context. A failure has the text of
  /// the failed function.
  Status outcome(dyna_status status);
  /// Returns the text of a failed call, else "".
  const char *message();
  void clearMessage() { message_[0] = '\0'; }

private:
  static constexpr int64_t kResultHead = 2;
  /// Memory that one or more uploads of a step pass through. It is kept, and
  /// used again when the step has been read.
  struct StagingBlock {
    std::unique_ptr<StagingMemory> onHost;
    std::unique_ptr<Buffer> onDevice; ///< null unless the device runs late
    int64_t used = 0;
    int64_t room() const { return onHost->bytes() - used; }
  };
  /// Start values of a step, copied from page-locked host memory. From other
  /// memory a driver might wait for the stream first.
  struct Given {
    double head[kResultHead];
    int64_t skipsLeft;
  };
  /// Data of a step until it is read.
  struct StepInFlight {
    std::unique_ptr<StagingMemory> memory; ///< Given, then the results
    Given *given() const { return static_cast<Given *>(memory->data()); }
    double *results() const { return reinterpret_cast<double *>(given() + 1); }
    uint64_t *resultBits() const {
      return reinterpret_cast<uint64_t *>(given() + 1);
    }
    int64_t count = 0;
    std::unique_ptr<Event> done; ///< the results are on the host
    std::vector<StagingBlock> staging;
  };
  /// Returns the memory of the step that is open, or of the next one.
  StepInFlight &openMemory() {
    return steps_[(first_ + inFlight_) % kStepsInFlight];
  }
  /// Returns a block with room for `bytes` more bytes of the step.
  StatusOr<StagingBlock *> stagingBlock(StepInFlight &step, int64_t bytes);
  /// Makes room for `bytes` bytes of results.
  Status takeResults(StepInFlight &step, int64_t bytes);
  /// Returns true if the results are on the host, even if a wait has failed.
  static bool hasArrived(const StepInFlight &step);

  Device &device_;
  Transport *transport_;
  const std::chrono::seconds patience_;
  std::unique_ptr<Buffer> arena_;
  /// Results of all steps in flight: each is copied before those of the next
  /// one are cleared.
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> skipsLeft_; ///< one int64_t
  /// Memory that is too small for later steps; freed when nothing is in flight.
  std::vector<std::unique_ptr<Buffer>> outgrownResults_;
  std::vector<std::unique_ptr<StagingMemory>> outgrownMemory_;
  std::array<StepInFlight, kStepsInFlight> steps_;
  int first_ = 0; ///< of the steps in flight
  int inFlight_ = 0;
  bool isOpen_ = false;
  std::unique_ptr<Stream> stream_, uploads_;
  std::unique_ptr<Event> uploaded_; ///< the last upload
  ArenaParts parts_;
  bool isReleased_ = false; ///< has no place, and gave back its arena
  bool isReserved_ =
      false; ///< memory of the arena is allocated when it is needed
  int64_t usedBytes_ = 0, takenBytes_ = 0;
  char message_[1024] = {};
  dyna_context context_ = {};
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_RANKMACHINE_H
