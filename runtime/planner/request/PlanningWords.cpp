//===- PlanningWords.cpp - Lists the planning words -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/PlanningWords.h"

#include "runtime/base/text/ParseBytes.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/planner/cut/SliceChoice.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace dyna {
namespace {

using V = PlanningValues;

/// Largest number of ranks that a strategy can have.
constexpr int64_t mostRanks = 4096;

std::string pipelineMeaning() {
  std::string text = "Order of the micro-batches in a pipeline: ";
  for (Schedule schedule : allSchedules())
    text += (schedule == allSchedules().front() ? "" : "; ") +
            std::string(ruleOf(schedule).name) + ", " +
            ruleOf(schedule).summary;
  return text;
}

std::string batchingMeaning() {
  std::string text = "Contents of a micro-batch: ";
  for (Batching batching : allBatchings())
    text += (batching == allBatchings().front() ? "" : "; ") +
            std::string(ruleOf(batching).name) + ", " +
            ruleOf(batching).summary;
  return text;
}

std::string inFlightMeaning() {
  std::string names;
  for (Schedule schedule : allSchedules())
    if (ruleOf(schedule).readsInFlight)
      names +=
          (names.empty() ? "" : " or ") + std::string(ruleOf(schedule).name);
  return "Number of micro-batches whose forwards run before their backwards, "
         "with one stage or with --pipeline " +
         names;
}

/// Words that the policy reads.
std::vector<PlanningWord> requestWords() {
  return {
      {Word::TokensPerBatch, "tokens-per-batch", WordKind::Number, "TOKENS",
       "Approximate number of tokens in one optimizer step, over all replicas",
       std::to_string(defaultTokensPerBatch) +
           ", or the sum of the lengths of a mini-batch that is given",
       &V::tokensPerBatch, 1, maxTokensPerBatch},
      {Word::MicroBatches, "micro-batches", WordKind::Choice, "WORD",
       batchingMeaning(), batchingNames().front(), &V::microBatches, 0, 0,
       batchingNames()},
      {Word::TokensPerMicroBatch, "tokens-per-micro-batch", WordKind::Number,
       "TOKENS",
       "Largest number of tokens in a micro-batch of several samples; a longer "
       "sample is alone in its micro-batch",
       "chosen by batch, stages and memory", &V::tokensPerMicroBatch, 1,
       maxMicroBatchTokens},
      {Word::InFlight, "in-flight", WordKind::Number, "N", inFlightMeaning(),
       "1 with one stage, else all of a step", &V::inFlight, 1, maxInFlight},
      {Word::SplitBackward, "split-backward", WordKind::Toggle, "",
       "Compute weight gradients apart from input gradients", "",
       &V::splitBackward},
      {Word::Slices, "slices", WordKind::Slices, "SLICES",
       "Token slices in which a micro-batch passes the pipeline: none; auto, "
       "where costs find them worth it; exact, the best cut for equal stages; "
       "a number of equal slices; tokens of slices as in 2048+1024+512, of "
       "which "
       "the last repeats; or the cut of a published system: terapipe, "
       "terapipe-code, uniform:N, seq1f1b:N, chunkflow:TOKENS. Without N or "
       "TOKENS, that with the shortest plan is taken",
       "auto, for causal attention, unless --pipeline is fixed or nothing is "
       "known of the devices (--costs or --cluster): then none",
       &V::slices},
      {Word::Recompute, "recompute", WordKind::Modes, "MODE",
       "Recomputation: none, selective or full, one mode for each layer as in "
       "none,full*6,none, or auto, the fastest modes that fit the memory",
       "the mode of the strategy, or none", &V::recompute},
      {Word::Pipeline, "pipeline", WordKind::Choice, "WORD", pipelineMeaning(),
       ruleOf(defaultSchedule(2)).name, &V::pipeline, 0, 0, scheduleNames()},
  };
}

/// Words of strategies, devices and samples.
std::vector<PlanningWord> placeWords() {
  return {
      {Word::RankMemory, "rank-memory", WordKind::Bytes, "BYTES",
       "Memory limit of each rank for parameters, their state and "
       "micro-batches, such as 512MiB",
       "the free memory of the machine, shared by its ranks; the memory of "
       "described devices; else no limit",
       &V::rankMemory},
      {Word::Strategy, "strategy", WordKind::Text, "TEXT",
       "Name of a strategy, or degrees of data, tensor and pipeline "
       "parallelism as in dp=2,tp=2,pp=2, optionally with zero=1, sp=1, "
       "recompute=MODE, layers=5+3, order=pp+dp+tp",
       "one rank", &V::strategy},
      {Word::Strategies, "strategies", WordKind::Text, "TEXT",
       "Strategies by name, such as \"short: dp=4; long: tp=2,pp=2\"",
       "those of the training binary, if any", &V::strategies},
      {Word::Ranges, "ranges", WordKind::Text, "TEXT",
       "Lengths of the samples that each strategy has in a step, such as "
       "\"short: 0-1024; long: 1025-\"",
       "those of the training binary, if any", &V::ranges},
      {Word::MergeRanges,
       "merge-ranges",
       WordKind::Choice,
       "WORD",
       "auto: samples of a range that is not worth its switch in a step go "
       "with the next longer range; never: each strategy has the samples of "
       "its range",
       "auto",
       &V::mergeRanges,
       0,
       0,
       {"auto", "never"}},
      {Word::Ranks, "ranks", WordKind::Number, "N",
       "Number of ranks that strategies must have; 0: not checked",
       "as many as the strategies have, or all devices of a described cluster",
       &V::ranks, 0, mostRanks},
      {Word::Costs, "costs", WordKind::Text, "FILE",
       "File of measured costs, by which layers are cut into stages and steps "
       "are planned and predicted",
       "estimates", &V::costs},
      {Word::Cluster, "cluster", WordKind::Text, "DEVICES",
       "Described devices, and nodes x devices of each, such as "
       "a100-40g:4x8, instead of --costs",
       "host", &V::cluster},
      {Word::Lengths, "lengths", WordKind::Text, "TOKENS",
       "Tokens of the samples: 30,5,40, or a file with one number in each "
       "line or with columns that its first line names",
       "", std::monostate()},
      {Word::LengthColumns, "length-columns", WordKind::Text, "NAMES",
       "Columns of the file of --lengths that are added up",
       "the column called tokens or ending in _tokens", std::monostate()},
  };
}

std::string joinChoices(const std::vector<std::string> &choices) {
  std::string words;
  for (const std::string &word : choices)
    words += (words.empty() ? "" : ", ") + word;
  return words;
}

template <typename Value>
void store(const PlanningWord &word, Value value, PlanningValues &values) {
  if (auto *field = std::get_if<Value PlanningValues::*>(&word.field))
    values.**field = std::move(value);
}

Status setToggle(const PlanningWord &word, const std::string &text,
                 PlanningValues &values) {
  if (!text.empty() && text != "true" && text != "false")
    return unexpected(word.name, "no value, or true or false", text);
  store(word, text != "false", values);
  return Status::ok();
}

Status checkText(const PlanningWord &word, const std::string &text) {
  if (word.kind == WordKind::Modes)
    return checkRecompute(text);
  if (word.kind == WordKind::Slices) {
    if (auto slices = parseSlices(text); !slices.isOk())
      return Status::invalidArgument(word.flag() + " " +
                                     slices.status().message());
    return Status::ok();
  }
  if (word.kind == WordKind::Choice)
    return parseChoice(word.name, text, word.choices).status();
  if (word.kind == WordKind::Bytes) {
    if (auto bytes = parseBytes(text); !bytes.isOk())
      return Status::invalidArgument(word.flag() + " " +
                                     bytes.status().message());
    return Status::ok();
  }
  return text.empty() ? unexpected(word.name, word.unit, text) : Status::ok();
}

} // namespace

