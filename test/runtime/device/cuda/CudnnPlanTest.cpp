//===- CudnnPlanTest.cpp - cuDNN has plans for attention --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans are made by the library itself, as far as a device is not needed: from stored
// properties of an H200 and with the driver's stand-in, to which it gives the kernels
// that it has compiled. Without the library all is skipped, and counted. With
// DYNA_EVERY_CLASS set, all classes are planned, else some in which any two sizes
// meet.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/CudnnPlan.h"
#include "runtime/device/cuda/driver/Library.h"
#include "test/standins/DriverStandin.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

using namespace dyna;
using namespace dyna::cuda;
using testing::HasSubstr;
using testing::Not;

namespace {

enum class Part { Forward, Ordered, AnyOrder };

/// q, k and v, and their gradients, lie side by side.
AttentionClass classOf(Part part, int64_t headDim, int64_t heads,
                       int64_t kvHeads, int64_t segments, int64_t longest,
                       bool causal) {
  AttentionClass shape;
  shape.isGradient = part != Part::Forward;
  shape.isOrdered = part == Part::Ordered;
  shape.causal = causal;
  shape.segments = segments, shape.longest = longest;
  shape.tokens = std::max<int64_t>(16384, longest);
  shape.heads = heads, shape.kvHeads = kvHeads, shape.headDim = headDim;
  shape.scale = 1 / std::sqrt(static_cast<double>(headDim));
  const int64_t joined = (heads + 2 * kvHeads) * headDim;
  for (auto table : {gpu::kTableQ, gpu::kTableK, gpu::kTableV})
    shape.strides[table] = joined;
  shape.strides[gpu::kTableOut] = heads * headDim;
  shape.strides[gpu::kTableLse] = heads;
  if (shape.isGradient)
    for (auto table : {gpu::kTableDq, gpu::kTableDk, gpu::kTableDv})
      shape.strides[table] = joined;
  return shape;
}

struct Size {
  int64_t segments, longest;
};
constexpr Size kSizes[] = {{1, 8192}, {16, 1024}, {256, 128}};

std::vector<AttentionClass> everyClass() {
  std::vector<AttentionClass> classes;
  for (int64_t headDim : {64, 96, 128, 256})
    for (const Size &size : kSizes)
      for (Part part : {Part::Forward, Part::Ordered, Part::AnyOrder})
        for (int64_t kvHeads : {12, 4})
          for (bool causal : {true, false})
            classes.push_back(classOf(part, headDim, 12, kvHeads, size.segments,
                                      size.longest, causal));
  return classes;
}

/// Head sizes with sizes, and either with all else, in fewer classes.
std::vector<AttentionClass> someClasses() {
  std::vector<AttentionClass> classes;
  const int64_t headDims[] = {64, 96, 128, 256};
  const Part parts[] = {Part::Forward, Part::Ordered, Part::AnyOrder};
  for (int dim = 0; dim < 4; ++dim)
    for (int size = 0; size < 3; ++size)
      for (int half = 0; half < 2; ++half) {
        const int row = dim + size + half;
        classes.push_back(classOf(parts[(dim + 2 * size + half) % 3],
                                  headDims[dim], 12, row % 2 == 0 ? 12 : 4,
                                  kSizes[size].segments, kSizes[size].longest,
                                  (dim / 2 + size + half) % 2 == 0));
      }
  return classes;
}

class CudnnPlanTest : public testing::Test {
protected:
  void SetUp() override {
#ifdef DYNA_CUDNN_FOLDER
    settings.set(kLibraryPathVariable, DYNA_CUDNN_FOLDER);
    driver = dlopen(DYNA_STANDINS "/named/libcuda.so.1", RTLD_NOW);
    ASSERT_NE(driver, nullptr) << dlerror();
    StatusOr<Cudnn> opened = Cudnn::open();
    ASSERT_TRUE(opened.isOk()) << opened.status().message();
    cudnn.emplace(*opened);
    std::ifstream file(DYNA_H200);
    properties.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(properties.empty()) << DYNA_H200;
    auto made = CudnnDevice::createFrom(*cudnn, properties, 90);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    device = std::move(*made);
#else
    GTEST_SKIP() << "no cuDNN, or no frontend of it: "
                 << (isWhole() ? everyClass() : someClasses()).size()
                 << " classes were not planned";
#endif
  }
  static bool isWhole() { return std::getenv("DYNA_EVERY_CLASS") != nullptr; }
  int64_t count(const char *function) const {
    return reinterpret_cast<int64_t (*)()>(dlsym(driver, function))();
  }

