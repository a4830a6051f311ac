//===- SwitchThreads.cpp - Switches between threads beside copies ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bounds are from the same run. First what the same rows take without a transport:
// one thread, and as many as ranks, go over all that moves, run by run, by memcpy;
// gradients are read, added and written back; "late" ones, which the wait adds, as
// where home computes meanwhile, are copied to memory of their own and added from
// there. Then as many bytes without gaps by memcpy, 256 KiB at a time, between memory
// like the arenas'.
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

/// The rows at both ends of all that moves, with all ranks in one process.
struct Rows {
  std::vector<dyna::Strip> sources, targets;
};

Rows rowsOf(const Switched &switched, const std::vector<SwitchedRank *> &ranks,
            bool isGradients) {
  Rows rows;
  for (const dyna::SwitchBucket &bucket :
       switched.way(isGradients).plan.buckets)
    for (const dyna::SwitchTransfer &t : bucket.transfers) {
      rows.sources.push_back(
          ranks[size_t(t.from)]->rowsOf(isGradients, t.source, t));
      rows.targets.push_back(
          ranks[size_t(t.to)]->rowsOf(isGradients, t.target, t));
    }
  return rows;
}

enum class How { Copied, Added, AddedLate };

/// The part of the rows that copier `index` of `count` has.
void moveRows(const Rows &rows, How how, const Memory &late, int index,
              int count) {
  const int64_t bytes = dyna::totalBytes(rows.sources), line = 64;
  const int64_t begin = bytes * index / count / line * line,
                end = index + 1 == count
                          ? bytes
                          : bytes * (index + 1) / count / line * line;
  dyna::StripCursor from(rows.sources, begin), to(rows.targets, begin);
  if (how != How::AddedLate)
    return dyna::forEachRun(from, to, end - begin,
                            how == How::Added ? addRun : copyRun);
  const std::vector<dyna::Strip> packed = {{late.data, 1, bytes, bytes}};
  dyna::StripCursor in(packed, begin), out(packed, begin);
  dyna::forEachRun(from, in, end - begin, copyRun);
  dyna::forEachRun(out, to, end - begin, addRun);
}

Status measureSwitch(dyna::Group &group, const Switched &switched,
                     const std::vector<std::unique_ptr<Memory>> &memory,
                     std::vector<SwitchedRank *> &all, int64_t bytes[2],
                     int repeats) {
  SwitchedRank rank(switched, group.transport());
  const int own = group.index(), ranks = group.size();
  all[size_t(own)] = &rank;
  DYNA_RETURN_IF_ERROR(meet(group));
  const Rows rows[2] = {rowsOf(switched, all, false),
                        rowsOf(switched, all, true)};
  // All take turns, copies in memory of their own, so that none finds in caches
  // what the one before it left there.
  std::vector<Body> bodies;
  std::vector<std::function<void(const std::vector<Timing> &)>> lines;
  auto add = [&](const char *what, How how) {
    const bool isGradients = how != How::Copied;
    if (bytes[isGradients] == 0)
      return;
    const size_t first = bodies.size();
    bodies.push_back([&, how] {
      return rank.carry(how != How::Copied, how == How::AddedLate);
    });
    auto bound = [&](const char *boundIs, int copiers,
                     const std::function<void()> &move) {
      const size_t turn = bodies.size();
      bodies.push_back([&, copiers, move] {
        if (own < copiers)
          move();
        return Status::ok();
      });
      lines.push_back([=, &switched](const std::vector<Timing> &t) {
        reportSwitch(what, switched, isGradients, t[first], boundIs, t[turn]);
      });
    };
    bound("these rows by one thread", 1, [&, how] {
      moveRows(rows[how != How::Copied], how, *memory[2], own, 1);
    });
    bound("these rows by as many threads as ranks", ranks, [&, how] {
      moveRows(rows[how != How::Copied], how, *memory[2], own, ranks);
    });
    bound("memcpy by one thread", 1, [&, isGradients] {
      copyPart(*memory[0], *memory[1], bytes[isGradients], own, 1);
    });
    bound("memcpy by as many threads as ranks", ranks, [&, isGradients] {
      copyPart(*memory[0], *memory[1], bytes[isGradients], own, ranks);
    });
  };
  add("switch values", How::Copied);
  add("switch gradients", How::Added);
  add("switch late gradients", How::AddedLate);
  std::vector<Timing> t;
  DYNA_RETURN_IF_ERROR(measure(group, repeats, t, bodies, /*isSpan=*/true));
  for (const auto &line : lines)
    if (own == 0)
      line(t);
  return meet(group);
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
    for (int i = 0; i < 3; ++i)
      memory.push_back(std::make_unique<Memory>(most));
    const int ranks = switched.graphs[0]->ranks();
    std::vector<SwitchedRank *> made(static_cast<size_t>(ranks));
    check(dyna::runRanks(ranks, [&](dyna::Transport &t) -> Status {
      std::vector<int> all;
      for (int rank = 0; rank < ranks; ++rank)
        all.push_back(rank);
      auto group = t.createGroup(all, soon());
      DYNA_RETURN_IF_ERROR(group.status());
      return measureSwitch(**group, switched, memory, made, bytes, repeats);
    }));
  }
  return 0;
}
