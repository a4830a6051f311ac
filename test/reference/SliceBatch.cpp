//===- SliceBatch.cpp - Cuts batches into token slices --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/SliceBatch.h"

#include "test/reference/RandomModule.h"

#include <algorithm>
#include <set>

using namespace mlir::dyna;
using namespace mlir::dyna::reference;

Batch mlir::dyna::reference::makeBatch(ModelOp model,
                                       const std::vector<int64_t> &lengths,
                                       uint64_t seed) {
  Choices choices(seed);
  Batch batch;
  batch.segments = Segments::ofLengths(lengths, choices.between(0, 1000));
  const int64_t vocabulary = model.getFacts().getVocabulary();
  for (int64_t t = 0; t < batch.segments.tokens(); ++t) {
    batch.ids.push_back(
        static_cast<int32_t>(choices.between(0, vocabulary - 1)));
    const int64_t target = choices.between(0, vocabulary - 1);
    batch.targets.push_back(
        static_cast<int32_t>(choices.chance(0.2) ? -1 : target));
  }
  return batch;
}

/// Draws `count` different numbers in [low, high], ascending.
static std::vector<int64_t> drawDistinct(Choices &choices, int64_t count,
                                         int64_t low, int64_t high) {
  std::set<int64_t> drawn;
  while (static_cast<int64_t>(drawn.size()) < count)
    drawn.insert(choices.between(low, high));
  return {drawn.begin(), drawn.end()};
}

namespace {
/// Tokens [begin, end) of a sample, in part `part`.
struct Piece {
  const Segment *sample;
  int64_t begin, end, part;
  int64_t storeRow; ///< of the sample's first token; -1: the sample is whole
};
} // namespace

static void append(SlicedBatch &sliced, const Batch &whole,
                   const Piece &piece) {
  auto index = static_cast<size_t>(piece.part);
  Batch &part = sliced.parts[index];
  std::vector<int64_t> &rows = sliced.rows[index];
  const auto row = static_cast<int64_t>(rows.size());
  Segment segment = *piece.sample;
  segment.queryBegin = row;
  segment.queryLength = piece.end - piece.begin;
  // Rows of the store are numbered once all tokens of the part are known.
  segment.keyBegin = piece.storeRow < 0 ? row : piece.storeRow;
  segment.keyLength = piece.end;
  segment.position = piece.begin;
  part.segments.list.push_back(segment);
  for (int64_t token = piece.begin; token < piece.end; ++token) {
    const int64_t from = piece.sample->queryBegin + token;
    rows.push_back(from);
    part.ids.push_back(whole.ids[static_cast<size_t>(from)]);
    part.targets.push_back(whole.targets[static_cast<size_t>(from)]);
  }
}

SlicedBatch mlir::dyna::reference::sliceBatch(const Batch &batch, uint64_t seed,
                                              int64_t most) {
  Choices choices(seed * 7919 + 13);
  const int64_t parts = choices.between(2, std::max<int64_t>(2, most));
  std::vector<Piece> pieces;
  int64_t stored = 0;
  for (const Segment &sample : batch.segments.list) {
    const int64_t length = sample.queryLength;
    if (length < 2 || choices.chance(0.25)) {
      pieces.push_back({&sample, 0, length, choices.between(0, parts - 1), -1});
      continue;
    }
    const int64_t count = choices.between(2, std::min(parts, length));
    std::vector<int64_t> ends =
        choices.chance(0.2) ? std::vector<int64_t>()
                            : drawDistinct(choices, count - 1, 1, length - 1);
    for (int64_t i = 1; static_cast<int64_t>(ends.size()) < count - 1; ++i)
      ends.push_back(i); // single tokens, then the rest
    ends.push_back(length);
    const std::vector<int64_t> places =
        drawDistinct(choices, count, 0, parts - 1);
    for (size_t i = 0; i < ends.size(); ++i)
      pieces.push_back(
          {&sample, i == 0 ? 0 : ends[i - 1], ends[i], places[i], stored});
    stored += length;
  }
  SlicedBatch sliced;
  sliced.parts.resize(static_cast<size_t>(parts));
  sliced.rows.resize(static_cast<size_t>(parts));
  std::vector<std::vector<bool>> isSlice(sliced.parts.size());
  for (const Piece &piece : pieces) {
    append(sliced, batch, piece);
    isSlice[static_cast<size_t>(piece.part)].push_back(piece.storeRow >= 0);
  }
  for (size_t i = 0; i < sliced.parts.size(); ++i) {
    Batch &part = sliced.parts[i];
    part.ignored = batch.ignored;
    part.stored = stored;
    for (size_t s = 0; s < isSlice[i].size(); ++s)
      if (isSlice[i][s])
        part.segments.list[s].keyBegin +=
            static_cast<int64_t>(sliced.rows[i].size());
  }
  // One micro-batch without tokens is left if there are no tokens at all.
  for (size_t i = sliced.parts.size(); i-- > 0 && sliced.parts.size() > 1;)
    if (sliced.rows[i].empty()) {
      sliced.parts.erase(sliced.parts.begin() + static_cast<ptrdiff_t>(i));
      sliced.rows.erase(sliced.rows.begin() + static_cast<ptrdiff_t>(i));
    }
  return sliced;
}
