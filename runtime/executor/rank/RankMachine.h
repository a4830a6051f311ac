//===- RankMachine.h - What one rank runs on --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's device, stream and end of the wires, the context of compiled calls,
// and one arena:
//
//     | persistent: tensors that stay | region of plans |
//
// Between two steps the two may change ends (ArenaParts.h).
//
// It knows of no graph: what a rank has of one is a GraphSeat. In the region plans
// have their dynamic regions, and phases of steps what they have of parameters
// (StepMemory.h).
//
// A step is opened, given to the stream and closed; what it left for the host is
// read later. Where the device runs late the next one is opened before that: what
// the host and the copies have of a step is there once for each of the
// `kStepsInFlight`. What kernels have is there once, as the stream runs one step
// behind the other.
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

/// Steps that were given to a device and are not read yet, at most: it has work
/// while the host reads one and gives the next.
inline constexpr int kStepsInFlight = 2;

class RankMachine {
public:
  /// `device` and `transport`, which is null for the only rank, must outlive
  /// the machine. The device is given up when it takes longer than `patience`.
  RankMachine(Device &device, Transport *transport,
              std::chrono::seconds patience)
      : device_(device), transport_(transport), patience_(patience) {}
  RankMachine(const RankMachine &) = delete;

  /// Takes the arena, filled with zeros: ResourceExhausted when there is not
  /// that much memory. If `reservedBytes` is more, the arena has as many. Where the
  /// device can, memory of the rest is taken when it is needed.
  Status start(int64_t persistentBytes, int64_t dynamicBytes, uint64_t seed,
               int64_t reservedBytes = 0);

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
  const ArenaParts &parts() const { return parts_; }
  /// Lays out the arena again, between two steps. Moves no byte. Plans use
  /// `regionBytes` of the next region. Memory behind these is given back, where it was
  /// reserved.
  Status layOut(const ArenaParts &parts, int64_t regionBytes);
  /// Notes that so many bytes of the arena are used at one time.
  void noteUse(int64_t bytes) {
    takenBytes_ = std::max(takenBytes_, std::min(bytes, parts_.arenaBytes));
  }
  /// Bytes of the arena that tensors and plans use at present.
  int64_t usedBytes() const { return usedBytes_; }
  /// Most bytes of the arena that were used at one time. All of it, unless it was
  /// reserved.
  int64_t takenBytes() const { return takenBytes_; }
  int64_t dynamicStart() const { return parts_.region; }
  int64_t dynamicBytes() const { return parts_.regionBytes; }
  /// Addresses; offsets count from the start of the arena, and of its dynamic
  /// region.
  void *persistent(int64_t offset) const {
    return static_cast<char *>(arena_->data()) + offset;
  }
  void *dynamic(int64_t offset) const {
    return persistent(parts_.region + offset);
  }

  /// Returns true if bytes lie in the arena or in what steps leave for the host.
  bool owns(const void *data, int64_t bytes) const;

