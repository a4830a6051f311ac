//===- SampleIndex.cpp - Numbers the samples of a data set ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/SampleIndex.h"

#include <algorithm>
#include <cmath>

using namespace dyna;

StatusOr<LongDocuments> dyna::parseLongDocuments(std::string_view text) {
  if (text == "split")
    return LongDocuments::Split;
  if (text == "truncate")
    return LongDocuments::Truncate;
  if (text == "skip")
    return LongDocuments::Skip;
  if (text == "error")
    return LongDocuments::Error;
  return Status::invalidArgument(
      "expected split, truncate, skip or error for long documents, but got \"" +
      std::string(text) + "\"");
}

int64_t SampleStatistics::lengthAt(double fraction) const {
  int64_t wanted = std::clamp<int64_t>(
      std::llround(std::ceil(fraction * static_cast<double>(samples))), 1,
      std::max<int64_t>(samples, 1));
  int64_t seen = 0;
  for (size_t length = 0; length < counts.size(); ++length)
    if ((seen += counts[length]) >= wanted)
      return static_cast<int64_t>(length);
  return 0;
}

/// Returns true for a pair. A pair with an input of at most one token looks
/// like text, and may be treated so.
static bool isPair(const DocumentShape &shape) { return shape.firstTarget > 1; }

bool SampleIndex::isTooLong(const DocumentShape &shape) const {
  return options_.limit > 0 && shape.tokens - 1 > options_.limit &&
         shape.firstTarget < shape.tokens;
}

bool SampleIndex::isSkipped(const DocumentShape &shape) const {
  return options_.longDocuments == LongDocuments::Skip && isTooLong(shape);
}

int64_t SampleIndex::countSamples(const DocumentShape &shape) const {
  int64_t inputs = shape.tokens - 1;
  if (inputs < 1 || shape.firstTarget >= shape.tokens || isSkipped(shape))
    return 0;
  bool splits = options_.longDocuments == LongDocuments::Split &&
                options_.limit > 0 && !isPair(shape);
  return splits ? (inputs + options_.limit - 1) / options_.limit : 1;
}

SampleIndex::Part SampleIndex::shortenPair(const DocumentShape &shape) const {
  int64_t room = options_.limit + 1; // tokens, the last target included
  int64_t input = shape.firstTarget, target = shape.tokens - input;
  int64_t keptInput =
      std::max(room - target, std::min(input, std::max<int64_t>(1, room / 4)));
  int64_t keptTarget = std::min(target, room - keptInput);
  int64_t behind = keptInput / 2; // of the input, next to the target
  return {0, keptInput - behind, input - behind, input + keptTarget, keptInput};
}

SampleIndex::Part SampleIndex::partOf(const DocumentShape &shape,
                                      int64_t piece) const {
  int64_t inputs = shape.tokens - 1;
  if (options_.limit == 0 || inputs <= options_.limit)
    return {0, 0, 0, shape.tokens, shape.firstTarget};
  if (isPair(shape))
    return shortenPair(shape);
  if (options_.longDocuments == LongDocuments::Truncate)
    return {0, 0, 0, options_.limit + 1, 1};
  int64_t count = countSamples(shape);
  int64_t size = inputs / count, longer = inputs % count;
  int64_t begin = piece * size + std::min(piece, longer);
  int64_t end = begin + size + (piece < longer ? 1 : 0);
  return {begin, begin, begin, end + 1, 1};
}

