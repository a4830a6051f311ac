//===- TinyModel.cpp - A hand-written compiled program --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/executor/TinyExchanges.h"
#include "test/runtime/executor/TinyParameters.h"
#include "test/runtime/executor/TinySegments.h"
#include "test/runtime/executor/TinyVariants.h"

#include "runtime/abi/Kernels.h"
#include "runtime/abi/Random.h"
#include "runtime/plan/model/Bytes.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace dyna {

TinyFault tinyFault;
void (*tinyEmbeddingHook)(const dyna_context &context) = nullptr;
void (*tinyLayerHook)(const dyna_context &context) = nullptr;
void (*tinyUpdateHook)(int64_t step) = nullptr;
double tinyDropout = 0.25;

namespace {

constexpr int64_t W = tinyWidth;
int64_t &V = tinySizes.vocabulary, &H = tinySizes.hidden;
bool hasBias() { return tinySizes.headBias; }
using Part = TinyPart;

/// The functions for compute type C with masters of type M and gradients of
/// type G. They are those of a rank: the vocabulary and the hidden features are
/// dealt to the tensor-parallel ranks, of which there may be one; with SP each
/// has some of the tokens between layers.
template <typename C, typename M, typename G = M, bool SP = false>
struct Tiny : TinyTypes<C, M, G>, TinyExchanges<C, SP> {
  using TinyTypes<C, M, G>::compute;
  using TinyTypes<C, M, G>::gradient;
  using TinyExchanges<C, SP>::exchangeOf;
  using TinyExchanges<C, SP>::gather;
  using TinyExchanges<C, SP>::reduce;
  using TinyExchanges<C, SP>::rowsHere;

  //===--- Faults ---------------------------------------------------------===//

  static dyna_status fault(dyna_context *context, int role, void *workspace,
                           const dyna_tensor *out, int64_t outBytes,
                           const dyna_tensor *params) {
    if (tinyLayerHook)
      tinyLayerHook(*context);
    if (tinyFault.kind == TinyFault::Kind::None || tinyFault.role != role ||
        tinyFault.layer != context->layer)
      return DYNA_OK;
    switch (tinyFault.kind) {
    case TinyFault::Kind::Fail:
      std::snprintf(context->message, context->message_capacity,
                    "the tiny model was asked to fail");
      return DYNA_DEVICE_ERROR;
    case TinyFault::Kind::WriteBehindWorkspace:
      static_cast<char *>(workspace)[DYNA_BLOCK_ALIGNMENT * 64] = 1;
      return DYNA_OK;
    case TinyFault::Kind::WriteBehindOutput:
      static_cast<char *>(out[0].data)[dyna_align_block(outBytes)] = 1;
      return DYNA_OK;
    case TinyFault::Kind::WriteParameter:
      compute(params[0])[0] = 123.0;
      return DYNA_OK;
    default:
      return DYNA_OK;
    }
  }

  /// These loops are the kernels: `products` of W by this rank's part of H, of
  /// one token.
  static void count(dyna_context *context, int64_t products) {
    context->matrix_flops += products * 2 * W * Part(context, H).size;
  }

  //===--- Embedding ------------------------------------------------------===//

  static dyna_status embed(dyna_context *context, const dyna_tensor *params,
                           const dyna_tensor *, const dyna_saved *,
                           void *workspace, const dyna_segments *segments,
                           const dyna_tensor *in, const dyna_tensor *out) {
    const int32_t *tokens = static_cast<const int32_t *>(in[0].data);
    if (!areDescribed(*segments) || !areOffsets(*segments) ||
        !areRuns(DYNA_BATCH_TOKEN_RUNS, segments->token_runs, tokens,
                 segments->tq) ||
        !areRuns(DYNA_BATCH_POSITION_RUNS, segments->position_runs,
                 segments->row_position, segments->tq))
      return DYNA_INTERNAL;
    Part part(context, V);
    C *x = SP ? static_cast<C *>(workspace) : compute(out[0]);
    for (int64_t t = 0; t < segments->tq; ++t)
      for (int64_t w = 0; w < W; ++w) {
        int64_t row = tokens[t] - part.begin;
        bool here = row >= 0 && row < part.size;
        x[t * W + w] = here ? double(compute(params[0])[row * W + w]) : 0.0;
      }
    if (dyna_status status = reduce(context, segments, x, compute(out[0])))
      return status;
    return fault(context, DYNA_ROLE_FORWARD, nullptr, out,
                 sizeof(C) * W * dyna_round_rows(segments->tq), params);
  }

