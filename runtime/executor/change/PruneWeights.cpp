//===- PruneWeights.cpp - Prunes the weights of a rank --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PrunedParameters.h"
#include "runtime/elastic/prune/PruningSchedule.h"
#include "runtime/elastic/prune/SelectSurvivors.h"
#include "runtime/executor/change/PruneUnits.h"
#include "runtime/executor/change/PrunedTensors.h"
#include "runtime/executor/run/Executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dyna {
namespace {

/// The rows of a parameter that a rank updates.
template <typename T> struct UpdatedBox {
  int parameter;
  bool isCounted;   ///< by this rank, and by no other
  WeightBox<T> box; ///< of masters or scores
  WeightBox<T>
      regrowth; ///< scores of the pruned; without values unless weights regrow
};

/// Weights that are compared with each other.
template <typename T> struct WeightGroup {
  std::vector<UpdatedBox<T>> boxes; ///< of this rank
  int64_t weights = 0;              ///< of the model
  Survivors survivors;
  Survivors regrown; ///< of those that were pruned
};

template <typename T> class Pruning {
public:
  /// `seat` is null on a rank without a place.
  Pruning(const Model &model, GraphSeat *seat, RankMachine &machine,
          const PruneOrder &order, SumCounts sum)
      : model_(model), seat_(seat), machine_(machine), order_(order),
        tensors_(machine), sum_(std::move(sum)) {}

  Status run(PruneResult &result) {
    for (const std::vector<int> &parameters :
         prunedGroups(model_, order_.isPerLayer)) {
      DYNA_ASSIGN_OR_RETURN(WeightGroup<T> group, groupOf(parameters));
      DYNA_ASSIGN_OR_RETURN(const bool isSelected, select(group, result));
      if (!isSelected)
        return Status::ok();
      groups_.push_back(std::move(group));
    }
    for (const WeightGroup<T> &group : groups_) {
      result.weights += group.weights;
      result.survivors += group.survivors.count + group.regrown.count;
      result.regrown += group.regrown.count;
      for (const UpdatedBox<T> &box : group.boxes)
        DYNA_RETURN_IF_ERROR(apply(group, box));
    }
    if (seat_)
      DYNA_RETURN_IF_ERROR(seat_->clearScores());
    return machine_.synchronize();
  }

private:
  StatusOr<WeightGroup<T>> groupOf(const std::vector<int> &parameters) {
    WeightGroup<T> group;
    for (int p : parameters) {
      const int64_t first = group.weights;
      group.weights += model_.elements(p);
      if (!seat_ || !seat_->view().holds(p) ||
          seat_->updatedPlace(p, ParameterPart::Master) < 0)
        continue;
      const Box own = seat_->partBox(p, ParameterPart::Mask);
      UpdatedBox<T> &box = group.boxes.emplace_back();
      box.parameter = p;
      box.isCounted = seat_->view().place(p).counts;
      box.box.rows = own.size[0];
      box.box.columns = own.size[1];
      box.box.rowStride = model_.rowElements(p);
      box.box.position =
          first + own.begin[0] * box.box.rowStride + own.begin[1];
      DYNA_RETURN_IF_ERROR(readTensors(box));
    }
    return group;
  }

  Status readTensors(UpdatedBox<T> &box) {
    const int64_t count = box.box.rows * box.box.columns;
    auto placeOf = [&](ParameterPart part) {
      return seat_->updatedPlace(box.parameter, part);
    };
    DYNA_ASSIGN_OR_RETURN(
        box.box.values,
        tensors_.read<T>(placeOf(order_.isByScore ? ParameterPart::Score
                                                  : ParameterPart::Master),
                         count));
    if (order_.regrow == 0)
      return Status::ok();
    DYNA_ASSIGN_OR_RETURN(
        box.box.mask,
        tensors_.read<uint8_t>(placeOf(ParameterPart::Mask), count));
    box.regrowth = box.box;
    box.regrowth.among = 0;
    DYNA_ASSIGN_OR_RETURN(
        box.regrowth.values,
        tensors_.read<T>(placeOf(ParameterPart::Score), count));
    return Status::ok();
  }

  /// Returns how many weights of the group are to grow again: at most those that are
  /// pruned and have a gradient.
  StatusOr<int64_t> regrownOf(const WeightGroup<T> &group, int64_t kept) {
    if (order_.regrow == 0)
      return 0;
    std::vector<int64_t> candidates(1);
    for (const UpdatedBox<T> &one : group.boxes)
      for (int64_t i = 0, all = one.box.rows * one.box.columns;
           one.isCounted && i < all; ++i)
        candidates[0] += one.box.mask[i] == 0 && one.regrowth.values[i] != 0;
    DYNA_RETURN_IF_ERROR(sum_(candidates));
    return std::min<int64_t>(
        candidates[0], std::llround(order_.regrow * static_cast<double>(kept)));
  }

  /// Returns false, on all ranks, if the weights have no order.
  StatusOr<bool> select(WeightGroup<T> &group, PruneResult &result) {
    const int64_t kept = survivorsAt(group.weights, order_.sparsity);
    DYNA_ASSIGN_OR_RETURN(const int64_t regrown, regrownOf(group, kept));
    std::vector<WeightBox<T>> counted, pruned;
    for (const UpdatedBox<T> &box : group.boxes)
      if (box.isCounted) {
        counted.push_back(box.box);
        pruned.push_back(box.regrowth);
      }
    DYNA_ASSIGN_OR_RETURN(const bool isSelected,
                          select(counted, kept - regrown, group.weights,
                                 order_.isByScore, group.survivors, result));
    if (!isSelected || regrown == 0)
      return isSelected;
    return select(pruned, regrown, group.weights, /*isByScore=*/true,
                  group.regrown, result);
  }

  StatusOr<bool> select(const std::vector<WeightBox<T>> &boxes, int64_t kept,
                        int64_t positions, bool isByScore, Survivors &survivors,
                        PruneResult &result) {
    auto selected = selectSurvivors(boxes, kept, positions, sum_);
    if (selected.status().code() == StatusCode::InvalidArgument) {
      result.refusal =
          isByScore ? "pruning: a gradient is no number (NaN), so scores have "
                      "no order: go on from an earlier checkpoint"
                    : selected.status().message();
      return false;
    }
    DYNA_RETURN_IF_ERROR(selected.status());
    survivors = *selected;
    return true;
  }

  Status apply(const WeightGroup<T> &group, const UpdatedBox<T> &one) {
    const int p = one.parameter;
    const int64_t place = seat_->updatedPlace(p, ParameterPart::Mask);
    const int64_t count = one.box.rows * one.box.columns;
    if (machine_.device().sharesMemory() && !one.box.mask) {
      markSurvivors(one.box, group.survivors,
                    static_cast<uint8_t *>(machine_.persistent(place)));
    } else {
      const std::vector<uint8_t> mask = maskOf(group, one);
      DYNA_RETURN_IF_ERROR(machine_.toDevice(place, mask.data(), count));
      DYNA_RETURN_IF_ERROR(machine_.synchronize());
    }
    return zeroPrunedState(*seat_, p);
  }

  static std::vector<uint8_t> maskOf(const WeightGroup<T> &group,
                                     const UpdatedBox<T> &one) {
    std::vector<uint8_t> mask(
        static_cast<size_t>(one.box.rows * one.box.columns));
    markSurvivors(one.box, group.survivors, mask.data());
    if (group.regrown.count == 0)
      return mask;
    std::vector<uint8_t> regrown(mask.size());
    markSurvivors(one.regrowth, group.regrown, regrown.data());
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] |= regrown[i];
    return mask;
  }

