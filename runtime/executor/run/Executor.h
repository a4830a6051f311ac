//===- Executor.h - Interprets one rank's instructions ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The only way in which layer functions run. An executor has a machine (the
// rank's arena and wires) and a seat for each graph whose plans it runs: a plan
// says by which strategy it was made. It runs only verified steps (StepVerifier.h).
// One executor serves one thread. It neither reads files nor knows how plans come
// about.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H
#define DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H

#include "runtime/data/BatchReader.h"
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
  int64_t dynamicBytes = 0; ///< of the region in which plans lie
  /// Bytes that the arena has at least, for graphs that follow. Memory of those that
  /// are not used yet is taken later, where the device can.
  int64_t reservedBytes = 0;
  /// True: the first graphs may leave out ranks, which get a place when graphs are
  /// replaced.
  bool mayHaveFewer = false;
  /// Poisons free memory and looks for stray writes after every instruction:
  /// for tests, as slow as it sounds.
  bool checkMemory = false;
  /// Sets StepResult::coreWaitSeconds.
  bool timesCoreWaits = false;
  /// Sets StepResult::layerSeconds. All ranks have it alike.
  bool sharesLayerTimes = false;
  /// The clock of layer functions, in seconds. Null: the steady clock. For tests.
  double (*clock)() = nullptr;
  /// After which a device that has not done what it was given is given up: longer
  /// than any step.
  std::chrono::seconds patience = std::chrono::minutes(30);
  /// Asked between micro-batches: whether to drop the step, which then ends soon
  /// and changes nothing. Null: never. Must be safe on any thread.
  bool (*stops)() = nullptr;
  /// Records slices if not null; must outlive the executor.
  TraceRecorder *trace = nullptr;
  /// The share of zeros from which a pruned weight is computed in sparse form, if its
  /// layers accept that; 0: by its type (sparseCrossing).
  double sparseFrom = 0;
  /// This rank's end of the wires of devices, and what hosts agree by. Both are null
  /// for the only rank, and must outlive the executor.
  Transport *transport = nullptr;
  HostExchange *host = nullptr;
};

class Executor {
public:
  /// Graphs of one model and as many ranks, none twice, of which the first is home,
  /// whose tensors stay; those of others have a place while their phase of a step
  /// lasts (StepMemory.h). They, `variant` and
  /// `device` must outlive the executor. All ranks create theirs together. Takes
  /// the arena: ResourceExhausted when there is not that much memory. Everything
  /// in it is zero; parameters are for the caller to write.
  static StatusOr<std::unique_ptr<Executor>>
  create(const std::vector<GraphUse> &graphs, const dyna_variant &variant,
         Device &device, const ExecutorOptions &options);
  ~Executor();

  /// Runs this rank's programs of all phases. The step was verified for this
  /// mini-batch's lengths and fits the memory of the rank. The executor has seats for
  /// all its graphs: gradients for other graphs than home, and all that training needs
  /// for home. After a failure the parameters may be
  /// half updated: the run is over, and other ranks are told. No step is in flight.
  Status run(const VerifiedStep &step, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);

  /// The same in two halves: gives the device all of the step, behind what it has,
  /// and later waits for the first of the steps that were given, at most
  /// `kStepsInFlight`. Step and mini-batch must live until then. In between nothing
  /// is called but these. Where the device fails in a step, those before it
  /// can be read, as far as they came to their end, and its own failure names it.
  Status launch(const VerifiedStep &step, const MiniBatch &miniBatch,
                const StepScalars &scalars);
  Status finish(StepResult &result);

  //===--------------------------------------------------------------------===//
  // Replacing graphs between two steps (ReplaceGraphs.cpp). No step is in flight.
  //===--------------------------------------------------------------------===//

  /// Fails if the graphs are not of this model or machine, or their tensors do not fit
  /// the arena beside those that there are. Asks no other rank, and changes nothing.
  Status checkReplacement(const Replacement &to) const;
  /// Carries the state to the tensors of the next graphs. All ranks call it, after
  /// `checkReplacement` has passed on each of them. Steps still run on the present
  /// graphs, whose state stays as it is. After a failure other ranks are told.
  Status prepareReplacement(const Replacement &to);
  /// Ends what `prepareReplacement` has begun: with the next graphs, or without.
  Status endReplacement(bool isDone);

  /// Prunes the weights that have masks (PruneWeights.cpp). All ranks call it alike, and
  /// no step is in flight. `model` is that of the graphs, for ranks without a place.
  Status prune(const Model &model, const PruneOrder &order,
               PruneResult &result);

  /// Times that the graphs were replaced, of which traces tell.
  int64_t version() const { return version_; }
  void setVersion(int64_t version) { version_ = version; }
  /// Returns true if this rank has a place in the graphs. Otherwise it holds nothing and
  /// has no seats. It takes part in no step, but learns the result of each.
  bool hasPlace() const { return !seats_.empty(); }

