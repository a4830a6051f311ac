//===- TinyParameters.h - What the tiny model does to parameters -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Update, norm and cast of all kinds of layers (TinyModel.cpp), and the types
// of their tensors.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYPARAMETERS_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYPARAMETERS_H

#include "runtime/abi/Collectives.h"
#include "test/runtime/executor/TinyModel.h"

#include <cmath>
#include <cstring>

namespace dyna {

/// What this rank has of `count` rows dealt to the tensor-parallel ranks.
struct TinyPart {
  int64_t begin, size;
  TinyPart(const dyna_context *context, int64_t count) {
    const dyna_group &group = context->groups[DYNA_GROUP_TP];
    begin = dyna_part_begin(count, group.size, group.index);
    size = dyna_part_size(count, group.size, group.index);
  }
};

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

/// Tensors in compute type C, masters of type M and gradients of type G.
template <typename C, typename M, typename G> struct TinyTypes {
  static C *compute(const dyna_tensor &t) { return static_cast<C *>(t.data); }
  static M *master(const dyna_tensor &t) { return static_cast<M *>(t.data); }
  static G *gradient(const dyna_tensor &t) { return static_cast<G *>(t.data); }
};

/// Of `count` parameters with rows of these sizes (-1: this rank's part of
/// the hidden features); how many rows is said at run time.
template <typename C, typename M, typename G, int count, int n0, int n1 = 0,
          int n2 = 0>
struct TinyParameters : TinyTypes<C, M, G> {
  using TinyTypes<C, M, G>::compute;
  using TinyTypes<C, M, G>::master;
  using TinyTypes<C, M, G>::gradient;

  static int64_t size(const dyna_context *context, const dyna_tensor *tensors,
                      int p) {
    int64_t row = p == 0 ? n0 : p == 1 ? n1 : n2;
    return tensors[p].rows *
           (row < 0 ? TinyPart(context, tinySizes.hidden).size : row);
  }

  static dyna_status update(dyna_context *context, const dyna_tensor *params,
                            const dyna_tensor *grads, const dyna_saved *,
                            void *, const dyna_segments *,
                            const dyna_tensor *in, const dyna_tensor *) {
    const dyna_optimizer &o = context->optimizer;
    if (tinyUpdateHook)
      tinyUpdateHook(context->step);
    const double scale = *o.gradient_scale;
    for (int p = 0; p < count; ++p) {
      if (!grads[p].data)
        continue;
      M *w = master(in[3 * p]), *m = master(in[3 * p + 1]),
        *v = master(in[3 * p + 2]);
      G *grad = gradient(grads[p]);
      for (int64_t i = 0; i < size(context, grads, p); ++i) {
        if (std::isnan(scale)) {
          grad[i] = 0;
          continue;
        }
        double g = grad[i] * scale;
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

  static dyna_status norm(dyna_context *context, const dyna_tensor *,
                          const dyna_tensor *grads, const dyna_saved *, void *,
                          const dyna_segments *, const dyna_tensor *,
                          const dyna_tensor *out) {
    for (int p = 0; p < count; ++p)
      for (int64_t i = 0; grads[p].data && i < size(context, grads, p); ++i)
        *static_cast<double *>(out[0].data) +=
            static_cast<double>(gradient(grads[p])[i]) * gradient(grads[p])[i];
    return DYNA_OK;
  }

  static dyna_status cast(dyna_context *context, const dyna_tensor *params,
                          const dyna_tensor *, const dyna_saved *, void *,
                          const dyna_segments *, const dyna_tensor *in,
                          const dyna_tensor *) {
    for (int p = 0; p < count; ++p)
      for (int64_t i = 0; params[p].data && i < size(context, params, p); ++i)
        compute(params[p])[i] = master(in[p])[i];
    return DYNA_OK;
  }
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYPARAMETERS_H
