//===- Abi.h - Defines the contract of compiled code and runtime --*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This file declares everything that a compiled layer function and the runtime
// exchange. It is plain C, so that generated code can access structs by field
// offset (codegen/cpu checks the offsets against `offsetof` at build time).
//
// The idea
// --------
// `dynac` compiles each *kind* of layer (embedding, block, head) into a few
// functions, one per role below, all of one signature. They allocate nothing,
// own nothing and know neither files nor flags. Every pointer that they get
// lies in the arena that the runtime allocated at start. Micro-batches are
// ragged and token-major: `rows` of a tensor is the number of tokens. Inner
// sizes are fixed per function and listed in the manifest.
//
// Calls are *stream-ordered*: a function may return before its work is done,
// and work given to one stream runs in the order given. The host backend
// finishes before it returns, which this rule allows.
//
// Memory of one layer and micro-batch in flight: tiers
// ----------------------------------------------------
// Forward leaves values for backward. They are sorted into tiers. Each tier is
// a block, whose inner offsets are linear in (Tq, Tkv, S) and known at compile
// time:
//
//     input        the layer's input, written there by the producer
//     products     results of matrix products and attention
//     elementwise  values that cheap element-wise code and norms compute from
//                  `products`, `input` and parameters alone
//     deferred     values that `backward_input` leaves for `backward_weight`
//
// So the plan chooses what is recomputed, not the compiler:
//
// - `none`: input, products and elementwise are *kept* from forward to
//   backward.
// - `selective`: input and products are kept. Forward's elementwise tier is
//   scratch, and `recompute_selective` fills it again before backward (*late*).
// - `full`: only input is kept.
//
// Keys and values of sliced samples: the store
// --------------------------------------------
// Samples whose slices pass the layers in several micro-batches form a *bundle*. The
// plan gives the bundle one *store* per layer, which lives from the first forward to
// the last backward of these micro-batches. It has a row for each token of the
// bundle. A row holds the keys and values of every attention of the layer, side by
// side. Forward writes the rows of its own tokens, and attention reads those of all
// tokens that the segment sees. A second block of the same rows holds sums of
// gradients in the type of gradients. It begins with zeros. Backward runs the slices
// in reverse and adds to all rows that its queries see. So the rows of a slice are
// complete when its own backward has added to them.
//
// Sizes: every memory formula rounds tokens (Tq, Tkv) and segments (S) up to a
// multiple of DYNA_ROW_ALIGNMENT. Blocks are aligned to DYNA_BLOCK_ALIGNMENT.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_ABI_H
#define DYNA_RUNTIME_ABI_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DYNA_ABI_VERSION 8
/// Row counts in memory formulas are rounded up to a multiple of this.
#define DYNA_ROW_ALIGNMENT 32
/// Alignment of every tensor and block, in bytes.
#define DYNA_BLOCK_ALIGNMENT 64
/// Largest number of chunks of a launch. The number of rows alone decides how a
/// launch is split. So results that are summed per chunk are the same for any
/// number of threads.
#define DYNA_MAX_CHUNKS 32

static inline int64_t dyna_round_rows(int64_t rows) {
  return (rows + DYNA_ROW_ALIGNMENT - 1) / DYNA_ROW_ALIGNMENT *
         DYNA_ROW_ALIGNMENT;
}

static inline int64_t dyna_align_block(int64_t bytes) {
  return (bytes + DYNA_BLOCK_ALIGNMENT - 1) / DYNA_BLOCK_ALIGNMENT *
         DYNA_BLOCK_ALIGNMENT;
}

typedef int32_t dyna_status;
enum {
  DYNA_OK = 0,
  DYNA_INVALID_ARGUMENT = 1,
  DYNA_RESOURCE_EXHAUSTED = 2,
  DYNA_DEVICE_ERROR = 3,
  DYNA_DEADLINE_EXCEEDED = 4,
  DYNA_PEER_FAILED = 5,
  DYNA_CANCELLED = 6,
  DYNA_INTERNAL = 7,
};

/// A row-major, contiguous, aligned tensor. Inner sizes and element type are
/// fixed per function (manifest). A null `data` with `rows` 0 means "not here":
/// the function skips that tensor (a tied parameter that is updated elsewhere).
typedef struct dyna_tensor {
  void *data;
  int64_t rows;
} dyna_tensor;

/// One run of tokens of one sample. Queries [q_begin, q_begin+q_len) of the
/// micro-batch see keys [kv_begin, kv_begin+kv_len). `position0` is the
/// position in the sample of the first query; the last key is the last query's
/// own. Keys are numbered in the micro-batch up to its `tkv` rows. From there on they
/// are rows of the bundle's store: key `tkv + r` is row r of it.
typedef struct dyna_segment {
  int64_t sample;
  int64_t q_begin;
  int64_t q_len;
  int64_t kv_begin;
  int64_t kv_len;
  int64_t position0;
} dyna_segment;

