//===- StripsConformance.cpp - Messages of rows between two ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/transport/TransportConformance.h"

#include <random>

using namespace dyna;

class StripsConformance : public TransportFixture {};
DYNA_INSTANTIATE_TRANSPORTS(StripsConformance);

namespace {

using Numbers = std::vector<int32_t>;

/// Strips of some of `size` elements of `data`, at random but all of `count`;
/// what they name, in their order, comes to `places`.
std::vector<Strip> randomStrips(std::mt19937 &random, int32_t *data,
                                int64_t size, int64_t count,
                                std::vector<int64_t> &places) {
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  std::vector<Strip> strips;
  int64_t at = 0; // behind what is named so far
  while (count > 0) {
    if (below(5) == 0) // rows without bytes, and no rows
      strips.push_back({below(2) ? data : nullptr, below(3), 0, 8});
    if (below(7) == 0)
      strips.push_back({data, 0, 12, 16});
    // Few long rows or many short ones, while there is room for gaps.
    const int64_t gap = size - at > 2 * count ? below(3) : 0;
    int64_t row = 1 + below(std::min<int64_t>(count, below(2) ? 9 : 70000));
    int64_t rows = 1 + below(std::min<int64_t>(count / row, 40));
    if (gap > 0 && rows * (row + gap) > size - at - (count - rows * row))
      rows = 1;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t e = 0; e < row; ++e)
        places.push_back(at + r * (row + gap) + e);
    strips.push_back({data + at, rows, 4 * row, 4 * (row + gap)});
    at += (rows - 1) * (row + gap) + row;
    count -= rows * row;
  }
  EXPECT_LE(at, size);
  std::shuffle(strips.begin(), strips.end(), std::mt19937(3));
  places.clear();
  for (const Strip &strip : strips)
    for (int64_t r = 0; r < strip.count && strip.bytes > 0; ++r)
      for (int64_t e = 0; e < strip.bytes / 4; ++e)
        places.push_back(static_cast<int32_t *>(strip.data) - data +
                         r * strip.stride / 4 + e);
  return strips;
}

/// One message of `count` elements from rank 0 to rank 1, both cut at random.
Status exchangeAtRandom(Transport &t, RankMemory &memory, int64_t count,
                        uint32_t seed, int32_t addedAs) {
  const int64_t size = 3 * count + 10;
  std::mt19937 random(seed);
  std::vector<int64_t> from, to;
  // Both ranks know what the other one has.
  Numbers sent(static_cast<size_t>(size)), before(sent.size());
  for (int64_t i = 0; i < size; ++i) {
    sent[static_cast<size_t>(i)] = static_cast<int32_t>(i * 7919 + seed);
    before[static_cast<size_t>(i)] = static_cast<int32_t>(i * 31 + 5);
  }
  Array<int32_t> data(memory, t.rank() == 0 ? sent : before);
  std::vector<Strip> source =
      randomStrips(random, data.data(), size, count, from);
  std::vector<Strip> target =
      randomStrips(random, data.data(), size, count, to);
  std::vector<Ticket> tickets;
  if (t.rank() == 0)
    DYNA_START(tickets, t.startSend(1, 6, source, memory.stream()));
  if (t.rank() == 1)
    DYNA_START(tickets, t.startReceive(0, 6, target, memory.stream(), addedAs));
  DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
  Numbers expected = before;
  for (size_t i = 0; i < to.size(); ++i) {
    int32_t &place = expected[static_cast<size_t>(to[i])];
    const int32_t value = sent[static_cast<size_t>(from[i])];
    place = addedAs == kReplaces ? value : place + value;
  }
  EXPECT_TRUE(data.host() == (t.rank() == 1   ? expected
                              : t.rank() == 0 ? sent
                                              : before))
      << count << " elements, seed " << seed;
  return Status::ok();
}

} // namespace

