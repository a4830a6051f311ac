//===- AttentionConformance.cpp - Attention over segments ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

#include <cmath>
#include <limits>

using namespace dyna;

namespace {

struct AttentionCase {
  std::string name;
  naive::Attention p;
};

/// Segments one after the other, queries and keys of equal length.
naive::Attention ragged(std::vector<int64_t> lengths, int64_t heads,
                        int64_t kvHeads, int64_t headDim, bool causal,
                        int64_t pad = 0) {
  naive::Attention p = {};
  for (size_t i = 0; i < lengths.size(); ++i) {
    int64_t n = lengths[i];
    p.segments.push_back({static_cast<int64_t>(i), p.tq, n, p.tkv, n, 0});
    p.tq += n, p.tkv += n;
  }
  p.heads = heads, p.kvHeads = kvHeads, p.headDim = headDim;
  p.scale = 1.3 / std::sqrt(static_cast<double>(headDim));
  p.causal = causal;
  p.qStride = heads * headDim + 2 * pad, p.outStride = heads * headDim + pad;
  p.kStride = kvHeads * headDim + pad, p.vStride = kvHeads * headDim + 3 * pad;
  return p;
}

/// The given query and key ranges.
naive::Attention sliced(std::vector<dyna_segment> segments, int64_t tkv,
                        int64_t heads, int64_t kvHeads, int64_t headDim,
                        bool causal, int64_t pad = 5) {
  naive::Attention p = ragged({}, heads, kvHeads, headDim, causal, pad);
  p.segments = std::move(segments);
  for (const dyna_segment &s : p.segments)
    p.tq += s.q_len;
  p.tkv = tkv;
  return p;
}

/// Many short segments, some empty: several share every tile.
naive::Attention packed(int64_t heads, int64_t kvHeads, int64_t headDim,
                        bool causal) {
  std::mt19937 random(5);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 50; ++i)
    lengths.push_back(static_cast<int64_t>(random() % 10));
  return ragged(lengths, heads, kvHeads, headDim, causal, 8);
}

std::vector<AttentionCase> attentionCases() {
  return {
      {"ragged", ragged({33, 0, 1, 257, 64, 5, 2}, 2, 2, 16, true)},
      {"full", ragged({65, 1, 130}, 2, 2, 32, false, 7)},
      {"grouped", ragged({40, 100}, 6, 2, 40, true, 1)},
      {"groupedFull", ragged({37, 63}, 4, 1, 24, false)},
      {"headDim1", ragged({19, 70}, 2, 1, 1, true)},
      {"headDim256", ragged({70}, 1, 1, 256, true)},
      {"wideHeads", ragged({150, 90}, 2, 1, 192, true)},
      {"oneMoreRow", ragged({129}, 1, 1, 16, true)},
      {"lastKeyOfBlock", ragged({127, 70}, 1, 1, 16, true)},
      {"middleHeads", ragged({270, 40}, 4, 2, 96, true, 8)},
      {"headDim80", ragged({90, 33}, 2, 2, 80, true, 16)},
      {"clashing", ragged({70}, 16, 16, 64, true)},
      {"superBlocks", ragged({600, 300}, 2, 1, 16, true)},
      {"superBlocksFull", ragged({530}, 1, 1, 32, false)},
      {"slices", sliced({{0, 0, 10, 3, 100, 90}, {1, 10, 70, 110, 300, 230}},
                        420, 3, 3, 64, true)},
      {"longSlice", sliced({{0, 0, 300, 0, 700, 400}}, 700, 1, 1, 48, true)},
      {"crossFull", sliced({{0, 0, 20, 0, 600, 0}, {1, 20, 300, 600, 9, 0}},
                           620, 2, 2, 20, false)},
      // Queries that see all keys of a warp but the last, or the first.
      {"allButTheLast", sliced({{0, 0, 64, 0, 31, 0}, {1, 64, 40, 31, 40, 0}},
                               71, 2, 1, 16, false)},
      {"allButTheFirst", sliced({{0, 0, 64, 1, 40, 0}}, 41, 2, 1, 100, false)},
      {"allButTheLastWide",
       sliced({{0, 0, 32, 0, 15, 0}, {1, 32, 20, 15, 20, 0}}, 35, 1, 1, 160,
              false)},
      {"allButTheFirstWide",
       sliced({{0, 0, 32, 1, 20, 0}}, 21, 1, 1, 160, false)},
      {"sharedTile", sliced({{0, 0, 70, 0, 70, 0}, {0, 70, 60, 0, 130, 70}},
                            130, 2, 1, 24, true)},
      {"sharedKeys", sliced({{0, 0, 60, 0, 60, 0}, {0, 60, 290, 0, 350, 60}},
                            360, 2, 1, 16, true)},
      {"blind", sliced({{0, 0, 80, 0, 30, 0}, {1, 80, 4, 30, 0, 0}}, 30, 2, 2,
                       16, true)},
      {"packed", packed(4, 2, 8, true)},
      {"packedFull", packed(1, 1, 128, false)},
      {"headDim129", ragged({50, 20}, 2, 1, 129, true)},
      // Keys in another order, apart from each other, those of nobody between.
      {"keysApart", sliced({{0, 0, 20, 150, 30, 10},
                            {1, 20, 25, 70, 40, 15},
                            {2, 45, 9, 0, 9, 0},
                            {3, 54, 20, 9, 20, 0}},
                           200, 2, 1, 32, true)},
      {"blindTiles", sliced({{0, 0, 140, 0, 5, 0}}, 90, 1, 1, 72, true, 0)},
      {"keysOnly", sliced({{0, 0, 0, 0, 20, 0}}, 40, 1, 1, 16, false)},
      {"empty", sliced({}, 0, 2, 2, 16, true)},
  };
}

