//===- RankTeam.h - Drives the ranks of this process ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A team has the ranks of this process, each with a thread. A training loop
// drives it. A step runs on all ranks together. Parameters are read and written
// as the *logical* tensors of the model, with rows on any ranks
// (runtime/layout/Move.h). Switches between graphs move them too
// (SwitchCarrier.h). If other processes have ranks, every process makes the
// same calls in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H
#define DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H

#include "runtime/executor/run/Executor.h"
#include "runtime/layout/Move.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/transport/Transport.h"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace dyna {

/// One rank of this process before it has an executor.
struct RankResources {
  int rank = 0;
  std::unique_ptr<Device> device;
  /// Wires of its device; null if there is one rank.
  std::unique_ptr<Transport> transport;
  /// Wires of its host; null if `transport` carries memory of the host too.
  std::unique_ptr<Transport> hostTransport;
  int64_t dynamicBytes = 0;
  int64_t reservedBytes = 0;      ///< ExecutorOptions'
  TraceRecorder *trace = nullptr; ///< may be null

  /// Returns the wires that carry memory of the host; null if there is one rank.
  Transport *hostWires() const {
    return hostTransport ? hostTransport.get() : transport.get();
  }
  /// Tells the other ranks that this one gives up.
  void abort(const Status &reason) const;
};

/// Largest number of bytes of a piece of a tensor that is sent to another
/// process.
constexpr int64_t kRowChunkBytes = int64_t(4) << 20;

class RankTeam {
public:
  /// Creates the team and allocates the arenas of its ranks. The first graph is
  /// *home*, whose parameters `readRows` and `writeRows` handle. Graphs and
  /// `variant` must outlive the team. Fields of `options` that belong to one
  /// rank are ignored.
  static StatusOr<std::unique_ptr<RankTeam>>
  create(const std::vector<GraphUse> &graphs, const dyna_variant &variant,
         std::vector<RankResources> ranks, const ExecutorOptions &options);
  ~RankTeam();

  const Model &model() const { return graph().model(); }
  /// Returns home.
  const ExecutableGraph &graph() const { return *graphs_.front().graph; }
  /// Returns true if this process has rank 0, which alone gets read data.
  bool hasRankZero() const { return firstRank() == 0; }
  int firstRank() const { return ranks_.front().own.rank; }

  /// Runs a step on all ranks. If one fails, all end, those of other processes
  /// too. The status is that of the rank that failed first.
  Status run(const VerifiedStep &step, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);
  /// `launch` gives a step to all ranks and returns before they end it. `finish`
  /// waits for the oldest step that was launched and reads its result. Up to
  /// `kStepsInFlight` steps may be launched before one is finished.
  Status launch(const VerifiedStep &step, const MiniBatch &miniBatch,
                const StepScalars &scalars);
  Status finish(StepResult &result);
  /// Fails if a rank of this process refuses the graphs
  /// (Executor::checkReplacement).
  Status checkReplacement(const Replacement &to) const;
  /// Replaces the graphs between two steps, when none is in flight. All
  /// processes call it. Fails, and changes nothing, if a rank of any process
  /// refuses it. If a rank is lost meanwhile, no further step runs. The present
  /// graphs then still have all their state.
  Status replace(const Replacement &to);
  /// Prunes weights on all ranks between two steps, when none is in flight. All processes
  /// call it. Then `chooseForms`.
  Status prune(const PruneOrder &order, PruneResult &result);
  /// Chooses the form of each weight with a mask by its zeros on each rank, for home. Masks
  /// come from the ranks that update their rows. All processes call it; `prune` and
  /// `replace` do. To be called when masks were written by others.
  Status chooseForms();
  /// Makes products read all weights in dense form, until forms are chosen again.
  void useDenseForms();
  /// Forgets the gradients that are scores of pruned weights, as those of a step that is
  /// skipped.
  Status clearPrunedScores();
  /// Counts formula flops without the heads or channels that are pruned, until it is called
  /// again. To be called when masks changed, by all processes together.
  Status countUnits(PrunedStructure structure);
  /// Returns how many weights of each layer are not pruned. A parameter that layers share
  /// counts for each of them. All processes ask together.
  StatusOr<std::vector<double>> survivorsByLayer();
  /// Times that the graphs were replaced, of which traces tell.
  int64_t version() const { return ranks_.front().executor->version(); }
  void setVersion(int64_t version);
  /// Returns the ranks of the job. The graphs may have fewer.
  int worldRanks() const;
  /// Returns the result of one rank of this process, in the last run or the
  /// last step read.
  const StepResult &lastResult(size_t local) const { return results_[local]; }

