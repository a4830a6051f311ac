//===- ThreadBench.cpp - Threads against the machine's copy bandwidth -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two ranks, eight exchanges in flight. Bounds come from the same run and
// memory: the time in which two threads copy as many bytes with memcpy. An
// all_reduce over k ranks of n bytes reads k * n and writes k * n bytes at
// least, as a copy of k * n bytes does; in place it can be faster than that,
// since a copy also fetches the lines that it overwrites.
//
// Usage: bench_transport [--repeats N] [--megabytes LARGEST]
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/ThreadTransport.h"
#include "test/bench/transport/Measure.h"

#include <pthread.h>

using namespace bench;
using dyna::Status;

namespace {

/// Keeps the calling thread on one core, for copies and exchanges alike: a
/// scheduler that puts both threads on the same one would be what is measured.
void pinTo(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}

constexpr int kRanks = 2;

/// Every rank copies half of the messages.
Status copyAll(int rank, const char *from, char *to, int64_t bytes) {
  for (int i = rank; i < kInFlight; i += kRanks)
    memcpy(to + i * bytes, from + i * bytes, static_cast<size_t>(bytes));
  return Status::ok();
}

Status measureSize(dyna::Group &group, std::vector<char *> data, int64_t bytes,
                   int repeats) {
  int rank = group.index();
  char *mine = data[size_t(rank)];
  double moved = double(kInFlight) * double(bytes);
  std::vector<Timing> timings;
  // A barrier closes the copies: both threads must have finished.
  Body copy = [&] {
    (void)copyAll(rank, data[0], data[1], bytes);
    return meet(group);
  };
  Body messages = [&] { return sendAll(group.transport(), mine, bytes); };
  Body sums = [&] { return reduceAll(group, mine, bytes); };
  DYNA_RETURN_IF_ERROR(
      measure(group, repeats, timings, {copy, messages, sums}));
  if (rank != 0)
    return Status::ok();
  const char *bound = "memcpy by two threads";
  double copied = timings[0].median;
  report("copy", bytes, kRanks, kInFlight, timings[0], moved, bound, copied);
  report("message", bytes, kRanks, kInFlight, timings[1], moved, bound, copied);
  report("all_reduce", bytes, kRanks, kInFlight, timings[2], kRanks * moved,
         bound, kRanks * copied);
  return Status::ok();
}

/// What an exchange of next to nothing costs.
Status measureLatency(dyna::Group &group, char *mine, int repeats) {
  std::vector<Timing> timings;
  Body message = [&] { return sendAll(group.transport(), mine, 8, 1); };
  Body sum = [&] { return reduceAll(group, mine, 8, 1); };
  DYNA_RETURN_IF_ERROR(measure(group, repeats, timings, {message, sum}));
  if (group.index() == 0) {
    report("message", 8, kRanks, 1, timings[0], 8, "none", timings[0].median);
    report("all_reduce", 8, kRanks, 1, timings[1], 8, "none",
           timings[1].median);
  }
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  int repeats = 15;
  int64_t largest = 64;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--repeats"))
      repeats = std::max(2, atoi(argv[i + 1]));
    if (!strcmp(argv[i], "--megabytes"))
      largest = std::max(1, atoi(argv[i + 1]));
  }
  std::vector<std::unique_ptr<Memory>> memory(kRanks);
  std::vector<char *> data(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    memory[size_t(rank)] =
        std::make_unique<Memory>((largest << 20) * kInFlight);
    data[size_t(rank)] = memory[size_t(rank)]->data;
  }
  check(dyna::runRanks(kRanks, [&](dyna::Transport &t) -> Status {
    pinTo(t.rank());
    auto group = t.createGroup({0, 1}, soon());
    DYNA_RETURN_IF_ERROR(group.status());
    DYNA_RETURN_IF_ERROR(
        measureLatency(**group, data[size_t(t.rank())], repeats * 100));
    DYNA_RETURN_IF_ERROR(
        measureFused(**group, data[size_t(t.rank())], repeats * 100, ""));
    for (int64_t megabytes = 1; megabytes <= largest; megabytes *= 4)
      DYNA_RETURN_IF_ERROR(
          measureSize(**group, data, megabytes << 20, repeats));
    return Status::ok();
  }));
  return 0;
}
