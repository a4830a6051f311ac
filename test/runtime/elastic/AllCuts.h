//===- AllCuts.h - All cuts of layers, to compare with ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_ELASTIC_ALLCUTS_H
#define DYNA_TEST_RUNTIME_ELASTIC_ALLCUTS_H

#include "runtime/planner/graph/CutLayers.h"
#include "test/runtime/planner/Draw.h"

#include <algorithm>
#include <vector>

namespace dyna {

/// Returns all cuts into stages that are not empty.
inline std::vector<std::vector<int>> allCuts(int layers, int stages) {
  if (stages == 1)
    return {{layers}};
  std::vector<std::vector<int>> cuts;
  for (int first = 1; first + stages - 1 <= layers; ++first)
    for (std::vector<int> rest : allCuts(layers - first, stages - 1)) {
      rest.insert(rest.begin(), first);
      cuts.push_back(rest);
    }
  return cuts;
}

/// Returns true if each stage has room for its layers.
inline bool hasRoom(const LayerBytes &bytes, const std::vector<int> &cut) {
  int layer = 0;
  for (size_t s = 0; s < cut.size(); ++s) {
    int64_t held = 0;
    for (int i = 0; i < cut[s]; ++i)
      held += bytes.at(static_cast<int>(s), layer++);
    if (held > bytes.limits[s])
      return false;
  }
  return true;
}

/// Draws bytes of layers, and limits that a part of all cuts is within.
inline LayerBytes drawBytes(int layers, int stages, Draw &draw) {
  LayerBytes bytes;
  for (int l = 0; l < layers; ++l) {
    bytes.own.push_back(draw.below(20));
    bytes.kept.push_back(draw.below(5));
  }
  for (int s = 0; s < stages; ++s) {
    bytes.inFlight.push_back(stages - s);
    bytes.limits.push_back(30 + draw.below(90));
  }
  return bytes;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_ELASTIC_ALLCUTS_H
