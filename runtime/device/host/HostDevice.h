//===- HostDevice.h - Makes the processor a device --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs all work on the cores of this machine, on its own team, and finishes
// before it returns. It is the oracle for other backends.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_HOSTDEVICE_H
#define DYNA_RUNTIME_DEVICE_HOST_HOSTDEVICE_H

#include "runtime/device/Device.h"

#include <vector>

namespace dyna {

struct KernelTable;
class MatmulPrimitives;

/// Instruction sets the kernels are compiled for.
enum class HostIsa { Best, Baseline, Avx2, Avx512 };

/// Implementation of bf16 products: oneDNN's bf16 product, or f32 products of
/// operands that are widened block by block. Auto uses the first if the
/// processor has AMX, or if its bf16 instruction is clearly faster than f32.
/// The speed is measured once, in microseconds. Both paths accumulate in f32 but
/// add in different orders.
enum class Bf16Path { Auto, Native, Widen };

struct HostOptions {
  int threads = 0; ///< 0: all available cores
  HostIsa isa = HostIsa::Best;
  Bf16Path bf16 = Bf16Path::Auto;
};

class HostDevice final : public Device {
public:
  static StatusOr<std::unique_ptr<HostDevice>> create(int threads);
  static StatusOr<std::unique_ptr<HostDevice>>
  create(const HostOptions &options);
  ~HostDevice() override;

  /// Returns the device of a context, which `bind` put there.
  static HostDevice &of(const dyna_context &context) {
    return *reinterpret_cast<Bound *>(context.device)->device;
  }

  std::string describe() const override;
  /// Describes how products of bf16 are computed here.
  std::string describeBf16Products() const override;
  StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) override;
  StatusOr<std::unique_ptr<Buffer>> reserve(int64_t bytes,
                                            int64_t taken) override;
  bool takesMemoryLate() const override { return true; }
  Status giveBack(Buffer &buffer, int64_t offset, int64_t bytes) override;
  int64_t freeBytes() const override;
  StatusOr<std::unique_ptr<StagingMemory>> allocateHost(int64_t bytes) override;
  StatusOr<std::unique_ptr<Stream>> createStream() override;
  StatusOr<std::unique_ptr<Event>> createEvent() override;
  Status copyToDevice(Stream &stream, Buffer &target, int64_t offset,
                      const void *source, int64_t bytes) override;
  Status copyToHost(Stream &stream, void *target, const Buffer &source,
                    int64_t offset, int64_t bytes) override;
  Status copy(Stream &stream, Buffer &target, int64_t targetOffset,
              const Buffer &source, int64_t sourceOffset,
              int64_t bytes) override;
  Status fill(Stream &stream, Buffer &target, int64_t offset, int64_t bytes,
              uint8_t value) override;
  Status zeroWhere(Stream &stream, Buffer &target, int64_t offset,
                   const Buffer &mask, int64_t maskOffset, int64_t count,
                   int64_t elementBytes) override;
  Status addScores(Stream &stream, Buffer &buffer,
                   const ScoredWeights &scored) override;
  bool sharesMemory() const override { return true; }
  Status record(Stream &stream, Event &event) override;
  Status streamWait(Stream &stream, Event &event) override;
  Status wait(Event &event, Deadline deadline) override;
  Status synchronize(Stream &stream, Deadline deadline) override;
  void bind(dyna_context &context, Stream &stream) override;
  /// Binds the context to this device and its own stream.
  void bind(dyna_context &context);

  Team &team() override { return *team_; }
  const KernelTable &kernels() const { return *kernels_; }
  /// Returns oneDNN's primitives; null if they cannot be used.
  MatmulPrimitives *primitives() { return primitives_.get(); }
  /// Returns true if bf16 products use oneDNN's bf16 code; otherwise operands
  /// are widened.
  bool multipliesBf16() const { return primitives_ && nativeBf16_; }

  /// Returns scratch memory, which grows to the largest request and stays.
  /// `slot` is 0 to team().size()-1 for each worker, and sharedSlot() for all.
  /// Null if there is no memory. Not called during runs.
  void *scratch(int slot, int64_t bytes);
  bool reserveWorkers(int64_t bytes);
  void *workerScratch(int worker) const { return scratch_[worker].data; }
  int sharedSlot() const { return team_->size(); }
  /// Returns the bytes of all scratch memory so far.
  int64_t scratchBytes() const override;

private:
  HostDevice();

  /// Object that `dyna_context::device` points to.
  struct Bound {
    dyna_device head;
    HostDevice *device;
  };
  struct Scratch {
    void *data = nullptr;
    int64_t bytes = 0;
  };

  Bound bound_;
  std::unique_ptr<Team> team_;
  const KernelTable *kernels_ = nullptr;
  std::unique_ptr<MatmulPrimitives> primitives_;
  bool nativeBf16_ = false;
  std::vector<Scratch> scratch_;
  std::unique_ptr<Stream> ownStream_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_HOSTDEVICE_H
