//===- CudaProductsTest.cpp - cuBLASLt, found and used as it should -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the stand-ins of the driver and of cuBLASLt.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Library.h"
#include "runtime/device/cuda/ProductFile.h"
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

using namespace dyna;
using cuda::ProductClass;
using cuda::ProductKind;
using testing::HasSubstr;
using testing::Not;

namespace {

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
  static Device::Deadline soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(30);
  }

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

} // namespace

//===----------------------------------------------------------------------===//
// Which library
//===----------------------------------------------------------------------===//

TEST_F(CudaProductsTest, TheDeviceSaysWhoMultiplies) {
  auto device = make();
  EXPECT_THAT(device->describe(), HasSubstr("products by cuBLASLt 13.0.0"));
  EXPECT_EQ(device->scratchBytes(), 64 << 10);
  cuda::ProductOptions own;
  own.useLibrary = false;
  device = make(own);
  EXPECT_THAT(device->describe(),
              HasSubstr("products by own kernels (cuBLASLt is not wanted)"));
  EXPECT_EQ(device->scratchBytes(), 0);
  EXPECT_EQ(product(*device, 5, 7, 3, 2, 0.5f), Floats(35, 3));
}

TEST_F(CudaProductsTest, AnOldLibraryIsNotTaken) {
  settings.set("DYNA_STANDIN_BLAS", 110800);
  EXPECT_THAT(make()->describe(),
              HasSubstr("libcublasLt.so.13 is of version 11.8.0; 12.0.0 or "
                        "newer is needed"));
  settings.set(cuda::kLibraryPathVariable,
               DYNA_STANDINS "/old:" DYNA_STANDINS "/cuda");
  StatusOr<cuda::Blas> old = cuda::Blas::open();
  ASSERT_FALSE(old.isOk());
  EXPECT_THAT(old.status().message(),
              HasSubstr("11.4.2 and lacks cublasLtMatmulAlgoCheck; 12.0.0"));
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

TEST_F(CudaProductsTest, ClassesRoundTokensAlone) {
  alignas(64) char data[256];
  dyna_matmul p = {};
  p.n = 300, p.k = 77, p.lda = 77, p.ldb = 300, p.ldc = 304;
  p.a = data, p.b = data + 16, p.c = data + 2;
  auto rowsOf = [&](int64_t m) {
    p.m = m;
    return ProductClass::of(ProductKind::Bf16, p).m;
  };
  const std::pair<int64_t, int64_t> rounded[] = {
      {1, 16},    {128, 128},   {129, 160},   {160, 160},
      {161, 192}, {1000, 1024}, {1025, 1280}, {16000, 16384}};
  for (auto [tokens, expected] : rounded)
    EXPECT_EQ(rowsOf(tokens), expected) << tokens;
  ProductClass shape = ProductClass::of(ProductKind::Bf16, p);
  EXPECT_EQ(shape.k, 77);
  EXPECT_EQ(shape.alignA, 64);
  EXPECT_EQ(shape.alignB, 16);
  EXPECT_EQ(shape.alignC, 2);
  // Weight gradients sum over tokens.
  p.m = 1000, p.transpose_a = 1;
  shape = ProductClass::of(ProductKind::Bf16F32, p);
  EXPECT_EQ(shape.m, 1000);
  EXPECT_EQ(shape.k, 80);

  StatusOr<ProductClass> again = ProductClass::parse(shape.text());
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(*again == shape);
  for (const char *bad :
       {"", "1 0 0 0 1 1 1 1 1 1 1 1", "4 0 0 0 1 1 1 1 1 1 1 1 1",
        "0 2 0 0 1 1 1 1 1 1 1 1 1", "0 0 0 0 0 1 1 1 1 1 1 1 1",
        "0 0 0 0 1 1 1 1 1 1 1 1 1 ", "0 0 0 0 1 1 1 1 1 1 1 1 x",
        "0 0 0 0 1 1 1 1 1 1 1 1 1 1", "0 0 0 0 1 1 1 1 1 1 1 1 1 0 0 0 0",
        "0 0 0 0 1 1 1 1 1 1 1 1 1 4 0 0 0",
        "0 0 0 0 1 1 1 1 1 1 1 1 1 3 -1 0 0",
        "0 0 0 0 1 1 1 1 1 1 1 1 1 1 0 0 0 0"})
    EXPECT_FALSE(ProductClass::parse(bad).isOk()) << bad;

  // What an epilogue takes counts, as far as it takes it.
  dyna_epilogue epilogue = {};
  epilogue.kind = DYNA_EPILOGUE_BIAS_GELU;
  epilogue.bias = data + 4, epilogue.aux = data + 32, epilogue.aux_stride = 320;
  p.transpose_a = 0, p.described = 1, p.epilogue_args = &epilogue;
  shape = ProductClass::of(ProductKind::Bf16, p);
  EXPECT_EQ(shape.epilogue, DYNA_EPILOGUE_BIAS_GELU);
  EXPECT_EQ(shape.auxStride, 320);
  EXPECT_EQ(shape.alignBias, 4);
  EXPECT_EQ(shape.alignAux, 32);
  again = ProductClass::parse(shape.text());
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(*again == shape);
  epilogue.aux = nullptr;
  ProductClass without = ProductClass::of(ProductKind::Bf16, p);
  EXPECT_EQ(without.auxStride, 0);
  EXPECT_FALSE(without == shape);
  epilogue.kind = DYNA_EPILOGUE_BIAS;
  EXPECT_FALSE(ProductClass::of(ProductKind::Bf16, p) == without);
}

/// C [m, n] = A B + bias, by the library where it can and may.
TEST_F(CudaProductsTest, EpiloguesAreTheLibrarysWhereItHasThem) {
  auto epilogues = [&] {
    return standin<int64_t()>("dyna_standin_blas_epilogues")();
  };
  cuda::ProductOptions apart;
  apart.epilogues = false;
  EXPECT_THAT(make(apart)->describe(), HasSubstr("epilogues by own kernels"));
  EXPECT_THAT(make()->describe(), Not(HasSubstr("epilogues")));
  EXPECT_TRUE(cuda::hasFastEpilogues(90));
  EXPECT_FALSE(cuda::hasFastEpilogues(120));
  struct {
    cuda::ProductOptions options;
    int32_t kind;
    int64_t auxStride;
    int64_t expected;
  } cases[] = {{{}, DYNA_EPILOGUE_BIAS, 0, 1},
               {{}, DYNA_EPILOGUE_BIAS_GELU, 0, 1},
               {{}, DYNA_EPILOGUE_BIAS_GELU, 16, 1},
               {{}, DYNA_EPILOGUE_GELU_GRAD, 16, 1},
               // Rows of aux are not whole groups of eight apart.
               {{}, DYNA_EPILOGUE_GELU_GRAD, 17, 0},
               {{}, DYNA_EPILOGUE_BIAS_GELU, 17, 0},
               {apart, DYNA_EPILOGUE_BIAS, 0, 0},
               {apart, DYNA_EPILOGUE_GELU_GRAD, 16, 0}};
  for (const auto &[options, kind, auxStride, expected] : cases) {
    SCOPED_TRACE(testing::Message() << kind << ", " << auxStride);
    auto device = make(options);
    auto stream = std::move(*device->createStream());
    dyna_context context = makeContext(*device, *stream);
    auto ones = upload(*device, *stream, Floats(32 * 16, 1));
    auto bias = upload(*device, *stream, Floats(16, 2));
    auto aux = upload(*device, *stream, Floats(32 * 17, 30));
    auto c = upload(*device, *stream, Floats(32 * 16, 0));
    dyna_epilogue epilogue = {};
    epilogue.kind = kind, epilogue.bias = bias->data();
    epilogue.aux = auxStride ? aux->data() : nullptr;
    epilogue.aux_stride = auxStride;
    dyna_matmul p = {};
    p.m = 32, p.n = p.k = p.lda = p.ldb = p.ldc = 16;
    p.a = p.b = ones->data(), p.c = c->data();
    p.described = 1, p.epilogue_args = &epilogue;
    const int64_t before = epilogues();
    ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
    EXPECT_EQ(epilogues() - before, expected);
    // So far out gelu is what it is of, and its slope 1.
    float sum = kind == DYNA_EPILOGUE_GELU_GRAD ? 16 : 18;
    EXPECT_EQ(download(*device, *stream, *c), Floats(32 * 16, sum));
    if (kind == DYNA_EPILOGUE_BIAS_GELU && auxStride)
      EXPECT_EQ(download(*device, *stream, *aux)[0], 18);
  }
}

/// The end of the last tile can be counted, too.
TEST_F(CudaProductsTest, OwnKernelsCountIn32Bits) {
  cuda::ProductOptions own;
  own.useLibrary = false;
  auto device = make(own);
  auto stream = std::move(*device->createStream());
  dyna_context context = makeContext(*device, *stream);
  const int64_t most = INT32_MAX - 127;
  for (int64_t dyna_matmul::*size :
       {&dyna_matmul::m, &dyna_matmul::n, &dyna_matmul::k}) {
    dyna_matmul p = {};
    p.m = p.n = p.k = 1;
    p.*size = most + 1;
    p.lda = p.ldb = p.ldc = most + 1;
    p.a = p.b = p.c = message;
    EXPECT_EQ(dyna_matmul_f32(&context, &p), DYNA_INVALID_ARGUMENT);
    EXPECT_THAT(message, HasSubstr("take sizes of 2147483520 at most"));
  }
}

/// What the library would propose first is not taken where it rounds parts; a
/// product that the class's algorithm cannot do gets another.
TEST_F(CudaProductsTest, AlgorithmsSuitTheirProducts) {
  auto device = make();
  EXPECT_EQ(product(*device, 16, 16, 64, 1, 1), Floats(256, 64));
  EXPECT_EQ(countOf(DYNA_STANDIN_PARTS), 1);
  EXPECT_EQ(product(*device, 16, 16, 32, 1, 1), Floats(256, 32));
  EXPECT_EQ(countOf(DYNA_STANDIN_VECTORS), 1);
  EXPECT_EQ(product(*device, 16, 15, 32, 1, 1), Floats(240, 32));
  EXPECT_EQ(countOf(DYNA_STANDIN_ELEMENTS), 1);
  EXPECT_EQ(countOf(DYNA_STANDIN_ROUNDING), 0);
  // Sums over 30 tokens are of the class of 32, where vectors would do.
  auto stream = std::move(*device->createStream());
  dyna_context context = makeContext(*device, *stream);
  auto a = upload(*device, *stream, Floats(16 * 30, 1));
  auto c = upload(*device, *stream, Floats(16 * 16, 0));
  dyna_matmul p = {};
  p.m = p.n = p.lda = p.ldb = p.ldc = 16, p.k = 30, p.transpose_a = 1;
  p.a = p.b = a->data(), p.c = c->data();
  ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
  EXPECT_EQ(download(*device, *stream, *c), Floats(256, 30));
  EXPECT_EQ(countOf(DYNA_STANDIN_ELEMENTS), 2);
  // Addresses count: an element further on there are no vectors.
  p.m = p.n = p.k = 8, p.a = p.b = static_cast<const float *>(p.a) + 1;
  ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
  EXPECT_EQ(countOf(DYNA_STANDIN_ELEMENTS), 3);
  // Parts of a sum of bf16 are added in f32.
  p.m = p.n = 8, p.k = 48, p.lda = p.ldb = p.ldc = 8, p.a = p.b = a->data();
  ASSERT_EQ(dyna_matmul_bf16(&context, &p), DYNA_OK) << message;
  EXPECT_EQ(countOf(DYNA_STANDIN_PARTS), 2);
  EXPECT_EQ(countOf(DYNA_STANDIN_ROUNDING), 0);
}

TEST_F(CudaProductsTest, Tf32IsForThoseWhoAskForIt) {
  const float fine = 1 + 1.0f / 4096; // 10 bits do not hold it
  EXPECT_EQ(product(*make(), 4, 4, 4, fine, 1), Floats(16, 4 * fine));
  cuda::ProductOptions options;
  options.tf32 = true;
  auto device = make(options);
  EXPECT_THAT(device->describe(), HasSubstr("cuBLASLt 13.0.0 with TF32"));
  EXPECT_EQ(product(*device, 4, 4, 4, fine, 1), Floats(16, 4));
}

//===----------------------------------------------------------------------===//
// Order and failures
//===----------------------------------------------------------------------===//

/// Both need the workspace, in two pieces of work each.
TEST_F(CudaProductsTest, ProductsOfTwoStreamsShareTheWorkspace) {
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    settings.set("DYNA_STANDIN_SEED", seed);
    auto device = make();
    std::unique_ptr<Stream> streams[2];
    std::unique_ptr<Buffer> a[2], c[2];
    for (int i = 0; i < 2; ++i) {
      streams[i] = std::move(*device->createStream());
      a[i] = upload(*device, *streams[i], Floats(16 * 64, float(i + 1)));
      c[i] = upload(*device, *streams[i], Floats(16 * 16, 0));
    }
    for (int round = 0; round < 4; ++round)
      for (int i = 0; i < 2; ++i) {
        dyna_context context = makeContext(*device, *streams[i]);
        dyna_matmul p = {};
        p.m = p.n = 16, p.k = 64, p.lda = p.ldb = 64, p.ldc = 16;
        p.transpose_b = 1, p.accumulate = round > 0;
        p.a = p.b = a[i]->data(), p.c = c[i]->data();
        ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
      }
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(download(*device, *streams[i], *c[i]),
                Floats(256, float(4 * 64 * (i + 1) * (i + 1))));
  }
  EXPECT_GT(countOf(DYNA_STANDIN_PARTS), 0);
}

