//===- Load.h - Counts the work of layer functions --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `Load` counts the work of layer functions on one stream of tokens. It may be that
// of a sample, of a micro-batch, or of all samples of a step. Memory formulas, costs,
// the planner and the executor read their counts from this type alone.
//
// A *segment* is a run of tokens of one sample that pass the layers together. Its
// tokens are the queries of attention. The keys that they look at may be other tokens:
//
// - whole sample: queries [0, n), keys [0, n);
// - token slice: queries [a, b), keys [0, b), which are earlier tokens and its own;
// - cross-attention: queries [0, n), keys [0, m) of another stream.
//
// So code never takes the number of keys for the number of queries, and `loadOf` is
// the only function that counts pairs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_LOAD_LOAD_H
#define DYNA_RUNTIME_BASE_LOAD_LOAD_H

#include <algorithm>
#include <cstdint>

namespace dyna {

/// Amount of work on one stream. Loads add up.
struct Load {
  int64_t queries = 0; ///< tokens that pass the layers
  /// Keys that pass the layers with the queries: the queries' own, or all tokens of
  /// another stream.
  int64_t keys = 0;
  int64_t segments = 0; ///< as many as samples, unless samples are sliced
  /// Pairs of a query and a key of one segment.
  int64_t pairs = 0;
  /// Pairs whose key is not after the query: all that causal attention computes.
  int64_t causalPairs = 0;
  /// Queries that are in the loss. Segments do not know them, so `loadOf` leaves 0.
  int64_t targets = 0;
  /// Keys of earlier slices that attention of these queries reads. They lie in the store
  /// of a bundle (runtime/abi/Abi.h) and pass no layer again.
  int64_t context = 0;

  constexpr Load &operator+=(const Load &other) {
    queries += other.queries;
    keys += other.keys;
    context += other.context;
    segments += other.segments;
    pairs += other.pairs;
    causalPairs += other.causalPairs;
    targets += other.targets;
    return *this;
  }
  constexpr Load &operator-=(const Load &other) {
    queries -= other.queries;
    keys -= other.keys;
    context -= other.context;
    segments -= other.segments;
    pairs -= other.pairs;
    causalPairs -= other.causalPairs;
    targets -= other.targets;
    return *this;
  }
  constexpr bool operator==(const Load &other) const {
    return queries == other.queries && keys == other.keys &&
           context == other.context && segments == other.segments &&
           pairs == other.pairs && causalPairs == other.causalPairs &&
           targets == other.targets;
  }
};

constexpr Load operator+(Load a, const Load &b) { return a += b; }
constexpr Load operator-(Load a, const Load &b) { return a -= b; }

/// Tokens [begin, begin + length) of a sample, numbered by position.
struct TokenRange {
  int64_t begin = 0;
  int64_t length = 0;

  constexpr int64_t end() const { return begin + length; }
  constexpr bool operator==(const TokenRange &other) const {
    return begin == other.begin && length == other.length;
  }
};

/// Returns the load of one segment. Positions of two streams have no order, so a
/// causal mask hides none of their pairs: then `isOneStream` is false.
constexpr Load loadOf(TokenRange queries, TokenRange keys,
                      bool isOneStream = true) {
  Load load;
  load.queries = queries.length;
  // In one stream the keys end with the queries.
  load.keys = isOneStream ? std::min(queries.length, keys.length) : keys.length;
  load.context = keys.length - load.keys;
  load.segments = 1;
  load.pairs = queries.length * keys.length;
  // With no keys hidden in front, the query at position p sees p - keys.begin + 1
  // keys, but at least none and at most all. This is their sum up to one query.
  auto visibleUpTo = [&](int64_t position) -> int64_t {
    const int64_t seen = position - keys.begin + 1;
    if (seen <= 0)
      return 0;
    if (seen <= keys.length)
      return seen * (seen + 1) / 2;
    return keys.length * (keys.length + 1) / 2 +
           (seen - keys.length) * keys.length;
  };
  load.causalPairs = isOneStream ? visibleUpTo(queries.end() - 1) -
                                       visibleUpTo(queries.begin - 1)
                                 : load.pairs;
  return load;
}

/// Returns the load of a whole sample, whose keys are its own tokens.
constexpr Load loadOfSample(int64_t tokens) {
  return loadOf({0, tokens}, {0, tokens});
}

/// Returns the load of `count` equal segments.
constexpr Load times(const Load &load, int64_t count) {
  return {load.queries * count, load.keys * count,        load.segments * count,
          load.pairs * count,   load.causalPairs * count, load.targets * count,
          load.context * count};
}

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_LOAD_LOAD_H
