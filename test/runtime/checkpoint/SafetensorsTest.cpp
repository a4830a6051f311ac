//===- SafetensorsTest.cpp - The safetensors format -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Safetensors.h"

#include "test/runtime/base/PeakMemory.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <cmath>
#include <cstring>

using namespace dyna;
using namespace dyna::test;

namespace {

/// A file with this header and data.
std::string fileOf(std::string_view header, std::string_view data = "") {
  uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char *>(&size), sizeof size);
  return bytes.append(header).append(data);
}

std::string written(const std::vector<TensorView> &tensors,
                    const Metadata &metadata = {}) {
  TemporaryDirectory dir;
  StatusOr<OutputFile> file = OutputFile::create(dir / "x");
  EXPECT_TRUE(file.isOk());
  EXPECT_TRUE(writeSafetensors(*file, tensors, metadata).isOk());
  EXPECT_TRUE(file->close().isOk());
  std::string bytes = readAll(dir / "x");
  EXPECT_EQ(file->bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(file->checksum(), Checksum::of(bytes));
  return bytes;
}

TEST(SafetensorsTest, writesTheReferenceBytes) {
  EXPECT_EQ(written({}), fileOf("{}      "));
  const float six[6] = {0, 1, 2, 3, 4, 5};
  std::string data(reinterpret_cast<const char *>(six), sizeof six);
  EXPECT_EQ(written({{"attn.0", DType::F32, {1, 2, 3}, six}}),
            fileOf("{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],"
                   "\"data_offsets\":[0,24]}}",
                   data));
  EXPECT_EQ(written({{"attn0", DType::F32, {1, 1, 2, 3}, six}}),
            fileOf("{\"attn0\":{\"dtype\":\"F32\",\"shape\":[1,1,2,3],"
                   "\"data_offsets\":[0,24]}}       ",
                   data));
}

TEST(SafetensorsTest, readsBackWhatItWrites) {
  const double f64[2] = {1.5, -2};
  const float f32[3] = {1, 2, 3};
  const uint16_t bf16[1] = {0x3F80};
  const int64_t i64[1] = {-7};
  const uint8_t u8[5] = {1, 2, 3, 4, 5};
  std::vector<TensorView> tensors = {
      {"e", DType::U8, {5}, u8},
      {"b", DType::F32, {3, 1}, f32},
      {"scalar", DType::I64, {}, i64},
      {"c", DType::BF16, {1}, bf16},
      {"empty", DType::F32, {0, 4}, nullptr},
      {"\"odd\"\n\xC3\xA9", DType::F64, {2}, f64}};
  std::string bytes = written(tensors, {{"format", "pt"}, {"note", "a \"b\""}});
  StatusOr<SafetensorsFile> file = SafetensorsFile::parse(bytes, "x");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (const TensorView &tensor : tensors) {
    const TensorView *found = file->find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->type, tensor.type);
    EXPECT_EQ(found->shape, tensor.shape);
    int64_t size = *tensorBytes(tensor.type, tensor.shape);
    if (size > 0) {
      EXPECT_EQ(std::memcmp(found->data, tensor.data, size_t(size)), 0);
    }
  }
  EXPECT_EQ(file->metadata().at("note"), "a \"b\"");
  EXPECT_EQ(file->find("missing"), nullptr);
  // Widest type first.
  EXPECT_EQ(file->tensors().front().name, "scalar");
}

TEST(SafetensorsTest, readsUnpaddedAndUnorderedHeaders) {
  StatusOr<SafetensorsFile> file = SafetensorsFile::parse(
      fileOf("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
             "\"a\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]}}",
             "xyz"),
      "x");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->tensors()[0].name, "a");
}

