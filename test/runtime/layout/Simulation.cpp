//===- Simulation.cpp - Ranks that carry out reshards ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/layout/Simulation.h"

#include "runtime/abi/Collectives.h"

namespace dyna::test {

Array elementsOf(const Box &box, const Shape &shape) {
  Array elements = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    Array finer;
    for (int64_t element : elements)
      for (int64_t i = 0; i < box.size[d]; ++i)
        finer.push_back(element * shape[d] + box.begin[d] + i);
    elements = std::move(finer);
  }
  return elements;
}

Arrays fill(const Mesh &mesh, const Layout &layout, const Shape &shape) {
  Arrays arrays;
  int64_t addends = groupSize(layout.partial);
  for (int64_t position = 0; position < mesh.size(); ++position) {
    int64_t index = mesh.indexIn(position, layout.partial);
    Array array = elementsOf(localBox(mesh, layout, shape, position), shape);
    for (int64_t &element : array) {
      // Addend i is 1000 * i + element, the last one makes up the sum.
      int64_t others =
          500 * (addends - 1) * (addends - 2) + element * (addends - 1);
      element =
          index < addends - 1 ? 1000 * index + element : element + 1 - others;
    }
    arrays[mesh.rankAt(position)] = std::move(array);
  }
  return arrays;
}

bool holds(const Mesh &mesh, const Layout &layout, const Shape &shape,
           const Arrays &arrays) {
  for (int64_t position = 0; position < mesh.size(); ++position) {
    Array expected = elementsOf(localBox(mesh, layout, shape, position), shape);
    Array sum(expected.size(), 0);
    for (int64_t rank : mesh.groupRanks(position, layout.partial)) {
      const Array &array = arrays.at(rank);
      if (array.size() != expected.size())
        return false;
      for (size_t i = 0; i < array.size(); ++i)
        sum[i] += array[i];
    }
    for (size_t i = 0; i < sum.size(); ++i)
      if (sum[i] != expected[i] + 1)
        return false;
  }
  return true;
}

namespace {

/// The whole tensor of an exchange, [outer, first, middle, second, inner]; what
/// has one split only uses `first`, with middle = second = 1.
struct Sizes {
  int64_t outer, first, middle, second, inner;
  int64_t volume() const { return outer * first * middle * second * inner; }
};

/// Copies between the whole and the part that is split along `first`, or
/// `second`, as part `index` of `ranks`.
void copyPart(const Sizes &whole, bool alongSecond, int64_t ranks,
              int64_t index, Array &wholeArray, Array &partArray, bool cut) {
  int64_t split = alongSecond ? whole.second : whole.first;
  int64_t begin = dyna_part_begin(split, ranks, index);
  Sizes part = whole;
  (alongSecond ? part.second : part.first) =
      dyna_part_size(split, ranks, index);
  int64_t at = 0;
  for (int64_t o = 0; o < part.outer; ++o)
    for (int64_t f = 0; f < part.first; ++f)
      for (int64_t m = 0; m < part.middle; ++m)
        for (int64_t s = 0; s < part.second; ++s)
          for (int64_t i = 0; i < part.inner; ++i, ++at) {
            int64_t wholeF = alongSecond ? f : f + begin;
            int64_t wholeS = alongSecond ? s + begin : s;
            int64_t from = o;
            from = from * whole.first + wholeF;
            from = from * whole.middle + m;
            from = from * whole.second + wholeS;
            from = from * whole.inner + i;
            if (cut)
              partArray.at(at) = wholeArray.at(from);
            else
              wholeArray.at(from) = partArray.at(at);
          }
}

int64_t product(const Shape &shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t d = begin; d < end; ++d)
    result *= shape[d];
  return result;
}

Sizes sizesOf(const ReshardStep &step, const Shape &whole) {
  if (step.kind == ReshardKind::AllReduce)
    return {1, product(whole, 0, whole.size()), 1, 1, 1};
  size_t first = size_t(step.dim), last = whole.size();
  if (step.kind != ReshardKind::AllToAll)
    return {product(whole, 0, first), whole[first], 1, 1,
            product(whole, first + 1, last)};
  size_t second = std::max(step.dim, step.toDim);
  first = std::min(step.dim, step.toDim);
  return {product(whole, 0, first), whole[first],
          product(whole, first + 1, second), whole[second],
          product(whole, second + 1, last)};
}

