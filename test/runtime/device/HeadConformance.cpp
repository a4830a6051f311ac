//===- HeadConformance.cpp - Head and loss ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/device/KernelConformance.h"

#include <numeric>

using namespace dyna;

/// The transports have a `nameOf` too.
static std::string nameOfBackend(const testing::TestParamInfo<Backend> &info) {
  return nameOf(info);
}

class HeadConformance : public DeviceFixture {
protected:
  bool narrowLogits = false; ///< of bf16 heads
  bool announces = true;     ///< how many rows have a target

  /// `targets`: those of all rows, of which some may be ignored.
  template <typename T>
  dyna_head makeHead(const std::vector<int32_t> &targets) {
    dyna_head head = {};
    head.target_rows = static_cast<int64_t>(targets.size()) -
                       std::count(targets.begin(), targets.end(), -100);
    head.ignore_index = -100;
    head.gradient_scale = 0.37;
    if (sizeof(T) == 2) {
      head.narrow_logits = narrowLogits;
      head.matmul = narrowLogits ? dyna_matmul_bf16 : dyna_matmul_bf16_f32;
      head.matmul_input = dyna_matmul_bf16;
      head.matmul_weight = dyna_matmul_bf16_f32;
    } else {
      head.matmul = sizeof(T) == 4 ? dyna_matmul_f32 : GetParam().matmulF64;
      head.matmul_input = head.matmul_weight = head.matmul;
    }
    return head;
  }

  /// `ignored`: of ten rows, how many have no target. `Sum`: in which the
  /// gradient of w is added up. With `lists` the call says which rows have one.
  /// Returns the loss, then dx and dw.
  template <typename T, typename Sum = typename Functions<T>::Sum>
  Matrix check(int64_t rows, int64_t width, int64_t vocab, int ignored,
               bool train, bool lists = false, int32_t chunkRows = 0) {
    Matrix results;
    check<T, Sum>(rows, width, vocab, ignored, train, lists, chunkRows,
                  results);
    return results;
  }
  template <typename T, typename Sum>
  void check(int64_t rows, int64_t width, int64_t vocab, int ignored,
             bool train, bool lists, int32_t chunkRows, Matrix &results) {
    using F = Functions<T>;
    constexpr bool narrow = sizeof(Sum) == 2;
    SCOPED_TRACE(rows);
    std::mt19937 random(5);
    auto x = naive::randomElements<T>(rows * width, random);
    auto w = naive::randomElements<T>(vocab * width, random);
    auto dw = naive::randomElements<Sum>(vocab * width, random);
    std::vector<int32_t> targets(static_cast<size_t>(rows));
    for (int32_t &target : targets)
      target =
          static_cast<int>(random() % 10) < ignored
              ? -100
              : static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
    dyna_head head = makeHead<T>(targets);
    head.rows = rows, head.width = width, head.vocab = vocab;
    auto xData = upload(x), wData = upload(w), dwData = upload(dw);
    auto dxData = upload(filled<T>(rows * width, 77));
    auto targetData = upload(targets);
    auto loss = upload<double>({-1});
    head.chunk_rows = chunkRows;
    dyna_linear_bytes formula = dyna_head_chunk_workspace(
        sizeof(T), width, vocab, dyna_head_chunk_rows(&head), narrowLogits);
    if (narrow)
      formula.constant += dyna_head_sum_workspace(width, vocab);
    auto workspace = upload(makeWorkspace(formula, rows, rows, 1));
    head.narrow_dw = narrow;
    head.x = xData->data(), head.w = wData->data();
    head.targets = static_cast<const int32_t *>(targetData->data());
    head.loss_sum = static_cast<double *>(loss->data());
    head.workspace = workspace->data();
    std::vector<int32_t> usedRows;
    for (int32_t row = 0; row < rows; ++row)
      if (targets[static_cast<size_t>(row)] != -100)
        usedRows.push_back(row);
    auto usedData = upload(usedRows);
    if (lists)
      head.used_rows = static_cast<const int32_t *>(usedData->data());
    if (train)
      head.dx = dxData->data(), head.dw = dwData->data();
    if (!announces)
      head.target_rows = -1;
    context.matrix_flops = 0;
    ASSERT_EQ(F::head(&context, &head), DYNA_OK) << message;
    expectCanary(download<uint8_t>(*workspace));
    // Who does not know takes all, as zeros.
    int64_t used = announces || GetParam().finishes
                       ? rows - std::count(targets.begin(), targets.end(), -100)
                       : rows;
    // A stand-in for the generated product counts nothing.
    if (sizeof(T) < 8 || GetParam().matmulF64 == dyna_matmul_f64)
      EXPECT_EQ(context.matrix_flops,
                (train ? 3 : 1) * 2 * used * width * vocab);

    Matrix dx(static_cast<size_t>(rows * width)), wideDw = naive::toDoubles(dw);
    double expected =
        naive::head(head, naive::toDoubles(x), naive::toDoubles(w),
                    targets.data(), dx, wideDw);
    // A narrow logit near the middle of two bf16 may be rounded to the other one.
    double relative = sizeof(T) == 8 ? 1e-13 : narrowLogits ? 2e-5 : 1e-6;
    results = download<double>(*loss);
    for (const Matrix &gradient : {naive::toDoubles(download<T>(*dxData)),
                                   naive::toDoubles(download<Sum>(*dwData))})
      results.insert(results.end(), gradient.begin(), gradient.end());
    EXPECT_NEAR(results[0], expected,
                relative * std::fmax(1, std::fabs(expected)));
    if (!train) {
      EXPECT_EQ(naive::toDoubles(download<Sum>(*dwData)), naive::toDoubles(dw));
      return;
    }
    expectNear(download<T>(*dxData), dx, 2 * tolerance<T>(), "dx");
    expectNear(download<Sum>(*dwData), wideDw, 2 * tolerance<T>(), "dw");
  }