const std::vector<PlanningWord> &planningWords() {
  static const std::vector<PlanningWord> table = [] {
    std::vector<PlanningWord> all = requestWords();
    for (PlanningWord &word : placeWords())
      all.push_back(std::move(word));
    return all;
  }();
  return table;
}

const PlanningWord &wordOf(Word word) {
  return planningWords()[static_cast<size_t>(word)];
}

const PlanningWord *findWord(const std::string &name) {
  for (const PlanningWord &word : planningWords())
    if (name == word.name)
      return &word;
  return nullptr;
}

std::string describeWord(Word word, const std::string &more) {
  const PlanningWord &row = wordOf(word);
  std::string text = row.meaning;
  if (!more.empty())
    text += "; " + more;
  if (!row.defaultValue.empty())
    text += " (default: " + row.defaultValue + ")";
  return text;
}

Status unexpected(const std::string &name, const std::string &expected,
                  const std::string &text) {
  return Status::invalidArgument("--" + name + " expects " + expected +
                                 ", but got '" + text + "'");
}

StatusOr<int64_t> parseWholeNumber(const std::string &name,
                                   const std::string &text, int64_t low,
                                   int64_t high) {
  errno = 0;
  char *end = nullptr;
  const long long parsed = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno ||
      std::isspace(static_cast<unsigned char>(text[0])) || parsed < low ||
      parsed > high)
    return unexpected(
        name, formatText("a whole number from %d to %d", low, high), text);
  return parsed;
}

StatusOr<std::string> parseChoice(const std::string &name,
                                  const std::string &text,
                                  const std::vector<std::string> &choices) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    return unexpected(name, "one of " + joinChoices(choices), text);
  return text;
}

Status setWord(Word word, const std::string &text, PlanningValues &values) {
  const PlanningWord &row = wordOf(word);
  if (row.kind == WordKind::Toggle)
    return setToggle(row, text, values);
  if (row.kind == WordKind::Number) {
    DYNA_ASSIGN_OR_RETURN(int64_t number,
                          parseWholeNumber(row.name, text, row.low, row.high));
    store(row, number, values);
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(checkText(row, text));
  store(row, text, values);
  return Status::ok();
}

} // namespace dyna
