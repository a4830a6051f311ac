//===- StepArguments.h - Declares arguments of a step -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_STEPARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_STEPARGUMENTS_H

#include <cstdint>

namespace dyna {
namespace gpu {

/// Bad row that a kernel has found. Lies in memory of the host, which reads it
/// after the kernel has failed.
struct BadRow {
  /// Why it failed; the others are written before.
  enum Kind : int64_t { None = 0, Token = 1, Position = 2, Target = 3 };
  int64_t kind;
  int64_t row;   ///< of the micro-batch
  int64_t value; ///< the refused index
  int64_t rows;  ///< of the table
  /// A bad target, instead of row and value: 2^32 row + value modulo 2^32.
  /// Several blocks may find one at once; a single word keeps row and value
  /// together.
  uint64_t target;
};

/// One of `ids` and `positions` is null.
struct CheckRowsArguments {
  const int32_t *ids;
  const int64_t *positions;
  int64_t count, rows;
  BadRow *bad;
};

constexpr int kCheckThreads = 512;

struct CheckRowsShared {
  int64_t first[kCheckThreads / 32];
};

struct NoteLossesArguments {
  const double *losses;
  int64_t count;
  double *squaredNorm;
};

struct ClipNormArguments {
  const double *squaredNorms;
  int64_t count;
  double limit;
  double *norm, *scale;
  int64_t *skipsLeft;
};

constexpr int kPlaceThreads = 256;

/// Rows of `words` words, which all addresses and strides are multiples of.
struct PlaceRowsArguments {
  const char *source;
  char *target;
  int64_t rows, words;
  int64_t sourceStride, targetStride; ///< bytes
  int32_t wordBytes;                  ///< 1, 2, 4, 8 or 16
  int32_t addedAs;
};

/// Elements of 2, 4 or 8 bytes, each with a byte of the mask.
struct ZeroWhereArguments {
  char *target;
  const uint8_t *mask;
  int64_t count;
  int64_t elementBytes;
};

/// Scores of weights (Device::addScores). Weights, mask and scale may be null.
struct AddScoresArguments {
  char *scores;
  const char *weights, *gradients;
  const uint8_t *mask;
  const double *scale;
  int64_t count;
  int64_t scoreBytes, gradientBytes;
};

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_STEPARGUMENTS_H
