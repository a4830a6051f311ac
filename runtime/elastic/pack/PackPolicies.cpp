//===- PackPolicies.cpp - Packs layers by published policies --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/pack/PackPolicies.h"

#include <numeric>
#include <optional>
#include <utility>

namespace dyna {
namespace {

class Packer {
public:
  Packer(RankLayers layers, const std::vector<int64_t> &bytes, int64_t limit)
      : bytes_(&bytes), limit_(limit), active_(layers.active()) {
    for (const std::vector<int> &rank : layers.ranks)
      held_.push_back(std::accumulate(
          rank.begin(), rank.end(), int64_t{0},
          [&bytes](int64_t sum, int layer) { return sum + bytes[layer]; }));
    result_.layers = std::move(layers);
  }

  int ranks() const { return static_cast<int>(held_.size()); }
  int active() const { return active_; }
  int64_t held(int rank) const { return held_[rank]; }
  bool isActive(int rank) const { return !result_.layers.ranks[rank].empty(); }
  const std::vector<int> &layersOf(int rank) const {
    return result_.layers.ranks[rank];
  }

  bool hasRoom(int rank, int64_t bytes) const {
    return isActive(rank) && held_[rank] + bytes <= limit_;
  }

  /// Appends a layer, without taking it from where it is.
  void append(int rank, int layer) {
    result_.layers.ranks[rank].push_back(layer);
    held_[rank] += (*bytes_)[layer];
    ++result_.moves;
  }

  void clear(int rank) {
    result_.layers.ranks[rank].clear();
    held_[rank] = 0;
    --active_;
  }

  void moveAll(int source, int target) {
    for (int layer : std::vector<int>(layersOf(source)))
      append(target, layer);
    clear(source);
  }

  int64_t bytesOf(int layer) const { return (*bytes_)[layer]; }
  PackedRanks take() { return std::move(result_); }

private:
  const std::vector<int64_t> *bytes_; ///< by layer
  int64_t limit_;
  PackedRanks result_;
  std::vector<int64_t> held_; ///< bytes by rank
  int active_;
};

/// Runs Algorithm 3, with the two corrected lines.
void packByFirstFit(Packer &packer, int wanted) {
  for (int source = 0; source < packer.ranks(); ++source)
    for (int target = source + 1; target < packer.ranks(); ++target)
      if (packer.isActive(source) && packer.active() > wanted &&
          packer.hasRoom(target, packer.held(source))) {
        packer.moveAll(source, target);
        break;
      }
}

void packByBestFit(Packer &packer, int wanted) {
  for (int source = 0; source < packer.ranks(); ++source) {
    if (!packer.isActive(source) || packer.active() <= wanted)
      continue;
    std::optional<int> fullest;
    for (int target = 0; target < packer.ranks(); ++target)
      if (target != source && packer.hasRoom(target, packer.held(source)) &&
          (!fullest || packer.held(target) > packer.held(*fullest)))
        fullest = target;
    if (fullest)
      packer.moveAll(source, *fullest);
  }
}

/// Deals a rank's layers to the others, from `next` on. Returns true if all found room.
bool dealLayers(Packer &packer, int source, int &next) {
  for (int layer : std::vector<int>(packer.layersOf(source))) {
    int tried = 0;
    while (tried < packer.ranks() &&
           (next == source || !packer.hasRoom(next, packer.bytesOf(layer)))) {
      next = (next + 1) % packer.ranks();
      ++tried;
    }
    if (tried == packer.ranks())
      return false;
    packer.append(next, layer);
    next = (next + 1) % packer.ranks();
  }
  packer.clear(source);
  return true;
}

void packByRoundRobin(Packer &packer, int wanted) {
  int next = 0;
  for (int source = 0; source < packer.ranks(); ++source) {
    if (!packer.isActive(source) || packer.active() <= wanted)
      continue;
    Packer tried = packer;
    int after = next;
    if (!dealLayers(tried, source, after))
      continue;
    packer = std::move(tried);
    next = after;
  }
}

} // namespace

PackedRanks packByPolicy(PackPolicy policy, RankLayers layers,
                         const std::vector<int64_t> &bytes, int64_t limit,
                         int wanted) {
  Packer packer(std::move(layers), bytes, limit);
  switch (policy) {
#define DYNA_PACK_POLICY(name, word, text)                                     \
  case PackPolicy::name:                                                       \
    packBy##name(packer, wanted);                                              \
    break;
#include "runtime/elastic/pack/PackPolicies.def"
  }
  return packer.take();
}

} // namespace dyna