  static dyna_status embedBackward(dyna_context *context, const dyna_tensor *,
                                   const dyna_tensor *grads,
                                   const dyna_saved *saved, void *workspace,
                                   const dyna_segments *segments,
                                   const dyna_tensor *in, const dyna_tensor *) {
    if (tinyEmbeddingHook)
      tinyEmbeddingHook(*context);
    const int32_t *tokens = static_cast<const int32_t *>(saved->input);
    Part part(context, V);
    C *dx = compute(in[0]);
    if (dyna_status status =
            gather(context, segments, dx, static_cast<C *>(workspace)))
      return status;
    for (int64_t t = 0; grads[0].data && t < segments->tq; ++t)
      for (int64_t w = 0; w < W; ++w)
        if (int64_t row = tokens[t] - part.begin; row >= 0 && row < part.size)
          gradient(grads[0])[row * W + w] += dx[t * W + w];
    return DYNA_OK;
  }

  //===--- Block ----------------------------------------------------------===//

  struct BlockTiers {
    C *x, *h, *u, *a, *dh, *dy;
    BlockTiers(const dyna_saved &saved, int64_t tq) {
      int64_t rows = dyna_round_rows(tq);
      x = static_cast<C *>(saved.input);
      h = static_cast<C *>(saved.products);
      u = static_cast<C *>(saved.elementwise);
      // A role gets the tiers that it uses.
      a = u ? u + rows * W : nullptr;
      dh = static_cast<C *>(saved.deferred);
      dy = dh ? dh + rows * H : nullptr;
    }
  };

  static double keep(const dyna_context *context, const dyna_segments *segments,
                     int64_t t, int64_t feature) {
    uint64_t key = dyna_random_row_key(
        dyna_random_op_key(context->seed, context->step, context->layer, 0),
        segments->row_sample[t], segments->row_position[t]);
    return dyna_random_element(key, static_cast<uint32_t>(feature)) <
                   dyna_dropout_threshold(tinyDropout)
               ? 0
               : 1 / (1 - tinyDropout);
  }

  /// Row of the sample's first token in the bundle's store; -1: a whole sample.
  static int64_t storeRow(const dyna_segments *segments,
                          const dyna_segment &segment) {
    return segments->stored > 0 && segment.kv_begin >= segments->tkv
               ? segment.kv_begin - segments->tkv
               : -1;
  }

  /// The mean of a row and all before it in its sample: attention of a kind.
  static void mixRows(const dyna_segments *segments, const dyna_saved *saved,
                      const C *x, C *u) {
    for (int64_t s = 0; s < segments->count; ++s) {
      const dyna_segment &segment = segments->data[s];
      const int64_t row = storeRow(segments, segment);
      const int64_t first = segment.position0;
      double sums[W] = {};
      if (row >= 0) {
        C *store = static_cast<C *>(saved->keys) + row * W;
        std::memcpy(store + first * W, x + segment.q_begin * W,
                    sizeof(C) * segment.q_len * W);
        for (int64_t i = 0; i < first; ++i)
          for (int64_t w = 0; w < W; ++w)
            sums[w] += store[i * W + w];
      }
      for (int64_t i = 0; i < segment.q_len; ++i)
        for (int64_t w = 0; w < W; ++w) {
          int64_t at = (segment.q_begin + i) * W + w;
          sums[w] += x[at];
          u[at] = x[at] + 0.5 * sums[w] / static_cast<double>(first + i + 1);
        }
    }
  }

