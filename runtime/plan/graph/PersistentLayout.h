//===- PersistentLayout.h - Places parameters and state in the arena ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The persistent part of a rank's arena: masters, copies in the compute type,
// gradients and optimizer state. The binary places them by this function, and
// compile-time memory reports print the same numbers.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PERSISTENTLAYOUT_H
#define DYNA_RUNTIME_PLAN_PERSISTENTLAYOUT_H

#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/program/Plan.h"

#include <vector>

namespace dyna {

/// The tensors of a parameter. A mask has a byte for each weight: 0 if it is pruned,
/// else 1. Parameters that are not pruned have none (Model::hasMask). A score has a number
/// for each weight, by which it is pruned or grows again (Model::hasScores).
enum class ParameterPart {
  Master,
  Copy,
  Gradient,
  FirstMoment,
  SecondMoment,
  Mask,
  Score
};

/// Returns the part that layer functions read: the copy if there is one.
inline ParameterPart valuePart(const Model &model, int parameter) {
  return model.hasCopy(parameter) ? ParameterPart::Copy : ParameterPart::Master;
}
/// Returns the element type in an arena. A mask has none.
plan::ElementType typeOf(const Model &model, int parameter, ParameterPart part);
/// Returns the bytes of an element as it lies in an arena.
int64_t partElementBytes(const Model &model, int parameter, ParameterPart part);

/// Byte offsets from the start of the arena; -1: not there.
struct ParameterPlace {
  int64_t master = -1;
  int64_t copy = -1; ///< only if the compute type differs
  int64_t gradient = -1;
  int64_t m = -1;
  int64_t v = -1;
  int64_t mask = -1;  ///< only of parameters that are pruned
  int64_t score = -1; ///< only of these, if the run prunes by scores
};

struct PersistentLayout {
  std::vector<ParameterPlace> parameters;
  int64_t bytes = 0;
};

/// Bits for the tensors that a rank has beside those that layer functions read.
enum class Persistent {
  Values = 0,    ///< nothing: brought from another graph, for evaluation
  Masters = 1,   ///< masters, if layers read a copy
  Gradients = 2, ///< of a graph whose values come and whose gradients go
  Moments = 4,
  Training = Masters | Gradients | Moments
};
constexpr bool includes(Persistent has, Persistent what) {
  return (static_cast<int>(what) & ~static_cast<int>(has)) == 0;
}

/// Returns the tensors that a rank must have for an instruction.
Persistent neededFor(plan::Instruction::Op op);
/// Returns "masters and moments", or "no more than the values that layer
/// functions read".
std::string describePersistent(Persistent persistent);

/// Places the parameters that the view holds. Equal parts lie together: all
/// masters, all copies, all gradients, all m, all v, all masks, all scores. In each part
/// matrices come before vectors, in the order of the manifest. Moments, masks, scores,
/// and masters beside a copy have only the rows that the view updates. Frozen
/// parameters have only a master, of the compute type. Those that a run froze have all but
/// a gradient. The first byte is the
/// arena's `begin`. The list `rowsAtHome` has an entry per parameter: -1 unless
/// its values lie elsewhere (ValuesAtHome.h). If it is empty, none do.
PersistentLayout persistentLayout(const RankView &view,
                                  Persistent persistent = Persistent::Training,
                                  int64_t begin = 0,
                                  const std::vector<int64_t> &rowsAtHome = {});

/// The block of a micro-batch that LOAD fills, without the token ids, which go
/// to the first layer's input. Offsets count from the block's start; missing
/// tables have -1.
struct BatchLayout {
  /// A dyna_row_runs, with room for as many runs as rows.
  struct Runs {
    int64_t rows = -1;   ///< i32 [tq]
    int64_t starts = -1; ///< i32 [tq + 1]
  };
  int64_t targets = 0;     ///< i32 [tq]
  int64_t segments = 0;    ///< dyna_segment [s]
  int64_t rowSample = 0;   ///< i64 [tq]
  int64_t rowPosition = 0; ///< i64 [tq]
  int64_t offsets = -1;    ///< i32 [s + 1]
  Runs tokenRuns, positionRuns;
  int64_t targetRows = -1; ///< i32 [tq]
  int64_t bytes = 0;
};

/// Computes the layout; `tables` are those that compiled code asks for
/// (DYNA_BATCH_*).
BatchLayout batchLayout(const Load &load, uint32_t tables);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PERSISTENTLAYOUT_H
