//===- MegatronTest.cpp - Indexed data sets ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/data/Datasets.h"

#include <numeric>

using namespace dyna;
using namespace dyna::test;

namespace {

TEST(MegatronTest, readsPrefixAndEitherFile) {
  TemporaryDirectory dir;
  dir.write("data.idx", IndexParts().bytes());
  dir.write("data.bin", u16Tokens());
  for (const char *name : {"data", "data.idx", "data.bin"}) {
    DatasetPointer dataset = mustOpen({dir / name}, 65536);
    ASSERT_TRUE(dataset);
    ASSERT_EQ(dataset->size(), 3);
    EXPECT_EQ(mustRead(dataset, 0).tokens, (std::vector<int32_t>{1, 2, 3}));
    EXPECT_EQ(mustRead(dataset, 1).tokens, (std::vector<int32_t>{4, 5}));
    EXPECT_EQ(mustRead(dataset, 2).tokens, (std::vector<int32_t>{65535}));
  }
}

TEST(MegatronTest, noticesThatTheTokensChange) {
  TemporaryDirectory dir;
  dir.write("data.idx", IndexParts().bytes());
  dir.write("data.bin", u16Tokens());
  DatasetPointer data = mustOpen({dir / "data"}, 65536);
  mustRead(data, 0);
  touch(dir / "data.bin");
  expectFailure(data->read(0), "data.bin was written to while it was in use");
  std::filesystem::resize_file(dir / "data.bin", 0);
  expectFailure(data->read(0), "data.bin has become shorter");
}

// It is not read any more, but data that change are no data to go on with.
TEST(MegatronTest, noticesThatTheIndexChanges) {
  TemporaryDirectory dir;
  std::string idx = dir.write("data.idx", IndexParts().bytes());
  dir.write("data.bin", u16Tokens());
  DatasetPointer data = mustOpen({dir / "data"}, 65536);
  mustRead(data, 0);
  std::filesystem::resize_file(idx, 40);
  expectFailure(data->read(0), "data.idx has become shorter while it was in");
  std::filesystem::remove(idx);
  expectFailure(data->read(0), "cannot look at " + idx);
}

TEST(MegatronTest, readsEveryTokenType) {
  auto check = [](uint8_t type, const std::string &bin, int64_t width) {
    IndexParts parts;
    parts.type = type;
    parts.offsets = {0, 3 * width, 3 * width, 5 * width};
    std::string idx = parts.bytes();
    StatusOr<MegatronIndex> index =
        MegatronIndex::parse(idx, static_cast<int64_t>(bin.size()), "x.idx");
    ASSERT_TRUE(index.isOk()) << index.status().message();
    StatusOr<DatasetPointer> opened =
        MegatronDataset::fromIndex(*index, bin, "x", {128, 0});
    ASSERT_TRUE(opened.isOk()) << opened.status().message();
    DatasetPointer dataset = *opened;
    EXPECT_EQ(mustRead(dataset, 0).tokens, (std::vector<int32_t>{1, 2, 127}));
    EXPECT_EQ(mustRead(dataset, 1).tokens, (std::vector<int32_t>{4, 5}));
  };
  std::vector<int64_t> tokens = {1, 2, 127, 4, 5, 6};
  check(1, tokenBytes<uint8_t>(tokens), 1);
  check(2, tokenBytes<int8_t>(tokens), 1);
  check(3, tokenBytes<int16_t>(tokens), 2);
  check(4, tokenBytes<int32_t>(tokens), 4);
  check(5, tokenBytes<int64_t>(tokens), 8);
  check(8, tokenBytes<uint16_t>(tokens), 2);
}

// Before anything is trained, wherever they are.
TEST(MegatronTest, refusesIdsBeyondTheVocabulary) {
  std::string idx = IndexParts().bytes(), bin = u16Tokens();
  StatusOr<MegatronIndex> index = MegatronIndex::parse(idx, 12, "x.idx");
  ASSERT_TRUE(index.isOk());
  EXPECT_TRUE(MegatronDataset::fromIndex(*index, bin, "x", {65536, 0}).isOk());
  expectFailure(MegatronDataset::fromIndex(*index, bin, "dir/x", {65535, 0}),
                "dir/x.bin, document 2: token 0 has id 65535, but the model's "
                "vocabulary has 65535");
  expectFailure(MegatronDataset::fromIndex(*index, bin, "dir/x", {5, 0}),
                "document 1: token 1 has id 5,");
  // Signed types can hold negative ids.
  IndexParts parts;
  parts.type = 3;
  idx = parts.bytes();
  index = MegatronIndex::parse(idx, 12, "x.idx");
  ASSERT_TRUE(index.isOk());
  expectFailure(MegatronDataset::fromIndex(*index, bin, "x", {65536, 0}),
                "document 2: token 0 has id -1,");
}

// Many blocks, several threads: the first bad id is the one that is named.
TEST(MegatronTest, findsTheFirstForeignIdOfMany) {
  constexpr int64_t documents = 1000, length = 1500;
  IndexParts parts;
  parts.lengths.assign(documents, length);
  parts.offsets.clear();
  parts.documents.clear();
  for (int64_t i = 0; i <= documents; ++i) {
    parts.documents.push_back(i);
    if (i < documents)
      parts.offsets.push_back(2 * length * i);
  }
  std::string idx = parts.bytes();
  std::string bin(2 * length * documents, '\0');
  StatusOr<MegatronIndex> index =
      MegatronIndex::parse(idx, static_cast<int64_t>(bin.size()), "x.idx");
  ASSERT_TRUE(index.isOk());
  auto open = [&] {
    return MegatronDataset::fromIndex(*index, bin, "x", {256, 0});
  };
  EXPECT_TRUE(open().isOk());
  for (auto [document, token] :
       {std::pair(999, 1499), {700, 3}, {174, 1143}, {0, 0}}) {
    bin[2 * (document * length + token) + 1] = 1;
    expectFailure(open(), "x.bin, document " + std::to_string(document) +
                              ": token " + std::to_string(token) +
                              " has id 256,");
  }
}

TEST(MegatronTest, acceptsModes) {
  std::string idx = IndexParts().bytes() + std::string(4, '\0');
  EXPECT_TRUE(MegatronIndex::parse(idx, 12, "x.idx").isOk());
}

TEST(MegatronTest, refusesEveryInconsistency) {
  auto refuse = [](const IndexParts &parts, std::string_view message) {
    std::string idx = parts.bytes();
    expectFailure(MegatronIndex::parse(idx, 12, "x.idx"), message);
    expectFailure(MegatronIndex::parse(idx, 12, "x.idx"), "x.idx: ");
  };
  IndexParts parts;
  std::string good = parts.bytes();
  ASSERT_TRUE(MegatronIndex::parse(good, 12, "x.idx").isOk());
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(
        MegatronIndex::parse(std::string_view(good).substr(0, size), 12, "x")
            .isOk())
        << size;
  expectFailure(MegatronIndex::parse(good + "x", 12, "x.idx"), "damaged");
  expectFailure(MegatronIndex::parse(good, 11, "x.idx"),
                "sequence 3 ends at byte 12, but the .bin file has 11 bytes");
  expectFailure(MegatronIndex::parse("X" + good.substr(1), 12, "x.idx"),
                "does not start with MMIDIDX");
  parts.version = 2;
  refuse(parts, "expected version 1, but got 2");
  parts = {};
  parts.type = 6;
  refuse(parts, "token type 6 is none of");
  parts = {};
  parts.extraSequences = INT64_MAX;
  refuse(parts, "truncated or damaged");
  parts = {};
  parts.extraDocuments = INT64_MAX;
  refuse(parts, "truncated or damaged");
  parts = {};
  parts.lengths[1] = -1;
  refuse(parts, "sequence 1 has the negative length -1");
  parts = {};
  parts.offsets[2] = 5;
  refuse(parts, "sequence 2 starts at byte 5, but the sequences before it end "
                "at byte 6");
  parts = {};
  parts.documents = {0, 3, 1, 4};
  refuse(parts, "document boundary 2 lies before");
  parts = {};
  parts.documents = {1, 3, 4};
  refuse(parts, "from 0 to 4, but got 1 to 4");
  parts = {};
  parts.documents = {0, 3};
  refuse(parts, "from 0 to 4, but got 0 to 3");
  parts = {};
  parts.documents = {0};
  refuse(parts, "holds no document");
}

TEST(MegatronTest, pairsInputsAndTargets) {
  TemporaryDirectory dir;
  dir.write("m_inputs_document.idx", IndexParts().bytes());
  dir.write("m_inputs_document.bin", u16Tokens());
  dir.write("m_targets_document.idx", IndexParts().bytes());
  dir.write("m_targets_document.bin",
            tokenBytes<uint16_t>({11, 12, 13, 14, 15, 16}));
  std::string inputs = dir / "m_inputs_document";
  std::string targets = dir / "m_targets_document";
  for (const std::vector<std::string> &paths :
       {std::vector<std::string>{inputs, targets},
        {targets + ".bin", inputs + ".idx"},
        {inputs + "," + targets}}) {
    DatasetPointer dataset = mustOpen(paths, 65536);
    ASSERT_TRUE(dataset);
    ASSERT_EQ(dataset->size(), 3);
    Document document = mustRead(dataset, 1);
    EXPECT_EQ(document.tokens, (std::vector<int32_t>{4, 5, 14, 15}));
    EXPECT_EQ(document.firstTarget, 2);
  }
  // Without the matching names they are two sets, one after the other.
  DatasetPointer same = mustOpen({inputs, inputs}, 65536);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->size(), 6);
  IndexParts fewer;
  fewer.documents = {0, 4};
  dir.write("m_targets_document.idx", fewer.bytes());
  expectFailure(openDataset({inputs, targets}, {65536, 0}),
                "there are 3 (" + inputs + ".bin, document 0, ...) and 1");
}