  template <typename T, typename Sum = typename Functions<T>::Sum>
  void checkAll() {
    check<T, Sum>(600, 33, 517, 4, true); // gathered rows, three chunks
    check<T, Sum>(300, 40, 97, 0, true);  // rows used in place
    check<T, Sum>(600, 33, 517, 4, true, false, 50); // chunks as the call says
    check<T, Sum>(600, 33, 517, 4, true, false, 4096); // one chunk
    check<T, Sum>(300, 40, 97, 4, false, true);        // evaluation
    check<T, Sum>(20, 16, 1024, 10, true);             // no row has a target
    check<T, Sum>(3000, 2, 3, 4, true); // more rows than a block has threads
    // Rows of logits that are longer than what a GPU's block may keep.
    check<T, Sum>(5, 2, 103000 / int64_t(sizeof(T)) + 3, 2, true);
    check<T, Sum>(0, 16, 50, 0, true);
    check<T, Sum>(1, 1, 1, 0, true);
    for (int ignored : {0, 4, 10}) // the same bits
      EXPECT_TRUE((check<T, Sum>(90, 9, 20, ignored, true, true)) ==
                  (check<T, Sum>(90, 9, 20, ignored, true, false)));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, HeadConformance,
                         testing::ValuesIn(conformanceBackends()),
                         nameOfBackend);

TEST_P(HeadConformance, F32) { checkAll<float>(); }
TEST_P(HeadConformance, Bf16) { checkAll<Bf16>(); }
TEST_P(HeadConformance, F64) {
  if (!GetParam().matmulF64)
    GTEST_SKIP() << "this device has no f64";
  checkAll<double>();
}

TEST_P(HeadConformance, Bf16Gradients) { checkAll<Bf16, Bf16>(); }

/// Compared with logits that are rounded once. Rows of more pieces than a block has
/// threads, too.
TEST_P(HeadConformance, Bf16Logits) {
  narrowLogits = true;
  checkAll<Bf16>();
  checkAll<Bf16, Bf16>();
  check<Bf16>(7, 3, 9001, 2, true);
}

TEST_P(HeadConformance, RefusesBf16LogitsOfOthers) {
  narrowLogits = true;
  double loss;
  dyna_head head = makeHead<Bf16>({});
  head.rows = 0, head.width = 4, head.vocab = 50, head.loss_sum = &loss;
  head.whole_vocab = 50;
  EXPECT_EQ(dyna_head_bf16(&context, &head), DYNA_INVALID_ARGUMENT);
  head.whole_vocab = 0;
  EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(
      std::string(message).find("only a bf16 head with a whole vocabulary"),
      std::string::npos)
      << message;
}

/// Three chunks add 0.75 each to 256, beside which bf16 has nothing smaller
/// than 2: added one by one they would all be lost.
TEST_P(HeadConformance, RoundsANarrowGradientOnce) {
  constexpr int64_t rows = 3 * DYNA_HEAD_CHUNK_ROWS, width = 5, vocab = 2;
  const std::vector<int32_t> ids(rows, 0);
  dyna_head head = makeHead<Bf16>(ids);
  head.rows = rows, head.width = width, head.vocab = vocab;
  head.narrow_dw = 1;
  // The logits are equal: each row adds half of the scale to row 1.
  head.gradient_scale = 2 * 0.75 / DYNA_HEAD_CHUNK_ROWS;
  auto x = upload(filled<Bf16>(rows * width, 1));
  auto w = upload(filled<Bf16>(vocab * width, 0));
  auto dx = upload(filled<Bf16>(rows * width, 0));
  auto dw = upload(filled<Bf16>(vocab * width, 256));
  auto targets = upload(ids);
  auto loss = upload<double>({0});
  dyna_linear_bytes formula = dyna_head_workspace(2, width, vocab);
  formula.constant += dyna_head_sum_workspace(width, vocab);
  auto workspace = upload(makeWorkspace(formula, rows, rows, 1));
  head.x = x->data(), head.w = w->data(), head.dx = dx->data();
  head.dw = dw->data(), head.workspace = workspace->data();
  head.targets = static_cast<const int32_t *>(targets->data());
  head.loss_sum = static_cast<double *>(loss->data());
  ASSERT_EQ(dyna_head_bf16(&context, &head), DYNA_OK) << message;
  Matrix sums = naive::toDoubles(download<Bf16>(*dw));
  for (int64_t column = 0; column < width; ++column) {
    EXPECT_EQ(sums[column], 254) << "256 - 2.25";
    EXPECT_EQ(sums[width + column], 258) << "256 + 2.25";
  }
  head.narrow_dw = 1;
  EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
}

TEST_P(HeadConformance, RowsWithoutATargetHaveNoGradient) {
  announces = false;
  check<float>(600, 33, 517, 4, true);
  check<Bf16>(600, 33, 517, 4, true);
  narrowLogits = true;
  check<Bf16>(600, 33, 517, 4, true);
  check<Bf16, Bf16>(20, 16, 1024, 10, true);
}

/// -1: the device is asked. A wrong number is only noticed by devices that are
/// done when they return.
TEST_P(HeadConformance, CountsTargetsThatAreNotAnnounced) {
  const std::vector<int32_t> ids = {3, -100, 1};
  dyna_head head = makeHead<float>(ids);
  head.rows = 3, head.width = 4, head.vocab = 50;
  auto x = upload(filled<float>(12, 0)), w = upload(filled<float>(200, 0));
  auto targets = upload(ids);
  auto loss = upload<double>({0});
  auto workspace = upload(
      makeWorkspace(dyna_head_workspace(4, head.width, head.vocab), 3, 3, 1));
  head.x = x->data(), head.w = w->data(), head.workspace = workspace->data();
  head.targets = static_cast<const int32_t *>(targets->data());
  head.loss_sum = static_cast<double *>(loss->data());
  for (int64_t announced : {-1, 2}) {
    head.target_rows = announced;
    ASSERT_EQ(dyna_head_f32(&context, &head), DYNA_OK) << message;
    EXPECT_NEAR(download<double>(*loss)[0], 2 * std::log(50), 1e-5);
  }
  // A list says which rows, not how many.
  head.used_rows = head.targets, head.target_rows = -1;
  EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("listed, but not how many"),
            std::string::npos)
      << message;
}

