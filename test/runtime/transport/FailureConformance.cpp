//===- FailureConformance.cpp - Deadlines, mismatches, lost ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/transport/TransportConformance.h"

using namespace dyna;

class FailureConformance : public TransportFixture {};
DYNA_INSTANTIATE_TRANSPORTS(FailureConformance);

namespace {

void expectText(const Status &status, const std::string &text) {
  EXPECT_NE(status.message().find(text), std::string::npos)
      << "no '" << text << "' in: " << status.message();
}

} // namespace

// Bodies return ok where the failure was the expected one: the transports of
// the other ranks have heard of it from the transport itself.

TEST_P(FailureConformance, DeadlineOfAReceiveNamesEverything) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() != 0) {
      // Waits for something too, far longer than rank 0.
      Array<int32_t> data(memory, 1, 0);
      StatusOr<Ticket> ticket =
          t.startReceive(0, 9, data.data(), 4, memory.stream());
      DYNA_RETURN_IF_ERROR(ticket.status());
      Status status = t.wait(*ticket, memory.stream(), soon());
      EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
      expectText(status, "rank 0 failed");
      expectText(status, "receive from rank 1, tag 5");
      return Status::ok();
    }
    Array<int32_t> data(memory, 2, 0);
    StatusOr<Ticket> ticket =
        t.startReceive(1, 5, data.data(), 8, memory.stream());
    DYNA_RETURN_IF_ERROR(ticket.status());
    auto begin = Transport::Clock::now();
    Status status = t.wait(*ticket, memory.stream(), in(0.2));
    double seconds =
        std::chrono::duration<double>(Transport::Clock::now() - begin).count();
    EXPECT_GE(seconds, 0.19);
    EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
    expectText(status, "rank 0: receive from rank 1, tag 5, 8 bytes");
    // There is no way back.
    EXPECT_EQ(t.startSend(1, 5, data.data(), 8, nullptr).status().code(),
              StatusCode::DeadlineExceeded);
    EXPECT_EQ(t.failure().code(), StatusCode::DeadlineExceeded);
    return Status::ok();
  });
}

TEST_P(FailureConformance, DeadlineOfACollectiveNamesTheGroup) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() > 1)
      return Status::ok();
    auto group = t.createGroup({1, 0}, soon());
    DYNA_RETURN_IF_ERROR(group.status());
    if (t.rank() == 1) // never joins
      return Status::ok();
    Array<float> data(memory, 6, 1.0f);
    StatusOr<Ticket> ticket =
        (*group)->start(Collective::flat(CollectiveKind::AllReduce, data.data(),
                                         data.data(), 6, DYNA_ELEMENT_F32),
                        memory.stream());
    DYNA_RETURN_IF_ERROR(ticket.status());
    Status status = t.wait(*ticket, memory.stream(), in(0.2));
    EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
    expectText(status, "all_reduce (sum) of f32 [1, 6, 1] in group {1, 0}");
    return Status::ok();
  });
}

// Whoever hands a failure on names the rank, which its text may do already.
TEST_P(FailureConformance, RanksAreNamedOnce) {
  DYNA_NEEDS_RANKS(2);
  for (const char *own :
       {"rank 1: lost its way", "rank 1 of 2: lost its way", "lost its way"})
    run([&](Transport &t, RankMemory &memory) -> Status {
      if (t.rank() == 1)
        t.abort(Status::invalidArgument(own));
      if (t.rank() != 0)
        return Status::ok();
      Array<int32_t> data(memory, 1, 0);
      StatusOr<Ticket> ticket =
          t.startReceive(1, 5, data.data(), 4, memory.stream());
      DYNA_RETURN_IF_ERROR(ticket.status());
      Status status = t.wait(*ticket, memory.stream(), soon());
      EXPECT_EQ(status.message(), "rank 1 failed: lost its way");
      return Status::ok();
    });
}

TEST_P(FailureConformance, AnyIsAskedByAllAndCountsAsNoTraffic) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() > 1)
      return Status::ok();
    auto group = t.createGroup({1, 0}, soon());
    DYNA_RETURN_IF_ERROR(group.status());
    for (int marks = 0; marks < 4; ++marks) {
      auto any = (*group)->any((marks >> t.rank()) & 1, memory.stream());
      DYNA_RETURN_IF_ERROR(any.status());
      EXPECT_EQ(*any, marks != 0);
    }
    EXPECT_EQ(t.traffic().collectiveCalls, 0);
    return Status::ok();
  });
}

TEST_P(FailureConformance, SizeMismatchSaysBothSizes) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("sizes");
  for (bool isSenderFirst : {false, true})
    for (int64_t receives : {1000, 4000000})
      run([&](Transport &t, RankMemory &memory) -> Status {
        Array<uint8_t> data(memory, 4000000, 0);
        if ((t.rank() == 0) != isSenderFirst)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        StatusOr<Ticket> ticket =
            t.rank() == 0
                ? t.startSend(1, 0, data.data(), 2000, memory.stream())
                : t.startReceive(0, t.rank() == 1 ? 0 : 1, data.data(),
                                 receives, memory.stream());
        Status status = ticket.isOk() ? t.wait(*ticket, memory.stream(), soon())
                                      : ticket.status();
        // A small send may be done before anybody looks at it.
        if (t.rank() == 0 && status.isOk())
          return status;
        EXPECT_FALSE(status.isOk());
        expectText(status, "the message has 2000 bytes, but the receive "
                           "expects " +
                               std::to_string(receives));
        return Status::ok();
      });
}

