//===- CommandLine.cpp - Flags of a compiled binary -----------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CommandLine.h"

#include "runtime/data/BatchReader.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/Text.h"
#include "runtime/train/SaveSchedule.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

namespace dyna {
namespace {

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
};

Flag toggle(const char *section, const char *name, const char *help,
            bool TrainOptions::*field, Stored stored = Stored::No) {
  Flag flag{section, name, "", help, stored};
  flag.toggle = field;
  return flag;
}
Flag integer(const char *section, const char *name, const char *help,
             int64_t TrainOptions::*field, double low, double high,
             Stored stored) {
  Flag flag{section, name, "N", help, stored, low, high};
  flag.integer = field;
  return flag;
}
Flag real(const char *section, const char *name, const char *help,
          double TrainOptions::*field, double low, double high,
          Stored stored = Stored::Numbers) {
  Flag flag{section, name, "X", help, stored, low, high};
  flag.real = field;
  return flag;
}
Flag choice(const char *section, const char *name, const char *help,
            std::string TrainOptions::*field, std::vector<std::string> choices,
            Stored stored) {
  Flag flag{section, name, "WORD", help, stored};
  flag.text = field;
  flag.choices = std::move(choices);
  return flag;
}
Flag text(const char *section, const char *name, const char *value,
          const char *help, std::string TrainOptions::*field,
          Stored stored = Stored::No, bool isPath = false) {
  Flag flag{section, name, value, help, stored};
  flag.text = field;
  flag.isPath = isPath;
  return flag;
}
Flag list(const char *section, const char *name, const char *help,
          std::vector<std::string> TrainOptions::*field) {
  Flag flag{section, name, "PATH", help, Stored::Numbers};
  flag.list = field;
  flag.isPath = true;
  return flag;
}

/// Four times what the largest models are trained with. A mini-batch is planned
/// as a whole, whose micro-batches and instructions have 32-bit numbers, and
/// larger ones would be planned for hours.
constexpr int64_t maxBatchTokens = INT64_C(1) << 28;

const std::vector<Flag> &flags() {
  using O = TrainOptions;
  constexpr double big = 1e15;
  static const std::vector<Flag> table = {
      list("Data", "data",
           "a directory, a text file, a .jsonl file or a Megatron-LM .idx/.bin "
           "prefix; may be repeated",
           &O::data),
      list("Data", "held-out", "documents to evaluate at start and end",
           &O::heldOut),
      real("Data", "held-out-fraction",
           "hold out this part of the documents instead", &O::heldOutFraction,
           0, 0.9),
      integer("Data", "held-out-tokens", "evaluate at most that many tokens",
              &O::heldOutTokens, 1, big, Stored::Yes),
      choice("Data", "long-documents",
             "split, truncate or error: texts longer than the model's "
             "positions; input/target pairs are always shortened in their "
             "input, unless that is an error",
             &O::longDocuments, {"split", "truncate", "error"},
             Stored::Numbers),
      choice("Data", "shuffle",
             "samples, documents (the samples of each one after another) or "
             "none: what is in random order",
             &O::shuffle, {"samples", "documents", "none"}, Stored::Numbers),
      toggle("Data", "pad",
             "pad samples to the longest of their micro-batch, to see what "
             "that costs",
             &O::pad, Stored::Yes),
      toggle("Data", "allow-changed-data",
             "resume although the data or their samples are not those of the "
             "saved run, with a new epoch",
             &O::allowChangedData),

      integer("Steps", "steps", "optimizer steps in all", &O::steps, 1, 1e12,
              Stored::Yes),
      integer("Steps", "tokens-per-batch", "tokens of one optimizer step",
              &O::tokensPerBatch, 1, maxBatchTokens, Stored::Numbers),
      integer("Steps", "tokens-per-micro-batch",
              "tokens that pass the layers at once; less takes less memory",
              &O::tokensPerMicroBatch, 1, maxMicroBatchTokens, Stored::Numbers),
      integer("Steps", "in-flight",
              "micro-batches whose forwards run before their backwards",
              &O::inFlight, 1, 1024, Stored::Numbers),
      integer("Steps", "plan-ahead",
              "mini-batches read and planned while others run, 0: none",
              &O::planAhead, 0, 64, Stored::Yes),
      toggle("Steps", "split-backward",
             "compute weight gradients apart from input gradients",
             &O::splitBackward, Stored::Numbers),
      text("Steps", "recompute", "MODE",
           "none, selective or full, or one per layer: none,full*6,none "
           "(default: what the strategy says, or none)",
           &O::recompute, Stored::Yes),
      integer("Steps", "seed", "of initial values, data order and dropout",
              &O::seed, 0, 9e15, Stored::Numbers),

      text("Ranks", "strategy", "TEXT",
           "a name given to dynac --strategies, or degrees of data, tensor and "
           "pipeline parallelism: dp=2,tp=2,pp=2, with zero=1, sp=1, "
           "recompute=MODE, layers=5+3 as wanted; under mpirun (dynac "
           "--with=mpi) each process is a rank",
           &O::strategy, Stored::Yes),
      integer("Ranks", "ranks",
              "ranks that the strategy is to have; 0: not checked", &O::ranks,
              0, 4096, Stored::No),
      integer(
          "Ranks", "timeout",
          "seconds after which a rank that waits for another gives up, or a "
          "process for others to start",
          &O::timeout, 1, 1e6, Stored::Yes),
      choice("Ranks", "pipeline",
             "1f1b or gpipe: the order of micro-batches in a pipeline",
             &O::pipeline, {"1f1b", "gpipe"}, Stored::Yes),
      text("Ranks", "costs", "FILE",
           "what layers take, measured, to cut them into stages by (default: "
           "estimated)",
           &O::costs, Stored::Yes, true),

      real("Optimizer", "lr", "learning rate after the warm-up",
           &O::learningRate, 0, 1e6),
      real("Optimizer", "min-lr", "where the schedule ends (default: lr / 10)",
           &O::minLearningRate, 0, 1e6),
      integer("Optimizer", "warmup",
              "steps of linear warm-up (default: a tenth of --schedule-steps, "
              "at most 100)",
              &O::warmup, 0, 1e12, Stored::Numbers),
      choice("Optimizer", "schedule", "cosine, linear or constant",
             &O::schedule, {"cosine", "linear", "constant"}, Stored::Numbers),
      integer("Optimizer", "schedule-steps",
              "steps after which the schedule has ended (default: --steps)",
              &O::scheduleSteps, 0, 1e12, Stored::Numbers),
      real("Optimizer", "weight-decay", "AdamW's decoupled weight decay",
           &O::weightDecay, 0, 1e6),
      real("Optimizer", "beta1", "AdamW's decay of the mean", &O::beta1, 0,
           0.999999999),
      real("Optimizer", "beta2", "AdamW's decay of the variance", &O::beta2, 0,
           0.999999999),
      real("Optimizer", "epsilon", "AdamW's epsilon", &O::epsilon, 1e-300, 1),
      real("Optimizer", "clip", "limit of the gradient's global norm, 0: none",
           &O::clip, 0, 1e30),
      integer(
          "Optimizer", "skip-nonfinite",
          "steps whose loss or gradient is not finite that are passed over, "
          "without an update, before the run ends",
          &O::skipNonfinite, 0, 1e12, Stored::Yes),

      text("Files", "metrics", "FILE",
           "one JSON line per step; to be given again with --resume",
           &O::metrics, Stored::Told, true),
      text("Files", "trace", "FILE", "a trace for ui.perfetto.dev", &O::trace,
           Stored::No, true),
      integer("Files", "trace-steps", "steps to trace, from the first one",
              &O::traceSteps, 1, 1e6, Stored::No),
      text("Files", "save", "DIR",
           "save checkpoints there (with --resume DIR: default DIR)", &O::save,
           Stored::Told, true),
      text(
          "Files", "save-every", "N",
          "save after so many steps, or a time such as 90s, 10min, 2h; 0: only "
          "at the end",
          &O::saveEvery, Stored::Yes),
      integer("Files", "keep",
              "newest checkpoints that stay; older ones are removed after a "
              "save",
              &O::keep, 1, 1e9, Stored::Yes),
      text("Files", "resume", "DIR",
           "continue the run saved there; its flags hold unless given again",
           &O::resume, Stored::No, true),
      text("Files", "load", "DIR", "start from the parameters saved there",
           &O::load, Stored::No, true),
      text("Files", "print-grad-norms", "FILE",
           "write all losses and the norm of every gradient of the first step",
           &O::gradNorms, Stored::No, true),
      text("Files", "counts", "FILE",
           "write what each rank computed, held and sent, as JSON", &O::counts,
           Stored::No, true),

      toggle("Other", "evaluate", "only evaluate the loss on --data",
             &O::evaluate),
      choice("Other", "describe",
             "print what the binary is: table (default), json or proto",
             &O::describe, {"table", "json", "proto"}, Stored::No),
      integer("Other", "threads", "worker threads (default: all cores)",
              &O::threads, 1, 1024, Stored::Yes),
      text("Other", "isa", "NAME", "instruction set, instead of the best one",
           &O::isa),
      text("Other", "memory-limit", "BYTES",
           "of parameters, micro-batches and mini-batches, for example 4GiB",
           &O::memoryLimit),
      toggle("Other", "progress", "show the progress bar in any case",
             &O::progress),
      toggle("Other", "no-progress", "show no progress", &O::noProgress),
      toggle("Other", "check-memory",
             "poison free memory and look for stray writes (very slow)",
             &O::checkMemory),
      toggle("Other", "version", "print the version of Dyna", &O::version),
      toggle("Other", "help", "print this", &O::help),
  };
  return table;
}

const Flag *findFlag(const std::string &name) {
  for (const Flag &flag : flags())
    if (name == flag.name)
      return &flag;
  return nullptr;
}

/// The flag most like `name`, for the message.
std::string suggestion(const std::string &name) {
  std::string best;
  size_t bestDistance = 4;
  for (const Flag &flag : flags()) {
    std::string other = flag.name;
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j <= other.size(); ++j)
      row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= other.size(); ++j) {
        size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1,
                           diagonal + (name[i - 1] != other[j - 1])});
        diagonal = above;
      }
    }
    if (row[other.size()] < bestDistance) {
      bestDistance = row[other.size()];
      best = other;
    }
  }
  return best.empty() ? "--help lists all flags"
                      : "did you mean --" + best + "?";
}