/// Rows of a micro-batch in *runs*: rows with the same token id, or the same
/// position. Run i is rows[starts[i]] up to, not including, rows[starts[i +
/// 1]], ascending. Runs are ordered by their token id or position. `starts[0]`
/// is 0 and `starts[count]` is tq. No run is empty.
typedef struct dyna_row_runs {
  const int32_t *rows;   ///< [tq]
  const int32_t *starts; ///< [count + 1]
  int64_t count;
} dyna_row_runs;

/// Bits for tables of a micro-batch that only some backends need. The manifest
/// lists those that compiled code asks for (`batch_tables`).
enum {
  DYNA_BATCH_OFFSETS = 1,
  DYNA_BATCH_TOKEN_RUNS = 2,
  DYNA_BATCH_POSITION_RUNS = 4,
  DYNA_BATCH_TARGET_ROWS = 8,
  DYNA_BATCH_TABLES = 15, ///< all of them
};

/// The segments of one micro-batch, in order of q_begin; they cover [0, tq)
/// without gap or overlap. `row_sample` and `row_position` have the same
/// information row by row, with tq entries, for code that works on rows. All
/// arrays lie on the device. The numbers are for host code that launches work
/// there. The tables at the end are null unless they were asked for.
typedef struct dyna_segments {
  const dyna_segment *data;
  int64_t count;
  int64_t tq;
  int64_t tkv;
  const int64_t *row_sample;
  const int64_t *row_position;
  int64_t longest_query; ///< largest q_len
  int64_t longest_key;   ///< largest kv_len
  int64_t targets;       ///< of the micro-batch that are in the loss
  int64_t pairs;         ///< of a query and a key of its segment
  int64_t
      causal_pairs; ///< those that a causal mask leaves (dyna_visible_pairs)
  /// Not 0: the keys of every segment are the rows of its own queries.
  int64_t keys_are_queries;
  int64_t stored; ///< rows of the bundle's store; 0: no segment is a slice
  const int32_t *offsets; ///< [count + 1]: q_begin of each segment, then tq
  dyna_row_runs token_runs;
  dyna_row_runs position_runs;
  const int32_t *target_rows; ///< [targets]: rows that have one, ascending
} dyna_segments;

/// Numbers of the tiers in the manifest; the fields of dyna_saved, in order. A
/// recomputation mode keeps the first ones, and fewer if it recomputes more.
enum {
  DYNA_TIER_INPUT = 0,
  DYNA_TIER_PRODUCTS = 1,
  DYNA_TIER_ELEMENTWISE = 2,
  DYNA_TIER_DEFERRED = 3,
  DYNA_TIER_COUNT = 4
};

/// The tiers of one layer and micro-batch (see above). `keys` and `key_gradients` are
/// the store of the bundle and its sums; null if no sample is sliced.
typedef struct dyna_saved {
  void *input;
  void *products;
  void *elementwise;
  void *deferred;
  void *keys;
  void *key_gradients;
} dyna_saved;

/// The ranks that share one axis of the mesh, or a factor of one, with this
/// rank. Collectives.h declares their exchanges.
typedef struct dyna_group {
  int32_t size;
  int32_t index; ///< this rank's place in the group
  void *handle;  ///< the transport's `dyna::Group`; null for a group of one
} dyna_group;

/// The first groups of every context; factors of axes follow them.
enum {
  DYNA_GROUP_DP = 0,
  DYNA_GROUP_TP = 1,
  DYNA_GROUP_PP = 2,
  DYNA_GROUP_COUNT = 3
};

/// Scalars of one optimizer step (AdamW, decoupled decay). `gradient_scale` is
/// the address, on the device, of the factor of global-norm clipping; the host
/// does not know the factor. If it is not a number, the gradient or a loss is
/// not finite: `update` then only clears the gradients. `correction1` is 1 -
/// beta1^t.
typedef struct dyna_optimizer {
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  const double *gradient_scale;
  double correction1;
  double correction2;
} dyna_optimizer;

/// The kernels of a backend (Kernels.h).
typedef struct dyna_kernels dyna_kernels;

/// The device of a context. A backend's own fields follow it in memory.
typedef struct dyna_device {
  const dyna_kernels *kernels;
} dyna_device;