TEST(MegatronTest, namesTheMissingFile) {
  TemporaryDirectory dir;
  dir.write("data.idx", IndexParts().bytes());
  expectFailure(openDataset({dir / "data"}, {65536, 0}),
                "data.bin: No such file");
  expectFailure(openDataset({dir / "other.bin"}, {65536, 0}),
                "other.idx: No such file");
  dir.write("tokens.bin", u16Tokens());
  expectFailure(openDataset({dir / "tokens"}, {65536, 0}),
                "tokens.idx: No such file");
}

TEST(MegatronTest, readsRealData) {
  const std::string inputs = "../shared/data/multitask_small_inputs_document";
  const std::string targets = "../shared/data/multitask_small_targets_document";
  std::string root = DYNA_SOURCE_DIR;
  if (!fileExists(root + "/" + inputs + ".idx"))
    GTEST_SKIP() << "no " << inputs << ".idx beside the project";
  DatasetPointer dataset =
      mustOpen({root + "/" + inputs, root + "/" + targets}, 50257);
  ASSERT_TRUE(dataset);
  ASSERT_EQ(dataset->size(), 2680);
  int64_t ends = 0;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    Document document = mustRead(dataset, i);
    ASSERT_FALSE(document.tokens.empty());
    ends += document.tokens.back() == 50256;
  }
  EXPECT_EQ(ends, dataset->size());
}

} // namespace