std::string number(double value) { return formatText("%.17g", value); }

Status expects(const Flag &flag, const std::string &what,
               const std::string &given) {
  return Status::invalidArgument("--" + std::string(flag.name) + " expects " +
                                 what + ", but got '" + given + "'");
}

Status setInteger(const Flag &flag, const std::string &value,
                  TrainOptions &options) {
  std::string range = "a whole number from " + formatText("%.0f", flag.low) +
                      " to " + formatText("%.0f", flag.high);
  errno = 0;
  char *end = nullptr;
  long long parsed = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end || errno || std::isspace(value[0]) ||
      static_cast<double>(parsed) < flag.low ||
      static_cast<double>(parsed) > flag.high)
    return expects(flag, range, value);
  options.*flag.integer = parsed;
  return Status::ok();
}

Status setReal(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  char *end = nullptr;
  double parsed = std::strtod(value.c_str(), &end);
  if (value.empty() || *end || std::isspace(value[0]) ||
      !std::isfinite(parsed) || parsed < flag.low || parsed > flag.high)
    return expects(
        flag, formatText("a number from %.10g to %.10g", flag.low, flag.high),
        value);
  options.*flag.real = parsed;
  return Status::ok();
}

Status setText(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  if (!flag.choices.empty() &&
      std::find(flag.choices.begin(), flag.choices.end(), value) ==
          flag.choices.end()) {
    std::string words;
    for (const std::string &word : flag.choices)
      words += (words.empty() ? "" : ", ") + word;
    return expects(flag, "one of " + words, value);
  }
  if (value.empty())
    return expects(flag, flag.value, value);
  options.*flag.text = value;
  return Status::ok();
}