  standins::Settings settings;
  void *driver = nullptr;
  std::optional<Cudnn> cudnn;
  std::string properties;
  std::unique_ptr<CudnnDevice> device;
};

} // namespace

TEST_F(CudnnPlanTest, ClassesHavePlans) {
  const int64_t loaded = count("dyna_standin_libraries");
  for (const AttentionClass &shape : isWhole() ? everyClass() : someClasses()) {
    SCOPED_TRACE(shape.text());
    const int64_t found = count("dyna_standin_kernels_found");
    auto plan = CudnnPlan::make(*device, shape);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_GT(count("dyna_standin_kernels_found"), found);
    EXPECT_THAT((*plan)->engine(), HasSubstr("eng"));
    // As the page on attention says.
    const int64_t bytes = (*plan)->workspaceBytes();
    const int64_t squares =
        2 * shape.segments * shape.heads * shape.longest * shape.longest;
    const int64_t sums = 4 * shape.tokens * shape.strides[gpu::kTableDq];
    const int64_t groups = shape.heads / shape.kvHeads;
    const int64_t copies =
        groups > 1 ? 8 * shape.tokens * shape.strides[gpu::kTableDk] * groups
                   : 0;
    int64_t most = int64_t(1) << 20;
    if (shape.isGradient)
      most += (shape.isOrdered ? squares : sums) + copies;
    EXPECT_LE(bytes, most + most / 50);
    if (shape.isGradient)
      EXPECT_GT(bytes, int64_t(1) << 20);
  }
  EXPECT_EQ(count("dyna_standin_libraries"), loaded)
      << "plans that are gone keep their kernels";
}

TEST_F(CudnnPlanTest, PlansForNoDeviceDoNotRun) {
  auto plan =
      CudnnPlan::make(*device, classOf(Part::Forward, 64, 2, 2, 2, 128, true));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  Status status = (*plan)->run(*device, {}, nullptr, nullptr);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
}

TEST_F(CudnnPlanTest, WhatHasNoPlanSaysWhyInOneLine) {
  for (const AttentionClass &shape :
       {classOf(Part::Forward, 64, 3, 2, 2, 128, true),
        classOf(Part::Ordered, 20, 2, 2, 2, 128, false)}) {
    auto plan = CudnnPlan::make(*device, shape);
    ASSERT_FALSE(plan.isOk());
    EXPECT_EQ(plan.status().code(), StatusCode::InvalidArgument);
    EXPECT_THAT(plan.status().message(), HasSubstr(shape.text() + ": "));
    EXPECT_THAT(plan.status().message(), Not(HasSubstr("\n")));
  }
}

TEST_F(CudnnPlanTest, PropertiesComeBack) {
  StatusOr<std::string> text = device->properties();
  ASSERT_TRUE(text.isOk()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("\"deviceName\":\"NVIDIA H200\""));
  EXPECT_TRUE(CudnnDevice::createFrom(*cudnn, *text, 90).isOk());
  auto damaged = CudnnDevice::createFrom(*cudnn, "{\"deviceName\":", 90);
  ASSERT_FALSE(damaged.isOk());
  EXPECT_EQ(damaged.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(damaged.status().message(), Not(HasSubstr("\n")));
}