/// Timing has the workspace on a stream of its own, and leaves what was given before
/// as it would have been.
TEST_F(CudaProductsTest, TimingWaitsForTheWorkspace) {
  cuda::ProductOptions options;
  options.file = file;
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    settings.set("DYNA_STANDIN_SEED", seed);
    std::remove(file.c_str());
    auto device = make(options);
    auto stream = std::move(*device->createStream());
    auto a = upload(*device, *stream, Floats(16 * 64, 2));
    auto c = upload(*device, *stream, Floats(16 * 16, 0));
    dyna_context context = makeContext(*device, *stream);
    dyna_matmul p = {};
    p.m = p.n = 16, p.k = 64, p.lda = p.ldb = 64, p.ldc = 16;
    p.transpose_b = p.accumulate = 1;
    p.a = p.b = a->data(), p.c = c->data();
    for (int i = 0; i < 8; ++i)
      ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
    ASSERT_TRUE(measure(*device).isOk());
    EXPECT_EQ(lastTimed, 1);
    EXPECT_EQ(download(*device, *stream, *c), Floats(256, 8 * 64 * 4));
  }
}

TEST_F(CudaProductsTest, EpiloguesAndMemoryOfTheHostAreRefused) {
  auto device = make();
  auto stream = std::move(*device->createStream());
  dyna_context context = makeContext(*device, *stream);
  Floats data(16, 1);
  dyna_matmul p = {};
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = 4;
  p.a = p.b = p.c = data.data();
  p.epilogue = [](const void *, int64_t, int64_t, int64_t) {};
  EXPECT_EQ(dyna_matmul_f32(&context, &p), DYNA_INVALID_ARGUMENT);
  EXPECT_STREQ(message,
               "matmul_f32 with an epilogue, which is code of the host");
  p.epilogue = nullptr;
  EXPECT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
  Status status = device->synchronize(*stream, soon());
  EXPECT_THAT(status.message(), HasSubstr("memory that is not the device's"));
  EXPECT_THAT(status.message(), HasSubstr("matmul_f32"));
  EXPECT_EQ(data, Floats(16, 1));
  // The handle goes with the process.
  device.reset();
  void *driver = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);
  reinterpret_cast<void (*)()>(dlsym(driver, "dyna_standin_reset"))();
  live = standin<int64_t()>("dyna_standin_blas_live")();
}

