//===- Profile.cpp - Measures the times of layer functions ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/Profile.h"

#include "runtime/abi/Random.h"
#include "runtime/base/error/Guard.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/train/files/OutputPaths.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/LearningRate.h"
#include "runtime/train/flags/NamedStrategies.h"
#include "runtime/train/open/Initialize.h"
#include "runtime/train/open/OpenSession.h"
#include "runtime/train/profile/MeasureLinks.h"
#include "runtime/train/profile/ProfileFile.h"
#include "runtime/train/session/Devices.h"
#include "runtime/train/session/Session.h"
#include "runtime/train/session/Signals.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

namespace dyna {
namespace {

using Clock = std::chrono::steady_clock;
using plan::Instruction;

/// Further passes hardly improve the result.
constexpr int mostPasses = 9;
/// Micro-batches off the grid, and samples in slices off the grid.
constexpr int heldOutShapes = 24, heldOutSliced = 8;
/// Largest share of the time for the first pass over the grid. The others share
/// the rest.
constexpr double firstShare = 0.8;

/// One run of a shape: the directions whose times count. A function is the same
/// in all passes.
struct Pass {
  plan::Recompute recompute;
  bool splitBackward;
  std::vector<cost::Direction> directions;
};
const Pass allPasses[] = {
    {plan::RECOMPUTE_NONE, false, {cost::FORWARD, cost::BACKWARD}},
    {plan::RECOMPUTE_SELECTIVE,
     true,
     {cost::FORWARD, cost::RECOMPUTE_SELECTIVE, cost::BACKWARD_INPUT,
      cost::BACKWARD_WEIGHT}},
    {plan::RECOMPUTE_FULL,
     false,
     {cost::FORWARD, cost::RECOMPUTE_FULL, cost::BACKWARD}},
};

class Profiler {
public:
  Profiler(Session &session, double seconds)
      : session_(session), ranks_(*session.ranks), seconds_(seconds),
        begin_(Clock::now()), scalars_(scalarsOf(session.options)) {}

  /// Runs the profile. Returns false if a signal ended it.
  StatusOr<bool> run();
  const Profiled &profiled() const { return profiled_; }

private:
  static StepScalars scalarsOf(const TrainOptions &options) {
    StepScalars scalars;
    scalars.optimizer = optimizerAt(options, 0);
    scalars.optimizer.learning_rate = 0;
    return scalars;
  }
  double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  /// Returns true on all processes if the time is over or a signal arrived.
  StatusOr<bool> isOver(double share);
  StatusOr<plan::Plan> planShape(const ProfileShape &shape,
                                 const MiniBatch &batch,
                                 const Pass &pass) const;
  StatusOr<int64_t> longestSliced(int64_t longest);
  Status runShape(const ProfileShape &shape, Measurements &into);
  Status runUpdate();
  Status timeAlgorithms(const std::vector<ProfileShape> &shapes);
  Status runStep(const VerifiedStep &step, const MiniBatch &batch,
                 const std::vector<cost::Direction> &directions,
                 Measurements &into);
  void take(int rank, const plan::Plan &plan, const TraceRecorder &trace,
            const MiniBatch &batch,
            const std::vector<cost::Direction> &directions, Measurements &into);
  Load callLoadOf(const plan::Plan &plan, const Instruction &i,
                  const plan::LayerKind &kind, const MiniBatch &batch) const;
  MiniBatch makeBatch(const ProfileShape &shape) const;
  void showProgress(const std::string &what);

