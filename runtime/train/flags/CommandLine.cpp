//===- CommandLine.cpp - Parses the flags of a compiled binary ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/CommandLine.h"

#include "runtime/base/text/ParseBytes.h"
#include "runtime/base/text/Text.h"
#include "runtime/data/BatchReader.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/train/flags/Flags.h"
#include "runtime/train/flags/FreezeList.h"
#include "runtime/train/flags/PruneFlag.h"
#include "runtime/train/flags/RebalanceFlag.h"
#include "runtime/train/flags/RepackList.h"
#include "runtime/train/flags/SaveSchedule.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

namespace dyna {
namespace {

std::string number(double value) { return formatText("%.17g", value); }

Status expects(const Flag &flag, const std::string &what,
               const std::string &given) {
  return unexpected(flag.name, what, given);
}

Status setInteger(const Flag &flag, const std::string &value,
                  TrainOptions &options) {
  DYNA_ASSIGN_OR_RETURN(options.*flag.integer,
                        parseWholeNumber(flag.name, value,
                                         static_cast<int64_t>(flag.low),
                                         static_cast<int64_t>(flag.high)));
  return Status::ok();
}

Status setReal(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  double parsed = 0;
  const char *const end = value.data() + value.size();
  // Accept only decimal digits, so no 0x10.
  const auto [last, error] = std::from_chars(value.data(), end, parsed);
  if (error != std::errc() || last != end || !std::isfinite(parsed) ||
      parsed < flag.low || parsed > flag.high)
    return expects(
        flag, formatText("a number from %.10g to %.10g", flag.low, flag.high),
        value);
  options.*flag.real = parsed;
  return Status::ok();
}

Status setText(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  if (!flag.choices.empty())
    DYNA_RETURN_IF_ERROR(parseChoice(flag.name, value, flag.choices).status());
  if (value.empty())
    return expects(flag, flag.value, value);
  options.*flag.text = value;
  return Status::ok();
}

Status setFlag(const Flag &flag, const std::string &value,
               TrainOptions &options) {
  // A list that is given replaces a stored one.
  if (flag.list && !options.given.count(flag.name))
    (options.*flag.list).clear();
  options.given.insert(flag.name);
  if (flag.word)
    return setWord(flag.word->word, value, options);
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

/// Returns the flag's value as text; empty if it is not set.
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
    if (flag->toggle && !flag->word && hasValue)
      return Status::invalidArgument("--" + name + " takes no value");
    if (flag->implied && !hasValue) {
      value = flag->implied;
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

/// Refuses the first of `flags` that is given, with the text `what`, in which
/// %s is its name.
Status refuseAny(const TrainOptions &options,
                 std::initializer_list<const char *> flags, const char *what) {
  for (const char *flag : flags)
    if (options.isGiven(flag))
      return Status::invalidArgument(formatText(what, flag));
  return Status::ok();
}

/// Refuses --prune where nothing is trained.
static Status checkPruning(const TrainOptions &options) {
  const bool trains = !options.evaluate && options.profile.empty() &&
                      options.writeLengths.empty();
  if (trains || !options.isGiven("prune"))
    return Status::ok();
  return Status::invalidArgument(formatText(
      "--prune makes weights zero while a run trains, and --%s trains nothing: "
      "leave out one of them",
      options.evaluate           ? "evaluate"
      : !options.profile.empty() ? "profile"
                                 : "write-lengths"));
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
  if (options.evaluate)
    DYNA_RETURN_IF_ERROR(refuseAny(
        options, {"save", "trace", "counts", "print-grad-norms", "dump-plans"},
        "--evaluate trains nothing, so there is nothing for --%s to write: "
        "give only one of them"));
  DYNA_RETURN_IF_ERROR(checkPruning(options));
  if (options.strategies == "search")
    return bad("--strategies search is of dynac and dyna-plan: --ranges search "
               "looks for strategies and ranges among the degrees that this "
               "program has");
  if (options.evaluate && options.isGiven("plans"))
    return bad("--evaluate plans what it evaluates: --plans is for training");
  if (!options.store.empty())
    DYNA_RETURN_IF_ERROR(refuseAny(
        options, {"plans", "evaluate", "print-grad-norms"},
        "--store is for plans of training steps, and --%s has none to "
        "share: give only one of them"));
  if (!options.planOnly.empty())
    DYNA_RETURN_IF_ERROR(refuseAny(
        options,
        {"save", "trace", "counts", "metrics", "load", "resume", "dump-plans",
         "rebalance", "freeze"},
        "--plan-only trains nothing, so --%s is for the processes that do"));
  if (!options.writeLengths.empty())
    DYNA_RETURN_IF_ERROR(refuseAny(
        options,
        {"save", "trace", "counts", "metrics", "load", "resume", "dump-plans",
         "plans", "profile", "evaluate", "print-grad-norms", "plan-only",
         "ranges", "repack", "rebalance", "freeze"},
        "--write-lengths only writes lengths: there is nothing for --%s to do, "
        "leave it out"));
  if (!options.planOnly.empty() && options.store.empty())
    return bad("--plan-only needs --store ADDRESS, where its plans go");
  if (options.isGiven("store-retry") && options.store.empty())
    return bad("--store-retry needs --store ADDRESS");
  if (!options.plans.empty() && options.plans == options.dumpPlans)
    return bad("--plans and --dump-plans name one folder: give each its own");
  if (!options.profile.empty())
    DYNA_RETURN_IF_ERROR(refuseAny(
        options,
        {"data", "held-out", "held-out-fraction", "evaluate-every", "load",
         "resume", "save", "metrics", "trace", "counts", "print-grad-norms",
         "costs", "evaluate", "repack", "rebalance", "freeze"},
        "--profile only measures what layers take: there is nothing for --%s "
        "to "
        "do, leave it out"));
  if (options.profile.empty() && options.isGiven("profile-seconds"))
    return bad("--profile-seconds needs --profile FILE");
  return Status::ok();
}

/// Checks that a run can go over to other graphs, as `flag` asks for.
Status checkReplaces(const TrainOptions &options, const std::string &flag) {
  if (options.evaluate)
    return Status::invalidArgument(
        formatText("--evaluate trains no step before which --%s could change "
                   "anything: give only one of them",
                   flag));
  const std::string why =
      "--" + flag +
      " goes over to graphs for which --%s has no plans: give only one of them";
  return refuseAny(options, {"plans"}, why.c_str());
}

/// Checks that a run can go over to another strategy, as `flag` asks for.
Status checkMoves(const TrainOptions &options, const std::string &flag) {
  DYNA_RETURN_IF_ERROR(checkReplaces(options, flag));
  if (!options.ranges.empty())
    return Status::invalidArgument(
        formatText("--%s and --ranges do not go together: --%s is about the "
                   "one strategy of a run, --strategy",
                   flag, flag));
  return Status::ok();
}

Status checkRepack(const TrainOptions &options) {
  DYNA_RETURN_IF_ERROR(parseRepacks(options.repack).status());
  if (!options.repack.empty())
    DYNA_RETURN_IF_ERROR(checkMoves(options, "repack"));
  if (options.release != "wait" && options.release != "exit")
    return Status::invalidArgument(formatText(
        "--release expects wait or exit, but got '%s'", options.release));
  if (options.release == "exit" && options.save.empty())
    return Status::invalidArgument(
        "--release exit saves the run before it ends: give --save DIR");
  if (options.rebalance.empty())
    return Status::ok();
  DYNA_RETURN_IF_ERROR(parseRebalanceFlag(options.rebalance).status());
  return checkMoves(options, "rebalance");
}

Status checkFreeze(const TrainOptions &options) {
  if (options.freeze.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(const auto events, parseFreezes(options.freeze));
  for (const FreezeEvent &event : events)
    if (event.isAuto() && options.noGradientNorm)
      return Status::invalidArgument(formatText(
          "--freeze %s goes by the gradient norms of layers: leave out "
          "--no-gradient-norm",
          describeFreeze(event)));
  DYNA_RETURN_IF_ERROR(checkReplaces(options, "freeze"));
  return options.prune.empty()
             ? Status::ok()
             : Status::invalidArgument(
                   "--freeze and --prune do not go together: survivors are "
                   "chosen among trained weights alone; give only one of them");
}

Status checkNorms(const TrainOptions &options) {
  if (options.noGradientNorm && options.clip > 0)
    return Status::invalidArgument(formatText(
        "--no-gradient-norm leaves nothing to clip by, but --clip is %g: give "
        "--clip 0",
        options.clip));
  if (options.noGradientNorm && options.skipNonfinite > 0)
    return Status::invalidArgument(
        "--skip-nonfinite goes by the gradient norm: leave it out, or "
        "leave out --no-gradient-norm");
  return Status::ok();
}

Status checkBatching(const TrainOptions &options) {
  if (options.microBatches.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(Batching batching, findBatching(options.microBatches));
  const bool makesRows =
      batching == Batching::Packed || batching == Batching::PackedMasked;
  if (options.pad && makesRows)
    return Status::invalidArgument(formatText(
        "--pad and --micro-batches %s do not go together: samples fill rows, "
        "and what is padded before goes to others; leave out --pad",
        options.microBatches));
  return options.ranges.empty() ? Status::ok() : checkRanged(batching);
}

Status resolveOptions(TrainOptions &options) {
  auto bad = [](const char *what) { return Status::invalidArgument(what); };
  DYNA_RETURN_IF_ERROR(checkExclusions(options));
  DYNA_RETURN_IF_ERROR(checkNorms(options));
  DYNA_RETURN_IF_ERROR(checkBatching(options));
  DYNA_RETURN_IF_ERROR(checkRepack(options));
  DYNA_RETURN_IF_ERROR(checkFreeze(options));
  if (!options.heldOut.empty() && options.heldOutFraction > 0)
    return bad("give --held-out or --held-out-fraction, not both");
  if (options.evaluateEvery > 0 && options.heldOut.empty() &&
      options.heldOutFraction == 0)
    return bad("--evaluate-every has nothing to evaluate: give --held-out PATH "
               "or --held-out-fraction X");
  if (options.data.empty())
    return bad("no data: give --data PATH (a directory of text files, a .jsonl "
               "file, or a Megatron-LM prefix); --help lists all flags");
  if (options.isGiven("save-every") && options.save.empty())
    return bad("--save-every needs --save DIR");
  if (options.removeFirst && options.keep < 2)
    return bad("--remove-first needs --keep 2 or more: one checkpoint always "
               "stays");
  if (auto schedule = SaveSchedule::parse(options.saveEvery); !schedule.isOk())
    return schedule.status();
  if (!options.prune.empty())
    DYNA_RETURN_IF_ERROR(parsePruneFlag(options.prune).status());
  if (options.minLearningRate < 0)
    options.minLearningRate = options.learningRate / 10;
  if (options.minLearningRate > options.learningRate)
    return Status::invalidArgument(formatText(
        "--min-lr %g is above --lr %g; give both (a resumed run keeps its own)",
        options.minLearningRate, options.learningRate));
  if (options.warmup < 0)
    options.warmup = std::min<int64_t>(100, scheduleLength(options) / 10);
  if (StatusOr<LongDocuments> mode = parseLongDocuments(options.longDocuments);
      !mode.isOk())
    return mode.status();
  if (StatusOr<int64_t> bytes = parseBytes(options.memoryLimit);
      !options.memoryLimit.empty() && !bytes.isOk())
    return Status::invalidArgument("--memory-limit: " +
                                   bytes.status().message());
  if (StatusOr<int64_t> bytes = parseBytes(options.maxShardSize);
      options.maxShardSize != "0" && !bytes.isOk())
    return Status::invalidArgument(
        "--max-shard-size: " + bytes.status().message() +
        "; 0 saves in one file");
  return Status::ok();
}

int64_t shardBytesOf(const TrainOptions &options) {
  if (options.maxShardSize == "0")
    return 0;
  StatusOr<int64_t> bytes = parseBytes(options.maxShardSize);
  return bytes.isOk() ? *bytes : 0; // resolveOptions has refused invalid sizes
}

int64_t scheduleLength(const TrainOptions &options) {
  return options.scheduleSteps > 0 ? options.scheduleSteps : options.steps;
}

std::vector<std::string> runArguments(const TrainOptions &options) {
  std::vector<std::string> arguments;
  for (const Flag &flag : flags()) {
    if (flag.stored == Stored::No)
      continue;
    // 0 and -1 mean "not given", and the flags themselves refuse these values.
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
    // Strategies are compared by their graphs, not by their names. Every
    // process may save its part in a folder of its own.
    if (flag.stored == Stored::No || name == "threads" || name == "strategy" ||
        name == "strategies" || (isPath && name != "save"))
      continue;
    std::string text;
    for (const std::string &value : valuesOf(flag, options))
      text += (text.empty() ? "" : ",") + (isPath ? "given" : value);
    common.emplace_back("--" + name, text);
  }
  return common;
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
      name += std::string(flag.implied ? "" : " ") + flag.value;
    text += formatText("  %-28s %s", name, flag.help);
    if (flag.word) { // its help contains its default
      text += "\n";
      continue;
    }
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
