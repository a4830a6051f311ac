//===- PlanFolder.cpp - Writes and reads the plans of steps as files ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanFolder.h"

#include "runtime/base/file/FileFailure.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/PlanFile.h"

#include <filesystem>
#include <set>

namespace dyna {
namespace {

class DumpedPlans : public PlanSource {
public:
  DumpedPlans(std::unique_ptr<PlanSource> source, std::string folder)
      : source_(std::move(source)), folder_(std::move(folder)) {}

  Status plan(PlannedStep &step) override {
    DYNA_RETURN_IF_ERROR(source_->plan(step));
    return replaceFile(planPath(folder_, step.step),
                       writeStepPlan(step.plan->toStepPlan()));
  }

private:
  const std::unique_ptr<PlanSource> source_;
  const std::string folder_;
};

/// Samples and tokens that plans are about: what people compare first.
struct Amount {
  int64_t samples = 0, tokens = 0;
  int64_t segments = 0; ///< as many as samples, if none is in slices
  /// No segment is shorter than its sample here: tokens beyond those of the samples
  /// are padding.
  bool holdsSamples = true;

  void add(const plan::Phase &phase, const std::vector<int64_t> &lengths);
};

void Amount::add(const plan::Phase &phase,
                 const std::vector<int64_t> &lengths) {
  // The plan is not verified yet, so numbers may be out of range.
  auto at = [](const std::vector<int64_t> &list, int64_t place) {
    return place >= 0 && place < static_cast<int64_t>(list.size()) ? list[place]
                                                                   : -1;
  };
  std::set<int64_t> different; // a sample in slices has several segments
  for (const plan::MicroBatch &microBatch : phase.plan.microBatches)
    for (const plan::Segment &segment : microBatch.segments) {
      different.insert(segment.sample);
      tokens += segment.length;
      ++segments;
      const int64_t length = at(lengths, at(phase.samples, segment.sample));
      holdsSamples &= segment.length >= length;
    }
  samples += static_cast<int64_t>(different.size());
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
    // Errors of reading already name the file.
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
      got.add(phase, step.batch.lengths());
      isUpdating |= updates(phase.plan);
    }
    DYNA_RETURN_IF_ERROR(checkAmount(got, step));
    DYNA_RETURN_IF_ERROR(take(std::move(steps), step));
    // Check this last, because plans of other runs mostly differ in more than
    // this.
    if (isUpdating == step.update)
      return Status::ok();
    return Status::invalidArgument(
        step.update
            ? "a plan without updates, which trains nothing, such as those of "
              "the first step of a run with --print-grad-norms: give that "
              "flag, or plans of a run without it"
            : "a plan that updates, but --print-grad-norms looks at the "
              "gradients before: leave it out, or give plans of a run with it");
  }

  /// Segments may be padded to any length. The verifier checks that no real
  /// token attends to padding.
  static Status checkAmount(const Amount &got, const PlannedStep &step) {
    auto samples = static_cast<int64_t>(step.batch.samples.size());
    int64_t tokens = 0; // padding of --pad included
    for (int64_t length : step.batch.lengths())
      tokens += length;
    // The verifier later rejects plans that repeat one sample and lack another.
    if ((got.samples == samples || got.segments == samples) &&
        (got.tokens == tokens || (got.tokens > tokens && got.holdsSamples)))
      return Status::ok();
    return Status::invalidArgument(formatText(
        "a plan for %s of %s, but step %d has %s of %s: give the data, --seed, "
        "--tokens-per-batch and --micro-batches that it was made with",
        countOf(got.samples, "sample"), countOf(got.tokens, "token"),
        step.step + 1, countOf(samples, "sample"), countOf(tokens, "token")));
  }

  /// Verifies the plans; a plan without an update fails last, with its own message.
  Status take(plan::StepPlan steps, PlannedStep &step) const {
    if (!session_.graphs->areSeveral() && steps.phaseCount() != 1)
      return Status::invalidArgument(formatText(
          "a plan of %d phases, but this run has one strategy: give the "
          "--ranges that it was made with",
          steps.phaseCount()));
    return takeStep(session_, std::move(steps), /*mustUpdate=*/false, step);
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
