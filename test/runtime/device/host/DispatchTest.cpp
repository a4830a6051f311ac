//===- DispatchTest.cpp - Several backends in one process -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host and a backend that only counts: which of them a call reaches is said
// by its context, and for every function of Kernels.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/device/host/HostDevice.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

using namespace dyna;

namespace {

/// What `dyna_context::device` points to, with what this backend has behind it.
struct CountingDevice {
  dyna_device head;
  std::map<std::string, int> calls;
  const void *last = nullptr; ///< argument of the last call
};

void count(dyna_context *context, const char *name, const void *argument) {
  auto *device = reinterpret_cast<CountingDevice *>(context->device);
  ++device->calls[name];
  device->last = argument;
}

#define DYNA_COUNTING(name, Description)                                       \
  [](dyna_context *context, const Description *p) -> dyna_status {             \
    count(context, #name, p);                                                  \
    return DYNA_OK;                                                            \
  }

constexpr dyna_kernels kCounting = {
    "counting",
    [](dyna_context *context, dyna_rows_body, const void *args, int64_t,
       int64_t rows, int64_t) -> dyna_status {
      count(context, "launch", args);
      return rows < 0 ? DYNA_INTERNAL : DYNA_OK;
    },
    [](dyna_context *context, const int32_t *ids, int64_t,
       int64_t) -> dyna_status {
      count(context, "check_ids", ids);
      return DYNA_OK;
    },
    [](dyna_context *context, const int64_t *positions, int64_t,
       int64_t) -> dyna_status {
      count(context, "check_positions", positions);
      return DYNA_OK;
    },
    DYNA_COUNTING(matmul_f32, dyna_matmul),
    DYNA_COUNTING(matmul_bf16, dyna_matmul),
    DYNA_COUNTING(matmul_bf16_f32, dyna_matmul),
    DYNA_COUNTING(matmul_f64, dyna_matmul),
    DYNA_COUNTING(attention_f32, dyna_attention),
    DYNA_COUNTING(attention_f64, dyna_attention),
    DYNA_COUNTING(attention_bf16, dyna_attention),
    DYNA_COUNTING(attention_grad_f32, dyna_attention_grad),
    DYNA_COUNTING(attention_grad_f64, dyna_attention_grad),
    DYNA_COUNTING(attention_grad_bf16, dyna_attention_grad),
    DYNA_COUNTING(head_f32, dyna_head),
    DYNA_COUNTING(head_f64, dyna_head),
    DYNA_COUNTING(head_bf16, dyna_head),
    [](dyna_context *context, const double *losses, int64_t,
       double *) -> dyna_status {
      count(context, "note_losses", losses);
      return DYNA_OK;
    },
    DYNA_COUNTING(clip_norm, dyna_clip),
    DYNA_COUNTING(place_rows, dyna_place),
    [](dyna_context *context, const dyna_device_code *, int64_t,
       const void *args, int64_t, int64_t) -> dyna_status {
      count(context, "launch_kernel", args);
      return DYNA_OK;
    },
    DYNA_COUNTING(sparse_matmul_f32, dyna_sparse_matmul),
    DYNA_COUNTING(sparse_matmul_bf16, dyna_sparse_matmul),
    DYNA_COUNTING(sparse_matmul_bf16_f32, dyna_sparse_matmul),
    DYNA_COUNTING(sparse_matmul_f64, dyna_sparse_matmul),
    DYNA_COUNTING(take_sparse_values, dyna_sparse_values),
};

/// Functions of a backend: what stands in its table beside its name.
constexpr size_t kFunctions = (sizeof(dyna_kernels) - sizeof(const char *)) /
                              sizeof(dyna_matmul_function);

/// Calls all of them. The arguments are null or empty: a backend that looks at
/// them refuses them.
std::map<std::string, dyna_status> callAll(dyna_context *context) {
  std::map<std::string, dyna_status> result;
  result["launch"] = dyna_launch(context, nullptr, nullptr, 0, 1, 1);
  result["check_ids"] = dyna_check_ids(context, nullptr, 1, 1);
  result["check_positions"] = dyna_check_positions(context, nullptr, 1, 1);
#define DYNA_CALL(name) result[#name] = dyna_##name(context, nullptr)
  DYNA_CALL(matmul_f32);
  DYNA_CALL(matmul_bf16);
  DYNA_CALL(matmul_bf16_f32);
  DYNA_CALL(matmul_f64);
  DYNA_CALL(attention_f32);
  DYNA_CALL(attention_f64);
  DYNA_CALL(attention_bf16);
  DYNA_CALL(attention_grad_f32);
  DYNA_CALL(attention_grad_f64);
  DYNA_CALL(attention_grad_bf16);
  DYNA_CALL(head_f32);
  DYNA_CALL(head_f64);
  DYNA_CALL(clip_norm);
  DYNA_CALL(place_rows);
  DYNA_CALL(sparse_matmul_f32);
  DYNA_CALL(sparse_matmul_bf16);
  DYNA_CALL(sparse_matmul_bf16_f32);
  DYNA_CALL(sparse_matmul_f64);
  DYNA_CALL(take_sparse_values);
  result["note_losses"] = dyna_note_losses(context, nullptr, 1, nullptr);
  result["launch_kernel"] =
      dyna_launch_kernel(context, nullptr, 0, nullptr, 0, 1);
  DYNA_CALL(head_bf16);
  return result;
}

} // namespace

TEST(Dispatch, EveryFunctionReachesTheDeviceOfItsContext) {
  auto host = HostDevice::create(1);
  ASSERT_TRUE(host.isOk());
  CountingDevice counting{{&kCounting}, {}, nullptr};
  char message[256] = "";
  dyna_context onHost = {}, onCounting = {};
  onHost.message = message;
  onHost.message_capacity = sizeof(message);
  (*host)->bind(onHost);
  onCounting.device = &counting.head;

  for (int time = 1; time <= 2; ++time) {
    std::map<std::string, dyna_status> there = callAll(&onCounting);
    EXPECT_EQ(there.size(), kFunctions);
    for (auto [name, status] : there) {
      EXPECT_EQ(status, DYNA_OK) << name;
      EXPECT_EQ(counting.calls[name], time) << name;
    }
    // The host looks at what it is given, and nothing of it goes astray.
    for (auto [name, status] : callAll(&onHost))
      EXPECT_EQ(status, DYNA_INVALID_ARGUMENT) << name;
    EXPECT_EQ(counting.calls.size(), kFunctions);
  }
}

TEST(Dispatch, ArgumentsAndStatusArePassedOn) {
  CountingDevice counting{{&kCounting}, {}, nullptr};
  dyna_context context = {};
  context.device = &counting.head;
  int32_t ids[2];
  EXPECT_EQ(dyna_launch(&context, nullptr, ids, 8, -1, 1), DYNA_INTERNAL);
  EXPECT_EQ(counting.last, ids);
  dyna_head head = {};
  EXPECT_EQ(dyna_head_f64(&context, &head), DYNA_OK);
  EXPECT_EQ(counting.last, &head);
}

TEST(Dispatch, NoDeviceAndNoFunctionAreRefused) {
  char message[256] = "";
  dyna_context context = {};
  context.message = message;
  context.message_capacity = sizeof(message);
  for (auto [name, status] : callAll(&context))
    EXPECT_EQ(status, DYNA_INVALID_ARGUMENT) << name;
  EXPECT_STREQ(message, "head_bf16 was called with a context that is bound to "
                        "no device");
  for (auto [name, status] : callAll(nullptr))
    EXPECT_EQ(status, DYNA_INVALID_ARGUMENT) << name;

  dyna_kernels few = {};
  few.backend = "small";
  dyna_device device{&few};
  context.device = &device;
  for (auto [name, status] : callAll(&context))
    EXPECT_EQ(status, DYNA_INVALID_ARGUMENT) << name;
  EXPECT_STREQ(message, "head_bf16 was called, which devices of the backend "
                        "small do not have");
}