  /// Returns each mark as true if any process sets it. All processes call it
  /// together.
  StatusOr<std::vector<bool>> any(const std::vector<bool> &here);
  /// Gives the numbers of the process of rank 0 to all. All processes call it
  /// together, with equally many.
  Status shareFromFirst(std::vector<double> &values);
  /// Adds up numbers of all processes. All call it together, with equally many.
  Status sum(std::vector<double> &values);
  /// Returns the seconds of a sum of `count` numbers (f64) over all ranks.
  /// Takes the minimum of `repeats`, because other work of the machine only
  /// makes it longer. All processes call it together.
  StatusOr<double> timeSum(int64_t count, int repeats);
  /// Returns the seconds of a message between two ranks: half of a round trip,
  /// the minimum of `repeats`. All processes call it together, and those
  /// without rank `from` get 0.
  StatusOr<double> timeMessage(int from, int to, int64_t bytes, int repeats);
  /// Returns the seconds in which each rank of this process gets `bytes` of new
  /// memory. All ranks get it at the same time. Returns 0 if devices have all
  /// their memory from the start.
  StatusOr<double> timeNewMemory(int64_t bytes);
  /// Ends the run because of `reason`. Ranks of other processes end with it
  /// too, at their next exchange, and do not wait for this one.
  void abort(const Status &reason);

  /// Returns the bytes of a part as the whole logical tensor; 0 if there is
  /// none. Gradients are read in the type of masters, in whatever type they are
  /// kept.
  int64_t partBytes(int parameter, ParameterPart part) const;
  /// Reads rows of the logical tensor. The process of rank 0 gets them; all
  /// others send theirs, and may pass null. Gradients are summed over their
  /// holders, as a plan without update leaves them before any reduction.
  Status readRows(int parameter, ParameterPart part, RowRange rows,
                  void *target);
  /// Writes rows of any part except gradients. Every process gives all rows.
  Status writeRows(int parameter, ParameterPart part, RowRange rows,
                   const void *source);
  /// Returns all rows of a part, in pieces of at most `kRowChunkBytes` or one
  /// row. So no second copy of a large tensor is needed.
  std::vector<RowRange> rowChunks(int parameter, ParameterPart part) const;

  /// Returns the largest number of bytes in use in the arenas of all ranks of
  /// this process.
  int64_t takenBytes() const;
  int64_t persistentBytes() const;
  size_t localRanks() const { return ranks_.size(); }
  Executor &executor(size_t local) { return *ranks_[local].executor; }
  const Executor &executor(size_t local) const {
    return *ranks_[local].executor;
  }

private:
  struct Rank {
    RankResources own;
    std::unique_ptr<HostExchange> host; ///< null if there is one rank
    std::unique_ptr<Executor> executor;
  };
  /// Functions that read and write the boxes of a move. They are called only
  /// for ranks of this process.
  using Take = std::function<Status(int rank, const Box &box, void *bytes)>;
  using Give =
      std::function<Status(int rank, const Box &box, const void *bytes)>;

  /// Runs `body` on each rank, and adds up the results.
  Status runAll(const std::function<Status(Executor &, StepResult &)> &body,
                StepResult &result);

  RankTeam(std::vector<GraphUse> graphs, double sparseFrom)
      : graphs_(std::move(graphs)), sparseFrom_(sparseFrom) {}
  /// Runs `body` on every rank of this process at once. Returns the first
  /// failure that is not another rank's.
  Status onAllRanks(const std::function<Status(Rank &)> &body);
  Rank *findLocal(int rank);
  /// Carries out transfers of boxes with elements of that size.
  Status carry(const std::vector<Transfer> &transfers, int64_t element,
               const Take &take, const Give &give);
  /// Reads boxes of home's tensors.
  Take takeFromHome(int parameter, ParameterPart part);
  /// Returns where the present rows of a part are.
  std::vector<RankBox> boxesOf(int parameter, ParameterPart part) const;
  /// Returns how many weights of each parameter with a mask are not pruned.
  StatusOr<std::vector<double>> survivorsByParameter();
  /// Chooses the form of one weight.
  Status chooseForm(int parameter, double sparseFrom);
  /// Returns the bytes of an element of the logical tensor; gradients may be
  /// stored narrower.
  int64_t logicalBytes(int parameter, ParameterPart part) const;

  std::vector<GraphUse> graphs_;
  double sparseFrom_;             ///< of ExecutorOptions
  std::deque<DeviceTurns> turns_; ///< by rank; empty with other processes
  std::vector<Rank> ranks_;
  std::vector<StepResult> results_; ///< of the last run, by local rank
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H
