//===- Fibers.cpp - Kernels of a GPU on the processor -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One host thread runs one block at a time: `Block` is its scheduler, whose own
// stack is the host's. A fiber leaves by `pause`, which says where it waits, and
// only the scheduler resumes.
//
//===----------------------------------------------------------------------===//

#include "test/standins/Fibers.h"

#include "runtime/base/text/Text.h"
#include "test/standins/FiberStack.h"
#include "test/standins/Random.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

using namespace dyna;
using standins::fiberStackOf;
using standins::kStackBytes;
using standins::Random;

namespace {

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

enum class At : uint8_t {
  Ready,
  Barrier,
  WarpBarrier,
  Xor,
  Index,
  Together,
  Ended
};

const char *nameOf(At at) {
  switch (at) {
  case At::Barrier:
    return "at a barrier of the block";
  case At::WarpBarrier:
    return "at a barrier of the warp";
  case At::Xor:
  case At::Index:
    return "at a shuffle";
  case At::Together:
    return "at what a warp does at once";
  case At::Ended:
    return "ended";
  case At::Ready:
    break;
  }
  return "running";
}

/// One that is on its way to shared memory.
struct Copy {
  void *target;
  const void *source;
  size_t bytes, valid;
  int64_t group;
};

struct Fiber {
  void *stackPointer = nullptr;
  At at = At::Ready;
  int32_t lane = 0;        ///< or the mask that its shuffle asks for
  uint32_t value = 0;      ///< given to the shuffle, then got from it
  void *operand = nullptr; ///< of `work`
  dyna_emulated_warp_work work = nullptr;
  std::vector<Copy> copies;
  int64_t group = 0; ///< of the next copy: commits so far
#ifdef DYNA_FIBERS_TSAN
  void *sanitizer = nullptr;
#endif
};

class Block {
public:
  Block(const dyna_emulated_launch &launch, int32_t index, Random &random)
      : launch(launch), index(index), random_(random),
        fibers_(static_cast<size_t>(launch.block)),
        inWarp_((fibers_.size() + DYNA_EMULATED_WARP - 1) / DYNA_EMULATED_WARP),
        isGreedy_(random.below(2) == 1) {}
  ~Block() {
    std::free(shared_);
#ifdef DYNA_FIBERS_TSAN
    for (Fiber &fiber : fibers_)
      if (fiber.sanitizer)
        __tsan_destroy_fiber(fiber.sanitizer);
#endif
  }

  /// Runs all threads; false when it failed, see `failure`.
  bool run();

  // Of the fiber that runs.
  int32_t thread() const { return static_cast<int32_t>(running_); }
  Fiber &fiber() { return fibers_[running_]; }
  uint32_t pauseAt(At at, uint32_t value, int32_t lane);
  void copyAsync(void *target, const void *source, int32_t bytes,
                 int32_t valid);
  void awaitCopies(int32_t groups);
  void *shared(int64_t bytes);
  void *dynamicShared(int64_t bytes);
  void setFailure(const std::string &why);
  /// After setFailure; nothing that owns memory may live in the fiber then.
  [[noreturn]] void stop();

  const dyna_emulated_launch &launch;
  const int32_t index;
  std::string failure;

private:
  static void enter();
  void resume(size_t thread);
  void leave();
  void arrive(size_t thread);
  void arriveInWarp(size_t thread);
  void readyWarp(size_t warp);
  void readyBlock();
  bool shuffle(size_t begin, size_t end);
  bool together(size_t begin, size_t end);
  void nameDeadlock();

  Random &random_;
  std::vector<Fiber> fibers_;
  std::vector<size_t> ready_;
  size_t running_ = 0;
  size_t atBarrier_ = 0;
  std::vector<size_t> inWarp_; ///< of each, how many wait in it
  /// Who became ready last goes on first: a warp runs on as far as it can while
  /// the others stand still. Else the next one is drawn, and all come along.
  const bool isGreedy_;
  size_t ended_ = 0;
  void *scheduler_ = nullptr; ///< its stack pointer
  void *shared_ = nullptr;
  int64_t sharedBytes_ = -1;
#ifdef DYNA_FIBERS_ASAN
  const void *hostStack_ = nullptr;
  size_t hostStackBytes_ = 0;
#endif
#ifdef DYNA_FIBERS_TSAN
  void *hostFiber_ = nullptr;
#endif
};

thread_local Block *current = nullptr;

void Block::enter() {
  // Fibers stay on their host thread: its variable may be read at any time.
  Block &block = *current;
#ifdef DYNA_FIBERS_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &block.hostStack_,
                                  &block.hostStackBytes_);
#endif
  block.launch.kernel(block.launch.arguments);
  block.fibers_[block.running_].at = At::Ended;
  block.leave();
  std::abort(); // the scheduler resumes no fiber that ended
}

