//===- FibersTest.cpp - Kernels of a GPU on the processor -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/Fibers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

using testing::HasSubstr;

namespace {

/// What launches give a block.
constexpr int64_t kLaunchShared = 96;

/// The failure of a run, empty when there is none.
std::string run(dyna_emulated_kernel kernel, const void *arguments,
                int32_t grid, int32_t block, uint64_t seed) {
  char message[256] = "";
  dyna_emulated_launch launch = {"test", kernel, arguments,    grid,
                                 block,  seed,   kLaunchShared};
  int32_t failed = dyna_emulated_run(&launch, message, sizeof(message));
  EXPECT_EQ(failed != 0, message[0] != 0);
  return message;
}

struct Sums {
  const int32_t *in;
  int32_t *out; ///< one per block
  bool barrier;
};

uint32_t sumOfWarp(uint32_t value) {
  for (int32_t mask = 16; mask > 0; mask /= 2)
    value += dyna_emulated_shuffle_xor(value, mask);
  return value;
}

/// out[block] = sum over its threads: shuffles, then shared memory.
void sumOfBlock(const void *arguments) {
  const Sums &sums = *static_cast<const Sums *>(arguments);
  int32_t thread = dyna_emulated_thread();
  int32_t size = dyna_emulated_block_size();
  auto *parts = static_cast<int32_t *>(dyna_emulated_shared(32 * 4));
  int32_t at = dyna_emulated_block() * size + thread;
  uint32_t sum = sumOfWarp(static_cast<uint32_t>(sums.in[at]));
  if (thread % 32 == 0)
    parts[thread / 32] = static_cast<int32_t>(sum);
  if (sums.barrier)
    dyna_emulated_barrier();
  if (thread != 0)
    return;
  uint32_t total = 0; // what starts poisoned may overflow
  for (int32_t warp = 0; warp < size / 32; ++warp)
    total += static_cast<uint32_t>(parts[warp]);
  sums.out[dyna_emulated_block()] = static_cast<int32_t>(total);
}

std::vector<int32_t> sums(bool barrier, uint64_t seed) {
  const int32_t grid = 5, block = 128;
  std::vector<int32_t> in(grid * block), out(grid, -1);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<int32_t>(i * i % 1000);
  Sums arguments = {in.data(), out.data(), barrier};
  EXPECT_EQ(run(sumOfBlock, &arguments, grid, block, seed), "");
  return out;
}

} // namespace

TEST(Fibers, NoSeedChangesAResult) {
  std::vector<int32_t> expected(5, 0);
  for (int32_t i = 0; i < 5 * 128; ++i)
    expected[static_cast<size_t>(i / 128)] += i * i % 1000;
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(sums(true, seed), expected);
}

TEST(Fibers, AMissingBarrierShows) {
  std::vector<int32_t> expected = sums(true, 0);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    wrong += sums(false, seed) != expected;
  EXPECT_GE(wrong, 10);
}

/// A loop that uses shared memory again has to wait until all have read: a warp that
/// is a turn ahead writes what others have not read yet.
TEST(Fibers, AWarpThatRunsAheadShows) {
  struct Arguments {
    int32_t *out;
    bool barrier;
  };
  auto kernel = [](const void *a) {
    const auto &arguments = *static_cast<const Arguments *>(a);
    int32_t thread = dyna_emulated_thread(), total = 0;
    auto *parts = static_cast<int32_t *>(dyna_emulated_shared(32 * 4));
    for (int32_t turn = 0; turn < 3; ++turn) {
      uint32_t sum = sumOfWarp(static_cast<uint32_t>(thread * (turn + 1)));
      if (thread % 32 == 0)
        parts[thread / 32] = static_cast<int32_t>(sum);
      dyna_emulated_barrier();
      for (int32_t warp = 0; warp < 32; ++warp)
        total += parts[warp];
      if (arguments.barrier)
        dyna_emulated_barrier();
    }
    arguments.out[thread] = total;
  };
  const std::vector<int32_t> expected(1024, 6 * (1023 * 1024 / 2));
  int wrong = 0;
  for (bool barrier : {true, false})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<int32_t> out(1024, -1);
      Arguments arguments = {out.data(), barrier};
      EXPECT_EQ(run(kernel, &arguments, 1, 1024, seed), "");
      if (barrier)
        EXPECT_EQ(out, expected);
      else
        wrong += out != expected;
    }
  EXPECT_GE(wrong, 3);
}