Status setFlag(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  // A list given again after a stored one replaces it.
  if (flag.list && !options.given.count(flag.name))
    (options.*flag.list).clear();
  options.given.insert(flag.name);
  if (flag.toggle) {
    options.*flag.toggle = true;
    return Status::ok();
  }
  if (flag.integer)
    return setInteger(flag, value, options);
  if (flag.real)
    return setReal(flag, value, options);
  if (flag.text)
    return setText(flag, value, options);
  if (value.empty())
    return expects(flag, "a path", value);
  (options.*flag.list).push_back(value);
  return Status::ok();
}

/// "--name=value" or "--name", as a run stores it; no value is apart.
struct StoredArgument {
  std::string name, value;
  const Flag *flag = nullptr;
};

StoredArgument splitStored(const std::string &argument) {
  size_t equals = std::min(argument.find('='), argument.size());
  StoredArgument result;
  if (argument.rfind("--", 0) != 0)
    return result;
  result.name = argument.substr(2, equals - 2);
  result.value = argument.substr(std::min(equals + 1, argument.size()));
  result.flag = findFlag(result.name);
  return result;
}

/// The flag's value as text, empty for what is not set.
std::vector<std::string> valuesOf(const Flag &flag,
                                  const TrainOptions &options) {
  if (flag.toggle)
    return options.*flag.toggle ? std::vector<std::string>{""}
                                : std::vector<std::string>{};
  if (flag.integer)
    return {std::to_string(options.*flag.integer)};
  if (flag.real)
    return {number(options.*flag.real)};
  if (flag.text)
    return (options.*flag.text).empty()
               ? std::vector<std::string>{}
               : std::vector<std::string>{options.*flag.text};
  return options.*flag.list;
}

