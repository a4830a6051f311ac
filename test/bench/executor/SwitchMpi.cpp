//===- SwitchMpi.cpp - Switches between processes beside plain MPI --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bound is the time that plain MPI takes in the same run for as many bytes
// from each rank to each, one message without gaps a pair (MPI_Isend, MPI_Irecv,
// MPI_Waitall), and for what a rank copies from place to place, with memcpy; of
// gradients also with the sums that they are for.
//
// Usage: mpirun -n 2 (or 4) bench_switch_mpi [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"
#include "test/bench/executor/SwitchMeasure.h"

#include <mpi.h>

using namespace bench;

namespace {

void addAll(const char *from, char *to, int64_t bytes) {
  const auto *read = reinterpret_cast<const float *>(from);
  auto *written = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < bytes / int64_t(sizeof(float)); ++i)
    written[i] += read[i];
}

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
      addAll(out.data + sent, sums->data + received, to);
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
      addAll(in.data + received, sums->data + received, from);
    received += from;
  }
}

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
    std::vector<Timing> t;
    DYNA_RETURN_IF_ERROR(
        measure(group, repeats, t,
                {[&] {
                   plainMpi(pairs, group.index(), out, in, nullptr);
                   return Status::ok();
                 },
                 [&] {
                   plainMpi(pairs, group.index(), out, in, &sums);
                   return Status::ok();
                 },
                 [&] { return rank.carry(isGradients, false); }},
                /*isSpan=*/true));
    if (group.index() != 0)
      continue;
    const char *what =
        isGradients ? "mpi switch gradients" : "mpi switch values";
    reportSwitch(what, switched, isGradients, t[2], "MPI_Isend and MPI_Irecv",
                 t[0]);
    if (isGradients)
      reportSwitch(what, switched, isGradients, t[2],
                   "MPI_Isend, MPI_Irecv and the sums", t[1]);
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
