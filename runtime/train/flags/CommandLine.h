//===- CommandLine.h - Parses the flags of a compiled binary ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One table has every flag (CommandLine.cpp): name, value, range, help. The
// table parses the command line, prints --help, and writes the arguments that a
// checkpoint stores. So `--resume DIR` alone continues the same run.
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

/// Parses `arguments` into `options`, and keeps what other flags have set. A
/// failure is one line that names the flag and the expected value.
Status parseCommandLine(const std::vector<std::string> &arguments,
                        TrainOptions &options);

/// Parses the arguments that a checkpoint has stored (`runArguments` of its
/// run). The author of a checkpoint must not choose which files are
/// overwritten. So paths for writing are ignored, and flags that no checkpoint
/// stores are an error.
Status parseStoredArguments(const std::vector<std::string> &arguments,
                            TrainOptions &options);

/// Returns the stored value of a flag, for display only; "" if there is none.
std::string storedValue(const std::vector<std::string> &arguments,
                        const std::string &name);

/// Fails if two given flags exclude each other. Reads no file, so it is called
/// before any is opened.
Status checkExclusions(const TrainOptions &options);

/// Fails if the kind of micro-batches excludes --pad or --ranges.
Status checkBatching(const TrainOptions &options);

/// Fails if the flags do not fit together. Sets the defaults that depend on
/// other flags.
Status resolveOptions(TrainOptions &options);

/// Returns the bytes of --max-shard-size; 0 if models are saved in one file.
int64_t shardBytesOf(const TrainOptions &options);

/// Returns the number of steps after which the schedule has ended.
int64_t scheduleLength(const TrainOptions &options);

/// Returns the arguments that a checkpoint stores to repeat the run, with
/// absolute paths.
std::vector<std::string> runArguments(const TrainOptions &options);

/// Returns the flags whose values differ between two runs and change the
/// results.
std::vector<std::string> changedFlags(const TrainOptions &before,
                                      const TrainOptions &after);

/// Returns the flags that all processes of a job must have alike, with their
/// values as text. These are the flags that a checkpoint stores, without paths
/// and threads.
std::vector<std::pair<std::string, std::string>>
commonFlags(const TrainOptions &options);

std::string helpText(const std::string &program);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COMMANDLINE_H
