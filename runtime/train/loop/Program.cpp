//===- Program.cpp - Runs the program that a model is compiled into -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Program.h"

#include "runtime/base/error/Guard.h"
#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/executor/open/OpenProgram.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/train/files/OutputPaths.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/NamedStrategies.h"
#include "runtime/train/flags/RepackList.h"
#include "runtime/train/loop/FreezeEvents.h"
#include "runtime/train/loop/PruneEvents.h"
#include "runtime/train/loop/Summary.h"
#include "runtime/train/open/Initialize.h"
#include "runtime/train/open/OpenSession.h"
#include "runtime/train/plans/PlanService.h"
#include "runtime/train/profile/Profile.h"
#include "runtime/train/session/CompareConfigs.h"
#include "runtime/train/session/DescribeData.h"
#include "runtime/train/session/Devices.h"
#include "runtime/train/session/Signals.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace dyna {
namespace {

/// Exit code of a run that --release ended.
constexpr int releasedCode = 3;

/// Reasons for which a run ended early.
struct Ending {
  int stoppedBy = 0; ///< signal; 0: none
  bool isReleased = false;
};

/// Why standard output could not be written: errno of the first failure; 0: it
/// could. A later call sets errno anew.
int outputError = 0;

void noteOutput(bool isWritten) {
  if (!isWritten && outputError == 0)
    outputError = errno != 0 ? errno : EIO;
}

/// Bytes for programs.
void write(const std::string &bytes) {
  errno = 0;
  noteOutput(std::fwrite(bytes.data(), 1, bytes.size(), stdout) ==
             bytes.size());
}

void flushOutput() {
  errno = 0;
  noteOutput(std::fflush(stdout) == 0);
}

/// Lines for people.
void print(const std::string &text) { write(printable(text, true)); }

int exitCode(const Status &status, const char *name) {
  flushOutput();
  if (status.isOk() && outputError == 0)
    return 0;
  if (status.isOk())
    return exitCode(Status::invalidArgument(
                        std::string("cannot write to standard output: ") +
                        std::strerror(outputError)),
                    name);
  std::fprintf(stderr, "%s: %s\n", printable(name).c_str(),
               messageText(status.message()).c_str());
  return status.code() == StatusCode::Internal ? 1 : 2;
}

void describe(const dyna_program &program, const Model &model,
              const TrainOptions &options) {
  if (options.describe == "json")
    return write(manifestToJson(model));
  if (options.describe == "proto")
    return write(model.manifest().SerializeAsString());
  int64_t tokens = options.tokensPerMicroBatch;
  if (tokens == 0)
    tokens = std::max<int64_t>(model.manifest().facts().positions(), 1024);
  print(describeManifest(model, tokens) + dyna_device_kind.describe(program));
}

void warn(const std::string &text) { sayLine("warning: " + text); }

/// Returns the folder that `--resume` continues to write to. That is the named
/// folder of checkpoints, or the folder of the one checkpoint that is named by
/// any path.
std::string resumeDirectory(const std::string &resume,
                            const Checkpoint &checkpoint) {
  if (checkpoint.path != resume)
    return resume;
  std::error_code error;
  std::filesystem::path step = std::filesystem::canonical(resume, error);
  if (error || stepOfName(step.filename().string()) < 0)
    return resume;
  return step.parent_path().string();
}

/// Adds a warning for each reason why the run will not have the numbers of the saved one.
void warnOfChanges(const TrainOptions &saved, const TrainOptions &options,
                   const Model &model, ResumedRun &run) {
  auto warn = [&](const std::string &text) { run.warnings.push_back(text); };
  for (const std::string &note : loadingNotes(run.checkpoint, model))
    warn(note);
  for (const std::string &flag : changedFlags(saved, options))
    warn(flag + " is not what the saved run had: this continues it "
                "with other numbers");
  if (std::string other =
          run.state.lossWeights.differences(SavedWeights::of(model));
      !other.empty())
    warn("losses have other weights than in the saved run: " + other +
         "; training goes on with those of this program");
  if (saved.steps != options.steps && options.scheduleSteps == 0 &&
      options.schedule != "constant")
    warn(formatText("the learning rate now falls over %d steps instead of "
                    "%d; --schedule-steps fixes that from the start",
                    options.steps, saved.steps));
  if (std::string metrics = storedValue(run.state.arguments, "metrics");
      !metrics.empty() && options.metrics.empty())
    warn("the saved run wrote metrics to " + quoteJson(metrics) +
         ", this one writes none: give --metrics FILE to go on with them");
  if (run.state.modelHash != modelHashText(model))
    warn("the checkpoint was written by another compilation: of this model, "
         "as far as names and shapes tell, so that numbers may differ");
}

/// Merges the saved run's flags with those of the command line, which have
/// priority.
Status mergeResumed(const std::vector<std::string> &arguments,
                    const Model &model, ResumedRun &run,
                    TrainOptions &options) {
  const RunState &state = run.state;
  TrainOptions saved;
  DYNA_RETURN_IF_ERROR(parseStoredArguments(state.arguments, saved));
  TrainOptions merged = saved;
  merged.given.clear();
  DYNA_RETURN_IF_ERROR(parseCommandLine(arguments, merged));
  // --strategy and --ranges replace each other.
  if (merged.isGiven("strategy") && !merged.isGiven("ranges")) {
    merged.ranges.clear();
    if (!merged.isGiven("merge-ranges"))
      merged.mergeRanges = TrainOptions().mergeRanges;
  }
  if (merged.isGiven("ranges") && !merged.isGiven("strategy"))
    merged.strategy.clear();
  if (merged.ranges == "search" && !merged.isGiven("strategies"))
    merged.strategies.clear();
  else {
    DYNA_ASSIGN_OR_RETURN(
        merged.strategies,
        resumedStrategies(
            model, merged.isGiven("strategies") ? merged.strategies : "",
            saved.strategies,
            merged.isGiven("strategy") || merged.isGiven("ranges")));
  }
  // Saved entries that were carried out are no longer in the list.
  DYNA_ASSIGN_OR_RETURN(const auto repacks, parseRepacks(merged.repack));
  DYNA_RETURN_IF_ERROR(checkRepackSteps(repacks, state.step));
  if (!merged.isGiven("save"))
    merged.save = resumeDirectory(merged.resume, run.checkpoint);
  options = merged;
  if (std::string other = otherConfig(run.checkpoint, model); !other.empty())
    return Status::invalidArgument(
        run.checkpoint.path +
        " is of another model than this program: " + other +
        "; resume it with the program that saved it, or start from its "
        "parameters with --load");
  warnOfChanges(saved, options, model, run);
  return Status::ok();
}

/// Tells the other processes of a failure here. They would otherwise wait until
/// their deadline, without the reason.
Status tellOthers(Session &session, const Status &status) {
  if (!status.isOk())
    session.ranks->abort(status);
  return status;
}

bool isDone(const ResumedRun &run, const TrainOptions &options) {
  return run.state.step >= options.steps;
}

/// Returns true if the metrics lack the evaluation behind the last step, because the
/// run ended in it.
bool lacksEvaluation(const ResumedRun &run, const TrainOptions &options) {
  const bool holdsOut = !options.heldOut.empty() || options.heldOutFraction > 0;
  return holdsOut && !options.metrics.empty() &&
         !MetricsFile::hasHeldOut(options.metrics, run.state.step);
}

void sayDone(const ResumedRun &run, const TrainOptions &options,
             bool evaluates) {
  print(formatText("the run in %s has done %d of %d steps: %s; more --steps "
                   "continue it\n",
                   run.checkpoint.path, run.state.step, options.steps,
                   evaluates ? "only the evaluation behind them is left"
                             : "nothing is left to do"));
  // Remove the remains of an interrupted save, but touch no folder in use.
  if (!options.save.empty() && isDirectory(options.save))
    (void)CheckpointStore::open(options.save, run.state.step, options.keep);
}

/// Trains. At most one of `loaded` (--load) and `resumed` is set. `stoppedBy`
/// becomes the signal that ended the run early, if any.
Status train(const dyna_program &program, const Model &model,
             const TrainOptions &options, const Checkpoint *loaded,
             const ResumedRun *resumed, Ending &ending) {
  Session session;
  DYNA_RETURN_IF_ERROR(
      setFrozen(model, options, resumed ? &resumed->state : nullptr, session));
  DYNA_RETURN_IF_ERROR(openSession(program, model, options, true,
                                   resumed ? &resumed->checkpoint : loaded,
                                   session));
  if (resumed && isDone(*resumed, options)) {
    DYNA_ASSIGN_OR_RETURN(
        auto lacks, session.ranks->any({session.writesFiles() &&
                                        lacksEvaluation(*resumed, options)}));
    if (session.writesFiles())
      sayDone(*resumed, options, lacks[0]);
    if (!lacks[0])
      return Status::ok();
  }
  Trainer trainer(session, loaded, resumed);
  DYNA_RETURN_IF_ERROR(
      tellOthers(session, guarded([&] { return trainer.run(); })));
  ending.stoppedBy = trainer.summary().stoppedBy;
  ending.isReleased = trainer.summary().releasedTo > 0;
  if (session.writesFiles())
    print(summaryText(session, trainer.summary()));
  // Launchers end a job at the first exit code that is not 0, so print before.
  flushOutput();
  return trainer.endFiles();
}

Status evaluateSession(Session &session, const Checkpoint *loaded) {
  const TrainOptions &options = session.options;
  if (session.writesFiles()) {
    if (!options.noProgress) {
      for (const std::string &line : describeData(session))
        sayLine(line);
      for (const std::string &line : describeRanges(session))
        sayLine(line);
    }
    for (const std::string &note : dataNotes(session))
      sayLine("note: " + note);
  }
  if (!loaded) {
    warn("no --load: this evaluates a model that has learned nothing");
    DYNA_RETURN_IF_ERROR(initializeParameters(
        *session.ranks, static_cast<uint64_t>(options.seed),
        session.device().team()));
  } else {
    for (const std::string &note : loadingNotes(*loaded, *session.model))
      if (session.writesFiles())
        warn(note);
    DYNA_RETURN_IF_ERROR(initializeAddedParts(
        *session.ranks, static_cast<uint64_t>(options.seed),
        session.device().team()));
    std::vector<std::string> warnings;
    DYNA_RETURN_IF_ERROR(loadModel(*loaded, *session.ranks, warnings));
    if (session.writesFiles())
      for (const std::string &warning : warnings)
        warn(warning);
  }
  DYNA_RETURN_IF_ERROR(castParameters(*session.ranks));
  int64_t limit =
      options.isGiven("held-out-tokens") ? options.heldOutTokens : INT64_MAX;
  DYNA_ASSIGN_OR_RETURN(Evaluation result,
                        evaluate(session, session.data, limit));
  DYNA_RETURN_IF_ERROR(result.failure);
  if (!session.writesFiles())
    return Status::ok();
  print(evaluationText(session, result));
  if (options.metrics.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(MetricsFile metrics,
                        MetricsFile::open(options.metrics));
  JsonObject line;
  line.add("loss", result.loss);
  addLosses(line, result.losses);
  line.add("bits_per_byte", result.bitsPerByte)
      .add("targets", result.targets)
      .add("tokens", result.tokens)
      .add("seconds", jsonFixed(result.seconds, 6));
  return metrics.writeLine(line.text());
}

Status evaluateOnly(const dyna_program &program, const Model &model,
                    const TrainOptions &options, const Checkpoint *loaded) {
  Session session;
  DYNA_RETURN_IF_ERROR(
      openSession(program, model, options, false, loaded, session));
  return tellOthers(session,
                    guarded([&] { return evaluateSession(session, loaded); }));
}

/// Plans until the executors' run is over.
Status planOnly(const Model &model, const TrainOptions &options,
                int &stoppedBy) {
  DYNA_ASSIGN_OR_RETURN(PlannerNumber number,
                        parsePlannerNumber(options.planOnly));
  DYNA_ASSIGN_OR_RETURN(auto store,
                        openStore(options.store,
                                  std::chrono::seconds(options.timeout),
                                  std::chrono::seconds(options.storeRetry)));
  Session session;
  DYNA_RETURN_IF_ERROR(openPlanning(model, options, session));
  catchStopSignals();
  DYNA_ASSIGN_OR_RETURN(auto result, servePlans(session, *store, number));
  stoppedBy = result.stoppedBy;
  print(formatText("planner %d of %d: %d plans in %s\n", number.index,
                   number.count, result.plans, store->describe()));
  return Status::ok();
}

/// Writes lengths in the order of the files, independent of --shuffle.
Status writeLengths(const Model &model, const TrainOptions &options) {
  Session session;
  DYNA_RETURN_IF_ERROR(openPlanning(model, options, session));
  std::string text;
  for (int64_t number = 0; number < session.data->size(); ++number) {
    DYNA_ASSIGN_OR_RETURN(Sample sample, session.data->read(number));
    text += formatText("%d\n", sample.tokens.size());
  }
  DYNA_RETURN_IF_ERROR(replaceFile(options.writeLengths, text));
  for (const std::string &line : describeData(session))
    sayLine(line);
  const std::string longer = describeLongDocuments(session);
  sayLine("long documents: " +
          (longer.empty() ? "none of more than " +
                                groupDigits(session.sampleLimit) + " tokens"
                          : longer));
  for (const std::string &note : lengthNotes(session))
    sayLine("note: " + note);
  return Status::ok();
}

Status startRun(const dyna_program &program, Model &model, TrainOptions options,
                Ending &ending) {
  DYNA_RETURN_IF_ERROR(resolveOptions(options));
  DYNA_RETURN_IF_ERROR(setMasks(model, options));
  DYNA_RETURN_IF_ERROR(checkOutputPaths(options));
  if (!options.planOnly.empty())
    return planOnly(model, options, ending.stoppedBy);
  if (!options.writeLengths.empty())
    return writeLengths(model, options);
  std::optional<Checkpoint> loaded;
  if (!options.load.empty()) {
    DYNA_ASSIGN_OR_RETURN(Checkpoint checkpoint, loadCheckpoint(options.load));
    loaded = std::move(checkpoint);
  }
  const Checkpoint *start = loaded ? &*loaded : nullptr;
  return options.evaluate
             ? evaluateOnly(program, model, options, start)
             : train(program, model, options, start, nullptr, ending);
}

StatusOr<RunState> stateOf(const Checkpoint &checkpoint) {
  if (!checkpoint.canResume())
    return Status::invalidArgument(
        checkpoint.path +
        " holds a model but no run to resume: start from it with --load");
  StatusOr<RunState> state = RunState::fromJson(checkpoint.state);
  if (!state.isOk())
    return Status::invalidArgument(checkpoint.path + ": " +
                                   state.status().message());
  if (state->step != checkpoint.step)
    return Status::invalidArgument(formatText(
        "%s: state.json is of step %d, but checkpoint.json of step %d: "
        "this checkpoint cannot be resumed, use --load",
        checkpoint.path, state->step, checkpoint.step));
  return state;
}

Status resumeRun(const dyna_program &program, Model &model,
                 const std::vector<std::string> &arguments,
                 TrainOptions options, Ending &ending) {
  DYNA_ASSIGN_OR_RETURN(Checkpoint checkpoint, loadCheckpoint(options.resume));
  DYNA_ASSIGN_OR_RETURN(RunState state, stateOf(checkpoint));
  ResumedRun run{std::move(checkpoint), std::move(state), {}};
  DYNA_RETURN_IF_ERROR(mergeResumed(arguments, model, run, options));
  DYNA_RETURN_IF_ERROR(resolveOptions(options));
  DYNA_RETURN_IF_ERROR(
      checkResumedPruning(storedValue(run.state.arguments, "prune"),
                          options.prune, run.state.step, run.state.pruned));
  DYNA_RETURN_IF_ERROR(setMasks(model, options));
  DYNA_RETURN_IF_ERROR(checkOutputPaths(options));
  // With several processes, others may have found another checkpoint and wait.
  if (isDone(run, options) && launchedProcesses() == 1 &&
      !lacksEvaluation(run, options)) {
    sayDone(run, options, false);
    return Status::ok();
  }
  return train(program, model, options, nullptr, &run, ending);
}

} // namespace

/// Ends the process after an exception that cannot be caught, as in a kernel
/// that compiled code called. Allocates no memory.
[[noreturn]] static void onTerminate() {
  const char *what = "unexpected failure";
  int code = 1;
  try {
    if (std::current_exception())
      throw;
  } catch (const std::bad_alloc &) {
    what = "out of memory: use smaller mini-batches or micro-batches, or raise "
           "the limit of this process (ulimit -v)";
    code = 2;
  } catch (...) {
    code = 1;
  }
  for (const char *text : {"fatal: ", what, "\n"})
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0)
      break;
  _exit(code);
}

