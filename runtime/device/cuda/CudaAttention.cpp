//===- CudaAttention.cpp - Runs attention over segments on CUDA -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses kernels (kernels/attention) and their number of blocks. It depends on
// rows and heads alone, because segments are on the device. bf16 uses a plan of
// cuDNN if the device has one (AttentionPlans.h).
//
// Keys of slices are rows of a store, which are numbered after those of the
// micro-batch. Two more kernels copy the slices' own rows to the store before
// attention, and their gradients back. A micro-batch of whole samples needs
// neither.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckAttention.h"
#include "runtime/device/Failure.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"
#include "runtime/device/cuda/kernels/Sizes.h"

#include <initializer_list>

using namespace dyna;
using namespace dyna::cuda;
using gpu::AttentionArguments;
using gpu::Kernel;

namespace {

constexpr int64_t kWarpsPerBlock = 4; ///< of the kernels that prepare
static_assert(gpu::kFmaTile <= gpu::kMaxTile &&
              gpu::kQueryRows<64> <= gpu::kMaxTile &&
              gpu::kKeyRows<64> <= gpu::kMaxTile);

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

dyna_status checkSizes(dyna_context *context, const dyna_attention &p,
                       const char *name) {
  if (p.head_dim > gpu::kMaxHeadDim)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: heads of %d elements, kernels of CUDA devices take %d at "
                "most",
                name, p.head_dim, gpu::kMaxHeadDim);
  const dyna_segments &segments = *p.segments;
  if (segments.tq > gpu::kMaxSize || segments.tkv > gpu::kMaxSize)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: %d queries and %d keys, kernels of CUDA devices take %d "
                "at most",
                name, segments.tq, segments.tkv, gpu::kMaxSize);
  if (segments.stored > gpu::kMaxSize - segments.tkv)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: %d keys and %d rows of a store, kernels of CUDA devices "
                "take %d at most, both together",
                name, segments.tkv, segments.stored, gpu::kMaxSize);
  if (segments.stored > 0 && segments.tkv != segments.tq)
    return fail(context, DYNA_INVALID_ARGUMENT,
                "%s: slices bring their own keys to the store, so a "
                "micro-batch has as many keys (%d) as queries (%d)",
                name, segments.tkv, segments.tq);
  return DYNA_OK;
}

/// Adds `products` products over the visible pairs.
void countFlops(dyna_context *context, const dyna_attention &p,
                int64_t products) {
  int64_t pairs = p.causal ? p.segments->causal_pairs : p.segments->pairs;
  context->matrix_flops += 2 * products * p.heads * p.head_dim * pairs;
}

bool areAligned(std::initializer_list<const void *> addresses,
                std::initializer_list<int64_t> strides) {
  for (const void *address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      return false;
  for (int64_t stride : strides)
    if (stride % 8 != 0)
      return false;
  return true;
}

/// Returns the address that a column of row -`before` would have, for kernels alone.
/// `element`: bytes of one.
void *columnOf(void *rows, int64_t column, int64_t before, int64_t stride,
               int64_t element) {
  const auto offset =
      static_cast<uintptr_t>((column - before * stride) * element);
  return rows ? reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(rows) +
                                         offset)
              : nullptr;
}

/// Adds the store, and what its rows say of alignment. `element`: bytes of the compute
/// type.
void addStore(AttentionArguments &args, const dyna_attention &p,
              int64_t element) {
  if (p.segments->stored == 0)
    return;
  const dyna_key_store &from = p.store;
  const int64_t sum = element == 8 ? 8 : 4;
  gpu::StoreArguments &store = args.store;
  store.rows = static_cast<int32_t>(p.segments->stored);
  store.stride = from.stride, store.sumStride = from.gradient_stride;
  store.sumHeadDim = static_cast<int32_t>(dyna_padded_head_dim(p.head_dim));
  auto keys = [&](int64_t column) {
    return columnOf(from.data, column, args.tkv, from.stride, element);
  };
  auto sums = [&](int64_t column) {
    return columnOf(from.gradients, column, args.tkv, from.gradient_stride,
                    sum);
  };
  store.k = keys(from.k_column), store.v = keys(from.v_column);
  store.dk = sums(from.dk_column), store.dv = sums(from.dv_column);
  args.isAligned &= areAligned({store.k, store.v, store.dk, store.dv},
                               {store.stride, store.sumStride});
}

