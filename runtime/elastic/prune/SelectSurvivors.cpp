//===- SelectSurvivors.cpp - Finds a model's largest weights --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/SelectSurvivors.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace dyna {
namespace {

/// Bits that are counted at one time.
constexpr int groupBits = 11;
/// Weights that can still be the smallest one are copied if they are at most this part
/// of all. The others are found again.
constexpr int64_t copiedPart = 8;
/// Weights whose counts fit 32 bits.
constexpr int64_t strip = int64_t{1} << 30;
/// Lists of counts that a loop writes in turn. Consecutive weights often have
/// equal high bits, and a counter that was just written cannot be read at once.
constexpr size_t lists = 4;

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <typename T> constexpr int magnitudeBits = 8 * sizeof(T) - 1;

template <typename T> BitsOf<T> magnitudeOf(T value) {
  BitsOf<T> bits;
  std::memcpy(&bits, &value, sizeof value);
  return bits & (~BitsOf<T>(0) >> 1);
}

template <typename T> BitsOf<T> infinityBits() {
  return sizeof(T) == 4 ? BitsOf<T>(0x7F800000u)
                        : static_cast<BitsOf<T>>(0x7FF0000000000000ull);
}

/// Bits that numbers below `end` have.
int bitsBelow(int64_t end) {
  int bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < end)
    ++bits;
  return bits;
}

