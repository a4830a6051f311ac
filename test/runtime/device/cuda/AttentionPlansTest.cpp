//===- AttentionPlansTest.cpp - Which calls a plan of cuDNN's may do ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is around plans, which need cuDNN (CudnnPlanTest.cpp) and to run a GPU
// (GpuConformanceTest.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/AttentionPlans.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/HandKernels.h"
#include "test/Patience.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>

using namespace dyna;
using namespace dyna::cuda;
using testing::HasSubstr;
using testing::Not;

namespace {

/// A call that a plan may do.
struct Problem {
  Problem() {
    segments.count = 3, segments.longest_query = segments.longest_key = 300;
    segments.tq = segments.tkv = 700;
    segments.keys_are_queries = 1;
    dyna_attention &p = grad.forward;
    p.segments = &segments;
    p.heads = 8, p.kv_heads = 2, p.head_dim = 64;
    p.scale = 0.125, p.causal = 1;
    p.q = at(0), p.k = at(1024), p.v = at(1280), p.out = at(4096);
    p.q_stride = p.k_stride = p.v_stride = 768, p.out_stride = 512;
    p.lse = at(8192);
    grad.dout = at(4096), grad.dq = at(0), grad.dk = at(1024);
    grad.dv = at(1280);
    grad.dq_stride = grad.dk_stride = grad.dv_stride = 768;
  }
  static void *at(uintptr_t address) {
    return reinterpret_cast<void *>(address + 65536);
  }
  const char *whyNot() const { return whyNotPlanned(grad.forward); }
  const char *whyNotGrad() const { return whyNotPlanned(grad); }

  dyna_segments segments = {};
  dyna_attention_grad grad = {};
};

} // namespace

TEST(AttentionPlans, SizesAreRoundedUpToClasses) {
  Problem problem;
  AttentionClass shape = AttentionClass::of(problem.grad.forward);
  EXPECT_EQ(shape.segments, 4);
  EXPECT_EQ(shape.longest, 512);
  EXPECT_EQ(shape.tokens, 768);
  EXPECT_FALSE(shape.isGradient);
  EXPECT_EQ(shape.text(), "attention of 4 segments of up to 512 tokens, 768 in "
                          "all, causal, 8 heads of 64 with 2 of keys");
  // What fits is of the same class, what does not is of another.
  problem.segments.count = 4, problem.segments.longest_query = 512;
  problem.segments.tq = 768;
  EXPECT_EQ(AttentionClass::of(problem.grad.forward), shape);
  for (int64_t dyna_segments::*size :
       {&dyna_segments::count, &dyna_segments::longest_query,
        &dyna_segments::tq}) {
    ++(problem.segments.*size);
    EXPECT_FALSE(AttentionClass::of(problem.grad.forward) == shape);
    --(problem.segments.*size);
  }
  for (int64_t dyna_attention::*number :
       {&dyna_attention::heads, &dyna_attention::kv_heads,
        &dyna_attention::head_dim, &dyna_attention::q_stride,
        &dyna_attention::k_stride, &dyna_attention::v_stride,
        &dyna_attention::out_stride}) {
    problem.grad.forward.*number += 8;
    EXPECT_FALSE(AttentionClass::of(problem.grad.forward) == shape);
    problem.grad.forward.*number -= 8;
  }
  problem.grad.forward.causal = 0;
  EXPECT_FALSE(AttentionClass::of(problem.grad.forward) == shape);
  problem.grad.forward.causal = 1, problem.grad.forward.scale = 0.25;
  EXPECT_FALSE(AttentionClass::of(problem.grad.forward) == shape);
}

TEST(AttentionPlans, GradientsHaveClassesOfTheirOwn) {
  Problem problem;
  AttentionClass ordered = AttentionClass::of(problem.grad, true);
  EXPECT_FALSE(ordered == AttentionClass::of(problem.grad, false));
  EXPECT_FALSE(ordered == AttentionClass::of(problem.grad.forward));
  for (int64_t dyna_attention_grad::*stride :
       {&dyna_attention_grad::dq_stride, &dyna_attention_grad::dk_stride,
        &dyna_attention_grad::dv_stride}) {
    problem.grad.*stride += 8;
    EXPECT_FALSE(AttentionClass::of(problem.grad, true) == ordered);
    problem.grad.*stride -= 8;
  }
  EXPECT_EQ(AttentionClass::of(problem.grad, true), ordered);
}

TEST(AttentionPlans, SmallMicroBatchesHaveTheSmallestClass) {
  Problem problem;
  problem.segments.count = 1, problem.segments.longest_query = 1;
  problem.segments.tq = 1;
  AttentionClass shape = AttentionClass::of(problem.grad.forward);
  EXPECT_EQ(shape.segments, 1);
  EXPECT_EQ(shape.longest, 128);
  EXPECT_EQ(shape.tokens, 128);
  // Tables, and sums that nobody wants: multiples of 256 bytes.
  EXPECT_EQ(shape.beforePlan(), 256 + 5 * 256 + 4 * 128 * 8);
  EXPECT_EQ(AttentionClass::of(problem.grad, true).beforePlan(), 256 + 8 * 256);
}

