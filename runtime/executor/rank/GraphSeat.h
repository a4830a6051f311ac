//===- GraphSeat.h - What a rank has of one graph ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's seat in an executable graph: its view of the model, the tensors of
// its parameters in the arena, and its groups of ranks. Several graphs of one
// model have seats on one machine, each with tensors of its own: one may have
// the masters, others no more than what layer functions read, which is brought
// to them (SwitchCarrier.h). What comes and goes with its phase has another place
// in every step.
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
  /// Its tensors lie from `begin` on in the machine's arena, `layout().bytes`
  /// of them. Graph and machine must outlive it.
  GraphSeat(const ExecutableGraph &graph, Persistent persistent,
            RankMachine &machine, int64_t begin);
  /// Its tensors lie where `moveTo` says, but for values that it reads where they
  /// lie at home (ValuesAtHome.h).
  GraphSeat(const ExecutableGraph &graph, Persistent persistent,
            RankMachine &machine, const GraphSeat &home);
  GraphSeat(const GraphSeat &) = delete;

  /// Makes the groups, or takes those of `groups`, which must outlive the seat. All
  /// ranks do it together, graph by graph.
  Status connect(SharedGroups &groups);

  const ExecutableGraph &graph() const { return graph_; }
  const RankView &view() const { return view_; }
  const Model &model() const { return view_.model(); }
  /// From its `begin`, or from that of its values.
  const PersistentLayout &layout() const { return layout_; }
  bool moves() const { return home_ != nullptr; }
  /// From now on values and gradients lie there in the arena, as they follow each
  /// other in the layout. Of a seat that moves.
  void moveTo(int64_t values, int64_t gradients);
  Persistent persistent() const { return persistent_; }
  /// Null for one rank.
  RankExchange *exchange() const { return exchange_.get(); }
  /// As compiled functions know them.
  const std::vector<dyna_group> &groups() const { return groups_; }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  /// The rows of the parameter that this rank has of a part: all, or with ZeRO
  /// those that it updates (optimizer state, masters beside a copy).
  RowRange partRows(int parameter, ParameterPart part) const;
  int64_t partBytes(int parameter, ParameterPart part) const;
  /// Some of `partRows`, and of each a range of columns: a box of the *logical*
  /// tensor, of rows and columns, that this rank has. Packed in host memory.
  Status readBox(int parameter, ParameterPart part, const Box &box,
                 void *target);
  Status writeBox(int parameter, ParameterPart part, const Box &box,
                  const void *source);
  /// Where the box lies in the arena: for messages of rows.
  StatusOr<Strip> rowsOf(int parameter, ParameterPart part,
                         const Box &box) const;
  /// Of the logical tensor, what this rank has of a part.
  Box partBox(int parameter, ParameterPart part) const;
  Status clearGradients();
  /// Zeroes what lies beside a 0 in the mask, in the rows that this rank updates. Does
  /// nothing if the parameter has no mask, or no such part.
  Status zeroPruned(int parameter, ParameterPart part);
  /// Marks all weights as survivors.
  Status clearMasks();
  /// `update` clears the gradient rows it is given; with ZeRO the rows of other
  /// ranks hold what this rank contributed to them.
  Status clearOtherRows(int layer);

  //===--------------------------------------------------------------------===//
  // Arguments of layer functions; a tensor that is not there is null
  //===--------------------------------------------------------------------===//

  dyna_tensor tensorOf(int parameter, ParameterPart part) const;
  /// In the arena; -1: not there.
  int64_t placeOf(int parameter, ParameterPart part) const;
  /// Where the rows that this rank updates begin in the arena; -1: it updates none.
  int64_t updatedPlace(int parameter, ParameterPart part) const;
  /// The rows that this rank updates.
  dyna_tensor updatedRows(int parameter, ParameterPart part) const;
  /// Tensors that the functions of a layer read. Behind the tensors follow the
  /// forms of the weights, if the layer accepts sparse ones
  /// (runtime/abi/Sparse.h).
  std::vector<dyna_tensor> values(int layer) const;
  std::vector<dyna_tensor> gradients(int layer) const;
  /// Those that this rank updates (or counts in the norm), rows as it does.
  std::vector<dyna_tensor> updatedGradients(int layer, bool countedOnly) const;

  /// In which forms products take weights. All weights of a new seat are dense.
  WeightForms &forms() { return forms_; }
  const WeightForms &forms() const { return forms_; }
  /// Chooses the form of a weight. `mask` has a byte for each element that layer
  /// functions read on this rank, whoever updates them.
  Status chooseForm(int parameter, const uint8_t *mask, double sparseFrom);
  /// Copies the values of a weight that has a sparse form from the dense weight. Does
  /// nothing for other weights. In the order of the stream.
  Status takeSparseValues(int parameter);

private:
  int64_t rowBytes(int parameter, ParameterPart part) const;
  /// Where the box begins in the arena, and how its rows lie there.
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
  /// Of home's tensors, where its own values begin; -1: not there.
  const std::vector<int64_t> rowsAtHome_;
  const PersistentLayout layout_;
  /// What is added to offsets of the layout.
  int64_t valuesBegin_ = 0, gradientsBegin_ = 0;
  std::unique_ptr<RankExchange> exchange_;
  std::vector<dyna_group> groups_;
  WeightForms forms_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_GRAPHSEAT_H