TEST_P(HeadConformance, RefusesTargetsOutsideTheVocabulary) {
  for (int32_t bad : {-1, 50, 1 << 30}) {
    const std::vector<int32_t> ids = {0, -100, bad};
    dyna_head head = makeHead<float>(ids);
    head.rows = 3, head.width = 4, head.vocab = 50;
    auto x = upload(filled<float>(12, 0)), w = upload(filled<float>(200, 0));
    auto targets = upload(ids);
    auto loss = upload<double>({0});
    auto workspace = upload(
        makeWorkspace(dyna_head_workspace(4, head.width, head.vocab), 3, 3, 1));
    head.x = x->data(), head.w = w->data(), head.workspace = workspace->data();
    head.targets = static_cast<const int32_t *>(targets->data());
    head.loss_sum = static_cast<double *>(loss->data());
    if (!GetParam().finishes) {
      // Some launch may find it already.
      if (dyna_head_f32(&context, &head) == DYNA_OK) {
        Status status = device->synchronize(*stream, soon());
        EXPECT_FALSE(status.isOk());
        snprintf(message, sizeof(message), "%s", status.message().c_str());
      }
    } else {
      EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
    }
    EXPECT_NE(std::string(message).find("target id " + std::to_string(bad) +
                                        " of row 2"),
              std::string::npos)
        << message;
    if (!GetParam().finishes)
      return; // the device is not used any more
  }
}

