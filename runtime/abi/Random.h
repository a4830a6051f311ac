//===- Random.h - Computes counter-based random numbers -----------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A random number is a function of its purpose, never of the order of drawing.
// So it does not depend on the cut into micro-batches, the rank, or the
// strategy. Generated dropout code computes `dyna_random_row_key` once per row
// and `dyna_random_element` per element, vectorised. This header is its
// definition.
//
// The mixers are finalisers of the SplitMix64 generator (Steele, Lea, Flood
// 2014) and, for 32 bits, Wellons' low-bias xor-shift-multiply with two rounds.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_RANDOM_H
#define DYNA_RUNTIME_ABI_RANDOM_H

#include <stdint.h>

static inline uint64_t dyna_mix64(uint64_t z) {
  z += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static inline uint32_t dyna_mix32(uint32_t x) {
  x ^= x >> 16;
  x *= UINT32_C(0x7FEB352D);
  x ^= x >> 15;
  x *= UINT32_C(0x846CA68B);
  return x ^ (x >> 16);
}

/// Returns the key of one dropout op in one step. `instance` is the op's number
/// within its layer function, `layer` the layer's index in the model.
static inline uint64_t dyna_random_op_key(uint64_t seed, uint64_t step,
                                          uint64_t layer, uint64_t instance) {
  uint64_t key = dyna_mix64(seed);
  key = dyna_mix64(key ^ step);
  return dyna_mix64(key ^ (layer << 32 | instance));
}

static inline uint64_t dyna_random_row_key(uint64_t op_key, uint64_t sample,
                                           uint64_t position) {
  return dyna_mix64(dyna_mix64(op_key ^ sample) ^ position);
}

/// Returns 32 random bits for one feature of the row.
static inline uint32_t dyna_random_element(uint64_t row_key, uint32_t feature) {
  uint32_t x = (uint32_t)row_key ^ (feature * UINT32_C(0x9E3779B9));
  return dyna_mix32(dyna_mix32(x) ^ (uint32_t)(row_key >> 32));
}

/// Returns the threshold of dropout. An element whose 32 bits are below it is
/// dropped; the others are multiplied by 1 / (1 - probability).
static inline uint32_t dyna_dropout_threshold(double probability) {
  double scaled = probability * 4294967296.0;
  return scaled >= 4294967295.0 ? UINT32_C(0xFFFFFFFF) : (uint32_t)scaled;
}

/// Returns the FNV-1a hash of a parameter's logical name.
static inline uint64_t dyna_hash_name(const char *name) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (; *name; ++name)
    hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
  return hash;
}

static inline uint64_t dyna_parameter_key(uint64_t seed, const char *name) {
  return dyna_mix64(dyna_mix64(seed) ^ dyna_hash_name(name));
}

/// Computes two uniform doubles in (0,1) and [0,1) for element `index`. A
/// normal value is sqrt(-2 ln u) * cos(2 pi v) (Box and Muller).
static inline void dyna_parameter_uniforms(uint64_t key, uint64_t index,
                                           double *u, double *v) {
  *u = ((double)(dyna_mix64(key ^ (2 * index)) >> 11) + 0.5) * 0x1p-53;
  *v = (double)(dyna_mix64(key ^ (2 * index + 1)) >> 11) * 0x1p-53;
}

#endif // DYNA_RUNTIME_ABI_RANDOM_H