//===----------------------------------------------------------------------===//
// Algorithms in a file
//===----------------------------------------------------------------------===//

TEST_F(CudaProductsTest, TimedAlgorithmsAreKept) {
  cuda::ProductOptions options;
  options.file = file;
  {
    auto device = make(options);
    (void)product(*device, 16, 16, 64, 1, 1);
    EXPECT_EQ(countOf(DYNA_STANDIN_PARTS), 1) << "nothing was timed yet";
    ASSERT_TRUE(measure(*device).isOk());
    EXPECT_THAT(device->describe(), HasSubstr("algorithms of 1 classes timed"));
    // Here each piece of work takes as long: one is faster than two.
    int64_t vectors = countOf(DYNA_STANDIN_VECTORS);
    EXPECT_EQ(product(*device, 16, 16, 64, 1, 1), Floats(256, 64));
    EXPECT_EQ(countOf(DYNA_STANDIN_VECTORS), vectors + 1);
  }
  const std::string text = readAll();
  EXPECT_THAT(text, HasSubstr("dyna products 1\ndevice stand-in, compute "
                              "capability 0.0\nlibrary 130000\n"));
  {
    auto device = make(options);
    EXPECT_THAT(device->describe(), HasSubstr("algorithms of 1 classes timed"));
    int64_t vectors = countOf(DYNA_STANDIN_VECTORS);
    EXPECT_EQ(product(*device, 16, 16, 64, 1, 1), Floats(256, 64));
    EXPECT_EQ(countOf(DYNA_STANDIN_VECTORS), vectors + 1) << "from the file";
    EXPECT_EQ(device->products().unmeasured(), 0);
    ASSERT_TRUE(measure(*device).isOk());
    EXPECT_EQ(lastTimed, 0);
    EXPECT_EQ(countOf(DYNA_STANDIN_VECTORS), vectors + 1) << "timed once";
    EXPECT_EQ(readAll(), text);
  }
  // What another version of the library was timed with does not count.
  settings.set("DYNA_STANDIN_BLAS", 130100);
  auto device = make(options);
  EXPECT_THAT(device->describe(), Not(HasSubstr("timed")));
  (void)product(*device, 16, 16, 32, 1, 1);
  ASSERT_TRUE(measure(*device).isOk());
  EXPECT_THAT(readAll(), HasSubstr("library 130100\n"));
}

