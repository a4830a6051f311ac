//===- BatchReaderTest.cpp - Samples and mini-batches ---------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchReader.h"

#include "runtime/data/Permutation.h"
#include "test/runtime/data/TemporaryFiles.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace dyna;
using namespace dyna::test;

namespace {

/// Documents given as lists of tokens.
class ListDataset : public Dataset {
public:
  std::vector<Document> documents;

  int64_t size() const override {
    return static_cast<int64_t>(documents.size());
  }
  StatusOr<Document> read(int64_t index) const override {
    return documents[static_cast<size_t>(index)];
  }
  std::string describe(int64_t index) const override {
    return "list, document " + std::to_string(index);
  }
};

/// Document i has lengths[i] tokens 100*i, 100*i+1, ...
std::shared_ptr<ListDataset> makeList(const std::vector<int> &lengths) {
  auto list = std::make_shared<ListDataset>();
  for (size_t i = 0; i < lengths.size(); ++i) {
    Document document;
    document.tokens.resize(static_cast<size_t>(lengths[i]));
    std::iota(document.tokens.begin(), document.tokens.end(),
              static_cast<int32_t>(100 * i));
    list->documents.push_back(document);
  }
  return list;
}

BatchOptions inOrder(int64_t epochs = 1) {
  BatchOptions options;
  options.shuffle = false;
  options.epochs = epochs;
  return options;
}

MiniBatch mustNext(BatchReader &reader, int64_t tokens) {
  StatusOr<MiniBatch> batch = reader.next(tokens);
  EXPECT_TRUE(batch.isOk()) << batch.status().message();
  return batch.isOk() ? std::move(*batch) : MiniBatch();
}

std::vector<Sample> allSamples(BatchReader &reader, int64_t tokens = 50) {
  std::vector<Sample> samples;
  while (true) {
    MiniBatch batch = mustNext(reader, tokens);
    if (batch.samples.empty())
      return samples;
    for (Sample &sample : batch.samples)
      samples.push_back(std::move(sample));
  }
}

using Ids = std::vector<int32_t>;

TEST(BatchReaderTest, shiftsTargetsByOne) {
  BatchReader reader(makeList({4}), inOrder());
  MiniBatch batch = mustNext(reader, 100);
  ASSERT_EQ(batch.samples.size(), 1u);
  EXPECT_EQ(batch.samples[0].tokens, (Ids{0, 1, 2}));
  EXPECT_EQ(batch.samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(batch.tokens, 3);
  EXPECT_EQ(batch.targets, 3);
  EXPECT_TRUE(mustNext(reader, 100).samples.empty());
  EXPECT_TRUE(mustNext(reader, 100).samples.empty());
}

TEST(BatchReaderTest, ignoresTheInputPart) {
  auto list = makeList({5});
  list->documents[0].firstTarget = 3;
  BatchReader reader(list, inOrder());
  MiniBatch batch = mustNext(reader, 100);
  ASSERT_EQ(batch.samples.size(), 1u);
  // Position 2 is the last of the input and predicts the first target.
  EXPECT_EQ(batch.samples[0].targets, (Ids{-1, -1, 3, 4}));
  EXPECT_EQ(batch.targets, 2);
  EXPECT_EQ(batch.tokens, 4);
}

TEST(BatchReaderTest, splitsLongDocuments) {
  BatchOptions options = inOrder();
  options.positions = 3;
  BatchReader reader(makeList({8}), options);
  std::vector<Sample> samples = allSamples(reader);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].tokens, (Ids{0, 1, 2}));
  EXPECT_EQ(samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(samples[1].tokens, (Ids{3, 4, 5}));
  EXPECT_EQ(samples[2].tokens, (Ids{6}));
  EXPECT_EQ(samples[2].targets, (Ids{7}));
}

TEST(BatchReaderTest, splitLeavesOutPiecesWithoutTarget) {
  auto list = makeList({8});
  list->documents[0].firstTarget = 5;
  BatchOptions options = inOrder();
  options.positions = 3;
  BatchReader reader(list, options);
  std::vector<Sample> samples = allSamples(reader);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].tokens, (Ids{3, 4, 5}));
  EXPECT_EQ(samples[0].targets, (Ids{-1, 5, 6}));
  EXPECT_EQ(samples[1].targets, (Ids{7}));
}

TEST(BatchReaderTest, truncatesLongDocuments) {
  BatchOptions options = inOrder();
  options.positions = 3;
  options.longDocuments = LongDocuments::Truncate;
  BatchReader reader(makeList({8, 4}), options);
  std::vector<Sample> samples = allSamples(reader);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(samples[1].targets, (Ids{101, 102, 103}));
}

TEST(BatchReaderTest, refusesLongDocumentsOnDemand) {
  BatchOptions options = inOrder();
  options.positions = 3;
  options.longDocuments = LongDocuments::Error;
  BatchReader reader(makeList({4, 5}), options);
  expectFailure(reader.next(100),
                "list, document 1 has 5 tokens, but the model has 3 positions");
  EXPECT_TRUE(parseLongDocuments("truncate").isOk());
  expectFailure(parseLongDocuments("cut"), "split, truncate or error");
}

TEST(BatchReaderTest, skipsDocumentsWithoutTargets) {
  auto list = makeList({0, 1, 2, 5});
  list->documents[3].firstTarget = 5; // an empty target
  BatchReader reader(list, inOrder());
  std::vector<Sample> samples = allSamples(reader);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].tokens, (Ids{200}));
  BatchReader barren(makeList({0, 1, 1}), inOrder(0));
  expectFailure(barren.next(10), "no document has a token to predict");
}