template <typename T> class Selection {
public:
  Selection(const std::vector<WeightBox<T>> &weights, int64_t kept,
            int64_t positions, const SumCounts &sum)
      : weights_(weights), kept_(kept), positions_(positions), sum_(sum) {
    for (const WeightBox<T> &box : weights)
      own_ += box.rows * box.columns;
  }

  StatusOr<Survivors> run() {
    int left = magnitudeBits<T>;
    wanted_ = kept_;
    DYNA_RETURN_IF_ERROR(countHighest(left));
    if (kept_ == 0)
      return Survivors{~uint64_t{0}, 0, 0};
    while (left > 0)
      DYNA_RETURN_IF_ERROR(countNext(left));
    Survivors survivors{prefix_, positions_, kept_};
    if (wanted_ < inPrefix_)
      DYNA_RETURN_IF_ERROR(cutTies(survivors));
    return survivors;
  }

private:
  struct Candidate {
    BitsOf<T> bits;
    int64_t position;
  };

  /// Counts all weights by their highest bits, and looks for what is no number.
  Status countHighest(int &left) {
    const int shift = left - groupBits;
    const size_t bins = size_t{1} << groupBits;
    std::vector<int64_t> counts(bins + 1, 0);
    BitsOf<T> largest = 0;
    for (const WeightBox<T> &box : weights_)
      if (box.mask)
        countAmong(box, shift, counts, largest);
      else
        for (int64_t begin = 0, all = box.rows * box.columns; begin < all;
             begin += strip)
          countStrip(box.values + begin, std::min(strip, all - begin), shift,
                     counts, largest);
    counts[bins] = largest > infinityBits<T>();
    ownCounts_ = counts;
    DYNA_RETURN_IF_ERROR(sum_(counts));
    if (counts[bins] > 0)
      return Status::invalidArgument(
          "pruning: a weight is no number (NaN), so magnitudes have no order: "
          "go on from an earlier checkpoint");
    counts.pop_back();
    int64_t total = 0;
    for (int64_t count : counts)
      total += count;
    if (kept_ < 0 || kept_ > total)
      return Status::invalidArgument(
          formatText("pruning: %d weights are to survive, but there are %d",
                     kept_, total));
    if (kept_ > 0)
      takeHighest(counts, groupBits);
    left = shift;
    return Status::ok();
  }

  static void countAmong(const WeightBox<T> &box, int shift,
                         std::vector<int64_t> &counts, BitsOf<T> &largest) {
    for (int64_t i = 0, all = box.rows * box.columns; i < all; ++i) {
      if (box.mask[i] != box.among)
        continue;
      const BitsOf<T> bits = magnitudeOf(box.values[i]);
      largest = std::max(largest, bits);
      ++counts[static_cast<size_t>(bits >> shift)];
    }
  }

  static void countStrip(const T *values, int64_t count, int shift,
                         std::vector<int64_t> &counts, BitsOf<T> &largest) {
    std::array<std::array<uint32_t, size_t{1} << groupBits>, lists> own{};
    BitsOf<T> most = largest;
    int64_t i = 0;
    for (; i + static_cast<int64_t>(lists) <= count;
         i += static_cast<int64_t>(lists))
      for (size_t l = 0; l < lists; ++l) {
        const BitsOf<T> bits = magnitudeOf(values[i + static_cast<int64_t>(l)]);
        most = std::max(most, bits);
        ++own[l][bits >> shift];
      }
    for (; i < count; ++i) {
      const BitsOf<T> bits = magnitudeOf(values[i]);
      most = std::max(most, bits);
      ++own[0][bits >> shift];
    }
    largest = most;
    for (const auto &list : own)
      for (size_t bin = 0; bin < list.size(); ++bin)
        counts[bin] += list[bin];
  }

  /// Goes on with the highest value of these bits that has a weight which is wanted.
  void takeHighest(const std::vector<int64_t> &counts, int width) {
    size_t bin = counts.size() - 1;
    for (; counts[bin] < wanted_; --bin)
      wanted_ -= counts[bin];
    prefix_ = prefix_ << width | bin;
    inPrefix_ = counts[bin];
    ownInPrefix_ = ownCounts_[bin];
  }

  /// Counts weights with the prefix by their next bits.
  Status countNext(int &left) {
    const int width = std::min(left, groupBits), shift = left - width;
    const uint64_t mask = (uint64_t{1} << width) - 1;
    std::vector<int64_t> counts(size_t{1} << width, 0);
    const bool copies = !isCopied_ && ownInPrefix_ <= own_ / copiedPart;
    if (copies)
      candidates_.reserve(static_cast<size_t>(ownInPrefix_));
    forEach(left, [&](BitsOf<T> bits, int64_t position) {
      ++counts[static_cast<size_t>(bits >> shift & mask)];
      if (copies)
        candidates_.push_back({bits, position});
    });
    isCopied_ |= copies;
    ownCounts_ = counts;
    DYNA_RETURN_IF_ERROR(sum_(counts));
    takeHighest(counts, width);
    left = shift;
    return Status::ok();
  }

  /// Finds the position behind the last tie that is wanted.
  Status cutTies(Survivors &survivors) {
    int64_t wanted = wanted_;
    uint64_t prefix = 0;
    for (int left = bitsBelow(positions_); left > 0;) {
      const int width = std::min(left, groupBits), shift = left - width;
      const uint64_t mask = (uint64_t{1} << width) - 1;
      std::vector<int64_t> counts(size_t{1} << width, 0);
      forEach(0, [&](BitsOf<T>, int64_t position) {
        const auto place = static_cast<uint64_t>(position);
        if (place >> left == prefix)
          ++counts[static_cast<size_t>(place >> shift & mask)];
      });
      DYNA_RETURN_IF_ERROR(sum_(counts));
      size_t bin = 0;
      for (; counts[bin] < wanted; ++bin)
        wanted -= counts[bin];
      prefix = prefix << width | bin;
      left = shift;
    }
    survivors.endPosition = static_cast<int64_t>(prefix) + 1;
    return Status::ok();
  }

  /// Calls a function for each own weight whose bits above the lowest `left` are the
  /// prefix.
  template <typename Function>
  void forEach(int left, const Function &function) {
    if (ownInPrefix_ == 0)
      return;
    if (isCopied_) {
      for (const Candidate &one : candidates_)
        if (one.bits >> left == prefix_)
          function(one.bits, one.position);
      return;
    }
    for (const WeightBox<T> &box : weights_)
      for (int64_t row = 0; row < box.rows; ++row) {
        const T *values = box.values + row * box.columns;
        const int64_t position = box.position + row * box.rowStride;
        const uint8_t *mask = box.mask ? box.mask + row * box.columns : nullptr;
        for (int64_t column = 0; column < box.columns; ++column)
          if (const BitsOf<T> bits = magnitudeOf(values[column]);
              bits >> left == prefix_ && (!mask || mask[column] == box.among))
            function(bits, position + column);
      }
  }

  const std::vector<WeightBox<T>> &weights_;
  const int64_t kept_, positions_;
  const SumCounts &sum_;
  int64_t own_ = 0; ///< weights of this rank
  /// The bits of the smallest survivor that are known.
  uint64_t prefix_ = 0;
  int64_t wanted_ = 0;      ///< survivors among the weights with the prefix
  int64_t inPrefix_ = 0;    ///< weights with the prefix, of all ranks
  int64_t ownInPrefix_ = 0; ///< weights of this rank in the prefix
  std::vector<int64_t> ownCounts_;
  bool isCopied_ = false;
  std::vector<Candidate> candidates_;
};