/// An algorithm that wants a larger workspace than there is would be refused at each
/// product: such a class is as one that was never timed.
TEST_F(CudaProductsTest, AlgorithmsThatNeedTooMuchAreTimedAgain) {
  cuda::ProductOptions options;
  options.file = file;
  auto multiply = [&](CudaDevice &device) {
    EXPECT_EQ(product(device, 128, 256, 64, 1, 1), Floats(128 * 256, 64));
  };
  {
    auto device = make(options);
    multiply(*device);
    ASSERT_TRUE(measure(*device).isOk());
  }
  StatusOr<cuda::ProductRecords> records = cuda::readProductFile(file);
  ASSERT_TRUE(records.isOk()) << records.status().message();
  ASSERT_EQ(records->products.size(), 1u);
  uint64_t &algorithm = records->products[0].algorithm.data[1];
  ASSERT_EQ(algorithm, uint64_t(DYNA_STANDIN_VECTORS));
  algorithm = DYNA_STANDIN_PARTS;
  ASSERT_TRUE(cuda::writeProductFile(file, *records).isOk());
  auto device = make(options);
  multiply(*device);
  EXPECT_EQ(countOf(DYNA_STANDIN_PARTS), 0);
  EXPECT_EQ(device->products().unmeasured(), 1);
  ASSERT_TRUE(measure(*device).isOk());
  EXPECT_EQ(lastTimed, 1);
  records = cuda::readProductFile(file);
  ASSERT_TRUE(records.isOk()) << records.status().message();
  EXPECT_EQ(records->products[0].algorithm.data[1],
            uint64_t(DYNA_STANDIN_VECTORS));
}

