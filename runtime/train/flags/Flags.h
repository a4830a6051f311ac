//===- Flags.h - Lists the flags of a compiled binary ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each flag has one row: its field in TrainOptions, its legal values, and what
// checkpoints do with it. Parsing, help and checkpoints follow from the rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FLAGS_H
#define DYNA_RUNTIME_TRAIN_FLAGS_H

#include "runtime/planner/request/PlanningWords.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// Treatment of a flag by checkpoints.
enum class Stored {
  No,
  Told,   ///< stored and shown to the user who resumes: a path for writing
  Yes,    ///< stored; changing it only extends or moves the run
  Numbers ///< stored; changing it changes the numbers of the run
};

struct Flag {
  const char *section;
  const char *name;
  const char *value; ///< "" for a switch
  const char *help;
  Stored stored;
  double low = 0, high = 0;
  bool TrainOptions::*toggle = nullptr;
  int64_t TrainOptions::*integer = nullptr;
  double TrainOptions::*real = nullptr;
  std::string TrainOptions::*text = nullptr;
  std::vector<std::string> TrainOptions::*list = nullptr;
  std::vector<std::string> choices = {};
  bool isPath = false;
  const char *implied = nullptr; ///< the value if none is given with `=`
  const PlanningWord *word =
      nullptr; ///< parses the value; null: no planning word
};

/// Returns all flags, in the order of --help.
const std::vector<Flag> &flags();

/// Returns the flag of that name (without dashes), or null.
const Flag *findFlag(const std::string &name);

/// Returns the name of the flag most similar to `name`, for messages.
std::string suggestion(const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FLAGS_H
