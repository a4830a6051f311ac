//===- Lots.cpp - Groups elements with equal routes -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/Lots.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace dyna::switches {
namespace {

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

uint64_t mix(uint64_t hash, int64_t value) {
  return (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3u;
}

/// Returns a hash of the boxes of a tensor before and after the switch.
uint64_t hashOf(const SwitchTensor &tensor) {
  uint64_t hash = mix(0xcbf29ce484222325u, tensor.elementBytes);
  hash = mix(hash, static_cast<int64_t>(tensor.delivery));
  for (const auto *boxes : {&tensor.from, &tensor.to}) {
    hash = mix(hash, -1);
    for (const RankBox &one : *boxes) {
      hash = mix(hash, one.rank);
      for (size_t d = 0; d < one.box.begin.size(); ++d)
        hash = mix(mix(hash, one.box.begin[d]), one.box.size[d]);
    }
  }
  return hash;
}

bool sameBoxes(const std::vector<RankBox> &a, const std::vector<RankBox> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RankBox &one, const RankBox &other) {
                      return one.rank == other.rank &&
                             one.box.begin == other.box.begin &&
                             one.box.size == other.box.size;
                    });
}

bool lieAlike(const SwitchTensor &a, const SwitchTensor &b) {
  return a.elementBytes == b.elementBytes && a.delivery == b.delivery &&
         sameBoxes(a.from, b.from) && sameBoxes(a.to, b.to);
}

void findClasses(const std::vector<SwitchTensor> &tensors, Lots &result) {
  std::unordered_map<uint64_t, std::vector<int>> known;
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::vector<int> &candidates = known[hashOf(tensors[t])];
    auto same =
        std::find_if(candidates.begin(), candidates.end(), [&](int candidate) {
          int first = result.classes[candidate].tensors.front();
          return lieAlike(tensors[first], tensors[t]);
        });
    int index = same == candidates.end()
                    ? static_cast<int>(result.classes.size())
                    : *same;
    if (same == candidates.end()) {
      candidates.push_back(index);
      result.classes.emplace_back();
    }
    result.classes[index].tensors.push_back(static_cast<int>(t));
    result.classOf.push_back(index);
  }
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

/// Stores each list of numbers once. Equal lists have equal indices.
class Lists {
public:
  int add(std::vector<int> list) {
    auto [at, isNew] =
        indices_.insert({std::move(list), static_cast<int>(lists_.size())});
    if (isNew)
      lists_.push_back(&at->first);
    return at->second;
  }
  const std::vector<int> &operator[](int index) const { return *lists_[index]; }
  int size() const { return static_cast<int>(lists_.size()); }

private:
  std::map<std::vector<int>, int> indices_;
  std::vector<const std::vector<int> *> lists_;
};

/// A box, with all ranks that have it.
struct SharedBox {
  const Box *box;
  std::vector<int> ranks;
};

std::vector<SharedBox> shareBoxes(const std::vector<RankBox> &boxes) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, size_t> indices;
  std::vector<SharedBox> shared;
  for (const auto &[rank, box] : boxes) {
    if (box.isEmpty())
      continue;
    auto [at, isNew] =
        indices.insert({{box.begin[0], box.begin[1], box.size[0], box.size[1]},
                        shared.size()});
    if (isNew)
      shared.push_back({&box, {}});
    shared[at->second].ranks.push_back(rank);
  }
  return shared;
}

