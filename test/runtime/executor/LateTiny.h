//===- LateTiny.h - The tiny model on a device that runs late ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The hand-written functions of TinyModel.h as kernels of one thread on the
// driver's stand-in (test/standins): a call copies what it was given, as a launch
// does, and is done later, in device memory that the host cannot touch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_LATETINY_H
#define DYNA_TEST_RUNTIME_EXECUTOR_LATETINY_H

#include "runtime/device/cuda/CudaDevice.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/standins/Fibers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace dyna {

/// A function and all that it was given.
struct LateCall {
  dyna_layer_function function;
  dyna_context context;
  dyna_saved saved;
  dyna_segments segments;
  void *workspace;
  std::array<dyna_tensor, 4> params, grads;
  std::array<dyna_tensor, 12> in;
  std::array<dyna_tensor, 1> out;
};

/// How many tensors stand in the arrays of a role (Abi.h).
struct LateCounts {
  int params = 0, grads = 0, in = 0, out = 0;
};

constexpr int kLateFunctions = tinyKinds * DYNA_ROLE_COUNT;

/// One at a time: functions carry no pointer of their own.
class LateTiny {
public:
  /// Both must outlive it.
  LateTiny(const TinyProgram &program, CudaDevice &device);
  LateTiny(const LateTiny &) = delete;
  ~LateTiny() { current = nullptr; }

  const dyna_variant &variant() const { return variant_; }
  /// Failed where it is none.
  const Status &status() const { return status_; }

private:
  template <int number>
  static dyna_status call(dyna_context *context, const dyna_tensor *params,
                          const dyna_tensor *grads, const dyna_saved *saved,
                          void *workspace, const dyna_segments *segments,
                          const dyna_tensor *in, const dyna_tensor *out) {
    const LateCounts &counts = current->counts_[number];
    LateCall call = {};
    call.function = current->functions_[number];
    call.context = *context;
    call.saved = *saved;
    call.segments = *segments;
    call.workspace = workspace;
    std::copy_n(params, counts.params, call.params.begin());
    std::copy_n(grads, counts.grads, call.grads.begin());
    std::copy_n(in, counts.in, call.in.begin());
    std::copy_n(out, counts.out, call.out.begin());
    Status launched = CudaDevice::of(*context).launch(
        static_cast<cuda::StreamHandle>(context->stream), current->kernel_,
        /*blocks=*/1, /*threads=*/1, /*sharedBytes=*/0, &call, sizeof(call));
    if (launched.isOk())
      return DYNA_OK;
    std::snprintf(context->message, context->message_capacity, "%s",
                  launched.message().c_str());
    return static_cast<dyna_status>(launched.code());
  }

  static void run(const void *arguments) {
    LateCall call = *static_cast<const LateCall *>(arguments);
    char message[256] = "";
    call.context.message = message;
    call.context.message_capacity = sizeof(message);
    if (call.function(&call.context, call.params.data(), call.grads.data(),
                      &call.saved, call.workspace, &call.segments,
                      call.in.data(), call.out.data()) != DYNA_OK)
      dyna_emulated_trap("a function of the tiny model failed");
  }

  template <int... numbers> void fill(std::integer_sequence<int, numbers...>) {
    ((late_[numbers] = functions_[numbers] ? call<numbers> : nullptr), ...);
  }

  inline static LateTiny *current = nullptr;
  const dyna_layer_function *functions_;
  std::array<LateCounts, kLateFunctions> counts_;
  std::array<dyna_layer_function, kLateFunctions> late_ = {};
  dyna_variant variant_ = {};
  std::unique_ptr<CudaModule> module_;
  CudaKernel kernel_;
  Status status_;
};

inline LateTiny::LateTiny(const TinyProgram &program, CudaDevice &device)
    : functions_(program.program().variants[0].functions) {
  static const dyna_emulated_entry entry = {"tiny_call", run, sizeof(LateCall)};
  static const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image),
                                            1, &entry, dyna_emulated_run};
  for (int kind = 0; kind < tinyKinds; ++kind) {
    const int held = program.manifest.kinds(kind).parameters_size();
    // The head is given targets, too.
    const int inputs = kind + 1 == tinyKinds ? 2 : 1;
    LateCounts *counts = &counts_[kind * DYNA_ROLE_COUNT];
    counts[DYNA_ROLE_EVALUATE] = {held, 0, inputs, 1};
    counts[DYNA_ROLE_FORWARD] = {held, held, inputs, 1};
    counts[DYNA_ROLE_RECOMPUTE_SELECTIVE] = {held, 0, 0, 0};
    counts[DYNA_ROLE_RECOMPUTE_FULL] = {held, 0, 0, 0};
    counts[DYNA_ROLE_BACKWARD] = {held, held, 1, 1};
    counts[DYNA_ROLE_BACKWARD_INPUT] = {held, 0, 1, 1};
    counts[DYNA_ROLE_BACKWARD_WEIGHT] = {held, held, 1, 1};
    counts[DYNA_ROLE_UPDATE] = {held, held, 3 * held, 0};
    counts[DYNA_ROLE_GRAD_NORM] = {0, held, 0, 1};
    counts[DYNA_ROLE_CAST] = {held, 0, held, 0};
  }
  fill(std::make_integer_sequence<int, kLateFunctions>());
  variant_ = {"late", 0, late_.data()};
  current = this;
  auto module = device.load({{0, false, &image}});
  status_ = module.status();
  if (!status_.isOk())
    return;
  module_ = std::move(*module);
  auto kernel = module_->kernel(entry.name);
  status_ = kernel.status();
  if (status_.isOk())
    kernel_ = *kernel;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_LATETINY_H
