//===- Team.h - Runs parallel work on the threads of one rank ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One team per rank runs all of the rank's parallel work. The caller works too,
// as worker 0. After a run, workers spin for a short while and then sleep.
// Within a step the next run follows in microseconds, and to wake a sleeping
// thread costs tens of them.
//
// Work is a number of tasks, claimed one by one. Any worker may run a task, so
// the result of a task must depend on its number only.
//
// One word, `ticket_`, holds all state that decides if a task may be claimed:
// run number, next task, number of tasks. A worker that wakes up late sees
// either a finished run, and does nothing, or the next run. No thread has to
// wait for it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_TEAM_H
#define DYNA_RUNTIME_DEVICE_TEAM_H

#include "runtime/base/error/Status.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dyna {

/// Returns the number of cores that this process may use: its affinity mask,
/// limited by the processor quota of its control group. At least 1.
int availableCores();

class Team {
public:
  using Task = void (*)(void *context, int64_t task, int worker);

  /// Creates a team of `threads` workers, including the caller of `run`; 0
  /// means availableCores().
  static StatusOr<std::unique_ptr<Team>> create(int threads);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  int size() const { return size_; }

  /// Ends all threads but the caller's. Until `wake`, the caller runs all tasks.
  void rest();
  /// Starts the threads again. If the system has none, the caller works alone.
  void wake();

  /// Runs tasks [0, count) and returns when all are done. Called by one thread
  /// at a time, and never from inside a task.
  void run(int64_t count, Task task, void *context);

  /// Runs a callable `body(task, worker)` for tasks [0, count), as `run`.
  template <typename Body> void parallelFor(int64_t count, Body &&body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        count,
        [](void *context, int64_t task, int worker) {
          (*static_cast<Plain *>(context))(task, worker);
        },
        const_cast<void *>(static_cast<const void *>(&body)));
  }

private:
  explicit Team(int threads) : size_(threads) {}
  Status start();
  void work(int worker);
  void drain(uint64_t run, int worker);
  bool awaitRun(uint64_t lastRun);
  void runTickets(int64_t first, int64_t count, Task task, void *context);

  const int size_;
  std::vector<std::thread> threads_;

  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> unfinished_{0};
  // Written while no task is unfinished, read only by owners of a claimed task.
  alignas(64) std::atomic<Task> task_{nullptr};
  std::atomic<void *> context_{nullptr};
  std::atomic<int64_t> first_{0};

  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_TEAM_H
