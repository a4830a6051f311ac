//===- CudaDevice.h - Makes a GPU of NVIDIA a device ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work runs later, on streams of the driver, which is opened when a device is
// created. `wait` and `synchronize` wait until a deadline, by polling less and
// less often. Other functions do not wait, with one exception. To free memory,
// a module or a stream waits for all work of the device (`idleSeconds` at
// most). So allocate and free outside of steps.
//
// A failure of work ends the use of the device. Examples are an illegal access
// by a kernel, and a deadline that passes. That call and all later ones return
// the failure, and nothing blocks. Its one line has the device, the call, the
// error's name and meaning, and the last kernel of the stream. A call that is
// refused for its arguments (too much memory, a range outside of a buffer) ends
// nothing.
//
// Buffers, streams, events and modules may outlive the device.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define DYNA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/attention/AttentionPlans.h"
#include "runtime/device/cuda/driver/CudaCode.h"
#include "runtime/device/cuda/driver/CudaModule.h"
#include "runtime/device/cuda/kernels/StepArguments.h"
#include "runtime/device/cuda/product/Products.h"

#include <array>
#include <map>

namespace dyna {

struct CudaOptions {
  int ordinal = 0; ///< number of the device, as the driver counts
  int threads = 0; ///< of the host's team; 0: all available cores
  /// Seconds that freeing waits for work before the device counts as lost.
  double idleSeconds = 30;
  cuda::ProductOptions products = {};
  cuda::AttentionOptions attention = {};
};

/// Streams of every device. Copies and messages run beside kernels.
enum class CudaStreamRole { Compute, Upload, Send, Receive };
inline constexpr int kCudaStreamRoles = 4;

class CudaDevice final : public Device {
public:
  /// Creates a device. Fails with InvalidArgument, in one line, if there is no
  /// driver, it is too old, or there is no device of this number.
  static StatusOr<std::unique_ptr<CudaDevice>>
  create(const CudaOptions &options);
  ~CudaDevice() override;

  /// Returns the device of a context, which `bind` put there.
  static CudaDevice &of(const dyna_context &context) {
    return *reinterpret_cast<Bound *>(context.device)->device;
  }

  std::string describe() const override;
  /// Returns the bytes of the workspaces of products and of attention.
  int64_t scratchBytes() const override {
    return products_->scratchBytes() + attention_->scratchBytes();
  }
  Team &team() override { return *team_; }
  /// Returns the compute capability as 10 major + minor.
  int capability() const { return context_->capability(); }

  StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) override;
  int64_t freeBytes() const override;
  StatusOr<std::unique_ptr<StagingMemory>> allocateHost(int64_t bytes) override;
  StatusOr<std::unique_ptr<Stream>> createStream() override;
  /// Returns an event; reuses one of the driver's events if possible.
  StatusOr<std::unique_ptr<Event>> createEvent() override;
  Stream &stream(CudaStreamRole role) {
    return *streams_[static_cast<size_t>(role)];
  }

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

  Status record(Stream &stream, Event &event) override;
  Status streamWait(Stream &stream, Event &event) override;
  Status wait(Event &event, Deadline deadline) override;
  Status synchronize(Stream &stream, Deadline deadline) override;
  bool runsLate() const override { return true; }
  StatusOr<double> secondsBetween(const Event &begin,
                                  const Event &end) override;

  /// Sets `context.stream` to the driver's handle.
  void bind(dyna_context &context, Stream &stream) override;

  /// Loads the image that this device runs best. Fails with InvalidArgument if
  /// there is none for its architecture.
  StatusOr<std::unique_ptr<CudaModule>>
  load(const std::vector<CudaImage> &images) {
    return CudaModule::load(context_, images);
  }
  /// Loads the code of a program, which must outlive the device. Otherwise the
  /// first launch loads it, and waits for the driver.
  Status loadCode(const dyna_device_code &code);
  /// Launches kernel number `function` of `code`, like the launch below. Blocks
  /// have as many threads as `code` gives.
  Status launch(cuda::StreamHandle stream, const dyna_device_code &code,
                int64_t function, int64_t blocks, const void *arguments,
                int64_t argumentBytes);
  /// Runs `blocks` blocks of `threads` threads; 0 blocks do nothing. The
  /// kernel's one parameter, a struct by value, is copied from `arguments`
  /// before this returns. `stream` is a handle of a stream of this device.
  Status launch(cuda::StreamHandle stream, const CudaKernel &kernel,
                int64_t blocks, int threads, int64_t sharedBytes,
                const void *arguments, int64_t argumentBytes);

  /// Zeroes memory of this device. `stream` is a handle as above.
  Status clear(cuda::StreamHandle stream, void *data, int64_t bytes);

  cuda::Products &products() { return *products_; }
  cuda::AttentionPlans &attention() { return *attention_; }

  /// Returns the place in which a kernel stores a refused index. The failure of
  /// the device then names it.
  gpu::BadRow *badRow() const {
    return static_cast<gpu::BadRow *>(badRow_->data());
  }

private:
  CudaDevice();

  /// Object that `dyna_context::device` points to.
  struct Bound {
    dyna_device head;
    CudaDevice *device;
  };
  Bound bound_;
  std::shared_ptr<cuda::PrimaryContext> context_;
  std::unique_ptr<Team> team_;
  std::array<std::unique_ptr<Stream>, kCudaStreamRoles> streams_;
  std::unique_ptr<StagingMemory> badRow_;
  std::map<const dyna_device_code *, std::unique_ptr<CudaCode>> codes_;
  std::unique_ptr<cuda::Products> products_;
  std::unique_ptr<cuda::AttentionPlans> attention_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
