//===- Evaluator.cpp - Computes losses without training -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Evaluator.h"

#include "runtime/base/text/Text.h"
#include "runtime/executor/step/Staging.h"
#include "runtime/train/session/Signals.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dyna {
namespace {

constexpr double ln2 = 0.69314718055994530942;

/// Vocabularies of bytes have 256 entries and few special ones.
bool isByteLevel(const Model &model) {
  int64_t vocabulary = model.manifest().facts().vocabulary();
  return vocabulary >= 256 && vocabulary <= 260;
}

int64_t countBytes(const MiniBatch &batch) {
  int64_t bytes = 0;
  for (const Sample &sample : batch.samples)
    bytes += std::count_if(sample.targets.begin(), sample.targets.end(),
                           [](int32_t t) { return t >= 0 && t < 256; });
  return bytes;
}

Status evaluateBatch(Session &session, const MiniBatch &batch, int64_t done,
                     StepResult &result) {
  DYNA_ASSIGN_OR_RETURN(
      VerifiedStep step,
      session.planner->plan(batch.lengths(), countTargets(batch),
                            /*trains=*/false, /*update=*/false));
  StepScalars scalars;
  scalars.step = std::max<int64_t>(done - 1, 0);
  return session.ranks->run(step, batch, scalars, result);
}

/// Ends the evaluation on all processes if it must end early on any.
Status agreeToGoOn(Session &session, const Status &read, Evaluation &result) {
  std::vector<bool> here = stopMarks();
  const size_t at = here.size();
  here.push_back(!read.isOk());
  DYNA_ASSIGN_OR_RETURN(auto marks, session.ranks->any(here));
  result.stoppedBy = stopSignalOf(marks);
  if (marks[at])
    result.failure =
        read.isOk() ? Status(StatusCode::PeerFailed,
                             "another process could not read the held-out data")
                    : read;
  return Status::ok();
}

} // namespace

StatusOr<int> agreeOnStop(RankTeam &ranks) {
  DYNA_ASSIGN_OR_RETURN(auto marks, ranks.any(stopMarks()));
  return stopSignalOf(marks);
}

StatusOr<Evaluation> evaluate(Session &session, const SampleIndexPointer &data,
                              int64_t tokenLimit, int64_t done) {
  auto begin = std::chrono::steady_clock::now();
  BatchOptions options = session.batchOptions();
  // A sample of the data is representative only if it is drawn from all of
  // them.
  options.shuffle =
      data->statistics().tokens > tokenLimit ? Shuffle::Samples : Shuffle::None;
  options.epochs = 1;
  BatchReader reader(data, options);
  Evaluation result;
  double lossSum = 0;
  std::vector<double> layerSums; // by layer that gives a loss
  int64_t bytes = 0;
  while (result.tokens < tokenLimit) {
    StatusOr<MiniBatch> batch = reader.next(
        std::min(session.options.tokensPerBatch, tokenLimit - result.tokens));
    DYNA_RETURN_IF_ERROR(agreeToGoOn(session, batch.status(), result));
    if (result.stoppedBy || !result.failure.isOk())
      return result;
    if (batch->samples.empty())
      break;
    StepResult step;
    DYNA_RETURN_IF_ERROR(evaluateBatch(session, *batch, done, step));
    if (step.isDropped)
      continue; // agreeToGoOn then finds the signal that dropped it
    lossSum += step.lossSum;
    layerSums.resize(step.layerLosses.size());
    for (size_t i = 0; i < layerSums.size(); ++i)
      layerSums[i] += step.layerLosses[i];
    result.tokens += batch->tokens;
    result.targets += batch->targets;
    bytes += countBytes(*batch);
  }
  if (result.targets == 0)
    return Status::invalidArgument(
        "the documents to evaluate have no token to predict");
  result.loss = lossSum / static_cast<double>(result.targets);
  result.losses = nameLosses(*session.model, layerSums, result.targets);
  if (isByteLevel(*session.model) && bytes > 0)
    result.bitsPerByte = layerSums.back() / ln2 / static_cast<double>(bytes);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return result;
}

} // namespace dyna
