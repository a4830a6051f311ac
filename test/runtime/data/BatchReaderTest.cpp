//===- BatchReaderTest.cpp - Samples and mini-batches ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchReader.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/data/Padding.h"
#include "runtime/data/Permutation.h"
#include "test/runtime/base/TemporaryFiles.h"

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
  DocumentShape shape(int64_t index) const override {
    const Document &document = documents[static_cast<size_t>(index)];
    return {static_cast<int64_t>(document.tokens.size()), document.firstTarget};
  }
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override {
    const auto &all = documents[static_cast<size_t>(index)].tokens;
    tokens.insert(tokens.end(), all.begin() + begin, all.begin() + end);
    return Status::ok();
  }
  std::string describe(int64_t index) const override {
    return "list, document " + std::to_string(index);
  }
  uint64_t fingerprint() const override { return mark; }
  int64_t heldBytes() const override { return 0; }

  uint64_t mark = 0xFEDCBA9876543210;
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
  options.shuffle = Shuffle::None;
  options.epochs = epochs;
  return options;
}

SampleIndexPointer makeIndex(DatasetPointer data, int64_t limit = 0,
                             LongDocuments mode = LongDocuments::Split) {
  StatusOr<SampleIndexPointer> index =
      SampleIndex::create(std::move(data), {limit, mode});
  if (index.isOk())
    return *index;
  ADD_FAILURE() << index.status().message();
  return nullptr;
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

std::vector<Sample> samplesInOrder(const SampleIndexPointer &index) {
  BatchReader reader(index, inOrder());
  return allSamples(reader);
}

/// Input i, then target: 1, 2, ..., then 101, 102, ...
std::shared_ptr<ListDataset> makePair(int input, int target) {
  auto list = makeList({input + target});
  Document &document = list->documents[0];
  for (int i = 0; i < input + target; ++i)
    document.tokens[static_cast<size_t>(i)] =
        i < input ? i + 1 : 101 + i - input;
  document.firstTarget = std::max(1, input);
  return list;
}

//===--- Samples ----------------------------------------------------------===//

TEST(SampleIndexTest, shiftsTargetsByOne) {
  BatchReader reader(makeIndex(makeList({4})), inOrder());
  MiniBatch batch = mustNext(reader, 100);
  ASSERT_EQ(batch.samples.size(), 1u);
  EXPECT_EQ(batch.samples[0].tokens, (Ids{0, 1, 2}));
  EXPECT_EQ(batch.samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(batch.tokens, 3);
  EXPECT_EQ(batch.targets, 3);
  EXPECT_TRUE(mustNext(reader, 100).samples.empty());
  EXPECT_TRUE(mustNext(reader, 100).samples.empty());
}

TEST(SampleIndexTest, ignoresTheInputPart) {
  auto list = makeList({5});
  list->documents[0].firstTarget = 3;
  BatchReader reader(makeIndex(list), inOrder());
  MiniBatch batch = mustNext(reader, 100);
  ASSERT_EQ(batch.samples.size(), 1u);
  // Position 2 is the last of the input and predicts the first target.
  EXPECT_EQ(batch.samples[0].targets, (Ids{-1, -1, 3, 4}));
  EXPECT_EQ(batch.targets, 2);
  EXPECT_EQ(batch.tokens, 4);
}

TEST(SampleIndexTest, splitsTextEvenly) {
  SampleIndexPointer index = makeIndex(makeList({8}), 3);
  std::vector<Sample> samples = samplesInOrder(index);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].tokens, (Ids{0, 1, 2}));
  EXPECT_EQ(samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(samples[1].tokens, (Ids{3, 4}));
  EXPECT_EQ(samples[1].targets, (Ids{4, 5}));
  EXPECT_EQ(samples[2].tokens, (Ids{5, 6}));
  EXPECT_EQ(samples[2].targets, (Ids{6, 7}));
  EXPECT_EQ(index->statistics().split, 1);
}

// Every target of every text is in exactly one sample, whatever the lengths.
TEST(SampleIndexTest, losesNoTarget) {
  for (int limit : {1, 2, 3, 7, 64})
    for (int length = 2; length < 70; ++length) {
      SampleIndexPointer index = makeIndex(makeList({length}), limit);
      int32_t next = 1;
      for (const Sample &sample : samplesInOrder(index)) {
        ASSERT_LE(static_cast<int>(sample.tokens.size()), limit);
        ASSERT_EQ(sample.tokens[0], next - 1);
        for (int32_t target : sample.targets)
          ASSERT_EQ(target, next++);
      }
      ASSERT_EQ(next, length);
    }
}

// What an answer is about may stand at the start of its input, or at the end.
TEST(SampleIndexTest, shortensPairsInTheMiddleOfTheInput) {
  SampleIndexPointer index = makeIndex(makePair(20, 4), 10);
  std::vector<Sample> samples = samplesInOrder(index);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].tokens, (Ids{1, 2, 3, 4, 18, 19, 20, 101, 102, 103}));
  EXPECT_EQ(samples[0].targets,
            (Ids{-1, -1, -1, -1, -1, -1, 101, 102, 103, 104}));
  EXPECT_EQ(index->statistics().shortened, 1);
  EXPECT_EQ(index->statistics().targetCut, 0);
  EXPECT_EQ(index->statistics().split, 0);
  // One that fits is left alone.
  index = makeIndex(makePair(7, 4), 10);
  EXPECT_EQ(samplesInOrder(index)[0].tokens.size(), 10u);
  EXPECT_EQ(index->statistics().shortened, 0);
}