// Messages far below and above the pieces that backends cut them into.
TEST_P(StripsConformance, BothEndsMayBeCutAsTheyLike) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    uint32_t seed = 1;
    for (int64_t count : {0, 1, 2, 17, 1000, 65536, 65537, 400001})
      for (int32_t addedAs :
           {kReplaces, static_cast<int32_t>(DYNA_ELEMENT_I32)})
        for (int turn = 0; turn < (count < 70000 ? 8 : 3); ++turn)
          DYNA_RETURN_IF_ERROR(
              exchangeAtRandom(t, memory, count, ++seed, addedAs));
    return Status::ok();
  });
}

TEST_P(StripsConformance, SumsAreOfTheTypeAndRoundedOnce) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    // 1 and a little less than half of the step above it: rounds down in bf16.
    const uint16_t one = 0x3f80, little = 0x3b7f, three = 0x4040;
    Array<uint16_t> data(memory, std::vector<uint16_t>{one, three, one, three});
    Array<uint16_t> theirs(memory,
                           std::vector<uint16_t>{little, 0, one, little});
    std::vector<Ticket> tickets;
    if (t.rank() == 0)
      DYNA_START(tickets, t.startSend(1, 0, {{theirs.data(), 2, 4, 4}},
                                      memory.stream()));
    if (t.rank() == 1)
      DYNA_START(tickets, t.startReceive(0, 0, {{data.data(), 4, 2, 2}},
                                         memory.stream(), DYNA_ELEMENT_BF16));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    if (t.rank() == 1)
      EXPECT_EQ(data.host(),
                (std::vector<uint16_t>{one, three, 0x4000, three}));
    return Status::ok();
  });
}

// Sums that lie between two neighbours, and half-way.
TEST_P(StripsConformance, SumsOfBf16GoToTheNearestAndFromTheMiddleToTheEven) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    // In quarters of the step above 1, 2^-7; odd is 1 and one such step.
    const uint16_t one = 0x3f80, odd = 0x3f81;
    const uint16_t quarter = 0x3b00, half = 0x3b80, most = 0x3bc0;
    const std::vector<uint16_t> before = {one, one, one, odd, odd, odd},
                                added = {quarter, half, most,
                                         quarter, half, most},
                                sums = {one, one, odd, odd, 0x3f82, 0x3f82};
    // Wide loops and what they leave.
    std::vector<uint16_t> many, theirs, expected;
    for (int turn = 0; turn < 50; ++turn)
      for (size_t i = 0; i < before.size(); ++i) {
        many.push_back(before[i]);
        theirs.push_back(added[i]);
        expected.push_back(sums[i]);
      }
    Array<uint16_t> data(memory, many), sent(memory, theirs);
    const auto bytes = static_cast<int64_t>(2 * many.size());
    std::vector<Ticket> tickets;
    if (t.rank() == 0)
      DYNA_START(tickets, t.startSend(1, 0, {{sent.data(), 1, bytes, bytes}},
                                      memory.stream()));
    if (t.rank() == 1)
      DYNA_START(tickets, t.startReceive(0, 0, {{data.data(), 1, bytes, bytes}},
                                         memory.stream(), DYNA_ELEMENT_BF16));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    if (t.rank() == 1)
      EXPECT_EQ(data.host(), expected);
    return Status::ok();
  });
}

// Longer than what a backend has on its way at one time, all of one tag, waited
// for in any order, both directions at once.
TEST_P(StripsConformance, MessagesOfOneTagDoNotOvertake) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    if (t.rank() > 1)
      return Status::ok();
    constexpr int count = 6;
    constexpr int64_t n = 500000;
    std::vector<Array<int32_t>> mine, theirs;
    std::vector<Ticket> tickets;
    for (int i = 0; i < count; ++i) {
      mine.emplace_back(memory, n, 10 * i + t.rank());
      theirs.emplace_back(memory, n, -1);
    }
    for (int i = 0; i < count; ++i) {
      DYNA_START(tickets,
                 t.startSend(1 - t.rank(), 2, {{mine[i].data(), n / 2, 4, 8}},
                             memory.stream()));
      DYNA_START(tickets, t.startReceive(1 - t.rank(), 2,
                                         {{theirs[i].data() + 1, n / 2, 4, 8}},
                                         memory.stream()));
    }
    std::mt19937 random(static_cast<uint32_t>(t.rank()));
    std::shuffle(tickets.begin(), tickets.end(), random);
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    for (int i = 0; i < count; ++i) {
      Numbers expected(n, -1);
      for (int64_t e = 1; e < n; e += 2)
        expected[static_cast<size_t>(e)] = 10 * i + 1 - t.rank();
      EXPECT_TRUE(theirs[i].host() == expected) << i;
    }
    return Status::ok();
  });
}

