//===- Box.h - Computes with rectangular pieces of a tensor -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank always holds a box of a tensor: a range of indices in each dimension.
// Sizes count elements.
//
//     column  0 1 2 3 4 5
//     row 0   a a a a . .      a = {begin [0,0], size [2,4]}
//     row 1   a a X X b b      b = {begin [1,2], size [3,4]}
//     row 2   . . b b b b      X, the intersection = {begin [1,2], size [1,2]}
//     row 3   . . b b b b      X relative to b = {begin [0,0], size [1,2]}
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_BOX_H
#define DYNA_RUNTIME_LAYOUT_BOX_H

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

struct Box {
  std::vector<int64_t> begin, size;

  /// Returns the box of all elements of a tensor of this shape.
  static Box whole(const std::vector<int64_t> &shape);

  /// Returns the number of elements; 1 for a box without dimensions.
  int64_t volume() const;
  bool isEmpty() const { return volume() == 0; }
  /// Returns true if every element of `other` is in this box; true for an empty
  /// `other`.
  bool contains(const Box &other) const;
  /// Returns this box with coordinates relative to the start of `outer`. This
  /// is where a piece of the global tensor lies in the buffer of the rank that
  /// holds `outer`.
  Box relativeTo(const Box &outer) const;
  /// Inverts `relativeTo`: this box has coordinates relative to the start of
  /// `outer`, and the result has those of `outer`. Use it for a piece of a
  /// piece, in global coordinates.
  Box within(const Box &outer) const;

  /// Returns "[0:2, 4:8]": begin and end per dimension.
  std::string describe() const;

  /// Compares elements: all empty boxes are equal.
  bool operator==(const Box &other) const;
  bool operator!=(const Box &other) const { return !(*this == other); }
};

/// Returns the intersection. It is empty, with sizes 0, if ranges do not
/// overlap.
Box intersect(const Box &a, const Box &b);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_BOX_H