  Session &session_;
  RankTeam &ranks_;
  const double seconds_;
  const Clock::time_point begin_;
  const StepScalars scalars_;
  Profiled profiled_;
  double shown_ = 0;
  bool isStopped_ = false;
};

/// Makes a mini-batch in which every replica gets one such micro-batch.
MiniBatch Profiler::makeBatch(const ProfileShape &shape) const {
  MiniBatch batch;
  const int64_t vocabulary = session_.model->manifest().facts().vocabulary();
  for (int replica = 0; replica < session_.home().graph->replicas(); ++replica)
    for (int64_t length : shape.lengths) {
      Sample sample;
      sample.id = static_cast<int64_t>(batch.samples.size());
      for (int64_t i = 0; i < length; ++i) {
        // Draw ids at random: ids in order would read neighbouring rows, which
        // caches favour.
        uint64_t draw = dyna_mix64(batch.tokens + i);
        auto token = static_cast<int32_t>(draw % vocabulary);
        sample.tokens.push_back(token);
        sample.targets.push_back(
            i < length - shape.targetsOf(length) ? ignoreTarget : token);
      }
      batch.tokens += length;
      batch.targets += shape.targetsOf(length);
      batch.samples.push_back(std::move(sample));
    }
  return batch;
}

Load Profiler::callLoadOf(const plan::Plan &plan, const Instruction &i,
                          const plan::LayerKind &kind,
                          const MiniBatch &batch) const {
  if (!isPerMicroBatch(i.op))
    return Load();
  const plan::MicroBatch &microBatch = plan.microBatches[i.microBatch];
  const Load load = loadOf(microBatch);
  const bool attends = kind.attention_flops_per_pair() > 0;
  if (load.context > 0)
    return sliceLoad(load.queries, load.context);
  int64_t targets = 0;
  if (kind.flops_per_target() > 0)
    for (const plan::Segment &segment : microBatch.segments) {
      const auto first =
          batch.samples[segment.sample].targets.begin() + segment.begin;
      targets +=
          std::count_if(first, first + segment.length,
                        [](int32_t target) { return target != ignoreTarget; });
    }
  return callLoad(load.queries, attends ? visiblePairs(kind, load) : 0,
                  targets);
}

/// Returns true if the cost of a call in a sliced sample depends on earlier tokens. First
/// slices have none. They are no whole samples either, because they write to stores of
/// keys.
bool countsInSlices(const plan::Plan &plan, const Instruction &i,
                    const plan::LayerKind &kind) {
  return kind.attention_flops_per_pair() > 0 && isPerMicroBatch(i.op) &&
         loadOf(plan.microBatches[i.microBatch]).context > 0;
}

/// Adds the times of a trace. Its slices are those of the program's
/// instructions, in order.
void Profiler::take(int rank, const plan::Plan &plan,
                    const TraceRecorder &trace, const MiniBatch &batch,
                    const std::vector<cost::Direction> &directions,
                    Measurements &into) {
  const Strategy &strategy = session_.home().graph->strategy();
  const auto &instructions = plan.ranks[rank].instructions;
  const bool isSliced = std::any_of(plan.microBatches.begin(),
                                    plan.microBatches.end(), continuesSample);
  size_t next = 0;
  double before = 0; // when the last one ended
  for (const TraceSlice &slice : trace.slices()) {
    if (slice.isInner || next == instructions.size())
      continue;
    if (next > 0)
      profiled_.between.push_back(slice.beginSeconds - before);
    before = slice.endSeconds;
    const Instruction &i = instructions[next++];
    cost::Direction direction = directionOf(roleOf(i));
    if (std::find(directions.begin(), directions.end(), direction) ==
        directions.end())
      continue;
    const plan::LayerKind &kind = session_.model->kind(i.layer);
    if (isSliced && !countsInSlices(plan, i, kind))
      continue;
    const bool waits = strategy.tp > 1 && !session_.home()
                                               .graph->replicaView(rank)
                                               .exchanges(i.layer, roleOf(i))
                                               .empty();
    into.add({kind.name(), strategy.tp, strategy.sp, direction},
             callLoadOf(plan, i, kind, batch),
             {slice.seconds(), slice.coreSeconds}, waits);
    const double seconds =
        waits || slice.coreSeconds < 0 ? slice.seconds() : slice.coreSeconds;
    if (seconds > 0)
      profiled_.flopRate = std::max(profiled_.flopRate, slice.flops / seconds);
  }
}

Status Profiler::runStep(const VerifiedStep &step, const MiniBatch &batch,
                         const std::vector<cost::Direction> &directions,
                         Measurements &into) {
  for (auto &trace : session_.traces)
    trace->clear();
  StepResult result;
  const double begin = elapsed();
  DYNA_RETURN_IF_ERROR(ranks_.run(step, batch, scalars_, result));
  const double took = elapsed() - begin;
  // Take the rank with the longest time in instructions; the rest of the step
  // is around them.
  double inside = 0;
  for (const auto &trace : session_.traces)
    if (const auto &slices = trace->slices(); !slices.empty()) {
      double end = 0;
      for (const TraceSlice &slice : slices)
        end = std::max(end, slice.endSeconds);
      inside = std::max(inside, end - slices.front().beginSeconds);
    }
  profiled_.around.push_back(std::max(0.0, took - inside));
  for (size_t local = 0; local < session_.traces.size(); ++local)
    take(ranks_.firstRank() + static_cast<int>(local), step.homePlan(),
         *session_.traces[local], batch, directions, into);
  return Status::ok();
}

StatusOr<plan::Plan> Profiler::planShape(const ProfileShape &shape,
                                         const MiniBatch &batch,
                                         const Pass &pass) const {
  PlanOptions options = session_.home().options;
  options.slices = {};
  options.recompute = {pass.recompute};
  options.splitBackward = pass.splitBackward;
  options.update = false;
  // Batching by size alone keeps the micro-batch in one piece.
  options.batching = Batching::Tokens;
  options.maxTokensPerMicroBatch = shape.tokens();
  options.longestSample = 0;
  options.slices.lengths = shape.slices;
  // Run all slices forward, then all backward.
  if (!shape.slices.empty())
    options.schedule = Schedule::GPipe;
  return session_.home().planner->training(batch.lengths(), batch.targets,
                                           options);
}

Status Profiler::runShape(const ProfileShape &shape, Measurements &into) {
  MiniBatch batch = makeBatch(shape);
  for (const Pass &pass : allPasses) {
    // For shapes with few targets only the loss matters, which the first pass
    // measures.
    if (shape.targetShare < 100 && pass.recompute != plan::RECOMPUTE_NONE)
      continue;
    StatusOr<plan::Plan> plan = planShape(shape, batch, pass);
    // Random slices may need more memory than the slices that longestSliced
    // tried.
    if (!shape.slices.empty() &&
        plan.status().code() == StatusCode::ResourceExhausted)
      return Status::ok();
    DYNA_RETURN_IF_ERROR(plan.status());
    DYNA_ASSIGN_OR_RETURN(
        VerifiedStep step,
        session_.planner->verify(stepOf(*std::move(plan)), batch.lengths(),
                                 batch.targets, /*mustUpdate=*/false));
    DYNA_RETURN_IF_ERROR(runStep(step, batch, pass.directions, into));
  }
  return Status::ok();
}

/// Returns the tokens of the longest sample whose slices fit the memory; 0: samples
/// cannot be sliced. Stores of keys come on top of what a whole sample takes, and small
/// slices take whole rows of memory.
StatusOr<int64_t> Profiler::longestSliced(int64_t longest) {
  if (!checkSliceable(*session_.model, Batching::Tokens).isOk())
    return 0;
  for (; longest >= shortestSliced; longest = longest * 3 / 4) {
    const ProfileShape shape = contextGrid(longest, 0).back();
    const MiniBatch batch = makeBatch(shape);
    Status status;
    for (const Pass &pass : allPasses)
      if (status.isOk())
        status = planShape(shape, batch, pass).status();
    if (status.isOk())
      return longest;
    if (status.code() != StatusCode::ResourceExhausted)
      return status;
    profiled_.unfitSlices =
        formatText("slices of samples of %d tokens are not measured: %s",
                   longest, status.message());
  }
  return 0;
}

/// Gradients have piled up, which this clears.
Status Profiler::runUpdate() {
  DYNA_ASSIGN_OR_RETURN(VerifiedStep step, session_.planner->planUpdate());
  return runStep(step, MiniBatch(), {cost::UPDATE, cost::GRAD_NORM},
                 profiled_.grid);
}

StatusOr<bool> Profiler::isOver(double share) {
  DYNA_ASSIGN_OR_RETURN(auto marks, ranks_.any({stopSignal() != 0,
                                                elapsed() > share * seconds_}));
  isStopped_ |= marks[0];
  return marks[0] || marks[1];
}

void Profiler::showProgress(const std::string &what) {
  constexpr double secondsBetweenLines = 10;
  if (session_.options.noProgress || !session_.writesFiles() ||
      elapsed() < shown_)
    return;
  sayLine(formatText("profile: %s, %.0f s of at most about %.0f s", what,
                     elapsed(), seconds_));
  shown_ = elapsed() + secondsBetweenLines;
}

/// Times algorithms, with --algorithms: functions then run as in a run that has
/// had all these sizes.
Status Profiler::timeAlgorithms(const std::vector<ProfileShape> &shapes) {
  if (session_.options.algorithms.empty())
    return Status::ok();
  Measurements warmUp;
  for (const ProfileShape &shape : shapes)
    DYNA_RETURN_IF_ERROR(runShape(shape, warmUp));
  for (Device *device : session_.devices) {
    const auto deadline =
        Clock::now() + std::chrono::seconds(session_.options.timeout);
    DYNA_ASSIGN_OR_RETURN(std::string note,
                          dyna_device_kind.timeAlgorithms(*device, deadline));
    if (!note.empty() && !session_.options.noProgress)
      sayLine("profile: " + note);
  }
  return Status::ok();
}

/// Puts shapes behind those with as many tokens.
void addShapes(std::vector<ProfileShape> added,
               std::vector<ProfileShape> &shapes) {
  shapes.insert(shapes.end(), added.begin(), added.end());
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const ProfileShape &a, const ProfileShape &b) {
                     return a.tokens() < b.tokens();
                   });
}

