//===- AttentionPlans.h - Runs attention of a CUDA device by cuDNN --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses which calls of bf16 attention cuDNN runs, and with which plan. Our
// own kernels run the others. Both leave the same results, so a gradient may
// follow a forward call of the other kind (CudaAttention.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONPLANS_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONPLANS_H

#include "runtime/device/cuda/attention/CudnnPlan.h"
#include "runtime/device/cuda/driver/PrimaryContext.h"
#include "runtime/device/cuda/driver/RecentlyUsed.h"

#include <memory>
#include <string>

namespace dyna::cuda {

struct AttentionOptions {
  /// Use cuDNN, if it is found and the device has compute capability 9.0 or
  /// newer.
  bool useLibrary = false;
  /// Add gradients in the same order each time. The workspace for this grows
  /// with the square of the longest segment: 2 bytes for each pair of its
  /// tokens, head and segment.
  bool isOrdered = true;
  /// Bytes that are allocated when the device is made. A plan that needs more
  /// is not used.
  int64_t workspaceBytes = int64_t(1) << 30;
  int mostPlans =
      64; ///< largest number of plans; each keeps its kernels loaded
};

class AttentionPlans {
public:
  /// Opens the library and allocates its workspace, if it is to be used. A
  /// missing library is no failure.
  static StatusOr<std::unique_ptr<AttentionPlans>>
  create(std::shared_ptr<PrimaryContext> context,
         const AttentionOptions &options);
  AttentionPlans(const AttentionPlans &) = delete;
  AttentionPlans &operator=(const AttentionPlans &) = delete;
  ~AttentionPlans();

  /// Describes the library: "attention by cuDNN 9.19.0, plans of 3 classes", or
  /// why our own kernels are used.
  std::string describe() const;
  /// Returns why the library is not used; empty if it is.
  const std::string &whyNot() const { return whyNot_; }
  int64_t scratchBytes() const { return workspaceBytes_; }

  /// Arguments of a call besides its operands.
  struct Call {
    const AttentionClass *shape = nullptr;
    CudnnPlan *plan = nullptr; ///< null: our own kernels run the call
    gpu::AttentionTablesArguments tables = {}; ///< the call fills these
    void *sums = nullptr; ///< memory for sums that the caller does not want
    void *workspace = nullptr; ///< of the plan
  };
  /// Prepares a call. The first call of a class makes its plan, which takes
  /// seconds; later calls reuse it. If an earlier call on another stream uses
  /// the workspace, the stream waits for it. The result is valid until the next
  /// `prepare`.
  StatusOr<Call> prepare(const dyna_attention &p, StreamHandle stream);
  StatusOr<Call> prepare(const dyna_attention_grad &p, StreamHandle stream);
  /// Gives the call to the stream, after the kernel that fills its tables.
  Status run(const Call &call, AttentionTensors tensors, StreamHandle stream);

  /// Returns the number of calls given to the device so far.
  int64_t calls() const { return calls_; }
  /// Returns cuDNN's description of the device as JSON. Fails with
  /// InvalidArgument without the library.
  StatusOr<std::string> properties() const;

private:
  AttentionPlans(std::shared_ptr<PrimaryContext> context,
                 const AttentionOptions &options)
      : context_(std::move(context)), options_(options),
        plans_(options.mostPlans) {}
  Status openLibrary();
  StatusOr<Call> prepare(const AttentionClass &shape,
                         const dyna_segments &segments, StreamHandle stream);

  struct Planned {
    std::unique_ptr<CudnnPlan> plan;
    std::string whyNot; ///< why there is no plan
  };
  StatusOr<Planned *> planOf(const AttentionClass &shape);

  std::shared_ptr<PrimaryContext> context_;
  AttentionOptions options_;
  std::string whyNot_; ///< why the library is not used
  std::string version_;
  Address workspace_ = 0;
  int64_t workspaceBytes_ = 0; ///< none without the library
  std::unique_ptr<CudnnDevice> device_;
  RecentlyUsed<AttentionClass, Planned> plans_;
  int64_t calls_ = 0;
  AttentionClass shape_;              ///< of the last call
  StreamHandle lastStream_ = nullptr; ///< that last used the workspace
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONPLANS_H
