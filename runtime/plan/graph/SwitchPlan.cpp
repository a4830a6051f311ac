//===- SwitchPlan.cpp - Describes and verifies the plan of a switch -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/SwitchPlan.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <tuple>

namespace dyna {
namespace {

Status refuse(int rule, const std::string &what) {
  return Status::invalidArgument(formatText("switch: %s (S%d)", what, rule));
}

/// A transfer in its bucket.
struct Step {
  int bucket = -1;
  const SwitchTransfer *transfer = nullptr;

  std::string describe() const {
    return formatText("tensor %d %s from rank %d to rank %d in bucket %d",
                      transfer->tensor, transfer->box.describe(),
                      transfer->from, transfer->to, bucket);
  }
};

template <typename AnyBox> bool isBox(const AnyBox &box) {
  return box.begin.size() == 2 && box.size.size() == 2 && box.begin[0] >= 0 &&
         box.begin[1] >= 0 && box.size[0] >= 0 && box.size[1] >= 0;
}

template <typename AnyBox> int64_t rowEnd(const AnyBox &box) {
  return box.begin[0] + box.size[0];
}
template <typename AnyBox> int64_t columnEnd(const AnyBox &box) {
  return box.begin[1] + box.size[1];
}

template <typename AnyBox> bool meet(const AnyBox &a, const AnyBox &b) {
  return a.begin[0] < rowEnd(b) && b.begin[0] < rowEnd(a) &&
         a.begin[1] < columnEnd(b) && b.begin[1] < columnEnd(a);
}

template <typename AnyBox>
bool holds(const AnyBox &outer, const MatrixBox &inner) {
  return outer.begin[0] <= inner.begin[0] && outer.begin[1] <= inner.begin[1] &&
         rowEnd(inner) <= rowEnd(outer) && columnEnd(inner) <= columnEnd(outer);
}

/// Returns two boxes that overlap, or the end twice. Sweeps over the rows, and
/// looks only at boxes that begin above and end below.
std::pair<const MatrixBox *, const MatrixBox *>
findOverlap(std::vector<const MatrixBox *> boxes) {
  std::sort(boxes.begin(), boxes.end(),
            [](const MatrixBox *a, const MatrixBox *b) {
              return a->begin < b->begin;
            });
  std::vector<const MatrixBox *> open;
  for (const MatrixBox *box : boxes) {
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const MatrixBox *other) {
                                return rowEnd(*other) <= box->begin[0];
                              }),
               open.end());
    for (const MatrixBox *other : open)
      if (meet(*other, *box))
        return {other, box};
    open.push_back(box);
  }
  return {nullptr, nullptr};
}

/// Elements that are in any of the boxes.
int64_t unionVolume(std::vector<const MatrixBox *> boxes) {
  auto less = [](const MatrixBox *a, const MatrixBox *b) {
    return std::tie(a->begin, a->size) < std::tie(b->begin, b->size);
  };
  std::sort(boxes.begin(), boxes.end(), less);
  boxes.erase(std::unique(boxes.begin(), boxes.end(),
                          [](const MatrixBox *a, const MatrixBox *b) {
                            return *a == *b;
                          }),
              boxes.end());
  int64_t volume = 0;
  if (!findOverlap(boxes).first) {
    for (const MatrixBox *box : boxes)
      volume += box->volume();
    return volume;
  }
  std::vector<int64_t> cuts;
  for (const MatrixBox *box : boxes)
    cuts.insert(cuts.end(), {box->begin[0], rowEnd(*box)});
  std::sort(cuts.begin(), cuts.end());
  std::sort(boxes.begin(), boxes.end(),
            [](const MatrixBox *a, const MatrixBox *b) {
              return a->begin[1] < b->begin[1];
            });
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    int64_t covered = 0, end = 0;
    for (const MatrixBox *box : boxes)
      if (box->begin[0] <= cuts[i] && cuts[i] < rowEnd(*box)) {
        int64_t begin = std::max(end, box->begin[1]);
        end = std::max(end, columnEnd(*box));
        covered += end - begin;
      }
    volume += covered * (cuts[i + 1] - cuts[i]);
  }
  return volume;
}

