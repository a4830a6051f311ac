//===- Team.cpp - Runs parallel work on the threads of one rank -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/Team.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <system_error>

using namespace dyna;

//===----------------------------------------------------------------------===//
// Cores
//===----------------------------------------------------------------------===//

/// Cores granted by one control group folder, version 2 or 1; 0 means no limit.
static double quotaCores(const std::string &folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period)
    return quota != "max" && period > 0
               ? std::strtod(quota.c_str(), nullptr) / period
               : 0;
  double granted = 0;
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us");
  std::ifstream periodFile(folder + "/cpu.cfs_period_us");
  if (quotaFile >> granted && periodFile >> period && granted > 0 && period > 0)
    return granted / period;
  return 0;
}

/// Returns the smallest limit among the process's control groups and their
/// parents.
static double smallestQuota() {
  double smallest = 0;
  auto consider = [&](const std::string &folder) {
    double cores = quotaCores(folder);
    if (cores > 0)
      smallest = smallest > 0 ? std::min(smallest, cores) : cores;
  };
  consider("/sys/fs/cgroup");
  consider("/sys/fs/cgroup/cpu");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // A line is hierarchy:controllers:path; in version 2 it names no
    // controllers.
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (controllers.find("cpu") == std::string::npos)
        continue;
      root += "/" + controllers;
    }
    for (std::string path = line.substr(second + 1); path.size() > 1;
         path.resize(path.rfind('/')))
      consider(root + path);
  }
  return smallest;
}

int dyna::availableCores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    cores = CPU_COUNT(&mask);
  if (double quota = smallestQuota(); quota > 0)
    cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

//===----------------------------------------------------------------------===//
// Team
//===----------------------------------------------------------------------===//

namespace {

// ticket: 24 bits run number, 20 bits next task, 20 bits number of tasks.
constexpr int kTaskBits = 20;
constexpr uint64_t kTaskMask = (uint64_t(1) << kTaskBits) - 1;
constexpr int64_t kMaxTickets = int64_t(1) << 19;

uint64_t runOf(uint64_t ticket) { return ticket >> (2 * kTaskBits); }
uint64_t nextOf(uint64_t ticket) { return (ticket >> kTaskBits) & kTaskMask; }
uint64_t countOf(uint64_t ticket) { return ticket & kTaskMask; }

/// Longer than any gap between two runs within a step, short beside a step.
constexpr auto kSpinTime = std::chrono::microseconds(1000);
/// After this long the caller suspects that a worker has lost its core.
constexpr auto kYieldTime = std::chrono::microseconds(200);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace

StatusOr<std::unique_ptr<Team>> Team::create(int threads) {
  if (threads < 0 || threads > 4096)
    return Status::invalidArgument("a team of " + std::to_string(threads) +
                                   " threads was asked for; give 1 to 4096, or "
                                   "0 for all available cores");
  if (threads == 0)
    threads = availableCores();
  std::unique_ptr<Team> team(new Team(threads));
  DYNA_RETURN_IF_ERROR(team->start());
  return team;
}

Status Team::start() {
  for (int worker = 1; worker < size_; ++worker) {
    // std::thread reports failure by an exception, which becomes a status here.
    try {
      threads_.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error &error) {
      return Status::resourceExhausted(
          "starting thread " + std::to_string(worker + 1) + " of " +
          std::to_string(size_) + " failed: " + error.what() +
          "; ask for fewer threads");
    }
  }
  return Status::ok();
}

void Team::rest() {
  stop_.store(true);
  {
    std::lock_guard<std::mutex> lock(mutex_);
  }
  wake_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
  threads_.clear();
  stop_.store(false);
}

void Team::wake() {
  // Any thread may run any task, so fewer threads only take longer.
  if (threads_.empty())
    (void)start();
}

Team::~Team() { rest(); }

void Team::run(int64_t count, Task task, void *context) {
  if (size_ == 1 || count == 1) {
    for (int64_t i = 0; i < count; ++i)
      task(context, i, 0);
    return;
  }
  for (int64_t first = 0; first < count; first += kMaxTickets)
    runTickets(first, std::min(kMaxTickets, count - first), task, context);
}

void Team::runTickets(int64_t first, int64_t count, Task task, void *context) {
  task_.store(task, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  first_.store(first, std::memory_order_relaxed);
  unfinished_.store(count, std::memory_order_relaxed);
  uint64_t run = (runOf(ticket_.load(std::memory_order_relaxed)) + 1) &
                 ((uint64_t(1) << (64 - 2 * kTaskBits)) - 1);
  // Sequentially consistent together with `sleeping_`: either a worker about to
  // sleep sees the new run, or we see that it sleeps.
  ticket_.store((run << (2 * kTaskBits)) | static_cast<uint64_t>(count));
  if (sleeping_.load() > 0) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
    }
    wake_.notify_all();
  }
  drain(run, 0);
  auto start = std::chrono::steady_clock::now();
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0;) {
    pause();
    if (++spins < 128)
      continue;
    spins = 0;
    if (std::chrono::steady_clock::now() - start > kYieldTime)
      sched_yield();
  }
}

void Team::drain(uint64_t run, int worker) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (runOf(ticket) == run && nextOf(ticket) < countOf(ticket)) {
    if (!ticket_.compare_exchange_weak(
            ticket, ticket + (uint64_t(1) << kTaskBits),
            std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    Task task = task_.load(std::memory_order_relaxed);
    task(context_.load(std::memory_order_relaxed),
         first_.load(std::memory_order_relaxed) +
             static_cast<int64_t>(nextOf(ticket)),
         worker);
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

/// Waits for a run other than `lastRun`; false when the team is to stop.
bool Team::awaitRun(uint64_t lastRun) {
  auto changed = [&] {
    return runOf(ticket_.load()) != lastRun || stop_.load();
  };
  auto start = std::chrono::steady_clock::now();
  while (!changed() && std::chrono::steady_clock::now() - start < kSpinTime)
    for (int spins = 0; spins < 64 && !changed(); ++spins)
      pause();
  if (!changed()) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleeping_.fetch_add(1);
    wake_.wait(lock, changed);
    sleeping_.fetch_sub(1);
  }
  return !stop_.load();
}

void Team::work(int worker) {
  for (uint64_t lastRun = 0; awaitRun(lastRun);) {
    lastRun = runOf(ticket_.load(std::memory_order_acquire));
    drain(lastRun, worker);
  }
}
