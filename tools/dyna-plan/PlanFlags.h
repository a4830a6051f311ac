//===- PlanFlags.h - Declares the options of dyna-plan ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H
#define DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "tools/WordFlag.h"

#include <string>

namespace dyna {

struct PlanFlags {
  /// Returns the default of --compare.
  static std::string defaultWord() { return ruleOf(defaultSchedule(2)).name; }

  llvm::cl::OptionCategory category{"dyna-plan options"};
  llvm::cl::opt<std::string> model{
      llvm::cl::Positional,
      llvm::cl::desc("<model.mlir, config.json or training binary>"),
      llvm::cl::cat(category)};
  WordFlag strategy{
      Word::Strategy, category,
      "or search: the best one for all samples, with its recomputation and "
      "micro-batches, on the devices of --cluster"};
  WordFlag strategies{
      Word::Strategies, category,
      "or search: strategies between which a step should switch by the lengths "
      "of its samples, with their ranges, on the devices of --cluster"};
  WordFlag ranges{Word::Ranges, category, "each strategy alone is shown, too"};
  WordFlag mergeRanges{Word::MergeRanges, category};
  llvm::cl::opt<std::string> switches{
      "switch",
      llvm::cl::desc("No steps, but the way of parameters from strategy to "
                     "strategy, such as \"dp=2,tp=2 -> dp=4\", or by names of "
                     "--strategies or of a training binary: \"a -> b\""),
      llvm::cl::cat(category)};
  WordFlag lengths{Word::Lengths, category};
  WordList columns{Word::LengthColumns, category, "", /*hasCommas=*/true};
  WordFlag cluster{Word::Cluster, category};
  WordFlag costs{Word::Costs, category};
  WordFlag rankMemory{Word::RankMemory, category};
  WordFlag pipeline{Word::Pipeline, category};
  WordFlag microBatches{Word::MicroBatches, category};
  WordFlag inFlight{Word::InFlight, category};
  WordFlag splitBackward{Word::SplitBackward, category};
  WordFlag slices{Word::Slices, category};
  const std::string compareHelp =
      "Several of --pipeline, --micro-batches and --slices, named by " +
      knownWords() + " (default: " + defaultWord() + ")";
  llvm::cl::list<std::string> compare{"compare", llvm::cl::desc(compareHelp),
                                      llvm::cl::CommaSeparated,
                                      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> attention{
      "attention",
      llvm::cl::desc(
          "fused, as it is compiled, or stored: scores are written to "
          "memory and kept for backward, as by programs without such "
          "a kernel (default: fused)"),
      llvm::cl::init("fused"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> sparsity{
      "sparsity",
      llvm::cl::desc("File with lines \"LAYER, SPARSITY\" or \"LAYER, "
                     "SPARSITY, frozen\": layers that are pruned or frozen, "
                     "by name or number"),
      llvm::cl::value_desc("FILE"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> exitShares{
      "exit-shares",
      llvm::cl::desc("Shares of all tokens that leave behind layers, such as "
                     "\"h.3:0.3; h.7:0.2\": later layers compute the others"),
      llvm::cl::value_desc("LAYER:SHARE;..."), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> exitUnit{
      "exit-unit",
      llvm::cl::desc("With --exit-shares: tokens, which leave one by one, or "
                     "samples (default: tokens)"),
      llvm::cl::init("tokens"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> rebalance{
      "rebalance",
      llvm::cl::desc("Policies that cut the layers anew, such as "
                     "time,parameters,diffusion: what each gains beside the "
                     "cut of dense layers, and what its move costs"),
      llvm::cl::value_desc("POLICY,..."), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> repack{
      "repack",
      llvm::cl::desc("Numbers of ranks, such as 6,4,2: what the model takes "
                     "there, and what the move costs"),
      llvm::cl::value_desc("RANKS,..."), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> layerPattern{
      "layer-pattern",
      llvm::cl::desc("With --rebalance regex: layers that count, by a regular "
                     "expression of their names (default: those that end in "
                     "a number)"),
      llvm::cl::init("[0-9]$"), llvm::cl::value_desc("REGEX"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> computeType{
      "compute-type",
      llvm::cl::desc("f64, f32 or bf16 (default: that in which --costs were "
                     "measured, else bf16)"),
      llvm::cl::init("bf16"), llvm::cl::cat(category)};
  WordFlag tokensPerBatch{Word::TokensPerBatch, category};
  WordList tokensPerMicroBatch{Word::TokensPerMicroBatch, category,
                               "several, joined by commas: each is tried",
                               /*hasCommas=*/true};
  llvm::cl::opt<int64_t> steps{
      "steps", llvm::cl::desc("Steps to plan, 0: all (default: 10)"),
      llvm::cl::init(10), llvm::cl::cat(category)};
  WordList recompute{Word::Recompute, category,
                     "given several times: each is tried",
                     /*hasCommas=*/false};
  llvm::cl::opt<std::string> simulate{
      "simulate",
      llvm::cl::desc("Conditions, such as host or links=nodes,eager=65536,"
                     "noise=0.05,delay=0.1/100,seed=1,one-stream (default: "
                     "devices that share no links)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> report{
      "report",
      llvm::cl::desc("Of every plan also its lower bounds, stages and ranks"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> planTimes{
      "plan-times",
      llvm::cl::desc("With --json, also how long planning and proof took here"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> trace{
      "trace",
      llvm::cl::desc("File for a trace (ui.perfetto.dev) of all steps"),
      llvm::cl::value_desc("FILE"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> svg{
      "svg", llvm::cl::desc("File for a picture of the first step"),
      llvm::cl::value_desc("FILE"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> json{"json",
                           llvm::cl::desc("One JSON object per line, no table"),
                           llvm::cl::cat(category)};

  llvm::cl::opt<bool> exhaustive{
      "exhaustive",
      llvm::cl::desc("With --strategy search: simulate every strategy, however "
                     "slow its estimate is"),
      llvm::cl::Hidden, llvm::cl::cat(category)};

  llvm::cl::opt<int64_t> exhaustivePercent{
      "exhaustive-percent",
      llvm::cl::desc("With --exhaustive: leave out what an estimate puts more "
                     "than so many percent above the best"),
      llvm::cl::Hidden, llvm::cl::init(-1), llvm::cl::cat(category)};

  /// Values of the planning words; of lists, the last value.
  PlanningValues values;

  /// Sets `values`. Fails with the first bad value.
  Status read();
  /// Fails if an option is missing or out of range, or if two exclude each other.
  Status check() const;
  /// Returns true if cuts or numbers of ranks are compared, of one plan.
  bool isElastic() const {
    return rebalance.getNumOccurrences() > 0 || repack.getNumOccurrences() > 0;
  }
  /// Returns true if a schedule or a batching is named.
  bool namesPlans() const {
    return compare.getNumOccurrences() > 0 || pipeline.isGiven() ||
           microBatches.isGiven();
  }
};

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H
