//===- Measure.h - Medians and their lines ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the benchmarks of this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_TRANSPORT_MEASURE_H
#define DYNA_TEST_BENCH_TRANSPORT_MEASURE_H

#include "runtime/transport/Transport.h"
#include "test/Patience.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace bench {

constexpr int kInFlight = 8;

inline double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Memory as the arena has it: huge pages, touched.
struct Memory {
  explicit Memory(int64_t bytes)
      : size((static_cast<size_t>(bytes) + (2 << 20) - 1) &
             ~size_t((2 << 20) - 1)),
        data(static_cast<char *>(aligned_alloc(2 << 20, size))) {
    madvise(data, size, MADV_HUGEPAGE);
    memset(data, 0, size);
  }
  ~Memory() { free(data); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  size_t size;
  char *data;
};

struct Timing {
  int repeats = 0;
  double median = 0, p99 = 0, least = 0;
};

/// `times` without the first, which warms up.
inline Timing summarize(std::vector<double> times) {
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  size_t n = times.size();
  return {static_cast<int>(n), times[n / 2],
          times[std::min(n - 1, n * 99 / 100)], times[0]};
}

/// One line. `bound` is a time too: what the exchange would take at the rate it
/// is compared with, which `bound_is` names.
inline void report(const char *what, int64_t bytes, int ranks, int inFlight,
                   const Timing &t, double moved, const char *boundIs,
                   double bound) {
  printf("{\"what\":\"%s\",\"bytes\":%lld,\"dtype\":\"f32\",\"ranks\":%d,"
         "\"in_flight\":%d,\"warm_up\":1,\"repeats\":%d,\"median_us\":%.2f,"
         "\"p99_us\":%.2f,\"gb_per_s\":%.3f,\"bound_is\":\"%s\","
         "\"bound_us\":%.2f,\"time_over_bound\":%.3f}\n",
         what, static_cast<long long>(bytes), ranks, inFlight, t.repeats,
         t.median * 1e6, t.p99 * 1e6, moved / t.median / 1e9, boundIs,
         bound * 1e6, t.median / bound);
  fflush(stdout);
}

inline void check(const dyna::Status &status) {
  if (status.isOk())
    return;
  fprintf(stderr, "bench: %s\n", status.message().c_str());
  exit(1);
}

inline dyna::Transport::Deadline soon() { return dyna::patienceEnds(); }

/// Starts and waits for `kInFlight` messages from rank 0 to rank 1.
inline dyna::Status sendAll(dyna::Transport &t, char *data, int64_t bytes,
                            int count = kInFlight) {
  std::vector<dyna::Ticket> tickets;
  for (int i = 0; i < count; ++i) {
    char *at = data + i * bytes;
    auto ticket = t.rank() == 0 ? t.startSend(1, i, at, bytes, nullptr)
                                : t.startReceive(0, i, at, bytes, nullptr);
    DYNA_RETURN_IF_ERROR(ticket.status());
    tickets.push_back(*ticket);
  }
  for (dyna::Ticket ticket : tickets)
    DYNA_RETURN_IF_ERROR(t.wait(ticket, nullptr, soon()));
  return dyna::Status::ok();
}

/// The same for all_reduce in place.
inline dyna::Status reduceAll(dyna::Group &group, char *data, int64_t bytes,
                              int count = kInFlight) {
  std::vector<dyna::Ticket> tickets;
  for (int i = 0; i < count; ++i) {
    char *at = data + i * bytes;
    auto ticket =
        group.start(dyna::Collective::flat(dyna::CollectiveKind::AllReduce, at,
                                           at, bytes / 4, DYNA_ELEMENT_F32),
                    nullptr);
    DYNA_RETURN_IF_ERROR(ticket.status());
    tickets.push_back(*ticket);
  }
  for (dyna::Ticket ticket : tickets)
    DYNA_RETURN_IF_ERROR(group.transport().wait(ticket, nullptr, soon()));
  return dyna::Status::ok();
}

/// `count` gathers of `bytes` from each rank, as one call or one after another.
inline dyna::Status gatherAll(dyna::Group &group, char *data, int64_t bytes,
                              int count, bool isOneCall) {
  std::vector<dyna::Collective> gathers;
  int64_t whole = bytes * group.size();
  for (int i = 0; i < count; ++i) {
    char *out = data + i * whole;
    gathers.push_back(dyna::Collective::flat(dyna::CollectiveKind::AllGather,
                                             out + group.index() * bytes, out,
                                             whole / 4, DYNA_ELEMENT_F32));
  }
  auto finish = [&](const dyna::StatusOr<dyna::Ticket> &ticket) {
    DYNA_RETURN_IF_ERROR(ticket.status());
    return group.transport().wait(*ticket, nullptr, soon());
  };
  if (isOneCall)
    return finish(group.start(std::move(gathers), nullptr));
  for (const dyna::Collective &gather : gathers)
    DYNA_RETURN_IF_ERROR(finish(group.start(gather, nullptr)));
  return dyna::Status::ok();
}

inline dyna::Status meet(dyna::Group &group) {
  auto ticket = group.start(dyna::Collective::barrier(), nullptr);
  DYNA_RETURN_IF_ERROR(ticket.status());
  return group.transport().wait(*ticket, nullptr, soon());
}

using Body = std::function<dyna::Status()>;

/// Of all ranks: from when the first began until the last has ended.
inline dyna::Status spanOf(dyna::Group &group, double begin, double end,
                           double &seconds) {
  double ends[2] = {-begin, end};
  dyna::Collective last = dyna::Collective::flat(
      dyna::CollectiveKind::AllReduce, ends, ends, 2, DYNA_ELEMENT_F64);
  last.reduction = DYNA_REDUCE_MAX;
  auto ticket = group.start(last, nullptr);
  DYNA_RETURN_IF_ERROR(ticket.status());
  DYNA_RETURN_IF_ERROR(group.transport().wait(*ticket, nullptr, soon()));
  seconds = ends[0] + ends[1];
  return dyna::Status::ok();
}

using Body = std::function<dyna::Status()>;

/// Repeats the bodies in turn, so that all of them see the same machine, each
/// from a barrier on. All ranks run the same ones equally often. With `isSpan`
/// times are those of spanOf, else of this rank, which on a machine that does other
/// work may come to its body when others have done its share.
inline dyna::Status measure(dyna::Group &group, int repeats,
                            std::vector<Timing> &timings,
                            const std::vector<Body> &bodies,
                            bool isSpan = false) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int i = 0; i <= repeats; ++i)
    for (size_t body = 0; body < bodies.size(); ++body) {
      DYNA_RETURN_IF_ERROR(meet(group));
      double begin = now();
      DYNA_RETURN_IF_ERROR(bodies[body]());
      double end = now(), seconds = end - begin;
      if (isSpan)
        DYNA_RETURN_IF_ERROR(spanOf(group, begin, end, seconds));
      times[body].push_back(seconds);
    }
  for (std::vector<double> &of : times)
    timings.push_back(summarize(std::move(of)));
  return dyna::Status::ok();
}

/// Several small gathers as one call against one after another.
inline dyna::Status measureFused(dyna::Group &group, char *data, int repeats,
                                 const std::string &prefix) {
  for (int count : {2, 4, 8})
    for (int64_t bytes : {64, 4096, 65536}) {
      std::vector<Timing> timings;
      Body apart = [&] { return gatherAll(group, data, bytes, count, false); };
      Body fused = [&] { return gatherAll(group, data, bytes, count, true); };
      DYNA_RETURN_IF_ERROR(measure(group, repeats, timings, {apart, fused}));
      if (group.index() == 0)
        report((prefix + "fused all_gather").c_str(), bytes, group.size(),
               count, timings[1], double(count) * double(bytes),
               "one after another", timings[0].median);
    }
  return dyna::Status::ok();
}

} // namespace bench

#endif // DYNA_TEST_BENCH_TRANSPORT_MEASURE_H
