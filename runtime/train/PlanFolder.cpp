//===- PlanFolder.cpp - Plans of steps as files ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/PlanFolder.h"

#include "runtime/base/FileFailure.h"
#include "runtime/base/Files.h"
#include "runtime/base/InputFile.h"
#include "runtime/base/OutputFile.h"
#include "runtime/base/Text.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/planner/batching/Batchings.h"

#include <filesystem>

namespace dyna {
namespace {

class DumpedPlans : public PlanSource {
public:
  DumpedPlans(std::unique_ptr<PlanSource> source, std::string folder)
      : source_(std::move(source)), folder_(std::move(folder)) {}

  Status plan(PlannedStep &step) override {
    DYNA_RETURN_IF_ERROR(source_->plan(step));
    return replaceFile(planPath(folder_, step.step),
                       step.plan
                           ? writePlan(step.plan->plan())
                           : writeStepPlan(step.phases->step.toStepPlan()));
  }

private:
  const std::unique_ptr<PlanSource> source_;
  const std::string folder_;
};

/// Samples and tokens that a plan is about: what people compare first.
struct Amount {
  int64_t samples = 0, tokens = 0;
};

Amount amountOf(const plan::Plan &plan) {
  Amount amount;
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    for (const plan::Segment &segment : microBatch.segments) {
      ++amount.samples;
      amount.tokens += segment.length;
    }
  return amount;
}

bool updates(const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks)
    for (const plan::Instruction &i : program.instructions)
      if (i.op == plan::Instruction::UPDATE)
        return true;
  return false;
}

class PlansOfFolder : public PlanSource {
public:
  PlansOfFolder(const Session &session, std::string folder)
      : session_(session), folder_(std::move(folder)) {}

  Status plan(PlannedStep &step) override {
    std::string path = planPath(folder_, step.step);
    Status status = read(path, step);
    if (status.isOk())
      return status;
    // What cannot be read names itself.
    std::string why = status.message();
    return Status(status.code(), why.find(path) == std::string::npos
                                     ? path + ": " + why
                                     : "--plans: " + why);
  }

private:
  Status read(const std::string &path, PlannedStep &step) const {
    if (!fileExists(path))
      return Status::invalidArgument(formatText(
          "there is no %s, the plan of step %d", path, step.step + 1));
    DYNA_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
    DYNA_ASSIGN_OR_RETURN(plan::StepPlan steps, readStepPlan(bytes));
    Amount got;
    bool isUpdating = false;
    for (const plan::Phase &phase : steps.phases) {
      const Amount own = amountOf(phase.plan);
      got.samples += own.samples;
      got.tokens += own.tokens;
      isUpdating |= updates(phase.plan);
    }
    auto samples = static_cast<int64_t>(step.batch.samples.size());
    // What is padded has more; the proof compares each sample's.
    const bool pads = ruleOf(session_.home.options.batching).pads;
    if (got.samples != samples || got.tokens < step.batch.tokens ||
        (got.tokens > step.batch.tokens && !pads))
      return Status::invalidArgument(formatText(
          "a plan for %d samples of %d tokens, but step %d has %d samples of "
          "%d tokens: give the data, --seed and --tokens-per-batch that it was "
          "made with",
          got.samples, got.tokens, step.step + 1, samples, step.batch.tokens));
    if (isUpdating != step.update)
      return Status::invalidArgument(
          step.update ? "a plan without updates, which trains nothing"
                      : "a plan that updates, but --print-grad-norms looks at "
                        "the gradients before");
    if (session_.ranged)
      return takePhases(session_, std::move(steps), step);
    if (steps.phaseCount() != 1)
      return Status::invalidArgument(formatText(
          "a plan of %d phases, but this run has one strategy: give the "
          "--ranges that it was made with",
          steps.phaseCount()));
    return takePlan(session_, std::move(steps.phases.front().plan), step);
  }

  const Session &session_;
  const std::string folder_;
};

} // namespace

StatusOr<std::unique_ptr<PlanSource>>
dumpPlans(std::unique_ptr<PlanSource> source, const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error || !isDirectory(folder))
    return fileFailure("write", folder, error ? error.value() : ENOTDIR);
  return std::unique_ptr<PlanSource>(
      std::make_unique<DumpedPlans>(std::move(source), folder));
}

std::unique_ptr<PlanSource> readPlans(const Session &session,
                                      const std::string &folder) {
  return std::make_unique<PlansOfFolder>(session, folder);
}

} // namespace dyna
