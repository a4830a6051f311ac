//===- SliceConformance.cpp - Attention of slices, against whole samples --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Samples pass attention in slices, forward in order and backward in reverse, with other
// samples beside them. Results are those of naive attention over whole samples. The
// store holds no numbers before a slice writes them, and its other columns stay as they
// are. If slices lose any one of what the store carries, results are far from those.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/device/KernelConformance.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

using namespace dyna;

namespace {

/// Samples, each with the lengths of its slices; one slice: a whole sample.
using Cuts = std::vector<std::vector<int64_t>>;

struct SliceCase {
  std::string name;
  Cuts cuts;
  int64_t heads, kvHeads, headDim;
  bool isAligned = false; ///< rows of the store begin at multiples of 16 bytes
};

std::vector<SliceCase> sliceCases() {
  return {
      {"even", {{64, 64, 64, 64}}, 2, 2, 16},
      {"uneven", {{1, 70, 3, 130}}, 2, 1, 32},
      {"oneToken", {{1, 1, 1, 1, 1}}, 3, 3, 8},
      {"twoSamples", {{40, 60}, {33, 5, 90}}, 4, 2, 24},
      {"besideWhole", {{90, 17}, {50}, {1}, {64, 65}}, 2, 2, 40},
      {"grouped", {{100, 300, 50}}, 6, 2, 16},
      {"long", {{300, 280, 10}}, 1, 1, 48},
      {"headDim1", {{19, 70, 4}}, 2, 1, 1},
      {"headDim100", {{70, 30}}, 1, 1, 100},
      {"headDim129", {{50, 20}}, 2, 1, 129},
      {"aligned", {{40, 60}, {33, 5, 90}}, 4, 2, 64, true},
      {"aligned128", {{50}, {110, 20, 7}}, 2, 1, 128, true},
      {"aligned256", {{30, 50}}, 1, 1, 256, true},
  };
}

/// One micro-batch: slice number n of every sample that has as many; whole samples are
/// in the first one.
struct Part {
  std::vector<dyna_segment> segments;
  std::vector<int64_t> rows; ///< of the whole problem, by row of the part
};

/// What slices hand on in a store. A test loses one of them: then each slice finds
/// zeros in the columns that others have written.
enum class Carry { None, Keys, Values, KeyGradients, ValueGradients };

/// Largest distances from naive attention, over the largest elements.
struct Distances {
  double out = 0, dq = 0, dk = 0, dv = 0;
};

template <typename T>
double distance(const std::vector<T> &actual, const Matrix &expected) {
  double largest = 1e-3, error = 0;
  for (double value : expected)
    largest = std::fmax(largest, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    error =
        std::fmax(error, std::fabs(naive::toDouble(actual[i]) - expected[i]));
  return error / largest;
}

} // namespace

class SliceConformance : public DeviceFixture {
protected:
  /// Lays out samples end to end, and the rows of sliced ones in the store.
  struct Problem {
    naive::Attention whole = {};
    std::vector<Part> parts;
    int64_t stored = 0;
  };

