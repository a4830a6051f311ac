//===- ProductFileTest.cpp - Algorithms of products, kept in a file -------===//
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

class ProductFileTest : public CudaProductsTest {};

TEST_F(ProductFileTest, TimedAlgorithmsAreKept) {
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
TEST_F(ProductFileTest, AlgorithmsThatNeedTooMuchAreTimedAgain) {
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
TEST_F(ProductFileTest, EpiloguesAreTimedToo) {
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

TEST_F(ProductFileTest, FilesThatAreDamagedAreRefused) {
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
TEST_F(ProductFileTest, TimingTakesItsTime) {
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
TEST_F(ProductFileTest, FixedAlgorithmsStayWhatTheyAre) {
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
TEST_F(ProductFileTest, FilesThatCannotBeWrittenAreRefused) {
  cuda::ProductOptions options;
  options.file = testing::TempDir() + "/no/such/folder/products";
  EXPECT_FALSE(create(options).isOk());
}