TEST(SampleIndexTest, longTargetsLeaveAQuarterToTheInput) {
  SampleIndexPointer index = makeIndex(makePair(20, 40), 11);
  std::vector<Sample> samples = samplesInOrder(index);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].tokens,
            (Ids{1, 2, 20, 101, 102, 103, 104, 105, 106, 107, 108}));
  EXPECT_EQ(samples[0].targets,
            (Ids{-1, -1, 101, 102, 103, 104, 105, 106, 107, 108, 109}));
  EXPECT_EQ(index->statistics().shortened, 1);
  EXPECT_EQ(index->statistics().targetCut, 1);
}

// Whatever the lengths: one sample, as long as it may be, all of its targets in
// order from the first one, and parts of the input from both its ends.
TEST(SampleIndexTest, pairsAreNeverSplitOff) {
  for (int limit : {1, 2, 3, 4, 9, 16})
    for (int input = 2; input < 24; ++input)
      for (int target = 1; target < 24; ++target) {
        SampleIndexPointer index = makeIndex(makePair(input, target), limit);
        ASSERT_EQ(index->size(), 1);
        Sample sample = *index->read(0);
        int length = static_cast<int>(sample.tokens.size());
        ASSERT_EQ(length, std::min(limit, input + target - 1));
        ASSERT_EQ(sample.tokens[0], 1);
        int32_t expected = 101;
        for (int i = 0; i < length; ++i) {
          if (sample.targets[static_cast<size_t>(i)] == ignoreTarget)
            continue;
          ASSERT_EQ(sample.targets[static_cast<size_t>(i)], expected);
          // At two tokens of input, the one before the target is its last.
          if (expected == 101 && i > 0) {
            ASSERT_EQ(sample.tokens[static_cast<size_t>(i)], input);
          }
          ++expected;
        }
        bool cut = expected - 101 < target;
        ASSERT_GT(expected, 101);
        ASSERT_EQ(index->statistics().targetCut, cut);
        ASSERT_EQ(index->statistics().shortened, length < input + target - 1);
      }
}

TEST(SampleIndexTest, truncatesTexts) {
  SampleIndexPointer index =
      makeIndex(makeList({8, 4}), 3, LongDocuments::Truncate);
  std::vector<Sample> samples = samplesInOrder(index);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].targets, (Ids{1, 2, 3}));
  EXPECT_EQ(samples[1].targets, (Ids{101, 102, 103}));
  EXPECT_EQ(index->statistics().truncated, 1);
  EXPECT_EQ(index->statistics().tooLong(), 1);
  EXPECT_EQ(index->statistics().longestDocumentTokens, 8);
}

TEST(SampleIndexTest, skipsLongDocumentsOnDemand) {
  auto index = makeIndex(makeList({8, 4, 1, 5, 3}), 3, LongDocuments::Skip);
  EXPECT_EQ(index->size(), 2);
  EXPECT_EQ(index->statistics().skipped, 2);
  EXPECT_EQ(index->statistics().dropped, 1);
  EXPECT_EQ(index->statistics().tokens, 3 + 2);
  EXPECT_EQ(index->firstSample(3), 1);
  EXPECT_EQ(index->statistics().tooLong(), 2);
  EXPECT_EQ(index->statistics().longestDocument, 0);
  EXPECT_EQ(index->statistics().longestDocumentTokens, 8);
  EXPECT_EQ(index->statistics().longestSample(), 3);
  EXPECT_EQ(makeIndex(makeList({4, 4}), 3)->statistics().longestDocument, -1);
  // Pairs as well, whose input would be cut otherwise.
  expectFailure(SampleIndex::create(makePair(20, 4), {10, LongDocuments::Skip}),
                "those of more than 11 tokens, which are 1 of 1");
  EXPECT_TRUE(parseLongDocuments("skip").isOk());
}

