//===- GraphSeat.h - Holds the data of one graph on a rank ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's seat in an executable graph holds the rank's data of the graph. It
// has its view of the model, the tensors of its parameters in the arena, and
// its groups of ranks. Several graphs of one model have seats on one machine,
// each with its own tensors. Home has the masters. Other graphs have only the
// values that layer functions read, which switches bring (SwitchCarrier.h).
// Tensors that exist only during their phase have a new place in every step.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_GRAPHSEAT_H
#define DYNA_RUNTIME_EXECUTOR_RANK_GRAPHSEAT_H

#include "runtime/executor/rank/RankExchange.h"
#include "runtime/executor/rank/RankMachine.h"
#include "runtime/executor/rank/WeightForms.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/PersistentLayout.h"

#include <memory>
#include <vector>

namespace dyna {

/// Rows [begin, end) of a tensor.
struct RowRange {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

class GraphSeat {
public:
  /// Makes a seat whose tensors have `layout().bytes` bytes in the machine's
  /// arena, from `begin` on. Graph and machine must outlive it.
  GraphSeat(const ExecutableGraph &graph, Persistent persistent,
            RankMachine &machine, int64_t begin);
  /// Makes a seat whose tensors are placed by `moveTo`. Values that it reads
  /// from home's tensors stay there (ValuesAtHome.h).
  GraphSeat(const ExecutableGraph &graph, Persistent persistent,
            RankMachine &machine, const GraphSeat &home);
  GraphSeat(const GraphSeat &) = delete;

  /// Makes the groups of ranks, or reuses those of `groups`, which must outlive
  /// the seat. All ranks call it together, graph by graph.
  Status connect(SharedGroups &groups);

  const ExecutableGraph &graph() const { return graph_; }
  const RankView &view() const { return view_; }
  const Model &model() const { return view_.model(); }
  /// Returns the layout of the tensors, relative to the start of the arena;
  /// that of a moving seat is relative to its values.
  const PersistentLayout &layout() const { return layout_; }
  bool moves() const { return home_ != nullptr; }
  /// Places values and gradients in the arena from now on, in the order of the
  /// layout. Only for a seat that moves.
  void moveTo(int64_t values, int64_t gradients);
  Persistent persistent() const { return persistent_; }
  /// Returns null for one rank.
  RankExchange *exchange() const { return exchange_.get(); }
  /// Returns the groups in the form that compiled functions read.
  const std::vector<dyna_group> &groups() const { return groups_; }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  /// Returns the rows of a part of the parameter on this rank. That is all its
  /// rows, or with ZeRO the rows that it updates (for optimizer state, and
  /// masters beside a copy).
  RowRange partRows(int parameter, ParameterPart part) const;
  int64_t partBytes(int parameter, ParameterPart part) const;
  /// Read and write a box of the *logical* tensor: some of `partRows`, with a
  /// range of columns. The bytes are packed in host memory.
  Status readBox(int parameter, ParameterPart part, const Box &box,
                 void *target);
  Status writeBox(int parameter, ParameterPart part, const Box &box,
                  const void *source);
  /// Returns the rows of the box in the arena, for messages of rows.
  StatusOr<Strip> rowsOf(int parameter, ParameterPart part,
                         const Box &box) const;
  /// Returns the box of the logical tensor that this rank has of a part.
  Box partBox(int parameter, ParameterPart part) const;
  Status clearGradients();
  /// Zeroes elements whose mask is 0, in the rows that this rank updates. Does
  /// nothing if the parameter has no mask, or no such part.
  Status zeroPruned(int parameter, ParameterPart part);
  /// Adds |weight * gradient| to the scores of the rows that this rank updates, unless the
  /// step is not finite. With `ofPruned`, writes |gradient| as the score of each pruned
  /// weight instead. Does nothing if the parameter has no scores.
  Status addScores(int parameter, bool ofPruned);
  /// Marks all weights as survivors, with scores of 0.
  Status clearMasks();
  /// Makes all scores 0.
  Status clearScores();
  /// Clears the gradient rows of other ranks, with ZeRO: this rank's
  /// contributions to them. `update` clears the rows that it applies.
  Status clearOtherRows(int layer);

  //===--------------------------------------------------------------------===//
  // Arguments of layer functions; an absent tensor is null
  //===--------------------------------------------------------------------===//

  dyna_tensor tensorOf(int parameter, ParameterPart part) const;
  /// Returns the offset of a part in the arena; -1 if it is absent.
  int64_t placeOf(int parameter, ParameterPart part) const;
  /// Returns the offset in the arena of the rows that this rank updates; -1 if
  /// it updates none.
  int64_t updatedPlace(int parameter, ParameterPart part) const;
  /// Returns the rows that this rank updates.
  dyna_tensor updatedRows(int parameter, ParameterPart part) const;
  /// Returns the tensors that the functions of a layer read. The forms of the
  /// weights follow, if the layer accepts sparse ones (runtime/abi/Sparse.h).
  std::vector<dyna_tensor> values(int layer) const;
  std::vector<dyna_tensor> gradients(int layer) const;
  /// Returns the gradients that this rank updates (or counts in the norm), with
  /// the rows that it updates.
  std::vector<dyna_tensor> updatedGradients(int layer, bool countedOnly) const;

  /// Returns the forms in which products read weights. All weights of a new
  /// seat are dense.
  WeightForms &forms() { return forms_; }
  const WeightForms &forms() const { return forms_; }
  /// Chooses the form of a weight. `mask` has a byte for each element that
  /// layer functions read on this rank, even if other ranks update it.
  Status chooseForm(int parameter, const uint8_t *mask, double sparseFrom);
  /// Copies the values of a weight with a sparse form from the dense weight, in
  /// the order of the stream. Does nothing for other weights.
  Status takeSparseValues(int parameter);

private:
  int64_t rowBytes(int parameter, ParameterPart part) const;
  /// Offset of a box in the arena, and its rows there.
  struct Pieces {
    int64_t place, count, bytes, stride;
  };
  StatusOr<Pieces> find(int parameter, ParameterPart part,
                        const Box &box) const;

  const ExecutableGraph &graph_;
  const RankView view_;
  const Persistent persistent_;
  RankMachine &machine_;
  const GraphSeat *const home_ = nullptr; ///< of a seat that moves
  /// Offsets of its own values in home's tensors; -1 if they are not there.
  const std::vector<int64_t> rowsAtHome_;
  const PersistentLayout layout_;
  /// Offsets that are added to those of the layout.
  int64_t valuesBegin_ = 0, gradientsBegin_ = 0;
  std::unique_ptr<RankExchange> exchange_;
  std::vector<dyna_group> groups_;
  WeightForms forms_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_GRAPHSEAT_H
