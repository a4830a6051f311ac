//===- PlanFlags.cpp - Declares the options of dyna-plan ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/PlanFlags.h"

#include "runtime/base/file/FileId.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/Policy.h"

#include <functional>

namespace dyna {
namespace {

using Options =
    std::initializer_list<std::reference_wrapper<const llvm::cl::Option>>;

Status expect(bool holds, const std::string &what) {
  return holds ? Status::ok() : Status::invalidArgument(what);
}

/// Fails if any of the options is given; `why` follows the name of the first
/// one.
Status expectNone(Options options, const std::string &why) {
  for (const llvm::cl::Option &option : options)
    DYNA_RETURN_IF_ERROR(expect(option.getNumOccurrences() == 0,
                                "--" + option.ArgStr.str() + why));
  return Status::ok();
}

Status checkNumbers(const PlanFlags &flags) {
  if (flags.compare.getNumOccurrences() > 0)
    DYNA_RETURN_IF_ERROR(expectNone(
        {flags.pipeline, flags.microBatches},
        " names one plan and --compare several: add it to --compare"));
  return expect(flags.steps >= 0, "--steps expects 0 or more");
}

/// Checks the options that give several strategies, or search for them.
Status checkStrategies(const PlanFlags &flags) {
  if (flags.strategies == "search") {
    DYNA_RETURN_IF_ERROR(expect(
        flags.recompute.size() <= 1 && flags.tokensPerMicroBatch.size() <= 1,
        "--strategies search takes one --recompute and one "
        "--tokens-per-micro-batch: without them it searches"));
    DYNA_RETURN_IF_ERROR(expectNone(
        {flags.pipeline, flags.microBatches, flags.inFlight,
         flags.splitBackward},
        " does not go with --strategies search, which chooses it itself"));
    return expectNone({flags.strategy, flags.compare, flags.steps,
                       flags.simulate, flags.planTimes, flags.report,
                       flags.trace, flags.svg, flags.ranges, flags.mergeRanges},
                      " is about plans, and --strategies search makes none");
  }
  DYNA_RETURN_IF_ERROR(expect(
      flags.ranges != "search",
      "--ranges search is of a training binary, over the degrees that it "
      "has: --strategies search finds strategies and ranges here"));
  if (!flags.ranges.empty())
    return expectNone({flags.strategy},
                      " is one strategy for all lengths, and --ranges has one "
                      "for each: give one of the two");
  DYNA_RETURN_IF_ERROR(
      expect(flags.strategies.empty(),
             "--strategies expects search, or --ranges beside it, such as \"a: "
             "0-1024; b: 1025-\", but got '" +
                 flags.strategies + "' alone; --strategy takes one strategy"));
  return expectNone({flags.mergeRanges}, " is about --ranges: give these, too");
}

/// Checks --rebalance and --repack, which compare one plan under one strategy.
Status checkElasticFlags(const PlanFlags &flags) {
  if (!flags.isElastic())
    return expect(flags.layerPattern.getNumOccurrences() == 0,
                  "--layer-pattern is about --rebalance regex: give this, too");
  const std::string both = " does not go with --rebalance and --repack, which "
                           "compare cuts of one strategy: leave it out";
  DYNA_RETURN_IF_ERROR(
      expect(flags.strategy != "search",
             "--strategy search" + both + ", and give a strategy"));
  DYNA_RETURN_IF_ERROR(
      expectNone({flags.strategies, flags.ranges, flags.compare}, both));
  return expect(flags.recompute.size() <= 1 &&
                    flags.tokensPerMicroBatch.size() <= 1,
                "--rebalance and --repack take one --recompute and one "
                "--tokens-per-micro-batch");
}

/// Chimera makes a strategy of its own of the one that is given.
Status checkChimera(const PlanFlags &flags) {
  bool isNamed = flags.values.pipeline == ruleOf(Schedule::Chimera).name;
  for (const std::string &plan : flags.compare) {
    PlanRequest words;
    isNamed |= takeWords(plan, words).isOk() && isMirrored(words);
  }
  return expect(!isNamed ||
                    (flags.strategy != "search" && flags.strategies.empty() &&
                     flags.ranges.empty() && !flags.isElastic()),
                "chimera is a plan of one --strategy: --strategy search, "
                "--strategies, --ranges, --rebalance and --repack do not go "
                "with it");
}

/// Checks flags that give layers states.
Status checkStateFlags(const PlanFlags &flags) {
  return expect(flags.exitShares.getNumOccurrences() > 0 ||
                    flags.exitUnit.getNumOccurrences() == 0,
                "--exit-unit is about --exit-shares: give these, too");
}

/// Files that are read are not written over.
Status checkOutputs(const PlanFlags &flags) {
  for (const auto *output : {&flags.trace, &flags.svg}) {
    const auto id = fileIdOf(output->getValue());
    for (const std::string *input :
         {&flags.model.getValue(), &flags.lengths.getValue(),
          &flags.costs.getValue(), &flags.sparsity.getValue()})
      DYNA_RETURN_IF_ERROR(expect(!id || id != fileIdOf(*input),
                                  "--" + output->ArgStr.str() +
                                      " would write over " +
                                      output->getValue() +
                                      ", which is read here: name another "
                                      "file"));
  }
  return expect(flags.trace.empty() || flags.svg.empty() ||
                    !areOneOutput(flags.trace, flags.svg),
                "--trace and --svg both write " + flags.svg.getValue() +
                    ": give each a file of its own");
}

} // namespace

Status PlanFlags::read() {
  for (const WordFlag *flag :
       {&strategy, &strategies, &ranges, &mergeRanges, &lengths, &cluster,
        &costs, &rankMemory, &pipeline, &microBatches, &inFlight,
        &splitBackward, &slices, &tokensPerBatch})
    DYNA_RETURN_IF_ERROR(flag->read(values));
  for (const WordList &list :
       {std::cref(columns), std::cref(tokensPerMicroBatch),
        std::cref(recompute)})
    DYNA_RETURN_IF_ERROR(list.read(values));
  return Status::ok();
}

Status PlanFlags::check() const {
  DYNA_RETURN_IF_ERROR(expect(
      !model.empty(),
      "expects a model: a .mlir file, a config.json or a training binary"));
  const bool isSwitch = switches.getNumOccurrences() > 0;
  if (isSwitch)
    DYNA_RETURN_IF_ERROR(expectNone(
        {strategy,       ranges,
         mergeRanges,    lengths,
         columns,        compare,
         attention,      simulate,
         tokensPerBatch, tokensPerMicroBatch,
         steps,          trace,
         recompute,      svg,
         pipeline,       microBatches,
         inFlight,       splitBackward,
         slices,         rankMemory,
         sparsity,       rebalance,
         repack,         layerPattern,
         exitShares,     exitUnit},
        " is about steps, and --switch about what is between them: give one"));
  DYNA_RETURN_IF_ERROR(expect(!lengths.empty() || isSwitch,
                              "expects --lengths: numbers, or a file of them"));
  DYNA_RETURN_IF_ERROR(
      expect(cluster.empty() || costs.empty(),
             "--costs and --cluster both say what things take: give one"));
  DYNA_RETURN_IF_ERROR(checkNumbers(*this));
  DYNA_RETURN_IF_ERROR(checkOutputs(*this));
  DYNA_RETURN_IF_ERROR(expect(attention == "fused" || attention == "stored",
                              "--attention expects fused or stored, but got '" +
                                  attention + "'"));
  DYNA_RETURN_IF_ERROR(
      expect(!planTimes || json, "--plan-times is shown with --json alone"));
  DYNA_RETURN_IF_ERROR(
      expect(strategy != "search" || (trace.empty() && svg.empty()),
             "--trace and --svg are of one strategy, not of a search"));
  DYNA_RETURN_IF_ERROR(expect(!exhaustive || strategy == "search",
                              "--exhaustive is about --strategy search: give "
                              "this, too, or leave it out"));
  if (exhaustivePercent.getNumOccurrences() > 0)
    DYNA_RETURN_IF_ERROR(expect(exhaustive && exhaustivePercent >= 0,
                                "--exhaustive-percent expects --exhaustive, "
                                "and a number that is not negative"));
  DYNA_RETURN_IF_ERROR(checkStateFlags(*this));
  DYNA_RETURN_IF_ERROR(checkElasticFlags(*this));
  DYNA_RETURN_IF_ERROR(checkChimera(*this));
  return isSwitch ? Status::ok() : checkStrategies(*this);
}

} // namespace dyna
