//===- RankTeam.h - The ranks of this process -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A training loop drives a team: the ranks of this process, each with a thread.
// A step runs on all of them together. Parameters are read and written as the
// *logical* tensors of the model, on whichever ranks their rows lie
// (runtime/layout/Move.h). Switches between graphs move them too
// (SwitchCarrier.h). If other processes have ranks, every process makes the same
// calls in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H
#define DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H

#include "runtime/executor/run/Executor.h"
#include "runtime/layout/Move.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/transport/Transport.h"

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

/// What tensors are cut into on their way.
constexpr int64_t kRowChunkBytes = int64_t(4) << 20;

class RankTeam {
public:
  /// Takes the arenas of all ranks. The first graph is *home*, whose parameters
  /// `readRows` and `writeRows` are about. Graphs and `variant` must outlive the
  /// team. Of `options`, what belongs to a rank is ignored.
  static StatusOr<std::unique_ptr<RankTeam>>
  create(const std::vector<GraphUse> &graphs, const dyna_variant &variant,
         std::vector<RankResources> ranks, const ExecutorOptions &options);
  ~RankTeam();

  const Model &model() const { return graph().model(); }
  /// Home.
  const ExecutableGraph &graph() const { return *graphs_.front().graph; }
  /// Whether this process has rank 0, which alone gets what is read.
  bool hasRankZero() const { return firstRank() == 0; }
  int firstRank() const { return ranks_.front().own.rank; }

  /// Runs a step on all ranks. When one fails, all end, those of other
  /// processes too, and the failure is the first rank's own.
  Status run(const VerifiedStep &step, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);
  /// `launch` gives a step to all ranks and returns before they end it. `finish`
  /// waits for the oldest step that was launched and reads its result. Up to
  /// `kStepsInFlight` steps may be launched before one is finished.
  Status launch(const VerifiedStep &step, const MiniBatch &miniBatch,
                const StepScalars &scalars);
  Status finish(StepResult &result);
  /// Fails if a rank of this process refuses the graphs (Executor::checkReplacement).
  Status checkReplacement(const Replacement &to) const;
  /// Replaces the graphs between two steps, when none is in flight. All processes call
  /// it. Fails, and leaves everything as it was, if a rank of any process refuses
  /// it. If a rank is lost meanwhile, no step runs any more,
  /// but the present graphs have all their state.
  Status replace(const Replacement &to);
  /// Prunes weights on all ranks between two steps, when none is in flight. All processes
  /// call it. Then `chooseForms`.
  Status prune(const PruneOrder &order, PruneResult &result);
  /// Chooses the form of each weight with a mask by its zeros on each rank, for home. Masks
  /// come from the ranks that update their rows. All processes call it; `prune` and
  /// `replace` do. To be called when masks were written by others.
  Status chooseForms();
  /// Times that the graphs were replaced, of which traces tell.
  int64_t version() const { return ranks_.front().executor->version(); }
  void setVersion(int64_t version);
  /// Ranks of the job. The graphs may have fewer.
  int worldRanks() const;
  /// What one rank of this process did in the last run, or the last step read.
  const StepResult &lastResult(size_t local) const { return results_[local]; }

  /// Of every mark, whether any process sets it; all ask together.
  StatusOr<std::vector<bool>> any(const std::vector<bool> &here);
  /// Gives the numbers of the process of rank 0 to all; all ask together, with equally
  /// many.
  Status shareFromFirst(std::vector<double> &values);
  /// Adds up numbers of all processes; all ask together, with equally many.
  Status sum(std::vector<double> &values);
  /// Seconds that all ranks take to sum that many numbers (f64), the least of
  /// `repeats`: it is waited for, and what else the machine does only makes that
  /// longer. All processes ask together.
  StatusOr<double> timeSum(int64_t count, int repeats);
  /// Seconds of a message of so many bytes between two ranks, half of the way
  /// there and back, the least of `repeats`; all processes ask together, and those
  /// without rank `from` get 0.
  StatusOr<double> timeMessage(int from, int to, int64_t bytes, int repeats);
  /// The run is over because of `reason`: ranks of other processes end with it
  /// too, at their next exchange, and do not wait for this one.
  void abort(const Status &reason);

  /// Bytes of a part as the whole logical tensor; 0 where there is none.
  /// Gradients are read in the type of masters, whatever they are kept in.
  int64_t partBytes(int parameter, ParameterPart part) const;
  /// Rows of the logical tensor. The process of rank 0 gets them; all others
  /// hand over theirs, and may pass null. Gradients are added up over their
  /// holders: what a plan without update leaves, before any reduction.
  Status readRows(int parameter, ParameterPart part, RowRange rows,
                  void *target);
  /// Any part but gradients; every process gives all of the rows.
  Status writeRows(int parameter, ParameterPart part, RowRange rows,
                   const void *source);
  /// All rows of a part, in pieces of at most `kRowChunkBytes` or one row: who
  /// goes through them never holds a second copy of a large tensor.
  std::vector<RowRange> rowChunks(int parameter, ParameterPart part) const;

  /// Bytes that were taken of the arenas of all ranks of this process, at most at one
  /// time.
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
  /// How the boxes of a move are read and written; called only for ranks of this
  /// process.
  using Take = std::function<Status(int rank, const Box &box, void *bytes)>;
  using Give =
      std::function<Status(int rank, const Box &box, const void *bytes)>;

  /// `body` runs on each rank and leaves what it did.
  Status runAll(const std::function<Status(Executor &, StepResult &)> &body,
                StepResult &result);

  RankTeam(std::vector<GraphUse> graphs, double sparseFrom)
      : graphs_(std::move(graphs)), sparseFrom_(sparseFrom) {}
  /// Runs on every rank of this process at once; the first failure that is not
  /// another rank's.
  Status onAllRanks(const std::function<Status(Rank &)> &body);
  Rank *findLocal(int rank);
  /// Carries out a plan for boxes of elements of that size.
  Status carry(const std::vector<Transfer> &transfers, int64_t element,
               const Take &take, const Give &give);
  /// Reads boxes of home's tensors.
  Take takeFromHome(int parameter, ParameterPart part);
  /// Chooses the form of one weight.
  Status chooseForm(int parameter, double sparseFrom);
  /// Bytes of an element as the whole tensor has it; gradients may lie narrower.
  int64_t logicalBytes(int parameter, ParameterPart part) const;

  std::vector<GraphUse> graphs_;
  double sparseFrom_; ///< of ExecutorOptions
  std::vector<Rank> ranks_;
  std::vector<StepResult> results_; ///< of the last run, by local rank
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RUN_RANKTEAM_H