TEST(Fibers, ASeedSaysTheOrder) {
  struct Order {
    std::vector<int32_t> *seen;
  };
  auto kernel = [](const void *arguments) {
    static_cast<const Order *>(arguments)->seen->push_back(
        dyna_emulated_block() * 100 + dyna_emulated_thread());
  };
  std::set<std::vector<int32_t>> orders;
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (int again = 0; again < 2; ++again) {
      std::vector<int32_t> seen;
      Order order = {&seen};
      EXPECT_EQ(run(kernel, &order, 3, 7, seed), "");
      EXPECT_EQ(seen.size(), 21u);
      orders.insert(seen);
    }
  EXPECT_EQ(orders.size(), 8u);
}

TEST(Fibers, LanesAreChosenFreely) {
  std::vector<uint32_t> got(64);
  struct Arguments {
    uint32_t *got;
  } arguments = {got.data()};
  auto kernel = [](const void *a) {
    int32_t thread = dyna_emulated_thread();
    uint32_t value = static_cast<uint32_t>(thread * 10);
    static_cast<const Arguments *>(a)->got[thread] =
        dyna_emulated_shuffle_index(value, (thread + 1) % 32);
  };
  EXPECT_EQ(run(kernel, &arguments, 1, 64, 3), "");
  for (uint32_t thread = 0; thread < 64; ++thread)
    EXPECT_EQ(got[thread], (thread / 32 * 32 + (thread + 1) % 32) * 10);
}

TEST(Fibers, BarriersOfAWarpHoldItAlone) {
  // The second warp passes none: it would hang at one of the block.
  std::vector<int32_t> data(32, 0);
  struct Arguments {
    int32_t *data;
  } arguments = {data.data()};
  auto kernel = [](const void *a) {
    int32_t thread = dyna_emulated_thread();
    int32_t *data = static_cast<const Arguments *>(a)->data;
    if (thread >= 32)
      return;
    data[thread] = thread;
    dyna_emulated_warp_barrier();
    int32_t other = data[31 - thread];
    dyna_emulated_warp_barrier();
    data[thread] = other;
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(run(kernel, &arguments, 1, 64, seed), "");
    for (int32_t i = 0; i < 32; ++i)
      EXPECT_EQ(data[static_cast<size_t>(i)], 31 - i);
  }
}

TEST(Fibers, SharedMemoryStartsPoisoned) {
  struct Arguments {
    float *seen;
  };
  auto kernel = [](const void *a) {
    auto *shared = static_cast<float *>(dyna_emulated_shared(4));
    static_cast<const Arguments *>(a)->seen[dyna_emulated_block()] = *shared;
    *shared = 1; // no other block finds it
  };
  int nans = 0, finite = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<float> seen(4, 0);
    Arguments arguments = {seen.data()};
    EXPECT_EQ(run(kernel, &arguments, 4, 1, seed), "");
    for (float value : seen) {
      EXPECT_TRUE(std::isnan(value) || std::abs(value) > 1e30f) << value;
      ++(std::isnan(value) ? nans : finite);
    }
  }
  EXPECT_GT(nans, 0);
  EXPECT_GT(finite, 0);
}

//===----------------------------------------------------------------------===//
// What a GPU leaves undefined
//===----------------------------------------------------------------------===//

TEST(Fibers, ABarrierThatAThreadLeavesOutIsNamed) {
  auto kernel = [](const void *) {
    if (dyna_emulated_thread() == 5)
      return;
    dyna_emulated_barrier();
  };
  EXPECT_THAT(run(kernel, nullptr, 1, 32, 1),
              HasSubstr("threads wait for each other: 31 at a barrier of the "
                        "block (first: thread 0), 1 ended (first: thread 5)"));
}

