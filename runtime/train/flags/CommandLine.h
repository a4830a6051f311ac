//===- CommandLine.h - Flags of a compiled binary ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every flag stands in one table (CommandLine.cpp): name, value, range, help.
// The table parses the command line, prints --help, and writes the arguments
// that a checkpoint stores, so that `--resume DIR` alone continues the same
// run.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_COMMANDLINE_H
#define DYNA_RUNTIME_TRAIN_COMMANDLINE_H

#include "runtime/base/error/Status.h"
#include "runtime/base/text/ParseBytes.h" // of flags that are bytes
#include "runtime/train/flags/TrainOptions.h"

#include <string>
#include <vector>

namespace dyna {

/// Parses `arguments` into `options`, on top of what is there. The failure is
/// one line that names the flag and what it expects.
Status parseCommandLine(const std::vector<std::string> &arguments,
                        TrainOptions &options);

/// The arguments that a checkpoint has stored, `runArguments` of its run.
/// Whoever made the checkpoint must not choose what is overwritten here: paths
/// for writing are passed over, flags that no checkpoint stores are an error.
Status parseStoredArguments(const std::vector<std::string> &arguments,
                            TrainOptions &options);

/// The stored value of a flag, "" if there is none: to be shown, not obeyed.
std::string storedValue(const std::vector<std::string> &arguments,
                        const std::string &name);

/// Whether two flags were given that exclude each other: said before any file
/// is looked at.
Status checkExclusions(const TrainOptions &options);

/// Whether samples that become micro-batches as asked can be padded, or be dealt to
/// ranges, before.
Status checkBatching(const TrainOptions &options);

/// Whether the flags fit together; fills in the defaults that depend on others.
Status resolveOptions(TrainOptions &options);

/// Bytes of --max-shard-size; 0: models are saved in one file.
int64_t shardBytesOf(const TrainOptions &options);

/// Steps after which the schedule has ended.
int64_t scheduleLength(const TrainOptions &options);

/// The arguments that make a run what it is, with absolute paths: what a
/// checkpoint stores.
std::vector<std::string> runArguments(const TrainOptions &options);

/// Flags whose values differ between the runs and that change its numbers.
std::vector<std::string> changedFlags(const TrainOptions &before,
                                      const TrainOptions &after);

/// Flags that processes of one job need alike, with their values as text: those
/// that a checkpoint stores, but for paths and threads.
std::vector<std::pair<std::string, std::string>>
commonFlags(const TrainOptions &options);

std::string helpText(const std::string &program);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COMMANDLINE_H