TEST(AttentionPlans, WhatPlansDoNotDoIsForOwnKernels) {
  Problem problem;
  EXPECT_EQ(problem.whyNot(), nullptr);
  EXPECT_EQ(problem.whyNotGrad(), nullptr);
  auto refuses = [&](auto &field, auto value, const char *why) {
    auto before = field;
    field = value;
    EXPECT_THAT(problem.whyNot() ? problem.whyNot() : "", HasSubstr(why));
    EXPECT_THAT(problem.whyNotGrad() ? problem.whyNotGrad() : "",
                HasSubstr(why));
    field = before;
  };
  dyna_attention &p = problem.grad.forward;
  refuses(problem.segments.keys_are_queries, 0, "keys");
  refuses(problem.segments.tkv, 701, "keys");
  refuses(p.head_dim, 60, "multiple of 8");
  refuses(p.head_dim, 264, "more than 256");
  refuses(p.q_stride, 772, "rows");
  refuses(p.k_stride, 769, "rows");
  refuses(p.v_stride, 770, "rows");
  refuses(p.out_stride, 516, "rows");
  refuses(p.q, Problem::at(8), "16 bytes");
  refuses(p.k, Problem::at(2), "16 bytes");
  refuses(p.v, Problem::at(12), "16 bytes");
  refuses(p.out, Problem::at(6), "16 bytes");
  // Of gradients alone.
  for (int64_t dyna_attention_grad::*stride :
       {&dyna_attention_grad::dq_stride, &dyna_attention_grad::dk_stride,
        &dyna_attention_grad::dv_stride}) {
    problem.grad.*stride += 4;
    EXPECT_THAT(problem.whyNotGrad(), HasSubstr("rows"));
    EXPECT_EQ(problem.whyNot(), nullptr);
    problem.grad.*stride -= 4;
  }
  for (void *dyna_attention_grad::*place :
       {&dyna_attention_grad::dq, &dyna_attention_grad::dk,
        &dyna_attention_grad::dv}) {
    void *before = problem.grad.*place;
    problem.grad.*place = Problem::at(8);
    EXPECT_THAT(problem.whyNotGrad(), HasSubstr("16 bytes"));
    problem.grad.*place = before;
  }
  problem.grad.dout = Problem::at(8);
  EXPECT_THAT(problem.whyNotGrad(), HasSubstr("16 bytes"));
}

TEST(AttentionPlans, TheOneNotUsedForLongestMakesRoom) {
  RecentlyUsed<int, std::shared_ptr<int>> plans(2);
  std::weak_ptr<int> first = plans.add(1, std::make_shared<int>(10));
  std::weak_ptr<int> second = plans.add(2, std::make_shared<int>(20));
  EXPECT_TRUE(plans.isFull());
  EXPECT_EQ(plans.find(3), nullptr);
  ASSERT_NE(plans.find(1), nullptr);
  plans.add(3, std::make_shared<int>(30));
  EXPECT_TRUE(second.expired());
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(plans.find(2), nullptr);
  ASSERT_NE(plans.find(3), nullptr);
  EXPECT_EQ(**plans.find(3), 30);
  EXPECT_EQ(**plans.find(1), 10);
}

//===----------------------------------------------------------------------===//
// On the driver's stand-in
//===----------------------------------------------------------------------===//

namespace {

class AttentionPlansTest : public testing::Test {
protected:
  AttentionPlansTest() {
    settings.set(kLibraryPathVariable, DYNA_STANDINS "/cuda");
  }
  std::unique_ptr<CudaDevice> make(const CudaOptions &options) {
    StatusOr<std::unique_ptr<CudaDevice>> made = CudaDevice::create(options);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return std::move(*made);
  }
  static CudaOptions withCudnn() {
    CudaOptions options;
    options.threads = 1;
    options.attention.useLibrary = true;
    return options;
  }

  standins::Settings settings;
};

} // namespace

TEST_F(AttentionPlansTest, DevicesSayWhatTheyUse) {
  EXPECT_THAT(make({0, 1})->describe(),
              HasSubstr("attention by own kernels (cuDNN is not wanted)"));
  settings.set("DYNA_STANDIN_CAPABILITY", 80);
  std::unique_ptr<CudaDevice> device = make(withCudnn());
  EXPECT_THAT(device->describe(),
              HasSubstr("attention by own kernels (cuDNN is taken from compute "
                        "capability 9.0 on)"));
  EXPECT_EQ(device->scratchBytes(), device->products().scratchBytes());
  EXPECT_FALSE(device->attention().properties().isOk());
}