  static Problem problemOf(const SliceCase &test) {
    Problem problem;
    naive::Attention &p = problem.whole;
    p.heads = test.heads, p.kvHeads = test.kvHeads, p.headDim = test.headDim;
    p.scale = 1.3 / std::sqrt(static_cast<double>(test.headDim));
    p.causal = true;
    p.qStride = p.outStride = test.heads * test.headDim;
    p.kStride = p.vStride = test.kvHeads * test.headDim;
    std::vector<int64_t> firstRows, storeRows;
    for (size_t sample = 0; sample < test.cuts.size(); ++sample) {
      const auto &cut = test.cuts[sample];
      const int64_t n = std::accumulate(cut.begin(), cut.end(), INT64_C(0));
      p.segments.push_back(
          {static_cast<int64_t>(sample), p.tq, n, p.tkv, n, 0});
      firstRows.push_back(p.tq);
      storeRows.push_back(cut.size() > 1 ? problem.stored : -1);
      problem.stored += cut.size() > 1 ? n : 0;
      p.tq += n, p.tkv += n;
    }
    for (size_t number = 0;; ++number) {
      Part part;
      for (size_t sample = 0; sample < test.cuts.size(); ++sample) {
        const auto &cut = test.cuts[sample];
        if (number >= cut.size())
          continue;
        const int64_t begin =
            std::accumulate(cut.begin(), cut.begin() + number, INT64_C(0));
        const auto row = static_cast<int64_t>(part.rows.size());
        // The keys of slices are numbered behind all rows: see below.
        part.segments.push_back(
            {static_cast<int64_t>(sample), row, cut[number],
             storeRows[sample] < 0 ? row : -1 - storeRows[sample],
             begin + cut[number], begin});
        for (int64_t i = 0; i < cut[number]; ++i)
          part.rows.push_back(firstRows[sample] + begin + i);
      }
      if (part.segments.empty())
        return problem;
      const auto tokens = static_cast<int64_t>(part.rows.size());
      for (dyna_segment &segment : part.segments)
        if (segment.kv_begin < 0)
          segment.kv_begin = tokens - 1 - segment.kv_begin;
      problem.parts.push_back(std::move(part));
    }
  }

  template <typename T>
  static std::vector<T> rowsOf(const std::vector<T> &all, const Part &part,
                               int64_t stride) {
    std::vector<T> rows;
    for (int64_t row : part.rows)
      rows.insert(rows.end(), all.begin() + row * stride,
                  all.begin() + (row + 1) * stride);
    return rows;
  }

  template <typename T>
  static void putRows(const std::vector<T> &rows, const Part &part,
                      int64_t stride, std::vector<T> &all) {
    for (size_t i = 0; i < part.rows.size(); ++i)
      std::copy(rows.begin() + i * stride, rows.begin() + (i + 1) * stride,
                all.begin() + part.rows[i] * stride);
  }

  /// Sets columns of all rows to zeros.
  template <typename T>
  void clearColumns(Buffer &data, int64_t stride, int64_t begin,
                    int64_t count) {
    std::vector<T> all = download<T>(data);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % stride;
      if (column >= begin && column < begin + count)
        naive::fromDouble(0, all[i]);
    }
    const auto bytes = static_cast<int64_t>(all.size() * sizeof(T));
    ASSERT_TRUE(
        device->copyToDevice(*stream, data, 0, all.data(), bytes).isOk());
    ASSERT_TRUE(device->synchronize(*stream, soon()).isOk());
  }

  template <typename T> void check(const SliceCase &test) {
    runSlices<T>(test, Carry::None, nullptr);
  }