class Exchange {
public:
  Exchange(const ReshardStep &step, const Sizes &sizes,
           const std::vector<int64_t> &ranks, Arrays &arrays)
      : step_(step), sizes_(sizes), ranks_(ranks), arrays_(arrays),
        count_(int64_t(ranks.size())) {}

  bool run() {
    bool secondToFirst = step_.dim > step_.toDim;
    switch (step_.kind) {
    case ReshardKind::AllReduce:
      return sum() && copyToAll();
    case ReshardKind::ReduceScatter:
      return sum() && cut(false);
    case ReshardKind::AllGather:
      return join(false) && copyToAll();
    case ReshardKind::AllToAll:
      return join(secondToFirst) && cut(!secondToFirst);
    case ReshardKind::Slice:
      return slice();
    }
    return false;
  }

private:
  bool sum() {
    whole_.assign(sizes_.volume(), 0);
    for (int64_t rank : ranks_) {
      const Array &array = arrays_.at(rank);
      if (array.size() != whole_.size())
        return false;
      for (size_t i = 0; i < array.size(); ++i)
        whole_[i] += array[i];
    }
    return true;
  }

  bool join(bool alongSecond) {
    whole_.assign(sizes_.volume(), -1);
    for (int64_t i = 0; i < count_; ++i) {
      Array &array = arrays_.at(ranks_[i]);
      if (int64_t(array.size()) != partVolume(alongSecond, i))
        return false;
      copyPart(sizes_, alongSecond, count_, i, whole_, array, false);
    }
    return true;
  }

  bool cut(bool alongSecond) {
    for (int64_t i = 0; i < count_; ++i) {
      Array part(partVolume(alongSecond, i));
      copyPart(sizes_, alongSecond, count_, i, whole_, part, true);
      arrays_[ranks_[i]] = std::move(part);
    }
    return true;
  }

  bool slice() {
    for (int64_t i = 0; i < count_; ++i) {
      Array &array = arrays_.at(ranks_[i]);
      if (int64_t(array.size()) != sizes_.volume())
        return false;
      Array part(partVolume(false, i));
      copyPart(sizes_, false, count_, i, array, part, true);
      array = std::move(part);
    }
    return true;
  }

  bool copyToAll() {
    for (int64_t rank : ranks_)
      arrays_[rank] = whole_;
    return true;
  }

  int64_t partVolume(bool alongSecond, int64_t index) const {
    Sizes part = sizes_;
    int64_t &split = alongSecond ? part.second : part.first;
    split = dyna_part_size(split, count_, index);
    return part.volume();
  }

  const ReshardStep &step_;
  const Sizes &sizes_;
  const std::vector<int64_t> &ranks_;
  Arrays &arrays_;
  int64_t count_;
  Array whole_;
};

} // namespace

Shape wholeShape(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
                 int64_t position) {
  Layout whole = step.before;
  bool gathers =
      step.kind == ReshardKind::AllGather || step.kind == ReshardKind::AllToAll;
  if (gathers)
    whole.dims[step.dim] = step.after.dims[step.dim];
  return localBox(mesh, whole, shape, position).size;
}

bool carryOut(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
              Arrays &arrays) {
  for (int64_t position = 0; position < mesh.size(); ++position) {
    if (mesh.indexIn(position, step.group) != 0)
      continue;
    const std::vector<int64_t> ranks = mesh.groupRanks(position, step.group);
    Shape whole = wholeShape(mesh, step, shape, position);
    // All ranks of a group must call with the same sizes.
    for (int64_t rank : ranks)
      if (wholeShape(mesh, step, shape, *mesh.positionOf(rank)) != whole)
        return false;
    if (!Exchange(step, sizesOf(step, whole), ranks, arrays).run())
      return false;
  }
  return true;
}

} // namespace dyna::test