TEST(Fibers, WaitsForDifferentThingsAreNamed) {
  auto kernel = [](const void *) {
    if (dyna_emulated_thread() < 2)
      dyna_emulated_barrier();
    else
      (void)dyna_emulated_shuffle_xor(1, 1);
  };
  for (uint64_t seed = 0; seed < 10; ++seed)
    EXPECT_THAT(run(kernel, nullptr, 1, 64, seed),
                HasSubstr("2 at a barrier of the block (first: thread 0), "
                          "30 at a shuffle (first: thread 2), 32 ended"));
}

TEST(Fibers, ShufflesOfAPartAreRefused) {
  auto different = [](const void *) {
    (void)dyna_emulated_shuffle_xor(1, dyna_emulated_thread() == 9 ? 2 : 1);
  };
  EXPECT_THAT(run(different, nullptr, 1, 32, 0),
              HasSubstr("threads 0 and 9 shuffle by different masks, 1 and 2"));
  auto outside = [](const void *) {
    (void)dyna_emulated_shuffle_index(1, dyna_emulated_thread() + 1);
  };
  EXPECT_THAT(run(outside, nullptr, 1, 32, 0),
              HasSubstr("thread 31 shuffles by lane 32"));
  auto any = [](const void *) { (void)dyna_emulated_shuffle_index(1, 0); };
  EXPECT_THAT(run(any, nullptr, 1, 40, 0),
              HasSubstr("a shuffle in a warp of 8 threads"));
}

namespace {
/// Reverses what the lanes of a warp gave.
void reverse(void *const *lanes) {
  int32_t values[32];
  for (int lane = 0; lane < 32; ++lane)
    values[lane] = *static_cast<int32_t *>(lanes[lane]);
  for (int lane = 0; lane < 32; ++lane)
    *static_cast<int32_t *>(lanes[lane]) = values[31 - lane];
}
void nothing(void *const *) {}
} // namespace

TEST(Fibers, AWarpDoesThingsAtOnce) {
  auto kernel = [](const void *arguments) {
    auto *out = *static_cast<int32_t *const *>(arguments);
    int32_t value = dyna_emulated_thread();
    dyna_emulated_together(&value, reverse);
    out[dyna_emulated_thread()] = value;
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<int32_t> out(64, -1);
    int32_t *arguments = out.data();
    ASSERT_EQ(run(kernel, &arguments, 1, 64, seed), "");
    for (int32_t i = 0; i < 64; ++i)
      ASSERT_EQ(out[static_cast<size_t>(i)], i / 32 * 32 + 31 - i % 32);
  }
  auto different = [](const void *) {
    dyna_emulated_together(nullptr,
                           dyna_emulated_thread() == 5 ? reverse : nothing);
  };
  EXPECT_THAT(
      run(different, nullptr, 1, 32, 0),
      HasSubstr("threads 0 and 5 of a warp are to do different things"));
  auto any = [](const void *) { dyna_emulated_together(nullptr, nothing); };
  EXPECT_THAT(run(any, nullptr, 1, 8, 0), HasSubstr("a warp of 8 threads"));
}

namespace {
struct Copies {
  const int32_t *in; ///< 8 per thread
  int32_t *out;      ///< 8 per thread
  bool waits;
  bool barrier;
};

/// Copies two groups of 16 bytes, of the second only half, and reads what its
/// neighbour copied.
void copyTwice(const void *arguments) {
  const Copies &copies = *static_cast<const Copies *>(arguments);
  int32_t thread = dyna_emulated_thread(), size = dyna_emulated_block_size();
  auto *shared = static_cast<int32_t *>(dyna_emulated_shared(size * 32));
  for (int32_t i = 0; i < 2; ++i) {
    dyna_emulated_copy_async(shared + 8 * thread + 4 * i,
                             copies.in + 8 * thread + 4 * i, 16, i ? 8 : 16);
    dyna_emulated_copy_commit();
  }
  int32_t neighbour = (thread + 1) % size;
  for (int32_t i = 0; i < 2; ++i) {
    if (copies.waits)
      dyna_emulated_copy_wait(1 - i);
    if (copies.barrier)
      dyna_emulated_barrier();
    memcpy(copies.out + 8 * thread + 4 * i, shared + 8 * neighbour + 4 * i, 16);
  }
  dyna_emulated_copy_wait(0);
}

std::vector<int32_t> copied(bool waits, bool barrier, uint64_t seed) {
  std::vector<int32_t> in(64 * 8), out(64 * 8, -5);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<int32_t>(i);
  Copies arguments = {in.data(), out.data(), waits, barrier};
  EXPECT_EQ(run(copyTwice, &arguments, 1, 64, seed), "");
  return out;
}
} // namespace