class AttentionRun {
public:
  AttentionRun(const naive::Attention &problem) : p(problem) {
    segments.data = p.segments.data();
    segments.count = static_cast<int64_t>(p.segments.size());
    segments.tq = p.tq, segments.tkv = p.tkv;
    segments.keys_are_queries = p.tq == p.tkv;
    for (const dyna_segment &segment : p.segments) {
      segments.keys_are_queries &= segment.kv_begin == segment.q_begin &&
                                   segment.kv_len == segment.q_len;
      segments.longest_query = std::max(segments.longest_query, segment.q_len);
      segments.longest_key = std::max(segments.longest_key, segment.kv_len);
      segments.pairs += dyna_visible_pairs(&segment, 0);
      segments.causal_pairs += dyna_visible_pairs(&segment, 1);
    }
    description.segments = &segments;
    description.heads = p.heads, description.kv_heads = p.kvHeads;
    description.head_dim = p.headDim;
    description.scale = p.scale, description.causal = p.causal;
    description.q_stride = p.qStride, description.k_stride = p.kStride;
    description.v_stride = p.vStride, description.out_stride = p.outStride;
  }
  naive::Attention p;
  dyna_segments segments = {};
  dyna_attention description = {};
};

/// Queries and the keys that they see, one by one.
int64_t visiblePairs(const naive::Attention &p) {
  int64_t pairs = 0;
  for (const dyna_segment &s : p.segments)
    for (int64_t i = 0; i < s.q_len; ++i)
      for (int64_t j = 0; j < s.kv_len; ++j)
        pairs += !p.causal || j <= s.kv_len - s.q_len + i;
  return pairs;
}

/// Columns past a row's own hold what they held: the f64 result gets it too.
void markPadding(Matrix &matrix, int64_t rows, int64_t stride, int64_t used,
                 double value) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = used; i < stride; ++i)
      matrix[row * stride + i] = value;
}

} // namespace

class AttentionConformance : public DeviceFixture {
protected:
  /// Segments are the device's, as everything that kernels read.
  std::unique_ptr<Buffer> put(AttentionRun &run) {
    std::unique_ptr<Buffer> data = upload(run.p.segments);
    run.segments.data = static_cast<const dyna_segment *>(data->data());
    return data;
  }