  /// From the gradient of the mixed rows to that of the rows. A slice adds to the sums
  /// of earlier tokens, and takes what later slices have added to its own.
  static void unmixRows(const dyna_segments *segments, const dyna_saved *saved,
                        const C *du, C *dx) {
    for (int64_t s = 0; s < segments->count; ++s) {
      const dyna_segment &segment = segments->data[s];
      const int64_t row = storeRow(segments, segment);
      const int64_t first = segment.position0;
      M *store =
          row < 0 ? nullptr : static_cast<M *>(saved->key_gradients) + row * W;
      double sums[W] = {};
      for (int64_t i = segment.q_len - 1; i >= 0; --i)
        for (int64_t w = 0; w < W; ++w) {
          int64_t at = (segment.q_begin + i) * W + w;
          sums[w] += 0.5 * du[at] / static_cast<double>(first + i + 1);
          dx[at] =
              du[at] + sums[w] +
              (store ? static_cast<double>(store[(first + i) * W + w]) : 0);
        }
      for (int64_t i = 0; store && i < first; ++i)
        for (int64_t w = 0; w < W; ++w)
          store[i * W + w] += sums[w];
    }
  }

  static void hidden(dyna_context *context, const dyna_tensor *params,
                     int64_t tq, const C *u, C *h) {
    int64_t n = Part(context, H).size;
    for (int64_t t = 0; t < tq; ++t, count(context, 1))
      for (int64_t j = 0; j < n; ++j) {
        double sum = compute(params[1])[j];
        for (int64_t w = 0; w < W; ++w)
          sum += compute(params[0])[j * W + w] * u[t * W + w];
        h[t * n + j] = sum;
      }
  }

  static void activate(const dyna_context *context,
                       const dyna_segments *segments, bool training, const C *h,
                       C *a) {
    Part part(context, H);
    for (int64_t t = 0; t < segments->tq; ++t)
      for (int64_t j = 0; j < part.size; ++j) {
        double kept =
            training ? keep(context, segments, t, part.begin + j) : 1.0;
        a[t * part.size + j] = std::tanh(h[t * part.size + j]) * kept;
      }
  }

  /// y of the rows here, from x of the rows here and all rows of a; `scratch`
  /// has room for all rows of y with SP.
  static dyna_status project(dyna_context *context, const dyna_tensor *params,
                             const dyna_segments *segments, const C *x,
                             const C *a, C *scratch, C *y) {
    int64_t n = Part(context, H).size;
    C *summand = SP ? scratch : y;
    for (int64_t t = 0; t < segments->tq; ++t, count(context, 1))
      for (int64_t w = 0; w < W; ++w) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += compute(params[2])[w * n + j] * a[t * n + j];
        summand[t * W + w] = sum;
      }
    if (dyna_status status = reduce(context, segments, summand, y))
      return status;
    for (int64_t i = 0; i < rowsHere(context, segments) * W; ++i)
      y[i] += x[i];
    return DYNA_OK;
  }

  static dyna_status block(dyna_context *context, const dyna_tensor *params,
                           const dyna_tensor *, const dyna_saved *saved,
                           void *workspace, const dyna_segments *segments,
                           const dyna_tensor *in, const dyna_tensor *out) {
    int64_t tq = segments->tq;
    BlockTiers tiers(*saved, tq);
    C *x = compute(in[0]), *scratch = static_cast<C *>(workspace);
    if (dyna_status status = gather(context, segments, x, scratch))
      return status;
    mixRows(segments, saved, x, tiers.u);
    hidden(context, params, tq, tiers.u, tiers.h);
    activate(context, segments, true, tiers.h, tiers.a);
    if (dyna_status status = project(context, params, segments, compute(in[0]),
                                     tiers.a, scratch, compute(out[0])))
      return status;
    return fault(context, DYNA_ROLE_FORWARD, workspace, out,
                 sizeof(C) * W * dyna_round_rows(tq), params);
  }

