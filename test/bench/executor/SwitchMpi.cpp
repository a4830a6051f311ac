//===- SwitchMpi.cpp - Switches between processes beside plain MPI --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bounds are times of plain MPI in the same run (MPI_Isend, MPI_Irecv, MPI_Waitall,
// one message a pair of ranks), and of memcpy for what a rank copies from place to
// place. First for as many bytes without gaps, of gradients also with the sums that
// they are for; then for the same rows between the same places, packed into a buffer
// and unpacked, or added, from another.
//
// Usage: mpirun -n 2 (or 4) bench_switch_mpi [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"
#include "test/bench/executor/SwitchMeasure.h"

#include <mpi.h>

using namespace bench;

namespace {

/// With `sums` what comes is added there, and what stays is, too.
void plainMpi(const std::vector<std::vector<int64_t>> &pairs, int own,
              const Memory &out, const Memory &in, const Memory *sums) {
  std::vector<MPI_Request> requests;
  int64_t sent = 0, received = 0;
  for (int peer = 0; peer < int(pairs.size()); ++peer) {
    const int64_t to = pairs[size_t(own)][size_t(peer)],
                  from = pairs[size_t(peer)][size_t(own)];
    if (peer != own && from > 0)
      MPI_Irecv(in.data + received, int(from), MPI_BYTE, peer, 0,
                MPI_COMM_WORLD, &requests.emplace_back());
    if (peer != own && to > 0)
      MPI_Isend(out.data + sent, int(to), MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    if (peer == own && sums)
      addRun(out.data + sent, sums->data + received, to);
    else if (peer == own)
      memcpy(in.data + received, out.data + sent, size_t(to));
    sent += to;
    received += from;
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  received = 0;
  for (int peer = 0; sums && peer < int(pairs.size()); ++peer) {
    const int64_t from = pairs[size_t(peer)][size_t(own)];
    if (peer != own)
      addRun(in.data + received, sums->data + received, from);
    received += from;
  }
}

/// The same for rows. What a rank sends to each and gets from each, where that lies.
struct PlainRows {
  PlainRows(const Switched &switched, SwitchedRank &rank, int own,
            bool isGradients)
      : own(own), move(isGradients ? addRun : copyRun),
        sent(size_t(switched.graphs[0]->ranks())), received(sent.size()) {
    for (const dyna::SwitchBucket &bucket :
         switched.way(isGradients).plan.buckets)
      for (const dyna::SwitchTransfer &t : bucket.transfers) {
        if (t.from == own)
          sent[size_t(t.to)].push_back(rank.rowsOf(isGradients, t.source, t));
        if (t.to == own)
          received[size_t(t.from)].push_back(
              rank.rowsOf(isGradients, t.target, t));
      }
  }

  void run(const Memory &out, const Memory &in) const {
    std::vector<MPI_Request> requests;
    using Strips = std::vector<dyna::Strip>;
    auto packed = [](const Memory &memory, int64_t at, const Strips &rows) {
      const int64_t bytes = dyna::totalBytes(rows);
      return Strips{{memory.data + at, 1, bytes, bytes}};
    };
    int64_t at = 0;
    for (int peer = 0; peer < int(received.size()); ++peer) {
      const int64_t bytes = dyna::totalBytes(received[size_t(peer)]);
      if (peer == own || bytes == 0)
        continue;
      MPI_Irecv(in.data + at, int(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
      at += bytes;
    }
    at = 0;
    for (int peer = 0; peer < int(sent.size()); ++peer) {
      const Strips &rows = sent[size_t(peer)];
      const int64_t bytes = dyna::totalBytes(rows);
      if (peer == own || bytes == 0)
        continue;
      moveRuns(rows, packed(out, at, rows), copyRun);
      MPI_Isend(out.data + at, int(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
      at += bytes;
    }
    moveRuns(sent[size_t(own)], received[size_t(own)], move);
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    at = 0;
    for (int peer = 0; peer < int(received.size()); ++peer) {
      const Strips &rows = received[size_t(peer)];
      if (peer == own)
        continue;
      moveRuns(packed(in, at, rows), rows, move);
      at += dyna::totalBytes(rows);
    }
  }

  const int own;
  void (*const move)(const char *, char *, int64_t);
  std::vector<std::vector<dyna::Strip>> sent, received; ///< by rank
};

Status measureSwitch(dyna::Group &group, const char *graph, const char *home,
                     int repeats) {
  Switched switched(graph, home);
  SwitchedRank rank(switched, group.transport());
  for (bool isGradients : {false, true}) {
    const auto pairs = switched.bytes(isGradients);
    int64_t most = 0, sent = 0;
    for (size_t a = 0; a < pairs.size(); ++a)
      for (size_t b = 0; b < pairs.size(); ++b) {
        most += pairs[a][b];
        sent += a == b ? 0 : pairs[a][b];
      }
    if (sent == 0)
      continue;
    Memory out(most), in(most), sums(most);
    const PlainRows rows(switched, rank, group.index(), isGradients);
    std::vector<Timing> t;
    // Between those that touch the arenas stands one that does not: none finds
    // in caches what the one before it left there.
    DYNA_RETURN_IF_ERROR(
        measure(group, repeats, t,
                {[&] { return rank.carry(isGradients, false); },
                 [&] {
                   plainMpi(pairs, group.index(), out, in, nullptr);
                   return Status::ok();
                 },
                 [&] {
                   rows.run(out, in);
                   return Status::ok();
                 },
                 [&] {
                   plainMpi(pairs, group.index(), out, in, &sums);
                   return Status::ok();
                 }},
                /*isSpan=*/true));
    if (group.index() != 0)
      continue;
    const char *what =
        isGradients ? "mpi switch gradients" : "mpi switch values";
    reportSwitch(what, switched, isGradients, t[0], "MPI_Isend and MPI_Irecv",
                 t[1]);
    if (isGradients)
      reportSwitch(what, switched, isGradients, t[0],
                   "MPI_Isend, MPI_Irecv and the sums", t[3]);
    reportSwitch(what, switched, isGradients, t[0],
                 "MPI_Isend and MPI_Irecv of these rows", t[2]);
  }
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  const int repeats = argc == 3 && !strcmp(argv[1], "--repeats")
                          ? std::max(2, atoi(argv[2]))
                          : 15;
  auto transport = dyna::openMpi(0);
  check(transport.status());
  {
    std::vector<int> all;
    for (int rank = 0; rank < (*transport)->ranks(); ++rank)
      all.push_back(rank);
    auto group = (*transport)->createGroup(all, soon());
    check(group.status());
    if (all.size() == 2) {
      check(measureSwitch(**group, "tp=2", "dp=2,zero=1", repeats));
      check(measureSwitch(**group, "dp=2", "tp=2", repeats));
      check(measureSwitch(**group, "pp=2,layers=5+5", "tp=2", repeats));
    } else if (all.size() == 4) {
      check(measureSwitch(**group, "tp=4", "dp=4,zero=1", repeats));
      check(measureSwitch(**group, "dp=4", "tp=2,pp=2,layers=5+5", repeats));
      check(measureSwitch(**group, "dp=4,zero=1", "tp=4", repeats));
    } else {
      fprintf(stderr, "bench_switch_mpi runs on 2 or 4 ranks, not on %zu\n",
              all.size());
      return 2;
    }
  }
  transport->reset();
  return 0;
}