TEST(SampleIndexTest, refusesLongDocumentsOnDemand) {
  expectFailure(
      SampleIndex::create(makeList({4, 5}), {3, LongDocuments::Error}),
      "list, document 1 has 5 tokens, but samples have at most 3 "
      "positions");
  expectFailure(
      SampleIndex::create(makeList({4, 5}), {3, LongDocuments::Error, "pages"}),
      "but samples have at most 3 pages; use --long-documents=split");
  expectFailure(
      SampleIndex::create(makePair(20, 4), {10, LongDocuments::Error}),
      "has 24 tokens");
  EXPECT_TRUE(parseLongDocuments("truncate").isOk());
  expectFailure(parseLongDocuments("cut"), "split, truncate, skip or error");
}

TEST(SampleIndexTest, leavesOutDocumentsWithoutTargets) {
  auto list = makeList({0, 1, 2, 5});
  list->documents[3].firstTarget = 5; // an empty target
  SampleIndexPointer index = makeIndex(list);
  std::vector<Sample> samples = samplesInOrder(index);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].tokens, (Ids{200}));
  EXPECT_EQ(index->statistics().dropped, 3);
  expectFailure(SampleIndex::create(makeList({0, 1, 1}), {}),
                "no document has a token to predict");
}

TEST(SampleIndexTest, countsWhatItReads) {
  auto list = makeList({2, 9, 30, 31, 32, 1, 5, 18, 100});
  list->documents[7].firstTarget = 16;
  for (int limit : {0, 1, 4, 10, 31, 1000}) {
    SampleIndexPointer index = makeIndex(list, limit);
    const SampleStatistics &statistics = index->statistics();
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < index->size(); ++i)
      lengths.push_back(static_cast<int64_t>(index->read(i)->tokens.size()));
    std::sort(lengths.begin(), lengths.end());
    EXPECT_EQ(statistics.documents, 9);
    EXPECT_EQ(statistics.documentTokens, 228);
    EXPECT_EQ(statistics.samples, static_cast<int64_t>(lengths.size()));
    EXPECT_EQ(statistics.tokens,
              std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)));
    EXPECT_EQ(statistics.lengthAt(0), lengths.front());
    EXPECT_EQ(statistics.lengthAt(0.5), lengths[(lengths.size() - 1) / 2]);
    EXPECT_EQ(statistics.lengthAt(1), lengths.back());
  }
}

//===--- Mini-batches and order -------------------------------------------===//

TEST(BatchReaderTest, fillsBatchesUpToTheLimit) {
  BatchReader reader(makeIndex(makeList({4, 4, 3, 21, 4})), inOrder());
  EXPECT_EQ(mustNext(reader, 7).tokens, 6); // 3 + 3, the 2 would not fit
  EXPECT_EQ(mustNext(reader, 7).tokens, 2);
  EXPECT_EQ(mustNext(reader, 7).tokens, 20); // at least one
  EXPECT_EQ(mustNext(reader, 7).tokens, 3);
  EXPECT_EQ(mustNext(reader, 7).tokens, 0);
  expectFailure(reader.next(0), "positive number of tokens");
}

TEST(BatchReaderTest, samplesDoNotDependOnBatches) {
  for (Shuffle shuffle : {Shuffle::Samples, Shuffle::Documents}) {
    BatchOptions options;
    options.shuffle = shuffle;
    options.seed = 5;
    options.epochs = 3;
    SampleIndexPointer index =
        makeIndex(makeList({4, 9, 3, 21, 4, 2, 30, 7}), 6);
    BatchReader small(index, options), large(index, options);
    std::vector<Sample> a = allSamples(small, 1), b = allSamples(large, 1000);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].id, static_cast<int64_t>(i));
      EXPECT_EQ(b[i].id, a[i].id);
      EXPECT_EQ(b[i].tokens, a[i].tokens);
      EXPECT_EQ(b[i].targets, a[i].targets);
    }
  }
}

