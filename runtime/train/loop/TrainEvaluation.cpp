//===- TrainEvaluation.cpp - Evaluates held-out documents in a run --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Metrics have two kinds of held-out losses:
//
//   {"held_out": "start", "step": 0, "loss": ...}            at the start or end
//   {"held_out": "curve", "step": 20, "held_out_loss": ...}  --evaluate-every
//
// A point of the curve depends on its step alone. So a run that is stopped and
// resumed writes the same lines as one without a pause.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Trainer.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"

namespace dyna {

StatusOr<Evaluation> Trainer::evaluateNow() {
  DYNA_ASSIGN_OR_RETURN(Evaluation evaluation,
                        evaluate(session_, session_.heldOut,
                                 options_.heldOutTokens,
                                 summary_.firstStep + summary_.steps));
  summary_.stoppedBy = evaluation.stoppedBy;
  if (!evaluation.failure.isOk())
    return saveAndFail(evaluation.failure);
  return evaluation;
}

/// Adds the fields that every line of an evaluation has after its loss.
static void addEvaluation(JsonObject &line, const Evaluation &evaluation) {
  addLosses(line, evaluation.losses);
  line.add("bits_per_byte", evaluation.bitsPerByte)
      .add("targets", evaluation.targets)
      .add("seconds", jsonFixed(evaluation.seconds, 3));
}

Status Trainer::evaluateHeldOut(std::optional<Evaluation> &result,
                                const char *when) {
  if (!session_.heldOut || summary_.stoppedBy)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(Evaluation evaluation, evaluateNow());
  if (summary_.stoppedBy)
    return Status::ok();
  result = evaluation;
  const int64_t step = summary_.firstStep + summary_.steps;
  writeCurvePoint(step, evaluation);
  // A resumed run writes the same lines as a run without the pause.
  const bool goesOn = resumed_ && summary_.steps == 0 &&
                      metrics_.hasAnyHeldOut() &&
                      summary_.firstStep < options_.steps;
  // The last loss of a run is the first loss of its continuation, so write it
  // once.
  if (goesOn || !metrics_.startHeldOut(step))
    return Status::ok();
  JsonObject line;
  line.add("held_out", when).add("step", step).add("loss", evaluation.loss);
  addEvaluation(line, evaluation);
  checkLogged(metrics_.writeLine(line.text()));
  return Status::ok();
}

void Trainer::writeCurvePoint(int64_t step, const Evaluation &evaluation) {
  if (!isCurveDue(step) || !metrics_.startCurvePoint(step))
    return;
  JsonObject line;
  line.add("held_out", "curve")
      .add("step", step)
      .add("held_out_loss", evaluation.loss);
  addEvaluation(line, evaluation);
  checkLogged(metrics_.writeLine(line.text()));
}

Status Trainer::evaluateOnTheWay(int64_t step) {
  // Other functions evaluate before the first step and after the last one.
  if (!session_.heldOut || !isCurveDue(step) || step >= options_.steps)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(Evaluation evaluation, evaluateNow());
  if (summary_.stoppedBy)
    return Status::ok();
  writeCurvePoint(step, evaluation);
  if (session_.writesFiles() && !options_.noProgress)
    progress_.note(
        formatText("step %d: held-out loss %.4f", step, evaluation.loss));
  return Status::ok();
}

} // namespace dyna