/// Arguments of a layer function beyond its tensors. The executor owns one per
/// rank; the fields below `per call` change from call to call.
typedef struct dyna_context {
  uint32_t abi_version;
  int32_t rank;
  int32_t world;
  int32_t group_count;
  const dyna_group *groups; ///< `group_count` of them, first DYNA_GROUP_*
  dyna_device *device;      ///< null before Device::bind
  void *stream;             ///< the backend's stream
  char *message;            ///< text of the last failure, 0-terminated
  int64_t message_capacity;
  uint64_t seed;
  // per call
  int64_t step;
  int64_t layer;
  /// 1 / target tokens of the whole mini-batch. In forward of a layer with a loss,
  /// times the weight of the loss.
  double inverse_targets;
  dyna_optimizer optimizer;
  /// Work of all matrix products so far; every kernel adds its own. A product
  /// adds 2 m n k. Attention adds 2 head_dim per product, head and visible pair
  /// (Kernels.h). The caller of layer functions clears it.
  int64_t matrix_flops;
} dyna_context;

/// The signature of all layer functions. The role decides which tensors are in
/// the arrays:
///
///     role                 params   grads      in                  out
///     evaluate             compute  -          inputs              outputs
///     forward              compute  added to*  inputs              outputs
///     recompute_selective  compute  -          -                   -
///     recompute_full       compute  -          -                   -
///     backward             compute  added to   d outputs           d inputs
///     backward_input       compute  -          d outputs           d inputs
///     backward_weight      compute  added to   -                   -
///     update               written  cleared    master, m, v each   -
///     grad_norm            -        read       -                  [1] f64 (+=)
///     cast                 written  -          master of each      -
///
/// "compute": parameters in the compute type. "-": may be null. *: only layers
/// with a loss, whose fused loss makes its weight gradient in forward. Gradients
/// are f32 (f64 under f64).
///
/// The input at index 0 is the activation or the token ids (int32). Forward,
/// recompute and backward find it in `saved->input` (for forward the same
/// address). Layers with a loss also have the target ids (int32). `d inputs` and
/// `d outputs` hold gradients of activations only. A loss is one f64: the sum of
/// token losses (written). It is the head's output, and behind the activation the
/// second one of an exit. Under f32 and f64 the parameters
/// *are* the masters, and `params` of `update` and `cast` may be null.
///
/// `update`, `grad_norm` and `cast` work on the `rows` of each tensor, 0 up to
/// all rows of the parameter. The rows of a vector are its elements. A rank may
/// hold rows [a, b) of the optimizer state. It then passes pointers to row a
/// (of the gradient, the compute copy and the state) and b - a; other rows are
/// not touched. All tensors of one parameter have the same rows, else the
/// function returns DYNA_INVALID_ARGUMENT. These pointers need only the
/// alignment of an element.
typedef dyna_status (*dyna_layer_function)(
    dyna_context *context, const dyna_tensor *params, const dyna_tensor *grads,
    const dyna_saved *saved, void *workspace, const dyna_segments *segments,
    const dyna_tensor *in, const dyna_tensor *out);

enum {
  DYNA_ROLE_EVALUATE = 0,
  DYNA_ROLE_FORWARD = 1,
  DYNA_ROLE_RECOMPUTE_SELECTIVE = 2,
  DYNA_ROLE_RECOMPUTE_FULL = 3,
  DYNA_ROLE_BACKWARD = 4,
  DYNA_ROLE_BACKWARD_INPUT = 5,
  DYNA_ROLE_BACKWARD_WEIGHT = 6,
  DYNA_ROLE_UPDATE = 7,
  DYNA_ROLE_GRAD_NORM = 8,
  DYNA_ROLE_CAST = 9,
  DYNA_ROLE_COUNT = 10,
};

/// Bits of `features`: instruction sets that a variant of the code needs.
enum {
  DYNA_FEATURE_AVX2 = 1,   ///< AVX2, FMA, F16C, BMI2
  DYNA_FEATURE_AVX512 = 2, ///< AVX-512 F, BW, CD, DQ, VL
};

/// The layer functions compiled for one instruction set: `functions[kind *
/// DYNA_ROLE_COUNT + role]`, null if a kind has no such role. First come the
/// kinds of the manifest, then those of each of its tensor degrees. Kind k of
/// degree d is number (d + 1) * kinds + k.
typedef struct dyna_variant {
  const char *name;
  uint64_t features;
  const dyna_layer_function *functions;
} dyna_variant;

/// Kernels for devices that have code of their own (DeviceCode.h).
typedef struct dyna_device_code dyna_device_code;

/// The compiled program: the object defines it, and the runtime reads it.
/// Variants stand in order of preference; the manifest is a serialised
/// `dyna.plan.Manifest`.
typedef struct dyna_program {
  uint32_t abi_version;
  uint32_t variant_count;
  const dyna_variant *variants;
  const uint8_t *manifest;
  int64_t manifest_size;
  /// Kernels that layer functions launch; null: they are compiled for the host.
  const dyna_device_code *device_code;
} dyna_program;

extern const dyna_program dyna_compiled_program;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_RUNTIME_ABI_ABI_H
