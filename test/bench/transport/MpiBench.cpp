//===- MpiBench.cpp - The MPI transport against MPI itself ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two processes; bounds are the same exchanges through plain MPI calls in the
// same run, as the OSU benchmarks do them (messages with MPI_Isend, MPI_Irecv
// and MPI_Waitall; MPI_Allreduce one after the other, since there is but one
// result to wait for).
//
// Usage: mpirun -n 2 bench_transport_mpi [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"
#include "test/bench/transport/Measure.h"

#include <mpi.h>

using namespace bench;
using dyna::Status;

namespace {

Status rawMessages(int rank, char *data, int64_t bytes, int count) {
  std::vector<MPI_Request> requests(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    char *at = data + i * bytes;
    if (rank == 0)
      MPI_Isend(at, int(bytes), MPI_BYTE, 1, i, MPI_COMM_WORLD,
                &requests[size_t(i)]);
    else
      MPI_Irecv(at, int(bytes), MPI_BYTE, 0, i, MPI_COMM_WORLD,
                &requests[size_t(i)]);
  }
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  return Status::ok();
}

Status rawSums(char *data, int64_t bytes, int count) {
  for (int i = 0; i < count; ++i)
    MPI_Allreduce(MPI_IN_PLACE, data + i * bytes, int(bytes / 4), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  return Status::ok();
}

Status measureSize(dyna::Group &group, char *data, int64_t bytes, int inFlight,
                   int repeats) {
  int rank = group.index();
  double moved = double(inFlight) * double(bytes);
  std::vector<Timing> timings;
  Body rawMessage = [&] { return rawMessages(rank, data, bytes, inFlight); };
  Body message = [&] {
    return sendAll(group.transport(), data, bytes, inFlight);
  };
  Body rawSum = [&] { return rawSums(data, bytes, inFlight); };
  Body sum = [&] { return reduceAll(group, data, bytes, inFlight); };
  DYNA_RETURN_IF_ERROR(
      measure(group, repeats, timings, {rawMessage, message, rawSum, sum}));
  if (rank != 0)
    return Status::ok();
  report("mpi message", bytes, 2, inFlight, timings[1], moved,
         "MPI_Isend and MPI_Irecv", timings[0].median);
  report("mpi all_reduce", bytes, 2, inFlight, timings[3], moved,
         "MPI_Allreduce", timings[2].median);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  int repeats = argc == 3 && !strcmp(argv[1], "--repeats")
                    ? std::max(2, atoi(argv[2]))
                    : 9;
  auto transport = dyna::openMpi(2);
  check(transport.status());
  {
    Memory memory((64 << 20) * kInFlight);
    auto group = (*transport)->createGroup({0, 1}, soon());
    check(group.status());
    check(measureSize(**group, memory.data, 8, 1, repeats * 100));
    check(measureSize(**group, memory.data, 64 << 10, 1, repeats * 10));
    check(measureFused(**group, memory.data, repeats * 100, "mpi "));
    for (int64_t megabytes = 1; megabytes <= 64; megabytes *= 4)
      check(measureSize(**group, memory.data, megabytes << 20, kInFlight,
                        repeats));
  }
  transport->reset();
  return 0;
}