TEST(SafetensorsTest, refusesBadFrames) {
  auto refuse = [](const std::string &bytes, std::string_view message) {
    expectFailure(SafetensorsFile::parse(bytes, "m.st"), message);
    expectFailure(SafetensorsFile::parse(bytes, "m.st"), "m.st: ");
  };
  refuse("", "has 0 bytes");
  refuse("1234567", "has 7 bytes");
  std::string good = fileOf("{}      ");
  refuse(good.substr(0, 12), "truncated");
  refuse(good + "x", "end at byte 0 of the data, but it has 1");
  std::string huge = good;
  huge[7] = 1;
  refuse(huge, "beyond the limit");
  refuse("version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         "is a Git LFS pointer");
  refuse(fileOf("[]"), "expected an object in the header");
  refuse(fileOf("{"), "header, byte 2");
  refuse(fileOf("{\"\xFF\":1}"), "bad UTF-8");
  refuse(fileOf("{} x"), "more text follows");
}

/// `item` and commas, up to `bytes`, between the two others.
std::string longHeader(std::string_view begin, std::string_view item,
                       std::string_view end, size_t bytes = size_t(8) << 20) {
  std::string header(begin);
  header.reserve(bytes + end.size());
  header += item;
  while (header.size() < bytes)
    header.append(",").append(item);
  return header.append(end);
}

// A header of 90 MB took 3.7 GB: values of a tree have 112 bytes for two of text.
TEST(SafetensorsTest, TakesASmallMultipleOfAnyHeader) {
  if (!measuresMemory)
    GTEST_SKIP() << "sanitizers take memory of their own";
  const std::string entry = "\"dtype\":\"U8\",\"shape\":[0]";
  const std::string offsets = ",\"data_offsets\":[0,0]}";
  std::string tensors = "{";
  for (int64_t i = 0; tensors.size() < size_t(8) << 20; ++i)
    tensors +=
        (i ? ",\"" : "\"") + std::to_string(i) + "\":{" + entry + offsets;
  tensors += "}";
  const std::pair<std::string, std::string> cases[] = {
      {"tensors", tensors},
      {"a shape", longHeader("{\"t\":{\"shape\":[", "1", "]}}")},
      {"offsets", longHeader("{\"t\":{\"data_offsets\":[", "1", "]}}")},
      {"other values", longHeader("{\"t\":{\"x\":[", "{}", "]}}")},
      {"members", longHeader("{\"t\":{", "\"\":0", "}}")},
      {"metadata",
       longHeader("{\"__metadata__\":{\"a\":\"b\",\"c\":[", "1", "]}}")},
      {"numbers", longHeader("{\"t\":[", "1", "]}")},
      {"a name", "{\"" + std::string(size_t(8) << 20, 'n') + "\":1}"},
      {"a type",
       "{\"t\":{\"dtype\":\"" + std::string(size_t(8) << 20, 'n') + "\"}}"},
      {"brackets", "{\"t\":{\"x\":" + std::string(size_t(8) << 20, '[')}};
  for (const auto &[name, header] : cases) {
    const std::string bytes = fileOf(header);
    std::string message;
    const int64_t peak = peakBytes([&] {
      StatusOr<SafetensorsFile> file = SafetensorsFile::parse(bytes, "m");
      message = file.status().message();
    });
    EXPECT_LT(peak, int64_t(8 * header.size())) << name;
    EXPECT_EQ(message.empty(), name == "tensors") << message;
    EXPECT_LT(message.size(), 500u) << name;
  }
}

TEST(SafetensorsTest, RefusesNamesThatAppearTwice) {
  auto refuse = [](const std::string &header, std::string_view message) {
    expectFailure(SafetensorsFile::parse(fileOf(header), "m"), message);
  };
  const std::string tensor =
      "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  refuse("{\"a\":" + tensor + ",\"b\":" + tensor + ",\"a\":" + tensor + "}",
         "the key \"a\" appears twice");
  refuse("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}",
         "the key \"dtype\" appears twice");
  refuse("{\"__metadata__\":{},\"__metadata__\":{}}",
         "the key \"__metadata__\" appears twice");
  refuse("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}",
         "the key \"a\" appears twice");
}

TEST(SafetensorsTest, refusesBadTensors) {
  auto refuse = [](const std::string &tensor, std::string_view message) {
    expectFailure(SafetensorsFile::parse(
                      fileOf("{\"t\":" + tensor + "}", "12345678"), "m"),
                  message);
  };
  auto tensor = [](const char *dtype, const char *shape, const char *offsets) {
    return std::string("{\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}";
  };
  ASSERT_TRUE(
      SafetensorsFile::parse(
          fileOf("{\"t\":" + tensor("F32", "[2]", "[0,8]") + "}", "12345678"),
          "m")
          .isOk());
  for (const char *type : {"F8_E4M3", "F8_E5M2", "F4", "C64", "f32", ""})
    refuse(tensor(type, "[2]", "[0,8]"), "tensor \"t\": the type \"" +
                                             std::string(type) +
                                             "\" is not supported");
  refuse("5", "expected an object, but got a number");
  refuse("{}", "expected a string \"dtype\"");
  refuse("{\"dtype\":\"F32\"}", "expected an array \"shape\"");
  refuse("{\"dtype\":\"F32\",\"shape\":[2]}", "data_offsets");
  refuse(tensor("F32", "[2]", "[0]"), "data_offsets");
  refuse(tensor("F32", "[2]", "[0,8.0]"), "data_offsets");
  refuse(tensor("F32", "[-2]", "[0,8]"), "whole numbers in \"shape\"");
  refuse(tensor("F32", "[2.0]", "[0,8]"), "whole numbers in \"shape\"");
  refuse(tensor("F32", "[3]", "[0,8]"), "shape [3] of F32 needs 12 bytes");
  refuse(tensor("F32", "[4611686018427387904,4]", "[0,8]"),
         "needs too many bytes");
  refuse(tensor("F32", "[2]", "[-8,0]"), "lie outside");
  refuse(tensor("F32", "[2]", "[8,0]"), "lie outside");
  refuse(tensor("F32", "[2]", "[4,12]"), "lie outside");
  refuse(tensor("F32", "[1]", "[0,4]"), "but it has 8");
  refuse(tensor("F32", "[1]", "[4,8]"), "starts at byte 4");
}

TEST(SafetensorsTest, refusesBadCoverage) {
  auto parse = [](const char *a, const char *b) {
    return SafetensorsFile::parse(
        fileOf(std::string("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],"
                           "\"data_offsets\":") +
                   a + "},\"b\":{\"dtype\":\"U8\",\"shape\":[4]," +
                   "\"data_offsets\":" + b + "}}",
               "123456789"),
        "m");
  };
  expectFailure(parse("[0,4]", "[5,9]"), "tensor \"b\" starts at byte 5");
  expectFailure(parse("[0,4]", "[3,7]"), "tensor \"b\" starts at byte 3");
  expectFailure(parse("[0,4]", "[0,4]"), "starts at byte 0");
  expectFailure(parse("[0,4]", "[4,8]"), "end at byte 8");
}

TEST(SafetensorsTest, refusesDuplicatesAndBadMetadata) {
  std::string one = "\"a\":{\"dtype\":\"U8\",\"shape\":[0],"
                    "\"data_offsets\":[0,0]}";
  EXPECT_TRUE(SafetensorsFile::parse(fileOf("{" + one + "}"), "m").isOk());
  expectFailure(
      SafetensorsFile::parse(fileOf("{" + one + "," + one + "}"), "m"),
      "the key \"a\" appears twice");
  expectFailure(SafetensorsFile::parse(fileOf("{\"__metadata__\":[]}"), "m"),
                "expected an object for __metadata__");
  expectFailure(
      SafetensorsFile::parse(fileOf("{\"__metadata__\":{\"a\":1}}"), "m"),
      "expected strings in __metadata__");
}

TEST(ChecksumTest, seesEveryChangedBit) {
  std::string bytes(100, 'x');
  uint64_t whole = Checksum::of(bytes);
  for (size_t i = 0; i < 8 * bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i / 8] ^= char(1 << (i % 8));
    EXPECT_NE(Checksum::of(changed), whole) << i;
  }
  EXPECT_NE(Checksum::of(bytes + std::string(1, '\0')), whole);
  EXPECT_NE(Checksum::of(std::string(31, '\0')),
            Checksum::of(std::string(32, '\0')));
}

TEST(ChecksumTest, doesNotDependOnPieces) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i)
    bytes.push_back(char(i * 7));
  for (size_t piece : {1, 3, 8, 31, 32, 33, 100}) {
    Checksum checksum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      std::string part = bytes.substr(at, piece);
      checksum.update(part.data(), part.size());
    }
    EXPECT_EQ(checksum.value(), Checksum::of(bytes)) << piece;
  }
}