std::vector<int64_t> cutsAlong(const std::vector<SharedBox> &from,
                               const std::vector<SharedBox> &to, int dim) {
  std::vector<int64_t> cuts;
  for (const auto *boxes : {&from, &to})
    for (const SharedBox &one : *boxes)
      cuts.insert(cuts.end(), {one.box->begin[dim],
                               one.box->begin[dim] + one.box->size[dim]});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

size_t indexOf(const std::vector<int64_t> &cuts, int64_t value) {
  return std::lower_bound(cuts.begin(), cuts.end(), value) - cuts.begin();
}

std::vector<int> ranksOf(const std::vector<SharedBox> &boxes,
                         const std::vector<int> &indices) {
  std::vector<int> ranks;
  for (int index : indices)
    ranks.insert(ranks.end(), boxes[index].ranks.begin(),
                 boxes[index].ranks.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// Grid of the fields into which the edges of all boxes cut a class of tensors.
/// Fields of one kind lie in the same boxes.
class Grid {
public:
  explicit Grid(const SwitchTensor &tensor)
      : from_(shareBoxes(tensor.from)), to_(shareBoxes(tensor.to)),
        rows_(cutsAlong(from_, to_, 0)), columns_(cutsAlong(from_, to_, 1)) {
    if (rows_.empty())
      return;
    width_ = columns_.size() - 1;
    std::vector<std::vector<int>> around((rows_.size() - 1) * width_);
    mark(from_, 0, around);
    mark(to_, static_cast<int>(from_.size()), around);
    for (std::vector<int> &field : around)
      fields_.push_back(kinds_.add(std::move(field)));
  }

  /// Joins neighbouring fields of one kind into cells: first along rows, then
  /// equal rows. `lotOf` has the lot of a kind, or -1 if no rank needs it.
  std::vector<Cell> cells(const std::vector<int> &lotOf) const {
    std::vector<Cell> cells;
    // By column, the cell that ends there in the row above.
    std::vector<int> above(width_, -1);
    for (size_t r = 0; r + 1 < rows_.size(); ++r) {
      std::vector<int> row(width_, -1);
      for (size_t c = 0; c < width_;) {
        const int kind = fields_[r * width_ + c], lot = lotOf[kind];
        size_t end = c + 1;
        while (end < width_ && fields_[r * width_ + end] == kind)
          ++end;
        MatrixBox box = {
            {rows_[r], columns_[c]},
            {rows_[r + 1] - rows_[r], columns_[end] - columns_[c]}};
        if (int upper = above[c]; lot >= 0 && upper >= 0 &&
                                  fields_[(r - 1) * width_ + c] == kind &&
                                  cells[upper].box.begin[1] == box.begin[1] &&
                                  cells[upper].box.size[1] == box.size[1]) {
          cells[upper].box.size[0] += box.size[0];
          row[c] = upper;
        } else if (lot >= 0) {
          row[c] = static_cast<int>(cells.size());
          cells.push_back({box, lot});
        }
        c = end;
      }
      above = std::move(row);
    }
    return cells;
  }

  int kinds() const { return kinds_.size(); }
  std::vector<int> holders(int kind) const { return ranks(kind, true); }
  std::vector<int> needers(int kind) const { return ranks(kind, false); }

  /// Returns a field of this kind, for messages.
  Box example(int kind) const {
    size_t at =
        std::find(fields_.begin(), fields_.end(), kind) - fields_.begin();
    size_t r = at / width_, c = at % width_;
    return {{rows_[r], columns_[c]},
            {rows_[r + 1] - rows_[r], columns_[c + 1] - columns_[c]}};
  }

private:
  void mark(const std::vector<SharedBox> &boxes, int first,
            std::vector<std::vector<int>> &around) const {
    for (size_t i = 0; i < boxes.size(); ++i) {
      const Box &box = *boxes[i].box;
      size_t rowEnd = indexOf(rows_, box.begin[0] + box.size[0]);
      size_t columnEnd = indexOf(columns_, box.begin[1] + box.size[1]);
      for (size_t r = indexOf(rows_, box.begin[0]); r < rowEnd; ++r)
        for (size_t c = indexOf(columns_, box.begin[1]); c < columnEnd; ++c)
          around[r * width_ + c].push_back(first + static_cast<int>(i));
    }
  }

  std::vector<int> ranks(int kind, bool isFrom) const {
    const int count = static_cast<int>(from_.size());
    std::vector<int> indices;
    for (int index : kinds_[kind])
      if ((index < count) == isFrom)
        indices.push_back(isFrom ? index : index - count);
    return ranksOf(isFrom ? from_ : to_, indices);
  }

  std::vector<SharedBox> from_, to_;
  std::vector<int64_t> rows_, columns_;
  size_t width_ = 0;
  std::vector<int> fields_; ///< kinds, row by row
  Lists kinds_;
};

//===----------------------------------------------------------------------===//
// Lots
//===----------------------------------------------------------------------===//

Lot makeLot(std::vector<int> holders, std::vector<int> needers,
            Delivery delivery) {
  Lot lot;
  lot.holders = std::move(holders);
  lot.needers = std::move(needers);
  lot.delivery = delivery;
  std::set_intersection(lot.needers.begin(), lot.needers.end(),
                        lot.holders.begin(), lot.holders.end(),
                        std::back_inserter(lot.staying));
  if (delivery == Delivery::All || lot.staying.empty())
    std::set_difference(lot.needers.begin(), lot.needers.end(),
                        lot.holders.begin(), lot.holders.end(),
                        std::back_inserter(lot.lacking));
  return lot;
}

} // namespace

int64_t mostPieces(const MatrixBox &box, int64_t elementBytes,
                   int64_t smallest) {
  const int64_t lines = box.size[0] > 1 ? box.size[0] : box.size[1];
  const int64_t bytes = box.volume() * elementBytes;
  return std::clamp<int64_t>(bytes / std::max<int64_t>(smallest, 1), 1,
                             std::min(lines, kMostPieces));
}

StatusOr<Lots> findLots(const std::vector<SwitchTensor> &tensors,
                        int64_t smallestPiece) {
  Lots result;
  findClasses(tensors, result);
  std::map<std::tuple<Delivery, std::vector<int>, std::vector<int>>, int> known;
  for (TensorClass &one : result.classes) {
    const int first = one.tensors.front();
    const SwitchTensor &tensor = tensors[first];
    Grid grid(tensor);
    std::vector<int> lotOf(grid.kinds(), -1);
    for (int kind = 0; kind < grid.kinds(); ++kind) {
      std::vector<int> holders = grid.holders(kind);
      std::vector<int> needers = grid.needers(kind);
      if (needers.empty())
        continue;
      if (holders.empty())
        return Status::invalidArgument(formatText(
            "switch: no rank has %s of tensor %d, which rank %d needs",
            grid.example(kind).describe(), first, needers.front()));
      auto [at, isNew] = known.insert({{tensor.delivery, holders, needers},
                                       static_cast<int>(result.lots.size())});
      if (isNew)
        result.lots.push_back(
            makeLot(std::move(holders), std::move(needers), tensor.delivery));
      lotOf[kind] = at->second;
    }
    one.cells = grid.cells(lotOf);
    const auto copies = static_cast<int64_t>(one.tensors.size());
    for (const Cell &cell : one.cells) {
      Lot &lot = result.lots[cell.lot];
      lot.bytes += cell.box.volume() * tensor.elementBytes * copies;
      lot.pieces +=
          mostPieces(cell.box, tensor.elementBytes, smallestPiece) * copies;
    }
  }
  return result;
}

} // namespace dyna::switches