/// The documents that the samples of one epoch come from, in their order.
std::vector<int32_t> documentsInOrder(Shuffle shuffle, uint64_t seed,
                                      int64_t epoch) {
  BatchOptions options;
  options.shuffle = shuffle;
  options.seed = seed;
  options.epochs = epoch + 1;
  // Twenty documents of ten samples each.
  SampleIndexPointer index = makeIndex(makeList(std::vector<int>(20, 41)), 4);
  BatchReader reader(index, options);
  std::vector<Sample> samples = allSamples(reader);
  std::vector<int32_t> documents;
  std::set<int32_t> starts;
  for (auto at = samples.begin() + 200 * epoch; at < samples.end(); ++at) {
    documents.push_back(at->tokens[0] / 100);
    starts.insert(at->tokens[0]);
  }
  EXPECT_EQ(documents.size(), 200u);
  EXPECT_EQ(starts.size(), 200u) << "a sample came twice";
  return documents;
}

int changes(const std::vector<int32_t> &values) {
  int count = 0;
  for (size_t i = 1; i < values.size(); ++i)
    count += values[i] != values[i - 1];
  return count;
}

TEST(BatchReaderTest, shufflesSamplesOverTheWholeSet) {
  std::vector<int32_t> order = documentsInOrder(Shuffle::Samples, 1, 0);
  // One in twenty neighbours is of the same document.
  EXPECT_GT(changes(order), 170);
  std::set<int32_t> early(order.begin(), order.begin() + 60);
  EXPECT_GT(early.size(), 15u) << "the first samples are of few documents";
  EXPECT_NE(order, documentsInOrder(Shuffle::Samples, 1, 1));
  EXPECT_NE(order, documentsInOrder(Shuffle::Samples, 2, 0));
}

TEST(BatchReaderTest, shufflesDocumentsIfAsked) {
  std::vector<int32_t> order = documentsInOrder(Shuffle::Documents, 1, 0);
  EXPECT_EQ(changes(order), 19);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(order, documentsInOrder(Shuffle::Documents, 1, 1));
  EXPECT_NE(order, documentsInOrder(Shuffle::Documents, 2, 0));
  std::vector<int32_t> none = documentsInOrder(Shuffle::None, 1, 1);
  EXPECT_TRUE(std::is_sorted(none.begin(), none.end()));
  EXPECT_TRUE(parseShuffle("none").isOk());
  expectFailure(parseShuffle("tokens"), "samples, documents or none");
}