void Block::resume(size_t thread) {
  running_ = thread;
#ifdef DYNA_FIBERS_ASAN
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, fiberStackOf(thread).bottom(),
                                 kStackBytes);
#endif
#ifdef DYNA_FIBERS_TSAN
  __tsan_switch_to_fiber(fibers_[thread].sanitizer, 0);
#endif
  dyna_fiber_switch(&scheduler_, fibers_[thread].stackPointer);
#ifdef DYNA_FIBERS_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

/// From the running fiber to the scheduler.
void Block::leave() {
#ifdef DYNA_FIBERS_ASAN
  void *fake = nullptr;
  bool last = fibers_[running_].at == At::Ended;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake, hostStack_,
                                 hostStackBytes_);
#endif
#ifdef DYNA_FIBERS_TSAN
  __tsan_switch_to_fiber(hostFiber_, 0);
#endif
  dyna_fiber_switch(&fibers_[running_].stackPointer, scheduler_);
#ifdef DYNA_FIBERS_ASAN
  __sanitizer_finish_switch_fiber(fake, &hostStack_, &hostStackBytes_);
#endif
}

bool Block::run() {
  current = this;
#ifdef DYNA_FIBERS_TSAN
  hostFiber_ = __tsan_get_current_fiber();
#endif
  for (size_t thread = 0; thread < fibers_.size(); ++thread) {
    fibers_[thread].stackPointer = fiberStackOf(thread).prepare(&Block::enter);
#ifdef DYNA_FIBERS_TSAN
    fibers_[thread].sanitizer = __tsan_create_fiber(0);
#endif
  }
  readyBlock();
  while (!ready_.empty() && failure.empty()) {
    size_t &picked =
        isGreedy_ ? ready_.back() : ready_[random_.below(ready_.size())];
    size_t thread = picked;
    picked = ready_.back();
    ready_.pop_back();
    resume(thread);
    if (failure.empty())
      arrive(thread);
  }
  if (failure.empty() && ended_ < fibers_.size())
    nameDeadlock();
  current = nullptr;
  return failure.empty();
}

/// Looks at where the fiber waits, and readies whom it was the last for.
void Block::arrive(size_t thread) {
  switch (fibers_[thread].at) {
  case At::Ready:
    break;
  case At::Ended:
    ++ended_;
    if (!fibers_[thread].copies.empty())
      setFailure(formatText("thread %d ended with %d copies on their way",
                            thread, fibers_[thread].copies.size()));
    break;
  case At::Barrier:
    if (++atBarrier_ < fibers_.size())
      break;
    atBarrier_ = 0;
    readyBlock();
    break;
  case At::WarpBarrier:
  case At::Xor:
  case At::Index:
  case At::Together:
    arriveInWarp(thread);
    break;
  }
}

void Block::arriveInWarp(size_t thread) {
  const size_t begin = thread / DYNA_EMULATED_WARP * DYNA_EMULATED_WARP;
  const size_t end = std::min(begin + DYNA_EMULATED_WARP, fibers_.size());
  size_t &waiting = inWarp_[thread / DYNA_EMULATED_WARP];
  if (++waiting < end - begin)
    return;
  for (size_t i = begin; i < end; ++i)
    if (fibers_[i].at != fibers_[thread].at)
      return; // for good: the deadlock is named in the end
  waiting = 0;
  const At at = fibers_[thread].at;
  if (at == At::Together ? !together(begin, end)
                         : at != At::WarpBarrier && !shuffle(begin, end))
    return;
  readyWarp(thread / DYNA_EMULATED_WARP);
}

/// One behind the other, from a lane on that is drawn.
void Block::readyWarp(size_t warp) {
  const size_t begin = warp * DYNA_EMULATED_WARP;
  const size_t size =
      std::min<size_t>(DYNA_EMULATED_WARP, fibers_.size() - begin);
  const size_t first = random_.below(size);
  for (size_t i = 0; i < size; ++i) {
    const size_t thread = begin + (first + i) % size;
    fibers_[thread].at = At::Ready;
    ready_.push_back(thread);
  }
}

