//===- Executor.cpp - Interprets one rank's instructions ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/run/Executor.h"

#include "runtime/base/text/Text.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/executor/run/Run.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>
#include <set>

namespace dyna {

using plan::Instruction;

StatusOr<std::unique_ptr<Executor>>
Executor::create(const std::vector<GraphUse> &graphs,
                 const dyna_variant &variant, Device &device,
                 const ExecutorOptions &options) {
  std::unique_ptr<Executor> executor(new Executor(variant, device, options));
  DYNA_RETURN_IF_ERROR(executor->initialize(graphs));
  return executor;
}

/// Adds the number of the step to a failure of its work.
static Status inStep(const StepScalars &scalars, const Status &status) {
  return status.isOk()
             ? status
             : Status(status.code(), formatText("step %d: %s", scalars.step + 1,
                                                status.message()));
}

struct Executor::Launched {
  StepScalars scalars;
  StepResult result;
  Traffic before;
  std::deque<Run> runs;                  ///< by phase
  std::deque<StepResult> ofPhases;       ///< by phase
  std::optional<SwitchCarrier> switches; ///< unless the run has one graph
  size_t firstSlice = 0, endSlice = 0;   ///< of the trace
};

Executor::Executor(const dyna_variant &variant, Device &device,
                   const ExecutorOptions &options)
    : variant_(variant), options_(options),
      machine_(device, options.transport, options.patience) {}

Executor::~Executor() {
  if (options_.transport)
    options_.transport->noteTime(nullptr);
}

Status Executor::checkGraphs(const std::vector<GraphUse> &graphs,
                             bool mayHaveFewer) const {
  if (graphs.empty())
    return Status::internal("an executor needs a graph");
  // A single rank needs no transport, but may have one.
  bool needsWires = graphs.front().graph->ranks() > 1;
  if (needsWires && (!options_.transport || !options_.host))
    return Status::internal("several ranks need a transport");
  std::set<std::string> names;
  for (const GraphUse &use : graphs) {
    const ExecutableGraph &graph = *use.graph;
    const bool hasFewer = graph.ranks() < machine_.ranks() &&
                          graph.ranks() == graphs.front().graph->ranks();
    if (graph.ranks() != machine_.ranks() && !(mayHaveFewer && hasFewer))
      return Status::invalidArgument(
          formatText("strategy '%s' needs %d ranks, but there are %d",
                     graph.name(), graph.ranks(), machine_.ranks()));
    if (!names.insert(graph.name()).second)
      return Status::invalidArgument(
          formatText("strategy '%s' is given twice: a plan does not say which "
                     "of two equal graphs it was made for, so give it once",
                     graph.name()));
    if (&graph.model() != &graphs.front().graph->model())
      return Status::internal("graphs of several models");
  }
  return Status::ok();
}

std::vector<std::unique_ptr<GraphSeat>>
Executor::makeSeats(const std::vector<GraphUse> &graphs, int64_t begin) {
  std::vector<std::unique_ptr<GraphSeat>> seats;
  for (const GraphUse &use : graphs)
    seats.push_back(
        seats.empty() ? std::make_unique<GraphSeat>(*use.graph, use.persistent,
                                                    machine_, begin)
                      : std::make_unique<GraphSeat>(*use.graph, use.persistent,
                                                    machine_, *seats.front()));
  return seats;
}

Status Executor::connect(const std::vector<std::unique_ptr<GraphSeat>> &seats) {
  for (size_t number = 0; number < seats.size(); ++number) {
    const auto &seat = seats[number];
    if (groups_.size() <= number)
      groups_.emplace_back();
    DYNA_RETURN_IF_ERROR(seat->connect(groups_[number]));
    if (const std::vector<int> shards = shardsOf(*seat); shards.size() > 1)
      DYNA_RETURN_IF_ERROR(options_.host->addGroup(shards));
  }
  return Status::ok();
}

Status Executor::initialize(const std::vector<GraphUse> &graphs) {
  DYNA_RETURN_IF_ERROR(checkGraphs(graphs, options_.mayHaveFewer));
  activeRanks_ = graphs.front().graph->ranks();
  const Model &model = graphs.front().graph->model();
  modelHash_ = model.compiledHash();
  layers_ = model.layers();
  lossWeights_.clear();
  for (size_t loss = 0; loss < model.lossLayers().size(); ++loss)
    lossWeights_.push_back(model.lossWeight(static_cast<int>(loss)));
  if (machine_.rank() < activeRanks_)
    seats_ = makeSeats(graphs, /*begin=*/0);
  DYNA_RETURN_IF_ERROR(machine_.start(persistentBytes(), options_.dynamicBytes,
                                      options_.seed, options_.reservedBytes));
  if (hasPlace())
    DYNA_RETURN_IF_ERROR(seat().clearMasks());
  DYNA_RETURN_IF_ERROR(connect(seats_));
  if (options_.trace)
    clock_ =
        std::make_unique<DeviceClock>(machine_.device(), machine_.stream());
  if (options_.trace && options_.transport)
    options_.transport->noteTime(&spent_);
  if (options_.checkMemory)
    memoryCheck_ = std::make_unique<MemoryCheck>(machine_);
  return Status::ok();
}

int64_t Executor::persistentBytes() const {
  return hasPlace() ? seat().layout().bytes : 0;
}

const MemoryReport &Executor::memoryReport() const {
  static const MemoryReport none;
  return memoryCheck_ ? memoryCheck_->report() : none;
}

Status Executor::sumOverRanks(std::vector<double> &values) {
  return machine_.ranks() > 1 ? options_.host->sum(values) : Status::ok();
}

//===----------------------------------------------------------------------===//
// Running a plan
//===----------------------------------------------------------------------===//

static int64_t sumOf(const std::vector<int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
}

static int64_t mostOf(const std::vector<int64_t> &bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

std::vector<int> Executor::shardsOf(const GraphSeat &seat) const {
  return machine_.ranks() > 1
             ? seat.graph().compiledGroup(machine_.rank(), DYNA_GROUP_TP)
             : std::vector<int>();
}

StatusOr<GraphSeat *> Executor::seatOf(const plan::Plan &plan) {
  std::string known;
  for (const auto &seat : seats_) {
    if (seat->graph().name() == plan.graph)
      return seat.get();
    known += (known.empty() ? "'" : ", '") + seat->graph().name() + "'";
  }
  return Status::invalidArgument("the plan was made for strategy '" +
                                 plan.graph + "', but this is " + known);
}

/// Checks that a rank's program needs no more of the parameters than its seat
/// has.
static Status checkPersistent(const GraphSeat &seat,
                              const plan::RankProgram &program) {
  for (const Instruction &i : program.instructions)
    if (!includes(seat.persistent(), neededFor(i.op)))
      return Status::invalidArgument(formatText(
          "the plan has %s, which needs %s, but of '%s' there is no more than "
          "%s: run it on a graph that has them, or a plan that evaluates here",
          describeInstruction(i), describePersistent(neededFor(i.op)),
          seat.graph().name(), describePersistent(seat.persistent())));
  return Status::ok();
}

Status Executor::check(const VerifiedStep &step,
                       const MiniBatch &miniBatch) const {
  if (!step.covers(machine_.rank()))
    return Status::invalidArgument(
        formatText("the plan was not proven for rank %d, which is to run it",
                   machine_.rank()));
  if (miniBatch.lengths() != step.lengths())
    return Status::invalidArgument(formatText(
        "the plan was proven for %d samples, of %d tokens, but not for the %d "
        "samples, of %d tokens, that it is to run on",
        step.lengths().size(), sumOf(step.lengths()), miniBatch.samples.size(),
        sumOf(miniBatch.lengths())));
  if (int64_t bytes = stepBytes(step.blocks(machine_.rank()));
      bytes > machine_.dynamicBytes())
    return Status::resourceExhausted(
        formatText("the plan needs %s, but this rank took %s",
                   formatBytes(bytes), formatBytes(machine_.dynamicBytes())));
  return Status::ok();
}

Status Executor::checkPhase(const GraphSeat &seat, const plan::Plan &plan,
                            int64_t targets) const {
  // Graphs of different models may have the same name.
  uint64_t model = seat.graph().model().hash();
  if (plan.manifestHash != model)
    return Status::invalidArgument(
        formatText("the plan was made for model %016x, but this is %016x",
                   plan.manifestHash, model));
  if (plan.microBatchCount() > 0 && plan.targetTokens != targets)
    return Status::invalidArgument(
        formatText("the plan counts %d targets, but the mini-batch has %d",
                   plan.targetTokens, targets));
  DYNA_RETURN_IF_ERROR(checkPersistent(seat, plan.ranks[machine_.rank()]));
  if (plan.microBatchCount() > 0 && plan.targetTokens <= 0)
    return Status::invalidArgument("the mini-batch has no target in the loss");
  return Status::ok();
}

Status Executor::runPhase(Run &run) {
  const StepScalars &scalars = run.scalars;
  StepResult &result = run.result;
  dyna_context &context = machine_.context();
  context.group_count = static_cast<int32_t>(run.seat.groups().size());
  context.groups = run.seat.groups().data();
  context.step = scalars.step;
  context.inverse_targets = run.inverseTargets();
  context.optimizer = scalars.optimizer;
  context.optimizer.gradient_scale = machine_.gradientScale();
  const double waited = options_.timesCoreWaits ? coreWaitSeconds() : 0;
  Status status = runProgram(run);
  if (options_.timesCoreWaits)
    result.coreWaitSeconds = coreWaitSeconds() - waited;
  return status;
}

Status Executor::run(const VerifiedStep &step, const MiniBatch &miniBatch,
                     const StepScalars &scalars, StepResult &result) {
  if (!launched_.empty())
    return Status::internal("a step is run while another is in flight");
  DYNA_RETURN_IF_ERROR(launch(step, miniBatch, scalars));
  return finish(result);
}

Status Executor::checkRoom() const {
  return machine_.canOpenStep() ? Status::ok()
                                : Status::internal(formatText(
                                      "%d steps are in flight: read one first",
                                      machine_.stepsInFlight()));
}

Status Executor::finish(StepResult &result) {
  if (launched_.empty())
    return Status::internal("there is no step to be read");
  const std::unique_ptr<Launched> step = std::move(launched_.front());
  launched_.pop_front();
  // A rank that has a place in no graph launched nothing, so it reads nothing.
  Status status = step->runs.empty() ? Status::ok() : readStep(step->runs);
  if (status.isOk())
    addPhases(*step);
  if (status.isOk())
    status = shareResults(step->result);
  drawPhases(*step);
  status = endStep(status, step->before, step->result);
  result = std::move(step->result);
  return status;
}

Status Executor::endStep(const Status &status, const Traffic &before,
                         StepResult &result) {
  result.traffic = machine_.traffic();
  result.traffic.add(before, -1);
  if (!status.isOk() && options_.transport)
    options_.transport->abort(status);
  return status;
}

/// Adds the result of a phase to that of its step.
static void addPhase(StepResult &step, const StepResult &phase) {
  step.lossParts.insert(step.lossParts.end(), phase.lossParts.begin(),
                        phase.lossParts.end());
  step.gradientNorm = phase.gradientNorm; // home is the last phase
  step.layerNorms = phase.layerNorms;
  step.flops += phase.flops;
  step.formulaFlops += phase.formulaFlops;
  step.keptBytes = std::max(step.keptBytes, phase.keptBytes);
  step.storeBytes = std::max(step.storeBytes, phase.storeBytes);
  step.liveBytes = std::max(step.liveBytes, phase.liveBytes);
  step.busySeconds += phase.busySeconds;
  step.switchSeconds += phase.switchSeconds;
  step.coreWaitSeconds += phase.coreWaitSeconds;
  step.layerSeconds.resize(
      std::max(step.layerSeconds.size(), phase.layerSeconds.size()));
  for (size_t layer = 0; layer < phase.layerSeconds.size(); ++layer)
    step.layerSeconds[layer] += phase.layerSeconds[layer];
}

void Executor::addPhases(Launched &step) {
  for (const StepResult &phase : step.ofPhases)
    addPhase(step.result, phase);
  if (!step.switches)
    return;
  step.result.switches = step.switches->sent();
  for (const SwitchedBytes &bytes : step.result.switches)
    step.result.switchBytes += bytes.values + bytes.gradients;
}

StatusOr<std::vector<SwitchCarrier::Phase>>
Executor::openPhases(const VerifiedStep &step, int64_t targets) {
  const int rank = machine_.rank();
  std::vector<SwitchCarrier::Phase> phases;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const plan::Plan &plan = step.phases()[k].plan;
    SwitchCarrier::Phase &phase = phases.emplace_back();
    phase.switches = step.phases()[k].switches;
    DYNA_ASSIGN_OR_RETURN(phase.seat, seatOf(plan));
    DYNA_RETURN_IF_ERROR(checkPhase(*phase.seat, plan, targets));
    const bool isHome = k + 1 == step.phaseCount();
    if (phase.seat->moves() == isHome)
      return Status::invalidArgument(formatText(
          "strategy '%s' %s: the last phase of a step, and no other, is home's",
          plan.graph, isHome ? "is not home" : "is home"));
    if (k > 0)
      phase.before = phases[k - 1].seat;
    if (isHome)
      break;
    const plan::PhasePlaces &places = plan.ranks[rank].places;
    const int64_t region = machine_.dynamicStart();
    phase.seat->moveTo(region + places.values, region + places.gradients);
    phase.valueTransit = region + places.valueTransit;
    phase.gradientTransit = region + places.gradientTransit;
    phase.addsLate =
        k + 2 == step.phaseCount() && addsLate(step.homePlan(), k, rank);
  }
  return phases;
}

int64_t Executor::countLosses(const VerifiedStep &step) const {
  int64_t microBatches = 0;
  for (const VerifiedStep::Phase &phase : step.phases())
    microBatches += phase.plan.microBatchCount();
  return microBatches * static_cast<int64_t>(lossWeights_.size());
}

Status Executor::launchWithoutPlace(const VerifiedStep &step,
                                    const StepScalars &scalars) {
  auto launched = std::make_unique<Launched>();
  launched->scalars = scalars;
  launched->before = machine_.traffic();
  // Losses are sums over all ranks, to which this rank adds zeros.
  launched->ofPhases.emplace_back().lossParts.assign(countLosses(step), 0);
  launched_.push_back(std::move(launched));
  return Status::ok();
}

Status Executor::launch(const VerifiedStep &verified,
                        const MiniBatch &miniBatch,
                        const StepScalars &scalars) {
  if (!hasPlace())
    return launchWithoutPlace(verified, scalars);
  DYNA_RETURN_IF_ERROR(checkRoom());
  DYNA_RETURN_IF_ERROR(check(verified, miniBatch));
  DYNA_ASSIGN_OR_RETURN(auto phases,
                        openPhases(verified, countTargets(miniBatch)));
  const std::vector<StepBlock> &blocks = verified.blocks(machine_.rank());
  GraphSeat &home = *phases.back().seat;
  auto step = std::make_unique<Launched>();
  step->scalars = scalars;
  step->before = machine_.traffic();
  step->result.dynamicBytes = stepBytes(blocks);
  step->firstSlice = options_.trace ? options_.trace->size() : 0;
  if (seats_.size() > 1)
    step->switches.emplace(machine_, home, phases);
  int begin = 0;
  isDropping_ = false;
  updatingPlan_ = &verified.homePlan();
  auto giveAll = [&]() -> Status {
    DYNA_RETURN_IF_ERROR(openStep(home, countLosses(verified), scalars));
    int64_t firstLoss = 0;
    for (int k = 0; k < verified.phaseCount(); ++k) {
      Run &run = step->runs.emplace_back(
          machine_, *phases[k].seat, variant_, verified.phases()[k], miniBatch,
          step->scalars, step->ofPhases.emplace_back());
      run.switches = step->switches ? &*step->switches : nullptr;
      run.blocksOfStep = &blocks;
      run.phase = k;
      run.begin = begin;
      run.body = headOf(run.program, k);
      begin += run.program.count();
      run.firstLoss = firstLoss;
      firstLoss += run.lossCount();
      DYNA_RETURN_IF_ERROR(runPhase(run));
    }
    step->result.isDropped = isDropping_;
    return inStep(scalars, machine_.closeStep());
  };
  Status status = giveAll();
  step->endSlice = options_.trace ? options_.trace->size() : 0;
  if (!status.isOk()) {
    drawPhases(*step);
    return endStep(status, step->before, step->result);
  }
  launched_.push_back(std::move(step));
  return Status::ok();
}

void Executor::drawPhases(const Launched &step) {
  if (options_.trace && step.switches)
    options_.trace->addPhases(step.firstSlice, step.endSlice);
}

static int64_t mostInStores(const ProgramBlocks &blocks) {
  if (blocks.bundles().empty())
    return 0;
  std::vector<int64_t> sums = blocks.liveBytes(BlockKind::Keys);
  const std::vector<int64_t> gradients =
      blocks.liveBytes(BlockKind::KeyGradients);
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += gradients[i];
  return mostOf(sums);
}

double Executor::clockSeconds() const {
  using Clock = std::chrono::steady_clock;
  return options_.clock
             ? options_.clock()
             : std::chrono::duration<double>(Clock::now().time_since_epoch())
                   .count();
}

Status Executor::runProgram(Run &run) {
  if (memoryCheck_)
    DYNA_RETURN_IF_ERROR(memoryCheck_->begin(run));
  StepResult &result = run.result;
  result.layerSeconds.assign(layers_, 0);
  result.keptBytes = mostOf(run.blocks.liveBytes(BlockKind::Kept));
  result.storeBytes = mostInStores(run.blocks);
  std::vector<int64_t> live = run.blocks.liveBytes();
  result.liveBytes = mostOf(live);
  for (run.index = 0; run.index < run.program.count(); ++run.index) {
    if (run.index == run.body)
      DYNA_RETURN_IF_ERROR(openBody(run));
    DYNA_RETURN_IF_ERROR(beginItem(run));
    DYNA_RETURN_IF_ERROR(runNext(run, live[run.index]));
    endItem(run);
  }
  endedTurns_ += run.turns;
  if (run.hasNorm && !run.isScaled)
    DYNA_RETURN_IF_ERROR(clipGradient(run));
  return Status::ok();
}

Status Executor::beginItem(Run &run) {
  if (run.nextItem == run.items.size() ||
      run.items[run.nextItem].first != run.index)
    return Status::ok();
  if (!options_.turns || !options_.transport)
    return Status::invalidArgument(
        "ranks that share a device have to be threads of one process");
  return turnsOf(run).wait(endedTurns_ + run.items[run.nextItem].turn,
                           *options_.transport);
}

void Executor::endItem(Run &run) {
  if (run.nextItem == run.items.size() ||
      run.items[run.nextItem].last != run.index)
    return;
  ++run.nextItem;
  turnsOf(run).end();
}

DeviceTurns &Executor::turnsOf(const Run &run) const {
  const int rank = machine_.rank();
  return (*options_.turns)[std::min(rank, run.seat.graph().twinOf(rank))];
}

Status Executor::runNext(Run &run, int64_t liveBytes) {
  StepResult &result = run.result;
  const Instruction &i = run.program.instructions[run.index];
  DYNA_RETURN_IF_ERROR(lookForStop(run, i));
  if (leavesOut(i))
    return Status::ok();
  const Moment before = options_.trace ? now() : Moment();
  machine_.context().matrix_flops = 0;
  spent_.clear();
  const bool isCall = roleOf(i) >= 0;
  const bool isSwitch = exchangeOf(i.op).isSwitch();
  const double begin = isCall || isSwitch ? clockSeconds() : 0;
  DYNA_RETURN_IF_ERROR(runInstruction(run));
  const double passed = isCall || isSwitch ? clockSeconds() - begin : 0;
  (isCall ? result.busySeconds : result.switchSeconds) += passed;
  if (isCall && isPerMicroBatch(i.op))
    result.layerSeconds[i.layer] += passed;
  result.flops += static_cast<double>(machine_.context().matrix_flops);
  result.formulaFlops += formulaFlops(run, i);
  if (options_.trace)
    DYNA_RETURN_IF_ERROR(trace(run, i, before, liveBytes));
  // Started exchanges progress between instructions too, not only in kernels
  // and waits.
  return options_.transport ? options_.transport->progress() : Status::ok();
}

Status Executor::openBody(Run &run) {
  // The memory may have any contents before.
  for (const StepBlock &block : *run.blocksOfStep)
    if (block.phase == run.phase && block.kind == StepBlockKind::Gradients)
      DYNA_RETURN_IF_ERROR(run.seat.clearGradients());
  return memoryCheck_ ? memoryCheck_->openBody(run) : Status::ok();
}

Status Executor::openStep(const GraphSeat &seat, int64_t losses,
                          const StepScalars &scalars) {
  Status status =
      machine_.openStep(seat.view().layers() + losses, scalars.skipsLeft);
  if (status.isOk() && clock_)
    status = clock_->start(*options_.trace);
  return inStep(scalars, status);
}

Status Executor::readStep(std::deque<Run> &runs) {
  StatusOr<RankMachine::Results> read = machine_.readStep();
  if (!read.isOk())
    return inStep(runs.front().scalars, read.status());
  const RankMachine::Results &results = *read;
  for (Run &run : runs) {
    const auto first = results.numbers.begin() + run.lossIndex(0, 0);
    std::vector<double> &losses = run.result.lossParts;
    losses.assign(first, first + run.lossCount());
    // All ranks of a tensor-parallel group compute the same losses; one counts.
    if (!run.view().reportsLoss())
      losses.assign(losses.size(), 0);
    if (!run.hasNorm)
      continue;
    run.result.gradientNorm = results.gradientNorm;
    const auto norms = results.numbers.begin() + run.normIndex(0);
    run.result.layerNorms.assign(norms, norms + run.view().layers());
  }
  if (!clock_ || results.hasFailedBehind)
    return Status::ok();
  return inStep(runs.front().scalars, clock_->read(*options_.trace));
}

Status Executor::runInstruction(Run &run) {
  const Instruction &i = run.program.instructions[run.index];
  machine_.clearMessage();
  machine_.context().layer = i.layer;
  Status status = execute(run, i);
  if (!status.isOk())
    return Status(
        status.code(),
        formatText("step %d, instruction %d (%s of '%s'): %s",
                   run.scalars.step + 1, run.index, describeInstruction(i),
                   run.view().kind(i.layer).name(), status.message()));
  return memoryCheck_ && !isDropping_ ? memoryCheck_->after(run, i)
                                      : Status::ok();
}

double Executor::formulaFlops(const Run &run, const Instruction &i) const {
  if (!isPerMicroBatch(i.op) || roleOf(i) < 0)
    return 0;
  const plan::LayerKind &kind = run.view().kind(i.layer);
  const plan::LayerKind::Role &role = kind.roles(roleOf(i));
  const Load &load = run.staging[i.microBatch].load;
  double perTarget = static_cast<double>(role.flops_per_target());
  if (int slot = kind.target_table();
      perTarget > 0 && slot < kind.parameters_size())
    perTarget *= static_cast<double>(run.view().rows(
                     run.view().layer(i.layer).parameters(slot))) /
                 static_cast<double>(kind.parameters(slot).shape(0));
  const FormulaShare share =
      formulaShares_.empty() ? FormulaShare() : formulaShares_[i.layer];
  const double products =
      static_cast<double>(role.flops_per_token()) * load.queries +
      static_cast<double>(role.flops_per_part_token()) *
          run.view().partTokens(load);
  const double attention =
      static_cast<double>(role.flops_per_pair()) * load.pairs +
      static_cast<double>(role.flops_per_causal_pair()) * load.causalPairs;
  return share.products * products + share.attention * attention +
         std::round(perTarget) * load.targets;
}

} // namespace dyna