  const Model &model_;
  GraphSeat *const seat_;
  RankMachine &machine_;
  const PruneOrder &order_;
  HostTensors tensors_;
  const SumCounts sum_;
  std::vector<WeightGroup<T>> groups_;
};

} // namespace

Status Executor::addSurvivors(std::vector<double> &counts) {
  if (!hasPlace())
    return Status::ok();
  const GraphSeat &home = seat();
  std::vector<uint8_t> mask;
  for (int p = 0; p < home.model().parameters(); ++p) {
    if (!home.model().hasMask(p) || !home.view().holds(p) ||
        !home.view().place(p).counts)
      continue;
    const int64_t place = home.updatedPlace(p, ParameterPart::Mask);
    if (place < 0)
      continue;
    const int64_t count = home.partBox(p, ParameterPart::Mask).volume();
    mask.resize(static_cast<size_t>(count));
    DYNA_RETURN_IF_ERROR(machine_.toHost(mask.data(), place, count));
    DYNA_RETURN_IF_ERROR(machine_.synchronize());
    counts[static_cast<size_t>(p)] += static_cast<double>(
        count - std::count(mask.begin(), mask.end(), uint8_t{0}));
  }
  return Status::ok();
}

Status Executor::prune(const Model &model, const PruneOrder &order,
                       PruneResult &result) {
  if (!launched_.empty())
    return Status::internal("weights are pruned while a step is in flight");
  const auto begin = std::chrono::steady_clock::now();
  const Moment before = options_.trace ? now() : Moment();
  GraphSeat *const home = hasPlace() ? &seat() : nullptr;
  // Counts are far below 2^53, so doubles hold them exactly.
  auto sum = [&](std::vector<int64_t> &counts) -> Status {
    std::vector<double> values(counts.begin(), counts.end());
    DYNA_RETURN_IF_ERROR(sumOverRanks(values));
    for (size_t i = 0; i < values.size(); ++i)
      counts[i] = std::llround(values[i]);
    return Status::ok();
  };
  auto pruneAs = [&](auto one) {
    using T = decltype(one);
    return order.structure == PrunedStructure::Element
               ? Pruning<T>(model, home, machine_, order, sum).run(result)
               : pruneUnits<T>(model, home, machine_, order, sum, result);
  };
  const Status status =
      model.masterType() == plan::F64 ? pruneAs(double()) : pruneAs(float());
  const auto end = std::chrono::steady_clock::now();
  result.seconds = std::chrono::duration<double>(end - begin).count();
  if (options_.trace)
    traceBetweenSteps("PRUNE", "prune", order.step, before);
  return status;
}

} // namespace dyna