TEST(BatchReaderTest, fillsBatchesUpToTheLimit) {
  BatchReader reader(makeList({4, 4, 3, 21, 4}), inOrder());
  EXPECT_EQ(mustNext(reader, 7).tokens, 6); // 3 + 3, the 2 would not fit
  EXPECT_EQ(mustNext(reader, 7).tokens, 2);
  EXPECT_EQ(mustNext(reader, 7).tokens, 20); // at least one
  EXPECT_EQ(mustNext(reader, 7).tokens, 3);
  EXPECT_EQ(mustNext(reader, 7).tokens, 0);
  expectFailure(reader.next(0), "positive number of tokens");
}

TEST(BatchReaderTest, samplesDoNotDependOnBatches) {
  BatchOptions options;
  options.seed = 5;
  options.positions = 6;
  options.epochs = 3;
  auto list = makeList({4, 9, 3, 21, 4, 2, 30, 7});
  BatchReader small(list, options), large(list, options);
  std::vector<Sample> a = allSamples(small, 1), b = allSamples(large, 1000);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, static_cast<int64_t>(i));
    EXPECT_EQ(b[i].id, a[i].id);
    EXPECT_EQ(b[i].tokens, a[i].tokens);
    EXPECT_EQ(b[i].targets, a[i].targets);
  }
}

TEST(BatchReaderTest, everyEpochHasAnOrderOfItsOwn) {
  std::vector<int> lengths(40, 2);
  BatchOptions options;
  options.epochs = 2;
  options.seed = 1;
  BatchReader reader(makeList(lengths), options);
  std::vector<Sample> samples = allSamples(reader);
  ASSERT_EQ(samples.size(), 80u);
  std::vector<int32_t> first, second;
  for (size_t i = 0; i < 40; ++i) {
    first.push_back(samples[i].tokens[0]);
    second.push_back(samples[40 + i].tokens[0]);
  }
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  options.seed = 2;
  BatchReader other(makeList(lengths), options);
  std::vector<int32_t> otherOrder;
  for (const Sample &sample : allSamples(other))
    otherOrder.push_back(sample.tokens[0]);
  otherOrder.resize(40);
  EXPECT_NE(otherOrder, first);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(first[static_cast<size_t>(i)], 100 * i);
}

TEST(BatchReaderTest, continuesFromEveryCursor) {
  BatchOptions options;
  options.seed = 9;
  options.positions = 5;
  options.epochs = 3;
  auto list = makeList({4, 9, 3, 21, 4, 2, 30, 7, 1, 0});
  BatchReader whole(list, options);
  std::vector<DataCursor> cursors;
  std::vector<MiniBatch> batches;
  while (true) {
    cursors.push_back(whole.cursor());
    batches.push_back(mustNext(whole, 12));
    if (batches.back().samples.empty())
      break;
  }
  ASSERT_GT(batches.size(), 12u);
  bool sawOffset = false;
  for (size_t start = 0; start < cursors.size(); ++start) {
    sawOffset |= cursors[start].offset > 0;
    // Through text, as a checkpoint stores it.
    StatusOr<DataCursor> cursor = DataCursor::fromJson(cursors[start].toJson());
    ASSERT_TRUE(cursor.isOk());
    EXPECT_EQ(*cursor, cursors[start]);
    BatchReader resumed(list, options);
    ASSERT_TRUE(resumed.seek(*cursor).isOk());
    for (size_t i = start; i < batches.size(); ++i) {
      MiniBatch batch = mustNext(resumed, 12);
      ASSERT_EQ(batch.samples.size(), batches[i].samples.size());
      for (size_t s = 0; s < batch.samples.size(); ++s) {
        EXPECT_EQ(batch.samples[s].id, batches[i].samples[s].id);
        EXPECT_EQ(batch.samples[s].tokens, batches[i].samples[s].tokens);
        EXPECT_EQ(batch.samples[s].targets, batches[i].samples[s].targets);
      }
    }
  }
  EXPECT_TRUE(sawOffset) << "no cursor lay inside a document";
}

TEST(BatchReaderTest, refusesForeignCursors) {
  BatchReader reader(makeList({4, 4}), inOrder());
  DataCursor cursor;
  cursor.documents = 3;
  expectFailure(reader.seek(cursor),
                "3 documents when the run was saved, 2 now");
  cursor.documents = 0;
  cursor.document = 3;
  expectFailure(reader.seek(cursor), "lies outside the data");
  expectFailure(DataCursor::fromJson("{}"), "\"epoch\"");
  expectFailure(DataCursor::fromJson("{\"epoch\": -1}"), "\"epoch\"");
  expectFailure(DataCursor::fromJson("{"), "data cursor: byte");
}

TEST(PermutationTest, isAPermutation) {
  for (int64_t size : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097}) {
    for (uint64_t key : {0, 1, 2}) {
      Permutation order(size, key);
      std::set<int64_t> seen;
      for (int64_t i = 0; i < size; ++i) {
        int64_t value = order(i);
        ASSERT_TRUE(value >= 0 && value < size);
        seen.insert(value);
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
    }
  }
}

TEST(PermutationTest, isEven) {
  // Every value of a small domain comes first about equally often.
  constexpr int size = 10, keys = 20000;
  std::vector<int> counts(size);
  for (uint64_t key = 0; key < keys; ++key)
    ++counts[static_cast<size_t>(Permutation(size, key)(0))];
  for (int count : counts)
    EXPECT_NEAR(count, keys / size, 6 * 45); // 6 sigma
}

TEST(PermutationTest, isTheSameEverywhere) {
  // Saved cursors depend on these values; they must never change.
  Permutation order(1000, 42);
  EXPECT_EQ((std::vector<int64_t>{order(0), order(1), order(2), order(999)}),
            (std::vector<int64_t>{662, 636, 374, 160}));
}

} // namespace
