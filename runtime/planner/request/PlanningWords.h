//===- PlanningWords.h - Lists the planning words ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A planning word is an option that says how a step is planned. The training binary,
// dyna-plan, dynac and the passes of the plan phase have these options. Name, meaning,
// default and checks are a row of one table. Each tool selects rows, and may add a
// sentence of its own to the help. All values are text, which `setWord` parses. So a
// bad value has the same message everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANNINGWORDS_H
#define DYNA_RUNTIME_PLANNER_PLANNINGWORDS_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/request/PlanRequest.h"

#include <string>
#include <variant>
#include <vector>

namespace dyna {

/// Planning words, in the order of the table.
enum class Word {
  TokensPerBatch,
  MicroBatches,
  TokensPerMicroBatch,
  InFlight,
  SplitBackward,
  Slices,
  Recompute,
  Pipeline,
  RankMemory,
  Strategy,
  Strategies,
  Ranges,
  MergeRanges,
  Ranks,
  Costs,
  Cluster,
  Lengths,
  LengthColumns
};

/// Kinds of values.
enum class WordKind {
  Number, ///< whole number from `low` to `high`
  Choice, ///< one of `choices`
  Modes,  ///< recomputation modes
  Slices, ///< token slices
  Bytes,  ///< number with an optional unit
  Toggle, ///< no value
  Text    ///< text that its own parser checks; never empty
};

struct PlanningWord {
  /// Field that the word sets; none: the tool reads the text itself.
  using Field =
      std::variant<std::monostate, int64_t PlanningValues::*,
                   std::string PlanningValues::*, bool PlanningValues::*>;

  Word word;
  const char *name; ///< without dashes
  WordKind kind;
  const char *unit;    ///< unit or form of the value, for help; "" for a toggle
  std::string meaning; ///< one sentence, without a period
  std::string defaultValue; ///< text for help; empty: off, or not set
  Field field;
  int64_t low = 0, high = 0; ///< limits of a number
  std::vector<std::string> choices = {};

  /// Returns "--name".
  std::string flag() const { return std::string("--") + name; }
};

const std::vector<PlanningWord> &planningWords();
const PlanningWord &wordOf(Word word);
/// Returns the word of this name; null if there is none.
const PlanningWord *findWord(const std::string &name);

/// Returns meaning, `more` and default, in this order.
std::string describeWord(Word word, const std::string &more = "");

/// Parses `text` and sets the word's field. A failure is one line that starts with
/// "--name expects".
Status setWord(Word word, const std::string &text, PlanningValues &values);

/// Returns "--name expects `expected`, but got 'text'" as InvalidArgument.
Status unexpected(const std::string &name, const std::string &expected,
                  const std::string &text);
/// Parses a whole number from `low` to `high` as the value of --name.
StatusOr<int64_t> parseWholeNumber(const std::string &name,
                                   const std::string &text, int64_t low,
                                   int64_t high);
/// Returns `text` if it is one of `choices`; else fails as the value of --name.
StatusOr<std::string> parseChoice(const std::string &name,
                                  const std::string &text,
                                  const std::vector<std::string> &choices);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANNINGWORDS_H
