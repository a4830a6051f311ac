//===- HostDeviceTest.cpp - What only the host backend promises -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostDevice.h"

#include "runtime/abi/Kernels.h"
#include "runtime/device/host/MatmulPrimitives.h"
#include "test/runtime/device/Naive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

using namespace dyna;

namespace {

struct Host {
  explicit Host(int threads, Bf16Path path = Bf16Path::Auto) {
    HostOptions options;
    options.threads = threads;
    options.bf16 = path;
    StatusOr<std::unique_ptr<HostDevice>> made = HostDevice::create(options);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    device = std::move(*made);
    device->bind(context);
    context.message = message;
    context.message_capacity = sizeof(message);
  }
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[256] = "";
};

} // namespace

//===----------------------------------------------------------------------===//
// Team
//===----------------------------------------------------------------------===//

TEST(Team, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    StatusOr<std::unique_ptr<Team>> team = Team::create(threads);
    ASSERT_TRUE(team.isOk());
    EXPECT_EQ((*team)->size(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000, 600000}) {
      std::vector<std::atomic<uint8_t>> runs(static_cast<size_t>(count));
      (*team)->parallelFor(count, [&](int64_t task, int worker) {
        ASSERT_LT(worker, threads);
        ++runs[static_cast<size_t>(task)];
      });
      for (std::atomic<uint8_t> &run : runs)
        ASSERT_EQ(run, 1);
    }
  }
}

TEST(Team, ManyShortRunsAndSleepsBetween) {
  StatusOr<std::unique_ptr<Team>> team = Team::create(3);
  ASSERT_TRUE(team.isOk());
  std::atomic<int64_t> sum{0};
  for (int run = 0; run < 20000; ++run)
    (*team)->parallelFor(1 + run % 4,
                         [&](int64_t task, int) { sum += task + 1; });
  EXPECT_EQ(sum, 5000 * (1 + 3 + 6 + 10));
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3)); // workers sleep
    (*team)->parallelFor(3, [&](int64_t, int) { ++sum; });
  }
  EXPECT_EQ(sum, 100000 + 60);
}

