//===- Gpu.h - Declares functions of a GPU for kernels ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel is a source of this folder with two bodies. nvcc compiles it for
// GPUs, with the functions below. The host's compiler compiles it for the
// processor, with test/standins/EmulatedGpu.h. That header has the same
// functions over fibers. Sources use only this header, plain C++ and each
// other's headers:
//
//     DYNA_KERNEL(scale) {             // a row of Kernels.def
//       int64_t i = int64_t(gpu::blockIndex()) * gpu::blockSize() +
//                   gpu::threadIndex();
//       if (i < args.count)            // args: the row's arguments
//         args.out[i] = args.factor * args.in[i];
//     }                                // shared: the block's shared memory
//
// Functions that kernels call are DYNA_GPU. Blocks and threads are counted in
// one dimension. "Called by the warp" means that all of its 32 lanes call it,
// at the same place.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_GPU_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_GPU_H

#include "runtime/device/cuda/kernels/KernelTypes.h"

#include <cstdint>

#ifndef __CUDACC__
#ifndef DYNA_TEST_STANDINS_EMULATEDGPU_H
#error                                                                         \
    "kernels are compiled by nvcc, or with test/standins/EmulatedGpu.h before"
#endif
#else

#include <cuda_runtime.h>

#define DYNA_GPU __device__ __forceinline__

#define DYNA_KERNEL(name)                                                      \
  static DYNA_GPU void name##_body(                                            \
      const dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name> &args,             \
      dyna::gpu::SharedOf<dyna::gpu::Kernel::name> &shared);                   \
  extern "C" __global__ void __launch_bounds__(                                \
      dyna::gpu::KernelRow<dyna::gpu::Kernel::name>::threads,                  \
      dyna::gpu::kBlocksAtOnce<dyna::gpu::Kernel::name>)                       \
      name(const __grid_constant__                                             \
               dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name>                 \
                   args) {                                                     \
    name##_body(args, dyna::gpu::sharedMemory<                                 \
                          dyna::gpu::SharedOf<dyna::gpu::Kernel::name>>());    \
  }                                                                            \
  static DYNA_GPU void name##_body(                                            \
      const dyna::gpu::ArgumentsOf<dyna::gpu::Kernel::name> &args,             \
      dyna::gpu::SharedOf<dyna::gpu::Kernel::name> &shared)

namespace dyna {
namespace gpu {

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

DYNA_GPU int threadIndex() {
  const unsigned index = threadIdx.x;
  __builtin_assume(index <
                   1024); // quotients and remainders become shifts and masks
  return static_cast<int>(index);
}
DYNA_GPU int blockIndex() { return static_cast<int>(blockIdx.x); }
DYNA_GPU int blockSize() { return static_cast<int>(blockDim.x); }
DYNA_GPU int gridSize() { return static_cast<int>(gridDim.x); }

/// Waits for all threads of the block, which see what the others wrote before.
DYNA_GPU void barrier() { __syncthreads(); }
DYNA_GPU void warpBarrier() { __syncwarp(); }

/// Return the value of another lane: the one whose index is this one's xor
/// `mask`, or lane `lane`. The value has 4 or 8 bytes. Called by the warp.
template <typename T> DYNA_GPU T shuffleXor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <typename T> DYNA_GPU T shuffle(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}

/// Makes earlier writes of this thread visible to the host before any later
/// event.
DYNA_GPU void fenceForHost() { __threadfence_system(); }

/// Returns the same address, at which `bytes` are read or written in one
/// access. It must be a multiple of them, which emulated kernels check.
template <int bytes, typename T> DYNA_GPU T *aligned(T *address) {
  return address;
}

/// Ends the kernel, and the use of the device, as failed.
DYNA_GPU void fail(const char *) { __trap(); }

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Returns the shared memory of the block, for DYNA_KERNEL.
template <typename T> DYNA_GPU T &sharedMemory() {
  extern __shared__ __align__(128) unsigned char bytes[];
  return *reinterpret_cast<T *>(bytes);
}

/// Begins to copy 16 bytes to shared memory, zeros where not `isThere` (`global`
/// is then not read); both addresses are multiples of 16.
DYNA_GPU void copyAsync(void *shared, const void *global, bool isThere) {
  uint32_t target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target),
               "l"(global), "r"(isThere ? 16 : 0)
               : "memory");
}
/// Makes the thread's copies since the last such call a group.
DYNA_GPU void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until no more than the last `groups` groups of this thread are on
/// their way. Other threads see the copies after a barrier.
template <int groups> DYNA_GPU void awaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Return 2^x and log2(x), to about the precision of the type (f32: 2 units).
DYNA_GPU float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DYNA_GPU double exp2(double x) { return ::exp2(x); }
/// Returns the larger value; the number, if the other is NaN.
DYNA_GPU float largestOf(float a, float b) { return ::fmaxf(a, b); }
DYNA_GPU float log2(float x) { return ::log2f(x); }
DYNA_GPU double log2(double x) { return ::log2(x); }
DYNA_GPU float squareRoot(float x) { return ::sqrtf(x); }
DYNA_GPU double squareRoot(double x) { return ::sqrt(x); }

/// Returns two values as bf16, rounded to nearest, the first in the lower half.
DYNA_GPU uint32_t packBf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
/// Returns the float whose upper half this is.
DYNA_GPU float widenBf16(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// Loads four matrices of 8 rows of 8 bf16 from shared memory. Called by the
/// warp. Lane 8 i + r gives the address of row r of matrix i, a multiple of 16.
/// Lane l gets two elements of each matrix, 2 (l % 4) and the next, of row l /
/// 4. Transposed: rows 2 (l % 4) and the next, of column l / 4.
DYNA_GPU void loadMatrices(uint32_t (&matrices)[4], const void *row) {
  uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]),
                 "=r"(matrices[3])
               : "r"(from)
               : "memory");
}
DYNA_GPU void loadMatricesTransposed(uint32_t (&matrices)[4], const void *row) {
  uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]),
        "=r"(matrices[3])
      : "r"(from)
      : "memory");
}

/// Computes C += A B with A [16, 16] and B [16, 8] of bf16, C [16, 8] of f32.
/// Called by the warp. Lane l has pairs of neighbours along k, with g = l / 4
/// and t = 2 (l % 4):
///
///     a[0] A[g][t..]  a[1] A[g+8][t..]  a[2] A[g][t+8..]  a[3] A[g+8][t+8..]
///     b0 B[t..][g]    b1 B[t+8..][g]
///     c[0], c[1] C[g][t], C[g][t+1]     c[2], c[3] C[g+8][t], C[g+8][t+1]
DYNA_GPU void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                          uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace gpu
} // namespace dyna

#endif // __CUDACC__
#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_GPU_H
