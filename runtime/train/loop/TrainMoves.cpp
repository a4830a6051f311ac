//===- TrainMoves.cpp - Between two steps, to other graphs ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Trainer.h"

#include "runtime/base/JsonWriter.h"
#include "runtime/base/Text.h"

namespace dyna {

/// Returns the record of a move in the metrics, after so many steps.
static std::string moveRecord(int64_t step, const std::string &from,
                              const Session &session,
                              const ReplacementCost &cost) {
  return JsonObject()
      .add("step", step)
      .add("move", JsonObject()
                       .add("from", from)
                       .add("to", session.home().graph->name())
                       .add("version", session.version)
                       .add("sent_bytes", cost.sentBytes)
                       .add("plan_seconds", jsonFixed(cost.planSeconds, 6))
                       .add("carry_seconds", jsonFixed(cost.carrySeconds, 6)))
      .text();
}

Status Trainer::replaceIfWanted(int64_t step) {
  std::optional<NextStrategy> wanted;
  if (chooseNext_) {
    wanted = chooseNext_(step);
  } else {
    DYNA_ASSIGN_OR_RETURN(wanted, moves_.next(step));
  }
  if (!wanted)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep)
    return Status::ok();
  moves_.end(step);
  StatusOr<PlannedReplacement> planned = planReplacement(session_, *wanted);
  DYNA_ASSIGN_OR_RETURN(auto isRefused, session_.ranks->any({!planned.isOk()}));
  const std::string before = session_.home().graph->name();
  auto tell = [&](const std::string &text) {
    if (session_.writesFiles())
      progress_.note(text);
  };
  if (isRefused[0]) {
    tell(formatText("warning: step %d goes on with strategy '%s': %s", step + 1,
                    before,
                    planned.isOk() ? "another process refuses the next one"
                                   : planned.status().message()));
    return Status::ok();
  }
  // Mini-batches that were read and planned ahead are read again, for the next graphs.
  closePlans();
  DYNA_RETURN_IF_ERROR(replaceGraphs(session_, *planned));
  DYNA_RETURN_IF_ERROR(reader_.seek(cursor_));
  const ReplacementCost &cost = planned->cost;
  for (const std::string &note : planned->notes)
    tell("note: " + note);
  tell(formatText("note: from step %d on, strategy '%s' instead of '%s' "
                  "(version %d): %s were sent, %s of which were not where they "
                  "must be; %.1f ms to plan, %.1f ms to carry",
                  step + 1, session_.home().graph->name(), before,
                  session_.version, formatBytes(cost.sentBytes),
                  formatBytes(cost.missingBytes), 1e3 * cost.planSeconds,
                  1e3 * cost.carrySeconds));
  if (session_.writesFiles())
    checkLogged(metrics_.writeLine(moveRecord(step, before, session_, cost)));
  return openPlans(step);
}

} // namespace dyna
