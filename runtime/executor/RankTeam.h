//===- RankTeam.h - The ranks of this process -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a training loop drives: all ranks of a strategy that live in this
// process, as threads, or the one rank that this process is. Plans are run on
// all of them together; parameters are read and written as the *logical*
// tensors of the model, wherever their rows lie. With ranks in other processes,
// every process makes the same calls in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANKTEAM_H
#define DYNA_RUNTIME_EXECUTOR_RANKTEAM_H

#include "runtime/executor/Executor.h"
#include "runtime/plan/ExecutableGraph.h"
#include "runtime/transport/Transport.h"

#include <functional>
#include <memory>
#include <vector>

namespace dyna {

/// One rank of this process before it has an executor.
struct RankSeat {
  int rank = 0;
  std::unique_ptr<Device> device;
  /// Null if the strategy has one rank.
  std::unique_ptr<Transport> transport;
  int64_t dynamicBytes = 0;
  TraceRecorder *trace = nullptr; ///< may be null
};

/// What `RankTeam::rowChunks` cuts tensors into.
constexpr int64_t kRowChunkBytes = int64_t(4) << 20;

class RankTeam {
public:
  /// Takes the arenas of all seats. `graph` and `variant` must outlive the
  /// team. Of `options`, what belongs to a rank is ignored.
  static StatusOr<std::unique_ptr<RankTeam>>
  create(const ExecutableGraph &graph, const dyna_variant &variant,
         std::vector<RankSeat> seats, const ExecutorOptions &options);
  ~RankTeam();

  const ManifestView &view() const { return graph_.model(); }
  const ExecutableGraph &graph() const { return graph_; }
  /// Whether this process has rank 0, which alone gets what is read.
  bool hasRankZero() const { return firstRank() == 0; }
  int firstRank() const { return ranks_.front().seat.rank; }

  /// Verifies a plan and runs it on all ranks. When one fails, all end, those
  /// of other processes too, and the failure is the first rank's own.
  Status run(const plan::Plan &plan, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);
  /// What one rank of this process did in the last run.
  const StepResult &lastResult(size_t local) const { return results_[local]; }

  /// Of every mark, whether any process sets it; all ask together.
  StatusOr<std::vector<bool>> any(const std::vector<bool> &here);
  /// The run is over because of `reason`: ranks of other processes end with it
  /// too, at their next exchange, and do not wait for this one.
  void abort(const Status &reason);

  /// Bytes of a part as the whole logical tensor; 0 where there is none.
  /// Gradients are read in the type of masters, whatever they are kept in.
  int64_t partBytes(int parameter, ParameterPart part) const;
  /// Rows of the logical tensor. The process of rank 0 gets them; all others
  /// hand over theirs, and may pass null. Gradients are added up over their
  /// holders: what a plan without update leaves, before any reduction.
  Status readRows(int parameter, ParameterPart part, Executor::Rows rows,
                  void *target);
  /// Any part but gradients.
  Status writeRows(int parameter, ParameterPart part, Executor::Rows rows,
                   const void *source);
  /// Of all rows.
  Status readPart(int parameter, ParameterPart part, void *target);
  Status writePart(int parameter, ParameterPart part, const void *source);
  /// All rows of a part, in pieces of at most `kRowChunkBytes` or one row: who
  /// goes through them never holds a second copy of a large tensor.
  std::vector<Executor::Rows> rowChunks(int parameter,
                                        ParameterPart part) const;

  /// Of all ranks of this process.
  int64_t arenaBytes() const;
  int64_t persistentBytes() const;
  size_t localRanks() const { return ranks_.size(); }
  Executor &executor(size_t local) { return *ranks_[local].executor; }

private:
  struct Rank {
    RankSeat seat;
    std::unique_ptr<ManifestView> view;
    std::unique_ptr<Executor> executor;
  };
  /// Rows [begin, end) of what one rank has of a tensor.
  struct Piece {
    int rank;
    int64_t begin, end;
  };

  explicit RankTeam(const ExecutableGraph &graph) : graph_(graph) {}
  /// Runs on every rank of this process at once; the first failure that is not
  /// another rank's.
  Status onAllRanks(const std::function<Status(Rank &)> &body);
  Rank *findLocal(int rank);
  std::vector<Piece> pieces(int parameter, ParameterPart part) const;
  /// The rows of a piece, at rank 0's process.
  Status fetch(const Piece &piece, int parameter, ParameterPart part,
               std::vector<unsigned char> &rows);
  int64_t elementSize(int parameter, ParameterPart part) const;
  int64_t storedSize(int parameter, ParameterPart part) const;

  const ExecutableGraph &graph_;
  std::vector<Rank> ranks_;
  std::vector<StepResult> results_; ///< of the last run, by local rank
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANKTEAM_H