  /// Runs the slices, and compares results with naive attention. A run that loses a
  /// carry is not compared: `distances` gets how far its results are.
  template <typename T>
  void runSlices(const SliceCase &test, Carry lost, Distances *distances) {
    using F = Functions<T>;
    using Sum = typename F::Sum;
    SCOPED_TRACE(test.name);
    const Problem problem = problemOf(test);
    const naive::Attention &p = problem.whole;
    std::mt19937 random(17);
    const auto q = naive::randomElements<T>(p.tq * p.qStride, random);
    const auto k = naive::randomElements<T>(p.tkv * p.kStride, random);
    const auto v = naive::randomElements<T>(p.tkv * p.vStride, random);
    const auto dout = naive::randomElements<T>(p.tq * p.outStride, random);
    std::vector<T> out = filled<T>(p.tq * p.outStride, 0), dq = out,
                   dk = filled<T>(p.tkv * p.kStride, 0), dv = dk;
    std::vector<Sum> lse = filled<Sum>(p.tq * p.heads, 0);

    // Columns of another attention on both sides.
    const int64_t width = p.kvHeads * p.headDim;
    const int64_t padded = p.kvHeads * dyna_padded_head_dim(p.headDim);
    dyna_key_store store = {};
    store.k_column = test.isAligned ? 16 : 3;
    store.v_column = store.k_column + width;
    store.stride = store.v_column + width + (test.isAligned ? 16 : 1);
    store.gradient_stride = 2 * padded + 32, store.dk_column = 16;
    store.dv_column = 16 + padded;
    const double mark = 77;
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    auto keys = upload(filled<T>(problem.stored * store.stride, nothing));
    auto sums = upload(filled<Sum>(problem.stored * store.gradient_stride, 0));
    store.data = keys->data();

    auto run = [&](const Part &part, bool isForward) {
      auto segmentData = upload(part.segments);
      dyna_segments segments = {};
      segments.data = static_cast<const dyna_segment *>(segmentData->data());
      segments.count = static_cast<int64_t>(part.segments.size());
      segments.tq = segments.tkv = static_cast<int64_t>(part.rows.size());
      segments.stored = problem.stored;
      int64_t pairs = 0;
      for (const dyna_segment &s : part.segments) {
        segments.longest_query = std::max(segments.longest_query, s.q_len);
        segments.longest_key = std::max(segments.longest_key, s.kv_len);
        segments.pairs += dyna_visible_pairs(&s, 0);
        pairs += dyna_visible_pairs(&s, 1);
      }
      segments.causal_pairs = pairs;
      auto qData = upload(rowsOf(q, part, p.qStride));
      // Backward reads the keys of slices in the store alone.
      auto keysOf = [&](const std::vector<T> &all, int64_t stride) {
        std::vector<T> rows = rowsOf(all, part, stride);
        for (const dyna_segment &s : part.segments)
          if (!isForward && s.kv_begin >= segments.tkv)
            std::fill(rows.begin() + s.q_begin * stride,
                      rows.begin() + (s.q_begin + s.q_len) * stride,
                      filled<T>(1, nothing)[0]);
        return upload(rows);
      };
      auto kData = keysOf(k, p.kStride);
      auto vData = keysOf(v, p.vStride);
      auto outData = upload(rowsOf(out, part, p.outStride));
      auto lseData = upload(rowsOf(lse, part, p.heads));
      dyna_attention forward = {&segments,   p.heads,
                                p.kvHeads,   p.headDim,
                                p.scale,     1,
                                0,           qData->data(),
                                p.qStride,   kData->data(),
                                p.kStride,   vData->data(),
                                p.vStride,   outData->data(),
                                p.outStride, lseData->data(),
                                store};
      context.matrix_flops = 0;
      if (isForward) {
        ASSERT_EQ(F::attention(&context, &forward), DYNA_OK) << message;
        EXPECT_EQ(context.matrix_flops, 4 * p.heads * p.headDim * pairs);
        putRows(download<T>(*outData), part, p.outStride, out);
        putRows(download<Sum>(*lseData), part, p.heads, lse);
        return;
      }
      forward.store.gradients = sums->data();
      auto doutData = upload(rowsOf(dout, part, p.outStride));
      auto dqData = upload(filled<T>(segments.tq * p.qStride, mark));
      auto dkData = upload(filled<T>(segments.tq * p.kStride, mark));
      auto dvData = upload(filled<T>(segments.tq * p.vStride, mark));
      auto workspace =
          upload(makeWorkspace(dyna_attention_grad_workspace(
                                   sizeof(T), p.heads, p.kvHeads, p.headDim),
                               segments.tq, segments.tkv, segments.count));
      const dyna_attention_grad grad = {
          forward,        doutData->data(), dqData->data(),
          p.qStride,      dkData->data(),   p.kStride,
          dvData->data(), p.vStride,        workspace->data()};
      ASSERT_EQ(F::attentionGrad(&context, &grad), DYNA_OK) << message;
      EXPECT_EQ(context.matrix_flops, 10 * p.heads * p.headDim * pairs);
      expectCanary(download<uint8_t>(*workspace));
      putRows(download<T>(*dqData), part, p.qStride, dq);
      putRows(download<T>(*dkData), part, p.kStride, dk);
      putRows(download<T>(*dvData), part, p.vStride, dv);
    };
    std::vector<std::vector<T>> seen; // the keys that forward had
    for (const Part &part : problem.parts) {
      if (lost == Carry::Keys)
        clearColumns<T>(*keys, store.stride, store.k_column, width);
      if (lost == Carry::Values)
        clearColumns<T>(*keys, store.stride, store.v_column, width);
      run(part, true);
      seen.push_back(download<T>(*keys));
    }
    for (size_t i = problem.parts.size(); i-- > 0;) {
      if (lost != Carry::None) {
        keys = upload(seen[i]);
        store.data = keys->data();
      }
      run(problem.parts[i], false);
      if (lost == Carry::KeyGradients)
        clearColumns<Sum>(*sums, store.gradient_stride, store.dk_column,
                          padded);
      if (lost == Carry::ValueGradients)
        clearColumns<Sum>(*sums, store.gradient_stride, store.dv_column,
                          padded);
    }

    Matrix wideQ = naive::toDoubles(q), wideK = naive::toDoubles(k),
           wideV = naive::toDoubles(v), wideDout = naive::toDoubles(dout);
    Matrix wideOut(out.size()), wideLse(lse.size()), wideDq(dq.size()),
        wideDk(dk.size()), wideDv(dv.size());
    naive::attention(p, wideQ, wideK, wideV, wideOut, wideLse);
    naive::attentionGrad(p, wideQ, wideK, wideV, wideDout, wideDq, wideDk,
                         wideDv);
    if (distances) {
      *distances = {distance(out, wideOut), distance(dq, wideDq),
                    distance(dk, wideDk), distance(dv, wideDv)};
      return;
    }
    expectNear(out, wideOut, tolerance<T>(), "out");
    expectNear(lse, wideLse, 2 * tolerance<Sum>(), "lse");
    expectNear(dq, wideDq, 2 * tolerance<T>(), "dq");
    expectNear(dk, wideDk, 2 * tolerance<T>(), "dk");
    expectNear(dv, wideDv, 2 * tolerance<T>(), "dv");
    expectOtherColumns<T>(*keys, store.stride, store.k_column, 2 * width);
    const std::vector<Sum> left = download<Sum>(*sums);
    for (size_t i = 0; i < left.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % store.gradient_stride;
      if (column < store.dk_column || column >= store.dk_column + 2 * padded)
        ASSERT_EQ(naive::toDouble(left[i]), 0) << "sums, element " << i;
    }
  }

