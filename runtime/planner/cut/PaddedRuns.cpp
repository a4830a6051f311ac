//===- PaddedRuns.cpp - Caches the seconds of runs of an order ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PaddedRuns.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <limits>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string describe(const SampleLength &length) {
  return length.decoderTokens > 0
             ? formatText("%d + %d tokens", length.tokens, length.decoderTokens)
             : formatText("%d tokens", length.tokens);
}

std::string describe(const PaddedShape &shape) {
  return formatText(shape.samples == 1 ? "%d sample of %s" : "%d samples of %s",
                    shape.samples, describe(shape.longest));
}

Status refused(const PaddedShape &shape, double seconds, double part) {
  return Status::invalidArgument(
      formatText("costs must not fall, but %s cost %g seconds, and a part "
                 "of them %g",
                 describe(shape), seconds, part));
}

SampleLength longer(const SampleLength &a, const SampleLength &b) {
  return {std::max(a.tokens, b.tokens),
          std::max(a.decoderTokens, b.decoderTokens)};
}

} // namespace

PaddedRuns::PaddedRuns(std::vector<SampleLength> ordered,
                       const PaddedCosts &costs)
    : ordered_(std::move(ordered)), costs_(costs) {
  makeRows();
  if (std::any_of(rows_.begin(), rows_.end(),
                  [](const Row &row) { return !row.longest; }))
    makeLongest();
}

void PaddedRuns::makeRows() {
  SampleLength before;
  for (int64_t end = 0; end < count(); ++end) {
    const SampleLength &own = ordered_[end];
    SampleLength most = longer(before, own);
    if (end == 0 || !(most == own) || !(own == ordered_[end - 1]))
      rows_.emplace_back().longest = most == own;
    rows_.back().last = end;
    rowOf_.push_back(rows_.size() - 1);
    before = most;
  }
  for (Row &row : rows_) {
    row.block0.fill(-1);
    if (int64_t most = (row.last + 1) / blockRuns) {
      row.firsts.assign(octaveOf(most) + 1, -1);
      row.octaves.resize(row.firsts.size());
    }
  }
}

void PaddedRuns::makeLongest() {
  longest_ = {ordered_};
  for (int64_t half = 1; 2 * half <= count(); half *= 2) {
    const std::vector<SampleLength> &before = longest_.back();
    std::vector<SampleLength> next(ordered_.size());
    for (int64_t end = 2 * half - 1; end < count(); ++end)
      next[end] = longer(before[end], before[end - half]);
    longest_.push_back(std::move(next));
  }
}

/// Finds the longest run with room for each end. Bytes are monotone, so both
/// ends only move forward. A queue keeps samples that are longer than all later
/// ones; its front is the longest sample of the run.
Status PaddedRuns::limit(const std::vector<int64_t> &order, int64_t shareBytes,
                         int64_t limitBytes) {
  room_.resize(ordered_.size());
  std::vector<int64_t> tokens, decoderTokens;
  size_t tokensFront = 0, decoderFront = 0;
  int64_t begin = 0;
  for (int64_t end = 0; end < count(); ++end) {
    const SampleLength &own = ordered_[end];
    int64_t alone = costs_.bytes ? costs_.bytes({1, own}) : 0;
    if (alone < 0)
      return Status::invalidArgument(
          formatText("1 sample of %s keeps %d bytes", describe(own), alone));
    if (alone > limitBytes)
      return Status::resourceExhausted(formatText(
          "sample %d of %s needs %s in a micro-batch of its own, but there are "
          "%s",
          order[end], describe(own), formatBytes(alone),
          formatBytes(limitBytes)));
    auto push = [&](std::vector<int64_t> &queue, size_t front,
                    int64_t SampleLength::*key) {
      while (queue.size() > front && ordered_[queue.back()].*key <= own.*key)
        queue.pop_back();
      queue.push_back(end);
    };
    push(tokens, tokensFront, &SampleLength::tokens);
    push(decoderTokens, decoderFront, &SampleLength::decoderTokens);
    for (; begin < end && costs_.bytes; ++begin) {
      tokensFront += tokens[tokensFront] < begin;
      decoderFront += decoderTokens[decoderFront] < begin;
      PaddedShape shape = {
          end + 1 - begin,
          {ordered_[tokens[tokensFront]].tokens,
           ordered_[decoderTokens[decoderFront]].decoderTokens}};
      int64_t bytes = costs_.bytes(shape);
      if (bytes < alone)
        return Status::invalidArgument(formatText(
            "costs must not fall, but %s keep %d bytes, and one of %s %d",
            describe(shape), bytes, describe(own), alone));
      if (bytes <= std::min(shareBytes, limitBytes))
        break;
    }
    room_[end] = end + 1 - begin;
  }
  return Status::ok();
}