/// Warp by warp, in an order that is drawn.
void Block::readyBlock() {
  std::vector<size_t> warps(inWarp_.size());
  std::iota(warps.begin(), warps.end(), size_t(0));
  for (size_t left = warps.size(); left > 0; --left) {
    std::swap(warps[random_.below(left)], warps[left - 1]);
    readyWarp(warps[left - 1]);
  }
}

bool Block::shuffle(size_t begin, size_t end) {
  uint32_t given[DYNA_EMULATED_WARP];
  if (end - begin < DYNA_EMULATED_WARP) {
    setFailure(formatText("a shuffle in a warp of %d threads", end - begin));
    return false;
  }
  for (size_t i = begin; i < end; ++i)
    given[i - begin] = fibers_[i].value;
  for (size_t i = begin; i < end; ++i) {
    Fiber &fiber = fibers_[i];
    bool isXor = fiber.at == At::Xor;
    if (isXor && fiber.lane != fibers_[begin].lane) {
      setFailure(
          formatText("threads %d and %d shuffle by different masks, %d and %d",
                     begin, i, fibers_[begin].lane, fiber.lane));
      return false;
    }
    if (fiber.lane < 0 || fiber.lane >= DYNA_EMULATED_WARP) {
      setFailure(formatText("thread %d shuffles by %s %d", i,
                            isXor ? "mask" : "lane", fiber.lane));
      return false;
    }
    size_t from = static_cast<size_t>(fiber.lane);
    fiber.value = given[isXor ? (i - begin) ^ from : from];
  }
  return true;
}

bool Block::together(size_t begin, size_t end) {
  void *given[DYNA_EMULATED_WARP];
  if (end - begin < DYNA_EMULATED_WARP) {
    setFailure(formatText("a warp of %d threads is to do something at once",
                          end - begin));
    return false;
  }
  for (size_t i = begin; i < end; ++i) {
    if (fibers_[i].work != fibers_[begin].work) {
      setFailure(formatText("threads %d and %d of a warp are to do different "
                            "things at once",
                            begin, i));
      return false;
    }
    given[i - begin] = fibers_[i].operand;
  }
  fibers_[begin].work(given);
  return true;
}

void Block::copyAsync(void *target, const void *source, int32_t bytes,
                      int32_t valid) {
  bool isAligned = reinterpret_cast<uintptr_t>(target) % bytes == 0 &&
                   reinterpret_cast<uintptr_t>(source) % bytes == 0;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || valid < 0 || valid > bytes ||
      !isAligned) {
    setFailure(formatText("thread %d copies %d of %d bytes%s", thread(), valid,
                          bytes, isAligned ? "" : ", not aligned"));
    stop();
  }
  // What is read too early shows, and so does what is overwritten too early.
  memset(target, 0xff, static_cast<size_t>(bytes));
  fiber().copies.push_back({target, source, static_cast<size_t>(bytes),
                            static_cast<size_t>(valid), fiber().group});
}

void Block::awaitCopies(int32_t groups) {
  Fiber &here = fiber();
  size_t done = 0;
  for (; done < here.copies.size(); ++done) {
    const Copy &copy = here.copies[done];
    if (copy.group >= here.group - groups)
      break;
    if (copy.valid > 0)
      memcpy(copy.target, copy.source, copy.valid);
    memset(static_cast<char *>(copy.target) + copy.valid, 0,
           copy.bytes - copy.valid);
  }
  here.copies.erase(here.copies.begin(),
                    here.copies.begin() + static_cast<ptrdiff_t>(done));
}

uint32_t Block::pauseAt(At at, uint32_t value, int32_t lane) {
  Fiber &fiber = fibers_[running_];
  fiber.at = at;
  fiber.value = value;
  fiber.lane = lane;
  leave();
  return fiber.value;
}

void *Block::shared(int64_t bytes) {
  if (sharedBytes_ < 0) {
    if (bytes < 0 || bytes > (int64_t(1) << 20)) {
      setFailure(formatText("thread %d asks for %d bytes of shared memory",
                            thread(), bytes));
      stop();
    }
    // As many as asked for, so that AddressSanitizer sees the end.
    if (posix_memalign(&shared_, 128, static_cast<size_t>(bytes)) != 0)
      std::abort();
    sharedBytes_ = bytes;
    // NaN in every type, or large finite numbers: one of both shows.
    memset(shared_, random_.below(2) ? 0xff : 0x7b, static_cast<size_t>(bytes));
  }
  if (bytes != sharedBytes_) {
    setFailure(formatText(
        "thread %d asks for %d bytes of shared memory, others for %d", thread(),
        bytes, sharedBytes_));
    stop();
  }
  return shared_;
}

