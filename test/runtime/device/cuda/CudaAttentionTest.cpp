//===- CudaAttentionTest.cpp - What attention on CUDA promises beside -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Results have the same bits in whatever order threads, blocks and streams run;
// what kernels do not take is refused.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "test/Patience.h"
#include "test/runtime/device/KernelConformance.h"

#include <utility>

using namespace dyna;

namespace {

using Bytes = std::vector<uint8_t>;

/// out, lse, dq, dk and dv of one call on the given device, one after the other.
class Call {
public:
  explicit Call(const Backend &backend) : device(std::move(*backend.make())) {
    stream = std::move(*device->createStream());
    device->bind(context, *stream);
    context.message = message;
    context.message_capacity = sizeof(message);
  }

  /// `stored`: rows of a store, for two slices with a whole sample between them; 0:
  /// whole samples.
  template <typename T> Bytes run(int64_t headDim, int64_t stored) {
    using F = Functions<T>;
    const std::vector<dyna_segment> whole = {
        {0, 0, 70, 0, 70, 0}, {0, 70, 60, 0, 130, 70}, {1, 130, 5, 140, 9, 4}};
    const std::vector<dyna_segment> sliced = {{0, 0, 70, 135, 90, 20},
                                              {1, 70, 60, 70, 60, 0},
                                              {2, 130, 5, 135 + 100, 9, 4}};
    constexpr int64_t tq = 135, heads = 4, kvHeads = 2;
    const int64_t tkv = stored > 0 ? tq : 150;
    dyna_segments segments = {};
    segments.data =
        static_cast<const dyna_segment *>(put(stored > 0 ? sliced : whole));
    segments.count = 3, segments.tq = tq, segments.tkv = tkv;
    segments.stored = stored;
    std::mt19937 random(21);
    auto operand = [&](int64_t tokens, int64_t columns) {
      return put(naive::randomElements<T>(tokens * columns * headDim, random));
    };
    dyna_attention_grad grad = {};
    dyna_attention &p = grad.forward;
    p.segments = &segments;
    p.heads = heads, p.kv_heads = kvHeads, p.head_dim = headDim;
    p.scale = 0.3, p.causal = 1;
    p.q = operand(tq, heads), p.q_stride = heads * headDim;
    p.k = operand(tkv, kvHeads), p.k_stride = kvHeads * headDim;
    p.v = operand(tkv, kvHeads), p.v_stride = kvHeads * headDim;
    p.out_stride = heads * headDim;
    grad.dout = operand(tq, heads);
    grad.dq_stride = p.q_stride;
    grad.dk_stride = grad.dv_stride = p.k_stride;
    const int64_t queries = tq * p.q_stride * int64_t(sizeof(T));
    const int64_t keys = tkv * p.k_stride * int64_t(sizeof(T));
    const size_t first = buffers.size();
    p.out = take(queries);
    p.lse = take(tq * heads * int64_t(sizeof(typename F::Sum)));
    grad.dq = take(queries), grad.dk = take(keys), grad.dv = take(keys);
    if (stored > 0) {
      // Rows of other slices: their keys, and what was added to their sums.
      using Sum = typename F::Sum;
      const int64_t width = kvHeads * headDim;
      const int64_t padded = kvHeads * dyna_padded_head_dim(headDim);
      p.store = {operand(stored, 2 * kvHeads),
                 2 * width,
                 0,
                 width,
                 nullptr,
                 2 * padded,
                 0,
                 padded};
      p.store.gradients =
          put(naive::randomElements<Sum>(stored * 2 * padded, random));
    }
    const size_t end = buffers.size();
    grad.workspace = put(makeWorkspace(
        dyna_attention_grad_workspace(sizeof(T), heads, kvHeads, headDim), tq,
        tkv, 3));
    EXPECT_EQ(F::attention(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(F::attentionGrad(&context, &grad), DYNA_OK) << message;
    Bytes all;
    for (size_t i = first; i < end; ++i) {
      Bytes bytes(static_cast<size_t>(buffers[i]->bytes()));
      EXPECT_TRUE(device
                      ->copyToHost(*stream, bytes.data(), *buffers[i], 0,
                                   buffers[i]->bytes())
                      .isOk());
      EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  dyna_context context = {};
  char message[512] = "";

private:
  static Device::Deadline soon() { return patienceEnds(); }
  void *take(int64_t bytes) {
    buffers.push_back(std::move(*device->allocate(bytes)));
    return buffers.back()->data();
  }
  template <typename T> void *put(const std::vector<T> &data) {
    void *to = take(static_cast<int64_t>(data.size() * sizeof(T)));
    EXPECT_TRUE(device
                    ->copyToDevice(*stream, *buffers.back(), 0, data.data(),
                                   buffers.back()->bytes())
                    .isOk());
    EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());
    return to;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

template <typename T> void checkBits(int64_t headDim, int64_t stored = 0) {
  SCOPED_TRACE(headDim);
  Bytes expected;
  for (const Backend &backend : conformanceBackends()) {
    Call call(backend);
    for (int time = 0; time < 2; ++time) {
      Bytes now = call.run<T>(headDim, stored);
      if (expected.empty())
        expected = now;
      EXPECT_TRUE(now == expected) << backend.name << ", time " << time;
    }
  }
}

} // namespace

TEST(CudaAttention, NoOrderChangesABit) {
  checkBits<float>(40);
  checkBits<double>(24);
  checkBits<Bf16>(64);
  checkBits<Bf16>(100);
  checkBits<Bf16>(160);
}

TEST(CudaAttention, NoOrderChangesABitOfSlices) {
  constexpr int64_t stored = 140;
  checkBits<float>(40, stored);
  checkBits<double>(24, stored);
  checkBits<Bf16>(64, stored);
  checkBits<Bf16>(100, stored);
  checkBits<Bf16>(160, stored);
}

TEST(CudaAttention, WhatKernelsDoNotTakeIsRefused) {
  Call call(conformanceBackends().front());
  dyna_segments segments = {};
  dyna_attention p = {};
  p.segments = &segments;
  p.heads = p.kv_heads = 1;
  p.head_dim = p.q_stride = p.k_stride = p.v_stride = p.out_stride = 257;
  EXPECT_EQ(dyna_attention_bf16(&call.context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(call.message, "attention_bf16: heads of 257 elements, kernels "
                             "of CUDA devices take 256 at most");
  p.head_dim = 256;
  // Nor do the ends of their tiles overflow.
  p.q = p.k = p.v = p.out = &p;
  segments.tq = INT32_MAX - 126;
  EXPECT_EQ(dyna_attention_f64(&call.context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(call.message,
               "attention_f64: 2147483521 queries and 0 keys, kernels of CUDA "
               "devices take 2147483520 at most");
  segments.tkv = std::exchange(segments.tq, 1) + 1;
  EXPECT_EQ(dyna_attention_bf16(&call.context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(call.message,
               "attention_bf16: 1 queries and 2147483522 keys, kernels of CUDA "
               "devices take 2147483520 at most");
  // Rows of a store are keys, too.
  segments.tq = segments.tkv = 8;
  segments.stored = INT32_MAX - 134;
  p.store.data = &p;
  EXPECT_EQ(dyna_attention_f32(&call.context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(call.message,
               "attention_f32: 8 keys and 2147483513 rows of a store, kernels "
               "of CUDA devices take 2147483520 at most, both together");
  segments.stored = 1, segments.tq = 7;
  EXPECT_EQ(dyna_attention_bf16(&call.context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(call.message,
               "attention_bf16: slices bring their own keys to the store, so "
               "a micro-batch has as many keys (8) as queries (7)");
}
