//===- Kernels.h - Declares functions that compiled code calls ----*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is the allow-list of a compiled object. It imports the functions
// declared here, the exchanges of Collectives.h and memcpy/memmove/memset, and
// nothing else (under f64 also libm).
//
// Each function calls the function of its name in the table of the context's
// device (dyna_kernels, at the end). So a process can have devices of several
// kinds. The host's functions are in runtime/device/host. Without a device, or
// if the device lacks the function, the call returns DYNA_INVALID_ARGUMENT.
//
// All matrices are row-major; leading dimensions and strides count elements.
// Scratch memory is always the caller's: the formulas at the end say how much.
//
// Products and attention add their work to `context->matrix_flops`, from the
// sizes and segments of the call.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_KERNELS_H
#define DYNA_RUNTIME_ABI_KERNELS_H

#include "runtime/abi/Abi.h"
#include "runtime/abi/Collectives.h"
#include "runtime/abi/DeviceCode.h"
#include "runtime/abi/Sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

/// Generated code for rows [begin, end), chunk number `chunk` (<
/// DYNA_MAX_CHUNKS) of the launch.
typedef void (*dyna_rows_body)(const void *args, int64_t begin, int64_t end,
                               int64_t chunk);

/// Return the rows of a chunk and the number of chunks of a launch over `rows`
/// rows. The last chunk may have fewer rows. They depend on nothing else.
static inline int64_t dyna_chunk_rows(int64_t rows, int64_t min_rows) {
  int64_t even = (rows + DYNA_MAX_CHUNKS - 1) / DYNA_MAX_CHUNKS;
  return even > min_rows ? even : (min_rows > 0 ? min_rows : 1);
}
static inline int64_t dyna_chunk_count(int64_t rows, int64_t min_rows) {
  int64_t size = dyna_chunk_rows(rows, min_rows);
  return rows > 0 ? (rows + size - 1) / size : 0;
}

/// Launches kernel number `function` of `code` in `grid` blocks (0 to 2^31 - 1;
/// 0: none) on the context's stream. Copies `args_bytes` bytes at `args`, the
/// kernel's argument. `code` lives as long as the program.
dyna_status dyna_launch_kernel(dyna_context *context,
                               const dyna_device_code *code, int64_t function,
                               const void *args, int64_t args_bytes,
                               int64_t grid);

/// Runs `body` over all chunks of `rows` rows, in any order and in parallel, on
/// the context's team (stream-ordered). `args_bytes` bytes at `args` may be
/// copied.
dyna_status dyna_launch(dyna_context *context, dyna_rows_body body,
                        const void *args, int64_t args_bytes, int64_t rows,
                        int64_t min_rows);

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Return DYNA_INVALID_ARGUMENT if one of the `count` token ids or positions is
/// not a row of a table with `rows` rows. The message names the first one. Code
/// that indexes tables calls this first, for all rows of a call.
dyna_status dyna_check_ids(dyna_context *, const int32_t *ids, int64_t count,
                           int64_t rows);
dyna_status dyna_check_positions(dyna_context *, const int64_t *positions,
                                 int64_t count, int64_t rows);

//===----------------------------------------------------------------------===//
// Matrix product
//===----------------------------------------------------------------------===//

/// C[m,n] = op(A)[m,k] * op(B)[k,n], or C += that. op(X) is X, or its transpose
/// if transpose_x is not 0. A is then stored as [k,m], and B as [n,k]. m, n or
/// k may be 0 (k = 0 without `accumulate` writes zeros).
///
/// `epilogue`, if not null, runs once over every row of C, chunk by chunk in
/// any order. A chunk runs after the products of its rows are complete. It is
/// element-wise code, whose operand is still in the cache. Its rows are cut as
/// by dyna_launch(rows = m, min_rows = epilogue_min_rows).
///
/// A device that cannot call code for rows gets a description instead. With
/// `described` not 0, `epilogue` is null, `accumulate` is 0, and
/// `epilogue_args` points to a dyna_epilogue. The call reads it.
typedef struct dyna_matmul {
  int64_t m, n, k;
  const void *a;
  int64_t lda;
  const void *b;
  int64_t ldb;
  void *c;
  int64_t ldc;
  int32_t transpose_a;
  int32_t transpose_b;
  int32_t accumulate;
  int32_t described;
  dyna_rows_body epilogue;
  const void *epilogue_args;
  int64_t epilogue_args_bytes;
  int64_t epilogue_min_rows;
} dyna_matmul;

