//===- PlannedAttentionTest.cpp - Attention by cuDNN's plans --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The suite of attention, and what it does not ask, on cuDNN's stand-in: graphs and
// plans are the real library's, loops do what they say (CudnnStandin.cpp).
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/driver/Library.h"
#include "test/Patience.h"
#include "test/runtime/device/KernelConformance.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;
using testing::Not;

namespace {

CudaOptions planned() {
  setenv(cuda::kLibraryPathVariable,
         DYNA_STANDINS "/cudnn:" DYNA_STANDINS "/cuda", 1);
  CudaOptions options;
  options.threads = 1;
  options.attention.useLibrary = true;
  options.attention.workspaceBytes = 64 << 20;
  return options;
}

StatusOr<std::unique_ptr<CudaDevice>> make(const CudaOptions &options) {
  DYNA_ASSIGN_OR_RETURN(auto device, CudaDevice::create(options));
  if (options.attention.useLibrary && !device->attention().whyNot().empty())
    return Status::invalidArgument(device->attention().whyNot());
  return device;
}

using Values = std::vector<uint16_t>;

/// Calls of heads of 32 elements, q, k and v beside each other.
class Calls {
public:
  explicit Calls(const CudaOptions &options)
      : device(std::move(*make(options))) {}

  /// A call that was given to a stream.
  struct Given {
    Stream *stream;
    std::vector<std::unique_ptr<Buffer>> buffers; ///< the last has the result
  };

  /// Forward, over segments of these lengths.
  Given give(const std::vector<int64_t> &lengths, int64_t heads = 2,
             CudaStreamRole role = CudaStreamRole::Compute) {
    Given given = {&device->stream(role), {}};
    dyna_context context = {};
    char message[512] = "";
    context.message = message, context.message_capacity = sizeof(message);
    device->bind(context, *given.stream);
    std::vector<dyna_segment> rows;
    dyna_segments segments = {};
    segments.keys_are_queries = 1;
    for (int64_t n : lengths) {
      rows.push_back({0, segments.tq, n, segments.tq, n, 0});
      segments.tq += n;
      segments.longest_query = std::max(segments.longest_query, n);
    }
    segments.tkv = segments.tq, segments.longest_key = segments.longest_query;
    segments.count = static_cast<int64_t>(rows.size());
    std::mt19937 random(7);
    const int64_t width = heads * 32;
    segments.data = static_cast<const dyna_segment *>(put(rows, given));
    const auto *first = static_cast<const uint16_t *>(put(
        naive::randomElements<Bf16>(segments.tq * 3 * width, random), given));
    dyna_attention p = {};
    p.segments = &segments;
    p.heads = p.kv_heads = heads, p.head_dim = 32;
    p.scale = 0.25, p.causal = 1;
    p.q = first, p.k = first + width, p.v = first + 2 * width;
    p.q_stride = p.k_stride = p.v_stride = 3 * width;
    p.out = put(Values(size_t(segments.tq * width)), given);
    p.out_stride = width;
    EXPECT_EQ(dyna_attention_bf16(&context, &p), DYNA_OK) << message;
    return given;
  }
  Values take(const Given &given) {
    const Buffer &result = *given.buffers.back();
    Values values(size_t(result.bytes() / 2));
    Status status = device->copyToHost(*given.stream, values.data(), result, 0,
                                       result.bytes());
    if (status.isOk())
      status = device->synchronize(*given.stream, soon());
    EXPECT_TRUE(status.isOk()) << status.message();
    return values;
  }
  Values out(const std::vector<int64_t> &lengths) {
    return take(give(lengths));
  }

  std::unique_ptr<CudaDevice> device;

private:
  static Device::Deadline soon() { return patienceEnds(); }
  template <typename T> void *put(const std::vector<T> &data, Given &given) {
    const auto bytes = static_cast<int64_t>(data.size() * sizeof(T));
    given.buffers.push_back(std::move(*device->allocate(bytes)));
    Buffer &buffer = *given.buffers.back();
    EXPECT_TRUE(
        device->copyToDevice(*given.stream, buffer, 0, data.data(), bytes)
            .isOk());
    EXPECT_TRUE(device->synchronize(*given.stream, soon()).isOk());
    return buffer.data();
  }
};

void expectClose(const Values &a, const Values &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(naive::toDouble(Bf16{a[i]}), naive::toDouble(Bf16{b[i]}),
                1.0 / 64)
        << i;
}

} // namespace

