//===- AttentionPlans.h - Attention of a CUDA device by cuDNN ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which calls of attention in bf16 cuDNN does, and by what plan; the others are for
// kernels of our own, which leave the same results behind, so that a gradient may
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
  /// cuDNN, if there is one and the device is of compute capability 9.0 or newer.
  bool useLibrary = false;
  /// Gradients are added up in the same order each time. The workspace of that
  /// grows with the square of the longest segment: 2 bytes for each pair of its
  /// tokens, head and segment.
  bool isOrdered = true;
  /// Taken when the device is made; a plan that needs more is not used.
  int64_t workspaceBytes = int64_t(1) << 30;
  int mostPlans = 64; ///< at a time; each keeps its kernels loaded
};

class AttentionPlans {
public:
  /// Opens the library and takes its workspace, where that is wanted. No library is
  /// no failure.
  static StatusOr<std::unique_ptr<AttentionPlans>>
  create(std::shared_ptr<PrimaryContext> context,
         const AttentionOptions &options);
  AttentionPlans(const AttentionPlans &) = delete;
  AttentionPlans &operator=(const AttentionPlans &) = delete;
  ~AttentionPlans();

  /// "attention by cuDNN 9.19.0, plans of 3 classes", or why by own kernels.
  std::string describe() const;
  /// Why the library is not used; empty: it is.
  const std::string &whyNot() const { return whyNot_; }
  int64_t scratchBytes() const { return workspaceBytes_; }

  /// What a call takes besides its operands.
  struct Call {
    const AttentionClass *shape = nullptr;
    CudnnPlan *plan = nullptr; ///< null: the call is for kernels of our own
    gpu::AttentionTablesArguments tables = {}; ///< to be filled before it runs
    void *sums = nullptr;      ///< where those go that nobody wants
    void *workspace = nullptr; ///< of the plan
  };
  /// A plan that was made before is at hand at once; the first call of a class makes
  /// it, which takes seconds. What an earlier call of another stream does with the
  /// workspace is waited for, by the stream. Valid until the next one.
  StatusOr<Call> prepare(const dyna_attention &p, StreamHandle stream);
  StatusOr<Call> prepare(const dyna_attention_grad &p, StreamHandle stream);
  /// Gives the call to the stream, behind the kernel that fills its tables.
  Status run(const Call &call, AttentionTensors tensors, StreamHandle stream);

  /// How many calls were given to the device so far.
  int64_t calls() const { return calls_; }
  /// The device as cuDNN describes it, in JSON; InvalidArgument without the library.
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
    std::string whyNot; ///< there is none
  };
  StatusOr<Planned *> planOf(const AttentionClass &shape);

  std::shared_ptr<PrimaryContext> context_;
  AttentionOptions options_;
  std::string whyNot_; ///< the library is not used
  std::string version_;
  Address workspace_ = 0;
  int64_t workspaceBytes_ = 0; ///< none without the library
  std::unique_ptr<CudnnDevice> device_;
  RecentlyUsed<AttentionClass, Planned> plans_;
  int64_t calls_ = 0;
  AttentionClass shape_;              ///< of the last call
  StreamHandle lastStream_ = nullptr; ///< which used the workspace
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONPLANS_H
