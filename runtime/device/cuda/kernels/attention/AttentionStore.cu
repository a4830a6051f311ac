//===- AttentionStore.cu - Copies keys to and from stores -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies rows of slices between a micro-batch and the store. A warp has a row
// of the micro-batch. A row of a slice also has a row in the store. Forward
// copies keys and values there before attention reads them. Backward rounds the
// sums of their gradients once they are complete. Rows of whole samples are
// skipped.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/attention/AttentionRows.h"

namespace dyna {
namespace gpu {
namespace store {

/// The row that the warp has, and the number of its key in the store.
struct OwnRow {
  int64_t row, key;
  bool isSlice = false;

  DYNA_GPU OwnRow(const AttentionArguments &args)
      : row(int64_t(blockIndex()) * (blockSize() / 32) + threadIndex() / 32) {
    if (row >= args.tq)
      return;
    const dyna_segment &s = args.segments[segmentOf(args, row)];
    isSlice = s.kv_begin >= args.tkv && s.kv_len >= s.q_len;
    // The keys of its queries are the last ones.
    key = s.kv_begin + s.kv_len - s.q_len + (row - s.q_begin);
  }
};

template <typename T>
DYNA_GPU void copyRow(void *to, int64_t toAt, const void *from, int64_t fromAt,
                      int32_t columns, bool isAligned) {
  const int lane = threadIndex() % 32;
  T *target = static_cast<T *>(to) + toAt;
  const T *source = static_cast<const T *>(from) + fromAt;
  if (!isAligned) {
    for (int32_t i = lane; i < columns; i += 32)
      target[i] = source[i];
    return;
  }
  // The size of a head is a multiple of eight elements.
  for (int32_t i = lane * Piece<T>::size; i < columns; i += 32 * Piece<T>::size)
    *reinterpret_cast<Piece<T> *>(aligned<16>(target + i)) =
        *reinterpret_cast<const Piece<T> *>(aligned<16>(source + i));
}

template <typename T> DYNA_GPU void copyKeys(const AttentionArguments &args) {
  const OwnRow own(args);
  if (!own.isSlice)
    return;
  const StoreArguments &store = args.store;
  const int64_t to = own.key * store.stride;
  const int32_t columns = args.kvHeads * args.headDim;
  copyRow<T>(store.k, to, args.k, own.row * args.kStride, columns,
             args.isAligned);
  copyRow<T>(store.v, to, args.v, own.row * args.vStride, columns,
             args.isAligned);
}

template <typename T> DYNA_GPU void put(T &to, T value) { to = value; }
DYNA_GPU void put(uint16_t &to, float value) {
  to = static_cast<uint16_t>(packBf16(value, 0));
}

template <typename T, typename Sum>
DYNA_GPU void takeRow(const AttentionArguments &args, void *to, int64_t toAt,
                      const void *sums, int64_t sumsAt) {
  T *target = static_cast<T *>(to) + toAt;
  const Sum *source = static_cast<const Sum *>(sums) + sumsAt;
  const int32_t padding = args.store.sumHeadDim - args.headDim;
  for (int32_t i = threadIndex() % 32; i < args.kvHeads * args.headDim; i += 32)
    put(target[i], source[i + i / args.headDim * padding]);
}

template <typename T, typename Sum>
DYNA_GPU void takeGrads(const AttentionArguments &args) {
  const OwnRow own(args);
  if (!own.isSlice)
    return;
  const StoreArguments &store = args.store;
  const int64_t from = own.key * store.sumStride;
  takeRow<T, Sum>(args, args.dk, own.row * args.dkStride, store.dk, from);
  takeRow<T, Sum>(args, args.dv, own.row * args.dvStride, store.dv, from);
}

} // namespace store
} // namespace gpu
} // namespace dyna

using namespace dyna::gpu;

DYNA_KERNEL(attention_store_keys_f32) { store::copyKeys<float>(args); }
DYNA_KERNEL(attention_store_keys_f64) { store::copyKeys<double>(args); }
DYNA_KERNEL(attention_store_keys_bf16) { store::copyKeys<uint16_t>(args); }
DYNA_KERNEL(attention_store_grads_f32) { store::takeGrads<float, float>(args); }
DYNA_KERNEL(attention_store_grads_f64) {
  store::takeGrads<double, double>(args);
}
DYNA_KERNEL(attention_store_grads_bf16) {
  store::takeGrads<uint16_t, float>(args);
}