/// Kinds of described epilogues; P is the product.
enum {
  DYNA_EPILOGUE_NONE = 0,
  /// C = P + bias.
  DYNA_EPILOGUE_BIAS = 1,
  /// aux = P + bias, C = gelu(P + bias), by tanh; aux may be null.
  DYNA_EPILOGUE_BIAS_GELU = 2,
  /// C = P * gelu'(aux), by tanh.
  DYNA_EPILOGUE_GELU_GRAD = 3,
  DYNA_EPILOGUE_COUNT
};

/// `bias` has n elements, `aux` is an [m, n] matrix, both of the type of C, and
/// neither shares memory with C.
typedef struct dyna_epilogue {
  int32_t kind; ///< DYNA_EPILOGUE_*
  int32_t reserved;
  const void *bias; ///< of the kinds that add one
  void *aux;        ///< written by BIAS_GELU, read by GELU_GRAD
  int64_t aux_stride;
} dyna_epilogue;

/// Returns the description of a product's epilogue; null if it has none, or one
/// that is code.
static inline const dyna_epilogue *
dyna_described_epilogue(const dyna_matmul *product) {
  return product->described ? (const dyna_epilogue *)product->epilogue_args : 0;
}

typedef dyna_status (*dyna_matmul_function)(dyna_context *,
                                            const dyna_matmul *);

/// A, B, C of f32.
dyna_status dyna_matmul_f32(dyna_context *, const dyna_matmul *);
/// A, B, C of bf16; accumulation in f32. With `accumulate`, C is added to the
/// f32 sum over all of k, and the result is rounded once.
dyna_status dyna_matmul_bf16(dyna_context *, const dyna_matmul *);
/// A, B of bf16, C of f32 (weight gradients, logits).
dyna_status dyna_matmul_bf16_f32(dyna_context *, const dyna_matmul *);
/// A, B, C of f64. The host has no such function: the object itself has a
/// generated one, with the same signature. Under `dynac --matmul=generated` the
/// f32 product is generated too.
dyna_status dyna_matmul_f64(dyna_context *, const dyna_matmul *);

//===----------------------------------------------------------------------===//
// Matrix product with a sparse weight
//===----------------------------------------------------------------------===//

/// A product of which one matrix is a weight that has a sparse form. `product` is what
/// the dense kernel of the same name would be called with, its epilogue included. Which
/// matrix is the weight, of [rows, columns], follows from the transpositions:
///
///     transpose_a  transpose_b  the weight is      product
///     0            1            B, stored [n, k]   Y = X W^T     n rows, k columns
///     0            0            B, stored [k, n]   dX = dY W     k rows, n columns
///     1            0            C, [m, n]          dW = dY^T X   m rows, n columns
///
/// The dense B is not read. Survivors of dW are written, or added to. Its other elements
/// stay as they are with `accumulate`, and are zero without. Adds 2 * tokens * survivors
/// to `matrix_flops`.
typedef struct dyna_sparse_matmul {
  dyna_matmul product;
  const dyna_sparse_form *form;
} dyna_sparse_matmul;

typedef dyna_status (*dyna_sparse_matmul_function)(dyna_context *,
                                                   const dyna_sparse_matmul *);

/// A, B, C and the values of the form as in the dense product of that name.
dyna_status dyna_sparse_matmul_f32(dyna_context *, const dyna_sparse_matmul *);
dyna_status dyna_sparse_matmul_bf16(dyna_context *, const dyna_sparse_matmul *);
/// dW of f32 alone: the other two would write activations of f32.
dyna_status dyna_sparse_matmul_bf16_f32(dyna_context *,
                                        const dyna_sparse_matmul *);
dyna_status dyna_sparse_matmul_f64(dyna_context *, const dyna_sparse_matmul *);

//===----------------------------------------------------------------------===//
// Attention over segments
//===----------------------------------------------------------------------===//

/// The part of one attention in the store of a bundle (Abi.h). A row of the store has
/// `stride` elements of the compute type, of the sums `gradient_stride` elements of the
/// type of sums. Columns count elements too. A head has `head_dim` columns in the
/// store, and dyna_padded_head_dim of it in the sums.
typedef struct dyna_key_store {
  void *data; ///< null: no segment is a slice
  int64_t stride, k_column, v_column;
  void *gradients; ///< null but in backward
  int64_t gradient_stride, dk_column, dv_column;
} dyna_key_store;

