//===- MemoryChecker.cpp - Blocks that are alive (P6, P7) -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/MemoryChecker.h"

#include "runtime/base/Text.h"

namespace dyna {

using plan::Instruction;

static Status bad(const std::string &what) {
  return Status::invalidArgument("plan: " + what);
}

Status MemoryChecker::step(int index, const Instruction &i) {
  std::vector<BlockUse> uses = blocks_.uses(index);
  unsigned used = 0;
  for (const BlockUse &use : uses)
    used |= 1u << static_cast<int>(use.field);
  for (int field = static_cast<int>(Field::Kept); field < fieldCount; ++field)
    if (int64_t offset = fieldOf(i, static_cast<Field>(field));
        offset != 0 && !(used >> field & 1))
      return bad(formatText("'%s' is %d, but there is no such block here",
                            fieldName(static_cast<Field>(field)), offset));
  // First what is there, then what is new, then what goes: an instruction's
  // operands are all alive while it runs.
  for (const BlockUse &use : uses)
    if (!use.acquires)
      DYNA_RETURN_IF_ERROR(find(use, i));
  for (const BlockUse &use : uses)
    if (use.acquires)
      DYNA_RETURN_IF_ERROR(acquire(use, i));
  for (const BlockUse &use : uses)
    if (use.releases)
      release(use);
  return Status::ok();
}

Status MemoryChecker::finish() const {
  if (alive_.empty())
    return Status::ok();
  return bad("the " + name(alive_.begin()->second.key) +
             " is never given back");
}

std::string MemoryChecker::name(const Key &key) {
  auto [kind, microBatch, layer] = key;
  std::string text = formatText("%s block", blockKindName(kind));
  if (layer >= 0)
    text += formatText(" of layer %d", layer);
  if (microBatch >= 0)
    text += formatText(layer >= 0 ? " micro-batch %d" : " of micro-batch %d",
                       microBatch);
  return text;
}

Status MemoryChecker::find(const BlockUse &use, const Instruction &i) const {
  int64_t offset = fieldOf(i, use.field);
  auto place = places_.find(keyOf(use));
  if (place == places_.end())
    return bad("the " + name(keyOf(use)) + " is used but is not there");
  if (place->second != offset)
    return bad(formatText("the %s is used at offset %d, but lies at %d",
                          name(keyOf(use)), offset, place->second));
  return Status::ok();
}

Status MemoryChecker::acquire(const BlockUse &use, const Instruction &i) {
  int64_t begin = fieldOf(i, use.field);
  if (begin < 0 || begin % DYNA_BLOCK_ALIGNMENT != 0)
    return bad(formatText("the %s lies at offset %d, which is negative or "
                          "not a multiple of %d",
                          name(keyOf(use)), begin, DYNA_BLOCK_ALIGNMENT));
  if (use.bytes > bytes_ || begin > bytes_ - use.bytes)
    return bad(formatText("the %s, %d bytes at offset %d, ends past the "
                          "region of %d bytes",
                          name(keyOf(use)), use.bytes, begin, bytes_));
  int64_t end = begin + use.bytes;
  auto next = alive_.lower_bound(begin);
  if (next != alive_.end() && next->first < end)
    return overlap(use, begin, next->second.key, next->first);
  if (next != alive_.begin() && std::prev(next)->second.end > begin)
    return overlap(use, begin, std::prev(next)->second.key,
                   std::prev(next)->first);
  if (!places_.emplace(keyOf(use), begin).second)
    return bad("the " + name(keyOf(use)) + " is taken twice");
  alive_.emplace(begin, Alive{keyOf(use), end});
  return Status::ok();
}

Status MemoryChecker::overlap(const BlockUse &use, int64_t begin,
                              const Key &other, int64_t otherBegin) {
  return bad(formatText("the %s at offset %d overlaps the %s at offset "
                        "%d, which is in use",
                        name(keyOf(use)), begin, name(other), otherBegin));
}

void MemoryChecker::release(const BlockUse &use) {
  auto place = places_.find(keyOf(use));
  alive_.erase(place->second);
  places_.erase(place);
}

} // namespace dyna