StatusOr<bool> Profiler::run() {
  const int64_t most = session_.home().options.maxTokensPerMicroBatch;
  const int64_t positions = session_.model->manifest().facts().positions();
  std::vector<ProfileShape> shapes = profileGrid(most, positions);
  DYNA_ASSIGN_OR_RETURN(
      const int64_t sliced,
      longestSliced(positions > 0 ? std::min(most, positions) : most));
  addShapes(contextGrid(sliced, 0), shapes);
  // Warm up: libraries generate code for shapes, pages are touched, clocks
  // rise.
  Measurements warmUp;
  for (const ProfileShape &shape : shapes)
    if (shape.tokens() == std::min(shortestProfiled, most))
      DYNA_RETURN_IF_ERROR(runShape(shape, warmUp));
  DYNA_RETURN_IF_ERROR(timeAlgorithms(shapes));
  int updates = 0;
  auto run = [&](const ProfileShape &shape, int pass) -> Status {
    showProgress(formatText("pass %d, micro-batches of %d tokens", pass + 1,
                            shape.tokens()));
    if (updates++ % 8 == 0)
      DYNA_RETURN_IF_ERROR(runUpdate());
    for (int i = repeatsOf(shape); i > 0; --i)
      DYNA_RETURN_IF_ERROR(runShape(shape, shape.isHeldOut ? profiled_.heldOut
                                                           : profiled_.grid));
    return Status::ok();
  };
  // Measure the whole grid first, in case that time ends.
  DYNA_ASSIGN_OR_RETURN(
      profiled_.passes,
      runProfile(shapes, 0, 1, [&] { return isOver(firstShare); }, run));
  // Do not measure larger shapes than the grid reached. Then alternate between
  // both kinds of shapes, so that the machine is in the same state for both.
  const bool isWhole = profiled_.passes.passes > 0;
  const int64_t reached =
      isWhole ? most : shapes[profiled_.passes.reached - 1].tokens();
  std::vector<ProfileShape> more =
      randomShapes(heldOutShapes, reached, positions, 1);
  for (ProfileShape &shape :
       randomSlices(heldOutSliced, std::min(reached, sliced), 0, 1))
    more.push_back(std::move(shape));
  if (isWhole)
    more.insert(more.end(), shapes.begin(), shapes.end());
  if (!isStopped_) {
    DYNA_ASSIGN_OR_RETURN(
        ProfilePasses joint,
        runProfile(more, 1, mostPasses - 1, [&] { return isOver(1); }, run));
    if (isWhole)
      profiled_.passes.passes += joint.passes;
  }
  return !isStopped_;
}

