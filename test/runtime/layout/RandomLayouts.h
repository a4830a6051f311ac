//===- RandomLayouts.h - Meshes and layouts drawn at random -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_LAYOUT_RANDOMLAYOUTS_H
#define DYNA_TEST_RUNTIME_LAYOUT_RANDOMLAYOUTS_H

#include "runtime/layout/Layout.h"

#include <random>

namespace dyna::test {

using Random = std::mt19937_64;

/// Uniform in [0, bound), the same on every platform.
inline int64_t draw(Random &random, int64_t bound) {
  return int64_t(random() % uint64_t(bound));
}

/// One to three axes of size 1 to 4, now and then 6; half of the time the ranks
/// are shuffled and do not start at 0.
Mesh drawMesh(Random &random);

/// One to three dimensions of size 0 to 9.
Shape drawShape(Random &random);

/// Axes, whole or factored, in any dimension, partial or unused.
Layout drawLayout(Random &random, const Mesh &mesh, size_t tensorRank,
                  bool mayBePartial);

/// A layout that `from` can be resharded to: partial only where `from` is.
Layout drawTarget(Random &random, const Mesh &mesh, const Layout &from);

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_LAYOUT_RANDOMLAYOUTS_H
