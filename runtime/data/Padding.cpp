//===- Padding.cpp - Pads or joins samples like other programs do ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Padding.h"

#include <algorithm>

using namespace dyna;

std::vector<int64_t> dyna::paddedLengths(const std::vector<int64_t> &lengths,
                                         int64_t tokensPerMicroBatch) {
  std::vector<int64_t> padded(lengths.size());
  for (size_t begin = 0; begin < lengths.size();) {
    int64_t longest = lengths[begin];
    size_t end = begin + 1;
    for (; end < lengths.size(); ++end) {
      int64_t next = std::max(longest, lengths[end]);
      if (next * static_cast<int64_t>(end - begin + 1) > tokensPerMicroBatch)
        break;
      longest = next;
    }
    std::fill(padded.begin() + begin, padded.begin() + end, longest);
    begin = end;
  }
  return padded;
}

void dyna::padSamples(MiniBatch &miniBatch, int64_t tokensPerMicroBatch) {
  std::vector<int64_t> padded =
      paddedLengths(miniBatch.lengths(), tokensPerMicroBatch);
  for (size_t i = 0; i < padded.size(); ++i) {
    Sample &sample = miniBatch.samples[i];
    sample.tokens.resize(static_cast<size_t>(padded[i]), 0);
    sample.targets.resize(static_cast<size_t>(padded[i]), ignoreTarget);
  }
}

void dyna::joinSamples(MiniBatch &miniBatch,
                       const std::vector<std::vector<int64_t>> &rows) {
  if (rows.empty())
    return;
  std::vector<Sample> joined;
  for (const std::vector<int64_t> &row : rows) {
    Sample &sample = joined.emplace_back();
    sample.id = miniBatch.samples[row.front()].id;
    for (int64_t number : row) {
      const Sample &part = miniBatch.samples[number];
      sample.tokens.insert(sample.tokens.end(), part.tokens.begin(),
                           part.tokens.end());
      sample.targets.insert(sample.targets.end(), part.targets.begin(),
                            part.targets.end());
    }
  }
  miniBatch.samples = std::move(joined);
}