Status checkTensors(const std::vector<SwitchTensor> &tensors, int ranks) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const SwitchTensor &tensor = tensors[t];
    if (tensor.elementBytes < 1)
      return refuse(1, formatText("tensor %d has elements of %d bytes", t,
                                  tensor.elementBytes));
    for (const auto *boxes : {&tensor.from, &tensor.to})
      for (const RankBox &one : *boxes) {
        if (one.rank < 0 || one.rank >= ranks)
          return refuse(1, formatText("tensor %d lies on rank %d, but there "
                                      "are %d",
                                      t, one.rank, ranks));
        if (!isBox(one.box))
          return refuse(1, formatText("tensor %d has %s on rank %d, but boxes "
                                      "are rows and columns",
                                      t, one.box.describe(), one.rank));
      }
  }
  return Status::ok();
}

/// The transfers of one tensor, and where it lies.
class TensorCheck {
public:
  TensorCheck(int index, const SwitchTensor &tensor, const SwitchPlan &plan)
      : index_(index), tensor_(tensor), plan_(plan) {}

  Status check(const std::vector<Step> &steps) {
    sortBoxes(tensor_.from, from_);
    sortBoxes(tensor_.to, to_);
    DYNA_RETURN_IF_ERROR(checkNeeds());
    steps_ = steps;
    std::sort(steps_.begin(), steps_.end(), [](const Step &a, const Step &b) {
      return a.transfer->to < b.transfer->to;
    });
    used_.assign(steps_.size(), false);
    for (const Step &step : steps_)
      DYNA_RETURN_IF_ERROR(checkStep(step));
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].transfer->target == SwitchPlace::Passing && !used_[i])
        return refuse(4, steps_[i].describe() + " is not handed on");
    return tensor_.delivery == Delivery::Once ? checkOnce() : checkAll();
  }

private:
  using Boxes = std::vector<const RankBox *>;

  /// Sorts boxes by rank, without empty ones.
  static void sortBoxes(const std::vector<RankBox> &boxes, Boxes &sorted) {
    for (const RankBox &one : boxes)
      if (!one.box.isEmpty())
        sorted.push_back(&one);
    std::sort(
        sorted.begin(), sorted.end(),
        [](const RankBox *a, const RankBox *b) { return a->rank < b->rank; });
  }

  static bool hasAround(const Boxes &boxes, int rank, const MatrixBox &inner) {
    auto one = std::lower_bound(
        boxes.begin(), boxes.end(), rank,
        [](const RankBox *box, int other) { return box->rank < other; });
    for (; one != boxes.end() && (*one)->rank == rank; ++one)
      if (holds((*one)->box, inner))
        return true;
    return false;
  }

  /// Returns the first step that brings data to the rank.
  size_t firstTo(int rank) const {
    return std::lower_bound(steps_.begin(), steps_.end(), rank,
                            [](const Step &step, int other) {
                              return step.transfer->to < other;
                            }) -
           steps_.begin();
  }

  Status checkNeeds() const {
    for (size_t i = 0; i < to_.size(); ++i)
      for (size_t j = i + 1; j < to_.size() && to_[j]->rank == to_[i]->rank;
           ++j)
        if (meet(to_[i]->box, to_[j]->box))
          return refuse(1,
                        formatText("tensor %d: rank %d needs %s and %s, "
                                   "which overlap",
                                   index_, to_[i]->rank, to_[i]->box.describe(),
                                   to_[j]->box.describe()));
    return Status::ok();
  }

  bool comesAfter(int bucket, int other) const {
    while (bucket > other)
      bucket = plan_.buckets[bucket].after;
    return bucket == other;
  }

  /// Returns true if an earlier step brought the sender what it sends; marks
  /// that step.
  bool wasBrought(const Step &step) {
    const SwitchTransfer &sent = *step.transfer;
    const int after = plan_.buckets[step.bucket].after;
    bool found = false;
    for (size_t i = firstTo(sent.from);
         i < steps_.size() && steps_[i].transfer->to == sent.from; ++i) {
      const Step &brought = steps_[i];
      if (brought.transfer->target != sent.source || brought.bucket > after ||
          !holds(brought.transfer->box, sent.box))
        continue;
      if (sent.source == SwitchPlace::Passing
              ? brought.bucket == after
              : comesAfter(after, brought.bucket))
        found = used_[i] = true;
    }
    return found;
  }

  Status checkStep(const Step &step) {
    const SwitchTransfer &sent = *step.transfer;
    if (sent.source == SwitchPlace::Old ? !hasAround(from_, sent.from, sent.box)
                                        : !wasBrought(step))
      return refuse(3, step.describe() + ", but rank " +
                           std::to_string(sent.from) + " does not have it");
    if (sent.target == SwitchPlace::New && !hasAround(to_, sent.to, sent.box))
      return refuse(4, step.describe() + ", but rank " +
                           std::to_string(sent.to) + " does not need it");
    return Status::ok();
  }

  /// Checks that the boxes cover what is needed. All of them are inside of it.
  Status checkCover(const std::vector<const MatrixBox *> &arrived,
                    int64_t needed, const std::string &whom) const {
    if (auto [one, other] = findOverlap(arrived); one)
      return refuse(5, formatText("tensor %d: %s arrives twice %s", index_,
                                  intersect(*one, *other).describe(), whom));
    int64_t volume = 0;
    for (const MatrixBox *box : arrived)
      volume += box->volume();
    if (volume == needed)
      return Status::ok();
    return refuse(5, formatText("tensor %d: %d of %d elements arrive %s",
                                index_, volume, needed, whom));
  }

  Status checkAll() const {
    for (size_t i = 0; i < to_.size();) {
      const int rank = to_[i]->rank;
      int64_t needed = 0;
      for (; i < to_.size() && to_[i]->rank == rank; ++i)
        needed += to_[i]->box.volume();
      std::vector<const MatrixBox *> arrived;
      for (size_t s = firstTo(rank);
           s < steps_.size() && steps_[s].transfer->to == rank; ++s)
        if (steps_[s].transfer->target == SwitchPlace::New)
          arrived.push_back(&steps_[s].transfer->box);
      DYNA_RETURN_IF_ERROR(
          checkCover(arrived, needed, formatText("at rank %d", rank)));
    }
    return Status::ok();
  }

  Status checkOnce() const {
    std::vector<const MatrixBox *> arrived, needed;
    std::vector<MatrixBox> boxes;
    boxes.reserve(to_.size());
    for (const Step &step : steps_)
      if (step.transfer->target == SwitchPlace::New)
        arrived.push_back(&step.transfer->box);
    for (const RankBox *one : to_)
      needed.push_back(&boxes.emplace_back(one->box));
    return checkCover(arrived, unionVolume(needed), "at all ranks together");
  }

  const int index_;
  const SwitchTensor &tensor_;
  const SwitchPlan &plan_;
  Boxes from_, to_;         ///< by rank
  std::vector<Step> steps_; ///< by receiver
  std::vector<bool> used_;  ///< of the steps, by later ones
};

} // namespace

