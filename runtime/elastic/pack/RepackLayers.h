//===- RepackLayers.h - Packs layers on fewer ranks -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model that has become smaller may need fewer ranks (DynPipe, appendix B.4). Layers
// stay in order: for each number of ranks the cut is exact, by seconds, within memory.
//
// What a rank keeps of micro-batches depends on the number of stages, so that is planned
// anew as well. The paper names this in appendix D.5 and does not have it. A *way* is one
// choice of recomputation and size of micro-batches, with its seconds and bytes. Each
// number of ranks takes the fastest way that has room.
//
// Ranks that become free are released, or they become replicas of the pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_REPACKLAYERS_H
#define DYNA_RUNTIME_ELASTIC_REPACKLAYERS_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/graph/CutLayers.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// One choice of recomputation and size of micro-batches. Vectors are by layer.
struct PackWay {
  std::string name;            ///< for reports
  std::vector<double> seconds; ///< of one micro-batch, forward and backward
  std::vector<int64_t> kept;   ///< bytes of one micro-batch in flight
  int64_t microBatches = 1;    ///< of a step, in all replicas
};

struct PackProblem {
  std::vector<int64_t> own; ///< by layer: parameters and their state
  std::vector<PackWay> ways;
  int64_t limit = 0;  ///< bytes of a rank
  int ranks = 1;      ///< at most
  int64_t tokens = 0; ///< of a step
  /// Seconds that a stage but the last one waits for its link, by micro-batch.
  double linkSeconds = 0;
  /// Reductions over replicas: bytes of gradients by layer, and seconds of a byte that
  /// goes over the port of a rank.
  std::vector<int64_t> gradientBytes;
  double secondsPerByte = 0;
};

/// A packing on a number of ranks.
struct Packing {
  int stages = 0, replicas = 1;
  std::vector<int> cut;
  int way = 0; ///< of PackProblem::ways
  double stepSeconds = 0;
  double tokensPerSecond = 0;
  int64_t largestBytes = 0; ///< of the fullest rank

  int ranks() const { return stages * replicas; }
  double perRank() const { return tokensPerSecond / ranks(); }
};

/// Returns the memory of stages. Under 1F1B stage s of p keeps at most p - s micro-batches,
/// and never more than its replica has.
LayerBytes packedBytes(const PackProblem &problem, const PackWay &way,
                       int stages, int replicas = 1);

/// Packs layers on a pipeline of `stages` stages. Of all ways that have room it
/// is the fastest one. Fails with InvalidArgument for fewer than one stage, or
/// more than layers, and with ResourceExhausted if no way has room. The message
/// has the bytes that each rank lacks. O(w (64 n + b t)) for w ways
/// (CutLayers.h).
StatusOr<Packing> packInto(const PackProblem &problem, int stages,
                           int replicas = 1);

/// Returns the bytes that a rank lacks for that many stages. This is the least number by
/// which the limit would have to be larger; 0 if there is room.
int64_t lackingBytes(const PackProblem &problem, int stages, int replicas = 1);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_REPACKLAYERS_H
