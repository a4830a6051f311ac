//===- Executor.h - Interprets one rank's instructions ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs all layer functions. An executor has a machine (the rank's arena and
// wires) and a seat for each graph whose plans it runs. A plan names its
// strategy. Only verified steps run (StepVerifier.h). One executor serves one
// thread. It reads no files, and does not know how plans are made.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H
#define DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H

#include "runtime/data/BatchReader.h"
#include "runtime/executor/rank/DeviceTurns.h"
#include "runtime/executor/rank/GraphSeat.h"
#include "runtime/executor/run/MemoryCheck.h"
#include "runtime/executor/step/Pruning.h"
#include "runtime/executor/step/Replacement.h"
#include "runtime/executor/step/Step.h"
#include "runtime/executor/trace/DeviceClock.h"
#include "runtime/executor/trace/Trace.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/transport/HostExchange.h"

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace dyna {

struct Run;

struct ExecutorOptions {
  uint64_t seed = 0;
  int64_t dynamicBytes = 0; ///< of the region for plans
  /// Least bytes of the arena, for later graphs. If the device can, memory that
  /// is not used yet is allocated later.
  int64_t reservedBytes = 0;
  /// True if the first graphs may leave out ranks, which can get a place when
  /// graphs are replaced.
  bool mayHaveFewer = false;
  /// Poisons free memory and looks for stray writes after every instruction.
  /// For tests; very slow.
  bool checkMemory = false;
  /// Sets StepResult::coreWaitSeconds.
  bool timesCoreWaits = false;
  /// Sets StepResult::layerSeconds. Equal on all ranks.
  bool sharesLayerTimes = false;
  /// Clock of layer functions, in seconds. Null: the steady clock. For tests.
  double (*clock)() = nullptr;
  /// Time after which a device with unfinished work counts as lost. Longer than
  /// any step.
  std::chrono::seconds patience = std::chrono::minutes(30);
  /// Called between micro-batches; returns true to drop the step, which then
  /// ends soon and changes nothing. Null: never. Must be thread-safe.
  bool (*stops)() = nullptr;
  /// Records slices if not null; must outlive the executor.
  TraceRecorder *trace = nullptr;
  /// Share of zeros from which a pruned weight is computed in sparse form, if
  /// its layers accept that; 0: by its type (sparseCrossing).
  double sparseFrom = 0;
  /// This rank's end of the wires of devices, and the exchange of hosts. Both
  /// are null for the only rank, and must outlive the executor.
  Transport *transport = nullptr;
  HostExchange *host = nullptr;
  /// Turns of devices, at the number of the lower of the two ranks that share a device.
  /// Null if other processes have ranks. Must outlive the executor.
  std::deque<DeviceTurns> *turns = nullptr;
};

class Executor {
public:
  /// Creates the executor of a rank. All ranks call it together. The graphs are
  /// different, and have one model and one number of ranks. The first is home,
  /// whose tensors persist. Tensors of other graphs have a place while their
  /// phase of a step lasts (StepMemory.h). Graphs, `variant` and `device` must
  /// outlive the executor. Allocates the arena, filled with zeros; the caller
  /// writes the parameters. Fails with ResourceExhausted if there is too little
  /// memory.
  static StatusOr<std::unique_ptr<Executor>>
  create(const std::vector<GraphUse> &graphs, const dyna_variant &variant,
         Device &device, const ExecutorOptions &options);
  ~Executor();

  /// Runs this rank's programs of all phases. The step was verified for the
  /// lengths of this mini-batch and fits the memory of the rank. The executor
  /// must have a seat for each of its graphs, home's with all state of training
  /// and the others with gradients. No step is in flight. After a failure the
  /// parameters may be partly updated. Then the run is over, and other ranks
  /// are told.
  Status run(const VerifiedStep &step, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);

  /// `launch` gives all work of a step to the device, after the work that it
  /// has. `finish` waits for the oldest launched step. At most `kStepsInFlight`
  /// steps are in flight. Step and mini-batch must live until `finish`. Nothing
  /// else is called in between. If the device fails in a step, completed steps
  /// before it can still be read, and the failure names the step.
  Status launch(const VerifiedStep &step, const MiniBatch &miniBatch,
                const StepScalars &scalars);
  Status finish(StepResult &result);

  //===--------------------------------------------------------------------===//
  // Replacement of graphs between two steps (ReplaceGraphs.cpp). No step is in
  // flight.
  //===--------------------------------------------------------------------===//

  /// Fails if the graphs are not of this model or machine, or if their tensors
  /// do not fit the arena beside the present ones. Calls no other rank, and
  /// changes nothing.
  Status checkReplacement(const Replacement &to) const;
  /// Carries the state to the tensors of the next graphs. All ranks call it, after
  /// `checkReplacement` has passed on each of them. Steps still run on the present
  /// graphs, whose state stays as it is. After a failure other ranks are told.
  Status prepareReplacement(const Replacement &to);
  /// Ends a replacement that was prepared: uses the next graphs if `isDone`,
  /// else drops them.
  Status endReplacement(bool isDone);

  /// Prunes the weights that have masks (PruneWeights.cpp). All ranks call it alike, and
  /// no step is in flight. `model` is that of the graphs, for ranks without a place.
  Status prune(const Model &model, const PruneOrder &order,
               PruneResult &result);
  /// Adds to `counts`, by parameter, the weights that are not pruned. Each weight is
  /// counted by one rank. Parameters without masks are left out.
  Status addSurvivors(std::vector<double> &counts);
  /// Counts this share of the formulas' work from now on, by layer.
  void setFormulaShares(std::vector<FormulaShare> shares) {
    formulaShares_ = std::move(shares);
  }

  /// Returns the number of times that the graphs were replaced, which traces
  /// contain.
  int64_t version() const { return version_; }
  void setVersion(int64_t version) { version_ = version; }
  /// Returns true if this rank has a place in the graphs. Otherwise it holds nothing and
  /// has no seats. It takes part in no step, but learns the result of each.
  bool hasPlace() const { return !seats_.empty(); }

  /// Returns the seat of a graph, in the order of the given graphs.
  GraphSeat &seat(size_t graph = 0) { return *seats_[graph]; }
  const GraphSeat &seat(size_t graph = 0) const { return *seats_[graph]; }
  /// Sums numbers of the host over all ranks, in place. All ranks call it.
  Status sumOverRanks(std::vector<double> &values);

  const RankMachine &machine() const { return machine_; }
  /// Returns the bytes of the arena that are used at present.
  int64_t usedBytes() const { return machine_.usedBytes(); }
  /// Returns the bytes of the arena that have memory at present.
  int64_t residentBytes() const { return machine_.residentBytes(); }
  /// Returns the largest number of bytes of the arena that were in use at one
  /// time.
  int64_t takenBytes() const { return machine_.takenBytes(); }
  /// Returns the bytes of persistent tensors.
  int64_t persistentBytes() const;
  /// Returns the memory report of the last run; empty unless `checkMemory`.
  /// Tests compare formulas with the touched bytes.
  const MemoryReport &memoryReport() const;

private:
  /// A step that was launched.
  struct Launched;
  /// Seats that have their state, and are not used yet.
  struct NextGraphs {
    std::vector<std::unique_ptr<GraphSeat>> seats;
    ArenaParts parts;
    int64_t regionBytes = 0; ///< that plans use
    int ranks = 0;
    int64_t version = 0;
  };

  Executor(const dyna_variant &variant, Device &device,
           const ExecutorOptions &options);
  /// `mayHaveFewer`: graphs may have fewer ranks than the machine.
  Status checkGraphs(const std::vector<GraphUse> &graphs,
                     bool mayHaveFewer) const;
  Status initialize(const std::vector<GraphUse> &graphs);
  /// Makes seats of the graphs. The tensors of the first begin at `begin`.
  std::vector<std::unique_ptr<GraphSeat>>
  makeSeats(const std::vector<GraphUse> &graphs, int64_t begin);
  /// Makes the groups of seats, together with the other ranks of the graphs.
  Status connect(const std::vector<std::unique_ptr<GraphSeat>> &seats);
  /// Returns the number of losses of a step: of all layers and micro-batches.
  int64_t countLosses(const VerifiedStep &step) const;
  /// Launches a step in which this rank has no place.
  Status launchWithoutPlace(const VerifiedStep &step,
                            const StepScalars &scalars);
  /// Returns the ranks that hold parts of a seat's layers with this one.
  std::vector<int> shardsOf(const GraphSeat &seat) const;
  /// Returns the seat that the plan was made for.
  StatusOr<GraphSeat *> seatOf(const plan::Plan &plan);
  /// Checks a step against this arena and this mini-batch, which the verifier
  /// does not know.
  Status check(const VerifiedStep &step, const MiniBatch &miniBatch) const;
  /// Checks the plan of a phase for its seat and the targets of the mini-batch.
  Status checkPhase(const GraphSeat &seat, const plan::Plan &plan,
                    int64_t targets) const;
  /// Returns the switches and seats of the phases of a step on this rank. Moves
  /// the seats to their places.
  StatusOr<std::vector<SwitchCarrier::Phase>>
  openPhases(const VerifiedStep &step, int64_t targets);
  /// Fails if no further step may be launched.
  Status checkRoom() const;
  /// Adds up the results of the phases.
  static void addPhases(Launched &step);
  /// Draws the phases of a step of several graphs into the trace.
  void drawPhases(const Launched &step);
  /// Sets the context for a plan, runs it, and counts its use of resources.
  Status runPhase(Run &run);
  /// Clears the own memory of a phase, after its head (StepMemory.h).
  Status openBody(Run &run);

  Status runProgram(Run &run);
  /// Opens a step with `losses` losses; home is `seat`.
  Status openStep(const GraphSeat &seat, int64_t losses,
                  const StepScalars &scalars);
  /// Reads the results of the phases: the only wait of a step for its device.
  Status readStep(std::deque<Run> &runs);
  /// Sets the traffic since `before`; tells other ranks of a failure.
  Status endStep(const Status &status, const Traffic &before,
                 StepResult &result);
  /// Sums losses over ranks, and gives the use of each rank to all.
  Status shareResults(StepResult &result);
  /// Adds up losses by micro-batch, with their weights, and by layer.
  void addLosses(StepResult &result) const;
  /// Returns the seconds of the clock of layer functions.
  double clockSeconds() const;
  /// Moment before an instruction, for its slice in the trace.
  struct Moment {
    double time = 0, core = 0; ///< seconds, by the wall and on a core
    int64_t sentBytes = 0;     ///< in messages so far
  };
  Moment now() const;
  /// Adds a slice of work between two steps, from a moment of the recorder on until now.
  /// `step` is the one that follows.
  void traceBetweenSteps(const char *name, const char *category, int64_t step,
                         const Moment &before);
  /// Adds the slice of an instruction that has just run, and those in it.
  Status trace(const Run &run, const plan::Instruction &i, const Moment &before,
               int64_t liveBytes);
  /// Runs the instruction at `run.index`, unless a dropped step leaves it out.
  Status runNext(Run &run, int64_t liveBytes);
  /// Waits for the rank's turn before an item, and ends the turn behind it.
  Status beginItem(Run &run);
  void endItem(Run &run);
  DeviceTurns &turnsOf(const Run &run) const;
  Status runInstruction(Run &run);
  /// Asks `stops` before the first call of a micro-batch in each direction, and
  /// drops the step if it returns true.
  Status lookForStop(Run &run, const plan::Instruction &i);
  /// Returns true if a dropped step leaves the instruction out.
  bool leavesOut(const plan::Instruction &i) const;
  double formulaFlops(const Run &run, const plan::Instruction &i) const;

  std::vector<FormulaShare> formulaShares_; ///< by layer; empty: all are 1
  const dyna_variant &variant_;
  const ExecutorOptions options_;
  RankMachine machine_;
  std::deque<SharedGroups> groups_; ///< by the number of a seat
  std::vector<std::unique_ptr<GraphSeat>> seats_;
  int activeRanks_ = 0; ///< ranks of the graphs
  uint64_t modelHash_ = 0;
  int layers_ = 0; ///< of the model
  int64_t version_ = 0;
  int64_t endedTurns_ = 0; ///< of this rank's device, in all steps before
  std::unique_ptr<NextGraphs> next_;
  std::unique_ptr<MemoryCheck> memoryCheck_;
  std::vector<Transport::Spent> spent_; ///< in the instruction, if traced
  std::unique_ptr<DeviceClock> clock_;  ///< null if nothing is traced
  std::deque<std::unique_ptr<Launched>> launched_; ///< not read yet
  // The step that is being launched: true if it is dropped, and its plan that
  // updates.
  bool isDropping_ = false;
  const plan::Plan *updatingPlan_ = nullptr;
  std::vector<double> lossWeights_; ///< of Model::lossLayers
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H