PaddedShape PaddedRuns::shapeOf(const Row &row, int64_t samples) const {
  if (row.longest)
    return {samples, ordered_[row.last]};
  // Two runs of a power of two samples, which may overlap, cover the samples.
  int octave = octaveOf(samples);
  int64_t first = row.last + 1 - samples;
  return {samples,
          longer(longest_[octave][row.last],
                 longest_[octave][first + (INT64_C(1) << octave) - 1])};
}

const double *PaddedRuns::knownBlock(const Row &row, int64_t block) const {
  if (block == 0)
    return row.block0.data();
  int octave = octaveOf(block);
  if (static_cast<size_t>(octave) >= row.octaves.size() ||
      row.octaves[octave].empty())
    return nullptr;
  return row.octaves[octave].data() +
         (block - (INT64_C(1) << octave)) * blockRuns;
}

double PaddedRuns::ask(const PaddedShape &shape) {
  if (!status_.isOk())
    return infinity;
  double seconds = costs_.seconds(shape);
  if (seconds >= 0 && seconds < infinity)
    return seconds;
  status_ = Status::invalidArgument(
      formatText("%s cost %g seconds", describe(shape), seconds));
  return infinity;
}

void PaddedRuns::fill(Row &row, int64_t block, double *seconds) {
  const int64_t room = room_[row.last], begin = block * blockRuns;
  PaddedShape shape;
  if (block > 0)
    shape = shapeOf(row, begin);
  for (int64_t i = 0; i < blockRuns; ++i) {
    int64_t samples = begin + i;
    if (samples == 0 || samples > room) {
      seconds[i] = infinity;
      continue;
    }
    shape.samples = samples;
    shape.longest = longer(shape.longest, ordered_[row.last + 1 - samples]);
    if (seconds[i] < 0)
      seconds[i] = ask(shape);
  }
  if (status_.isOk())
    compare(row, block, seconds);
}

void PaddedRuns::compare(const Row &row, int64_t block, const double *seconds) {
  auto check = [&](int64_t samples, double part) {
    double whole = seconds[samples - block * blockRuns];
    if (whole < part && status_.isOk())
      status_ = refused(shapeOf(row, samples), whole, part);
  };
  const double *before = knownBlock(row, block - (block > 0));
  if (block > 0 && before)
    check(block * blockRuns, before[blockRuns - 1]);
  for (int64_t i = 1; i < blockRuns; ++i)
    if (block > 0 || i > 1)
      check(block * blockRuns + i, seconds[i - 1]);
  size_t index = &row - rows_.data();
  if (index > 0)
    compareBeside(row, block, seconds, rows_[index - 1]);
  if (index + 1 < rows_.size())
    compareBeside(row, block, seconds, rows_[index + 1]);
}

/// Compares with the runs of a neighbouring row that have the same first
/// sample.
void PaddedRuns::compareBeside(const Row &row, int64_t block,
                               const double *seconds, const Row &beside) {
  const int64_t further = beside.last - row.last, begin = block * blockRuns;
  for (int64_t i = 0, next; i < blockRuns; i = next) {
    int64_t other = begin + i + further;
    next = i + 1;
    if (other < 1)
      continue;
    next = std::min(i + blockRuns - other % blockRuns, blockRuns);
    const double *known = knownBlock(beside, other / blockRuns);
    for (int64_t k = i; known && k < next; ++k) {
      double its = known[other % blockRuns + k - i];
      bool falls = further < 0 ? seconds[k] < its : its < seconds[k];
      // Negative: not asked for yet. Infinite: no room, which even a shorter
      // run may lack.
      if (!falls || its < 0 || its == infinity || seconds[k] == infinity ||
          !status_.isOk())
        continue;
      status_ = further < 0
                    ? refused(shapeOf(row, begin + k), seconds[k], its)
                    : refused(shapeOf(beside, other + k - i), its, seconds[k]);
    }
  }
}

} // namespace dyna