TEST(BatchReaderTest, continuesFromEveryCursor) {
  for (Shuffle shuffle :
       {Shuffle::Samples, Shuffle::Documents, Shuffle::None}) {
    BatchOptions options;
    options.shuffle = shuffle;
    options.seed = 9;
    options.epochs = 3;
    SampleIndexPointer index =
        makeIndex(makeList({4, 9, 3, 21, 4, 2, 30, 7, 1, 0}), 5);
    BatchReader whole(index, options);
    std::vector<DataCursor> cursors;
    std::vector<MiniBatch> batches;
    while (true) {
      cursors.push_back(whole.cursor());
      batches.push_back(mustNext(whole, 12));
      if (batches.back().samples.empty())
        break;
    }
    ASSERT_GT(batches.size(), 12u);
    bool sawPiece = false;
    for (size_t start = 0; start < cursors.size(); ++start) {
      sawPiece |= cursors[start].piece > 0;
      // Through text, as a checkpoint stores it.
      StatusOr<JsonValue> json = parseJson(cursors[start].toJson().text());
      ASSERT_TRUE(json.isOk()) << json.status().message();
      StatusOr<DataCursor> cursor = DataCursor::fromJson(*json);
      ASSERT_TRUE(cursor.isOk()) << cursor.status().message();
      EXPECT_EQ(*cursor, cursors[start]);
      BatchReader resumed(index, options);
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
    EXPECT_EQ(sawPiece, shuffle == Shuffle::Documents);
  }
}

TEST(BatchReaderTest, refusesForeignCursors) {
  SampleIndexPointer index = makeIndex(makeList({4, 9}), 4);
  BatchReader reader(index, inOrder(0));
  const DataCursor good = reader.cursor();
  auto refuse = [&](auto change, const char *message) {
    DataCursor cursor = good;
    change(cursor);
    expectFailure(reader.seek(cursor), message);
    EXPECT_EQ(reader.cursor(), good);
  };
  refuse([](DataCursor &c) { c.documents = 3; },
         "3 documents when the run was saved, 2 now");
  refuse([](DataCursor &c) { c.fingerprint ^= 1; },
         "lengths or contents are not those of the run that was saved");
  refuse([](DataCursor &c) { c.epochSamples = 5; }, "5 samples (which follow");
  refuse([](DataCursor &c) { c.shuffle = Shuffle::Documents; },
         "saved with --shuffle=documents");
  refuse([](DataCursor &c) { c.place = 4; }, "lies outside the data");
  refuse([](DataCursor &c) { c.piece = 1; }, "lies outside the data");
  // On request it goes on all the same, with an epoch that has not begun.
  DataCursor other = good;
  other.documents = 7;
  other.place = 5;
  other.samples = 12;
  reader.seekNextEpoch(other);
  EXPECT_EQ(reader.cursor().epoch, 1);
  EXPECT_EQ(mustNext(reader, 100).samples[0].id, 12);
}

TEST(BatchReaderTest, refusesMalformedCursors) {
  auto read = [](const std::string &text) {
    return DataCursor::fromJson(*parseJson(text));
  };
  std::string good = DataCursor().toJson().text();
  ASSERT_TRUE(read(good).isOk());
  auto with = [&](const std::string &part, const std::string &other) {
    std::string text = good;
    size_t at = text.find(part);
    EXPECT_NE(at, text.npos) << part;
    return text.replace(at, part.size(), other);
  };
  expectFailure(read("{}"), "\"epoch\"");
  expectFailure(read("{\"epoch\": -1}"), "\"epoch\"");
  expectFailure(read(with("\"epoch\": 0", "\"epoch\": 9223372036854775807")),
                "\"epoch\"");
  expectFailure(
      read(with("\"samples\": 0", "\"samples\": 9223372036854775807")),
      "\"samples\"");
  expectFailure(read("{\"epoch\": 0, \"document\": 1, \"offset\": 0, "
                     "\"samples\": 2, \"documents\": 3}"),
                "of an earlier version");
  expectFailure(
      read(with("\"shuffle\": \"samples\"", "\"shuffle\": \"tokens\"")),
      "\"shuffle\"");
  for (const char *bad : {"\"123\"", "\"000000000000000g\"", "5"})
    expectFailure(read(with("\"0000000000000000\"", bad)), "\"data\"");
}

//===--- Padding ----------------------------------------------------------===//

TEST(PaddingTest, takesTheLongestOfAMicroBatch) {
  using Lengths = std::vector<int64_t>;
  EXPECT_EQ(paddedLengths({3, 5, 2, 9, 1, 1, 12, 4}, 16),
            (Lengths{5, 5, 5, 9, 1, 1, 12, 4}));
  EXPECT_EQ(paddedLengths({}, 16), Lengths());
  EXPECT_EQ(paddedLengths({20, 20}, 16), (Lengths{20, 20}));
}

TEST(PaddingTest, joinsSamples) {
  MiniBatch batch;
  batch.samples = {
      {7, {1, 2}, {2, ignoreTarget}}, {8, {3}, {4}}, {9, {5}, {6}}};
  batch.tokens = 4;
  batch.targets = 3;
  MiniBatch same = batch;
  joinSamples(same, {});
  EXPECT_EQ(same.samples.size(), 3u);
  joinSamples(batch, {{0, 2}, {1}});
  ASSERT_EQ(batch.samples.size(), 2u);
  EXPECT_EQ(batch.samples[0].id, 7);
  EXPECT_EQ(batch.samples[0].tokens, (std::vector<int32_t>{1, 2, 5}));
  EXPECT_EQ(batch.samples[0].targets,
            (std::vector<int32_t>{2, ignoreTarget, 6}));
  EXPECT_EQ(batch.samples[1].id, 8);
  EXPECT_EQ(batch.tokens, 4);
  EXPECT_EQ(batch.targets, 3);
}

TEST(PaddingTest, addsNothingToTheLoss) {
  BatchReader reader(makeIndex(makeList({4, 9, 3})), inOrder());
  MiniBatch batch = mustNext(reader, 100);
  padSamples(batch, 100);
  for (const Sample &sample : batch.samples) {
    EXPECT_EQ(sample.tokens.size(), 8u);
    EXPECT_EQ(sample.targets.size(), 8u);
  }
  EXPECT_EQ(batch.tokens, 13);
  EXPECT_EQ(batch.targets, 13);
  EXPECT_EQ(batch.samples[0].tokens, (Ids{0, 1, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.samples[0].targets, (Ids{1, 2, 3, -1, -1, -1, -1, -1}));
}

//===--- Permutations -----------------------------------------------------===//

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
