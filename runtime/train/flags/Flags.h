//===- Flags.h - The table of flags of a compiled binary ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One row per flag: where it goes in TrainOptions, what it may be, what a
// checkpoint does with it. Parsing, help and checkpoints follow from the rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FLAGS_H
#define DYNA_RUNTIME_TRAIN_FLAGS_H

#include "runtime/planner/request/PlanningWords.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// What a checkpoint does with a flag.
enum class Stored {
  No,
  Told,   ///< stored, and shown to whoever resumes: a path for writing
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
  const char *implied = nullptr; ///< the value where none is given with `=`
  const PlanningWord *word = nullptr; ///< parses the value; null: not one
};

/// In the order in which --help lists them.
const std::vector<Flag> &flags();

/// The flag of that name (without dashes), or null.
const Flag *findFlag(const std::string &name);

/// The flag most like `name`, for the message.
std::string suggestion(const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FLAGS_H