//===----------------------------------------------------------------------===//
// A vocabulary dealt to several ranks
//===----------------------------------------------------------------------===//

namespace {

/// What one rank makes of its part.
template <typename T> struct PartResult {
  double loss;
  std::vector<T> dx;
  std::vector<typename Functions<T>::Sum> dw;
};

/// Everything of one call, for all ranks.
template <typename T> struct WholeHead {
  using Sum = typename Functions<T>::Sum;
  WholeHead(int64_t rows, int64_t width, int64_t vocab, int ignored)
      : rows(rows), width(width), vocab(vocab) {
    std::mt19937 random(7);
    x = naive::randomElements<T>(rows * width, random);
    w = naive::randomElements<T>(vocab * width, random);
    dw = naive::randomElements<Sum>(vocab * width, random);
    for (int64_t i = 0; i < rows; ++i)
      targets.push_back(
          static_cast<int>(random() % 10) < ignored
              ? -100
              : static_cast<int32_t>(random() % static_cast<uint32_t>(vocab)));
  }
  int64_t rows, width, vocab;
  std::vector<T> x, w;
  std::vector<Sum> dw;
  std::vector<int32_t> targets;
};

/// A rank's part of a table of `vocab` rows in a buffer with room for `room`;
/// what lies behind the part would spoil every sum.
template <typename T>
std::vector<T> partOf(const std::vector<T> &table, int64_t width, int64_t begin,
                      int64_t size, int64_t room) {
  std::vector<T> part = filled<T>(room * width, NAN);
  std::copy_n(table.begin() + begin * width, size * width, part.begin());
  return part;
}

} // namespace

class SharedHeadConformance : public HeadConformance {
protected:
  void SetUp() override {
    HeadConformance::SetUp();
    if (!IsSkipped() && !GetParam().finishes)
      GTEST_SKIP() << "this device shares no vocabulary yet";
  }