  /// In the order of the stream; offsets count from the start of the arena.
  Status fill(int64_t offset, int64_t bytes, uint8_t value) {
    return device_.fill(*stream_, *arena_, offset, bytes, value);
  }
  Status zeroWhere(int64_t offset, int64_t mask, int64_t count,
                   int64_t elementBytes) {
    return device_.zeroWhere(*stream_, *arena_, offset, *arena_, mask, count,
                             elementBytes);
  }
  Status toDevice(int64_t offset, const void *source, int64_t bytes) {
    return device_.copyToDevice(*stream_, *arena_, offset, source, bytes);
  }
  /// The same of data that need not stay, for the step that is open: it goes
  /// through memory that is kept until the results of the step are read. Where the
  /// device runs late it comes there on a stream of its own, beside kernels.
  Status upload(int64_t offset, const void *source, int64_t bytes);
  Status toHost(void *target, int64_t offset, int64_t bytes) {
    return device_.copyToHost(*stream_, target, *arena_, offset, bytes);
  }
  /// Opens a step, which `canOpenStep`. What it leaves for the host lies in one
  /// block of device memory: the norm of its gradient (0), the factor of clipping
  /// (1), then numbers (f64) that functions write, `count` of them, all 0 now.
  /// `skipsLeft` is how many steps that are not finite may still be passed over;
  /// while another one is in flight the device alone knows, and it is ignored.
  Status openStep(int64_t count, int64_t skipsLeft);
  /// Whether there are fewer in flight than may be.
  bool canOpenStep() const { return inFlight_ < kStepsInFlight; }
  /// All of the open step is given: so is the copy of what it leaves.
  Status closeStep();
  int stepsInFlight() const { return inFlight_; }
  double *gradientNorm() const { return result(-2); }
  double *gradientScale() const { return result(-1); }
  /// Where a function writes one of the numbers.
  double *result(int64_t index) const {
    return static_cast<double *>(results_->data()) + kResultHead + index;
  }
  /// Makes one of the numbers NaN, in the order of the stream.
  Status spoilResult(int64_t index);
  /// Stays from step to step, as dyna_clip counts it down.
  int64_t *skipsLeft() const {
    return static_cast<int64_t *>(skipsLeft_->data());
  }
  struct Results {
    double gradientNorm;
    std::vector<double> numbers;
    bool hasFailedBehind; ///< the device, which says nothing any more
  };
  /// Of the first step in flight, once all of it is done: the one wait of a step.
  /// Where the device failed behind it, in the step that follows, what it left is
  /// there nevertheless, and reading that step fails.
  StatusOr<Results> readStep();
  /// Waits until all of it is done, but not for ever.
  Status synchronize();

  /// What compiled functions get.
  dyna_context &context() { return context_; }
  /// Of a call with the context: a failure in the words of who failed.
  Status outcome(dyna_status status);
  /// A failed call's own words, else "".
  const char *message();
  void clearMessage() { message_[0] = '\0'; }

private:
  static constexpr int64_t kResultHead = 2;
  /// Memory that one or more uploads of a step go through. Stays, and is used
  /// again when the step has been read.
  struct StagingBlock {
    std::unique_ptr<StagingMemory> onHost;
    std::unique_ptr<Buffer> onDevice; ///< null unless the device runs late
    int64_t used = 0;
    int64_t room() const { return onHost->bytes() - used; }
  };
  /// What a step begins with, copied from memory of the host: where that is not
  /// page-locked, a driver may wait for the stream first.
  struct Given {
    double head[kResultHead];
    int64_t skipsLeft;
  };
  /// What there is of a step until it is read.
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
  /// Of the step that is open, or would be next.
  StepInFlight &openMemory() {
    return steps_[(first_ + inFlight_) % kStepsInFlight];
  }
  /// One with room for so much more of the step.
  StatusOr<StagingBlock *> stagingBlock(StepInFlight &step, int64_t bytes);
  /// Makes room for results of so many bytes.
  Status takeResults(StepInFlight &step, int64_t bytes);
  /// Whether its results are on the host, whatever waits say.
  static bool hasArrived(const StepInFlight &step);

  Device &device_;
  Transport *transport_;
  const std::chrono::seconds patience_;
  std::unique_ptr<Buffer> arena_;
  /// Of all steps in flight: each is copied before the next one's is cleared.
  std::unique_ptr<Buffer> results_;
  std::unique_ptr<Buffer> skipsLeft_; ///< one int64_t
  /// Too small for later steps; freed when nothing is in flight.
  std::vector<std::unique_ptr<Buffer>> outgrownResults_;
  std::vector<std::unique_ptr<StagingMemory>> outgrownMemory_;
  std::array<StepInFlight, kStepsInFlight> steps_;
  int first_ = 0; ///< of the steps in flight
  int inFlight_ = 0;
  bool isOpen_ = false;
  std::unique_ptr<Stream> stream_, uploads_;
  std::unique_ptr<Event> uploaded_; ///< the last upload
  ArenaParts parts_;
  bool isReserved_ = false; ///< memory of the arena is taken as it is needed
  int64_t usedBytes_ = 0, takenBytes_ = 0;
  char message_[1024] = {};
  dyna_context context_ = {};
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_RANKMACHINE_H