  /// Evaluates, or trains forward alone: then it keeps nothing, but drops features.
  template <bool trains>
  static dyna_status
  evaluateBlock(dyna_context *context, const dyna_tensor *params,
                const dyna_tensor *, const dyna_saved *saved, void *workspace,
                const dyna_segments *segments, const dyna_tensor *in,
                const dyna_tensor *out) {
    int64_t rows = dyna_round_rows(segments->tq);
    C *u = static_cast<C *>(workspace);
    C *h = u + rows * W;
    C *x = compute(in[0]), *scratch = h + rows * H;
    if (dyna_status status = gather(context, segments, x, scratch))
      return status;
    mixRows(segments, saved, x, u);
    hidden(context, params, segments->tq, u, h);
    activate(context, segments, trains, h, h);
    return project(context, params, segments, compute(in[0]), h, scratch,
                   compute(out[0]));
  }

  static dyna_status
  recomputeSelective(dyna_context *context, const dyna_tensor *,
                     const dyna_tensor *, const dyna_saved *saved,
                     void *workspace, const dyna_segments *segments,
                     const dyna_tensor *, const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    C *x = tiers.x;
    if (dyna_status status =
            gather(context, segments, x, static_cast<C *>(workspace)))
      return status;
    mixRows(segments, saved, x, tiers.u);
    activate(context, segments, true, tiers.h, tiers.a);
    return DYNA_OK;
  }

  static dyna_status recomputeFull(dyna_context *context,
                                   const dyna_tensor *params,
                                   const dyna_tensor *, const dyna_saved *saved,
                                   void *workspace,
                                   const dyna_segments *segments,
                                   const dyna_tensor *, const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    C *x = tiers.x;
    if (dyna_status status =
            gather(context, segments, x, static_cast<C *>(workspace)))
      return status;
    mixRows(segments, saved, x, tiers.u);
    hidden(context, params, segments->tq, tiers.u, tiers.h);
    activate(context, segments, true, tiers.h, tiers.a);
    return DYNA_OK;
  }