TEST(TensorTest, convertsFloats) {
  const double values[] = {
      0,    -0.0,     1,         -2.5,    65504,        1e-7,
      3e38, INFINITY, -INFINITY, 0x1p-24, 1.0009765625, 0x1p-14};
  constexpr int count = std::size(values);
  for (DType type : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
    std::vector<unsigned char> stored(size_t(8 * count));
    double back[count];
    convertElements(DType::F64, values, type, stored.data(), count);
    convertElements(type, stored.data(), DType::F64, back, count);
    double unit = type == DType::F64   ? 0
                  : type == DType::F32 ? 0x1p-24
                  : type == DType::F16 ? 0x1p-11
                                       : 0x1p-8;
    for (int i = 0; i < count; ++i) {
      if (type == DType::F16 && std::fabs(values[i]) > 65519)
        EXPECT_EQ(back[i], std::copysign(INFINITY, values[i]));
      else if (std::isinf(values[i]) || values[i] == 0)
        EXPECT_EQ(back[i], values[i]);
      else
        EXPECT_NEAR(back[i], values[i],
                    unit * std::fabs(values[i]) +
                        (type == DType::F16 ? 0x1p-25 : 0));
    }
  }
}

TEST(TensorTest, roundsToEven) {
  // Every f16 survives a trip through f64.
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00 && (half & 0x3FF))
      continue; // not a number
    double value;
    uint16_t back;
    convertElements(DType::F16, &half, DType::F64, &value, 1);
    convertElements(DType::F64, &value, DType::F16, &back, 1);
    ASSERT_EQ(back, half);
  }
  auto toBf16 = [](uint32_t bits) {
    uint16_t result;
    convertElements(DType::F32, &bits, DType::BF16, &result, 1);
    return result;
  };
  EXPECT_EQ(toBf16(0x3F808000), 0x3F80); // tie, to even: down
  EXPECT_EQ(toBf16(0x3F818000), 0x3F82); // tie, to even: up
  EXPECT_EQ(toBf16(0x3F808001), 0x3F81);
  EXPECT_EQ(toBf16(0x7F800001) & 0x7FC0, 0x7FC0); // stays not a number
}

TEST(TensorTest, knowsNamesAndSizes) {
  for (DType type : {DType::Bool, DType::U8, DType::I8, DType::I16, DType::U16,
                     DType::F16, DType::BF16, DType::I32, DType::U32,
                     DType::F32, DType::F64, DType::I64, DType::U64})
    EXPECT_EQ(parseDType(dtypeName(type)), type);
  EXPECT_EQ(tensorBytes(DType::F32, {2, 3}), 24);
  EXPECT_EQ(tensorBytes(DType::F64, {}), 8);
  EXPECT_FALSE(tensorBytes(DType::U8, {-1}));
  EXPECT_FALSE(tensorBytes(DType::F64, {INT64_C(1) << 40, INT64_C(1) << 40}));
}

} // namespace