/// Makes the arguments of kernels. `element`: bytes of the compute type.
AttentionArguments argumentsOf(const dyna_attention &p, int64_t element) {
  AttentionArguments args = {};
  args.segments = p.segments->data;
  args.count = p.segments->count;
  args.tq = static_cast<int32_t>(p.segments->tq);
  args.tkv = static_cast<int32_t>(p.segments->tkv);
  args.heads = static_cast<int32_t>(p.heads);
  args.kvHeads = static_cast<int32_t>(p.kv_heads);
  args.group = args.heads / args.kvHeads;
  args.headDim = static_cast<int32_t>(p.head_dim);
  args.causal = p.causal;
  args.scale = p.scale;
  args.q = p.q, args.k = p.k, args.v = p.v;
  args.out = p.out, args.lse = p.lse;
  args.qStride = p.q_stride, args.kStride = p.k_stride;
  args.vStride = p.v_stride, args.outStride = p.out_stride;
  args.isAligned =
      areAligned({p.q, p.k, p.v, p.out}, {p.q_stride, p.k_stride, p.v_stride,
                                          p.out_stride, p.head_dim});
  addStore(args, p, element);
  return args;
}

/// Sums of products go first into the workspace, then, under bf16, each query's keys:
/// there is room for both.
AttentionArguments argumentsOf(const dyna_attention_grad &p, int64_t element) {
  AttentionArguments args = argumentsOf(p.forward, element);
  args.dout = p.dout;
  args.dq = p.dq, args.dk = p.dk, args.dv = p.dv;
  args.dqStride = p.dq_stride, args.dkStride = p.dk_stride;
  args.dvStride = p.dv_stride;
  args.isAligned &= areAligned({p.dout, p.dq, p.dk, p.dv},
                               {p.dq_stride, p.dk_stride, p.dv_stride});
  args.delta = p.workspace;
  if (element == 2 && p.workspace)
    args.ranges = reinterpret_cast<gpu::KeyRange *>(
        static_cast<char *>(p.workspace) +
        dyna_round_rows(p.forward.segments->tq) * p.forward.heads * 4);
  return args;
}

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// Blocks that own `rows` keys of a head each, as keysOfBlock of AttentionRows.h deals
/// them out.
int64_t keyBlocks(const AttentionArguments &args, int64_t rows) {
  return (divideUp(args.tkv, rows) + divideUp(args.store.rows, rows)) *
         args.kvHeads;
}

/// Blocks of the bf16 kernels that own queries, and of those that own keys.
int64_t queryBlocks(const AttentionArguments &args) {
  static_assert(gpu::kQueryRows<64> == gpu::kQueryRows<128>);
  const int rows =
      args.headDim <= 128 ? gpu::kQueryRows<128> : gpu::kQueryRows<256>;
  return divideUp(args.tq, rows) * args.heads;
}
int64_t keyBlocks(const AttentionArguments &args) {
  static_assert(gpu::kKeyRows<64> == gpu::kKeyRows<128>);
  return keyBlocks(args, args.headDim <= 128 ? gpu::kKeyRows<128>
                                             : gpu::kKeyRows<256>);
}

/// Launches one of three kernels, by the size of heads.
template <Kernel narrow, Kernel middle, Kernel wide>
dyna_status launchByWidth(dyna_context *context, const AttentionArguments &args,
                          int64_t blocks) {
  if (args.headDim <= 64)
    return launch<narrow>(context, args, blocks);
  if (args.headDim <= 128)
    return launch<middle>(context, args, blocks);
  return launch<wide>(context, args, blocks);
}