/// Marks weights from a magnitude on, or above it.
template <typename T>
int64_t markRow(const T *values, int64_t count, uint64_t magnitude,
                bool includesTies, uint8_t *mask) {
  // Compare magnitudes, which have no sign. To include ties, begin one lower.
  const uint64_t above = includesTies ? magnitude : magnitude + 1;
  int64_t marked = 0;
  for (int64_t i = 0; i < count; ++i) {
    mask[i] = magnitudeOf(values[i]) >= above;
    marked += mask[i];
  }
  return marked;
}

/// Takes back the marks of weights that were not compared.
template <typename T>
int64_t unmarkOthers(const WeightBox<T> &box, uint8_t *mask) {
  int64_t marked = 0;
  for (int64_t i = 0, all = box.rows * box.columns; i < all; ++i) {
    mask[i] = mask[i] != 0 && box.mask[i] == box.among;
    marked += mask[i];
  }
  return marked;
}

} // namespace

template <typename T>
StatusOr<Survivors> selectSurvivors(const std::vector<WeightBox<T>> &weights,
                                    int64_t kept, int64_t positions,
                                    const SumCounts &sum) {
  return Selection<T>(weights, kept, positions, sum).run();
}

template <typename T>
int64_t markSurvivors(const WeightBox<T> &box, const Survivors &survivors,
                      uint8_t *mask) {
  int64_t marked = 0;
  if (survivors.count == 0) {
    std::fill_n(mask, box.rows * box.columns, uint8_t{0});
    return 0;
  }
  for (int64_t row = 0; row < box.rows; ++row) {
    const int64_t position = box.position + row * box.rowStride;
    const int64_t ties =
        std::clamp<int64_t>(survivors.endPosition - position, 0, box.columns);
    const int64_t at = row * box.columns;
    marked +=
        markRow(box.values + at, ties, survivors.magnitude, true, mask + at);
    marked += markRow(box.values + at + ties, box.columns - ties,
                      survivors.magnitude, false, mask + at + ties);
  }
  return box.mask ? unmarkOthers(box, mask) : marked;
}

template StatusOr<Survivors>
selectSurvivors<float>(const std::vector<WeightBox<float>> &, int64_t, int64_t,
                       const SumCounts &);
template StatusOr<Survivors>
selectSurvivors<double>(const std::vector<WeightBox<double>> &, int64_t,
                        int64_t, const SumCounts &);
template int64_t markSurvivors<float>(const WeightBox<float> &,
                                      const Survivors &, uint8_t *);
template int64_t markSurvivors<double>(const WeightBox<double> &,
                                       const Survivors &, uint8_t *);

} // namespace dyna