std::vector<Backend> dyna::conformanceBackends() {
  auto makeDevice = []() -> StatusOr<std::unique_ptr<Device>> {
    DYNA_ASSIGN_OR_RETURN(auto device, make(planned()));
    return std::unique_ptr<Device>(std::move(device));
  };
  return {{"Planned", makeDevice, dyna_matmul_f64, /*optional=*/false,
           /*readsSegments=*/false, /*finishes=*/false}};
}

TEST(PlannedAttention, CallsOfAClassShareAPlan) {
  Calls calls(planned());
  CudaOptions options = planned();
  options.attention.useLibrary = false;
  Calls own(options);
  expectClose(calls.out({20, 0, 5}), own.out({20, 0, 5}));
  expectClose(calls.out({9, 9, 9, 9}), own.out({9, 9, 9, 9}));
  EXPECT_EQ(calls.device->attention().calls(), 2);
  EXPECT_EQ(own.device->attention().calls(), 0);
  EXPECT_THAT(calls.device->describe(), HasSubstr(", attention by cuDNN 9."));
  EXPECT_THAT(calls.device->describe(), HasSubstr(", plans of 1 classes"));
  EXPECT_EQ(calls.device->scratchBytes(),
            calls.device->products().scratchBytes() + (64 << 20));
}

TEST(PlannedAttention, StreamsHaveTheWorkspaceInTurn) {
  setenv("DYNA_STANDIN_SEED", "1", 1);
  Calls calls(planned());
  const std::vector<int64_t> lengths[] = {{30, 10}, {3, 25}};
  const Values expected[] = {calls.out(lengths[0]), calls.out(lengths[1])};
  const CudaStreamRole roles[] = {CudaStreamRole::Compute,
                                  CudaStreamRole::Send};
  for (int round = 0; round < 30; ++round) {
    // Nothing is waited for from one call to the next but their data.
    std::vector<Calls::Given> given;
    for (int i = 0; i < 4; ++i)
      given.push_back(calls.give(lengths[i % 2], 2, roles[i % 2]));
    for (int i = 3; i >= 0; --i)
      ASSERT_EQ(calls.take(given[i]), expected[i % 2]) << round << ' ' << i;
  }
  unsetenv("DYNA_STANDIN_SEED");
}

TEST(PlannedAttention, PlansMakeRoomForEachOther) {
  CudaOptions options = planned();
  options.attention.mostPlans = 1;
  Calls calls(options);
  Values first = calls.out({20}), second = calls.out({20, 3});
  EXPECT_EQ(calls.out({20}), first);
  EXPECT_EQ(calls.out({20, 3}), second);
  EXPECT_EQ(calls.device->attention().calls(), 4);
  EXPECT_THAT(calls.device->describe(), HasSubstr(", plans of 1 classes"));
}

/// Of another stream, whose work nobody has asked for, and which thus runs when all does.
TEST(PlannedAttention, APlanThatMakesRoomHasRun) {
  CudaOptions options = planned();
  options.attention.mostPlans = 1;
  Calls calls(options);
  const Values expected = calls.out({20});
  Calls::Given first = calls.give({20}, 2, CudaStreamRole::Send);
  Calls::Given second = calls.give({20, 3});
  EXPECT_EQ(calls.take(second).size(), 23 * 64u);
  EXPECT_EQ(calls.take(first), expected);
}

TEST(PlannedAttention, APlanThatNeedsTooMuchIsNotUsed) {
  CudaOptions options = planned();
  options.attention.workspaceBytes = 2048;
  Calls calls(options);
  EXPECT_EQ(calls.out({20}).size(), 20 * 64u);
  EXPECT_EQ(calls.device->attention().calls(), 0);
  EXPECT_THAT(calls.device->describe(),
              HasSubstr(", 1 classes by own kernels (attention of 1 segments "
                        "of up to 128 tokens, 128 in all, causal, 2 heads of "
                        "32 needs "));
}

TEST(PlannedAttention, TheDeviceHasProperties) {
  Calls calls(planned());
  StatusOr<std::string> text = calls.device->attention().properties();
  ASSERT_TRUE(text.isOk()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("\"deviceName\":\"NVIDIA H200\""));
}
