//===- CudaDevice.h - A GPU of NVIDIA as a device ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs what it is given later, on streams of the driver, which is opened when a
// device is created. Nothing here waits but `wait` and `synchronize`, both until
// a deadline, by asking more and more seldom; and what frees memory, a module or
// a stream, which waits for all work of the device (`idleSeconds` at most): take
// and free outside of steps.
//
// A failure of work (a kernel that accesses what it may not, a deadline that
// passes) ends the use of the device: that call and all later ones return it,
// with the device, the call, the error's name and meaning and the last kernel of
// the stream in one line, and nothing blocks. A call that is refused for what it
// was given (too much memory, a range outside of a buffer) ends nothing.
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
  int ordinal = 0; ///< which device, as the driver counts them
  int threads = 0; ///< of the host's team; 0: all available cores
  /// How long freeing waits for work before the device is given up.
  double idleSeconds = 30;
  cuda::ProductOptions products = {};
  cuda::AttentionOptions attention = {};
};

/// Streams that every device has: copies and messages run beside kernels.
enum class CudaStreamRole { Compute, Upload, Send, Receive };
inline constexpr int kCudaStreamRoles = 4;

class CudaDevice final : public Device {
public:
  /// Fails in one line, with InvalidArgument: no driver, one that is too old, no
  /// device or none of this number.
  static StatusOr<std::unique_ptr<CudaDevice>>
  create(const CudaOptions &options);
  ~CudaDevice() override;

  /// The device of a context, which `bind` put there.
  static CudaDevice &of(const dyna_context &context) {
    return *reinterpret_cast<Bound *>(context.device)->device;
  }

  std::string describe() const override;
  /// The workspaces of products and of attention.
  int64_t scratchBytes() const override {
    return products_->scratchBytes() + attention_->scratchBytes();
  }
  Team &team() override { return *team_; }
  /// 10 major + minor of its compute capability.
  int capability() const { return context_->capability(); }

  StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) override;
  int64_t freeBytes() const override;
  StatusOr<std::unique_ptr<StagingMemory>> allocateHost(int64_t bytes) override;
  StatusOr<std::unique_ptr<Stream>> createStream() override;
  /// An event of the driver's that was used before, if there is one.
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

  Status record(Stream &stream, Event &event) override;
  Status streamWait(Stream &stream, Event &event) override;
  Status wait(Event &event, Deadline deadline) override;
  Status synchronize(Stream &stream, Deadline deadline) override;
  bool runsLate() const override { return true; }
  StatusOr<double> secondsBetween(const Event &begin,
                                  const Event &end) override;

  /// `context.stream` becomes the driver's handle.
  void bind(dyna_context &context, Stream &stream) override;

  /// Loads the image that this device runs best. InvalidArgument when there is
  /// none for its architecture.
  StatusOr<std::unique_ptr<CudaModule>>
  load(const std::vector<CudaImage> &images) {
    return CudaModule::load(context_, images);
  }
  /// Loads what a program brings, which stays where it is. A launch does so where
  /// it was not done, but waits for the driver then.
  Status loadCode(const dyna_device_code &code);
  /// Launches kernel number `function` of `code`, in blocks of as many threads as
  /// it says, as the launch below.
  Status launch(cuda::StreamHandle stream, const dyna_device_code &code,
                int64_t function, int64_t blocks, const void *arguments,
                int64_t argumentBytes);
  /// Runs `blocks` blocks of `threads` threads; no block is no work. The kernel's
  /// one parameter, a struct by value, is copied from `arguments` before this
  /// returns. `stream` is a handle of a stream of this device.
  Status launch(cuda::StreamHandle stream, const CudaKernel &kernel,
                int64_t blocks, int threads, int64_t sharedBytes,
                const void *arguments, int64_t argumentBytes);

  /// Zeros for memory of this device. `stream` is a handle as above.
  Status clear(cuda::StreamHandle stream, void *data, int64_t bytes);

  cuda::Products &products() { return *products_; }
  cuda::AttentionPlans &attention() { return *attention_; }

  /// Where a kernel says which index it refuses; the failure of this device is
  /// told in those words then.
  gpu::BadRow *badRow() const {
    return static_cast<gpu::BadRow *>(badRow_->data());
  }

private:
  CudaDevice();

  /// What `dyna_context::device` points to.
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