static int runGuarded(const dyna_program &program, int argc,
                      const char *const *argv) {
  std::string path = argc > 0 ? argv[0] : "train";
  std::string name = path.substr(path.rfind('/') + 1);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  ignoreWriteSignals();
  catchSaveSignal();
  prepareForLimits();
  TrainOptions options;
  if (Status status = parseCommandLine(arguments, options); !status.isOk())
    return exitCode(status, name.c_str());
  if (options.help) {
    print(helpText(name));
    return exitCode(Status::ok(), name.c_str());
  }
  if (options.version) {
    print(name + ", compiled by Dyna " DYNA_VERSION "\n");
    return exitCode(Status::ok(), name.c_str());
  }
  if (Status status = checkExclusions(options); !status.isOk())
    return exitCode(status, name.c_str());
  StatusOr<Model> model = openProgram(program);
  if (!model.isOk())
    return exitCode(model.status(), name.c_str());
  if (!options.describe.empty()) {
    describe(program, *model, options);
    return exitCode(Status::ok(), name.c_str());
  }
  Ending ending;
  int code =
      exitCode(!options.profile.empty()
                   ? profile(program, *model, options, ending.stoppedBy)
               : options.resume.empty()
                   ? startRun(program, *model, options, ending)
                   : resumeRun(program, *model, arguments, options, ending),
               name.c_str());
  // A program that a signal ended has this exit code in shells, too.
  if (code == 0 && ending.stoppedBy)
    return 128 + ending.stoppedBy;
  return code == 0 && ending.isReleased ? releasedCode : code;
}

int runProgram(const dyna_program &program, int argc, const char *const *argv) {
  std::set_terminate(onTerminate);
  int code = 1;
  Status status = guarded([&] {
    code = runGuarded(program, argc, argv);
    return Status::ok();
  });
  return status.isOk() ? code : exitCode(status, argc > 0 ? argv[0] : "train");
}

} // namespace dyna