/// With what the epilogue takes, which is not the caller's.
TEST_F(CudaProductsTest, EpiloguesAreTimedToo) {
  cuda::ProductOptions options;
  options.file = file;
  for (const char *expected : {"nothing is timed yet", "from the file"}) {
    auto device = make(options);
    auto stream = std::move(*device->createStream());
    dyna_context context = makeContext(*device, *stream);
    auto ones = upload(*device, *stream, Floats(16 * 64, 1));
    auto aux = upload(*device, *stream, Floats(16 * 16, 30));
    auto c = upload(*device, *stream, Floats(16 * 16, 0));
    dyna_epilogue epilogue = {};
    epilogue.kind = DYNA_EPILOGUE_GELU_GRAD;
    epilogue.aux = aux->data(), epilogue.aux_stride = 16;
    dyna_matmul p = {};
    p.m = p.n = p.ldc = 16, p.k = p.lda = p.ldb = 64, p.transpose_b = 1;
    p.a = p.b = ones->data(), p.c = c->data();
    p.described = 1, p.epilogue_args = &epilogue;
    const int64_t parts = countOf(DYNA_STANDIN_PARTS);
    ASSERT_EQ(dyna_matmul_f32(&context, &p), DYNA_OK) << message;
    // Here one piece of work is faster than two, which is found by timing.
    EXPECT_EQ(countOf(DYNA_STANDIN_PARTS) - parts, *expected == 'n')
        << expected;
    EXPECT_EQ(download(*device, *stream, *c), Floats(256, 64));
    ASSERT_TRUE(measure(*device).isOk());
    EXPECT_EQ(download(*device, *stream, *aux), Floats(256, 30));
    EXPECT_THAT(device->describe(), HasSubstr("algorithms of 1 classes timed"));
  }
  EXPECT_THAT(readAll(), HasSubstr(" 3 16 0 64 :"));
}

