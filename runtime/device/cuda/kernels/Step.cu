//===- Step.cu - Checks indices, clips norms, moves rows --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks and sums are of one block: a micro-batch has thousands of rows, a step
// hundreds of losses and norms. Placing rows is of many.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Gpu.h"

#include "runtime/abi/Collectives.h"
#include "runtime/abi/DeviceLimits.h"

#include <cstring>

using namespace dyna;

/// Checks the indices of a table's rows. The first illegal one ends the kernel
/// as failed. Before, it is stored for the host.
DYNA_KERNEL(check_rows) {
  int64_t first = args.count;
  for (int64_t row = gpu::threadIndex(); row < args.count;
       row += gpu::blockSize()) {
    int64_t index = args.ids ? args.ids[row] : args.positions[row];
    if ((index < 0 || index >= args.rows) && row < first)
      first = row;
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    int64_t other = gpu::shuffleXor(first, mask);
    first = other < first ? other : first;
  }
  if (gpu::threadIndex() % 32 == 0)
    shared.first[gpu::threadIndex() / 32] = first;
  gpu::barrier();
  if (gpu::threadIndex() != 0)
    return;
  for (int warp = 1; warp < gpu::blockSize() / 32; ++warp)
    first = shared.first[warp] < first ? shared.first[warp] : first;
  if (first == args.count)
    return;
  args.bad->row = first;
  args.bad->value = args.ids ? args.ids[first] : args.positions[first];
  args.bad->rows = args.rows;
  args.bad->kind = args.ids ? gpu::BadRow::Token : gpu::BadRow::Position;
  gpu::fenceForHost();
  gpu::fail("an index that the table does not have");
}

/// Makes the norm NaN if a loss is not finite.
DYNA_KERNEL(note_losses) {
  for (int64_t i = gpu::threadIndex(); i < args.count; i += gpu::blockSize())
    // x - x is NaN if x is infinite or NaN, and else 0. All threads write the
    // same.
    if (args.losses[i] - args.losses[i] != 0)
      *args.squaredNorm = args.losses[i] - args.losses[i];
}

/// Clips the norm. One thread adds in the order of the norms.
DYNA_KERNEL(clip_norm) {
  if (gpu::threadIndex() != 0)
    return;
  double sum = 0;
  for (int64_t i = 0; i < args.count; ++i)
    sum += args.squaredNorms[i];
  double norm = gpu::squareRoot(sum);
  const bool isClipped = args.limit > 0 && norm > args.limit;
  // A norm that is too large becomes infinite: 1e19 * 1e300 overflows.
  if ((isClipped ? args.limit : norm) > DYNA_LARGEST_NORM)
    norm *= 1e300;
  *args.norm = norm;
  // NaN if the norm is infinite or NaN, else 0.
  const double excess = norm - norm;
  int64_t left = *args.skipsLeft;
  if (excess != 0 && left >= 0)
    *args.skipsLeft = --left;
  // A negative number of skips left stops all updates, whatever this norm is.
  *args.scale = excess != 0 || left < 0               ? gpu::squareRoot(-1.0)
                : args.limit > 0 && norm > args.limit ? args.limit / norm
                                                      : 1;
}