  /// dh into `dh`, and into `dx` what this rank's features add to the gradient
  /// of x beside dy; `du` is scratch.
  static void inputGradient(dyna_context *context, const dyna_tensor *params,
                            const BlockTiers &tiers, const dyna_saved *saved,
                            const dyna_segments *segments, const C *dy, C *dh,
                            C *du, C *dx) {
    Part part(context, H);
    int64_t n = part.size;
    for (int64_t t = 0; t < segments->tq; ++t, count(context, 2)) {
      for (int64_t j = 0; j < n; ++j) {
        double da = 0;
        for (int64_t w = 0; w < W; ++w)
          da += compute(params[2])[w * n + j] * dy[t * W + w];
        double y = std::tanh(tiers.h[t * n + j]);
        dh[t * n + j] =
            da * keep(context, segments, t, part.begin + j) * (1 - y * y);
      }
      for (int64_t w = 0; w < W; ++w) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += compute(params[0])[j * W + w] * dh[t * n + j];
        du[t * W + w] = sum;
      }
    }
    unmixRows(segments, saved, du, dx);
  }

  /// The gradients of the hidden features and of x. `dy` becomes that of all
  /// rows, `scratch` has room for du and, with SP, twice as much.
  static dyna_status propagate(dyna_context *context, const dyna_tensor *params,
                               const BlockTiers &tiers, const dyna_saved *saved,
                               const dyna_segments *segments, C *&dy, C *dh,
                               C *scratch, C *dx) {
    int64_t elements = dyna_round_rows(segments->tq) * W;
    C *local = dy, *summand = SP ? scratch + 2 * elements : dx;
    if (dyna_status status = gather(context, segments, dy, scratch + elements))
      return status;
    inputGradient(context, params, tiers, saved, segments, dy, dh, scratch,
                  summand);
    if (dyna_status status = reduce(context, segments, summand, dx))
      return status;
    for (int64_t i = 0; i < rowsHere(context, segments) * W; ++i)
      dx[i] += local[i];
    return DYNA_OK;
  }

  /// The gradient of the input. If no layer needs it, it lies behind the scratch.
  static C *inputGradientAt(const dyna_tensor &out, C *scratch, int64_t tq) {
    return out.data ? compute(out)
                    : scratch + (SP ? 3 : 1) * dyna_round_rows(tq) * W;
  }

  /// Frozen parameters have no gradient.
  static void weightGradient(dyna_context *context, const dyna_tensor *grads,
                             const BlockTiers &tiers, int64_t tq, const C *dy,
                             const C *dh) {
    int64_t n = Part(context, H).size;
    for (int64_t t = 0; t < tq; ++t, count(context, 2)) {
      for (int64_t j = 0; j < n; ++j) {
        if (grads[1].data)
          gradient(grads[1])[j] += dh[t * n + j];
        for (int64_t w = 0; grads[0].data && w < W; ++w)
          gradient(grads[0])[j * W + w] += dh[t * n + j] * tiers.u[t * W + w];
      }
      for (int64_t w = 0; grads[2].data && w < W; ++w)
        for (int64_t j = 0; j < n; ++j)
          gradient(grads[2])[w * n + j] += dy[t * W + w] * tiers.a[t * n + j];
    }
  }

  template <bool learns>
  static dyna_status backward(dyna_context *context, const dyna_tensor *params,
                              const dyna_tensor *grads, const dyna_saved *saved,
                              void *workspace, const dyna_segments *segments,
                              const dyna_tensor *in, const dyna_tensor *out) {
    BlockTiers tiers(*saved, segments->tq);
    C *dh = static_cast<C *>(workspace), *dy = compute(in[0]);
    C *scratch = dh + dyna_round_rows(segments->tq) * H;
    if (dyna_status status =
            propagate(context, params, tiers, saved, segments, dy, dh, scratch,
                      inputGradientAt(out[0], scratch, segments->tq)))
      return status;
    if (learns)
      weightGradient(context, grads, tiers, segments->tq, dy, dh);
    return fault(context, DYNA_ROLE_BACKWARD, workspace, out,
                 sizeof(C) * W * dyna_round_rows(segments->tq), params);
  }

  static dyna_status
  backwardInput(dyna_context *context, const dyna_tensor *params,
                const dyna_tensor *grads, const dyna_saved *saved,
                void *workspace, const dyna_segments *segments,
                const dyna_tensor *in, const dyna_tensor *out) {
    if (grads) // all gradients of parameters are left to the weight half
      return DYNA_INTERNAL;
    BlockTiers tiers(*saved, segments->tq);
    C *dy = compute(in[0]), *scratch = static_cast<C *>(workspace);
    if (dyna_status status =
            propagate(context, params, tiers, saved, segments, dy, tiers.dh,
                      scratch, inputGradientAt(out[0], scratch, segments->tq)))
      return status;
    std::memcpy(tiers.dy, dy, sizeof(C) * segments->tq * W);
    return DYNA_OK;
  }

  static dyna_status backwardWeight(dyna_context *context, const dyna_tensor *,
                                    const dyna_tensor *grads,
                                    const dyna_saved *saved, void *workspace,
                                    const dyna_segments *segments,
                                    const dyna_tensor *, const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    // A copy, so that this role has a workspace as large as it is said to be.
    C *dy = static_cast<C *>(workspace);
    std::memset(dy, 0, sizeof(C) * W * dyna_round_rows(segments->tq));
    std::memcpy(dy, tiers.dy, sizeof(C) * W * segments->tq);
    weightGradient(context, grads, tiers, segments->tq, dy, tiers.dh);
    return DYNA_OK;
  }

  //===--- Head -----------------------------------------------------------===//

  /// The logits of a row in this rank's part of the vocabulary.
  static void logits(const C *table, const C *row, int64_t size, double *p) {
    for (int64_t v = 0; v < size; ++v) {
      p[v] = 0;
      for (int64_t w = 0; w < W; ++w)
        p[v] += table[v * W + w] * row[w];
    }
  }

  template <bool isFrozenHead = false>
  static dyna_status head(dyna_context *context, const dyna_tensor *params,
                          const dyna_tensor *grads, const dyna_saved *saved,
                          void *workspace, const dyna_segments *segments,
                          const dyna_tensor *in, const dyna_tensor *out) {
    const int32_t *targets = static_cast<const int32_t *>(in[1].data);
    const C *table = compute(params[0]);
    Part part(context, V);
    int64_t tq = segments->tq, elements = dyna_round_rows(tq) * W;
    if (std::count_if(targets, targets + tq,
                      [](int32_t t) { return t >= 0; }) != segments->targets ||
        !areTargetRows(*segments, targets))
      return DYNA_INTERNAL;
    // The largest logit of each row, its sum of exponentials and its target's
    // logit; then the logits of one row.
    double *most = static_cast<double *>(workspace), *sums = most + tq;
    double *chosen = sums + tq, *p = most + 3 * dyna_round_rows(tq);
    C *scratch = reinterpret_cast<C *>(p + V), *x = compute(in[0]);
    if (dyna_status status = gather(context, segments, x, scratch))
      return status;
    auto forRows = [&](auto &&work) {
      for (int64_t t = 0; t < tq; ++t) {
        C row[W];
        for (int64_t w = 0; w < W; ++w)
          row[w] = x[t * W + w] + (hasBias() ? compute(params[1])[w] : 0.0);
        logits(table, row, part.size, p);
        work(t, row, targets[t] - part.begin);
      }
    };
    forRows([&](int64_t t, const C *, int64_t) {
      most[t] = -1e300;
      for (int64_t v = 0; v < part.size; ++v)
        most[t] = std::max(most[t], p[v]);
    });
    dyna_collective largest =
        exchangeOf(most, most, tq, 1, DYNA_ELEMENT_F64, DYNA_REDUCE_MAX);
    if (dyna_status status = dyna_all_reduce(context, &largest))
      return status;
    forRows([&](int64_t t, const C *, int64_t target) {
      sums[t] = 0;
      for (int64_t v = 0; v < part.size; ++v)
        sums[t] += std::exp(p[v] - most[t]);
      chosen[t] = target >= 0 && target < part.size ? p[target] : 0;
    });
    dyna_collective terms = exchangeOf(sums, sums, 2 * tq, 1, DYNA_ELEMENT_F64);
    if (dyna_status status = dyna_all_reduce(context, &terms))
      return status;
    double loss = 0;
    C *products = static_cast<C *>(saved->products);
    for (int64_t t = 0; t < tq; ++t)
      if (targets[t] >= 0) {
        loss += std::log(sums[t]) + most[t] - chosen[t];
        const int made = !products ? 1 : isFrozenHead ? 2 : 3;
        context->matrix_flops += made * 2 * part.size * W;
      }
    const bool isLost =
        tinyFault.kind == TinyFault::Kind::LoseLoss &&
        (tinyFault.targets < 0 || tinyFault.targets == segments->targets);
    *static_cast<double *>(out[0].data) = isLost ? std::nan("") : loss;
    if (!products)
      return DYNA_OK;
    C *dx = SP ? scratch + elements : products;
    forRows([&](int64_t t, const C *row, int64_t target) {
      double gradients[W] = {};
      for (int64_t v = 0; targets[t] >= 0 && v < part.size; ++v) {
        double g = std::exp(p[v] - most[t]) / sums[t] - (v == target);
        g *= context->inverse_targets;
        for (int64_t w = 0; w < W; ++w) {
          gradients[w] += g * table[v * W + w];
          if (grads[0].data)
            gradient(grads[0])[v * W + w] += g * row[w];
        }
      }
      for (int64_t w = 0; w < W; ++w)
        dx[t * W + w] = gradients[w];
    });
    return reduce(context, segments, dx, products);
  }

  static dyna_status
  evaluateHead(dyna_context *context, const dyna_tensor *params,
               const dyna_tensor *grads, const dyna_saved *, void *workspace,
               const dyna_segments *segments, const dyna_tensor *in,
               const dyna_tensor *out) {
    dyna_saved none = {};
    return head<>(context, params, grads, &none, workspace, segments, in, out);
  }

  static dyna_status headBackward(dyna_context *context, const dyna_tensor *,
                                  const dyna_tensor *grads,
                                  const dyna_saved *saved, void *,
                                  const dyna_segments *segments,
                                  const dyna_tensor *, const dyna_tensor *out) {
    const C *dx = static_cast<const C *>(saved->products);
    int64_t elements = rowsHere(context, segments) * W;
    if (out[0].data)
      std::memcpy(out[0].data, dx, sizeof(C) * elements);
    for (int64_t i = 0; hasBias() && grads[1].data && i < elements; ++i)
      gradient(grads[1])[i % W] += dx[i];
    return DYNA_OK;
  }

  //===--- All of them ----------------------------------------------------===//

  template <int... sizes> using Own = TinyParameters<C, M, G, sizes...>;
  using Table = Own<1, W>;
  using Head = Own<2, W, 1>;
  using Block = Own<3, W, 1, -1>;

  static void fill(dyna_layer_function *f, bool freezable) {
    auto optimize = [&](auto own) {
      f[DYNA_ROLE_UPDATE] = decltype(own)::update;
      f[DYNA_ROLE_GRAD_NORM] = decltype(own)::norm;
      f[DYNA_ROLE_CAST] = decltype(own)::cast;
    };
    auto recompute = [&] {
      f[DYNA_ROLE_RECOMPUTE_SELECTIVE] = recomputeSelective;
      f[DYNA_ROLE_RECOMPUTE_FULL] = recomputeFull;
    };
    auto next = [&](dyna_layer_function evaluates, dyna_layer_function trains) {
      f += DYNA_ROLE_COUNT;
      f[DYNA_ROLE_EVALUATE] = evaluates;
      f[DYNA_ROLE_FORWARD] = trains;
    };
    auto nextBlock = [&] {
      next(evaluateBlock<false>, block);
      recompute();
      f[DYNA_ROLE_BACKWARD] = backward<true>;
      f[DYNA_ROLE_BACKWARD_INPUT] = backwardInput;
      f[DYNA_ROLE_BACKWARD_WEIGHT] = backwardWeight;
      optimize(Block());
    };
    auto nextHead = [&] {
      next(evaluateHead, head<>);
      f[DYNA_ROLE_BACKWARD] = headBackward;
      hasBias() ? optimize(Head()) : optimize(Table());
    };
    f[DYNA_ROLE_EVALUATE] = f[DYNA_ROLE_FORWARD] = embed;
    f[DYNA_ROLE_BACKWARD] = embedBackward;
    optimize(Table());
    nextBlock();
    nextHead();
    if (!freezable)
      return;
    next(embed, embed), nextBlock(); // alone, first
    next(evaluateBlock<false>, block);
    recompute();
    f[DYNA_ROLE_BACKWARD] = backward<false>;         // passing
    next(evaluateBlock<false>, evaluateBlock<true>); // alone
    nextHead();                                      // first
    next(evaluateHead, head<true>);                  // passing
    f[DYNA_ROLE_BACKWARD] = headBackward;
  }
};

} // namespace

