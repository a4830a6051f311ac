//===- TinyModel.cpp - A hand-written compiled program --------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyModel.h"

#include "runtime/abi/Random.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/ManifestView.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace dyna {

TinyFault tinyFault;
void (*tinyEmbeddingHook)(const dyna_context &context) = nullptr;
void (*tinyUpdateHook)(int64_t step) = nullptr;
double tinyDropout = 0.25;

namespace {

constexpr int64_t W = tinyWidth;
int64_t V = tinyVocabulary, H = tinyHidden;
bool headHasBias = true;
bool hasBias() { return headHasBias; }

struct Bf16 {
  uint16_t bits;
  operator double() const {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  Bf16 &operator+=(double value) { return *this = *this + value; }
  Bf16 &operator=(double value) {
    float narrow = static_cast<float>(value);
    uint32_t wide;
    std::memcpy(&wide, &narrow, sizeof(wide));
    bits = static_cast<uint16_t>((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16);
    return *this;
  }
};

/// The functions for compute type C with masters of type M and gradients of
/// type G.
template <typename C, typename M, typename G = M> struct Tiny {
  static C *compute(const dyna_tensor &t) { return static_cast<C *>(t.data); }
  static M *master(const dyna_tensor &t) { return static_cast<M *>(t.data); }
  static G *gradient(const dyna_tensor &t) { return static_cast<G *>(t.data); }

  //===--- Faults ---------------------------------------------------------===//

  static dyna_status fault(dyna_context *context, int role, void *workspace,
                           const dyna_tensor *out, int64_t outBytes,
                           const dyna_tensor *params) {
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
      static_cast<char *>(out[0].data)[alignToBlock(outBytes)] = 1;
      return DYNA_OK;
    case TinyFault::Kind::WriteParameter:
      compute(params[0])[0] = 123.0;
      return DYNA_OK;
    default:
      return DYNA_OK;
    }
  }

  /// These loops are the kernels: `products` of W by H, of one token.
  static void count(dyna_context *context, int64_t products) {
    context->matrix_flops += products * 2 * W * H;
  }

  //===--- Embedding ------------------------------------------------------===//

  static dyna_status embed(dyna_context *context, const dyna_tensor *params,
                           const dyna_tensor *, const dyna_saved *, void *,
                           const dyna_segments *segments, const dyna_tensor *in,
                           const dyna_tensor *out) {
    const int32_t *tokens = static_cast<const int32_t *>(in[0].data);
    for (int64_t t = 0; t < segments->tq; ++t)
      for (int64_t w = 0; w < W; ++w)
        compute(out[0])[t * W + w] = compute(params[0])[tokens[t] * W + w];
    return fault(context, DYNA_ROLE_FORWARD, nullptr, out,
                 sizeof(C) * W * roundRows(segments->tq), params);
  }

  static dyna_status embedBackward(dyna_context *context, const dyna_tensor *,
                                   const dyna_tensor *grads,
                                   const dyna_saved *saved, void *,
                                   const dyna_segments *segments,
                                   const dyna_tensor *in, const dyna_tensor *) {
    if (tinyEmbeddingHook)
      tinyEmbeddingHook(*context);
    const int32_t *tokens = static_cast<const int32_t *>(saved->input);
    for (int64_t t = 0; t < segments->tq; ++t)
      for (int64_t w = 0; w < W; ++w)
        gradient(grads[0])[tokens[t] * W + w] += compute(in[0])[t * W + w];
    return DYNA_OK;
  }

  //===--- Block ----------------------------------------------------------===//

  struct BlockTiers {
    C *x, *h, *u, *a, *dh, *dy;
    BlockTiers(const dyna_saved &saved, int64_t tq) {
      int64_t rows = roundRows(tq);
      x = static_cast<C *>(saved.input);
      h = static_cast<C *>(saved.products);
      u = static_cast<C *>(saved.elementwise);
      a = u + rows * W;
      dh = static_cast<C *>(saved.deferred);
      dy = dh + rows * H;
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

  static void mixRows(const dyna_segments *segments, const C *x, C *u) {
    for (int64_t s = 0; s < segments->count; ++s) {
      const dyna_segment &segment = segments->data[s];
      double sums[W] = {};
      for (int64_t i = 0; i < segment.q_len; ++i)
        for (int64_t w = 0; w < W; ++w) {
          int64_t at = (segment.q_begin + i) * W + w;
          sums[w] += x[at];
          u[at] = x[at] + 0.5 * sums[w] / static_cast<double>(i + 1);
        }
    }
  }

  static void hidden(dyna_context *context, const dyna_tensor *params,
                     int64_t tq, const C *u, C *h) {
    for (int64_t t = 0; t < tq; ++t, count(context, 1))
      for (int64_t j = 0; j < H; ++j) {
        double sum = compute(params[1])[j];
        for (int64_t w = 0; w < W; ++w)
          sum += compute(params[0])[j * W + w] * u[t * W + w];
        h[t * H + j] = sum;
      }
  }

  static void activate(const dyna_context *context,
                       const dyna_segments *segments, bool training, const C *h,
                       C *a) {
    for (int64_t t = 0; t < segments->tq; ++t)
      for (int64_t j = 0; j < H; ++j)
        a[t * H + j] = std::tanh(h[t * H + j]) *
                       (training ? keep(context, segments, t, j) : 1.0);
  }

  static void project(dyna_context *context, const dyna_tensor *params,
                      int64_t tq, const C *x, const C *a, C *y) {
    for (int64_t t = 0; t < tq; ++t, count(context, 1))
      for (int64_t w = 0; w < W; ++w) {
        double sum = x[t * W + w];
        for (int64_t j = 0; j < H; ++j)
          sum += compute(params[2])[w * H + j] * a[t * H + j];
        y[t * W + w] = sum;
      }
  }

  static dyna_status block(dyna_context *context, const dyna_tensor *params,
                           const dyna_tensor *, const dyna_saved *saved,
                           void *workspace, const dyna_segments *segments,
                           const dyna_tensor *in, const dyna_tensor *out) {
    int64_t tq = segments->tq;
    BlockTiers tiers(*saved, tq);
    mixRows(segments, compute(in[0]), tiers.u);
    hidden(context, params, tq, tiers.u, tiers.h);
    activate(context, segments, true, tiers.h, tiers.a);
    project(context, params, tq, compute(in[0]), tiers.a, compute(out[0]));
    return fault(context, DYNA_ROLE_FORWARD, workspace, out,
                 sizeof(C) * W * roundRows(tq), params);
  }

  static dyna_status
  evaluateBlock(dyna_context *context, const dyna_tensor *params,
                const dyna_tensor *, const dyna_saved *, void *workspace,
                const dyna_segments *segments, const dyna_tensor *in,
                const dyna_tensor *out) {
    int64_t tq = segments->tq;
    C *u = static_cast<C *>(workspace);
    C *h = u + roundRows(tq) * W;
    mixRows(segments, compute(in[0]), u);
    hidden(context, params, tq, u, h);
    activate(context, segments, false, h, h);
    project(context, params, tq, compute(in[0]), h, compute(out[0]));
    return DYNA_OK;
  }

  static dyna_status
  recomputeSelective(dyna_context *context, const dyna_tensor *,
                     const dyna_tensor *, const dyna_saved *saved, void *,
                     const dyna_segments *segments, const dyna_tensor *,
                     const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    mixRows(segments, tiers.x, tiers.u);
    activate(context, segments, true, tiers.h, tiers.a);
    return DYNA_OK;
  }

  static dyna_status recomputeFull(dyna_context *context,
                                   const dyna_tensor *params,
                                   const dyna_tensor *, const dyna_saved *saved,
                                   void *, const dyna_segments *segments,
                                   const dyna_tensor *, const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    mixRows(segments, tiers.x, tiers.u);
    hidden(context, params, segments->tq, tiers.u, tiers.h);
    activate(context, segments, true, tiers.h, tiers.a);
    return DYNA_OK;
  }

  /// dh into `dh`, dx into `dx`; `du` is scratch.
  static void inputGradient(dyna_context *context, const dyna_tensor *params,
                            const BlockTiers &tiers,
                            const dyna_segments *segments, const C *dy, C *dh,
                            C *du, C *dx) {
    for (int64_t t = 0; t < segments->tq; ++t, count(context, 2)) {
      for (int64_t j = 0; j < H; ++j) {
        double da = 0;
        for (int64_t w = 0; w < W; ++w)
          da += compute(params[2])[w * H + j] * dy[t * W + w];
        double y = std::tanh(tiers.h[t * H + j]);
        dh[t * H + j] = da * keep(context, segments, t, j) * (1 - y * y);
      }
      for (int64_t w = 0; w < W; ++w) {
        double sum = 0;
        for (int64_t j = 0; j < H; ++j)
          sum += compute(params[0])[j * W + w] * dh[t * H + j];
        du[t * W + w] = sum;
      }
    }
    for (int64_t s = 0; s < segments->count; ++s) {
      const dyna_segment &segment = segments->data[s];
      double sums[W] = {};
      for (int64_t i = segment.q_len - 1; i >= 0; --i)
        for (int64_t w = 0; w < W; ++w) {
          int64_t at = (segment.q_begin + i) * W + w;
          sums[w] += 0.5 * du[at] / static_cast<double>(i + 1);
          dx[at] = dy[at] + du[at] + sums[w];
        }
    }
  }

  static void weightGradient(dyna_context *context, const dyna_tensor *grads,
                             const BlockTiers &tiers, int64_t tq, const C *dy,
                             const C *dh) {
    for (int64_t t = 0; t < tq; ++t, count(context, 2)) {
      for (int64_t j = 0; j < H; ++j) {
        gradient(grads[1])[j] += dh[t * H + j];
        for (int64_t w = 0; w < W; ++w)
          gradient(grads[0])[j * W + w] += dh[t * H + j] * tiers.u[t * W + w];
      }
      for (int64_t w = 0; w < W; ++w)
        for (int64_t j = 0; j < H; ++j)
          gradient(grads[2])[w * H + j] += dy[t * W + w] * tiers.a[t * H + j];
    }
  }

  static dyna_status backward(dyna_context *context, const dyna_tensor *params,
                              const dyna_tensor *grads, const dyna_saved *saved,
                              void *workspace, const dyna_segments *segments,
                              const dyna_tensor *in, const dyna_tensor *out) {
    BlockTiers tiers(*saved, segments->tq);
    C *dh = static_cast<C *>(workspace);
    C *du = dh + roundRows(segments->tq) * H;
    inputGradient(context, params, tiers, segments, compute(in[0]), dh, du,
                  compute(out[0]));
    weightGradient(context, grads, tiers, segments->tq, compute(in[0]), dh);
    return fault(context, DYNA_ROLE_BACKWARD, workspace, out,
                 sizeof(C) * W * roundRows(segments->tq), params);
  }

  static dyna_status
  backwardInput(dyna_context *context, const dyna_tensor *params,
                const dyna_tensor *, const dyna_saved *saved, void *workspace,
                const dyna_segments *segments, const dyna_tensor *in,
                const dyna_tensor *out) {
    BlockTiers tiers(*saved, segments->tq);
    inputGradient(context, params, tiers, segments, compute(in[0]), tiers.dh,
                  static_cast<C *>(workspace), compute(out[0]));
    std::memcpy(tiers.dy, in[0].data, sizeof(C) * segments->tq * W);
    return DYNA_OK;
  }

  static dyna_status backwardWeight(dyna_context *context, const dyna_tensor *,
                                    const dyna_tensor *grads,
                                    const dyna_saved *saved, void *,
                                    const dyna_segments *segments,
                                    const dyna_tensor *, const dyna_tensor *) {
    BlockTiers tiers(*saved, segments->tq);
    weightGradient(context, grads, tiers, segments->tq, tiers.dy, tiers.dh);
    return DYNA_OK;
  }

  //===--- Head -----------------------------------------------------------===//

  /// The loss of one row; `p` becomes the gradient of the logits.
  static double rowLoss(const C *table, const C *x, int32_t target, double *p) {
    double largest = -1e300, sum = 0;
    for (int64_t v = 0; v < V; ++v) {
      p[v] = 0;
      for (int64_t w = 0; w < W; ++w)
        p[v] += table[v * W + w] * x[w];
      largest = std::max(largest, p[v]);
    }
    double logit = p[target];
    for (int64_t v = 0; v < V; ++v)
      sum += p[v] = std::exp(p[v] - largest);
    for (int64_t v = 0; v < V; ++v)
      p[v] /= sum;
    p[target] -= 1;
    return std::log(sum) + largest - logit;
  }

  static dyna_status head(dyna_context *context, const dyna_tensor *params,
                          const dyna_tensor *grads, const dyna_saved *saved,
                          void *workspace, const dyna_segments *segments,
                          const dyna_tensor *in, const dyna_tensor *out) {
    const int32_t *targets = static_cast<const int32_t *>(in[1].data);
    const C *x = compute(in[0]), *table = compute(params[0]);
    C *dx = static_cast<C *>(saved->products);
    double *p = static_cast<double *>(workspace);
    double loss = 0;
    for (int64_t t = 0; t < segments->tq; ++t) {
      for (int64_t w = 0; dx && w < W; ++w)
        dx[t * W + w] = 0.0;
      if (targets[t] < 0)
        continue;
      C row[W];
      for (int64_t w = 0; w < W; ++w)
        row[w] = x[t * W + w] + (hasBias() ? compute(params[1])[w] : 0.0);
      loss += rowLoss(table, row, targets[t], p);
      context->matrix_flops += (dx ? 3 : 1) * 2 * V * W;
      for (int64_t w = 0; dx && w < W; ++w) {
        double sum = 0;
        for (int64_t v = 0; v < V; ++v) {
          double g = p[v] * context->inverse_targets;
          sum += g * table[v * W + w];
          gradient(grads[0])[v * W + w] += g * row[w];
        }
        dx[t * W + w] = sum;
      }
    }
    *static_cast<double *>(out[0].data) = loss;
    return DYNA_OK;
  }

  static dyna_status
  evaluateHead(dyna_context *context, const dyna_tensor *params,
               const dyna_tensor *grads, const dyna_saved *, void *workspace,
               const dyna_segments *segments, const dyna_tensor *in,
               const dyna_tensor *out) {
    dyna_saved none = {};
    return head(context, params, grads, &none, workspace, segments, in, out);
  }

  static dyna_status headBackward(dyna_context *, const dyna_tensor *,
                                  const dyna_tensor *grads,
                                  const dyna_saved *saved, void *,
                                  const dyna_segments *segments,
                                  const dyna_tensor *, const dyna_tensor *out) {
    const C *dx = static_cast<const C *>(saved->products);
    std::memcpy(out[0].data, dx, sizeof(C) * segments->tq * W);
    for (int64_t i = 0; hasBias() && i < segments->tq * W; ++i)
      gradient(grads[1])[i % W] += dx[i];
    return DYNA_OK;
  }

  //===--- Parameters -----------------------------------------------------===//

  /// Of `count` parameters with rows of these sizes (-1: H); how many rows is
  /// said at run time.
  template <int count, int n0, int n1 = 0, int n2 = 0> struct Parameters {
    static int64_t size(const dyna_tensor *tensors, int p) {
      int64_t row = p == 0 ? n0 : p == 1 ? n1 : n2;
      return tensors[p].rows * (row < 0 ? H : row);
    }

    static dyna_status update(dyna_context *context, const dyna_tensor *params,
                              const dyna_tensor *grads, const dyna_saved *,
                              void *, const dyna_segments *,
                              const dyna_tensor *in, const dyna_tensor *) {
      const dyna_optimizer &o = context->optimizer;
      if (tinyUpdateHook)
        tinyUpdateHook(context->step);
      for (int p = 0; p < count; ++p) {
        if (!grads[p].data)
          continue;
        M *w = master(in[3 * p]), *m = master(in[3 * p + 1]),
          *v = master(in[3 * p + 2]);
        G *grad = gradient(grads[p]);
        for (int64_t i = 0; i < size(grads, p); ++i) {
          double g = grad[i] * o.gradient_scale;
          m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
          v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
          double step = (m[i] / o.correction1) /
                        (std::sqrt(v[i] / o.correction2) + o.epsilon);
          w[i] -= o.learning_rate * (step + o.weight_decay * w[i]);
          grad[i] = 0;
          compute(params[p])[i] = w[i];
        }
      }
      return DYNA_OK;
    }

    static dyna_status norm(dyna_context *, const dyna_tensor *,
                            const dyna_tensor *grads, const dyna_saved *,
                            void *, const dyna_segments *, const dyna_tensor *,
                            const dyna_tensor *out) {
      for (int p = 0; p < count; ++p)
        for (int64_t i = 0; grads[p].data && i < size(grads, p); ++i)
          *static_cast<double *>(out[0].data) +=
              static_cast<double>(gradient(grads[p])[i]) *
              gradient(grads[p])[i];
      return DYNA_OK;
    }

    static dyna_status cast(dyna_context *, const dyna_tensor *params,
                            const dyna_tensor *, const dyna_saved *, void *,
                            const dyna_segments *, const dyna_tensor *in,
                            const dyna_tensor *) {
      for (int p = 0; p < count; ++p)
        for (int64_t i = 0; params[p].data && i < size(params, p); ++i)
          compute(params[p])[i] = master(in[p])[i];
      return DYNA_OK;
    }
  };

  using Table = Parameters<1, W>;
  using Head = Parameters<2, W, 1>;
  using Block = Parameters<3, W, 1, -1>;

  static void fill(dyna_layer_function *f) {
    bool bias = hasBias();
    f[DYNA_ROLE_EVALUATE] = f[DYNA_ROLE_FORWARD] = embed;
    f[DYNA_ROLE_BACKWARD] = embedBackward;
    f[DYNA_ROLE_UPDATE] = Table::update;
    f[DYNA_ROLE_GRAD_NORM] = Table::norm;
    f[DYNA_ROLE_CAST] = Table::cast;
    f += DYNA_ROLE_COUNT;
    f[DYNA_ROLE_EVALUATE] = evaluateBlock;
    f[DYNA_ROLE_FORWARD] = block;
    f[DYNA_ROLE_RECOMPUTE_SELECTIVE] = recomputeSelective;
    f[DYNA_ROLE_RECOMPUTE_FULL] = recomputeFull;
    f[DYNA_ROLE_BACKWARD] = backward;
    f[DYNA_ROLE_BACKWARD_INPUT] = backwardInput;
    f[DYNA_ROLE_BACKWARD_WEIGHT] = backwardWeight;
    f[DYNA_ROLE_UPDATE] = Block::update;
    f[DYNA_ROLE_GRAD_NORM] = Block::norm;
    f[DYNA_ROLE_CAST] = Block::cast;
    f += DYNA_ROLE_COUNT;
    f[DYNA_ROLE_EVALUATE] = evaluateHead;
    f[DYNA_ROLE_FORWARD] = head;
    f[DYNA_ROLE_BACKWARD] = headBackward;
    f[DYNA_ROLE_UPDATE] = bias ? Head::update : Table::update;
    f[DYNA_ROLE_GRAD_NORM] = bias ? Head::norm : Table::norm;
    f[DYNA_ROLE_CAST] = bias ? Head::cast : Table::cast;
  }
};

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

void addSpec(plan::TensorSpec *spec, plan::ElementType type,
             plan::TensorSpec::Rows rows,
             std::initializer_list<int64_t> shape) {
  spec->set_type(type);
  spec->set_rows(rows);
  for (int64_t size : shape)
    spec->add_shape(size);
}

void addRoles(plan::LayerKind *kind, std::initializer_list<int> roles) {
  for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
    kind->add_roles();
  for (int role : roles)
    kind->mutable_roles(role)->set_present(true);
}

void addTable(plan::LayerKind *kind, plan::ElementType type) {
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {V, W});
  addRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD, DYNA_ROLE_BACKWARD,
                  DYNA_ROLE_UPDATE, DYNA_ROLE_GRAD_NORM, DYNA_ROLE_CAST});
}

void addBlock(plan::LayerKind *kind, const TinyOptions &options) {
  plan::ElementType type = options.compute;
  int64_t e = elementBytes(type);
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {H, W});
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {H});
  addSpec(kind->add_parameters(), type, plan::TensorSpec::FIXED, {W, H});
  addSpec(kind->add_inputs(), type, plan::TensorSpec::TQ, {W});
  addSpec(kind->add_outputs(), type, plan::TensorSpec::TQ, {W});
  kind->mutable_input_tier()->set_tq(e * W);
  kind->mutable_products_tier()->set_tq(e * H);
  kind->mutable_elementwise_tier()->set_tq(e * (W + H));
  kind->mutable_deferred_tier()->set_tq(e * (W + H));
  addRoles(kind, {DYNA_ROLE_EVALUATE, DYNA_ROLE_FORWARD,
                  DYNA_ROLE_RECOMPUTE_SELECTIVE, DYNA_ROLE_RECOMPUTE_FULL,
                  DYNA_ROLE_UPDATE, DYNA_ROLE_GRAD_NORM, DYNA_ROLE_CAST});
  kind->mutable_roles(DYNA_ROLE_BACKWARD)->set_present(options.wholeBackward);
  for (int role : {DYNA_ROLE_BACKWARD_INPUT, DYNA_ROLE_BACKWARD_WEIGHT})
    kind->mutable_roles(role)->set_present(options.splitBackward);
  for (int role : {DYNA_ROLE_EVALUATE, DYNA_ROLE_BACKWARD})
    kind->mutable_roles(role)->mutable_workspace()->set_tq(e * (W + H));
  kind->mutable_roles(DYNA_ROLE_BACKWARD_INPUT)
      ->mutable_workspace()
      ->set_tq(e * W);
  kind->set_flops_per_token(4 * W * H);
  for (auto [role, products] :
       {std::pair(DYNA_ROLE_EVALUATE, 2), std::pair(DYNA_ROLE_FORWARD, 2),
        std::pair(DYNA_ROLE_RECOMPUTE_FULL, 1),
        std::pair(DYNA_ROLE_BACKWARD, 4),
        std::pair(DYNA_ROLE_BACKWARD_INPUT, 2),
        std::pair(DYNA_ROLE_BACKWARD_WEIGHT, 2)})
    kind->mutable_roles(role)->set_flops_per_token(products * 2 * W * H);
}