  /// out, dq, dk and dv of the second slice of a sample, of 4 queries and 6 keys. The
  /// store has `stored` rows, but memory for 128. Those behind the keys hold no numbers.
  template <typename T> std::vector<T> resultsWith(int64_t stored) {
    using F = Functions<T>;
    using Sum = typename F::Sum;
    constexpr int64_t rows = 4, width = 8, stride = 1 << 15, kept = 128;
    std::mt19937 random(3);
    const std::vector<dyna_segment> list = {{0, 0, rows, rows, 6, 2}};
    auto listData = upload(list);
    dyna_segments segments = {};
    segments.data = static_cast<const dyna_segment *>(listData->data());
    segments.count = 1, segments.tq = segments.tkv = rows;
    segments.stored = stored;
    std::vector<std::unique_ptr<Buffer>> operands, results;
    for (int i = 0; i < 4; ++i) {
      operands.push_back(
          upload(naive::randomElements<T>(rows * width, random)));
      results.push_back(upload(filled<T>(rows * width, 77)));
    }
    std::vector<T> first = naive::randomElements<T>(2 * stride, random);
    const std::vector<T> none = filled<T>((kept - 2) * stride, NAN);
    first.insert(first.end(), none.begin(), none.end());
    auto keys = upload(first);
    auto sums = upload(filled<Sum>(kept * stride, 0));
    auto lse = upload(filled<Sum>(rows, 0));
    auto workspace = upload(makeWorkspace(
        dyna_attention_grad_workspace(sizeof(T), 1, 1, width), rows, rows, 1));
    dyna_attention_grad grad = {};
    dyna_attention &p = grad.forward;
    p.segments = &segments;
    p.heads = p.kv_heads = 1, p.head_dim = width;
    p.scale = 0.5, p.causal = 1;
    p.q = operands[0]->data(), p.k = operands[1]->data();
    p.v = operands[2]->data(), grad.dout = operands[3]->data();
    p.out = results[0]->data(), grad.dq = results[1]->data();
    grad.dk = results[2]->data(), grad.dv = results[3]->data();
    p.q_stride = p.k_stride = p.v_stride = p.out_stride = width;
    grad.dq_stride = grad.dk_stride = grad.dv_stride = width;
    p.lse = lse->data(), grad.workspace = workspace->data();
    p.store = {keys->data(), stride, 0, width, sums->data(), stride, 0, 16};
    EXPECT_EQ(F::attention(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(F::attentionGrad(&context, &grad), DYNA_OK) << message;
    std::vector<T> all;
    for (const auto &result : results) {
      const std::vector<T> one = download<T>(*result);
      all.insert(all.end(), one.begin(), one.end());
    }
    const std::vector<Sum> left = download<Sum>(*sums);
    for (size_t i = 6 * stride; i < left.size(); ++i)
      if (left[i] != 0) {
        ADD_FAILURE() << "sums, element " << i << ": " << left[i];
        break;
      }
    return all;
  }

  /// A store of 4 GiB and more, most of it nowhere, changes no bit.
  template <typename T> void checkLongStore() {
    const std::vector<T> wanted = resultsWith<T>(6);
    const std::vector<T> found = resultsWith<T>(1 << 16);
    ASSERT_EQ(found.size(), wanted.size());
    EXPECT_EQ(
        std::memcmp(found.data(), wanted.data(), wanted.size() * sizeof(T)), 0);
    for (T value : wanted)
      EXPECT_LT(std::fabs(naive::toDouble(value)), 10);
  }

  /// Two segments that both have queries, the first with keys up to the last row, and
  /// the second with keys from the store's first row on.
  template <typename T> void checkNeighbours() {
    using F = Functions<T>;
    naive::Attention p = {};
    p.segments = {{0, 0, 4, 4, 4, 0}, {1, 4, 4, 8, 4, 0}};
    p.heads = p.kvHeads = 1, p.headDim = 8, p.scale = 0.5, p.causal = true;
    p.qStride = p.kStride = p.vStride = p.outStride = 8;
    std::mt19937 random(11);
    const auto q = naive::randomElements<T>(64, random);
    const auto k = naive::randomElements<T>(64, random);
    const auto v = naive::randomElements<T>(64, random);
    auto qData = upload(q), kData = upload(k), vData = upload(v);
    auto outData = upload(filled<T>(64, 77)),
         keys = upload(filled<T>(64, std::numeric_limits<double>::quiet_NaN()));
    auto listData = upload(p.segments);
    dyna_segments segments = {};
    segments.data = static_cast<const dyna_segment *>(listData->data());
    segments.count = 2, segments.tq = segments.tkv = 8, segments.stored = 4;
    dyna_attention call = {&segments,
                           1,
                           1,
                           8,
                           0.5,
                           1,
                           0,
                           qData->data(),
                           8,
                           kData->data(),
                           8,
                           vData->data(),
                           8,
                           outData->data(),
                           8,
                           nullptr,
                           {keys->data(), 16, 0, 8, nullptr, 0, 0, 0}};
    ASSERT_EQ(F::attention(&context, &call), DYNA_OK) << message;
    // The store's rows are those of the second segment's own queries.
    Matrix wideK = naive::toDoubles(k), wideV = naive::toDoubles(v);
    for (Matrix *wide : {&wideK, &wideV}) {
      const Matrix own(wide->begin() + 32, wide->end());
      wide->insert(wide->end(), own.begin(), own.end());
    }
    Matrix out(64), lse(8);
    naive::attention(p, naive::toDoubles(q), wideK, wideV, out, lse);
    expectNear(download<T>(*outData), out, tolerance<T>(), "out");
  }

  template <typename T>
  void expectOtherColumns(const Buffer &data, int64_t stride, int64_t begin,
                          int64_t used) {
    const std::vector<T> all = download<T>(data);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % stride;
      const bool isOwn = column >= begin && column < begin + used;
      ASSERT_EQ(std::isnan(naive::toDouble(all[i])), !isOwn)
          << "store, element " << i;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, SliceConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

TEST_P(SliceConformance, F32) {
  for (const SliceCase &test : sliceCases())
    check<float>(test);
}
TEST_P(SliceConformance, F64) {
  for (const SliceCase &test : sliceCases())
    check<double>(test);
}
TEST_P(SliceConformance, Bf16) {
  for (const SliceCase &test : sliceCases())
    check<Bf16>(test);
}

TEST_P(SliceConformance, RandomCuts) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    SliceCase test{"random " + std::to_string(round), {}, 0, 0, 0};
    test.kvHeads = 1 + static_cast<int64_t>(random() % 3);
    test.heads = test.kvHeads * (1 + static_cast<int64_t>(random() % 3));
    test.headDim = 1 + static_cast<int64_t>(random() % 70);
    for (size_t samples = 1 + random() % 4; samples > 0; --samples) {
      auto &cut = test.cuts.emplace_back();
      for (size_t slices = 1 + random() % 4; slices > 0; --slices)
        cut.push_back(1 + static_cast<int64_t>(random() % 90));
    }
    check<double>(test);
  }
}

/// Each carry of the store is needed: without it, results are at least four tolerances
/// away.
TEST_P(SliceConformance, LostCarriesAreSeen) {
  auto check = [&](auto element) {
    using T = decltype(element);
    const double far = 4 * 2 * tolerance<T>();
    for (const SliceCase &test :
         {SliceCase{"uneven", {{1, 70, 3, 30}}, 2, 1, 32},
          SliceCase{
              "besideWhole", {{20, 17}, {50}, {1}, {34, 35}}, 4, 2, 16}}) {
      SCOPED_TRACE(test.name);
      Distances none, keys, values, keyGradients, valueGradients;
      runSlices<T>(test, Carry::None, &none);
      EXPECT_LE(std::max({none.out, none.dq, none.dk, none.dv}),
                2 * tolerance<T>());
      runSlices<T>(test, Carry::Keys, &keys);
      EXPECT_GT(keys.out, far);
      EXPECT_GT(keys.dq, far);
      runSlices<T>(test, Carry::Values, &values);
      EXPECT_GT(values.out, far);
      EXPECT_GT(values.dq, far);
      runSlices<T>(test, Carry::KeyGradients, &keyGradients);
      EXPECT_GT(keyGradients.dk, far);
      EXPECT_EQ(keyGradients.dv, none.dv);
      runSlices<T>(test, Carry::ValueGradients, &valueGradients);
      EXPECT_GT(valueGradients.dv, far);
      EXPECT_EQ(valueGradients.dk, none.dk);
    }
  };
  check(float());
  check(double());
  check(Bf16());
}

TEST_P(SliceConformance, RowsThatNobodySeesAreNotTouched) {
  checkLongStore<float>();
  checkLongStore<double>();
  checkLongStore<Bf16>();
}

TEST_P(SliceConformance, KeysBeforeTheStoreAreNoneOfIt) {
  checkNeighbours<float>();
  checkNeighbours<double>();
  checkNeighbours<Bf16>();
}

/// Stores that are missing or too small are refused, and nothing runs.
TEST_P(SliceConformance, BadStoresAreRefused) {
  std::vector<dyna_segment> list = {{0, 0, 4, 4, 6, 2}};
  auto listData = upload(list);
  auto data = upload(filled<float>(64, 0));
  dyna_segments segments = {};
  segments.data = static_cast<const dyna_segment *>(listData->data());
  segments.count = 1, segments.tq = segments.tkv = 4, segments.stored = 6;
  dyna_attention p = {&segments, 1,
                      1,         4,
                      0.5,       1,
                      0,         data->data(),
                      4,         data->data(),
                      4,         data->data(),
                      4,         data->data(),
                      4,         nullptr,
                      {}};
  EXPECT_EQ(dyna_attention_f32(&context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("store"), std::string::npos) << message;
  p.store = {data->data(), 8, 0, 4, nullptr, 0, 0, 0};
  dyna_attention_grad grad = {
      p, data->data(), data->data(), 4, data->data(), 4, data->data(),
      4, data->data()};
  grad.forward.lse = data->data();
  EXPECT_EQ(dyna_attention_grad_f32(&context, &grad), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("gradients of 6 keys"), std::string::npos)
      << message;
}