  template <typename T> void check(const AttentionCase &test) {
    using F = Functions<T>;
    using Sum = typename F::Sum;
    SCOPED_TRACE(test.name);
    AttentionRun run(test.p);
    const naive::Attention &p = run.p;
    std::unique_ptr<Buffer> segmentData = put(run);
    std::mt19937 random(11);
    auto q = naive::randomElements<T>(p.tq * p.qStride, random);
    auto k = naive::randomElements<T>(p.tkv * p.kStride, random);
    auto v = naive::randomElements<T>(p.tkv * p.vStride, random);
    auto dout = naive::randomElements<T>(p.tq * p.outStride, random);
    const double mark = 77; // exact in every type
    std::unique_ptr<Buffer> qData = upload(q), kData = upload(k),
                            vData = upload(v);
    std::unique_ptr<Buffer> outData =
        upload(filled<T>(p.tq * p.outStride, mark));
    std::unique_ptr<Buffer> lseData = upload(filled<Sum>(p.tq * p.heads, mark));
    dyna_attention &description = run.description;
    description.q = qData->data(), description.k = kData->data();
    description.v = vData->data(), description.out = outData->data();
    description.lse = lseData->data();
    context.matrix_flops = 0;
    ASSERT_EQ(F::attention(&context, &description), DYNA_OK) << message;
    int64_t perProduct = 2 * p.heads * p.headDim * visiblePairs(p);
    EXPECT_EQ(context.matrix_flops, 2 * perProduct);

    int64_t qWidth = p.heads * p.headDim, kvWidth = p.kvHeads * p.headDim;
    Matrix wideQ = naive::toDoubles(q), wideK = naive::toDoubles(k),
           wideV = naive::toDoubles(v), wideDout = naive::toDoubles(dout);
    Matrix out(static_cast<size_t>(p.tq * p.outStride)),
        lse(static_cast<size_t>(p.tq * p.heads));
    naive::attention(p, wideQ, wideK, wideV, out, lse);
    markPadding(out, p.tq, p.outStride, qWidth, mark);
    // The mark is the largest element where there is padding.
    double bound = tolerance<T>() / (p.outStride > qWidth ? 30 : 1);
    expectNear(download<T>(*outData), out, bound, "out");
    expectNear(download<Sum>(*lseData), lse, 2 * tolerance<Sum>(), "lse");

    std::unique_ptr<Buffer> doutData = upload(dout);
    // Strides of their own: gradients may lie side by side where q, k, v do
    // not.
    int64_t dqStride = p.qStride + 8, dkStride = p.kStride + 24,
            dvStride = p.vStride + 16;
    std::unique_ptr<Buffer> dq = upload(filled<T>(p.tq * dqStride, mark));
    std::unique_ptr<Buffer> dk = upload(filled<T>(p.tkv * dkStride, mark));
    std::unique_ptr<Buffer> dv = upload(filled<T>(p.tkv * dvStride, mark));
    std::unique_ptr<Buffer> workspace = upload(makeWorkspace(
        dyna_attention_grad_workspace(sizeof(T), p.heads, p.kvHeads, p.headDim),
        p.tq, p.tkv, run.segments.count));
    dyna_attention_grad grad = {
        description, doutData->data(), dq->data(), dqStride,         dk->data(),
        dkStride,    dv->data(),       dvStride,   workspace->data()};
    context.matrix_flops = 0;
    ASSERT_EQ(F::attentionGrad(&context, &grad), DYNA_OK) << message;
    EXPECT_EQ(context.matrix_flops, 5 * perProduct);
    expectCanary(download<uint8_t>(*workspace));

    Matrix wideDq(static_cast<size_t>(p.tq * p.qStride)),
        wideDk(static_cast<size_t>(p.tkv * p.kStride)),
        wideDv(static_cast<size_t>(p.tkv * p.vStride));
    naive::attentionGrad(p, wideQ, wideK, wideV, wideDout, wideDq, wideDk,
                         wideDv);
    expectRows<T>(*dq, dqStride, wideDq, p.qStride, p.tq, qWidth, mark, "dq");
    expectRows<T>(*dk, dkStride, wideDk, p.kStride, p.tkv, kvWidth, mark, "dk");
    expectRows<T>(*dv, dvStride, wideDv, p.vStride, p.tkv, kvWidth, mark, "dv");
  }