void addParameter(plan::Manifest &manifest, const std::string &name,
                  std::initializer_list<int64_t> shape, double std) {
  plan::Parameter *parameter = manifest.add_parameters();
  parameter->set_name(name);
  for (int64_t size : shape)
    parameter->add_shape(size);
  parameter->set_normal_std(std);
  parameter->set_decay(true);
}

void addLayer(plan::Manifest &manifest, const std::string &name, int kind,
              std::initializer_list<int> parameters) {
  plan::Layer *layer = manifest.add_layers();
  layer->set_name(name);
  layer->set_kind(kind);
  for (int p : parameters)
    layer->add_parameters(p);
}

} // namespace

plan::Manifest tinyManifest(const TinyOptions &options) {
  plan::Manifest manifest;
  plan::ElementType type = options.compute;
  V = options.vocabulary;
  H = options.hidden;
  headHasBias = options.headBias;
  manifest.set_format(1);
  manifest.set_model("tiny");
  manifest.set_compute_type(type);
  manifest.set_gradient_type(options.gradients);
  manifest.mutable_facts()->set_family("custom");
  manifest.mutable_facts()->set_vocabulary(V);
  manifest.mutable_facts()->set_positions(64);
  plan::LayerKind *embedding = manifest.add_kinds();
  embedding->set_name("embedding");
  addTable(embedding, type);
  addSpec(embedding->add_inputs(), plan::I32, plan::TensorSpec::TQ, {});
  addSpec(embedding->add_outputs(), type, plan::TensorSpec::TQ, {W});
  embedding->mutable_input_tier()->set_tq(4);
  plan::LayerKind *block = manifest.add_kinds();
  block->set_name("block");
  addBlock(block, options);
  plan::LayerKind *head = manifest.add_kinds();
  head->set_name("head");
  addTable(head, type);
  if (options.headBias)
    addSpec(head->add_parameters(), type, plan::TensorSpec::FIXED, {W});
  addSpec(head->add_inputs(), type, plan::TensorSpec::TQ, {W});
  addSpec(head->add_inputs(), plan::I32, plan::TensorSpec::TQ, {});
  addSpec(head->add_outputs(), plan::F64, plan::TensorSpec::FIXED, {1});
  head->mutable_input_tier()->set_tq(elementBytes(type) * W);
  head->mutable_products_tier()->set_tq(elementBytes(type) * W);
  for (int role : {DYNA_ROLE_FORWARD, DYNA_ROLE_EVALUATE})
    head->mutable_roles(role)->mutable_workspace()->set_constant(8 * V);
  head->set_flops_per_target(2 * V * W);
  head->mutable_roles(DYNA_ROLE_EVALUATE)->set_flops_per_target(2 * V * W);
  head->mutable_roles(DYNA_ROLE_FORWARD)->set_flops_per_target(6 * V * W);

  addParameter(manifest, "wte", {V, W}, 0.5);
  addLayer(manifest, "embedding", 0, {0});
  for (int b = 0; b < options.blocks; ++b) {
    std::string name = "h." + std::to_string(b);
    int p = manifest.parameters_size();
    addParameter(manifest, name + ".w1", {H, W}, 0.4);
    addParameter(manifest, name + ".b1", {H}, 0.1);
    bool ties = options.nestedTie && b > 0 && b + 1 == options.blocks;
    if (!ties)
      addParameter(manifest, name + ".w2", {W, H}, 0.4);
    constexpr int firstW2 = 3;
    addLayer(manifest, name, 1, {p, p + 1, ties ? firstW2 : p + 2});
  }
  addLayer(manifest, "head", 2, {0});
  if (options.headBias) {
    manifest.mutable_layers()->rbegin()->add_parameters(
        manifest.parameters_size());
    addParameter(manifest, "head.b", {W}, 0.1);
  }
  manifest.set_hash(manifestHash(manifest));
  manifest.set_producer("by hand");
  manifest.set_matmul("generated");
  return manifest;
}

TinyProgram::TinyProgram(const TinyOptions &options)
    : manifest(tinyManifest(options)), bytes_(manifest.SerializeAsString()),
      functions_(new dyna_layer_function[3 * DYNA_ROLE_COUNT]()) {
  if (options.gradients == plan::BF16)
    Tiny<Bf16, float, Bf16>::fill(functions_.get());
  else if (options.compute == plan::BF16)
    Tiny<Bf16, float>::fill(functions_.get());
  else
    Tiny<double, double>::fill(functions_.get());
  variants_[0] = {"future", UINT64_C(1) << 60, functions_.get()};
  variants_[1] = {"plain", 0, functions_.get()};
  program_ = {DYNA_ABI_VERSION, 2, variants_,
              reinterpret_cast<const uint8_t *>(bytes_.data()),
              static_cast<int64_t>(bytes_.size())};
}

} // namespace dyna
