//===- PackPolicies.h - Packs layers by published policies ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Policies of PackPolicies.def empty ranks one after another, from the first one on, until
// a wanted number has layers. They look at bytes alone, append layers wherever these
// fit, and may end with more ranks than wanted. Dyna simulates them and executes none.
//
// Algorithm 3 of DynPipe (appendix B.4) is mended in two places:
//
//   - Line 5 asks whether there are at most as many ranks as wanted, so that nothing
//     moves while there are more. Its text says "greater", which is meant.
//   - No `break` follows a move. A rank whose layers are gone would give them to the next
//     ranks as well.
//
// The paper names best-fit and round-robin, and does not print them. Here round-robin
// empties a rank only if all its layers find room.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PACKPOLICIES_H
#define DYNA_RUNTIME_ELASTIC_PACKPOLICIES_H

#include "runtime/elastic/balance/RankLayers.h"

#include <array>
#include <cstdint>

namespace dyna {

enum class PackPolicy : uint8_t {
#define DYNA_PACK_POLICY(name, word, text) name,
#include "runtime/elastic/pack/PackPolicies.def"
};

struct PackPolicyRow {
  PackPolicy policy;
  const char *word;
  const char *text;
};

/// The table of PackPolicies.def.
constexpr std::array packPolicies = {
#define DYNA_PACK_POLICY(name, word, text)                                     \
  PackPolicyRow{PackPolicy::name, word, text},
#include "runtime/elastic/pack/PackPolicies.def"
};

struct PackedRanks {
  RankLayers layers;
  int64_t moves = 0; ///< of one layer from rank to rank
};

/// Empties ranks until `wanted` have layers, or no rank can be emptied. `bytes`
/// has a number for each layer. `limit` is the limit of each rank. O(p^2) for p
/// ranks; round-robin O(n p) for n layers.
PackedRanks packByPolicy(PackPolicy policy, RankLayers layers,
                         const std::vector<int64_t> &bytes, int64_t limit,
                         int wanted);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PACKPOLICIES_H
