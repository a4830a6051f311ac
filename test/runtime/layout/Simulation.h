//===- Simulation.h - Ranks that carry out reshards -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank has one flat array. A step is carried out group by group, with
// the sizes and the meaning of runtime/abi/Collectives.h and nothing else: what
// a layout says is used only to fill the arrays and to judge the result.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_LAYOUT_SIMULATION_H
#define DYNA_TEST_RUNTIME_LAYOUT_SIMULATION_H

#include "runtime/layout/Reshard.h"

#include <map>

namespace dyna::test {

using Array = std::vector<int64_t>;
/// By rank.
using Arrays = std::map<int64_t, Array>;

/// What the ranks hold of the tensor whose element i (row-major) is i + 1; the
/// addends of partial values differ from rank to rank.
Arrays fill(const Mesh &mesh, const Layout &layout, const Shape &shape);

/// The sizes of what the ABI calls the whole tensor of a step: what the ranks
/// of the group hold together.
Shape wholeShape(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
                 int64_t position);

/// Carries out a step; false if an array has not the size that the ABI expects.
bool carryOut(const Mesh &mesh, const ReshardStep &step, const Shape &shape,
              Arrays &arrays);

/// Whether every rank holds what the layout says, element by element.
bool holds(const Mesh &mesh, const Layout &layout, const Shape &shape,
           const Arrays &arrays);

/// The flat global indices of a box, row-major.
Array elementsOf(const Box &box, const Shape &shape);

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_LAYOUT_SIMULATION_H