TEST(Team, AbsurdSizesAreRefused) {
  EXPECT_EQ(Team::create(-1).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(Team::create(1 << 20).status().code(), StatusCode::InvalidArgument);
  EXPECT_GE(availableCores(), 1);
}

//===----------------------------------------------------------------------===//
// Launch and epilogue
//===----------------------------------------------------------------------===//

namespace {

struct Visits {
  std::vector<std::atomic<int>> *rows;
  const float *c;
  int64_t n;
  int64_t size; ///< rows of a chunk
  std::atomic<int> *wrong;
};

/// Counts visits; with `c`, rows must be complete (every element 3).
void visit(const void *args, int64_t begin, int64_t end, int64_t chunk) {
  const Visits &v = **static_cast<Visits *const *>(args);
  if (chunk >= DYNA_MAX_CHUNKS || begin != chunk * v.size)
    ++*v.wrong;
  for (int64_t row = begin; row < end; ++row) {
    ++(*v.rows)[static_cast<size_t>(row)];
    for (int64_t j = 0; v.c && j < v.n; ++j)
      if (v.c[row * v.n + j] != 3)
        ++*v.wrong;
  }
}

void expectOnce(std::vector<std::atomic<int>> &rows, std::atomic<int> &wrong) {
  for (std::atomic<int> &row : rows)
    ASSERT_EQ(row, 1);
  EXPECT_EQ(wrong, 0);
}

} // namespace

TEST(HostDevice, LaunchCutsRowsByTheContract) {
  Host host(2);
  for (int64_t rows : {0, 1, 31, 32, 33, 1000, 4097})
    for (int64_t least : {0, 1, 16, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(rows));
      std::atomic<int> wrong{0};
      Visits v = {&visits, nullptr, 0, dyna_chunk_rows(rows, least), &wrong};
      Visits *args = &v;
      ASSERT_EQ(
          dyna_launch(&host.context, visit, &args, sizeof(args), rows, least),
          DYNA_OK);
      expectOnce(visits, wrong);
    }
  EXPECT_EQ(dyna_launch(&host.context, nullptr, nullptr, 0, 1, 1),
            DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(dyna_launch(&host.context, visit, nullptr, 0, -1, 1),
            DYNA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(host.message).find("-1 rows"), std::string::npos);
  EXPECT_EQ(dyna_launch(nullptr, visit, nullptr, 0, 1, 1),
            DYNA_INVALID_ARGUMENT);
}

TEST(HostDevice, EpiloguesSeeCompleteRowsOnce) {
  Host host(2);
  struct Sizes {
    int64_t m, n, k;
  };
  // By rows, by columns, one slice, nothing to add, no columns.
  for (Sizes s : {Sizes{1500, 40, 3},
                  {300, 2000, 3},
                  {7, 5, 3},
                  {2048, 512, 3},
                  {9, 4, 0},
                  {5, 0, 3}})
    for (int64_t least : {1, 48, 600}) {
      std::vector<float> a(static_cast<size_t>(s.m * s.k), 1), c;
      std::vector<float> b(static_cast<size_t>(s.n * s.k), 1);
      c.assign(static_cast<size_t>(s.m * s.n), s.k ? 0.0f : 3.0f);
      std::vector<std::atomic<int>> visits(static_cast<size_t>(s.m));
      std::atomic<int> wrong{0};
      Visits v = {&visits, c.data(), s.n, dyna_chunk_rows(s.m, least), &wrong};
      Visits *args = &v;
      dyna_matmul p = {};
      p.m = s.m, p.n = s.n, p.k = s.k;
      p.a = a.data(), p.lda = s.k, p.b = b.data(), p.ldb = s.n;
      p.c = c.data(), p.ldc = s.n, p.accumulate = s.k == 0;
      p.epilogue = visit, p.epilogue_args = &args;
      p.epilogue_args_bytes = sizeof(args), p.epilogue_min_rows = least;
      ASSERT_EQ(dyna_matmul_f32(&host.context, &p), DYNA_OK) << host.message;
      expectOnce(visits, wrong);
    }
}

TEST(HostDevice, Bf16EpiloguesRunOnce) {
  for (Bf16Path path : {Bf16Path::Native, Bf16Path::Widen}) {
    Host host(2, path);
    for (int64_t m : {700, 2500}) {
      int64_t n = 1000, k = 96;
      std::vector<uint16_t> a(static_cast<size_t>(m * k)), b(k * n), c(m * n);
      std::vector<std::atomic<int>> visits(static_cast<size_t>(m));
      std::atomic<int> wrong{0};
      Visits v = {&visits, nullptr, 0, dyna_chunk_rows(m, 8), &wrong};
      Visits *args = &v;
      dyna_matmul p = {};
      p.m = m, p.n = n, p.k = k;
      p.a = a.data(), p.lda = k, p.b = b.data(), p.ldb = n;
      p.c = c.data(), p.ldc = n;
      p.epilogue = visit, p.epilogue_args = &args;
      p.epilogue_args_bytes = sizeof(args), p.epilogue_min_rows = 8;
      ASSERT_EQ(dyna_matmul_bf16(&host.context, &p), DYNA_OK) << host.message;
      expectOnce(visits, wrong);
    }
  }
}

//===----------------------------------------------------------------------===//
// Same bits for any number of threads
//===----------------------------------------------------------------------===//

namespace {

/// All kernels in a row on ragged data; the bytes of every result.
template <typename T>
std::vector<uint8_t>
runEverything(Host &host, decltype(dyna_attention_f32) forward,
              decltype(dyna_attention_grad_f32) backward,
              decltype(dyna_head_f32) head, dyna_matmul_function product,
              dyna_matmul_function wideProduct) {
  const int64_t width = 96, heads = 6, vocab = 700;
  std::vector<dyna_segment> segments;
  int64_t tokens = 0;
  for (int64_t n : {257, 3, 700, 64, 1, 90}) {
    segments.push_back({0, tokens, n, tokens, n, 0});
    tokens += n;
  }
  dyna_segments all = {};
  all.data = segments.data(), all.count = int64_t(segments.size());
  all.tq = all.tkv = tokens;
  std::mt19937 random(1);
  auto x = naive::randomElements<T>(tokens * width, random);
  auto w = naive::randomElements<T>(vocab * width, random);
  std::vector<T> y(tokens * width), out = y, dq = y, dk = y, dv = y, dx = y;
  std::vector<float> lse(tokens * heads), dw(vocab * width), dww(width * width);
  auto linear = dyna_attention_grad_workspace(sizeof(T), heads, heads, 16);
  auto headBytes = dyna_head_workspace(sizeof(T), width, vocab);
  std::vector<uint8_t> workspace(
      linear.tq * (tokens + 32) + linear.tkv * (tokens + 32) +
      headBytes.tq * (tokens + 32) + headBytes.constant);

  dyna_matmul p = {};
  p.m = tokens, p.n = width, p.k = width, p.transpose_b = 1;
  p.a = x.data(), p.b = w.data(), p.c = y.data();
  p.lda = p.ldb = p.ldc = width;
  EXPECT_EQ(product(&host.context, &p), DYNA_OK);
  p.m = width, p.k = tokens, p.transpose_a = 1, p.transpose_b = 0;
  p.b = y.data(), p.c = dww.data(), p.accumulate = 1;
  EXPECT_EQ(wideProduct(&host.context, &p), DYNA_OK);

  dyna_attention attention = {
      &all,  heads,    heads, 16,       0.25,  1,          0,     x.data(),
      width, y.data(), width, x.data(), width, out.data(), width, lse.data()};
  EXPECT_EQ(forward(&host.context, &attention), DYNA_OK);
  dyna_attention_grad grad = {attention, x.data(),  dq.data(),
                              width,     dk.data(), width,
                              dv.data(), width,     workspace.data()};
  EXPECT_EQ(backward(&host.context, &grad), DYNA_OK);

  std::vector<int32_t> targets(tokens);
  for (int64_t i = 0; i < tokens; ++i)
    targets[i] = i % 3 ? static_cast<int32_t>(i % vocab) : -1;
  double loss = 0;
  dyna_head h = {tokens,
                 width,
                 vocab,
                 x.data(),
                 w.data(),
                 targets.data(),
                 -1,
                 0,
                 &loss,
                 0.01,
                 dx.data(),
                 dw.data(),
                 workspace.data(),
                 wideProduct,
                 product,
                 wideProduct,
                 0,
                 0,
                 0,
                 tokens - (tokens + 2) / 3,
                 nullptr};
  EXPECT_EQ(head(&host.context, &h), DYNA_OK);

  std::vector<uint8_t> bytes;
  auto append = [&](const void *data, size_t size) {
    const auto *begin = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  for (const std::vector<T> *v : {&y, &out, &dq, &dk, &dv, &dx})
    append(v->data(), v->size() * sizeof(T));
  for (const std::vector<float> *v : {&lse, &dw, &dww})
    append(v->data(), v->size() * 4);
  append(&loss, sizeof(loss));
  return bytes;
}

} // namespace

TEST(HostDevice, ThreadsChangeNoBitF32) {
  std::set<std::vector<uint8_t>> results;
  for (int threads : {1, 2, 3, 2}) {
    Host host(threads);
    results.insert(runEverything<float>(host, dyna_attention_f32,
                                        dyna_attention_grad_f32, dyna_head_f32,
                                        dyna_matmul_f32, dyna_matmul_f32));
  }
  EXPECT_EQ(results.size(), 1u);
}

TEST(HostDevice, ThreadsChangeNoBitBf16) {
  for (Bf16Path path : {Bf16Path::Native, Bf16Path::Widen}) {
    std::set<std::vector<uint8_t>> results;
    for (int threads : {1, 2, 3, 2}) {
      Host host(threads, path);
      results.insert(runEverything<naive::Bf16>(
          host, dyna_attention_bf16, dyna_attention_grad_bf16, dyna_head_bf16,
          dyna_matmul_bf16, dyna_matmul_bf16_f32));
    }
    EXPECT_EQ(results.size(), 1u);
  }
}

TEST(HostDevice, ThreadsChangeNoBitOfSharedKeys) {
  // Slices of one sample in one micro-batch: all add to the same keys'
  // gradients.
  const int64_t slices = 64, rows = 20, keys = 250, width = 128;
  std::vector<dyna_segment> segments;
  for (int64_t i = 0; i < slices; ++i)
    segments.push_back({0, i * rows, rows, 0, keys, keys - rows});
  dyna_segments all = {};
  all.data = segments.data(), all.count = slices;
  all.tq = slices * rows, all.tkv = keys;
  std::mt19937 random(2);
  auto q = naive::randomElements<float>(slices * rows * width, random);
  auto k = naive::randomElements<float>(keys * width, random);
  std::set<std::vector<float>> results;
  for (int threads : {1, 2, 4, 3, 4, 2, 4, 2, 2, 2}) {
    Host host(threads);
    std::vector<float> out(q.size()), dq(q.size()), lse(q.size());
    std::vector<float> dk(k.size()), dv(k.size()), workspace(q.size());
    dyna_attention p = {&all,  1,          1,     width,     0.2,   1,
                        0,     q.data(),   width, k.data(),  width, k.data(),
                        width, out.data(), width, lse.data()};
    ASSERT_EQ(dyna_attention_f32(&host.context, &p), DYNA_OK) << host.message;
    dyna_attention_grad grad = {p,         q.data(),  dq.data(),
                                width,     dk.data(), width,
                                dv.data(), width,     workspace.data()};
    ASSERT_EQ(dyna_attention_grad_f32(&host.context, &grad), DYNA_OK);
    dk.insert(dk.end(), dv.begin(), dv.end());
    results.insert(dk);
  }
  EXPECT_EQ(results.size(), 1u);
}

//===----------------------------------------------------------------------===//
// Details
//===----------------------------------------------------------------------===//

TEST(HostDevice, PiecesAddUpAndAreFewKinds) {
  std::set<int64_t> kinds;
  for (int64_t size = 0; size < 3000; ++size) {
    std::vector<int64_t> cut = pieces(size, 1024);
    EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), int64_t(0)), size);
    kinds.insert(cut.begin(), cut.end());
  }
  EXPECT_LE(kinds.size(), 37u);
}