Status SampleIndex::add(int64_t document) {
  DocumentShape shape = dataset_->shape(document);
  SampleStatistics &s = statistics_;
  ++s.documents;
  s.documentTokens += shape.tokens;
  int64_t count = countSamples(shape);
  firstSample_.push_back(firstSample_.back() + count);
  s.samples += count;
  if (isTooLong(shape) && shape.tokens > s.longestDocumentTokens) {
    s.longestDocument = document;
    s.longestDocumentTokens = shape.tokens;
  }
  if (count == 0) {
    ++(isSkipped(shape) ? s.skipped : s.dropped);
    return Status::ok();
  }
  int64_t inputs = shape.tokens - 1;
  if (isTooLong(shape)) {
    if (options_.longDocuments == LongDocuments::Error)
      return Status::invalidArgument(
          dataset_->describe(document) + " has " +
          std::to_string(shape.tokens) + " tokens, but samples have at most " +
          std::to_string(options_.limit) + " " + options_.limitedBy +
          "; use --long-documents=split, truncate or skip");
    if (isPair(shape))
      s.targetCut += partOf(shape, 0).end < shape.tokens;
    (isPair(shape) ? s.shortened : count > 1 ? s.split : s.truncated) += 1;
  }
  // The pieces of a document have at most two lengths, and the longer ones come
  // first.
  int64_t longest = partOf(shape, 0).inputs();
  int64_t shortest = partOf(shape, count - 1).inputs();
  int64_t longer = count == 1 ? 1 : inputs - count * shortest;
  if (longest == shortest)
    longer = count;
  if (static_cast<int64_t>(s.counts.size()) <= longest)
    s.counts.resize(static_cast<size_t>(longest) + 1);
  s.counts[static_cast<size_t>(longest)] += longer;
  s.counts[static_cast<size_t>(shortest)] += count - longer;
  s.tokens += longer * longest + (count - longer) * shortest;
  return Status::ok();
}

StatusOr<SampleIndexPointer> SampleIndex::create(DatasetPointer dataset,
                                                 const SampleOptions &options) {
  auto index = std::make_shared<SampleIndex>();
  index->dataset_ = std::move(dataset);
  index->options_ = options;
  int64_t documents = index->dataset_->size();
  index->firstSample_.reserve(static_cast<size_t>(documents) + 1);
  for (int64_t document = 0; document < documents; ++document)
    DYNA_RETURN_IF_ERROR(index->add(document));
  if (index->size() == 0 && index->statistics_.skipped > 0)
    return Status::invalidArgument(
        "no document is left: --long-documents=skip leaves out those of more "
        "than " +
        std::to_string(options.limit + 1) + " tokens, which are " +
        std::to_string(index->statistics_.skipped) + " of " +
        std::to_string(documents));
  if (index->size() == 0)
    return Status::invalidArgument(
        "no document has a token to predict (for example " +
        index->dataset_->describe(0) + "); documents need at least two tokens");
  return SampleIndexPointer(index);
}

/// Ignores ranges of a document. They come after the input, and so after the
/// gap.
Status SampleIndex::ignoreRanges(int64_t document, const Part &part,
                                 std::vector<int32_t> &targets) const {
  std::vector<DocumentRange> ranges;
  DYNA_RETURN_IF_ERROR(dataset_->readIgnored(document, ranges));
  // The target at place i is token i + 1 of the part.
  const int64_t before = part.begin + (part.gapEnd - part.gap) + 1;
  const auto size = static_cast<int64_t>(targets.size());
  for (const DocumentRange &range : ranges) {
    const int64_t begin = std::clamp<int64_t>(range.begin - before, 0, size);
    const int64_t end = std::clamp<int64_t>(range.end - before, 0, size);
    std::fill(targets.begin() + begin, targets.begin() + std::max(begin, end),
              ignoreTarget);
  }
  return Status::ok();
}

StatusOr<Sample> SampleIndex::read(int64_t number) const {
  auto after =
      std::upper_bound(firstSample_.begin(), firstSample_.end(), number);
  int64_t document = after - firstSample_.begin() - 1;
  const DocumentShape shape = dataset_->shape(document);
  Part part = partOf(shape, number - *(after - 1));
  Sample sample;
  std::vector<int32_t> &tokens = sample.tokens;
  tokens.reserve(static_cast<size_t>(part.inputs()) + 1);
  if (part.begin < part.gap)
    DYNA_RETURN_IF_ERROR(
        dataset_->readTokens(document, part.begin, part.gap, tokens));
  DYNA_RETURN_IF_ERROR(
      dataset_->readTokens(document, part.gapEnd, part.end, tokens));
  sample.targets.assign(tokens.begin() + 1, tokens.end());
  std::fill_n(sample.targets.begin(), part.firstTarget - 1, ignoreTarget);
  if (shape.hasIgnored)
    DYNA_RETURN_IF_ERROR(ignoreRanges(document, part, sample.targets));
  tokens.pop_back();
  return sample;
}
