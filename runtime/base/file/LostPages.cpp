//===- LostPages.cpp - Handles mapped pages that cannot be read -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/LostPages.h"

#include <cerrno>
#include <csignal>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace dyna;

using Range = LostPages::Range;

// A handler reaches only globals and may take no lock, so the list only grows.
static std::atomic<Range *> allRanges{nullptr};
static std::atomic<uintptr_t> pageBytes{4096};
static_assert(std::atomic<Range *>::is_always_lock_free &&
              std::atomic<uintptr_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

static struct sigaction actionBefore;

static void onBusError(int, siginfo_t *info, void *) {
  const int errnoBefore = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Range *range = allRanges; range; range = range->next) {
    if (address < range->begin || address >= range->end)
      continue;
    // Replace the rest of the file at once, because each page would raise a
    // signal and none is of use.
    const uintptr_t page = address & ~(pageBytes - 1);
    range->isLost = true;
    // mmap is a plain system call here, which is safe in a handler.
    void *zeros =
        ::mmap(reinterpret_cast<void *>(page), range->end - page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED)
      break;
    errno = errnoBefore;
    return;
  }
  // The address is not in our list: restore the earlier handler, which gets the
  // next signal.
  ::sigaction(SIGBUS, &actionBefore, nullptr);
  errno = errnoBefore;
}

static void catchBusErrors() {
  pageBytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &actionBefore);
}

/// Ranges of mappings that have ended.
struct FreeRanges {
  std::mutex mutex;
  std::vector<Range *> ranges;
};

static FreeRanges &freeRanges() {
  // The list is never destroyed, because mappings may end after globals.
  static FreeRanges &result = *new FreeRanges;
  return result;
}

LostPages::LostPages(const void *data, size_t size) {
  static std::once_flag caught;
  std::call_once(caught, catchBusErrors);
  FreeRanges &free = freeRanges();
  std::lock_guard<std::mutex> lock(free.mutex);
  const bool isNew = free.ranges.empty();
  if (isNew) {
    range_ = new Range;
  } else {
    range_ = free.ranges.back();
    free.ranges.pop_back();
  }
  range_->isLost = false;
  range_->begin = reinterpret_cast<uintptr_t>(data);
  range_->end = reinterpret_cast<uintptr_t>(data) + size;
  if (isNew) {
    range_->next = allRanges;
    allRanges = range_;
  }
}

LostPages::~LostPages() {
  if (!range_)
    return;
  range_->end = 0;
  range_->begin = 0;
  FreeRanges &free = freeRanges();
  std::lock_guard<std::mutex> lock(free.mutex);
  free.ranges.push_back(range_);
}

bool LostPages::any() const { return range_ && range_->isLost; }