Status checkSwitch(const std::vector<SwitchTensor> &tensors, int ranks,
                   const SwitchPlan &plan) {
  DYNA_RETURN_IF_ERROR(checkTensors(tensors, ranks));
  std::vector<std::vector<Step>> steps(tensors.size());
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    const SwitchBucket &bucket = plan.buckets[b];
    const int index = static_cast<int>(b);
    if (bucket.after < -1 || bucket.after >= index)
      return refuse(2, formatText("bucket %d comes after bucket %d", index,
                                  bucket.after));
    for (const SwitchTransfer &one : bucket.transfers) {
      if (one.tensor < 0 || static_cast<size_t>(one.tensor) >= tensors.size())
        return refuse(1, formatText("bucket %d moves tensor %d, but there are "
                                    "%d",
                                    index, one.tensor, tensors.size()));
      for (int rank : {one.from, one.to})
        if (rank < 0 || rank >= ranks)
          return refuse(1, formatText("bucket %d moves tensor %d by rank %d, "
                                      "but there are %d",
                                      index, one.tensor, rank, ranks));
      if (!isBox(one.box) || one.box.isEmpty())
        return refuse(1, formatText("bucket %d moves %s of tensor %d", index,
                                    one.box.describe(), one.tensor));
      if (one.target == SwitchPlace::Old)
        return refuse(4, Step{index, &one}.describe() +
                             " would be written to where it was before");
      steps[one.tensor].push_back({index, &one});
    }
  }
  for (size_t t = 0; t < tensors.size(); ++t)
    DYNA_RETURN_IF_ERROR(
        TensorCheck(static_cast<int>(t), tensors[t], plan).check(steps[t]));
  return Status::ok();
}

} // namespace dyna
