//===- PipelineProblem.h - Describes a schedule's input ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The work of the micro-batches of one replica on the stages of a pipeline, and
// what memory there is for it. All tables are `[stage][micro-batch]`; empty
// lists mean zeros; empty limits mean no limit.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEPROBLEM_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEPROBLEM_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dyna {

enum class ItemKind {
  Forward,
  Backward, ///< with its weight gradients, unless these are items too
  Weight
};

/// A link between two stages. An activation travels on it, and its gradient comes back,
/// unless the first stage has no layer that runs backward. The backward of a micro-batch on
/// such a stage has no work and no message. It marks that the stage may go on, so that it is
/// no further ahead than any other.
struct StageLink {
  int from = 0, to = 0; ///< stages of the producer and of the consumer
  double seconds = 0;   ///< of a message, one way
  int edge = -1;        ///< edge of the model (Model::edge) that it stands for
  bool hasGradient = true;

  /// Seconds until a backward behind the link is known before it.
  double secondsBack() const { return hasGradient ? seconds : 0; }
  double bothWays() const { return seconds + secondsBack(); }
};

/// Returns the links of a chain of stages whose messages take so long.
std::vector<StageLink> chainOf(int stages, double seconds);

/// Samples and tokens of a micro-batch, which error messages name.
struct MicroBatchContents {
  int64_t firstSample = -1, lastSample = -1; ///< by number; -1: unknown
  int64_t tokens = 0;
};

struct PipelineProblem {
  using Seconds = std::vector<std::vector<double>>;
  using Bytes = std::vector<std::vector<int64_t>>;

  Seconds forward;
  /// All that belongs to it: input and weight gradients, and what is computed
  /// again.
  Seconds backward;
  /// The part of `backward` that is weight gradients. Nothing waits for them,
  /// so they may run separately, any time later. Empty if backward is one
  /// piece.
  Seconds weight;
  /// The part of `backward` that runs first and needs no gradient: it
  /// recomputes what forward did not keep.
  Seconds recompute;
  /// Held from forward to the end of backward.
  Bytes kept;
  /// Held after backward. If weight gradients run separately, it is held to their end.
  /// Otherwise another backward gives it back, and has a negative number here.
  Bytes late;
  /// Samples of each micro-batch, for messages about memory. Empty: nothing is
  /// known.
  std::vector<MicroBatchContents> contents;
  /// Largest number of bytes that micro-batches may hold, by stage.
  std::vector<int64_t> limits;
  /// Largest number of micro-batches that a stage may hold, for schedules that
  /// follow memory. Micro-batches that an earlier stage has run ahead wait, as
  /// inputs, after it.
  std::vector<int> mostKept;
  /// Micro-batches whose forwards may all run before their backwards, where the
  /// schedule leaves that to the user.
  int inFlight = 1;
  /// Items that a search of orders may simulate after its simple orders; 0: it takes
  /// the best simple order.
  int64_t searchItems = 1800000;
  /// Links between stages, which form no circle. Empty: a chain whose messages take no
  /// time.
  std::vector<StageLink> links;
  /// Micro-batch whose forward comes before that of each one on all stages, and whose
  /// backward comes after it; -1: none. Each precedes one other at most. Empty: none
  /// has one.
  std::vector<int> previous;

  int stages() const { return static_cast<int>(forward.size()); }
  int microBatches() const {
    return forward.empty() ? 0 : static_cast<int>(forward[0].size());
  }
  bool splitsBackward() const { return !weight.empty(); }

  int mostKeptOf(int stage) const {
    return mostKept.empty() ? microBatches()
                            : std::min(mostKept[stage], microBatches());
  }
  double weightOf(int stage, int m) const {
    return weight.empty() ? 0 : weight[stage][m];
  }
  double recomputeOf(int stage, int m) const {
    return recompute.empty() ? 0 : recompute[stage][m];
  }
  int64_t keptBytes(int stage, int m) const {
    return kept.empty() ? 0 : kept[stage][m];
  }
  /// Returns the bytes held from forward to the end of backward, in which the late
  /// bytes are made.
  int64_t heldBytes(int stage, int m) const {
    return std::max(keptBytes(stage, m), lateBytes(stage, m));
  }
  int64_t lateBytes(int stage, int m) const {
    return late.empty() ? 0 : late[stage][m];
  }
  /// Given back by a backward whose weight gradients run at once.
  int64_t freedBytes(int stage, int m) const {
    return heldBytes(stage, m) - (splitsBackward() ? 0 : lateBytes(stage, m));
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_PIPELINEPROBLEM_H
