//===- TrainMoves.cpp - Replaces graphs between two steps -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Trainer.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/train/open/SizeMoves.h"

#include <algorithm>

namespace dyna {

static JsonArray numbersOf(const std::vector<double> &values) {
  JsonArray numbers;
  for (double value : values)
    numbers.add(jsonRounded(value, 9));
  return numbers;
}

/// Returns what --rebalance knew of a move.
static JsonObject decisionRecord(const Rebalance &rebalance) {
  const MoveDecision &decision = rebalance.decision();
  const WeighedMove &move = decision.move;
  return JsonObject()
      .add("answer", wordOf(decision.answer))
      .add("stage_loads_now", numbersOf(rebalance.loads().now))
      .add("stage_loads_then", numbersOf(rebalance.loads().then))
      .add("step_seconds_now", jsonRounded(move.stepSecondsNow, 9))
      .add("step_seconds_then", jsonRounded(move.stepSecondsThen, 9))
      .add("gain_seconds", jsonRounded(move.gainSeconds, 9))
      .add("price_seconds", jsonRounded(move.priceSeconds, 9))
      .add("steps_to_earn", move.stepsToEarn);
}

/// Returns the record of a move in the metrics, after so many steps.
static std::string moveRecord(int64_t step, const std::string &from,
                              const Session &session,
                              const ReplacementCost &cost,
                              const Rebalance *rebalance) {
  JsonObject move;
  move.add("from", from)
      .add("to", session.home().graph->name())
      .add("version", session.version)
      .add("sent_bytes", cost.sentBytes)
      .add("plan_seconds", jsonFixed(cost.planSeconds, 6))
      .add("carry_seconds", jsonFixed(cost.carrySeconds, 6));
  if (rebalance)
    move.add("rebalance", decisionRecord(*rebalance));
  return JsonObject().add("step", step).add("move", move).text();
}

int64_t Trainer::stepsLeft(int64_t step) const {
  int64_t end = options_.steps;
  for (int64_t change : {moves_.nextStep(step), pruning_.nextDue(step),
                         freezing_.nextStep(step)})
    if (change >= 0)
      end = std::min(end, change);
  return end - step;
}

void Trainer::modelChanged() {
  rebalance_.modelChanged();
  packing_.modelChanged();
}

StatusOr<std::optional<Trainer::Wanted>> Trainer::packedBefore(int64_t step) {
  std::optional<PackGoal> goal = moves_.goalAt(step);
  if (!goal && packing_.isDue())
    goal = moves_.goal();
  if (!goal)
    return std::optional<Wanted>();
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep)
    return std::optional<Wanted>();
  DYNA_ASSIGN_OR_RETURN(auto next, packing_.choose(*goal));
  if (session_.writesFiles())
    progress_.note("note: --repack auto: " + packing_.answer());
  if (next)
    return std::optional(Wanted{.next = *next, .isPacked = true});
  moves_.end(step);
  return std::optional<Wanted>();
}

StatusOr<std::optional<Trainer::Wanted>> Trainer::wantedBefore(int64_t step) {
  std::optional<NextStrategy> next;
  if (chooseNext_) {
    next = chooseNext_(step);
  } else {
    DYNA_ASSIGN_OR_RETURN(next, moves_.next(step));
  }
  if (freezing_.needsNorms(step)) {
    DYNA_RETURN_IF_ERROR(finishSteps());
    if (summary_.hasDroppedStep)
      return std::optional<Wanted>();
  }
  DYNA_ASSIGN_OR_RETURN(const auto frozen, freezing_.next(step));
  if (!frozen && freezing_.needsNorms(step)) {
    freezing_.end(step);
    if (session_.writesFiles())
      progress_.note(formatText(
          "note: --freeze auto: no more layers are frozen after step %d: the "
          "share of those that are left is less than one layer, or they share "
          "weights with layers that train",
          step));
  }
  if (frozen) {
    DYNA_ASSIGN_OR_RETURN(Model model,
                          freezeLayers(*session_.compiled, *frozen));
    if (!next)
      next = presentStrategy(options_, *session_.graphs);
    next->model = std::make_shared<const Model>(std::move(model));
  }
  if (next)
    return std::optional(Wanted{.next = *next, .frozen = frozen});
  DYNA_ASSIGN_OR_RETURN(auto packed, packedBefore(step));
  if (packed || !rebalance_.isOn())
    return packed;
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep)
    return std::optional<Wanted>();
  DYNA_ASSIGN_OR_RETURN(next, rebalance_.next(stepsLeft(step)));
  if (std::string line = rebalance_.takeOutcome(step);
      !line.empty() && session_.writesFiles())
    checkLogged(metrics_.writeLine(line));
  return next ? std::optional(Wanted{.next = *next, .isRebalance = true})
              : std::optional<Wanted>();
}

