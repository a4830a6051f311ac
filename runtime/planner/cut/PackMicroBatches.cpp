//===- PackMicroBatches.cpp - Packs bins under a token limit --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PackMicroBatches.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

using Bins = std::vector<std::vector<int64_t>>;

/// Returns sample indices, longest first; equal ones in their order.
std::vector<int64_t> longestFirst(const std::vector<int64_t> &lengths) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  return order;
}

Bins firstFit(const std::vector<int64_t> &lengths,
              const std::vector<int64_t> &order, int64_t limit) {
  Bins bins;
  std::vector<int64_t> tokens;
  for (int64_t sample : order) {
    size_t bin = 0;
    while (bin < bins.size() && tokens[bin] + lengths[sample] > limit)
      ++bin;
    if (bin == bins.size()) {
      bins.emplace_back();
      tokens.push_back(0);
    }
    bins[bin].push_back(sample);
    tokens[bin] += lengths[sample];
  }
  return bins;
}

/// Puts each sample into the bin with the least work that has room. Returns
/// false if one finds no room.
bool balance(const std::vector<int64_t> &lengths,
             const std::vector<int64_t> &order, const PackOptions &options,
             Bins &bins) {
  std::vector<int64_t> tokens(bins.size(), 0);
  std::vector<double> work(bins.size(), 0);
  for (std::vector<int64_t> &bin : bins)
    bin.clear();
  for (int64_t sample : order) {
    int64_t length = lengths[sample];
    size_t best = bins.size();
    for (size_t bin = 0; bin < bins.size(); ++bin)
      if (tokens[bin] + length <= options.maxTokens &&
          (best == bins.size() || work[bin] < work[best]))
        best = bin;
    if (best == bins.size())
      return false;
    bins[best].push_back(sample);
    tokens[best] += length;
    double pairs =
        0.5 * static_cast<double>(length) * static_cast<double>(length);
    work[best] += static_cast<double>(length) + options.tokensPerPair * pairs;
  }
  return true;
}

} // namespace

StatusOr<std::vector<std::vector<int64_t>>>
packMicroBatches(const std::vector<int64_t> &lengths,
                 const PackOptions &options) {
  if (options.maxTokens <= 0)
    return Status::invalidArgument(formatText(
        "a micro-batch of at most %d tokens holds nothing", options.maxTokens));
  for (size_t sample = 0; sample < lengths.size(); ++sample) {
    if (lengths[sample] < 0 || lengths[sample] > options.maxTokens)
      return Status::invalidArgument(formatText(
          "sample %d has %d tokens, but a micro-batch holds at most %d", sample,
          lengths[sample], options.maxTokens));
  }
  std::vector<int64_t> order = longestFirst(lengths);
  Bins packed = firstFit(lengths, order, options.maxTokens);
  Bins balanced(packed.size());
  Bins bins = balance(lengths, order, options, balanced) ? balanced : packed;
  for (std::vector<int64_t> &bin : bins)
    std::sort(bin.begin(), bin.end());
  bins.erase(std::remove_if(bins.begin(), bins.end(),
                            [](const auto &bin) { return bin.empty(); }),
             bins.end());
  std::sort(bins.begin(), bins.end());
  return bins;
}

} // namespace dyna