TEST_F(CudaProductsTest, FilesThatAreDamagedAreRefused) {
  cuda::ProductOptions options;
  options.file = file;
  {
    auto device = make(options);
    (void)product(*device, 16, 16, 64, 1, 1);
    ASSERT_TRUE(measure(*device).isOk());
  }
  const std::string text = readAll();
  ASSERT_TRUE(create(options).isOk());
  std::string changed = text;
  std::replace(changed.begin(), changed.end(), ':', '.');
  for (const std::string &bad :
       {std::string(), std::string("something else"), changed,
        text.substr(0, text.size() / 2), text + "\n",
        "dyna products 2" + text.substr(15)}) {
    writeAll(bad);
    auto device = create(options);
    ASSERT_FALSE(device.isOk()) << bad;
    EXPECT_THAT(device.status().message(), HasSubstr(file + ":"));
    EXPECT_THAT(device.status().message(), HasSubstr("remove the file"));
  }
}

/// Time that is up leaves classes for the next call; without a file none is due.
TEST_F(CudaProductsTest, TimingTakesItsTime) {
  cuda::ProductOptions options;
  options.file = file;
  auto device = make(options);
  (void)product(*device, 16, 16, 64, 1, 1);
  (void)product(*device, 16, 16, 32, 1, 1);
  EXPECT_EQ(device->products().unmeasured(), 2);
  ASSERT_TRUE(measure(*device, /*seconds=*/0).isOk());
  EXPECT_EQ(lastTimed, 0);
  EXPECT_EQ(device->products().unmeasured(), 2);
  ASSERT_TRUE(measure(*device).isOk());
  EXPECT_EQ(lastTimed, 2);
  EXPECT_EQ(device->products().unmeasured(), 0);
  EXPECT_THAT(device->describe(), HasSubstr("algorithms of 2 classes timed"));
  auto without = make();
  (void)product(*without, 16, 16, 64, 1, 1);
  EXPECT_EQ(without->products().unmeasured(), 0);
}

/// The file's algorithms, else the library's first: nothing is timed or written.
TEST_F(CudaProductsTest, FixedAlgorithmsStayWhatTheyAre) {
  cuda::ProductOptions options;
  options.file = file, options.isFixed = true;
  auto missing = create(options);
  ASSERT_FALSE(missing.isOk());
  EXPECT_THAT(missing.status().message(), HasSubstr("there is no such file"));

  options.isFixed = false;
  {
    auto device = make(options);
    (void)product(*device, 16, 16, 64, 1, 1);
    ASSERT_TRUE(measure(*device).isOk());
  }
  const std::string text = readAll();
  options.isFixed = true;
  {
    auto device = make(options);
    EXPECT_THAT(device->describe(), HasSubstr("timed, none to be timed"));
    int64_t vectors = countOf(DYNA_STANDIN_VECTORS);
    int64_t parts = countOf(DYNA_STANDIN_PARTS);
    (void)product(*device, 16, 16, 64, 1, 1);
    EXPECT_EQ(countOf(DYNA_STANDIN_VECTORS), vectors + 1) << "from the file";
    (void)product(*device, 8, 16, 80, 1, 1);
    EXPECT_EQ(countOf(DYNA_STANDIN_PARTS), parts + 1) << "the first proposed";
    EXPECT_EQ(device->products().unmeasured(), 0);
    ASSERT_TRUE(measure(*device).isOk());
    EXPECT_EQ(lastTimed, 0);
    EXPECT_EQ(readAll(), text);
  }
  options.tf32 = true;
  auto other = create(options);
  ASSERT_FALSE(other.isOk());
  EXPECT_THAT(other.status().message(),
              HasSubstr("another device, library or setting of TF32"));
}

/// What cannot be written in the end is said at the start.
TEST_F(CudaProductsTest, FilesThatCannotBeWrittenAreRefused) {
  cuda::ProductOptions options;
  options.file = testing::TempDir() + "/no/such/folder/products";
  EXPECT_FALSE(create(options).isOk());
}