TEST(Fibers, CopiesAreThereBehindAWaitAndABarrier) {
  std::vector<int32_t> expected;
  for (int32_t i = 0; i < 64 * 8; ++i)
    expected.push_back(i % 8 < 6 ? (i + 8) % 512 : 0);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(copied(true, true, seed), expected);
    EXPECT_NE(copied(false, true, seed), expected) << "without a wait";
    EXPECT_NE(copied(true, false, seed), expected) << "without a barrier";
  }
}

TEST(Fibers, CopiesAreWaitedForAndAligned) {
  alignas(16) static int32_t source[8] = {};
  auto forgets = [](const void *) {
    dyna_emulated_copy_async(dyna_emulated_shared(16), source, 4, 4);
  };
  EXPECT_THAT(run(forgets, nullptr, 1, 1, 0),
              HasSubstr("thread 0 ended with 1 copies on their way"));
  auto crooked = [](const void *) {
    dyna_emulated_copy_async(dyna_emulated_shared(64), source + 1, 16, 16);
  };
  EXPECT_THAT(run(crooked, nullptr, 1, 1, 0),
              HasSubstr("thread 0 copies 16 of 16 bytes, not aligned"));
}

TEST(Fibers, SharedMemoryHasOneSize) {
  auto kernel = [](const void *) {
    dyna_emulated_shared(dyna_emulated_thread() == 1 ? 8 : 4);
  };
  std::string failure = run(kernel, nullptr, 1, 2, 0);
  EXPECT_TRUE(failure.find("asks for 8 bytes of shared memory, others for 4") !=
                  std::string::npos ||
              failure.find("asks for 4 bytes of shared memory, others for 8") !=
                  std::string::npos)
      << failure;
}

TEST(Fibers, SharedMemoryOfALaunchIsWhatItGives) {
  auto fits = [](const void *) { dyna_emulated_dynamic_shared(kLaunchShared); };
  EXPECT_EQ(run(fits, nullptr, 1, 2, 0), "");
  auto more = [](const void *) {
    dyna_emulated_dynamic_shared(kLaunchShared + 1);
  };
  EXPECT_THAT(
      run(more, nullptr, 1, 1, 0),
      HasSubstr(
          "thread 0 uses 97 bytes of shared memory, the launch gives 96"));
}

TEST(Fibers, ATrapEndsTheKernelAndNotTheProcess) {
  auto kernel = [](const void *) {
    if (dyna_emulated_thread() == 2)
      dyna_emulated_trap("a target outside of the vocabulary");
    dyna_emulated_barrier();
  };
  EXPECT_EQ(run(kernel, nullptr, 1, 8, 0),
            "kernel test, block 0 of 1: thread 2: a target outside of the "
            "vocabulary");
  EXPECT_THAT(run(kernel, nullptr, 1, 2000, 0), HasSubstr("of 2000 threads"));
  EXPECT_EQ(sums(true, 1), sums(true, 0)) << "stacks can be used again";
}

TEST(Fibers, AccessesAreAligned) {
  auto kernel = [](const void *arguments) {
    const char *at = *static_cast<const char *const *>(arguments);
    dyna_emulated_aligned(at + 4 * dyna_emulated_thread(), 8);
  };
  alignas(16) char memory[16];
  const char *begin = memory;
  EXPECT_EQ(run(kernel, &begin, 1, 1, 0), "");
  EXPECT_EQ(run(kernel, &begin, 1, 2, 0),
            "kernel test, block 0 of 1: thread 1: an access of 8 bytes to an "
            "address that is no multiple of them");
}

TEST(Fibers, HostThreadsRunKernelsAtOnce) {
  std::vector<int32_t> expected = sums(true, 0);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&expected, seed] {
      for (uint64_t i = 0; i < 10; ++i)
        EXPECT_EQ(sums(true, seed * 10 + i), expected);
    });
  for (std::thread &thread : threads)
    thread.join();
}