std::string absolutePath(const std::string &path) {
  if (path.rfind("synthetic:", 0) == 0)
    return path;
  // "A,B" names two paths.
  std::string result;
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = std::min(path.find(',', begin), path.size());
    std::error_code ignored;
    std::string part = path.substr(begin, end - begin);
    result +=
        (begin ? "," : "") + std::filesystem::absolute(part, ignored).string();
    begin = end + 1;
  }
  return result;
}

} // namespace

Status parseCommandLine(const std::vector<std::string> &arguments,
                        TrainOptions &options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "-h") {
      options.help = true;
      continue;
    }
    if (argument.rfind("--", 0) != 0)
      return Status::invalidArgument(
          "'" + argument.substr(0, 200) +
          "' is no flag; flags start with --, data is given as --data PATH");
    size_t equals = argument.find('=');
    std::string name = argument.substr(
        2, equals == std::string::npos ? std::string::npos : equals - 2);
    const Flag *flag = findFlag(name);
    if (!flag)
      return Status::invalidArgument("--" + name.substr(0, 100) +
                                     " is no flag: " + suggestion(name));
    bool hasValue = equals != std::string::npos;
    std::string value = hasValue ? argument.substr(equals + 1) : "";
    if (flag->toggle && hasValue)
      return Status::invalidArgument("--" + name + " takes no value");
    if (name == "describe" && !hasValue) {
      value = "table";
    } else if (!flag->toggle && !hasValue) {
      if (i + 1 == arguments.size())
        return Status::invalidArgument("--" + name + " expects a value: --" +
                                       name + " " + flag->value);
      value = arguments[++i];
    }
    DYNA_RETURN_IF_ERROR(setFlag(*flag, value, options));
  }
  return Status::ok();
}

