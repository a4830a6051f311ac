//===- CudaProductsFixture.h - A device with a stand-in of cuBLASLt -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DEVICE_CUDA_CUDAPRODUCTSFIXTURE_H
#define DYNA_TEST_RUNTIME_DEVICE_CUDA_CUDAPRODUCTSFIXTURE_H

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/driver/Library.h"
#include "runtime/device/cuda/product/ProductFile.h"
#include "test/Patience.h"
#include "test/standins/BlasStandin.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace dyna {

using Floats = std::vector<float>;

class CudaProductsTest : public testing::Test {
protected:
  CudaProductsTest() {
    settings.set(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda");
    settings.set("DYNA_STANDIN_SEED", 0);
    std::remove(file.c_str());
    for (int i = 0; i < DYNA_STANDIN_ALGORITHMS; ++i)
      before[i] = counts()[i];
    live = standin<int64_t()>("dyna_standin_blas_live")();
  }
  ~CudaProductsTest() override {
    EXPECT_EQ(standin<int64_t()>("dyna_standin_blas_live")(), live)
        << "descriptions were not given back";
    std::remove(file.c_str());
  }

  template <typename F> static F *standin(const char *function) {
    void *library = dlopen(DYNA_STANDINS "/cuda/libcublasLt.so.13", RTLD_NOW);
    EXPECT_NE(library, nullptr);
    return reinterpret_cast<F *>(dlsym(library, function));
  }
  static const int64_t *counts() {
    return standin<const int64_t *()>("dyna_standin_blas_products")();
  }
  /// Products by an algorithm since the test began.
  int64_t countOf(int algorithm) const {
    return counts()[algorithm] - before[algorithm];
  }

  StatusOr<std::unique_ptr<CudaDevice>>
  create(const cuda::ProductOptions &products = {}) {
    CudaOptions options;
    options.threads = 1;
    options.products = products;
    return CudaDevice::create(options);
  }
  std::unique_ptr<CudaDevice> make(const cuda::ProductOptions &products = {}) {
    auto made = create(products);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return std::move(*made);
  }
  static Device::Deadline soon() { return patienceEnds(); }

  std::unique_ptr<Buffer> upload(Device &device, Stream &stream,
                                 const Floats &data) {
    const auto bytes = static_cast<int64_t>(4 * data.size());
    auto buffer = std::move(*device.allocate(bytes));
    EXPECT_TRUE(
        device.copyToDevice(stream, *buffer, 0, data.data(), bytes).isOk());
    EXPECT_TRUE(device.synchronize(stream, soon()).isOk());
    return buffer;
  }
  Floats download(Device &device, Stream &stream, const Buffer &buffer) {
    Floats data(static_cast<size_t>(buffer.bytes() / 4));
    EXPECT_TRUE(
        device.copyToHost(stream, data.data(), buffer, 0, buffer.bytes())
            .isOk());
    EXPECT_TRUE(device.synchronize(stream, soon()).isOk());
    return data;
  }

  /// C [m, n] of A and B full of `a` and `b`.
  Floats product(CudaDevice &device, int64_t m, int64_t n, int64_t k, float a,
                 float b) {
    auto stream = std::move(*device.createStream());
    auto left = upload(device, *stream, Floats(size_t(m * k), a));
    auto right = upload(device, *stream, Floats(size_t(k * n), b));
    auto result = upload(device, *stream, Floats(size_t(m * n), -1));
    dyna_context context = makeContext(device, *stream);
    dyna_matmul p = {};
    p.m = m, p.n = n, p.k = k, p.lda = k, p.ldb = n, p.ldc = n;
    p.a = left->data(), p.b = right->data(), p.c = result->data();
    EXPECT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
    return download(device, *stream, *result);
  }
  dyna_context makeContext(CudaDevice &device, Stream &stream) {
    dyna_context context = {};
    context.message = message, context.message_capacity = sizeof(message);
    device.bind(context, stream);
    return context;
  }
  /// Times what is new, and keeps it.
  Status measure(CudaDevice &device, double seconds = 30) {
    auto stream = std::move(*device.createStream());
    StatusOr<int64_t> timed = device.products().measure(
        static_cast<cuda::StreamHandle>(stream->handle()), seconds, soon());
    if (!timed.isOk())
      return timed.status();
    lastTimed = *timed;
    return device.products().keep();
  }
  std::string readAll() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  void writeAll(const std::string &text) const { std::ofstream(file) << text; }

  standins::Settings settings;
  const std::string file =
      testing::TempDir() + "products." + std::to_string(getpid());
  std::array<int64_t, DYNA_STANDIN_ALGORITHMS> before;
  int64_t live;
  int64_t lastTimed = 0; ///< classes, by the last call of `measure`
  char message[512] = "";
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_DEVICE_CUDA_CUDAPRODUCTSFIXTURE_H