  /// Of the graphs, as they were given.
  GraphSeat &seat(size_t graph = 0) { return *seats_[graph]; }
  const GraphSeat &seat(size_t graph = 0) const { return *seats_[graph]; }
  /// Sums numbers of the host over all ranks, in place; all of them call it.
  Status sumOverRanks(std::vector<double> &values);

  const RankMachine &machine() const { return machine_; }
  /// Bytes of the arena that are used at present.
  int64_t usedBytes() const { return machine_.usedBytes(); }
  /// Most bytes of the arena that were taken at one time.
  int64_t takenBytes() const { return machine_.takenBytes(); }
  /// Of tensors that stay.
  int64_t persistentBytes() const;
  /// Of the last run; empty unless `checkMemory`. Tests compare formulas with
  /// what was touched by it.
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
  /// `mayHaveFewer`: whether graphs may have fewer ranks than the machine.
  Status checkGraphs(const std::vector<GraphUse> &graphs,
                     bool mayHaveFewer) const;
  Status initialize(const std::vector<GraphUse> &graphs);
  /// Makes seats of the graphs. The tensors of the first begin at `begin`.
  std::vector<std::unique_ptr<GraphSeat>>
  makeSeats(const std::vector<GraphUse> &graphs, int64_t begin);
  /// Makes the groups of seats, together with the other ranks of the graphs.
  Status connect(const std::vector<std::unique_ptr<GraphSeat>> &seats);
  /// Launches a step in which this rank has no place.
  Status launchWithoutPlace(const VerifiedStep &step,
                            const StepScalars &scalars);
  /// Returns the ranks that hold parts of a seat's layers with this one.
  std::vector<int> shardsOf(const GraphSeat &seat) const;
  /// The seat that the plan was made for.
  StatusOr<GraphSeat *> seatOf(const plan::Plan &plan);
  /// Checks what the verifier does not know: this arena and this mini-batch.
  Status check(const VerifiedStep &step, const MiniBatch &miniBatch) const;
  /// Checks the plan of a phase for its seat and the targets of the mini-batch.
  Status checkPhase(const GraphSeat &seat, const plan::Plan &plan,
                    int64_t targets) const;
  /// Returns what the phases of a step have on this rank. Their seats move to it.
  StatusOr<std::vector<SwitchCarrier::Phase>>
  openPhases(const VerifiedStep &step, int64_t targets);
  /// Whether another step may be given.
  Status checkRoom() const;
  /// What the phases took together.
  static void addPhases(Launched &step);
  /// Draws the phases of a step of several graphs into the trace.
  void drawPhases(const Launched &step);
  /// Sets the context for a plan, runs it, and counts what it took.
  Status runPhase(Run &run);
  /// Behind the head of a phase (StepMemory.h).
  Status openBody(Run &run);

  Status runProgram(Run &run);
  /// For a step with so many losses; home is `seat`.
  Status openStep(const GraphSeat &seat, int64_t losses,
                  const StepScalars &scalars);
  /// The only wait of a step for its device: what the phases left there.
  Status readStep(std::deque<Run> &runs);
  /// What was sent since `before`; tells other ranks of a failure.
  Status endStep(const Status &status, const Traffic &before,
                 StepResult &result);
  /// Sums losses over ranks, and tells all what each one was used.
  Status shareResults(StepResult &result);
  /// Returns the seconds of the clock of layer functions.
  double clockSeconds() const;
  /// What a trace tells instructions by.
  struct Moment {
    double time = 0, core = 0; ///< seconds, on the wall and of this thread
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
  Status runInstruction(Run &run);
  /// Asks before the first call of a micro-batch in each direction whether the
  /// step goes on.
  Status lookForStop(Run &run, const plan::Instruction &i);
  /// Returns true if a dropped step leaves the instruction out.
  bool leavesOut(const plan::Instruction &i) const;
  double formulaFlops(const Run &run, const plan::Instruction &i) const;

  const dyna_variant &variant_;
  const ExecutorOptions options_;
  RankMachine machine_;
  std::deque<SharedGroups> groups_; ///< by the number of a seat
  std::vector<std::unique_ptr<GraphSeat>> seats_;
  int activeRanks_ = 0; ///< ranks of the graphs
  uint64_t modelHash_ = 0;
  int layers_ = 0; ///< of the model
  int64_t version_ = 0;
  std::unique_ptr<NextGraphs> next_;
  std::unique_ptr<MemoryCheck> memoryCheck_;
  std::vector<Transport::Spent> spent_; ///< of the instruction, if traced
  std::unique_ptr<DeviceClock> clock_;  ///< null: nothing is traced
  std::deque<std::unique_ptr<Launched>> launched_; ///< not read yet
  // Of the step that is being given: whether it is dropped, and its plan that
  // updates.
  bool isDropping_ = false;
  const plan::Plan *updatingPlan_ = nullptr;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_EXECUTOR_H