/// Returns how many pages of a range have memory.
static int64_t pagesThere(const Buffer &buffer) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> there(
      static_cast<size_t>((buffer.bytes() + page - 1) / page));
  EXPECT_EQ(::mincore(buffer.data(), static_cast<size_t>(buffer.bytes()),
                      there.data()),
            0);
  return std::count_if(there.begin(), there.end(),
                       [](unsigned char one) { return (one & 1) != 0; });
}

/// A reserved buffer has memory for the bytes that were asked for, and for those that
/// were written and not given back. Large pages may add the rest of one.
TEST(HostDevice, ReservedMemoryIsTakenLate) {
  Host host(1);
  constexpr int64_t bytes = 64 << 20, taken = 4 << 20, large = 2 << 20;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  auto buffer = host.device->reserve(bytes, taken);
  ASSERT_TRUE(buffer.isOk()) << buffer.status().message();
  EXPECT_EQ((*buffer)->bytes(), bytes);
  EXPECT_GE(pagesThere(**buffer), taken / page);
  EXPECT_LE(pagesThere(**buffer), (taken + 2 * large) / page);
  auto *at = static_cast<unsigned char *>((*buffer)->data());
  EXPECT_EQ(at[bytes - 1], 0);
  std::fill(at, at + bytes, 7);
  EXPECT_EQ(pagesThere(**buffer), bytes / page);
  // Half a page at each end has bytes that stay.
  const int64_t begin = (8 << 20) + page / 2, end = bytes - page / 2;
  ASSERT_TRUE(host.device->giveBack(**buffer, begin, end - begin).isOk());
  EXPECT_LE(pagesThere(**buffer), ((8 << 20) + 3 * large) / page);
  EXPECT_EQ(at[begin - 1], 7);
  EXPECT_EQ(at[begin], 7);
  EXPECT_EQ(at[end], 7);
  EXPECT_EQ(at[begin + page], 0);
  at[begin + page] = 9;
  EXPECT_EQ(at[begin + page], 9);
  EXPECT_FALSE(host.device->giveBack(**buffer, bytes - 1, 2).isOk());
  EXPECT_FALSE(host.device->reserve(4, 5).isOk());
  EXPECT_FALSE(host.device->reserve(-1, -1).isOk());
}

TEST(HostDevice, DescribesItself) {
  Host host(2, Bf16Path::Widen);
  EXPECT_NE(host.device->describe().find("2 threads"), std::string::npos);
  EXPECT_EQ(host.device->describeBf16Products(), "widened to f32");
}

TEST(HostDevice, HeadsWithAnotherNumberOfTargetsAreRefused) {
  Host host(1);
  std::vector<float> x(12), w(200);
  std::vector<int32_t> targets = {3, -1, 1};
  std::vector<uint8_t> workspace(
      static_cast<size_t>(dyna_head_workspace(4, 4, 50).constant + 8 * 32));
  double loss = 0;
  dyna_head head = {};
  head.rows = 3, head.width = 4, head.vocab = 50;
  head.x = x.data(), head.w = w.data(), head.targets = targets.data();
  head.ignore_index = -1, head.loss_sum = &loss;
  head.workspace = workspace.data(), head.matmul = dyna_matmul_f32;
  head.target_rows = 3;
  EXPECT_EQ(dyna_head_f32(&host.context, &head), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(host.message,
               "head_f32: 2 of 3 rows have a target, but 3 were announced");
}
