//===- Box.cpp - Computes with rectangular pieces of a tensor -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Box.h"

#include <algorithm>

namespace dyna {

Box Box::whole(const std::vector<int64_t> &shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape};
}

int64_t Box::volume() const {
  int64_t elements = 1;
  for (int64_t extent : size)
    elements *= extent;
  return elements;
}

bool Box::contains(const Box &other) const {
  return intersect(*this, other) == other;
}

Box Box::relativeTo(const Box &outer) const {
  Box moved = *this;
  for (size_t d = 0; d < begin.size(); ++d)
    moved.begin[d] -= outer.begin[d];
  return moved;
}

Box Box::within(const Box &outer) const {
  Box moved = *this;
  for (size_t d = 0; d < begin.size(); ++d)
    moved.begin[d] += outer.begin[d];
  return moved;
}

std::string Box::describe() const {
  std::string text;
  for (size_t d = 0; d < begin.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(begin[d]) + ":" +
            std::to_string(begin[d] + size[d]);
  return "[" + text + "]";
}

bool Box::operator==(const Box &other) const {
  if (begin.size() != other.begin.size())
    return false;
  if (isEmpty() || other.isEmpty())
    return isEmpty() && other.isEmpty();
  return begin == other.begin && size == other.size;
}

Box intersect(const Box &a, const Box &b) {
  Box both = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    both.begin[d] = std::max(a.begin[d], b.begin[d]);
    int64_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    both.size[d] = std::max<int64_t>(0, end - both.begin[d]);
  }
  return both;
}

} // namespace dyna