/// Returns about as many layers of each kind as a stage has.
int layersOfStage(const Model &model, int stages) {
  std::map<int, int> counts;
  int most = 0;
  for (int layer = 0; layer < model.layers(); ++layer)
    most = std::max(most, ++counts[model.manifest().layers(layer).kind()]);
  return std::max(1, (most + stages - 1) / stages);
}

/// Returns the strategy of a profile. Stages become replicas, so that each rank
/// has all layers. Sets `stages` to the number of stages of --strategy.
StatusOr<Strategy> profiledStrategy(const Model &model,
                                    const TrainOptions &options, int &stages) {
  Strategy strategy;
  if (!options.strategy.empty()) {
    DYNA_ASSIGN_OR_RETURN(auto known, namedTexts(model, options.strategies));
    DYNA_ASSIGN_OR_RETURN(strategy, findStrategy(options.strategy, known));
  }
  stages = strategy.pp;
  Strategy profiled;
  profiled.dp = strategy.dp * strategy.pp;
  profiled.tp = strategy.tp;
  profiled.sp = strategy.sp;
  return profiled;
}

Status profileSession(Session &session, const CostsBefore &before,
                      int &stoppedBy) {
  catchStopSignals();
  DYNA_RETURN_IF_ERROR(initializeParameters(
      *session.ranks, static_cast<uint64_t>(session.options.seed),
      session.device().team()));
  DYNA_RETURN_IF_ERROR(castParameters(*session.ranks));
  Profiler profiler(session,
                    static_cast<double>(session.options.profileSeconds));
  DYNA_ASSIGN_OR_RETURN(bool isWhole, profiler.run());
  if (!isWhole) {
    stoppedBy = stopSignal() != 0 ? stopSignal() : SIGTERM;
    sayLine("stopped by a signal: no costs were written");
    return Status::ok();
  }
  DYNA_ASSIGN_OR_RETURN(auto hosts, findHosts(*session.ranks));
  DYNA_ASSIGN_OR_RETURN(
      MeasuredLinks links,
      measureLinks(*session.ranks, hosts, before.table.cluster()));
  return session.writesFiles()
             ? writeProfile(session, profiler.profiled(), links, before)
             : Status::ok();
}

} // namespace

