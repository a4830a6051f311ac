//===- ShareResults.cpp - Tells all ranks what a step has left ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/Executor.h"

#include <algorithm>
#include <array>

namespace dyna {

void Executor::addLosses(StepResult &result) const {
  const size_t kinds = lossWeights_.size();
  result.microBatchLosses.assign(result.lossParts.size() / kinds, 0);
  result.layerLosses.assign(kinds, 0);
  for (size_t i = 0; i < result.lossParts.size(); ++i) {
    const double loss = result.lossParts[i];
    result.microBatchLosses[i / kinds] += lossWeights_[i % kinds] * loss;
    result.layerLosses[i % kinds] += loss;
  }
  for (double loss : result.microBatchLosses)
    result.lossSum += loss;
}

Status Executor::shareResults(StepResult &result) {
  const size_t losses = result.lossParts.size();
  if (losses == 0)
    return Status::ok();
  // One rank knows each number, and the others add 0. Bytes are far below 2^53.
  std::vector<double> values = result.lossParts;
  const std::array<double, 7> own = {
      result.busySeconds,
      static_cast<double>(persistentBytes() + result.dynamicBytes),
      result.flops,
      result.switchSeconds,
      static_cast<double>(result.switchBytes),
      result.coreWaitSeconds,
      result.isDropped ? 1.0 : 0.0};
  const size_t end =
      losses + own.size() * static_cast<size_t>(machine_.ranks());
  values.resize(end);
  std::copy(own.begin(), own.end(),
            values.data() + losses +
                own.size() * static_cast<size_t>(machine_.rank()));
  // A rank without a place has no norm of its own.
  const bool sharesNorm = activeRanks_ < machine_.ranks();
  if (sharesNorm) {
    values.push_back(machine_.rank() == 0 ? result.gradientNorm : 0);
    std::vector<double> norms(layers_, 0);
    if (machine_.rank() == 0 && !result.layerNorms.empty())
      norms = result.layerNorms;
    values.insert(values.end(), norms.begin(), norms.end());
  }
  if (!options_.sharesLayerTimes)
    result.layerSeconds.clear();
  else
    result.layerSeconds.resize(layers_); // none on ranks without a place
  values.insert(values.end(), result.layerSeconds.begin(),
                result.layerSeconds.end());
  DYNA_RETURN_IF_ERROR(sumOverRanks(values));
  std::copy(values.end() -
                static_cast<std::ptrdiff_t>(result.layerSeconds.size()),
            values.end(), result.layerSeconds.begin());
  if (sharesNorm) {
    const auto norm = values.begin() + static_cast<std::ptrdiff_t>(end);
    result.gradientNorm = *norm;
    result.layerNorms.assign(norm + 1, norm + 1 + layers_);
  }
  for (size_t at = losses; at < end; at += own.size()) {
    result.uses.push_back(
        {values[at], static_cast<int64_t>(values[at + 1]), values[at + 2],
         values[at + 3], static_cast<int64_t>(values[at + 4]), values[at + 5]});
    result.isDropped |= values[at + 6] != 0;
  }
  values.resize(losses);
  result.lossParts = std::move(values);
  addLosses(result);
  return Status::ok();
}

} // namespace dyna