Status parseStoredArguments(const std::vector<std::string> &arguments,
                            TrainOptions &options) {
  std::vector<std::string> obeyed;
  for (const std::string &argument : arguments) {
    StoredArgument stored = splitStored(argument);
    bool isWhole = stored.flag && (stored.flag->toggle ||
                                   argument.find('=') != std::string::npos);
    if (!isWhole || stored.flag->stored == Stored::No)
      return Status::invalidArgument(
          "state.json has the argument '" + argument.substr(0, 200) +
          "', which no run stores: this checkpoint cannot be resumed, use "
          "--load");
    if (stored.flag->stored != Stored::Told)
      obeyed.push_back(argument);
  }
  return parseCommandLine(obeyed, options);
}

std::string storedValue(const std::vector<std::string> &arguments,
                        const std::string &name) {
  for (const std::string &argument : arguments)
    if (StoredArgument stored = splitStored(argument); stored.name == name)
      return stored.value;
  return "";
}

Status checkExclusions(const TrainOptions &options) {
  auto bad = [](const char *what) { return Status::invalidArgument(what); };
  if (options.progress && options.noProgress)
    return bad("--progress and --no-progress exclude each other");
  if (!options.resume.empty() && !options.load.empty())
    return bad("--resume continues a run and --load starts a new one: give "
               "only one of them");
  if (!options.resume.empty() && options.evaluate)
    return bad("--evaluate takes the parameters by --load, not --resume");
  for (const char *flag : {"save", "trace", "counts", "print-grad-norms"})
    if (options.evaluate && options.isGiven(flag))
      return Status::invalidArgument(
          formatText("--evaluate trains nothing, so there is nothing for --%s "
                     "to write: give only one of them",
                     flag));
  return Status::ok();
}

Status resolveOptions(TrainOptions &options) {
  auto bad = [](const char *what) { return Status::invalidArgument(what); };
  DYNA_RETURN_IF_ERROR(checkExclusions(options));
  if (!options.heldOut.empty() && options.heldOutFraction > 0)
    return bad("give --held-out or --held-out-fraction, not both");
  if (options.data.empty())
    return bad("no data: give --data PATH (a directory of text files, a .jsonl "
               "file, or a Megatron-LM prefix); --help lists all flags");
  if (options.isGiven("save-every") && options.save.empty())
    return bad("--save-every needs --save DIR");
  if (auto schedule = SaveSchedule::parse(options.saveEvery); !schedule.isOk())
    return schedule.status();
  if (options.minLearningRate < 0)
    options.minLearningRate = options.learningRate / 10;
  if (options.minLearningRate > options.learningRate)
    return Status::invalidArgument(formatText("--min-lr %g is above --lr %g",
                                              options.minLearningRate,
                                              options.learningRate));
  if (options.warmup < 0)
    options.warmup = std::min<int64_t>(100, scheduleLength(options) / 10);
  if (StatusOr<LongDocuments> mode = parseLongDocuments(options.longDocuments);
      !mode.isOk())
    return mode.status();
  if (!options.memoryLimit.empty())
    if (StatusOr<int64_t> bytes = parseBytes(options.memoryLimit);
        !bytes.isOk())
      return Status::invalidArgument("--memory-limit: " +
                                     bytes.status().message());
  return Status::ok();
}

int64_t scheduleLength(const TrainOptions &options) {
  return options.scheduleSteps > 0 ? options.scheduleSteps : options.steps;
}

