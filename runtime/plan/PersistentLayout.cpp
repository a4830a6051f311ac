//===- PersistentLayout.cpp - Where parameters lie ------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PersistentLayout.h"

namespace dyna {

PersistentLayout persistentLayout(const ManifestView &view, bool training) {
  PersistentLayout layout;
  layout.parameters.resize(view.parameters());
  int64_t master = elementBytes(view.masterType());
  auto place = [&](int p, int64_t element) {
    int64_t offset = layout.bytes;
    layout.bytes += alignToBlock(view.elements(p) * element);
    return offset;
  };
  auto &places = layout.parameters;
  for (int p = 0; p < view.parameters(); ++p)
    places[p].master = place(p, master);
  for (int p = 0; p < view.parameters(); ++p)
    if (view.hasCopy(p))
      places[p].copy = place(p, elementBytes(view.computeType(p)));
  if (!training)
    return layout;
  for (int p = 0; p < view.parameters(); ++p)
    places[p].gradient = place(p, master);
  for (int p = 0; p < view.parameters(); ++p)
    places[p].m = place(p, master);
  for (int p = 0; p < view.parameters(); ++p)
    places[p].v = place(p, master);
  return layout;
}

BatchLayout batchLayout(const Extent &extent) {
  BatchLayout layout;
  auto place = [&](int64_t bytes) {
    int64_t offset = layout.bytes;
    layout.bytes += alignToBlock(bytes);
    return offset;
  };
  int64_t rows = roundRows(extent.tq);
  layout.targets = place(4 * rows);
  layout.segments = place(sizeof(dyna_segment) * roundRows(extent.s));
  layout.rowSample = place(8 * rows);
  layout.rowPosition = place(8 * rows);
  layout.loss = place(sizeof(double));
  return layout;
}

} // namespace dyna
