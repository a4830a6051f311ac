//===- MessageConformance.cpp - Messages between two ranks ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/transport/TransportConformance.h"

#include <random>

using namespace dyna;

class MessageConformance : public TransportFixture {};
DYNA_INSTANTIATE_TRANSPORTS(MessageConformance);

namespace {

std::vector<int32_t> numbers(int rank, int64_t n, int salt) {
  std::vector<int32_t> result(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    result[static_cast<size_t>(i)] =
        static_cast<int32_t>(i * 1000003 + rank * 101 + salt);
  return result;
}

} // namespace

TEST_P(MessageConformance, RingOfAllSizes) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    int next = (t.rank() + 1) % t.ranks();
    int previous = (t.rank() + t.ranks() - 1) % t.ranks();
    for (int64_t n : {0, 1, 3, 1000, 65536, 300001, 1 << 20}) {
      Array<int32_t> mine(memory, numbers(t.rank(), n, 5));
      Array<int32_t> theirs(memory, n, -1);
      std::vector<Ticket> tickets;
      DYNA_START(tickets, t.startReceive(previous, 1, theirs.data(),
                                         theirs.bytes(), memory.stream()));
      DYNA_START(tickets, t.startSend(next, 1, mine.data(), mine.bytes(),
                                      memory.stream()));
      DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
      EXPECT_EQ(theirs.host(), numbers(previous, n, 5)) << n;
    }
    return Status::ok();
  });
}

TEST_P(MessageConformance, BytesNextToTheBufferAreLeftAlone) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    std::vector<Ticket> tickets;
    Array<uint8_t> data(memory, 1003, t.rank() == 0 ? 7 : 9);
    if (t.rank() == 0)
      DYNA_START(tickets,
                 t.startSend(1, 0, data.data() + 1, 1001, memory.stream()));
    if (t.rank() == 1)
      DYNA_START(tickets,
                 t.startReceive(0, 0, data.data() + 1, 1001, memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    if (t.rank() == 1) {
      std::vector<uint8_t> expected(1003, 7);
      expected.front() = expected.back() = 9;
      EXPECT_EQ(data.host(), expected);
    }
    return Status::ok();
  });
}

// Many messages of one tag, small and large mixed, waited for in any order.
TEST_P(MessageConformance, EqualTagsDoNotOvertake) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    constexpr int count = 40;
    auto size = [](int i) { return int64_t(i % 3 == 0 ? 200000 : 1 + i % 2); };
    std::vector<Array<int32_t>> arrays;
    std::vector<Ticket> tickets;
    for (int i = 0; i < count && t.rank() < 2; ++i) {
      if (t.rank() == 0) {
        // Sizes must not tell messages apart: 1 and 2 alternate.
        arrays.emplace_back(memory, numbers(0, size(i), i));
        DYNA_START(tickets, t.startSend(1, 3, arrays[i].data(),
                                        arrays[i].bytes(), memory.stream()));
      } else {
        arrays.emplace_back(memory, size(i), -1);
        DYNA_START(tickets, t.startReceive(0, 3, arrays[i].data(),
                                           arrays[i].bytes(), memory.stream()));
      }
    }
    std::mt19937 random(static_cast<uint32_t>(t.rank()));
    std::shuffle(tickets.begin(), tickets.end(), random);
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    for (int i = 0; i < count && t.rank() == 1; ++i)
      EXPECT_EQ(arrays[i].host(), numbers(0, size(i), i)) << i;
    return Status::ok();
  });
}

TEST_P(MessageConformance, TagsSelect) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("tags");
  run([](Transport &t, RankMemory &memory) -> Status {
    const std::vector<int32_t> tags = {4, 0, Transport::kLargestTag, 17};
    std::vector<Array<int32_t>> arrays;
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < tags.size() && t.rank() < 2; ++i) {
      // The receiver asks in the opposite order; all sizes are equal.
      int32_t tag = t.rank() == 0 ? tags[i] : tags[tags.size() - 1 - i];
      arrays.emplace_back(memory, numbers(t.rank(), 5000, tag));
      if (t.rank() == 0)
        DYNA_START(tickets, t.startSend(1, tag, arrays[i].data(),
                                        arrays[i].bytes(), memory.stream()));
      else
        DYNA_START(tickets, t.startReceive(0, tag, arrays[i].data(),
                                           arrays[i].bytes(), memory.stream()));
    }
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    for (size_t i = 0; i < tags.size() && t.rank() == 1; ++i)
      EXPECT_EQ(arrays[i].host(), numbers(0, 5000, tags[tags.size() - 1 - i]));
    return Status::ok();
  });
}

