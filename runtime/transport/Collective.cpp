//===- Collective.cpp - Computes shapes and places of exchanges -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Collective.h"

#include <cstring>

using namespace dyna;

const char *dyna::nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Barrier:
    return "barrier";
  }
  return "unknown collective";
}

static const char *elementName(int32_t element) {
  switch (element) {
  case DYNA_ELEMENT_F64:
    return "f64";
  case DYNA_ELEMENT_F32:
    return "f32";
  case DYNA_ELEMENT_BF16:
    return "bf16";
  case DYNA_ELEMENT_I32:
    return "i32";
  default:
    return "unknown type";
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Rows dyna::packed(const Rows &rows, int64_t offset) {
  Rows result = rows;
  result.offset = offset;
  result.innerStride = rows.bytes;
  result.outerStride = rows.inner * rows.bytes;
  return result;
}

void dyna::mergeRuns(Rows &source, Rows &target) {
  for (int level = 0; level < 2; ++level) {
    if (source.innerStride != source.bytes ||
        target.innerStride != target.bytes)
      return;
    for (Rows *rows : {&source, &target}) {
      rows->bytes *= rows->inner;
      rows->inner = rows->outer;
      rows->innerStride = rows->outerStride;
      rows->outer = 1;
      rows->outerStride = 0;
    }
  }
}

void dyna::copyRows(const void *source, Rows sourceRows, void *target,
                    Rows targetRows) {
  mergeRuns(sourceRows, targetRows);
  forEachRun(sourceRows, targetRows, 0, sourceRows.totalBytes(),
             [&](int64_t from, int64_t to, int64_t bytes) {
               memcpy(static_cast<char *>(target) + to,
                      static_cast<const char *>(source) + from,
                      static_cast<size_t>(bytes));
             });
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Collective Collective::of(CollectiveKind kind,
                          const dyna_collective &collective) {
  Collective c;
  c.kind = kind;
  c.element = collective.element;
  c.reduction = collective.reduction;
  c.in = collective.in;
  c.out = collective.out;
  c.outer = collective.outer;
  c.first = collective.split;
  c.inner = collective.inner;
  return c;
}

Collective Collective::of(const dyna_transposition &transposition) {
  Collective c;
  c.kind = CollectiveKind::AllToAll;
  c.element = transposition.element;
  c.secondToFirst = transposition.second_to_first != 0;
  c.in = transposition.in;
  c.out = transposition.out;
  c.outer = transposition.outer;
  c.first = transposition.first;
  c.middle = transposition.middle;
  c.second = transposition.second;
  c.inner = transposition.inner;
  return c;
}

Collective Collective::flat(CollectiveKind kind, const void *in, void *out,
                            int64_t count, int32_t element, int32_t reduction) {
  dyna_collective c = {};
  c.in = in;
  c.out = out;
  c.outer = c.inner = 1;
  c.split = count;
  c.element = element;
  c.reduction = reduction;
  return of(kind, c);
}

/// Elements of the part of rank `index` when `first` or `second` is split.
static int64_t partElements(const Collective &c, int size, int index,
                            bool ofSecond) {
  int64_t first = ofSecond ? c.first : dyna_part_size(c.first, size, index);
  int64_t second = ofSecond ? dyna_part_size(c.second, size, index) : c.second;
  return c.outer * first * c.middle * second * c.inner;
}

int64_t Collective::inBytes(int size, int index) const {
  if (kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll)
    return partElements(*this, size, index, secondToFirst) *
           elementBytes(element);
  return wholeElements() * elementBytes(element);
}

int64_t Collective::outBytes(int size, int index) const {
  if (kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll)
    return partElements(*this, size, index,
                        kind == CollectiveKind::AllToAll && !secondToFirst) *
           elementBytes(element);
  return wholeElements() * elementBytes(element);
}

namespace {

/// Returns the block [part `f` of first] x [part `s` of second] as runs of its
/// second and inner dimensions. The block is in a tensor of which a rank holds
/// `heldFirst` x `heldSecond`.
Rows blockRows(const Collective &c, int64_t fBegin, int64_t f,
               int64_t heldFirst, int64_t sBegin, int64_t s,
               int64_t heldSecond) {
  int64_t unit = c.inner * elementBytes(c.element);
  Rows rows;
  rows.offset = (fBegin * c.middle * heldSecond + sBegin) * unit;
  rows.outer = c.outer;
  rows.outerStride = heldFirst * c.middle * heldSecond * unit;
  rows.inner = f * c.middle;
  rows.innerStride = heldSecond * unit;
  rows.bytes = s * unit;
  return rows;
}

} // namespace

Rows Collective::sourceRows(int size, int from, int to) const {
  int64_t toBegin = dyna_part_begin(first, size, to);
  int64_t toFirst = dyna_part_size(first, size, to);
  int64_t fromFirst = dyna_part_size(first, size, from);
  switch (kind) {
  case CollectiveKind::AllGather:
    return blockRows(*this, 0, fromFirst, fromFirst, 0, second, second);
  case CollectiveKind::AllReduce:
    return flat(CollectiveKind::ReduceScatter, in, out, wholeElements(),
                element)
        .sourceRows(size, from, to);
  case CollectiveKind::ReduceScatter:
    return blockRows(*this, toBegin, toFirst, first, 0, second, second);
  case CollectiveKind::AllToAll: {
    if (secondToFirst) {
      int64_t held = dyna_part_size(second, size, from);
      return blockRows(*this, toBegin, toFirst, first, 0, held, held);
    }
    return blockRows(*this, 0, fromFirst, fromFirst,
                     dyna_part_begin(second, size, to),
                     dyna_part_size(second, size, to), second);
  }
  case CollectiveKind::Barrier:
    break;
  }
  return Rows();
}

Rows Collective::targetRows(int size, int from, int to) const {
  int64_t fromBegin = dyna_part_begin(first, size, from);
  int64_t fromFirst = dyna_part_size(first, size, from);
  int64_t toFirst = dyna_part_size(first, size, to);
  switch (kind) {
  case CollectiveKind::AllGather:
    return blockRows(*this, fromBegin, fromFirst, first, 0, second, second);
  case CollectiveKind::AllReduce:
    return sourceRows(size, from, to);
  case CollectiveKind::ReduceScatter:
    return blockRows(*this, 0, toFirst, toFirst, 0, second, second);
  case CollectiveKind::AllToAll: {
    if (secondToFirst)
      return blockRows(*this, 0, toFirst, toFirst,
                       dyna_part_begin(second, size, from),
                       dyna_part_size(second, size, from), second);
    int64_t held = dyna_part_size(second, size, to);
    return blockRows(*this, fromBegin, fromFirst, first, 0, held, held);
  }
  case CollectiveKind::Barrier:
    break;
  }
  return Rows();
}

int64_t Collective::sentBytes(int size, int index) const {
  int64_t sum = 0;
  for (int to = 0; to < size; ++to)
    if (to != index)
      sum += sourceRows(size, index, to).totalBytes();
  // The rank's part of the result goes to all others.
  if (kind == CollectiveKind::AllReduce)
    sum += (size - 1) * sourceRows(size, index, index).totalBytes();
  return sum;
}

//===----------------------------------------------------------------------===//
// Checks and texts
//===----------------------------------------------------------------------===//

bool Collective::agreesWith(const Collective &other) const {
  if (kind != other.kind)
    return false;
  if (kind == CollectiveKind::Barrier)
    return true;
  return element == other.element &&
         (!isReduction() || reduction == other.reduction) &&
         secondToFirst == other.secondToFirst && outer == other.outer &&
         first == other.first && middle == other.middle &&
         second == other.second && inner == other.inner;
}

std::string Collective::describe() const {
  std::string text = nameOf(kind);
  if (kind == CollectiveKind::Barrier)
    return text;
  if (isReduction())
    text += reduction == DYNA_REDUCE_MAX ? " (max)" : " (sum)";
  text += std::string(" of ") + elementName(element) + " [" +
          std::to_string(outer) + ", " + std::to_string(first);
  if (kind == CollectiveKind::AllToAll)
    text += ", " + std::to_string(middle) + ", " + std::to_string(second);
  text += ", " + std::to_string(inner) + "]";
  if (kind == CollectiveKind::AllToAll)
    text += secondToFirst ? " from the second split to the first"
                          : " from the first split to the second";
  return text;
}

std::string dyna::describeAll(const std::vector<Collective> &collectives) {
  std::string text;
  for (const Collective &collective : collectives)
    text += (text.empty() ? "" : " with ") + collective.describe();
  return text;
}

Status dyna::checkCollective(const Collective &c, int size, int index) {
  if (c.kind == CollectiveKind::Barrier)
    return Status::ok();
  int64_t bytes = elementBytes(c.element);
  if (bytes == 0)
    return Status::invalidArgument(std::string(nameOf(c.kind)) +
                                   ": unknown element type " +
                                   std::to_string(c.element));
  if (c.isReduction() && c.reduction != DYNA_REDUCE_SUM &&
      c.reduction != DYNA_REDUCE_MAX)
    return Status::invalidArgument(std::string(nameOf(c.kind)) +
                                   ": unknown reduction " +
                                   std::to_string(c.reduction));
  // Non-zero sizes must stay countable even where another size is 0: parts and
  // strides are products of some of them.
  int64_t product = bytes;
  for (int64_t extent : {c.outer, c.first, c.middle, c.second, c.inner}) {
    if (extent < 0)
      return Status::invalidArgument(c.describe() + ": negative size");
    if (__builtin_mul_overflow(product, extent > 0 ? extent : 1, &product))
      return Status::invalidArgument(c.describe() +
                                     ": more bytes than 64 bits can count");
  }
  if ((!c.in && c.inBytes(size, index) > 0) ||
      (!c.out && c.outBytes(size, index) > 0))
    return Status::invalidArgument(c.describe() + ": null " +
                                   (c.in ? "result" : "input"));
  return Status::ok();
}
