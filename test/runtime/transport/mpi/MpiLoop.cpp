//===- MpiLoop.cpp - Ranks that exchange until something ends them --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For kill_test.py. Prints "pid N" once, then exchanges for ever, or until the
// given rank does what is asked of it at the given round.
//
// Usage: mpirun -n N mpi_loop ROUNDS (none|kill|fail|exit|stall) RANK
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"
#include "test/Patience.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

using namespace dyna;

static Status exchangeRound(Transport &t, Group &group,
                            std::vector<float> &data,
                            Transport::Deadline deadline) {
  int64_t bytes = static_cast<int64_t>(data.size() * sizeof(float));
  int next = (t.rank() + 1) % t.ranks();
  int previous = (t.rank() + t.ranks() - 1) % t.ranks();
  std::vector<float> theirs(data.size());
  auto sent = t.startSend(next, 0, data.data(), bytes, nullptr);
  DYNA_RETURN_IF_ERROR(sent.status());
  auto received = t.startReceive(previous, 0, theirs.data(), bytes, nullptr);
  DYNA_RETURN_IF_ERROR(received.status());
  DYNA_RETURN_IF_ERROR(t.wait(*received, nullptr, deadline));
  DYNA_RETURN_IF_ERROR(t.wait(*sent, nullptr, deadline));
  auto sum = group.start(
      Collective::flat(CollectiveKind::AllReduce, theirs.data(), theirs.data(),
                       static_cast<int64_t>(theirs.size()), DYNA_ELEMENT_F32),
      nullptr);
  DYNA_RETURN_IF_ERROR(sum.status());
  return t.wait(*sum, nullptr, deadline);
}

/// The round behind which something happens to a rank.
static constexpr int stopRound = 10;

static Status run(Transport &t, int rounds, const std::string &how, int who) {
  std::vector<int> ranks;
  for (int rank = 0; rank < t.ranks(); ++rank)
    ranks.push_back(rank);
  auto group = t.createGroup(ranks, t.deadline());
  DYNA_RETURN_IF_ERROR(group.status());
  std::vector<float> data(100000, 1.0f);
  for (int round = 0; round < rounds; ++round) {
    // limit-is-tested: a rank that stalls never comes.
    const auto given = std::chrono::seconds(5);
    const bool isStalled = how == "stall" && round > stopRound;
    const auto deadline =
        isStalled ? Transport::Clock::now() + given : patienceEnds();
    DYNA_RETURN_IF_ERROR(exchangeRound(t, **group, data, deadline));
    if (round != stopRound || t.rank() != who)
      continue;
    if (how == "kill")
      raise(SIGKILL);
    if (how == "fail")
      return Status::deviceError("rank " + std::to_string(who) +
                                 " was told to fail");
    if (how == "exit")
      _exit(0);
    if (how == "stall")
      std::this_thread::sleep_for(std::chrono::hours(1));
  }
  return Status::ok();
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  printf("pid %d\n", static_cast<int>(getpid()));
  fflush(stdout);
  auto transport = openMpi(0);
  if (!transport.isOk()) {
    fprintf(stderr, "%s\n", transport.status().message().c_str());
    return 1;
  }
  Status status = run(**transport, atoi(argv[1]), argv[2], atoi(argv[3]));
  if (!status.isOk()) {
    fprintf(stderr, "ended: %s\n", status.message().c_str());
    (*transport)->abort(status);
  }
  transport->reset();
  return status.isOk() ? 0 : 1;
}
