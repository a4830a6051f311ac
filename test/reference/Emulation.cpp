//===- Emulation.cpp - Kernels of a GPU on the processor ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/Emulation.h"

#include "runtime/abi/Kernels.h"
#include "test/runtime/device/Naive.h"
#include "test/standins/Fibers.h"

#include <atomic>
#include <cstdio>
#include <cstring>

/// Fails with `why` in the context's message.
static dyna_status fail(dyna_context *context, const char *why) {
  if (context->message)
    std::snprintf(context->message,
                  static_cast<size_t>(context->message_capacity), "%s", why);
  return DYNA_DEVICE_ERROR;
}

static dyna_status launchKernel(dyna_context *context,
                                const dyna_device_code *code, int64_t function,
                                const void *args, int64_t args_bytes,
                                int64_t grid) {
  static std::atomic<uint64_t> seed = 0;
  if (function < 0 || function >= code->function_count || grid < 0)
    return fail(context, "a launch of a kernel that is not there");
  const dyna_device_function &described = code->functions[function];
  if (described.argument_bytes != args_bytes)
    return fail(context, "a launch with arguments of another size");
  for (int64_t i = 0; i < code->image_count; ++i) {
    const dyna_device_image &image = code->images[i];
    if (image.kind != DYNA_IMAGE_EMULATED)
      continue;
    const auto *emulated =
        static_cast<const dyna_emulated_image *>(image.bytes);
    if (std::memcmp(emulated->magic, DYNA_EMULATED_MAGIC, 8) != 0 ||
        emulated->byte_size != sizeof(dyna_emulated_image) ||
        function >= emulated->count)
      return fail(context, "no image of emulated kernels");
    const dyna_emulated_entry &entry = emulated->kernels[function];
    if (std::strcmp(entry.name, described.name) != 0)
      return fail(context, "the kernels of the image have another order");
    if (grid == 0)
      return DYNA_OK;
    // A parameter by value: kernels read a copy.
    std::vector<int64_t> copy(static_cast<size_t>(args_bytes + 7) / 8);
    std::memcpy(copy.data(), args, static_cast<size_t>(args_bytes));
    dyna_emulated_launch launch = {entry.name,
                                   entry.kernel,
                                   copy.data(),
                                   static_cast<int32_t>(grid),
                                   described.block,
                                   ++seed,
                                   described.shared_bytes};
    char message[256] = {};
    if (emulated->run(&launch, message, sizeof(message)) != 0)
      return fail(context, message);
    return DYNA_OK;
  }
  return fail(context, "no image of emulated kernels");
}

static dyna_status multiply(dyna_context *, const dyna_matmul *p) {
  const auto *a = static_cast<const double *>(p->a);
  const auto *b = static_cast<const double *>(p->b);
  auto *c = static_cast<double *>(p->c);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      double sum = p->accumulate ? c[i * p->ldc + j] : 0.0;
      for (int64_t k = 0; k < p->k; ++k)
        sum += (p->transpose_a ? a[k * p->lda + i] : a[i * p->lda + k]) *
               (p->transpose_b ? b[j * p->ldb + k] : b[k * p->ldb + j]);
      c[i * p->ldc + j] = sum;
    }
  return DYNA_OK;
}

/// The host's product, and what is described behind it: rounded as often as a
/// device does that has to do the two apart.
template <typename T, dyna_matmul_function product>
static dyna_status multiplyAndApply(dyna_context *context,
                                    const dyna_matmul *p) {
  const dyna_epilogue *epilogue = dyna_described_epilogue(p);
  if (!epilogue)
    return product(context, p);
  dyna_matmul plain = *p;
  plain.described = 0, plain.epilogue_args = nullptr;
  plain.epilogue_args_bytes = 0;
  if (dyna_status status = product(context, &plain))
    return status;
  auto *c = static_cast<T *>(p->c), *aux = static_cast<T *>(epilogue->aux);
  const auto *bias = static_cast<const T *>(epilogue->bias);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      T &element = c[i * p->ldc + j];
      T *saved = aux ? &aux[i * epilogue->aux_stride + j] : nullptr;
      double value = naive::toDouble(element);
      if (epilogue->kind == DYNA_EPILOGUE_GELU_GRAD) {
        value *= naive::geluGrad(naive::toDouble(*saved));
      } else {
        value += naive::toDouble(bias[j]);
        if (saved)
          naive::fromDouble(value, *saved);
        if (epilogue->kind == DYNA_EPILOGUE_BIAS_GELU)
          value = naive::gelu(value);
      }
      naive::fromDouble(value, element);
    }
  return DYNA_OK;
}

std::vector<std::pair<const char *, void *>>
mlir::dyna::reference::emulationKernels() {
  return {
      {"dyna_launch_kernel", reinterpret_cast<void *>(&launchKernel)},
      {"dyna_matmul_f64", reinterpret_cast<void *>(&multiply)},
      {"dyna_matmul_f32",
       reinterpret_cast<void *>(&multiplyAndApply<float, dyna_matmul_f32>)},
      {"dyna_matmul_bf16",
       reinterpret_cast<void *>(
           &multiplyAndApply<naive::Bf16, dyna_matmul_bf16>)},
      {"dyna_emulated_run", reinterpret_cast<void *>(&dyna_emulated_run)},
      {"dyna_emulated_thread", reinterpret_cast<void *>(&dyna_emulated_thread)},
      {"dyna_emulated_block", reinterpret_cast<void *>(&dyna_emulated_block)},
      {"dyna_emulated_aligned",
       reinterpret_cast<void *>(&dyna_emulated_aligned)},
      {"dyna_emulated_grid_size",
       reinterpret_cast<void *>(&dyna_emulated_grid_size)},
      {"dyna_emulated_barrier",
       reinterpret_cast<void *>(&dyna_emulated_barrier)},
      {"dyna_emulated_warp_barrier",
       reinterpret_cast<void *>(&dyna_emulated_warp_barrier)},
      {"dyna_emulated_shuffle_xor",
       reinterpret_cast<void *>(&dyna_emulated_shuffle_xor)},
      {"dyna_emulated_shared", reinterpret_cast<void *>(&dyna_emulated_shared)},
  };
}
