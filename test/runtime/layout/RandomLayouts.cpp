//===- RandomLayouts.cpp - Meshes and layouts drawn at random -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/layout/RandomLayouts.h"

#include <algorithm>
#include <numeric>

namespace dyna::test {

template <typename Element>
static void shuffle(Random &random, std::vector<Element> &list) {
  for (size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1], list[draw(random, int64_t(i))]);
}

Mesh drawMesh(Random &random) {
  static const int64_t sizes[] = {1, 2, 2, 3, 4, 4, 6};
  static const char *names[] = {"dp", "tp", "pp"};
  std::vector<MeshAxis> axes;
  int64_t positions = 1, count = 1 + draw(random, 3);
  for (int64_t i = 0; i < count; ++i) {
    int64_t size = sizes[draw(random, 7)];
    if (positions * size > 32)
      size = 1;
    positions *= size;
    axes.push_back({names[i], size});
  }
  std::vector<int64_t> ranks;
  if (draw(random, 2)) {
    ranks.resize(positions);
    std::iota(ranks.begin(), ranks.end(), draw(random, 5));
    shuffle(random, ranks);
  }
  return *Mesh::create(axes, ranks);
}

Shape drawShape(Random &random) {
  Shape shape(1 + draw(random, 3));
  for (int64_t &size : shape)
    size = draw(random, 10);
  return shape;
}

Layout drawLayout(Random &random, const Mesh &mesh, size_t tensorRank,
                  bool mayBePartial) {
  AxisParts parts;
  for (int axis = 0; axis < int(mesh.axes().size()); ++axis) {
    int64_t left = mesh.axes()[axis].size, stride = 1;
    do {
      int64_t size = 1 + draw(random, left);
      while (left % size != 0)
        ++size;
      parts.push_back({axis, stride, size});
      stride *= size;
      left /= size;
    } while (left > 1);
  }
  shuffle(random, parts);
  Layout layout = Layout::replicated(tensorRank);
  for (const AxisPart &part : parts) {
    int64_t place = draw(random, int64_t(tensorRank) + 2);
    if (place < int64_t(tensorRank))
      layout.dims[place].push_back(part);
    else if (place == int64_t(tensorRank) && mayBePartial)
      layout.partial.push_back(part);
  }
  return layout;
}

Layout drawTarget(Random &random, const Mesh &mesh, const Layout &from) {
  Layout to = drawLayout(random, mesh, from.dims.size(), false);
  for (const AxisPart &part : from.partial) {
    Layout more = to;
    more.partial.push_back(part);
    if (draw(random, 3) == 0 &&
        checkLayout(mesh, more, from.dims.size()).isOk())
      to = more;
  }
  return to;
}

} // namespace dyna::test