/// Returns the columns of a head in sums of gradients.
static inline int64_t dyna_padded_head_dim(int64_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

/// Softmax attention inside each segment: query head h reads key/value head h /
/// (heads / kv_heads). Scores are scale * q.k. With `causal`, keys after a
/// query are hidden: query i of a segment sees keys [0, kv_len - q_len + i].
///
/// q and out are [tq, heads * head_dim]; k and v are [tkv, kv_heads *
/// head_dim]. All have row strides. `lse` is [tq, heads], the log of the sum of
/// exponentials of the scaled scores, in f32 (f64 under f64). It may be null in
/// evaluation. A whole score matrix is never stored (online softmax).
///
/// The keys and values of slices lie in the bundle's store (Abi.h). Forward copies the
/// rows of `k` and `v` of each slice to their place there before it reads them.
typedef struct dyna_attention {
  const dyna_segments *segments;
  int64_t heads, kv_heads, head_dim;
  double scale;
  int32_t causal;
  int32_t reserved;
  const void *q;
  int64_t q_stride;
  const void *k;
  int64_t k_stride;
  const void *v;
  int64_t v_stride;
  void *out;
  int64_t out_stride;
  void *lse;
  dyna_key_store store;
} dyna_attention;

dyna_status dyna_attention_f32(dyna_context *, const dyna_attention *);
dyna_status dyna_attention_f64(dyna_context *, const dyna_attention *);
dyna_status dyna_attention_bf16(dyna_context *, const dyna_attention *);

/// Numbers of products over the visible pairs. Forward has q.k and p.v.
/// Backward has q.k again, dout.v, and those for dq, dk and dv.
#define DYNA_ATTENTION_PRODUCTS 2
#define DYNA_ATTENTION_GRAD_PRODUCTS 5

/// Returns the number of keys that the queries of a segment see, added up.
static inline int64_t dyna_visible_pairs(const dyna_segment *segment,
                                         int32_t causal) {
  int64_t q = segment->q_len, kv = segment->kv_len;
  if (!causal)
    return q * kv;
  if (kv < q)
    q = kv; // those before see nothing
  return q * (kv - q) + q * (q + 1) / 2;
}

/// The gradients of dyna_attention. `forward` has its operands and results. The
/// results dq, dk and dv are written with strides of their own; rows that no
/// segment covers are zeroed. The stride of dout is that of out.
///
/// For slices, gradients of keys are added to the sums of the store. Those of
/// the slice's own tokens are then complete. They are rounded once to dk and
/// dv.
typedef struct dyna_attention_grad {
  dyna_attention forward;
  const void *dout;
  void *dq;
  int64_t dq_stride;
  void *dk;
  int64_t dk_stride;
  void *dv;
  int64_t dv_stride;
  void *workspace;
} dyna_attention_grad;

dyna_status dyna_attention_grad_f32(dyna_context *,
                                    const dyna_attention_grad *);
dyna_status dyna_attention_grad_f64(dyna_context *,
                                    const dyna_attention_grad *);
dyna_status dyna_attention_grad_bf16(dyna_context *,
                                     const dyna_attention_grad *);

//===----------------------------------------------------------------------===//
// Head and loss
//===----------------------------------------------------------------------===//

/// The target of a row that is not in the loss, as the runtime writes it.
enum { DYNA_NO_TARGET = -1 };

/// Computes logits x * w^T and the softmax cross-entropy against `targets`. It
/// works in chunks of at most `chunk_rows` rows, so the logits are never stored
/// whole. Rows with the target `ignore_index` cost no product, because only the
/// others are gathered.
///
/// x: [rows, width]; w: [vocab, width]; targets: int32 [rows]. *loss_sum = sum
/// of the token losses (overwritten). Training (dx not null) also writes dx =
/// d(loss_sum)/dx * gradient_scale (zeros for ignored rows). If dw is not null it adds
/// d(loss_sum)/dw * gradient_scale to dw (f32; f64 under f64): three products.
/// A frozen weight has no dw: two products.
/// The products are the caller's, so that a generated one serves here too:
/// `matmul` for x*w^T into the logits (f32 C under bf16), `matmul_input` for
/// dx, `matmul_weight` for dw.
///
/// The caller gives the products, so that generated ones work here too.
/// `matmul` is for x*w^T into the logits (f32 C under bf16), `matmul_input` for
/// dx, and `matmul_weight` for dw.
///
/// `target_rows` is the number of rows that have a target. Code that launches
/// work cannot see it. A call with a wrong number is refused; on a device that
/// runs late the result is undefined. The number -1 means unknown: the device
/// must be asked. `used_rows`, if not null, lists these rows, ascending, so
/// that a device need not search for them. It requires a known number.
///
/// With `narrow_dw` not 0 (bf16 only) dw is bf16. The contributions of the
/// call's chunks are summed in f32 in the workspace, and rounded once.
///
/// With `narrow_logits` not 0 (bf16 only, a whole vocabulary) `matmul` has a
/// bf16 C. The logits are rounded once, and turned into their gradient in
/// place. Each takes 8 bytes of traffic instead of 14, and a third of the
/// memory.
///
/// With `whole_vocab` not 0, w and dw are this rank's part of the vocabulary:
/// the ranks of `group` share whole_vocab rows (dyna_part_begin). There is room
/// for `vocab` rows in w and dw. Rows beyond the part are neither read nor
/// written. All ranks of the group have the same x and targets.
///
/// The ranks exchange twice for every chunk of rows: the largest logits, then
/// the sums of exponentials with the targets' logits. The loss is the same on
/// all ranks. dx is the contribution of this part: the sum over the ranks is
/// the gradient.
typedef struct dyna_head {
  int64_t rows, width, vocab;
  const void *x;
  const void *w;
  const int32_t *targets;
  int32_t ignore_index;
  int32_t narrow_dw;
  double *loss_sum;
  double gradient_scale;
  void *dx;
  void *dw;
  void *workspace;
  dyna_matmul_function matmul;
  dyna_matmul_function matmul_input;
  dyna_matmul_function matmul_weight;
  int64_t whole_vocab; ///< 0: w is the whole vocabulary
  int32_t group;       ///< index into `context->groups`
  int32_t chunk_rows;  ///< 0: DYNA_HEAD_CHUNK_ROWS
  int64_t target_rows;
  const int32_t *used_rows;
  int32_t narrow_logits;
  int32_t reserved;
} dyna_head;

dyna_status dyna_head_f32(dyna_context *, const dyna_head *);
dyna_status dyna_head_f64(dyna_context *, const dyna_head *);
dyna_status dyna_head_bf16(dyna_context *, const dyna_head *);

//===----------------------------------------------------------------------===//
// The end of a step: called by the executor, not by compiled code
//===----------------------------------------------------------------------===//

/// Sets *squared_norm to not-a-number if one of `count` losses is not finite.
/// All pointers are the device's.
dyna_status dyna_note_losses(dyna_context *, const double *losses,
                             int64_t count, double *squared_norm);

/// Global-norm clipping. The result *norm is the square root of the sum of
/// `count` squared norms, added in their order. The factor *scale is limit /
/// *norm if there is a limit and the norm exceeds it, else 1. If the norm is
/// not finite, it is not-a-number. A norm above DYNA_LARGEST_NORM that is not
/// clipped becomes infinity, because its squares would be infinite in the
/// optimizer's state.
///
/// A step that is not finite takes one from *skips_left, the number of steps
/// that may still be skipped. Once that is below 0 it does not change any more,
/// and *scale is not-a-number for any norm. The host learns of a step when it
/// has given the next ones. So it finds everything as it was before the step
/// that was one too many. All pointers are the device's.
typedef struct dyna_clip {
  const double *squared_norms;
  int64_t count;
  double limit; ///< 0: none
  double *norm;
  double *scale; ///< target of dyna_optimizer's `gradient_scale`
  int64_t *skips_left;
} dyna_clip;

dyna_status dyna_clip_norm(dyna_context *, const dyna_clip *);

//===----------------------------------------------------------------------===//
// Switches of graphs
//===----------------------------------------------------------------------===//

/// Copies `rows` rows of `row_bytes` each from one place of the device to
/// another, without overlap. Strides count bytes and are ignored for one row.
typedef struct dyna_place {
  const void *source;
  void *target;
  int64_t rows, row_bytes;
  int64_t source_stride, target_stride;
  /// DYNA_REPLACES, or the type of elements (DYNA_ELEMENT_F32, F64, BF16) that
  /// are added to the target. bf16 is added in f32 and rounded once.
  int32_t added_as;
  int32_t reserved;
} dyna_place;

#define DYNA_REPLACES (-1)

dyna_status dyna_place_rows(dyna_context *, const dyna_place *);

/// Returns the bytes of an element that can be added; 0 for other types.
static inline int64_t dyna_added_bytes(int32_t added_as) {
  return added_as == DYNA_ELEMENT_F32    ? 4
         : added_as == DYNA_ELEMENT_F64  ? 8
         : added_as == DYNA_ELEMENT_BF16 ? 2
                                         : 0;
}

/// Returns not 0 if the description is valid.
static inline int32_t dyna_is_place(const dyna_place *p) {
  if (!p || p->rows < 0 || p->row_bytes < 0)
    return 0;
  if (p->rows > 0 && p->row_bytes > 0 && (!p->source || !p->target))
    return 0;
  if (p->rows > 1 &&
      (p->source_stride < p->row_bytes || p->target_stride < p->row_bytes))
    return 0;
  int64_t element = dyna_added_bytes(p->added_as);
  return p->added_as == DYNA_REPLACES ||
         (element > 0 && p->row_bytes % element == 0);
}

//===----------------------------------------------------------------------===//
// Sparse weights: called by the executor, not by compiled code
//===----------------------------------------------------------------------===//

/// Copies the survivors of a dense weight to the values of its form. Rows of `dense` are
/// `stride` elements apart. An element has 8, 4 or 2 bytes.
typedef struct dyna_sparse_values {
  const dyna_sparse_form *form;
  const void *dense;
  int64_t stride;
  int64_t element_bytes;
} dyna_sparse_values;

dyna_status dyna_take_sparse_values(dyna_context *, const dyna_sparse_values *);

//===----------------------------------------------------------------------===//
// Scratch formulas
//===----------------------------------------------------------------------===//

/// Rows of one chunk of the head, if its caller does not say. Every chunk reads
/// and writes the whole weight gradient: fewer rows cost time, more rows cost
/// memory for the logits.
#define DYNA_HEAD_CHUNK_ROWS 512

static inline int64_t dyna_head_chunk_rows(const dyna_head *head) {
  return head->chunk_rows ? head->chunk_rows : DYNA_HEAD_CHUNK_ROWS;
}

/// Bytes linear in rounded tokens, segments and 1.
typedef struct dyna_linear_bytes {
  int64_t tq, tkv, s, constant;
} dyna_linear_bytes;

/// Returns the workspace of the gradient of attention; `element` is the size of
/// the compute type: 8, 4 or 2. It has one value per query and head. For bf16,
/// and for head sizes that are no multiple of 16, it also has a copy of dq, dk
/// and dv each. The copies are in f64 or f32 and have the head size rounded up
/// to 16.
static inline dyna_linear_bytes
dyna_attention_grad_workspace(int64_t element, int64_t heads, int64_t kv_heads,
                              int64_t head_dim) {
  int64_t accumulator = element == 8 ? 8 : 4;
  int64_t padded = dyna_padded_head_dim(head_dim);
  if (element != 2 && head_dim == padded)
    padded = 0;
  dyna_linear_bytes bytes = {0, 0, 0, 0};
  bytes.tq = accumulator * heads * (padded + 1);
  bytes.tkv = accumulator * 2 * kv_heads * padded;
  return bytes;
}

/// Returns the elements from one row of logits to the next. Rows are whole
/// vectors. The stride is no large power of two, which would map all rows to
/// the same few sets of a cache.
static inline int64_t dyna_head_stride(int64_t vocab) {
  int64_t stride = (vocab + 15) / 16 * 16;
  return stride % 512 == 0 ? stride + 16 : stride;
}

/// Returns the workspace for the exchanges of ranks that share a vocabulary:
/// three numbers per row of a chunk. It adds to the constant part of
/// dyna_head_workspace.
static inline int64_t dyna_head_chunk_exchange_workspace(int64_t chunk_rows) {
  return dyna_align_block(3 * chunk_rows * 8);
}

/// Rows of a bf16 weight gradient that a chunk adds to at a time.
#define DYNA_HEAD_SLICE_ROWS 4096

/// Returns the workspace that sums a bf16 weight gradient in f32 over the
/// chunks of a call. It has the lower halves of the sums; the upper halves lie
/// in the gradient meanwhile. It also has the contribution of one chunk to some
/// rows. It adds to the constant part of dyna_head_workspace.
static inline int64_t dyna_head_sum_workspace(int64_t width, int64_t vocab) {
  int64_t slice = vocab < DYNA_HEAD_SLICE_ROWS ? vocab : DYNA_HEAD_SLICE_ROWS;
  return dyna_align_block(2 * width * vocab) +
         dyna_align_block(4 * width * slice);
}

/// Bytes of a logit.
static inline int64_t dyna_logit_bytes(int64_t element, int32_t narrow_logits) {
  return element == 2 && !narrow_logits ? 4 : element;
}

/// Returns the workspace of a chunk: gathered rows, their gradient, and logits.
/// If logits are wider than the compute type, it also has the logits' gradient.
static inline dyna_linear_bytes
dyna_head_chunk_workspace(int64_t element, int64_t width, int64_t vocab,
                          int64_t chunk_rows, int32_t narrow_logits) {
  int64_t logit = dyna_logit_bytes(element, narrow_logits);
  int64_t rows = chunk_rows;
  int64_t stride = dyna_head_stride(vocab);
  dyna_linear_bytes bytes = {0, 0, 0, 0};
  bytes.tq = 8; // the indices of the rows that have a target
  bytes.constant =
      2 * dyna_align_block(rows * width * element) +
      dyna_align_block(rows * stride * logit) +
      (logit != element ? dyna_align_block(rows * stride * element) : 0) +
      dyna_align_block(rows * 8);
  return bytes;
}
static inline dyna_linear_bytes
dyna_head_workspace(int64_t element, int64_t width, int64_t vocab) {
  return dyna_head_chunk_workspace(element, width, vocab, DYNA_HEAD_CHUNK_ROWS,
                                   0);
}

//===----------------------------------------------------------------------===//
// A backend
//===----------------------------------------------------------------------===//

/// The functions above in one backend, by their names without `dyna_`. Their
/// context is never null, and is bound to a device of this backend. Null if the
/// backend lacks the function.
struct dyna_kernels {
  const char *backend; ///< for messages: "host"
  dyna_status (*launch)(dyna_context *, dyna_rows_body, const void *args,
                        int64_t args_bytes, int64_t rows, int64_t min_rows);
  dyna_status (*check_ids)(dyna_context *, const int32_t *ids, int64_t count,
                           int64_t rows);
  dyna_status (*check_positions)(dyna_context *, const int64_t *positions,
                                 int64_t count, int64_t rows);
  dyna_matmul_function matmul_f32, matmul_bf16, matmul_bf16_f32, matmul_f64;
  dyna_status (*attention_f32)(dyna_context *, const dyna_attention *);
  dyna_status (*attention_f64)(dyna_context *, const dyna_attention *);
  dyna_status (*attention_bf16)(dyna_context *, const dyna_attention *);
  dyna_status (*attention_grad_f32)(dyna_context *,
                                    const dyna_attention_grad *);
  dyna_status (*attention_grad_f64)(dyna_context *,
                                    const dyna_attention_grad *);
  dyna_status (*attention_grad_bf16)(dyna_context *,
                                     const dyna_attention_grad *);
  dyna_status (*head_f32)(dyna_context *, const dyna_head *);
  dyna_status (*head_f64)(dyna_context *, const dyna_head *);
  dyna_status (*head_bf16)(dyna_context *, const dyna_head *);
  dyna_status (*note_losses)(dyna_context *, const double *losses,
                             int64_t count, double *squared_norm);
  dyna_status (*clip_norm)(dyna_context *, const dyna_clip *);
  dyna_status (*place_rows)(dyna_context *, const dyna_place *);
  dyna_status (*launch_kernel)(dyna_context *, const dyna_device_code *code,
                               int64_t function, const void *args,
                               int64_t args_bytes, int64_t grid);
  dyna_sparse_matmul_function sparse_matmul_f32, sparse_matmul_bf16,
      sparse_matmul_bf16_f32, sparse_matmul_f64;
  dyna_status (*take_sparse_values)(dyna_context *, const dyna_sparse_values *);
};

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_KERNELS_H