TEST_P(StripsConformance, UnequalSumsAreRefusedWithBoth) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("sizes");
  for (bool isSenderFirst : {false, true})
    for (int64_t receives : {100, 300000})
      run([&](Transport &t, RankMemory &memory) -> Status {
        Array<uint8_t> data(memory, 4000000, 0);
        if ((t.rank() == 0) != isSenderFirst)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        // 2 times 600,000 bytes, and as many times 10.
        StatusOr<Ticket> ticket =
            t.rank() == 0
                ? t.startSend(1, 0, {{data.data(), 2, 600000, 1000000}},
                              memory.stream())
                : t.startReceive(0, t.rank() == 1 ? 0 : 1,
                                 {{data.data(), receives, 10, 11}},
                                 memory.stream());
        Status status = ticket.isOk() ? t.wait(*ticket, memory.stream(), soon())
                                      : ticket.status();
        EXPECT_FALSE(status.isOk());
        EXPECT_NE(status.message().find(
                      "the message has 1200000 bytes, but the receive "
                      "expects " +
                      std::to_string(10 * receives)),
                  std::string::npos)
            << status.message();
        return Status::ok();
      });
}

TEST_P(StripsConformance, CountsWhatItSends) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    Array<int32_t> data(memory, 100, 0);
    std::vector<Ticket> tickets;
    const std::vector<Strip> strips = {{data.data(), 3, 8, 16},
                                       {data.data() + 50, 1, 40, 0}};
    if (t.rank() == 0)
      DYNA_START(tickets, t.startSend(1, 0, strips, memory.stream()));
    if (t.rank() == 1)
      DYNA_START(tickets, t.startReceive(0, 0, strips, memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    EXPECT_EQ(t.traffic().messages, t.rank() == 0 ? 1 : 0);
    EXPECT_EQ(t.traffic().messageBytes, t.rank() == 0 ? 64 : 0);
    return Status::ok();
  });
}

TEST_P(StripsConformance, BadRowsAreRefusedAndHarmless) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    Array<int32_t> data(memory, 100, 0);
    const int other = (t.rank() + 1) % t.ranks();
    auto refusal = [&](Strip strip, int32_t addedAs = kReplaces) {
      Status status =
          t.startReceive(other, 0, {strip}, nullptr, addedAs).status();
      EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
      return status.message();
    };
    auto has = [](const std::string &text, const char *words) {
      EXPECT_NE(text.find(words), std::string::npos) << text;
    };
    has(refusal({data.data(), -1, 4, 4}), "negative size");
    has(refusal({data.data(), 1, -4, 4}), "negative size");
    has(refusal({nullptr, 2, 4, 4}), "null buffer");
    has(refusal({data.data(), 2, 8, 4}), "rows that overlap");
    has(refusal({data.data(), int64_t(1) << 40, int64_t(1) << 40,
                 int64_t(1) << 41}),
        "more bytes than can be counted");
    has(refusal({data.data(), 2, 6, 8}, DYNA_ELEMENT_F32), "broken elements");
    has(refusal({data.data(), 2, 8, 8}, 77), "no such type");
    EXPECT_TRUE(t.failure().isOk());
    StatusOr<std::unique_ptr<Group>> group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    return exchange(**group, Collective::barrier(), memory);
  });
}