namespace {

struct alignas(16) Word16 {
  uint64_t low, high;
};

/// Returns the sums of the elements of two words, which hold elements from the
/// lowest bits on.
template <typename Element, typename Word> DYNA_GPU Word sumOf(Word a, Word b) {
  Element x, y;
  std::memcpy(&x, &a, sizeof(x));
  std::memcpy(&y, &b, sizeof(y));
  x += y;
  std::memcpy(&a, &x, sizeof(x));
  return a;
}

DYNA_GPU uint16_t sumOfBf16(uint16_t a, uint16_t b) {
  return static_cast<uint16_t>(
      gpu::packBf16(gpu::widenBf16(a) + gpu::widenBf16(b), 0));
}

/// Adds the elements of a word; a word of one byte has none to add.
DYNA_GPU uint8_t added(uint8_t value, uint8_t, int32_t) { return value; }
DYNA_GPU uint16_t added(uint16_t value, uint16_t to, int32_t) {
  return sumOfBf16(to, value);
}
DYNA_GPU uint32_t added(uint32_t value, uint32_t to, int32_t type) {
  if (type == DYNA_ELEMENT_F32)
    return sumOf<float>(to, value);
  return gpu::packBf16(gpu::widenBf16(static_cast<uint16_t>(to)) +
                           gpu::widenBf16(static_cast<uint16_t>(value)),
                       gpu::widenBf16(static_cast<uint16_t>(to >> 16)) +
                           gpu::widenBf16(static_cast<uint16_t>(value >> 16)));
}
DYNA_GPU uint64_t added(uint64_t value, uint64_t to, int32_t type) {
  if (type == DYNA_ELEMENT_F64)
    return sumOf<double>(to, value);
  const uint64_t high = added(static_cast<uint32_t>(value >> 32),
                              static_cast<uint32_t>(to >> 32), type);
  return high << 32 |
         added(static_cast<uint32_t>(value), static_cast<uint32_t>(to), type);
}
DYNA_GPU Word16 added(Word16 value, Word16 to, int32_t type) {
  return {added(value.low, to.low, type), added(value.high, to.high, type)};
}

template <typename Word>
DYNA_GPU void placeWords(const gpu::PlaceRowsArguments &args) {
  const int64_t all = args.rows * args.words;
  const int64_t step = int64_t(gpu::gridSize()) * gpu::blockSize();
  for (int64_t i =
           int64_t(gpu::blockIndex()) * gpu::blockSize() + gpu::threadIndex();
       i < all; i += step) {
    const int64_t row = args.rows > 1 ? i / args.words : 0;
    const int64_t at = (i - row * args.words) * int64_t(sizeof(Word));
    constexpr int bytes = sizeof(Word);
    const Word value = *reinterpret_cast<const Word *>(
        gpu::aligned<bytes>(args.source + row * args.sourceStride + at));
    Word &target = *reinterpret_cast<Word *>(
        gpu::aligned<bytes>(args.target + row * args.targetStride + at));
    target = args.addedAs < 0 ? value : added(value, target, args.addedAs);
  }
}

} // namespace

DYNA_KERNEL(place_rows) {
  switch (args.wordBytes) {
  case 16:
    return placeWords<Word16>(args);
  case 8:
    return placeWords<uint64_t>(args);
  case 4:
    return placeWords<uint32_t>(args);
  case 2:
    return placeWords<uint16_t>(args);
  default:
    return placeWords<uint8_t>(args);
  }
}

namespace {

template <typename Word>
DYNA_GPU void zeroWords(const gpu::ZeroWhereArguments &args) {
  Word *const words = reinterpret_cast<Word *>(args.target);
  const int64_t step = int64_t(gpu::gridSize()) * gpu::blockSize();
  for (int64_t i =
           int64_t(gpu::blockIndex()) * gpu::blockSize() + gpu::threadIndex();
       i < args.count; i += step)
    if (args.mask[i] == 0)
      words[i] = 0;
}

} // namespace

DYNA_KERNEL(zero_where) {
  switch (args.elementBytes) {
  case 2:
    return zeroWords<uint16_t>(args);
  case 4:
    return zeroWords<uint32_t>(args);
  default:
    return zeroWords<uint64_t>(args);
  }
}

namespace {

DYNA_GPU float widened(uint16_t bits) { return gpu::widenBf16(bits); }
DYNA_GPU float widened(float value) { return value; }
DYNA_GPU double widened(double value) { return value; }

template <typename Number> DYNA_GPU Number magnitudeOf(Number value) {
  return value < 0 ? -value : value;
}

template <typename Score, typename Gradient>
DYNA_GPU void addToScores(const gpu::AddScoresArguments &args) {
  Score *const scores = reinterpret_cast<Score *>(args.scores);
  const Score *weights = reinterpret_cast<const Score *>(args.weights);
  const Gradient *gradients =
      reinterpret_cast<const Gradient *>(args.gradients);
  const int64_t step = int64_t(gpu::gridSize()) * gpu::blockSize();
  for (int64_t i =
           int64_t(gpu::blockIndex()) * gpu::blockSize() + gpu::threadIndex();
       i < args.count; i += step) {
    const Score gradient = widened(gradients[i]);
    if (weights)
      scores[i] += magnitudeOf(weights[i] * gradient);
    else if (args.mask[i] == 0)
      scores[i] = magnitudeOf(gradient);
  }
}

} // namespace

DYNA_KERNEL(add_scores) {
  // A factor that is no number is not equal to itself.
  if (args.scale && *args.scale != *args.scale)
    return;
  if (args.scoreBytes == 8)
    return addToScores<double, double>(args);
  if (args.gradientBytes == 4)
    return addToScores<float, float>(args);
  addToScores<float, uint16_t>(args);
}