/// Launches a kernel about the own rows of slices, if there are any.
template <Kernel kernel>
dyna_status launchOwnRows(dyna_context *context,
                          const AttentionArguments &args) {
  if (args.store.rows == 0)
    return DYNA_OK;
  return launch<kernel>(context, args, divideUp(args.tq, kWarpsPerBlock));
}

template <Kernel storeKeys, Kernel kernel>
dyna_status runFma(dyna_context *context, const dyna_attention *p,
                   int64_t element, const char *name) {
  if (dyna_status status = checkAttention(context, p, name))
    return status;
  if (dyna_status status = checkSizes(context, *p, name))
    return status;
  countFlops(context, *p, DYNA_ATTENTION_PRODUCTS);
  AttentionArguments args = argumentsOf(*p, element);
  if (dyna_status status = launchOwnRows<storeKeys>(context, args))
    return status;
  return launch<kernel>(context, args,
                        divideUp(args.tq, gpu::kFmaTile) * args.heads);
}

template <Kernel delta, Kernel dq, Kernel dk, Kernel dv, Kernel storeGrads>
dyna_status runFmaGrad(dyna_context *context, const dyna_attention_grad *p,
                       int64_t element, const char *name) {
  if (dyna_status status = checkAttentionGrad(context, p, name))
    return status;
  if (dyna_status status = checkSizes(context, p->forward, name))
    return status;
  countFlops(context, p->forward, DYNA_ATTENTION_GRAD_PRODUCTS);
  AttentionArguments args = argumentsOf(*p, element);
  const int64_t queries = divideUp(args.tq, gpu::kFmaTile) * args.heads;
  const int64_t keys = keyBlocks(args, gpu::kFmaTile);
  if (dyna_status status = launch<delta>(
          context, args,
          divideUp(int64_t(args.tq) * args.heads, kWarpsPerBlock)))
    return status;
  if (dyna_status status = launch<dq>(context, args, queries))
    return status;
  if (dyna_status status = launch<dk>(context, args, keys))
    return status;
  if (dyna_status status = launch<dv>(context, args, keys))
    return status;
  return launchOwnRows<storeGrads>(context, args);
}

/// Launches the kernels of dk and dv in bf16.
dyna_status launchKeyGrads(dyna_context *context,
                           const AttentionArguments &args) {
  const int64_t blocks = keyBlocks(args);
  if (dyna_status status =
          launchByWidth<Kernel::attention_dkv_bf16_64,
                        Kernel::attention_dk_bf16_128,
                        Kernel::attention_dk_bf16_256>(context, args, blocks))
    return status;
  // From 128 elements on, the two gradients do not fit into the registers of
  // one kernel.
  static_assert(gpu::kJoinsKeyGrads<64> && !gpu::kJoinsKeyGrads<128> &&
                !gpu::kJoinsKeyGrads<256>);
  if (args.headDim <= 64)
    return DYNA_OK;
  return args.headDim <= 128
             ? launch<Kernel::attention_dv_bf16_128>(context, args, blocks)
             : launch<Kernel::attention_dv_bf16_256>(context, args, blocks);
}

//===----------------------------------------------------------------------===//
// cuDNN
//===----------------------------------------------------------------------===//

AttentionTensors tensorsOf(const dyna_attention &p) {
  AttentionTensors tensors = {};
  tensors.q = p.q, tensors.k = p.k, tensors.v = p.v;
  tensors.out = p.out, tensors.lse = p.lse;
  return tensors;
}
AttentionTensors tensorsOf(const dyna_attention_grad &p) {
  AttentionTensors tensors = tensorsOf(p.forward);
  tensors.dout = p.dout;
  tensors.dq = p.dq, tensors.dk = p.dk, tensors.dv = p.dv;
  return tensors;
}

