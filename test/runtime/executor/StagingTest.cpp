//===- StagingTest.cpp - A micro-batch on its way to the device -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/step/Staging.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace dyna;

namespace {

Model modelWith(uint32_t tables, int64_t vocabulary) {
  TinyOptions options;
  options.vocabulary = vocabulary;
  options.batchTables = tables;
  plan::Manifest manifest = tinyManifest(options);
  tinySizes = TinySizes(); // no program was made
  manifest.mutable_facts()->set_positions(0);
  auto model = Model::create(std::move(manifest));
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return std::move(*model);
}

/// A micro-batch, and what its rows are by its definition alone.
struct Drawn {
  MiniBatch miniBatch;
  plan::MicroBatch microBatch;
  std::vector<int32_t> tokens, targets;
  std::vector<int64_t> samples, positions;
  std::vector<int64_t> phase; ///< numbers of its samples in the mini-batch
};

class StagingTest : public testing::Test {
protected:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  /// Samples in any order, whole, cut or padded.
  Drawn draw(int64_t segments, int64_t longest, int64_t vocabulary) {
    Drawn drawn;
    // Some ids are frequent.
    auto id = [&] {
      return static_cast<int32_t>(
          between(0, between(0, 1) ? std::min<int64_t>(vocabulary, 5) - 1
                                   : vocabulary - 1));
    };
    for (int64_t s = 0; s < segments; ++s) {
      Sample sample;
      sample.id = 1000 - 7 * s;
      for (int64_t i = between(1, longest); i > 0; --i) {
        sample.tokens.push_back(id());
        sample.targets.push_back(between(0, 2) ? id() : ignoreTarget);
      }
      const auto length = static_cast<int64_t>(sample.tokens.size());
      plan::Segment segment;
      segment.sample = s;
      segment.begin = between(0, 3) ? 0 : between(0, length - 1);
      segment.length = between(1, length - segment.begin) + between(0, 3);
      segment.keyBegin = segment.begin; // LOAD lays out no earlier tokens
      drawn.microBatch.segments.push_back(segment);
      for (int64_t i = 0; i < segment.length; ++i) {
        const int64_t position = segment.begin + i;
        const bool isPadding = position >= length;
        drawn.tokens.push_back(isPadding ? 0 : sample.tokens[position]);
        drawn.targets.push_back(isPadding ? ignoreTarget
                                          : sample.targets[position]);
        drawn.samples.push_back(sample.id);
        drawn.positions.push_back(position);
      }
      drawn.miniBatch.samples.push_back(std::move(sample));
      drawn.phase.push_back(segments - 1 - s);
    }
    std::reverse(drawn.miniBatch.samples.begin(),
                 drawn.miniBatch.samples.end());
    return drawn;
  }

private:
  std::mt19937_64 random_{5};
};

template <typename Key>
void expectRuns(const dyna_row_runs &runs, const std::vector<Key> &keys,
                bool isThere) {
  if (!isThere) {
    EXPECT_EQ(runs.rows, nullptr);
    EXPECT_EQ(runs.starts, nullptr);
    EXPECT_EQ(runs.count, 0);
    return;
  }
  std::map<Key, std::vector<int32_t>> rowsOf;
  for (size_t row = 0; row < keys.size(); ++row)
    rowsOf[keys[row]].push_back(static_cast<int32_t>(row));
  std::vector<int32_t> rows, starts = {0};
  for (const auto &[key, run] : rowsOf) {
    rows.insert(rows.end(), run.begin(), run.end());
    starts.push_back(static_cast<int32_t>(rows.size()));
  }
  ASSERT_EQ(runs.count + 1, static_cast<int64_t>(starts.size()));
  EXPECT_EQ(std::vector(runs.rows, runs.rows + rows.size()), rows);
  EXPECT_EQ(std::vector(runs.starts, runs.starts + starts.size()), starts);
}

void expectStaged(const Model &model, const Drawn &drawn) {
  const uint32_t tables = model.batchTables();
  auto staged = stage(model, drawn.microBatch, BundlePart(), drawn.phase,
                      drawn.miniBatch);
  ASSERT_TRUE(staged.isOk()) << staged.status().message();
  EXPECT_EQ(staged->tokens, drawn.tokens);
  // Where it lies here is an address like any other.
  const unsigned char *batch = staged->batch.data();
  const dyna_segments segments = segmentsAt(*staged, batch);
  const auto rows = static_cast<int64_t>(drawn.tokens.size());
  const auto count = static_cast<int64_t>(drawn.microBatch.segments.size());
  ASSERT_EQ(segments.tq, rows);
  ASSERT_EQ(segments.tkv, rows);
  ASSERT_EQ(segments.count, count);
  // Else cuDNN does no call.
  EXPECT_EQ(segments.keys_are_queries, 1);
  std::vector<int32_t> offsets, used;
  for (int64_t s = 0, row = 0; s < count; ++s) {
    EXPECT_EQ(segments.data[s].q_begin, row);
    offsets.push_back(static_cast<int32_t>(row));
    row += segments.data[s].q_len;
  }
  offsets.push_back(static_cast<int32_t>(rows));
  for (int64_t row = 0; row < rows; ++row)
    if (drawn.targets[row] != ignoreTarget)
      used.push_back(static_cast<int32_t>(row));
  EXPECT_EQ(std::vector(segments.row_sample, segments.row_sample + rows),
            drawn.samples);
  EXPECT_EQ(std::vector(segments.row_position, segments.row_position + rows),
            drawn.positions);
  const auto *targets =
      reinterpret_cast<const int32_t *>(batch + staged->layout.targets);
  EXPECT_EQ(std::vector(targets, targets + rows), drawn.targets);
  ASSERT_EQ(segments.targets, static_cast<int64_t>(used.size()));

  expectRuns(segments.token_runs, drawn.tokens, tables & DYNA_BATCH_TOKEN_RUNS);
  expectRuns(segments.position_runs, drawn.positions,
             tables & DYNA_BATCH_POSITION_RUNS);
  ASSERT_EQ(segments.offsets != nullptr, (tables & DYNA_BATCH_OFFSETS) != 0);
  if (segments.offsets)
    EXPECT_EQ(std::vector(segments.offsets, segments.offsets + count + 1),
              offsets);
  ASSERT_EQ(segments.target_rows != nullptr,
            (tables & DYNA_BATCH_TARGET_ROWS) != 0);
  if (segments.target_rows)
    EXPECT_EQ(
        std::vector(segments.target_rows, segments.target_rows + used.size()),
        used);
}

TEST_F(StagingTest, TablesAreThoseOfTheDefinition) {
  // Ids of one digit of the sort, of two and of three.
  for (int64_t vocabulary : {1, 11, 3000, 5000000})
    for (uint32_t tables = 0; tables <= DYNA_BATCH_TABLES; ++tables) {
      const Model model = modelWith(tables, vocabulary);
      SCOPED_TRACE(tables);
      expectStaged(model, draw(1, 1, vocabulary));
      for (int i = 0; i < 3; ++i)
        expectStaged(model, draw(between(1, 40), 60, vocabulary));
    }
  // Positions of two digits.
  expectStaged(modelWith(DYNA_BATCH_TABLES, 50257), draw(3, 5000, 50257));
}

/// Aligned parts, one behind the other; tables behind what was always there.
TEST(BatchLayoutTest, IsLinearInRoundedTokensAndSegments) {
  for (int64_t tokens : {1, 31, 32, 33, 640, 4097})
    for (int64_t segments : {1, 32, 45}) {
      const Load load = {tokens, tokens, segments};
      const int64_t t = dyna_round_rows(tokens), s = dyna_round_rows(segments);
      auto bytes = [&](uint32_t tables) {
        return batchLayout(load, tables).bytes;
      };
      const int64_t none = 20 * t + 48 * s;
      EXPECT_EQ(bytes(0), none);
      EXPECT_EQ(bytes(DYNA_BATCH_OFFSETS), none + 4 * s + 64);
      EXPECT_EQ(bytes(DYNA_BATCH_TOKEN_RUNS), none + 8 * t + 64);
      EXPECT_EQ(bytes(DYNA_BATCH_POSITION_RUNS), none + 8 * t + 64);
      EXPECT_EQ(bytes(DYNA_BATCH_TARGET_ROWS), none + 4 * t);
      EXPECT_EQ(bytes(DYNA_BATCH_TABLES), none + 4 * s + 20 * t + 3 * 64);
      const BatchLayout plain = batchLayout(load, 0);
      const BatchLayout all = batchLayout(load, DYNA_BATCH_TABLES);
      EXPECT_EQ(plain.rowPosition, all.rowPosition);
      EXPECT_EQ(plain.targetRows, -1);
      const int64_t places[] = {
          all.offsets,           all.tokenRuns.rows,      all.tokenRuns.starts,
          all.positionRuns.rows, all.positionRuns.starts, all.targetRows};
      int64_t end = plain.bytes;
      for (int64_t place : places) {
        EXPECT_EQ(place % DYNA_BLOCK_ALIGNMENT, 0);
        EXPECT_GE(place, end);
        end = place;
      }
    }
}

} // namespace
