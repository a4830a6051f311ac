//===- CudaProductsTest.cpp - cuBLASLt, found and used as it should -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the stand-ins of the driver and of cuBLASLt.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/device/cuda/CudaProductsFixture.h"

using namespace dyna;
using cuda::ProductClass;
using cuda::ProductKind;
using testing::HasSubstr;
using testing::Not;

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
