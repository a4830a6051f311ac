//===- Collectives.h - Declares exchanges for compiled code -------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Layer functions call these functions if their ranks exchange parts of a
// tensor. The functions are device-neutral and stream-ordered like everything
// in Kernels.h. They look up `context->groups[group]` and call the transport
// that made the group (runtime/transport). In a group of one rank each of them
// is the identity: a copy if `in` and `out` differ.
//
// Every rank of the group calls the same function with the same sizes, in the
// same order. Sums are taken in the order of the ranks, so the same inputs give
// the same bits at any timing.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_COLLECTIVES_H
#define DYNA_RUNTIME_ABI_COLLECTIVES_H

#include "runtime/abi/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Element types; the values of `ElementType` in runtime/plan/Manifest.proto.
enum {
  DYNA_ELEMENT_F64 = 1,
  DYNA_ELEMENT_F32 = 2,
  DYNA_ELEMENT_BF16 = 3, ///< sums are taken in f32 and rounded once
  DYNA_ELEMENT_I32 = 4,
};

enum {
  DYNA_REDUCE_SUM = 0,
  DYNA_REDUCE_MAX = 1,
};

/// Returns the begin of a rank's part if `count` rows are dealt to `parts`
/// ranks. Rank i holds the rows [i*ceil(count/parts), (i+1)*ceil(count/parts)),
/// clipped, possibly none.
static inline int64_t dyna_part_begin(int64_t count, int64_t parts,
                                      int64_t index) {
  int64_t begin = index * ((count + parts - 1) / parts);
  return begin < count ? begin : count;
}
static inline int64_t dyna_part_size(int64_t count, int64_t parts,
                                     int64_t index) {
  return dyna_part_begin(count, parts, index + 1) -
         dyna_part_begin(count, parts, index);
}

/// One exchange. The whole tensor is [outer, split, inner], row-major and
/// contiguous; a rank's part of it is [outer, dyna_part_size(split), inner],
/// contiguous too. Sizes count elements and may be 0.
typedef struct dyna_collective {
  const void *in;
  void *out;
  int64_t outer, split, inner;
  int32_t group;     ///< index into `context->groups`
  int32_t element;   ///< DYNA_ELEMENT_*
  int32_t reduction; ///< DYNA_REDUCE_*, where the exchange reduces
  int32_t reserved;
} dyna_collective;

/// in, out: whole. out = sum (or maximum) of in over the ranks; may be in
/// place.
dyna_status dyna_all_reduce(dyna_context *, const dyna_collective *);
/// in: part, out: whole. Lays the parts side by side along `split`.
dyna_status dyna_all_gather(dyna_context *, const dyna_collective *);
/// in: whole, out: part. Computes this rank's part of the result of all_reduce.
dyna_status dyna_reduce_scatter(dyna_context *, const dyna_collective *);
/// in: whole, out: part. Cuts out this rank's part; exchanges nothing.
dyna_status dyna_slice(dyna_context *, const dyna_collective *);

/// An exchange of the split dimension. The whole tensor is [outer, first,
/// middle, second, inner]. Before, it is split along `first`, after it along
/// `second`. With `second_to_first` not 0 it is the other way round.
typedef struct dyna_transposition {
  const void *in;
  void *out;
  int64_t outer, first, middle, second, inner;
  int32_t group;
  int32_t element;
  int32_t second_to_first;
  int32_t reserved;
} dyna_transposition;

/// in and out must not overlap.
dyna_status dyna_all_to_all(dyna_context *, const dyna_transposition *);

/// Numbers of the functions above.
enum {
  DYNA_EXCHANGE_ALL_REDUCE = 0,
  DYNA_EXCHANGE_ALL_GATHER = 1,
  DYNA_EXCHANGE_REDUCE_SCATTER = 2,
  DYNA_EXCHANGE_ALL_TO_ALL = 3,
};

typedef struct dyna_exchange {
  int32_t kind; ///< DYNA_EXCHANGE_*
  int32_t reserved;
  union {
    dyna_transposition transposition; ///< of an all_to_all
    dyna_collective collective;       ///< of all others
  };
} dyna_exchange;

/// Runs `count` exchanges, at least one, over one group, as one: ranks wait for
/// each other once. The results are those of the single functions, bit for bit.
/// No exchange may write what another one reads or writes.
dyna_status dyna_exchange_all(dyna_context *, const dyna_exchange *exchanges,
                              int64_t count);

/// Advances the exchanges that this rank has started, without blocking. Kernels
/// call it when they begin, so that exchanges make progress while a layer
/// computes. Fails like a wait. Does nothing without a transport.
dyna_status dyna_progress(dyna_context *);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_COLLECTIVES_H
