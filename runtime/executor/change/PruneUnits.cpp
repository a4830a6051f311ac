//===- PruneUnits.cpp - Prunes heads or channels of a rank ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/change/PruneUnits.h"

#include "runtime/elastic/prune/PruningSchedule.h"
#include "runtime/elastic/prune/SelectUnits.h"
#include "runtime/executor/change/PrunedTensors.h"
#include "runtime/executor/run/RankTeam.h"

#include <algorithm>

namespace dyna {
namespace {

/// Lists of units that are compared with each other.
struct ComparedLists {
  std::vector<UnitList> lists;
  std::vector<int64_t> firstUnits; ///< of each list
  int64_t units = 0, mostWeights = 0;
  std::vector<uint8_t> survives; ///< by unit

  void add(const Model &model, UnitList list) {
    firstUnits.push_back(units);
    units += list.count;
    mostWeights = std::max(mostWeights, list.weights(model));
    lists.push_back(std::move(list));
  }
};

template <typename T> class UnitPruning {
public:
  UnitPruning(const Model &model, GraphSeat *seat, RankMachine &machine,
              const PruneOrder &order, const SumCounts &sum)
      : model_(model), seat_(seat), machine_(machine), order_(order), sum_(sum),
        tensors_(machine) {}

  Status run(PruneResult &result) {
    DYNA_ASSIGN_OR_RETURN(auto lists, prunedUnits(model_, order_.structure));
    std::vector<ComparedLists> groups;
    for (UnitList &list : lists) {
      const bool isNew =
          groups.empty() ||
          (order_.isPerLayer && groups.back().lists.back().layer != list.layer);
      if (isNew)
        groups.emplace_back();
      groups.back().add(model_, std::move(list));
    }
    for (ComparedLists &group : groups) {
      DYNA_ASSIGN_OR_RETURN(const bool isSelected, select(group, result));
      if (!isSelected)
        return Status::ok();
    }
    for (const ComparedLists &group : groups)
      DYNA_RETURN_IF_ERROR(apply(group, result));
    if (seat_)
      DYNA_RETURN_IF_ERROR(seat_->clearScores());
    return machine_.synchronize();
  }

private:
  /// Calls a function with the box of each part that this rank updates.
  template <typename Function>
  Status forEachBox(const ComparedLists &group, const Function &function) {
    for (size_t l = 0; seat_ && l < group.lists.size(); ++l)
      for (const UnitList::Part &part : group.lists[l].parts) {
        const int p = part.parameter;
        if (!seat_->view().holds(p) ||
            seat_->updatedPlace(p, ParameterPart::Master) < 0)
          continue;
        const Box own = seat_->partBox(p, ParameterPart::Mask);
        UnitBox<T> box;
        box.box.rows = own.size[0];
        box.box.columns = own.size[1];
        box.dimension = part.dimension;
        box.first = own.begin[part.dimension];
        box.width = part.width;
        box.unit = group.firstUnits[l];
        DYNA_RETURN_IF_ERROR(function(p, box));
      }
    return Status::ok();
  }

  /// Returns false, on all ranks, if the units have no order.
  StatusOr<bool> select(ComparedLists &group, PruneResult &result) {
    const ParameterPart part =
        order_.isByScore ? ParameterPart::Score : ParameterPart::Master;
    std::vector<UnitBox<T>> counted;
    DYNA_RETURN_IF_ERROR(
        forEachBox(group, [&](int p, UnitBox<T> &box) -> Status {
          if (!seat_->view().place(p).counts)
            return Status::ok();
          DYNA_ASSIGN_OR_RETURN(
              box.box.values,
              tensors_.template read<T>(seat_->updatedPlace(p, part),
                                        box.box.rows * box.box.columns));
          counted.push_back(box);
          return Status::ok();
        }));
    auto selected = selectUnits(counted, group.units,
                                survivorsAt(group.units, order_.sparsity),
                                group.mostWeights, sum_);
    if (selected.status().code() == StatusCode::InvalidArgument) {
      result.refusal = selected.status().message();
      return false;
    }
    DYNA_RETURN_IF_ERROR(selected.status());
    group.survives = std::move(*selected);
    return true;
  }

  Status apply(const ComparedLists &group, PruneResult &result) {
    for (size_t l = 0; l < group.lists.size(); ++l) {
      const UnitList &list = group.lists[l];
      const auto first = group.survives.begin() + group.firstUnits[l];
      const int64_t alive = std::count(first, first + list.count, uint8_t{1});
      result.units += list.count;
      result.survivingUnits += alive;
      result.weights += list.count * list.weights(model_);
      result.survivors += alive * list.weights(model_);
    }
    return forEachBox(group, [&](int p, const UnitBox<T> &box) -> Status {
      std::vector<uint8_t> mask(
          static_cast<size_t>(box.box.rows * box.box.columns));
      for (int64_t row = 0; row < box.box.rows; ++row)
        for (int64_t column = 0; column < box.box.columns; ++column)
          mask[static_cast<size_t>(row * box.box.columns + column)] =
              group.survives[static_cast<size_t>(box.unitOf(row, column))];
      DYNA_RETURN_IF_ERROR(
          machine_.toDevice(seat_->updatedPlace(p, ParameterPart::Mask),
                            mask.data(), static_cast<int64_t>(mask.size())));
      DYNA_RETURN_IF_ERROR(machine_.synchronize());
      return zeroPrunedState(*seat_, p);
    });
  }

  const Model &model_;
  GraphSeat *const seat_;
  RankMachine &machine_;
  const PruneOrder &order_;
  const SumCounts &sum_;
  HostTensors tensors_;
};

/// Returns the share of a layer's work that is left. `alive` has the share of the weights of
/// each parameter that are not pruned. Matrices count by their elements, and attentions by
/// their heads, all alike.
FormulaShare shareOf(const Model &model, int layer, PrunedStructure structure,
                     const std::vector<double> &alive) {
  double all = 0, left = 0, attentions = 0, heads = 0;
  for (int p : model.layer(layer).parameters())
    if (model.parameter(p).shape_size() > 1) {
      const auto elements = static_cast<double>(model.elements(p));
      all += elements;
      left += elements * alive[p];
    }
  if (structure == PrunedStructure::Head)
    for (const plan::WeightGroups &groups : model.kind(layer).weight_groups())
      if (groups.kind() == plan::WeightGroups::HEAD) {
        attentions += 1;
        heads +=
            alive[model.layer(layer).parameters(groups.parts(0).parameter())];
      }
  FormulaShare share;
  if (all > 0)
    share.products = left / all;
  if (attentions > 0)
    share.attention = heads / attentions;
  return share;
}

} // namespace

Status RankTeam::countUnits(PrunedStructure structure) {
  if (structure == PrunedStructure::Element)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(std::vector<double> alive, survivorsByParameter());
  for (int p = 0; p < model().parameters(); ++p)
    alive[p] = model().hasMask(p)
                   ? alive[p] / static_cast<double>(model().elements(p))
                   : 1;
  std::vector<FormulaShare> shares;
  for (int layer = 0; layer < model().layers(); ++layer)
    shares.push_back(shareOf(model(), layer, structure, alive));
  for (Rank &rank : ranks_)
    rank.executor->setFormulaShares(shares);
  return Status::ok();
}

template <typename T>
Status pruneUnits(const Model &model, GraphSeat *seat, RankMachine &machine,
                  const PruneOrder &order, const SumCounts &sum,
                  PruneResult &result) {
  return UnitPruning<T>(model, seat, machine, order, sum).run(result);
}

template Status pruneUnits<float>(const Model &, GraphSeat *, RankMachine &,
                                  const PruneOrder &, const SumCounts &,
                                  PruneResult &);
template Status pruneUnits<double>(const Model &, GraphSeat *, RankMachine &,
                                   const PruneOrder &, const SumCounts &,
                                   PruneResult &);

} // namespace dyna