TEST_F(AttentionPlansTest, OldLibrariesAndWhatIsNoneAreOneLine) {
  settings.set("DYNA_STANDIN_CAPABILITY", 90);
  settings.set(kLibraryPathVariable,
               DYNA_STANDINS "/cuda:" DYNA_STANDINS "/old");
  std::string old = make(withCudnn())->describe();
#ifdef DYNA_HAS_CUDNN
  EXPECT_THAT(old, HasSubstr("attention by own kernels (" DYNA_STANDINS
                             "/old/libcudnn.so.9 is of version 9.7.1; 9.8.0 or "
                             "newer is needed)"));
#else
  EXPECT_THAT(old, HasSubstr("attention by own kernels (compiled without the "
                             "headers of cuDNN and of its frontend)"));
#endif
  // A file that is none.
  const std::string folder = testing::TempDir();
  const std::string path = folder + "/libcudnn.so.9";
  std::ofstream(path) << "no library";
  settings.set(kLibraryPathVariable, folder + ":" DYNA_STANDINS "/cuda");
  std::string broken = make(withCudnn())->describe();
  std::remove(path.c_str());
  EXPECT_THAT(broken, HasSubstr("attention by own kernels ("));
  EXPECT_THAT(broken, Not(HasSubstr("\n")));
#ifdef DYNA_HAS_CUDNN
  EXPECT_THAT(broken, HasSubstr("libcudnn.so.9 cannot be used: "));
#endif
}

TEST_F(AttentionPlansTest, TablesSayWhereSegmentsBegin) {
  std::mt19937 random(3);
  for (int64_t count : {0, 1, 5, 128, 200}) {
    SCOPED_TRACE(count);
    std::unique_ptr<CudaDevice> device = make({0, 1});
    Stream &stream = device->stream(CudaStreamRole::Compute);
    dyna_context context = {};
    char message[512] = "";
    context.message = message, context.message_capacity = sizeof(message);
    device->bind(context, stream);
    ASSERT_TRUE(device->loadCode(dyna_cuda_kernels).isOk());

    std::vector<dyna_segment> segments;
    int64_t rows = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t length = static_cast<int64_t>(random() % 50); // some empty
      segments.push_back({i, rows, length, rows, length, 0});
      rows += length;
    }
    const int64_t filled = count + 7, pitch = filled + 9, tables = 8;
    std::vector<int64_t> expected, offsets(pitch * tables, -1);
    std::vector<int32_t> lengths(filled + 1, -1), expectedLengths = lengths;
    expected = offsets;
    gpu::AttentionTablesArguments args = {};
    for (int64_t table = 0; table < tables; ++table) {
      // Beyond what 32 bits hold.
      args.strides[table] = (table + 1) * (int64_t(1) << 30);
      for (int64_t i = 0; i <= filled; ++i)
        expected[table * pitch + i] =
            (i < count ? segments[i].q_begin : rows) * args.strides[table];
    }
    for (int64_t i = 0; i < filled; ++i)
      expectedLengths[i] =
          i < count ? static_cast<int32_t>(segments[i].q_len) : 0;

    auto soon = [] { return patienceEnds(); };
    auto put = [&](const auto &data) {
      const auto bytes = static_cast<int64_t>(data.size() * sizeof(data[0]));
      auto buffer = std::move(*device->allocate(bytes));
      EXPECT_TRUE(
          device->copyToDevice(stream, *buffer, 0, data.data(), bytes).isOk());
      EXPECT_TRUE(device->synchronize(stream, soon()).isOk());
      return buffer;
    };
    auto segmentData = put(segments), offsetData = put(offsets),
         lengthData = put(lengths);
    args.segments = static_cast<const dyna_segment *>(segmentData->data());
    args.count = count, args.filled = filled, args.rows = rows;
    args.offsets = static_cast<int64_t *>(offsetData->data());
    args.lengths = static_cast<int32_t *>(lengthData->data());
    args.pitch = pitch, args.tables = tables;
    const int64_t blocks = (filled + gpu::kTablesThreads) / gpu::kTablesThreads;
    ASSERT_EQ(launch<gpu::Kernel::attention_tables>(&context, args, blocks),
              DYNA_OK)
        << message;
    ASSERT_TRUE(device
                    ->copyToHost(stream, offsets.data(), *offsetData, 0,
                                 offsetData->bytes())
                    .isOk());
    ASSERT_TRUE(device
                    ->copyToHost(stream, lengths.data(), *lengthData, 0,
                                 lengthData->bytes())
                    .isOk());
    ASSERT_TRUE(device->synchronize(stream, soon()).isOk());
    EXPECT_EQ(offsets, expected);
    EXPECT_EQ(lengths, expectedLengths);
  }
}