std::vector<std::string> runArguments(const TrainOptions &options) {
  std::vector<std::string> arguments;
  for (const Flag &flag : flags()) {
    if (flag.stored == Stored::No)
      continue;
    // 0 and -1 stand for "not given", which the flags themselves refuse.
    if (flag.integer && static_cast<double>(options.*flag.integer) < flag.low)
      continue;
    if (flag.real && options.*flag.real < flag.low)
      continue;
    for (const std::string &value : valuesOf(flag, options)) {
      std::string argument = "--" + std::string(flag.name);
      if (!flag.toggle)
        argument += "=" + (flag.isPath ? absolutePath(value) : value);
      arguments.push_back(argument);
    }
  }
  return arguments;
}

std::vector<std::string> changedFlags(const TrainOptions &before,
                                      const TrainOptions &after) {
  std::vector<std::string> changed;
  for (const Flag &flag : flags()) {
    if (flag.stored != Stored::Numbers)
      continue;
    std::vector<std::string> old = valuesOf(flag, before);
    std::vector<std::string> now = valuesOf(flag, after);
    if (flag.isPath)
      for (std::vector<std::string> *values : {&old, &now})
        for (std::string &value : *values)
          value = absolutePath(value);
    if (old != now)
      changed.push_back("--" + std::string(flag.name));
  }
  return changed;
}

std::vector<std::pair<std::string, std::string>>
commonFlags(const TrainOptions &options) {
  std::vector<std::pair<std::string, std::string>> common;
  for (const Flag &flag : flags()) {
    std::string name = flag.name;
    bool isPath = flag.isPath || flag.list;
    // A strategy has names; what it means is compared. Every process saves its
    // part, wherever.
    if (flag.stored == Stored::No || name == "threads" || name == "strategy" ||
        (isPath && name != "save"))
      continue;
    std::string text;
    for (const std::string &value : valuesOf(flag, options))
      text += (text.empty() ? "" : ",") + (isPath ? "given" : value);
    common.emplace_back("--" + name, text);
  }
  return common;
}

StatusOr<int64_t> parseBytes(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string unit = end;
  static const std::pair<const char *, int> units[] = {
      {"", 0},     {"B", 0},   {"K", 10},   {"KB", 10}, {"KiB", 10},
      {"M", 20},   {"MB", 20}, {"MiB", 20}, {"G", 30},  {"GB", 30},
      {"GiB", 30}, {"T", 40},  {"TB", 40},  {"TiB", 40}};
  for (auto [name, shift] : units)
    if (unit == name && end != text.c_str() && std::isfinite(value) &&
        value > 0 && std::ldexp(value, shift) < 1e18)
      return static_cast<int64_t>(std::ldexp(value, shift));
  return Status::invalidArgument(
      "expects bytes such as 4GiB or 512M, but got '" + text + "'");
}

std::string helpText(const std::string &program) {
  std::string text = "Trains the model that was compiled into this program.\n\n"
                     "  " +
                     program +
                     " --data corpus/ --steps 200 --save model/\n"
                     "  " +
                     program +
                     " --resume model/ --steps 400\n"
                     "  " +
                     program +
                     " --evaluate --load model/ --data heldout/\n"
                     "  " +
                     program + " --describe\n";
  TrainOptions defaults;
  std::string section;
  for (const Flag &flag : flags()) {
    if (section != flag.section) {
      section = flag.section;
      text += "\n" + section + "\n";
    }
    std::string name = "--" + std::string(flag.name);
    if (*flag.value)
      name += std::string(" ") + flag.value;
    text += formatText("  %-28s %s", name.c_str(), flag.help);
    bool hasDefault = (flag.integer && defaults.*flag.integer > 0) ||
                      (flag.real && defaults.*flag.real > 0) ||
                      (flag.text && !(defaults.*flag.text).empty());
    if (flag.real && hasDefault)
      text += formatText(" (%g)", defaults.*flag.real);
    else if (hasDefault)
      text += " (" + valuesOf(flag, defaults)[0] + ")";
    text += "\n";
  }
  return text;
}

} // namespace dyna