  /// out, dq, dk and dv, where operand `shifted` of q, k, v, out, dout, dq, dk, dv
  /// begins an element later, or 8 to 10: rows of dq, dk, dv are one longer.
  template <typename T> std::vector<Matrix> runShifted(int shifted) {
    constexpr int64_t tokens = 70, heads = 2, width = heads * 16;
    AttentionRun run(ragged({40, 30}, heads, heads, 16, true));
    std::unique_ptr<Buffer> segmentData = put(run);
    std::mt19937 random(3);
    std::vector<std::unique_ptr<Buffer>> buffers;
    auto strideOf = [&](int operand) {
      return width + (operand >= 5 && shifted == operand + 3 ? 1 : 0);
    };
    auto place = [&](int operand) {
      std::vector<T> data =
          naive::randomElements<T>(tokens * strideOf(operand), random);
      const bool isShifted = shifted == operand;
      data.insert(data.begin(), isShifted ? 1 : 0, T());
      buffers.push_back(upload(data));
      return static_cast<void *>(static_cast<T *>(buffers.back()->data()) +
                                 (isShifted ? 1 : 0));
    };
    dyna_attention &p = run.description;
    p.q = place(0), p.k = place(1), p.v = place(2), p.out = place(3);
    auto lse = upload(filled<typename Functions<T>::Sum>(tokens * heads, 0));
    p.lse = lse->data();
    dyna_attention_grad grad = {};
    grad.forward = p;
    grad.dout = place(4);
    grad.dq = place(5), grad.dk = place(6), grad.dv = place(7);
    grad.dq_stride = strideOf(5), grad.dk_stride = strideOf(6);
    grad.dv_stride = strideOf(7);
    auto workspace = upload(makeWorkspace(
        dyna_attention_grad_workspace(sizeof(T), heads, heads, 16), tokens,
        tokens, run.segments.count));
    grad.workspace = workspace->data();
    EXPECT_EQ(Functions<T>::attention(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(Functions<T>::attentionGrad(&context, &grad), DYNA_OK) << message;
    std::vector<Matrix> results;
    for (int operand : {3, 5, 6, 7}) {
      const Matrix all = naive::toDoubles(download<T>(*buffers[operand]));
      Matrix used;
      for (int64_t row = 0; row < tokens; ++row)
        for (int64_t column = 0; column < width; ++column)
          used.push_back(all[(shifted == operand ? 1 : 0) +
                             row * strideOf(operand) + column]);
      results.push_back(used);
    }
    return results;
  }

  /// The gradient's columns are near, those past them untouched.
  template <typename T>
  void expectRows(const Buffer &data, int64_t stride, const Matrix &expected,
                  int64_t expectedStride, int64_t rows, int64_t used,
                  double mark, const std::string &what) {
    std::vector<T> actual = download<T>(data), inner;
    Matrix innerExpected;
    for (int64_t i = 0; i < rows * stride; ++i)
      if (i % stride < used) {
        inner.push_back(actual[i]);
        innerExpected.push_back(
            expected[i / stride * expectedStride + i % stride]);
      } else {
        ASSERT_EQ(naive::toDouble(actual[i]), mark)
            << what << " padding at " << i;
      }
    expectNear(inner, innerExpected, 2 * tolerance<T>(), what);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, AttentionConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

TEST_P(AttentionConformance, F32) {
  for (const AttentionCase &test : attentionCases())
    check<float>(test);
}
TEST_P(AttentionConformance, F64) {
  for (const AttentionCase &test : attentionCases())
    check<double>(test);
}
TEST_P(AttentionConformance, Bf16) {
  for (const AttentionCase &test : attentionCases())
    check<Bf16>(test);
}

/// Nothing but elements has to be aligned: each operand begins one element later in
/// turn, or has rows one longer, and results are those of others.
TEST_P(AttentionConformance, OperandsBeginAnywhere) {
  std::vector<Matrix> wanted = runShifted<Bf16>(-1);
  for (int shifted = 0; shifted < 11; ++shifted) {
    SCOPED_TRACE(shifted);
    std::vector<Matrix> found = runShifted<Bf16>(shifted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(found[i].size(), wanted[i].size());
      for (size_t e = 0; e < wanted[i].size(); ++e)
        ASSERT_NEAR(found[i][e], wanted[i][e], tolerance<Bf16>() * 4)
            << "result " << i << ", element " << e;
    }
  }
}

TEST_P(AttentionConformance, LargeScoresStayFinite) {
  AttentionRun run(ragged({100}, 1, 1, 16, true));
  std::unique_ptr<Buffer> segmentData = put(run);
  std::mt19937 random(3);
  auto q = naive::randomElements<float>(1600, random);
  for (float &value : q)
    value *= 2000;
  auto k = naive::randomElements<float>(1600, random);
  std::unique_ptr<Buffer> qData = upload(q), kData = upload(k);
  std::unique_ptr<Buffer> out = upload(filled<float>(1600, 0));
  run.description.q = qData->data(), run.description.k = kData->data();
  run.description.v = kData->data(), run.description.out = out->data();
  ASSERT_EQ(dyna_attention_f32(&context, &run.description), DYNA_OK) << message;
  Matrix expected(1600), lse(100), wideK = naive::toDoubles(k);
  naive::attention(run.p, naive::toDoubles(q), wideK, wideK, expected, lse);
  // Scores of some thousands carry errors of 1e-4 into the exponent.
  expectNear(download<float>(*out), expected, 1e-3, "out");
}

TEST_P(AttentionConformance, NobodyHasToWantTheSums) {
  AttentionRun run(ragged({30, 70}, 2, 1, 24, true));
  std::unique_ptr<Buffer> segmentData = put(run);
  const naive::Attention &p = run.p;
  std::mt19937 random(9);
  std::unique_ptr<Buffer> q =
      upload(naive::randomElements<Bf16>(p.tq * p.qStride, random));
  std::unique_ptr<Buffer> k =
      upload(naive::randomElements<Bf16>(p.tkv * p.kStride, random));
  std::unique_ptr<Buffer> lse = upload(filled<float>(p.tq * p.heads, 0));
  run.description.q = q->data();
  run.description.k = run.description.v = k->data();
  std::vector<uint16_t> results[2];
  for (int i = 0; i < 2; ++i) {
    std::unique_ptr<Buffer> out = upload(filled<Bf16>(p.tq * p.outStride, 5));
    run.description.out = out->data();
    run.description.lse = i == 0 ? lse->data() : nullptr;
    ASSERT_EQ(dyna_attention_bf16(&context, &run.description), DYNA_OK)
        << message;
    results[i] = download<uint16_t>(*out);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(AttentionConformance, NotANumberIsNotHidden) {
  AttentionRun run(ragged({40}, 1, 1, 16, true));
  std::unique_ptr<Buffer> segmentData = put(run);
  std::vector<float> data(640, 0.5f);
  data[20 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();
  std::unique_ptr<Buffer> operand = upload(data), out = upload(data);
  run.description.q = run.description.k = run.description.v = operand->data();
  run.description.out = out->data();
  ASSERT_EQ(dyna_attention_f32(&context, &run.description), DYNA_OK) << message;
  std::vector<float> result = download<float>(*out);
  EXPECT_FALSE(std::isnan(result[19 * 16]));
  EXPECT_TRUE(std::isnan(result[20 * 16]));
  EXPECT_TRUE(std::isnan(result[39 * 16]));
}

TEST_P(AttentionConformance, RefusesBadArguments) {
  AttentionRun run(ragged({4}, 3, 2, 16, true));
  std::unique_ptr<Buffer> segmentData = put(run);
  std::unique_ptr<Buffer> data = allocate(4096);
  run.description.q = run.description.k = run.description.v = data->data();
  run.description.out = data->data();
  EXPECT_EQ(dyna_attention_f32(&context, &run.description),
            DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("multiple"), std::string::npos)
      << message;
  run.description.kv_heads = 1;
  run.description.k = nullptr;
  EXPECT_EQ(dyna_attention_bf16(&context, &run.description),
            DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("null"), std::string::npos) << message;
  run.description.k = data->data();
  if (GetParam().readsSegments) {
    run.p.segments[0].kv_len = 5;
    segmentData = put(run);
    EXPECT_EQ(dyna_attention_f64(&context, &run.description),
              DYNA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(message).find("segment 0"), std::string::npos)
        << message;
  }
  dyna_attention_grad grad = {};
  EXPECT_EQ(dyna_attention_grad_f32(&context, &grad), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(dyna_attention_grad_f32(&context, nullptr), DYNA_INVALID_ARGUMENT);
}
