//===- Staging.cpp - A micro-batch on its way to the device ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/Staging.h"

#include "runtime/base/Text.h"
#include "runtime/plan/ProgramBlocks.h"

#include <algorithm>
#include <cstring>

namespace dyna {
namespace {

Status checkSample(const Model &model, const Sample &sample) {
  const plan::ModelFacts &facts = model.manifest().facts();
  if (sample.targets.size() != sample.tokens.size())
    return Status::internal(formatText("sample %d has %d tokens but %d targets",
                                       sample.id, sample.tokens.size(),
                                       sample.targets.size()));
  if (facts.positions() > 0 &&
      static_cast<int64_t>(sample.tokens.size()) > facts.positions())
    return Status::invalidArgument(
        formatText("sample %d has %d tokens, the model has %d positions",
                   sample.id, sample.tokens.size(), facts.positions()));
  for (int32_t token : sample.tokens)
    if (token < 0 || token >= facts.vocabulary())
      return Status::invalidArgument(
          formatText("sample %d has token id %d, the vocabulary ends at %d",
                     sample.id, token, facts.vocabulary() - 1));
  for (int32_t target : sample.targets)
    if (target != ignoreTarget && (target < 0 || target >= facts.vocabulary()))
      return Status::invalidArgument(
          formatText("sample %d has target id %d, the vocabulary ends at %d",
                     sample.id, target, facts.vocabulary() - 1));
  return Status::ok();
}

} // namespace

StatusOr<Staging> stage(const Model &model, const plan::MicroBatch &microBatch,
                        const MiniBatch &miniBatch) {
  Staging staging;
  staging.extent = extentOf(microBatch);
  staging.layout = batchLayout(staging.extent);
  staging.tokens.resize(staging.extent.tq);
  staging.batch.resize(staging.layout.bytes, 0);
  unsigned char *batch = staging.batch.data();
  auto *targets = reinterpret_cast<int32_t *>(batch + staging.layout.targets);
  auto *segments =
      reinterpret_cast<dyna_segment *>(batch + staging.layout.segments);
  auto *rowSample =
      reinterpret_cast<int64_t *>(batch + staging.layout.rowSample);
  auto *rowPosition =
      reinterpret_cast<int64_t *>(batch + staging.layout.rowPosition);
  int64_t row = 0;
  for (const plan::Segment &segment : microBatch.segments) {
    const Sample &sample = miniBatch.samples[segment.sample];
    DYNA_RETURN_IF_ERROR(checkSample(model, sample));
    const int64_t length = segment.length;
    // What lies behind the sample's end is padding.
    const int64_t end = static_cast<int64_t>(sample.tokens.size());
    *segments++ = {sample.id, row, length, row, length, segment.begin};
    for (int64_t i = 0; i < length; ++i) {
      int64_t position = segment.begin + i;
      bool isReal = position < end;
      int32_t target = isReal ? sample.targets[position] : ignoreTarget;
      staging.tokens[row + i] = isReal ? sample.tokens[position] : 0;
      targets[row + i] = target;
      rowSample[row + i] = sample.id;
      rowPosition[row + i] = position;
      staging.targets += target != ignoreTarget;
    }
    staging.longest = std::max(staging.longest, length);
    staging.pairs += length * length;
    staging.causalPairs += length * (length + 1) / 2;
    row += length;
  }
  return staging;
}

int64_t countTargets(const MiniBatch &miniBatch) {
  int64_t targets = 0;
  for (const Sample &sample : miniBatch.samples)
    targets += std::count_if(sample.targets.begin(), sample.targets.end(),
                             [](int32_t t) { return t != ignoreTarget; });
  return targets;
}

} // namespace dyna
