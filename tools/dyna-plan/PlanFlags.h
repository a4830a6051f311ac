//===- PlanFlags.h - What dyna-plan is asked for -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H
#define DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H

#include "runtime/base/Status.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "llvm/Support/CommandLine.h"

#include <string>

namespace dyna {

struct PlanFlags {
  /// What --compare is where it is not given.
  static std::string defaultWord() { return ruleOf(defaultSchedule(2)).name; }

  llvm::cl::OptionCategory category{"dyna-plan options"};
  llvm::cl::opt<std::string> model{
      llvm::cl::Positional,
      llvm::cl::desc("<model.mlir, config.json or training binary>"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> strategy{
      "strategy",
      llvm::cl::desc(
          "Strategy, such as dp=4,pp=8, or the name of one of a training "
          "binary; or search: the best one for all samples, with its "
          "recomputation and micro-batches, on the devices of --cluster"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> strategies{
      "strategies",
      llvm::cl::desc(
          "Those of --ranges, such as \"a: dp=4; b: tp=4\"; or search: "
          "those between which a step should switch by the lengths of its "
          "samples, with their ranges, on the devices of --cluster"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> ranges{
      "ranges",
      llvm::cl::desc("Lengths of the samples that each of the strategies has, "
                     "as a run takes them, such as \"a: 0-1024; b: 1025-\"; "
                     "beside the step stands each strategy alone"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> mergeRanges{
      "merge-ranges",
      llvm::cl::desc("auto: a range not worth its switch in a step joins the "
                     "next longer one; never (default: auto)"),
      llvm::cl::init("auto"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> switches{
      "switch",
      llvm::cl::desc("No steps, but the way of parameters from strategy to "
                     "strategy, such as \"dp=2,tp=2 -> dp=4\", or by names of "
                     "--strategies or of a training binary: \"a -> b\""),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> lengths{
      "lengths",
      llvm::cl::desc(
          "Tokens of the samples: 30,5,40, or a file with one per line or "
          "with columns that its first line names"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> columns{
      "length-columns",
      llvm::cl::desc("Columns of that file to add up (default: the one that is "
                     "called tokens or ends in _tokens)"),
      llvm::cl::CommaSeparated, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> cluster{
      "cluster",
      llvm::cl::desc("Described devices, and nodes x devices of each, such as "
                     "a100-40g:4x8 (default: host)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> costs{
      "costs",
      llvm::cl::desc("Measured costs (docs/costs.md), instead of --cluster"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> rankMemory{
      "rank-memory",
      llvm::cl::desc("Memory of a device, as of a run's --rank-memory, such as "
                     "24GiB (default: what the device is described with, if "
                     "anything)"),
      llvm::cl::cat(category)};
  const std::string compareHelp =
      "Schedules and ways to make micro-batches to plan with, named by " +
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
  llvm::cl::opt<std::string> computeType{
      "compute-type",
      llvm::cl::desc("f64, f32 or bf16 (default: that in which --costs were "
                     "measured, else bf16)"),
      llvm::cl::init("bf16"), llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> tokensPerBatch{
      "tokens-per-batch",
      llvm::cl::desc("Tokens of a step, about (default: 65536)"),
      llvm::cl::init(65536), llvm::cl::cat(category)};
  llvm::cl::list<int64_t> tokensPerMicroBatch{
      "tokens-per-micro-batch",
      llvm::cl::desc("Tokens of a micro-batch at most (default: as a run "
                     "chooses); several: each is tried"),
      llvm::cl::CommaSeparated, llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> steps{
      "steps", llvm::cl::desc("Steps to plan, 0: all (default: 10)"),
      llvm::cl::init(10), llvm::cl::cat(category)};
  llvm::cl::list<std::string> recompute{
      "recompute",
      llvm::cl::desc("none, selective, full or auto, or one per layer; given "
                     "several times: each is tried"),
      llvm::cl::cat(category)};
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

  /// What is missing, does not go together or is out of range, in one line.
  Status check() const;
};

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLANFLAGS_H