TEST_P(FailureConformance, CollectiveMismatchFailsEverywhere) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("sizes");
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int64_t n = t.rank() == 1 ? 400 : 200;
    Array<float> data(memory, n, 1.0f);
    StatusOr<Ticket> ticket =
        (*group)->start(Collective::flat(CollectiveKind::AllReduce, data.data(),
                                         data.data(), n, DYNA_ELEMENT_F32),
                        memory.stream());
    Status status = ticket.isOk() ? t.wait(*ticket, memory.stream(), soon())
                                  : ticket.status();
    EXPECT_FALSE(status.isOk());
    EXPECT_NE(status.code(), StatusCode::DeadlineExceeded) << status.message();
    expectText(status, "all_reduce (sum) of f32");
    return Status::ok();
  });
}

TEST_P(FailureConformance, AbortReachesPendingAndLaterWaits) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    constexpr int64_t n = 1 << 20;
    Array<float> data(memory, n, 1.0f), other(memory, n, 1.0f);
    int last = t.ranks() - 1;
    if (t.rank() == last) {
      // Half of what the others wait for is under way.
      StatusOr<Ticket> ticket =
          t.startSend(0, 1, data.data(), data.bytes(), memory.stream());
      DYNA_RETURN_IF_ERROR(ticket.status());
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      t.abort(Status::deviceError("the device fell off"));
      EXPECT_EQ(t.failure().code(), StatusCode::DeviceError);
      Status status = t.wait(*ticket, memory.stream(), soon());
      EXPECT_EQ(status.code(), StatusCode::DeviceError);
      return Status::ok();
    }
    StatusOr<Ticket> ticket =
        (*group)->start(Collective::flat(CollectiveKind::AllReduce, data.data(),
                                         data.data(), n, DYNA_ELEMENT_F32),
                        memory.stream());
    DYNA_RETURN_IF_ERROR(ticket.status());
    StatusOr<Ticket> message =
        t.startReceive(last, 2, other.data(), other.bytes(), memory.stream());
    DYNA_RETURN_IF_ERROR(message.status());
    Status status = t.wait(*ticket, memory.stream(), soon());
    EXPECT_EQ(status.code(), StatusCode::PeerFailed);
    std::string cause =
        "rank " + std::to_string(last) + " failed: the device fell off";
    expectText(status, cause);
    expectText(t.wait(*message, memory.stream(), soon()), cause);
    expectText((*group)->start(Collective::barrier(), nullptr).status(), cause);
    expectText(t.createGroup({t.rank()}, soon()).status(), cause);
    expectText(t.progress(), cause);
    return Status::ok();
  });
}

// A rank that fails by itself: everybody ends, and the cause is what is told.
TEST_P(FailureConformance, AFailingBodyStopsTheOthers) {
  DYNA_NEEDS_RANKS(2);
  Status status = GetParam().run([](Transport &t, RankMemory &memory) {
    auto group = everybody(t);
    if (!group.isOk())
      return group.status();
    if (t.rank() == 1)
      return Status::invalidArgument("rank one has no data");
    Array<float> data(memory, 10, 1.0f);
    return exchange(**group,
                    Collective::flat(CollectiveKind::AllReduce, data.data(),
                                     data.data(), 10, DYNA_ELEMENT_F32),
                    memory);
  });
  EXPECT_FALSE(status.isOk());
  expectText(status, "rank one has no data");
}

// Who leaves without waiting would leave others with a buffer that is gone.
TEST_P(FailureConformance, LeavingWithoutWaitingIsAFailure) {
  DYNA_NEEDS_RANKS(2);
  Array<float> *kept = nullptr;
  run([&](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() > 1)
      return Status::ok();
    auto group = t.createGroup({0, 1}, soon());
    DYNA_RETURN_IF_ERROR(group.status());
    auto data = std::make_unique<Array<float>>(memory, 1 << 20, 1.0f);
    if (t.rank() == 1) {
      StatusOr<Ticket> ticket =
          t.startSend(0, 1, data->data(), data->bytes(), memory.stream());
      kept = data.release();
      return ticket.status();
    }
    StatusOr<Ticket> ticket =
        t.startReceive(1, 2, data->data(), data->bytes(), memory.stream());
    DYNA_RETURN_IF_ERROR(ticket.status());
    Status status = t.wait(*ticket, memory.stream(), soon());
    expectText(status, "rank 1 failed: left without waiting for its send to "
                       "rank 0, tag 1");
    return Status::ok();
  });
  delete kept;
}
