//===- Fibers.h - Kernels of a GPU on the processor ---------------*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel asks of a GPU, as C functions: code generated for the emulated
// architecture calls them where a real one has special registers and
// instructions, and so do kernels written by hand when compiled as C++. Link
// `dyna_fibers`. A kernel is
//
//   void kernel(const void *arguments);   // the address of its by-value struct
//
// and `dyna_emulated_run` runs it as a grid of blocks of threads, a fiber per
// thread: each runs on until it waits for others (barrier, shuffle) or ends, then
// another is resumed, in an order drawn from the seed. In half of the blocks any
// may be next; in the others a warp goes on as long as it can while the rest stand
// still, which shows barriers that only fast warps need. Nothing else depends on
// the seed, so that a kernel whose result does has a race: it lacks a barrier.
// Warps are 32 threads in order of their index. Blocks run one after another, in
// seeded order too.
//
// What a GPU leaves undefined fails here, with a line that names the kernel,
// the block and its threads: a barrier or shuffle that not all threads reach
// (some ended, some wait elsewhere), a shuffle in a warp that is not full or
// that asks lanes for different masks, shared memory of different sizes, a copy
// that nobody waits for.
//
// A kernel that fails is left where it stands: destructors of its variables do
// not run. Threads of the host may run kernels at the same time. Outside of a
// kernel none but `dyna_emulated_run` may be called.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_FIBERS_H
#define DYNA_TEST_STANDINS_FIBERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// For kernels
//===----------------------------------------------------------------------===//

/// Index of this thread in its block, of the block in the grid, and how many
/// there are. All is in one dimension.
int32_t dyna_emulated_thread(void);
int32_t dyna_emulated_block(void);
int32_t dyna_emulated_block_size(void);
int32_t dyna_emulated_grid_size(void);

/// Waits for all threads of the block (bar.sync 0, __syncthreads).
void dyna_emulated_barrier(void);
/// Waits for all threads of the warp (bar.warp.sync, __syncwarp).
void dyna_emulated_warp_barrier(void);

/// The `value` of the lane whose index is this one's xor `mask`, 0 to 31 and the
/// same for the whole warp (shfl.sync.bfly, all lanes).
uint32_t dyna_emulated_shuffle_xor(uint32_t value, int32_t mask);
/// The `value` of the lane `lane`, 0 to 31, which each lane chooses for itself
/// (shfl.sync.idx, all lanes).
uint32_t dyna_emulated_shuffle_index(uint32_t value, int32_t lane);

/// What all lanes of a warp do at once (mma, ldmatrix): when the last of them has
/// come, `work` is called once with what each lane gave, in the order of lanes.
/// All give the same `work`.
typedef void (*dyna_emulated_warp_work)(void *const *lanes);
void dyna_emulated_together(void *mine, dyna_emulated_warp_work work);

/// cp.async: copies 4, 8 or 16 bytes to shared memory, but not before the thread
/// waits for them; until then their place is full of NaN. Only the first `valid`
/// bytes are read, zeros follow. Addresses are multiples of `bytes`. A group is
/// what was copied since the last commit; a wait leaves the last `groups` groups
/// on their way. A thread that ends before its copies fails.
void dyna_emulated_copy_async(void *shared, const void *global, int32_t bytes,
                              int32_t valid);
void dyna_emulated_copy_commit(void);
void dyna_emulated_copy_wait(int32_t groups);

/// The block's shared memory, aligned to 128 bytes: the same address for all of
/// its threads, however often they ask, and all must ask for as many bytes. A
/// block finds it full of NaN or of large numbers, never what another left.
/// AddressSanitizer sees its end.
void *dyna_emulated_shared(int64_t bytes);
/// The same for kernels whose launch says how much there is: fails where that is less.
void *dyna_emulated_dynamic_shared(int64_t bytes);

/// Before a load or store of generated code: fails where `address` is no multiple of
/// `bytes`, at which a GPU ends the kernel.
void dyna_emulated_aligned(const void *address, int32_t bytes);

/// Ends the kernel as failed, as `trap` does. Does not return.
void dyna_emulated_trap(const char *why);

//===----------------------------------------------------------------------===//
// For who runs them
//===----------------------------------------------------------------------===//

enum { DYNA_EMULATED_WARP = 32, DYNA_EMULATED_MAX_BLOCK = 1024 };

typedef void (*dyna_emulated_kernel)(const void *arguments);

typedef struct dyna_emulated_launch {
  const char *name; ///< for messages
  dyna_emulated_kernel kernel;
  const void *arguments; ///< stays as it is until the run has ended
  int32_t grid;          ///< blocks
  int32_t block;         ///< threads of each, 1 to DYNA_EMULATED_MAX_BLOCK
  uint64_t seed;
  int64_t shared_bytes; ///< that the launch gives, for dynamic_shared
} dyna_emulated_launch;

/// Runs the whole grid. Returns 0; or 1 with one line in `message`, cut to
/// `capacity` bytes with its 0.
int32_t dyna_emulated_run(const dyna_emulated_launch *launch, char *message,
                          int64_t capacity);

/// What stands in for the bytes of a cubin: a table of kernels, and who runs
/// them. The driver's stand-in loads an image of this type as a module
/// (cuModuleLoadData takes its address); it is never unloaded.
typedef struct dyna_emulated_entry {
  const char *name;
  dyna_emulated_kernel kernel;
  int64_t argument_bytes; ///< size of its struct; launches must give as many
} dyna_emulated_entry;

#define DYNA_EMULATED_MAGIC "DYNAEMU"

typedef struct dyna_emulated_image {
  char magic[8];     ///< DYNA_EMULATED_MAGIC
  int64_t byte_size; ///< of this struct
  int64_t count;
  const dyna_emulated_entry *kernels;
  /// dyna_emulated_run of who made the image.
  int32_t (*run)(const dyna_emulated_launch *launch, char *message,
                 int64_t capacity);
} dyna_emulated_image;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DYNA_TEST_STANDINS_FIBERS_H