template <typename C, typename M, typename G = M>
static void fillAll(const TinyOptions &options, dyna_layer_function *table) {
  const bool freezable = options.freezable;
  Tiny<C, M, G>::fill(table, freezable);
  for (const TinyDegree &degree : options.degrees) {
    table += tinyKindsOf(options) * DYNA_ROLE_COUNT;
    degree.sp ? Tiny<C, M, G, true>::fill(table, freezable)
              : Tiny<C, M, G>::fill(table, freezable);
  }
}

TinyProgram::TinyProgram(const TinyOptions &options)
    : manifest(tinyManifest(options)), bytes_(manifest.SerializeAsString()),
      functions_(
          new dyna_layer_function[(1 + options.degrees.size()) *
                                  tinyKindsOf(options) * DYNA_ROLE_COUNT]()) {
  if (options.gradients == plan::BF16)
    fillAll<Bf16, float, Bf16>(options, functions_.get());
  else if (options.compute == plan::BF16)
    fillAll<Bf16, float>(options, functions_.get());
  else
    fillAll<double, double>(options, functions_.get());
  variants_[0] = {"future", UINT64_C(1) << 60, functions_.get()};
  variants_[1] = {"plain", 0, functions_.get()};
  program_ = {DYNA_ABI_VERSION,
              2,
              variants_,
              reinterpret_cast<const uint8_t *>(bytes_.data()),
              static_cast<int64_t>(bytes_.size()),
              /*device_code=*/nullptr};
}

} // namespace dyna
