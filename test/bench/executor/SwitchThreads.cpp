//===- SwitchThreads.cpp - Switches between threads beside copies ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bounds are from the same run: the time in which one thread, and as many threads
// as ranks, copy as many bytes with memcpy, 256 KiB at a time between memory like
// the arenas'. Gradients are added, which reads one more stream than a copy that
// fetches the lines it overwrites; "late" ones are added by the wait, as where home
// computes meanwhile.
//
// Usage: bench_switch_threads [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/ThreadTransport.h"
#include "test/bench/executor/SwitchMeasure.h"

using namespace bench;

namespace {

constexpr int64_t kPiece = 256 << 10;

/// The part of `bytes` that copier `index` of `count` has.
void copyPart(const Memory &from, const Memory &to, int64_t bytes, int index,
              int count) {
  for (int64_t at = index * kPiece; at < bytes; at += count * kPiece)
    memcpy(to.data + at, from.data + at,
           static_cast<size_t>(std::min(kPiece, bytes - at)));
}

Status measureSwitch(dyna::Group &group, const Switched &switched,
                     const std::vector<std::unique_ptr<Memory>> &memory,
                     int64_t bytes[2], int repeats) {
  SwitchedRank rank(switched, group.transport());
  const int own = group.index(), ranks = group.size();
  // Copies and switches take turns, each in memory of its own, so that no copy
  // finds in caches what the one before it left there.
  std::vector<Body> bodies;
  auto add = [&](bool isGradients, bool isLate, int copiers) {
    const size_t copy = bodies.size();
    bodies.push_back([&, isGradients, copiers, copy] {
      if (own < copiers)
        copyPart(*memory[copy], *memory[copy + 1], bytes[isGradients], own,
                 copiers);
      return meet(group);
    });
    bodies.push_back([&, isGradients, isLate]() -> Status {
      DYNA_RETURN_IF_ERROR(rank.carry(isGradients, isLate));
      return meet(group);
    });
  };
  add(false, false, 1);
  add(true, false, 1);
  add(false, false, ranks);
  add(true, false, ranks);
  add(true, true, ranks);
  std::vector<Timing> t;
  DYNA_RETURN_IF_ERROR(measure(group, repeats, t, bodies));
  if (own != 0)
    return Status::ok();
  const char *one = "memcpy by one thread",
             *all = "memcpy by as many threads as ranks";
  auto tell = [&](const char *what, bool isGradients, size_t turn,
                  const char *boundIs) {
    if (bytes[isGradients] > 0)
      reportSwitch(what, switched, isGradients, t[2 * turn + 1], boundIs,
                   t[2 * turn].median);
  };
  tell("switch values", false, 0, one);
  tell("switch values", false, 2, all);
  tell("switch gradients", true, 1, one);
  tell("switch gradients", true, 3, all);
  tell("switch late gradients", true, 4, all);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  const int repeats = argc == 3 && !strcmp(argv[1], "--repeats")
                          ? std::max(2, atoi(argv[2]))
                          : 15;
  const char *pairs[][2] = {
      {"tp=2", "dp=2,zero=1"},          {"dp=2", "tp=2"},
      {"pp=2,layers=5+5", "tp=2"},      {"tp=4", "dp=4,zero=1"},
      {"dp=4", "tp=2,pp=2,layers=5+5"}, {"dp=4,zero=1", "tp=4"}};
  for (const auto &pair : pairs) {
    Switched switched(pair[0], pair[1]);
    int64_t bytes[2] = {0, 0};
    for (bool isGradients : {false, true})
      for (const auto &row : switched.bytes(isGradients))
        for (int64_t pairBytes : row)
          bytes[isGradients] += pairBytes;
    const int64_t most = std::max(bytes[0], bytes[1]);
    std::vector<std::unique_ptr<Memory>> memory;
    for (int i = 0; i < 10; ++i)
      memory.push_back(std::make_unique<Memory>(most));
    const int ranks = switched.graphs[0]->ranks();
    check(dyna::runRanks(ranks, [&](dyna::Transport &t) -> Status {
      std::vector<int> all;
      for (int rank = 0; rank < ranks; ++rank)
        all.push_back(rank);
      auto group = t.createGroup(all, soon());
      DYNA_RETURN_IF_ERROR(group.status());
      return measureSwitch(**group, switched, memory, bytes, repeats);
    }));
  }
  return 0;
}
