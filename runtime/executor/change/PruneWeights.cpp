//===- PruneWeights.cpp - Prunes the weights of a rank --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PrunedParameters.h"
#include "runtime/elastic/prune/PruningSchedule.h"
#include "runtime/elastic/prune/SelectSurvivors.h"
#include "runtime/executor/run/Executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dyna {
namespace {

/// Masters of a rank in memory that the host reads: in the arena, or copied from there.
template <typename T> class HostMasters {
public:
  explicit HostMasters(RankMachine &machine) : machine_(machine) {}

  StatusOr<const T *> read(int64_t place, int64_t count) {
    if (machine_.device().sharesMemory())
      return static_cast<const T *>(machine_.persistent(place));
    std::vector<T> &copy = copies_.emplace_back(static_cast<size_t>(count));
    DYNA_RETURN_IF_ERROR(machine_.toHost(
        copy.data(), place, count * static_cast<int64_t>(sizeof(T))));
    DYNA_RETURN_IF_ERROR(machine_.synchronize());
    return static_cast<const T *>(copy.data());
  }

private:
  RankMachine &machine_;
  std::deque<std::vector<T>> copies_;
};

/// The rows of a parameter that a rank updates.
template <typename T> struct UpdatedBox {
  int parameter;
  bool isCounted; ///< by this rank, and by no other
  WeightBox<T> box;
};

/// Weights that are compared with each other.
template <typename T> struct WeightGroup {
  std::vector<UpdatedBox<T>> boxes; ///< of this rank
  int64_t weights = 0;              ///< of the model
  Survivors survivors;
};

template <typename T> class Pruning {
public:
  /// `seat` is null on a rank without a place.
  Pruning(const Model &model, GraphSeat *seat, RankMachine &machine,
          SumCounts sum)
      : model_(model), seat_(seat), machine_(machine), masters_(machine),
        sum_(std::move(sum)) {}

  Status run(const PruneOrder &order, PruneResult &result) {
    for (const std::vector<int> &parameters :
         prunedGroups(model_, order.isPerLayer)) {
      DYNA_ASSIGN_OR_RETURN(WeightGroup<T> group, groupOf(parameters));
      DYNA_ASSIGN_OR_RETURN(const bool isSelected,
                            select(group, order.sparsity, result));
      if (!isSelected)
        return Status::ok();
      groups_.push_back(std::move(group));
    }
    for (const WeightGroup<T> &group : groups_) {
      result.weights += group.weights;
      result.survivors += group.survivors.count;
      for (const UpdatedBox<T> &box : group.boxes)
        DYNA_RETURN_IF_ERROR(apply(group.survivors, box));
    }
    return machine_.synchronize();
  }

private:
  StatusOr<WeightGroup<T>> groupOf(const std::vector<int> &parameters) {
    WeightGroup<T> group;
    for (int p : parameters) {
      const int64_t first = group.weights;
      group.weights += model_.elements(p);
      if (!seat_ || !seat_->view().holds(p))
        continue;
      const int64_t place = seat_->updatedPlace(p, ParameterPart::Master);
      if (place < 0)
        continue;
      const Box own = seat_->partBox(p, ParameterPart::Mask);
      UpdatedBox<T> &box = group.boxes.emplace_back();
      box.parameter = p;
      box.isCounted = seat_->view().place(p).counts;
      DYNA_ASSIGN_OR_RETURN(box.box.values, masters_.read(place, own.volume()));
      box.box.rows = own.size[0];
      box.box.columns = own.size[1];
      box.box.rowStride = model_.rowElements(p);
      box.box.position =
          first + own.begin[0] * box.box.rowStride + own.begin[1];
    }
    return group;
  }

  /// Returns false, on all ranks, if the weights have no order.
  StatusOr<bool> select(WeightGroup<T> &group, double sparsity,
                        PruneResult &result) {
    std::vector<WeightBox<T>> counted;
    for (const UpdatedBox<T> &box : group.boxes)
      if (box.isCounted)
        counted.push_back(box.box);
    auto survivors = selectSurvivors(
        counted, survivorsAt(group.weights, sparsity), group.weights, sum_);
    if (survivors.status().code() == StatusCode::InvalidArgument) {
      result.refusal = survivors.status().message();
      return false;
    }
    DYNA_RETURN_IF_ERROR(survivors.status());
    group.survivors = *survivors;
    return true;
  }

  Status apply(const Survivors &survivors, const UpdatedBox<T> &one) {
    const int p = one.parameter;
    const int64_t place = seat_->updatedPlace(p, ParameterPart::Mask);
    if (machine_.device().sharesMemory()) {
      markSurvivors(one.box, survivors,
                    static_cast<uint8_t *>(machine_.persistent(place)));
    } else {
      const int64_t count = one.box.rows * one.box.columns;
      std::vector<uint8_t> mask(static_cast<size_t>(count));
      markSurvivors(one.box, survivors, mask.data());
      DYNA_RETURN_IF_ERROR(machine_.toDevice(place, mask.data(), count));
      DYNA_RETURN_IF_ERROR(machine_.synchronize());
    }
    for (ParameterPart part :
         {ParameterPart::Master, ParameterPart::Copy,
          ParameterPart::FirstMoment, ParameterPart::SecondMoment})
      DYNA_RETURN_IF_ERROR(seat_->zeroPruned(p, part));
    return Status::ok();
  }

  const Model &model_;
  GraphSeat *const seat_;
  RankMachine &machine_;
  HostMasters<T> masters_;
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
  const Status status =
      model.masterType() == plan::F64
          ? Pruning<double>(model, home, machine_, sum).run(order, result)
          : Pruning<float>(model, home, machine_, sum).run(order, result);
  const auto end = std::chrono::steady_clock::now();
  result.seconds = std::chrono::duration<double>(end - begin).count();
  if (options_.trace)
    traceBetweenSteps("PRUNE", "prune", order.step, before);
  return status;
}

} // namespace dyna
