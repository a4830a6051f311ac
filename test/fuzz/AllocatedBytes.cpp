//===- AllocatedBytes.cpp - Counts the memory of a fuzz target ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/AllocatedBytes.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <malloc.h>

static std::atomic<int64_t> allocated{0}, peak{0};

int64_t dyna::test::beginPeak() {
  peak = allocated.load();
  return peak;
}

int64_t dyna::test::peakBytes() { return peak; }

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DYNA_HAS_ITS_OWN_MALLOC
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DYNA_HAS_ITS_OWN_MALLOC
#endif

#if defined(__GLIBC__) && !defined(DYNA_HAS_ITS_OWN_MALLOC)

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *countIn(void *block) {
  const int64_t now = allocated +=
      static_cast<int64_t>(malloc_usable_size(block));
  for (int64_t most = peak; now > most;)
    if (peak.compare_exchange_weak(most, now))
      break;
  return block;
}

static void countOut(void *block) {
  allocated -= static_cast<int64_t>(malloc_usable_size(block));
}

void *malloc(size_t size) { return countIn(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) {
  return countIn(__libc_calloc(count, size));
}
void *realloc(void *block, size_t size) {
  countOut(block);
  void *made = __libc_realloc(block, size);
  // If there is no room, the old block stays; of size 0 there is none.
  return countIn(made || size == 0 ? made : block) == made ? made : nullptr;
}
void *memalign(size_t alignment, size_t size) {
  return countIn(__libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block || size == 0 ? 0 : ENOMEM;
}
void free(void *block) {
  countOut(block);
  __libc_free(block);
}

} // extern "C"

#endif