/// Runs the call by a plan of cuDNN, if there is one. Sets `isDone` to true if
/// it did.
template <typename Operands>
dyna_status runPlanned(dyna_context *context, const Operands &p, bool &isDone) {
  AttentionPlans &plans = CudaDevice::of(*context).attention();
  const auto stream = static_cast<StreamHandle>(context->stream);
  StatusOr<AttentionPlans::Call> call = plans.prepare(p, stream);
  if (!call.isOk())
    return give(context, call.status());
  isDone = call->plan != nullptr;
  if (!isDone)
    return DYNA_OK;
  if (dyna_status status = launch<Kernel::attention_tables>(
          context, call->tables,
          divideUp(call->tables.filled + 1, gpu::kTablesThreads)))
    return status;
  return give(context, plans.run(*call, tensorsOf(p), stream));
}

} // namespace

dyna_status cuda::attentionF32(dyna_context *context, const dyna_attention *p) {
  return runFma<Kernel::attention_store_keys_f32, Kernel::attention_f32>(
      context, p, 4, "attention_f32");
}
dyna_status cuda::attentionF64(dyna_context *context, const dyna_attention *p) {
  return runFma<Kernel::attention_store_keys_f64, Kernel::attention_f64>(
      context, p, 8, "attention_f64");
}

dyna_status cuda::attentionGradF32(dyna_context *context,
                                   const dyna_attention_grad *p) {
  return runFmaGrad<Kernel::attention_delta_f32, Kernel::attention_dq_f32,
                    Kernel::attention_dk_f32, Kernel::attention_dv_f32,
                    Kernel::attention_store_grads_f32>(context, p, 4,
                                                       "attention_grad_f32");
}
dyna_status cuda::attentionGradF64(dyna_context *context,
                                   const dyna_attention_grad *p) {
  return runFmaGrad<Kernel::attention_delta_f64, Kernel::attention_dq_f64,
                    Kernel::attention_dk_f64, Kernel::attention_dv_f64,
                    Kernel::attention_store_grads_f64>(context, p, 8,
                                                       "attention_grad_f64");
}

dyna_status cuda::attentionBf16(dyna_context *context,
                                const dyna_attention *p) {
  const char *name = "attention_bf16";
  if (dyna_status status = checkAttention(context, p, name))
    return status;
  if (dyna_status status = checkSizes(context, *p, name))
    return status;
  countFlops(context, *p, DYNA_ATTENTION_PRODUCTS);
  bool isDone = false;
  if (dyna_status status = runPlanned(context, *p, isDone); status || isDone)
    return status;
  AttentionArguments args = argumentsOf(*p, 2);
  if (dyna_status status =
          launchOwnRows<Kernel::attention_store_keys_bf16>(context, args))
    return status;
  return launchByWidth<Kernel::attention_bf16_64, Kernel::attention_bf16_128,
                       Kernel::attention_bf16_256>(context, args,
                                                   queryBlocks(args));
}

dyna_status cuda::attentionGradBf16(dyna_context *context,
                                    const dyna_attention_grad *p) {
  const char *name = "attention_grad_bf16";
  if (dyna_status status = checkAttentionGrad(context, p, name))
    return status;
  if (dyna_status status = checkSizes(context, p->forward, name))
    return status;
  countFlops(context, p->forward, DYNA_ATTENTION_GRAD_PRODUCTS);
  bool isDone = false;
  if (dyna_status status = runPlanned(context, *p, isDone); status || isDone)
    return status;
  AttentionArguments args = argumentsOf(*p, 2);
  if (dyna_status status = launch<Kernel::attention_delta_bf16>(
          context, args, divideUp(args.tq, kWarpsPerBlock)))
    return status;
  if (dyna_status status = launchByWidth<Kernel::attention_dq_bf16_64,
                                         Kernel::attention_dq_bf16_128,
                                         Kernel::attention_dq_bf16_256>(
          context, args, queryBlocks(args)))
    return status;
  if (dyna_status status = launchKeyGrads(context, args))
    return status;
  return launchOwnRows<Kernel::attention_store_grads_bf16>(context, args);
}