StatusOr<PlannedReplacement> Trainer::planWanted(int64_t step,
                                                 const Wanted &wanted) const {
  DYNA_ASSIGN_OR_RETURN(PlannedReplacement planned,
                        planReplacement(session_, wanted.next));
  planned.step = step;
  // Arenas of --repack have their memory, unless their ranks gave it back.
  DYNA_RETURN_IF_ERROR(checkGrowth(session_, planned));
  return planned;
}

void Trainer::tellReplaced(int64_t step, const std::string &before,
                           const PlannedReplacement &done,
                           const Wanted &wanted) {
  if (!session_.writesFiles())
    return;
  const ReplacementCost &cost = done.cost;
  for (const std::string &note : done.notes)
    progress_.note("note: " + note);
  if (wanted.isRebalance)
    progress_.note("note: --rebalance: " + rebalance_.decision().describe());
  if (wanted.frozen) {
    progress_.note(formatText("note: --freeze: from step %d on, %s", step + 1,
                              freezing_.describe()));
    checkLogged(metrics_.writeLine(freezing_.record(step)));
  }
  const std::string &name = session_.home().graph->name();
  progress_.note(formatText(
      "note: from step %d on, strategy '%s' %s (version %d): %s were sent, %s "
      "of which were not where they must be; %.1f ms to plan, %.1f ms to carry",
      step + 1, name,
      name == before ? "as before" : "instead of '" + before + "'",
      session_.version, formatBytes(cost.sentBytes),
      formatBytes(cost.missingBytes), 1e3 * cost.planSeconds,
      1e3 * cost.carrySeconds));
  checkLogged(metrics_.writeLine(
      moveRecord(step, before, session_, cost,
                 wanted.isRebalance ? &rebalance_ : nullptr)));
}

bool Trainer::endsReleased(int64_t step, const PlannedReplacement &next) {
  const int ranks = next.graphs->home().graph->ranks();
  // A run that has done no step has nothing to save.
  if (options_.release != "exit" || summary_.steps == 0 ||
      ranks >= session_.home().graph->ranks())
    return false;
  session_.options = next.options;
  summary_.releasedTo = ranks;
  if (session_.writesFiles())
    progress_.note(formatText(
        "note: --release exit: the run ends after step %d; start it again with "
        "--resume %s, on %s",
        step, options_.save, countOf(ranks, "rank")));
  return true;
}

Status Trainer::replaceIfWanted(int64_t step) {
  DYNA_ASSIGN_OR_RETURN(const std::optional<Wanted> wanted, wantedBefore(step));
  if (!wanted)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep)
    return Status::ok();
  const auto begin = Clock::now();
  moves_.end(step);
  freezing_.end(step);
  // Always trace the move and the step after it, even late in a run.
  tracedUntil_ = std::max(tracedUntil_, step + 1);
  for (auto &trace : session_.traces)
    trace->open();
  StatusOr<PlannedReplacement> planned = planWanted(step, *wanted);
  DYNA_ASSIGN_OR_RETURN(auto isRefused, session_.ranks->any({!planned.isOk()}));
  const std::string before = session_.home().graph->name();
  if (isRefused[0] && wanted->frozen) // another model than was asked for
    return saveAndFail(
        planned.isOk() ? Status(StatusCode::PeerFailed,
                                "another process cannot freeze the layers")
                       : Status(planned.status().code(),
                                formatText("--freeze: after %d steps: %s", step,
                                           planned.status().message())));
  if (isRefused[0]) {
    if (wanted->isRebalance)
      rebalance_.refused();
    if (session_.writesFiles())
      progress_.note(formatText(
          "warning: step %d goes on with strategy '%s': %s", step + 1, before,
          planned.isOk() ? "another process refuses the next one"
                         : planned.status().message()));
    return Status::ok();
  }
  if (endsReleased(step, *planned))
    return Status::ok();
  // Mini-batches that were planned ahead have to be planned again for the next
  // graphs.
  closePlans();
  DYNA_RETURN_IF_ERROR(replaceGraphs(session_, *planned));
  DYNA_RETURN_IF_ERROR(reader_.seek(cursor_));
  if (wanted->frozen)
    freezing_.froze(*wanted->frozen);
  tellReplaced(step, before, *planned, *wanted);
  DYNA_RETURN_IF_ERROR(openPlans(step));
  const std::chrono::duration<double> passed = Clock::now() - begin;
  if (wanted->isRebalance)
    rebalance_.moved(planned->cost, passed.count());
  else
    rebalance_.modelChanged(/*hasOtherGraphs=*/true);
  if (wanted->frozen)
    packing_.modelChanged();
  return Status::ok();
}

} // namespace dyna