StatusOr<Model> thinModel(const Model &model, int most) {
  const plan::Manifest &whole = model.manifest();
  plan::Manifest thin = whole;
  thin.clear_layers();
  thin.clear_parameters();
  std::map<int, int> layersOf, parameterOf;
  for (int l = 0; l < whole.layers_size(); ++l) {
    const plan::Layer &layer = whole.layers(l);
    bool isEnd = l == 0 || l + 1 == whole.layers_size();
    if (++layersOf[layer.kind()] > most && !isEnd)
      continue;
    plan::Layer &kept = *thin.add_layers();
    kept = layer;
    kept.clear_producers();
    if (thin.layers_size() > 1)
      kept.add_producers(thin.layers_size() - 2);
    for (int &parameter : *kept.mutable_parameters()) {
      auto [place, isNew] =
          parameterOf.insert({parameter, thin.parameters_size()});
      if (isNew)
        *thin.add_parameters() = whole.parameters(parameter);
      parameter = place->second;
    }
  }
  thin.set_hash(manifestHash(thin));
  StatusOr<Model> made = Model::create(std::move(thin));
  return made.isOk() ? std::move(made) : Model::create(whole);
}

Status profile(const dyna_program &program, const Model &model,
               TrainOptions options, int &stoppedBy) {
  // Set options that openSession needs; no sample is read.
  options.data = {"synthetic:equal=64:documents=1"};
  options.planAhead = 0;
  options.splitBackward = true; // this plan needs most memory
  options.slices = "auto";      // room for stores of keys, if layers have them
  options.recompute = "none";
  options.inFlight = 1;
  DYNA_RETURN_IF_ERROR(resolveOptions(options));
  DYNA_RETURN_IF_ERROR(checkOutputPaths(options));
  int stages = 1;
  DYNA_ASSIGN_OR_RETURN(Strategy strategy,
                        profiledStrategy(model, options, stages));
  options.strategy = strategy.ranks() > 1 ? describeStrategy(strategy) : "";
  DYNA_ASSIGN_OR_RETURN(CostsBefore before,
                        readCostsBefore(options.profile, model));
  DYNA_ASSIGN_OR_RETURN(Model thin,
                        thinModel(model, layersOfStage(model, stages)));
  Session session;
  DYNA_RETURN_IF_ERROR(
      openSession(program, thin, options, true, nullptr, session));
  Status status =
      guarded([&] { return profileSession(session, before, stoppedBy); });
  if (!status.isOk())
    session.ranks->abort(status);
  return status;
}

} // namespace dyna
