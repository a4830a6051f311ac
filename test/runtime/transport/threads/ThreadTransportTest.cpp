//===- ThreadTransportTest.cpp - The suites on threads ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/ThreadTransport.h"

#include "test/runtime/transport/TransportConformance.h"

#include <atomic>

using namespace dyna;

/// Two ranks, as many as most tests need, and more than there are cores.
std::vector<TransportBackend> dyna::transportBackends() {
  std::vector<TransportBackend> backends;
  for (int ranks : {2, 4, 8})
    backends.push_back({"threads" + std::to_string(ranks), ranks,
                        [ranks](const RankBody &body) {
                          return runRanks(ranks, [&](Transport &transport) {
                            RankMemory memory;
                            return body(transport, memory);
                          });
                        }});
  return backends;
}

TEST(RunRanks, EveryRankRunsOnce) {
  std::atomic<int> sum{0}, calls{0};
  Status status = runRanks(5, [&](Transport &t) {
    EXPECT_EQ(t.ranks(), 5);
    sum += 1 << t.rank();
    ++calls;
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk());
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(sum, 31);
}

TEST(RunRanks, ReturnsTheCauseAndNotItsEffects) {
  Status status = runRanks(4, [&](Transport &t) -> Status {
    if (t.rank() == 3)
      return Status::resourceExhausted("no memory for weights");
    int32_t data = 0;
    StatusOr<Ticket> ticket = t.startReceive(3, 0, &data, 4, nullptr);
    DYNA_RETURN_IF_ERROR(ticket.status());
    return t.wait(*ticket, nullptr, soon());
  });
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(status.message(), "no memory for weights");
}

TEST(RunRanks, RefusesImpossibleNumbers) {
  for (int ranks : {-1, 0, 1 << 20}) {
    Status status = runRanks(ranks, [](Transport &) { return Status::ok(); });
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  }
}

// 16 ranks on whatever cores there are, thousands of small exchanges: none may
// be lost between a look at the bell and going to sleep.
TEST(ThreadTransport, NoWakeUpIsLost) {
  Status status = runRanks(16, [&](Transport &t) -> Status {
    RankMemory memory;
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    for (int i = 0; i < 300; ++i) {
      int32_t value = t.rank() + i;
      DYNA_RETURN_IF_ERROR(
          exchange(**group,
                   Collective::flat(CollectiveKind::AllReduce, &value, &value,
                                    1, DYNA_ELEMENT_I32),
                   memory));
      EXPECT_EQ(value, 120 + 16 * i);
      int32_t token = i;
      std::vector<Ticket> tickets;
      DYNA_START(tickets,
                 t.startSend((t.rank() + 1) % 16, 0, &value, 4, nullptr));
      DYNA_START(tickets,
                 t.startReceive((t.rank() + 15) % 16, 0, &token, 4, nullptr));
      DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
      EXPECT_EQ(token, value);
    }
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
}

// Whoever waits does the work of all: rank 1 computes (sleeps) and rank 0 still
// gets the whole message.
TEST(ThreadTransport, OneSideDoesTheCopy) {
  std::atomic<bool> isReceived{false};
  Status status = runRanks(2, [&](Transport &t) -> Status {
    std::vector<float> data(1 << 20, float(t.rank()));
    int64_t bytes = 4 << 20;
    StatusOr<Ticket> ticket =
        t.rank() == 1 ? t.startSend(0, 0, data.data(), bytes, nullptr)
                      : t.startReceive(1, 0, data.data(), bytes, nullptr);
    DYNA_RETURN_IF_ERROR(ticket.status());
    if (t.rank() == 1) {
      for (int i = 0; i < 3000 && !isReceived; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_TRUE(isReceived);
    }
    DYNA_RETURN_IF_ERROR(t.wait(*ticket, nullptr, soon()));
    if (t.rank() == 0)
      isReceived = true;
    EXPECT_EQ(data.back(), 1);
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
}