  /// One rank: a device of its own, its part of the vocabulary.
  template <typename T>
  Status runRank(Transport &transport, const WholeHead<T> &whole, bool train,
                 PartResult<T> &result) {
    StatusOr<std::unique_ptr<Device>> made = GetParam().make();
    DYNA_RETURN_IF_ERROR(made.status());
    std::unique_ptr<Stream> stream = std::move(*(*made)->createStream());
    std::vector<int> ranks(static_cast<size_t>(transport.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    auto group = transport.createGroup(ranks, transport.deadline());
    DYNA_RETURN_IF_ERROR(group.status());
    dyna_group groups[2] = {toAbi(nullptr), toAbi(group->get())};
    char message[512] = "";
    dyna_context context = {};
    context.abi_version = DYNA_ABI_VERSION;
    context.message = message, context.message_capacity = sizeof(message);
    context.groups = groups, context.group_count = 2;
    (*made)->bind(context, *stream);

    int64_t count = transport.ranks(), index = transport.rank();
    int64_t room = (whole.vocab + count - 1) / count;
    int64_t begin = dyna_part_begin(whole.vocab, count, index);
    int64_t size = dyna_part_size(whole.vocab, count, index);
    auto w = partOf(whole.w, whole.width, begin, size, room);
    result.dw = partOf(whole.dw, whole.width, begin, size, room);
    result.dx = filled<T>(whole.rows * whole.width, 77);
    dyna_linear_bytes formula =
        dyna_head_workspace(sizeof(T), whole.width, room);
    formula.constant +=
        dyna_head_chunk_exchange_workspace(DYNA_HEAD_CHUNK_ROWS);
    auto workspace = makeWorkspace(formula, whole.rows, whole.rows, 1);
    dyna_head head = makeHead<T>(whole.targets);
    head.rows = whole.rows, head.width = whole.width, head.vocab = room;
    head.whole_vocab = whole.vocab, head.group = 1;
    head.x = whole.x.data(), head.w = w.data();
    head.targets = whole.targets.data(), head.loss_sum = &result.loss;
    head.workspace = workspace.data();
    if (train)
      head.dx = result.dx.data(), head.dw = result.dw.data();
    if (Functions<T>::head(&context, &head) != DYNA_OK)
      return Status::internal(message);
    expectCanary(workspace);
    for (size_t i = static_cast<size_t>(size * whole.width);
         i < result.dw.size(); ++i)
      EXPECT_TRUE(std::isnan(result.dw[i])) << "padding was written";
    result.dw.resize(static_cast<size_t>(size * whole.width));
    return Status::ok();
  }

  template <typename T>
  void checkRanks(int ranks, const WholeHead<T> &whole, bool train) {
    SCOPED_TRACE(testing::Message()
                 << ranks << " ranks, vocabulary " << whole.vocab);
    std::vector<PartResult<T>> results(static_cast<size_t>(ranks));
    Status status = runRanks(ranks, [&](Transport &transport) {
      return runRank(transport, whole, train,
                     results[static_cast<size_t>(transport.rank())]);
    });
    ASSERT_TRUE(status.isOk()) << status.message();

    dyna_head head = makeHead<T>(whole.targets);
    head.rows = whole.rows, head.width = whole.width, head.vocab = whole.vocab;
    Matrix dx(static_cast<size_t>(whole.rows * whole.width));
    Matrix dw = naive::toDoubles(whole.dw);
    double expected =
        naive::head(head, naive::toDoubles(whole.x), naive::toDoubles(whole.w),
                    whole.targets.data(), dx, dw);
    double relative = sizeof(T) == 8 ? 1e-13 : 1e-6;
    EXPECT_NEAR(results[0].loss, expected,
                relative * std::fmax(1, std::fabs(expected)));
    std::vector<double> sum(dx.size()), parts;
    for (PartResult<T> &result : results) {
      EXPECT_EQ(result.loss, results[0].loss) << "the same bits on all ranks";
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += naive::toDouble(result.dx[i]);
      for (auto value : result.dw)
        parts.push_back(naive::toDouble(value));
    }
    if (!train)
      return;
    // Each rank rounds its own part of dx.
    expectNear(sum, dx, 2 * ranks * tolerance<T>(), "dx");
    expectNear(parts, dw, 2 * tolerance<T>(), "dw");
  }

  template <typename T> void checkAll() {
    if (!HasFatalFailure() && !IsSkipped()) {
      for (int ranks : {1, 2, 3})
        checkRanks<T>(ranks, {600, 33, 517, 4}, true); // three chunks
      checkRanks<T>(2, {300, 40, 97, 4}, false);
      checkRanks<T>(4, {40, 16, 5, 0}, true);   // parts of 2, 2, 1 and 0
      checkRanks<T>(2, {20, 16, 64, 10}, true); // no row has a target
      checkRanks<T>(2, {0, 16, 50, 0}, true);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, SharedHeadConformance,
                         testing::ValuesIn(conformanceBackends()),
                         nameOfBackend);

TEST_P(SharedHeadConformance, F32) { checkAll<float>(); }
TEST_P(SharedHeadConformance, Bf16) { checkAll<Bf16>(); }
TEST_P(SharedHeadConformance, F64) {
  if (!GetParam().matmulF64)
    GTEST_SKIP() << "this device has no f64";
  checkAll<double>();
}

/// One exchange of the largest logits and one of the sums for every chunk, and
/// as many bytes as rows have targets.
TEST_P(SharedHeadConformance, ExchangesTwicePerChunk) {
  WholeHead<float> whole(600, 33, 517, 0);
  Status status = runRanks(2, [&](Transport &transport) -> Status {
    PartResult<float> result;
    int64_t before =
        transport.traffic()
            .collectives[static_cast<size_t>(CollectiveKind::AllReduce)];
    DYNA_RETURN_IF_ERROR(runRank(transport, whole, true, result));
    int64_t after =
        transport.traffic()
            .collectives[static_cast<size_t>(CollectiveKind::AllReduce)];
    EXPECT_EQ(after - before,
              2 * ((600 + DYNA_HEAD_CHUNK_ROWS - 1) / DYNA_HEAD_CHUNK_ROWS));
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
}

TEST_P(SharedHeadConformance, RefusesPartsThatDoNotFit) {
  dyna_group groups[2] = {{1, 0, nullptr}, {2, 0, nullptr}};
  context.groups = groups, context.group_count = 2;
  double loss;
  dyna_head head = makeHead<float>({});
  head.rows = 0, head.width = 4, head.vocab = 25, head.whole_vocab = 51;
  head.loss_sum = &loss, head.group = 1;
  EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("has 26 rows, but there is room for 25"),
            std::string::npos)
      << message;
  head.group = 2;
  EXPECT_EQ(dyna_head_f32(&context, &head), DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(message).find("group 2 of a context with 2 groups"),
            std::string::npos)
      << message;
}