// Both directions of a pair at once, sends waited for first.
TEST_P(MessageConformance, DirectionsAreIndependent) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() > 1)
      return Status::ok();
    int peer = 1 - t.rank();
    Array<int32_t> mine(memory, numbers(t.rank(), 500000, 1));
    Array<int32_t> theirs(memory, 500000, 0);
    std::vector<Ticket> tickets;
    DYNA_START(tickets, t.startSend(peer, 2, mine.data(), mine.bytes(),
                                    memory.stream()));
    DYNA_START(tickets, t.startReceive(peer, 2, theirs.data(), theirs.bytes(),
                                       memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    EXPECT_EQ(theirs.host(), numbers(peer, 500000, 1));
    return Status::ok();
  });
}

// Every rank to every other, started in an order of its own.
TEST_P(MessageConformance, AllPairsInRandomOrder) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("tags");
  run([](Transport &t, RankMemory &memory) -> Status {
    struct Item {
      int peer, tag;
      bool isSend;
    };
    std::vector<Item> items;
    for (int peer = 0; peer < t.ranks(); ++peer)
      for (int tag = 0; tag < 4 && peer != t.rank(); ++tag)
        for (bool isSend : {false, true})
          items.push_back({peer, tag, isSend});
    auto size = [](int from, int to, int tag) {
      return int64_t(1 + (from * 7 + to * 3 + tag) * 977 % 40000);
    };
    std::mt19937 random(static_cast<uint32_t>(7 + t.rank()));
    std::shuffle(items.begin(), items.end(), random);
    std::vector<Array<int32_t>> arrays;
    std::vector<Ticket> tickets;
    for (const Item &item : items) {
      int from = item.isSend ? t.rank() : item.peer;
      int to = item.isSend ? item.peer : t.rank();
      int64_t n = size(from, to, item.tag);
      arrays.emplace_back(memory, item.isSend
                                      ? numbers(from, n, item.tag + 10 * to)
                                      : std::vector<int32_t>(size_t(n)));
      Array<int32_t> &a = arrays.back();
      DYNA_START(tickets, item.isSend
                              ? t.startSend(to, item.tag, a.data(), a.bytes(),
                                            memory.stream())
                              : t.startReceive(from, item.tag, a.data(),
                                               a.bytes(), memory.stream()));
    }
    std::vector<Ticket> order = tickets;
    std::shuffle(order.begin(), order.end(), random);
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, order));
    for (size_t i = 0; i < items.size(); ++i)
      if (!items[i].isSend) {
        int64_t n = size(items[i].peer, t.rank(), items[i].tag);
        EXPECT_EQ(arrays[i].host(),
                  numbers(items[i].peer, n, items[i].tag + 10 * t.rank()));
      }
    return Status::ok();
  });
}

TEST_P(MessageConformance, CountsWhatItSends) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    std::vector<Ticket> tickets;
    Array<int32_t> data(memory, 10, 0);
    for (int i = 0; i < 3 && t.rank() < 2; ++i)
      DYNA_START(tickets, t.rank() == 0
                              ? t.startSend(1, 0, data.data(), 4 * (i + 1),
                                            memory.stream())
                              : t.startReceive(0, 0, data.data(), 4 * (i + 1),
                                               memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    EXPECT_EQ(t.traffic().messages, t.rank() == 0 ? 3 : 0);
    EXPECT_EQ(t.traffic().messageBytes, t.rank() == 0 ? 24 : 0);
    return Status::ok();
  });
}

TEST_P(MessageConformance, BadArgumentsAreRefusedAndHarmless) {
  run([](Transport &t, RankMemory &memory) -> Status {
    Array<int32_t> data(memory, 4, 0);
    int other = (t.rank() + 1) % t.ranks();
    auto refusal = [&](int peer, int32_t tag, void *p, int64_t bytes) {
      StatusOr<Ticket> sent = t.startSend(peer, tag, p, bytes, nullptr);
      StatusOr<Ticket> received = t.startReceive(peer, tag, p, bytes, nullptr);
      EXPECT_EQ(sent.status().code(), StatusCode::InvalidArgument);
      EXPECT_EQ(received.status().code(), StatusCode::InvalidArgument);
      return received.status().message();
    };
    EXPECT_NE(refusal(t.ranks(), 0, data.data(), 4)
                  .find("receive from rank " + std::to_string(t.ranks())),
              std::string::npos);
    refusal(-1, 0, data.data(), 4);
    refusal(t.rank(), 0, data.data(), 4);
    refusal(other, -1, data.data(), 4);
    refusal(other, Transport::kLargestTag + 1, data.data(), 4);
    refusal(other, 0, data.data(), -1);
    refusal(other, 0, nullptr, 4);
    EXPECT_EQ(t.wait(Ticket{99}, nullptr, soon()).code(),
              StatusCode::InvalidArgument);
    EXPECT_TRUE(t.failure().isOk());
    StatusOr<std::unique_ptr<Group>> group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    return exchange(**group, Collective::barrier(), memory);
  });
}
