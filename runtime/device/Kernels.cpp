//===- Kernels.cpp - Dispatches calls of compiled code --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/device/Failure.h"

using namespace dyna;

/// Calls one of the functions of the context's device.
template <typename Function, typename... Arguments>
static dyna_status dispatch(Function dyna_kernels::*which, const char *name,
                            dyna_context *context, Arguments... arguments) {
  if (!context || !context->device)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s was called with a context that is bound to no device",
                name);
  const dyna_kernels &kernels = *context->device->kernels;
  if (Function function = kernels.*which)
    return function(context, arguments...);
  return fail(context, DYNA_INVALID_ARGUMENT,
              "%s was called, which devices of the backend %s do not have",
              name, kernels.backend);
}

#define DYNA_DISPATCH(name, ...)                                               \
  dispatch(&dyna_kernels::name, #name, context, __VA_ARGS__)

extern "C" {

dyna_status dyna_launch(dyna_context *context, dyna_rows_body body,
                        const void *args, int64_t args_bytes, int64_t rows,
                        int64_t min_rows) {
  return DYNA_DISPATCH(launch, body, args, args_bytes, rows, min_rows);
}

dyna_status dyna_check_ids(dyna_context *context, const int32_t *ids,
                           int64_t count, int64_t rows) {
  return DYNA_DISPATCH(check_ids, ids, count, rows);
}
dyna_status dyna_check_positions(dyna_context *context,
                                 const int64_t *positions, int64_t count,
                                 int64_t rows) {
  return DYNA_DISPATCH(check_positions, positions, count, rows);
}

#define DYNA_DISPATCHED(name, Description)                                     \
  dyna_status dyna_##name(dyna_context *context, const Description *p) {       \
    return DYNA_DISPATCH(name, p);                                             \
  }
DYNA_DISPATCHED(matmul_f32, dyna_matmul)
DYNA_DISPATCHED(matmul_bf16, dyna_matmul)
DYNA_DISPATCHED(matmul_bf16_f32, dyna_matmul)
DYNA_DISPATCHED(matmul_f64, dyna_matmul)
DYNA_DISPATCHED(sparse_matmul_f32, dyna_sparse_matmul)
DYNA_DISPATCHED(sparse_matmul_bf16, dyna_sparse_matmul)
DYNA_DISPATCHED(sparse_matmul_bf16_f32, dyna_sparse_matmul)
DYNA_DISPATCHED(sparse_matmul_f64, dyna_sparse_matmul)
DYNA_DISPATCHED(take_sparse_values, dyna_sparse_values)
DYNA_DISPATCHED(attention_f32, dyna_attention)
DYNA_DISPATCHED(attention_f64, dyna_attention)
DYNA_DISPATCHED(attention_bf16, dyna_attention)
DYNA_DISPATCHED(attention_grad_f32, dyna_attention_grad)
DYNA_DISPATCHED(attention_grad_f64, dyna_attention_grad)
DYNA_DISPATCHED(attention_grad_bf16, dyna_attention_grad)
DYNA_DISPATCHED(head_f32, dyna_head)
DYNA_DISPATCHED(head_f64, dyna_head)
DYNA_DISPATCHED(head_bf16, dyna_head)
DYNA_DISPATCHED(clip_norm, dyna_clip)
DYNA_DISPATCHED(place_rows, dyna_place)

dyna_status dyna_note_losses(dyna_context *context, const double *losses,
                             int64_t count, double *squared_norm) {
  return DYNA_DISPATCH(note_losses, losses, count, squared_norm);
}

dyna_status dyna_launch_kernel(dyna_context *context,
                               const dyna_device_code *code, int64_t function,
                               const void *args, int64_t args_bytes,
                               int64_t grid) {
  return DYNA_DISPATCH(launch_kernel, code, function, args, args_bytes, grid);
}

} // extern "C"
