//===- EmulatedGpu.h - What kernels ask of a GPU, over fibers ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of runtime/device/cuda/kernels/Gpu.h for the processor; what they
// do is said there. A kernel `name` becomes `dyna_emulated_kernel_name`.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_EMULATEDGPU_H
#define DYNA_TEST_STANDINS_EMULATEDGPU_H

#include "runtime/device/cuda/kernels/KernelTypes.h"
#include "test/standins/Fibers.h"

#include <cmath>
#include <cstring>

#define DYNA_GPU inline

#define DYNA_KERNEL(name)                                                      \
  static void name##_body(                                                     \
      const dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name> &args,             \
      dyna::gpu::SharedOf<dyna::gpu::Kernel::name> &shared);                   \
  extern "C" void dyna_emulated_kernel_##name(const void *arguments) {         \
    using Arguments = dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name>;         \
    name##_body(*static_cast<const Arguments *>(arguments),                    \
                dyna::gpu::sharedMemory<                                       \
                    dyna::gpu::SharedOf<dyna::gpu::Kernel::name>>());          \
  }                                                                            \
  static void name##_body(                                                     \
      const dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name> &args,             \
      dyna::gpu::SharedOf<dyna::gpu::Kernel::name> &shared)

namespace dyna {
namespace gpu {

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

inline int threadIndex() { return dyna_emulated_thread(); }
inline int blockIndex() { return dyna_emulated_block(); }
inline int blockSize() { return dyna_emulated_block_size(); }
inline int gridSize() { return dyna_emulated_grid_size(); }

inline void barrier() { dyna_emulated_barrier(); }
inline void warpBarrier() { dyna_emulated_warp_barrier(); }

/// In words of 4 bytes, each by `exchange`.
template <typename T, typename Exchange>
inline T exchangeWords(T value, Exchange exchange) {
  static_assert(sizeof(T) % 4 == 0, "shuffles take words of 4 bytes");
  uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof(T));
  for (uint32_t &word : words)
    word = exchange(word);
  std::memcpy(&value, words, sizeof(T));
  return value;
}
template <typename T> inline T shuffleXor(T value, int mask) {
  return exchangeWords(value, [mask](uint32_t word) {
    return dyna_emulated_shuffle_xor(word, mask);
  });
}
template <typename T> inline T shuffle(T value, int lane) {
  return exchangeWords(value, [lane](uint32_t word) {
    return dyna_emulated_shuffle_index(word, lane);
  });
}

inline void fenceForHost() {}

template <int bytes, typename T> inline T *aligned(T *address) {
  dyna_emulated_aligned(address, bytes);
  return address;
}

inline void fail(const char *why) { dyna_emulated_trap(why); }

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

template <typename T> inline T &sharedMemory() {
  return *static_cast<T *>(dyna_emulated_dynamic_shared(
      std::is_empty<T>::value ? 0 : static_cast<int64_t>(sizeof(T))));
}

inline void copyAsync(void *shared, const void *global, bool isThere) {
  // Not even its alignment matters where nothing is read.
  dyna_emulated_copy_async(shared, isThere ? global : nullptr, 16,
                           isThere ? 16 : 0);
}
inline void commitCopies() { dyna_emulated_copy_commit(); }
template <int groups> inline void awaitCopies() {
  dyna_emulated_copy_wait(groups);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

inline float exp2(float x) { return std::exp2(x); }
inline double exp2(double x) { return std::exp2(x); }
inline float largestOf(float a, float b) { return std::fmax(a, b); }
inline float log2(float x) { return std::log2(x); }
inline double log2(double x) { return std::log2(x); }
inline float squareRoot(float x) { return std::sqrt(x); }
inline double squareRoot(double x) { return std::sqrt(x); }

inline float widenBf16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
inline uint32_t packBf16(float low, float high) {
  auto narrow = [](float value) -> uint32_t {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (value != value)
      return 0x7fff;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  };
  return narrow(low) | narrow(high) << 16;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

struct EmulatedLoad {
  uint32_t *matrices;
  const void *row;
};

/// Whether the rows of a matrix lie in banks of their own, as they are read at once.
inline bool haveOwnBanks(void *const *lanes) {
  bool isTaken[8] = {};
  for (int lane = 0; lane < 8; ++lane) {
    const void *row = static_cast<const EmulatedLoad *>(lanes[lane])->row;
    bool &bank = isTaken[reinterpret_cast<uintptr_t>(row) / 16 % 8];
    if (bank)
      return false;
    bank = true;
  }
  return true;
}

template <bool transposed> inline void loadMatricesOfWarp(void *const *lanes) {
  for (int lane = 0; lane < 32; lane += 8)
    if (!haveOwnBanks(lanes + lane))
      dyna_emulated_trap("rows of a matrix that share a bank");
  uint16_t elements[4][8][8];
  for (int lane = 0; lane < 32; ++lane) {
    const void *row = static_cast<const EmulatedLoad *>(lanes[lane])->row;
    std::memcpy(elements[lane / 8][lane % 8], row, 16);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      int g = lane / 4, t = 2 * (lane % 4);
      uint32_t first = transposed ? elements[i][t][g] : elements[i][g][t];
      uint32_t second =
          transposed ? elements[i][t + 1][g] : elements[i][g][t + 1];
      static_cast<EmulatedLoad *>(lanes[lane])->matrices[i] = first | second
                                                                          << 16;
    }
}

template <bool transposed>
inline void loadMatricesFrom(uint32_t (&matrices)[4], const void *row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
    dyna_emulated_trap("a row of a matrix that is not aligned to 16 bytes");
  EmulatedLoad load = {matrices, row};
  dyna_emulated_together(&load, loadMatricesOfWarp<transposed>);
}
inline void loadMatrices(uint32_t (&matrices)[4], const void *row) {
  loadMatricesFrom<false>(matrices, row);
}
inline void loadMatricesTransposed(uint32_t (&matrices)[4], const void *row) {
  loadMatricesFrom<true>(matrices, row);
}

struct EmulatedProduct {
  float *c;
  const uint32_t *a;
  uint32_t b[2];
};

inline void multiplyAddOfWarp(void *const *lanes) {
  float a[16][16], b[16][8], c[16][8];
  auto low = [](uint32_t pair) { return widenBf16(pair & 0xffff); };
  auto high = [](uint32_t pair) { return widenBf16(pair >> 16); };
  for (int lane = 0; lane < 32; ++lane) {
    const auto &given = *static_cast<const EmulatedProduct *>(lanes[lane]);
    int g = lane / 4, t = 2 * (lane % 4);
    for (int i = 0; i < 4; ++i) {
      int row = g + 8 * (i % 2), column = t + 8 * (i / 2);
      a[row][column] = low(given.a[i]), a[row][column + 1] = high(given.a[i]);
      c[g + 8 * (i / 2)][t + i % 2] = given.c[i];
    }
    for (int i = 0; i < 2; ++i) {
      b[t + 8 * i][g] = low(given.b[i]);
      b[t + 8 * i + 1][g] = high(given.b[i]);
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        c[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      static_cast<EmulatedProduct *>(lanes[lane])->c[i] =
          c[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
}

inline void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                        uint32_t b1) {
  EmulatedProduct product = {c, a, {b0, b1}};
  dyna_emulated_together(&product, multiplyAddOfWarp);
}

} // namespace gpu
} // namespace dyna

#endif // DYNA_TEST_STANDINS_EMULATEDGPU_H