void *Block::dynamicShared(int64_t bytes) {
  if (bytes > launch.shared_bytes) {
    setFailure(formatText("thread %d uses %d bytes of shared memory, the "
                          "launch gives %d",
                          thread(), bytes, launch.shared_bytes));
    stop();
  }
  return shared(bytes);
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Block::setFailure(const std::string &why) {
  failure = formatText("kernel %s, block %d of %d: %s",
                       launch.name ? launch.name : "", index, launch.grid, why);
}

void Block::stop() {
  leave(); // and is never resumed
  std::abort();
}

void Block::nameDeadlock() {
  std::string why = "threads wait for each other:";
  const char *comma = " ";
  for (At at : {At::Barrier, At::WarpBarrier, At::Xor, At::Index, At::Together,
                At::Ended}) {
    size_t count = 0, first = 0;
    for (size_t i = fibers_.size(); i-- > 0;)
      if (fibers_[i].at == at)
        ++count, first = i;
    if (count == 0)
      continue;
    why += formatText("%s%d %s (first: thread %d)", comma, count, nameOf(at),
                      first);
    comma = ", ";
  }
  setFailure(why);
}

} // namespace

//===----------------------------------------------------------------------===//
// The C interface
//===----------------------------------------------------------------------===//

int32_t dyna_emulated_thread(void) { return current->thread(); }
int32_t dyna_emulated_block(void) { return current->index; }
int32_t dyna_emulated_block_size(void) { return current->launch.block; }
int32_t dyna_emulated_grid_size(void) { return current->launch.grid; }

void dyna_emulated_barrier(void) { current->pauseAt(At::Barrier, 0, 0); }
void dyna_emulated_warp_barrier(void) {
  current->pauseAt(At::WarpBarrier, 0, 0);
}

uint32_t dyna_emulated_shuffle_xor(uint32_t value, int32_t mask) {
  return current->pauseAt(At::Xor, value, mask);
}
uint32_t dyna_emulated_shuffle_index(uint32_t value, int32_t lane) {
  return current->pauseAt(At::Index, value, lane);
}

void dyna_emulated_together(void *mine, dyna_emulated_warp_work work) {
  current->fiber().operand = mine;
  current->fiber().work = work;
  current->pauseAt(At::Together, 0, 0);
}

void dyna_emulated_copy_async(void *shared, const void *global, int32_t bytes,
                              int32_t valid) {
  current->copyAsync(shared, global, bytes, valid);
}
void dyna_emulated_copy_commit(void) { ++current->fiber().group; }
void dyna_emulated_copy_wait(int32_t groups) { current->awaitCopies(groups); }

void *dyna_emulated_shared(int64_t bytes) { return current->shared(bytes); }
void *dyna_emulated_dynamic_shared(int64_t bytes) {
  return current->dynamicShared(bytes);
}

void dyna_emulated_trap(const char *why) {
  current->setFailure(formatText("thread %d: %s", current->thread(), why));
  current->stop();
}

void dyna_emulated_aligned(const void *address, int32_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0)
    return;
  // A text that lives while the fiber is left would never be freed.
  current->setFailure(formatText("thread %d: an access of %d bytes to an "
                                 "address that is no multiple of them",
                                 current->thread(), bytes));
  current->stop();
}

int32_t dyna_emulated_run(const dyna_emulated_launch *launch, char *message,
                          int64_t capacity) {
  auto refuse = [&](const std::string &why) {
    if (capacity > 0)
      formatInto(message, static_cast<size_t>(capacity), "%s", why);
    return 1;
  };
  if (launch->grid < 0 || launch->block < 1 ||
      launch->block > DYNA_EMULATED_MAX_BLOCK)
    return refuse(formatText("kernel %s: %d blocks of %d threads",
                             launch->name ? launch->name : "", launch->grid,
                             launch->block));
  Random random(launch->seed);
  std::vector<int32_t> order(static_cast<size_t>(launch->grid));
  for (size_t i = 0; i < order.size(); ++i) {
    size_t j = random.below(i + 1);
    order[i] = order[j];
    order[j] = static_cast<int32_t>(i);
  }
  for (int32_t index : order) {
    Block block(*launch, index, random);
    if (!block.run())
      return refuse(block.failure);
  }
  return 0;
}
