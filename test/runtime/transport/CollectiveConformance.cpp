//===- CollectiveConformance.cpp - Exchanges of a group ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/transport/CollectiveCases.h"

#include <cmath>

using namespace dyna;

class CollectiveConformance : public TransportFixture {};
DYNA_INSTANTIATE_TRANSPORTS(CollectiveConformance);

TEST_P(CollectiveConformance, AllReduce) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int salt = 0;
    return forEachType([&](auto type) -> Status {
      using T = decltype(type);
      for (const Shape &shape : kSplitShapes)
        for (int32_t reduction : {DYNA_REDUCE_SUM, DYNA_REDUCE_MAX})
          for (bool isInPlace : {false, true}) {
            Array<T> in(memory, valuesOf<T>(t.rank(), shape, ++salt));
            Array<T> result(memory, shape.elements(), T());
            Array<T> &out = isInPlace ? in : result;
            dyna_collective c = describe(shape, Element<T>::type, reduction,
                                         in.data(), out.data());
            DYNA_RETURN_IF_ERROR(exchange(
                **group, Collective::of(CollectiveKind::AllReduce, c), memory));
            EXPECT_TRUE(out.host() ==
                        reduced<T>((*group)->ranks(), shape, salt, reduction))
                << shape.outer << " x " << shape.first << " type "
                << Element<T>::type << " in place " << isInPlace;
          }
      return Status::ok();
    });
  });
}

TEST_P(CollectiveConformance, ReduceScatter) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int salt = 0;
    return forEachType([&](auto type) -> Status {
      using T = decltype(type);
      for (const Shape &shape : kSplitShapes)
        for (int32_t reduction : {DYNA_REDUCE_SUM, DYNA_REDUCE_MAX}) {
          Array<T> in(memory, valuesOf<T>(t.rank(), shape, ++salt));
          std::vector<T> expected =
              partOf(reduced<T>((*group)->ranks(), shape, salt, reduction),
                     shape, t.ranks(), t.rank(), false);
          Array<T> out(memory, static_cast<int64_t>(expected.size()), T());
          dyna_collective c = describe(shape, Element<T>::type, reduction,
                                       in.data(), out.data());
          DYNA_RETURN_IF_ERROR(exchange(
              **group, Collective::of(CollectiveKind::ReduceScatter, c),
              memory));
          EXPECT_TRUE(out.host() == expected)
              << shape.outer << " x " << shape.first << " type "
              << Element<T>::type;
        }
      return Status::ok();
    });
  });
}

TEST_P(CollectiveConformance, AllGather) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int salt = 0;
    return forEachType([&](auto type) -> Status {
      using T = decltype(type);
      for (const Shape &shape : kSplitShapes) {
        std::vector<T> whole = valuesOf<T>(0, shape, ++salt);
        Array<T> in(memory, partOf(whole, shape, t.ranks(), t.rank(), false));
        Array<T> out(memory, shape.elements(), T());
        dyna_collective c = describe(shape, Element<T>::type, DYNA_REDUCE_SUM,
                                     in.data(), out.data());
        DYNA_RETURN_IF_ERROR(exchange(
            **group, Collective::of(CollectiveKind::AllGather, c), memory));
        EXPECT_TRUE(out.host() == whole) << shape.outer << " x " << shape.first
                                         << " type " << Element<T>::type;
      }
      return Status::ok();
    });
  });
}

// The own part may lie in its place in the result already.
TEST_P(CollectiveConformance, AllGatherInPlace) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    const int64_t n = 100003;
    Shape shape = {1, n, 1, 1, 1};
    std::vector<float> whole = valuesOf<float>(0, shape, 1), mine(whole.size());
    int64_t begin = dyna_part_begin(n, t.ranks(), t.rank());
    int64_t size = dyna_part_size(n, t.ranks(), t.rank());
    std::copy_n(whole.begin() + begin, size, mine.begin() + begin);
    Array<float> out(memory, mine);
    DYNA_RETURN_IF_ERROR(
        exchange(**group,
                 Collective::flat(CollectiveKind::AllGather, out.data() + begin,
                                  out.data(), n, DYNA_ELEMENT_F32),
                 memory));
    EXPECT_TRUE(out.host() == whole);
    return Status::ok();
  });
}

TEST_P(CollectiveConformance, AllToAllBothWays) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int salt = 0;
    return forEachType([&](auto type) -> Status {
      using T = decltype(type);
      for (const Shape &shape : kTransposedShapes)
        for (bool secondToFirst : {false, true}) {
          std::vector<T> whole = valuesOf<T>(0, shape, ++salt);
          Array<T> in(memory,
                      partOf(whole, shape, t.ranks(), t.rank(), secondToFirst));
          std::vector<T> expected =
              partOf(whole, shape, t.ranks(), t.rank(), !secondToFirst);
          Array<T> out(memory, static_cast<int64_t>(expected.size()), T());
          dyna_transposition c = {};
          c.in = in.data(), c.out = out.data();
          c.outer = shape.outer, c.first = shape.first;
          c.middle = shape.middle, c.second = shape.second;
          c.inner = shape.inner, c.element = Element<T>::type;
          c.second_to_first = secondToFirst;
          DYNA_RETURN_IF_ERROR(exchange(**group, Collective::of(c), memory));
          EXPECT_TRUE(out.host() == expected)
              << shape.first << " x " << shape.second << " back "
              << secondToFirst << " type " << Element<T>::type;
        }
      return Status::ok();
    });
  });
}

TEST_P(CollectiveConformance, SliceCutsTheOwnPart) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    for (const Shape &shape : kSplitShapes) {
      std::vector<float> whole = valuesOf<float>(3, shape, 1);
      std::vector<float> expected =
          partOf(whole, shape, t.ranks(), t.rank(), false);
      Array<float> in(memory, whole);
      Array<float> out(memory, static_cast<int64_t>(expected.size()), 0.0f);
      dyna_collective c = describe(shape, DYNA_ELEMENT_F32, DYNA_REDUCE_SUM,
                                   in.data(), out.data());
      DYNA_RETURN_IF_ERROR((*group)->slice(
          Collective::of(CollectiveKind::ReduceScatter, c), memory.stream()));
      EXPECT_EQ(out.host(), expected);
    }
    return Status::ok();
  });
}

// Values whose sum depends on the order, against a sum in the order of ranks.
TEST_P(CollectiveConformance, SumsAreTakenInTheOrderOfTheRanks) {
  DYNA_NEEDS("order");
  run([](Transport &t, RankMemory &memory) -> Status {
    std::vector<int> ranks; // backwards
    for (int rank = t.ranks() - 1; rank >= 0; --rank)
      ranks.push_back(rank);
    auto group = t.createGroup(ranks, soon());
    DYNA_RETURN_IF_ERROR(group.status());
    const int64_t n = 50001;
    auto value = [](int rank, int64_t i) {
      return std::ldexp(1.0f + float(valueAt(rank, i)) / 64,
                        valueAt(rank, i, 1) * 3);
    };
    std::vector<float> mine, expected;
    for (int64_t i = 0; i < n; ++i) {
      mine.push_back(value(t.rank(), i));
      float sum = value(ranks[0], i);
      for (size_t r = 1; r < ranks.size(); ++r)
        sum += value(ranks[r], i);
      expected.push_back(sum);
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
      Array<float> data(memory, mine);
      DYNA_RETURN_IF_ERROR(
          exchange(**group,
                   Collective::flat(CollectiveKind::AllReduce, data.data(),
                                    data.data(), n, DYNA_ELEMENT_F32),
                   memory));
      EXPECT_TRUE(data.host() == expected);
    }
    return Status::ok();
  });
}

TEST_P(CollectiveConformance, BarrierHoldsEverybody) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    // The last rank's message is there when the barrier is passed: it waited
    // for its send before.
    int last = t.ranks() - 1;
    Array<int32_t> data(memory, 1, t.rank());
    std::vector<Ticket> tickets;
    if (t.rank() == last) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      DYNA_START(tickets, t.startSend(0, 0, data.data(), 4, memory.stream()));
    } else if (t.rank() == 0) {
      DYNA_START(tickets,
                 t.startReceive(last, 0, data.data(), 4, memory.stream()));
    }
    // Ranks share a machine, and its clock: nobody leaves before the last enters.
    auto seconds = [] {
      return std::chrono::duration<double>(
                 Transport::Clock::now().time_since_epoch())
          .count();
    };
    Array<double> entered(memory, 1, seconds());
    DYNA_RETURN_IF_ERROR(exchange(**group, Collective::barrier(), memory));
    const double left = seconds();
    DYNA_RETURN_IF_ERROR(exchange(
        **group,
        Collective::flat(CollectiveKind::AllReduce, entered.data(),
                         entered.data(), 1, DYNA_ELEMENT_F64, DYNA_REDUCE_MAX),
        memory));
    EXPECT_GE(left, entered.host().front());
    return waitAll(t, memory, tickets);
  });
}

// Rows and columns of a grid, and overlapping groups, one of them in another
// order than the ranks', all in flight at once.
TEST_P(CollectiveConformance, OverlappingGroups) {
  DYNA_NEEDS_RANKS(4);
  run([](Transport &t, RankMemory &memory) -> Status {
    std::vector<std::vector<int>> lists = {
        {0, 1}, {2, 3}, {0, 2}, {3, 1}, {0, 1, 2}, {3, 2, 0}, {1}, {2, 3}};
    std::vector<std::unique_ptr<Group>> groups;
    std::vector<Array<float>> arrays;
    std::vector<Ticket> tickets;
    Shape shape = {1, 3001, 1, 1, 1};
    for (const std::vector<int> &list : lists)
      if (std::find(list.begin(), list.end(), t.rank()) != list.end()) {
        auto group = t.createGroup(list, soon());
        DYNA_RETURN_IF_ERROR(group.status());
        groups.push_back(std::move(*group));
      }
    for (auto &group : groups) {
      arrays.emplace_back(memory,
                          valuesOf<float>(t.rank(), shape, group->size()));
      DYNA_START(tickets,
                 group->start(Collective::flat(CollectiveKind::AllReduce,
                                               arrays.back().data(),
                                               arrays.back().data(), 3001,
                                               DYNA_ELEMENT_F32),
                              memory.stream()));
    }
    std::vector<Ticket> order(tickets.rbegin(), tickets.rend());
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, order));
    for (size_t i = 0; i < groups.size(); ++i)
      EXPECT_EQ(arrays[i].host(),
                reduced<float>(groups[i]->ranks(), shape, groups[i]->size(),
                               DYNA_REDUCE_SUM))
          << i;
    return Status::ok();
  });
}

// Several exchanges of one group in flight, waited for in the opposite order.
TEST_P(CollectiveConformance, ManyInFlight) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    constexpr int count = 12;
    auto shape = [](int i) { return Shape{1, i % 2 ? 5 : 90000 + i, 1, 1, 1}; };
    std::vector<Array<int32_t>> arrays;
    std::vector<Ticket> tickets;
    for (int i = 0; i < count; ++i) {
      arrays.emplace_back(memory, valuesOf<int32_t>(t.rank(), shape(i), i));
      DYNA_START(tickets,
                 (*group)->start(Collective::flat(
                                     CollectiveKind::AllReduce,
                                     arrays.back().data(), arrays.back().data(),
                                     shape(i).first, DYNA_ELEMENT_I32),
                                 memory.stream()));
    }
    std::reverse(tickets.begin(), tickets.end());
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    for (int i = 0; i < count; ++i)
      EXPECT_TRUE(arrays[i].host() == reduced<int32_t>((*group)->ranks(),
                                                       shape(i), i,
                                                       DYNA_REDUCE_SUM));
    return Status::ok();
  });
}

// A rank that waits for one thing must do its share of the others: rank 0 waits
// for a message that rank 1 sends only after a collective that needs rank 0.
TEST_P(CollectiveConformance, WaitingMakesProgressOnEverything) {
  DYNA_NEEDS_RANKS(2);
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    for (int64_t n : {int64_t(10), int64_t(700001)}) {
      Shape shape = {1, n, 1, 1, 1};
      Array<float> sum(memory, valuesOf<float>(t.rank(), shape, 1));
      Array<float> gathered(memory, n, 0.0f);
      Array<float> text(memory, n, float(t.rank()));
      std::vector<Ticket> collective, message;
      DYNA_START(collective,
                 (*group)->start(Collective::flat(CollectiveKind::AllReduce,
                                                  sum.data(), sum.data(), n,
                                                  DYNA_ELEMENT_F32),
                                 memory.stream()));
      if (t.rank() == 0) {
        DYNA_START(message, t.startReceive(1, 0, text.data(), text.bytes(),
                                           memory.stream()));
        DYNA_RETURN_IF_ERROR(waitAll(t, memory, message));
        DYNA_RETURN_IF_ERROR(waitAll(t, memory, collective));
        EXPECT_EQ(text.host()[size_t(n - 1)], 1);
      } else {
        DYNA_RETURN_IF_ERROR(waitAll(t, memory, collective));
        if (t.rank() == 1)
          DYNA_START(message, t.startSend(0, 0, text.data(), text.bytes(),
                                          memory.stream()));
        DYNA_RETURN_IF_ERROR(waitAll(t, memory, message));
      }
      EXPECT_TRUE(sum.host() ==
                  reduced<float>((*group)->ranks(), shape, 1, DYNA_REDUCE_SUM));
    }
    return Status::ok();
  });
}

TEST_P(CollectiveConformance, CountsWhatItSends) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    // Uneven: 2 * ranks - 1 rows.
    int64_t n = 2 * t.ranks() - 1, others = t.ranks() - 1;
    int64_t mine = dyna_part_size(n, t.ranks(), t.rank());
    Array<float> in(memory, n, 1.0f), out(memory, n, 0.0f);
    for (CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::AllGather,
          CollectiveKind::ReduceScatter})
      DYNA_RETURN_IF_ERROR(exchange(
          **group,
          Collective::flat(kind, in.data(), out.data(), n, DYNA_ELEMENT_F32),
          memory));
    const Traffic &traffic = t.traffic();
    EXPECT_EQ(traffic.collectives[0], 1);
    EXPECT_EQ(traffic.collectiveBytes[0], 4 * (n - mine + others * mine));
    EXPECT_EQ(traffic.collectiveBytes[1], 4 * others * mine);
    EXPECT_EQ(traffic.collectiveBytes[2], 4 * (n - mine));
    return Status::ok();
  });
}

TEST_P(CollectiveConformance, BadGroupsAndArgumentsAreRefused) {
  run([](Transport &t, RankMemory &memory) -> Status {
    int self = t.rank(), other = (t.rank() + 1) % t.ranks();
    for (const std::vector<int> &list :
         {std::vector<int>{}, {self, self}, {self, t.ranks()}, {-1, self}})
      EXPECT_EQ(t.createGroup(list, soon()).status().code(),
                StatusCode::InvalidArgument);
    if (other != self)
      EXPECT_NE(t.createGroup({other}, soon())
                    .status()
                    .message()
                    .find("this rank is not in it"),
                std::string::npos);

    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    Array<float> data(memory, 4, 1.0f);
    Collective good = Collective::flat(CollectiveKind::AllReduce, data.data(),
                                       data.data(), 4, DYNA_ELEMENT_F32);
    auto refused = [&](Collective c) {
      return (*group)->start(c, memory.stream()).status().code() ==
             StatusCode::InvalidArgument;
    };
    Collective bad = good;
    bad.in = nullptr;
    EXPECT_TRUE(refused(bad));
    bad = good, bad.first = -1;
    EXPECT_TRUE(refused(bad));
    bad = good, bad.first = int64_t(1) << 40, bad.inner = int64_t(1) << 40;
    EXPECT_TRUE(refused(bad));
    bad = good, bad.element = 9;
    EXPECT_TRUE(refused(bad));
    bad = good, bad.reduction = 2;
    EXPECT_TRUE(refused(bad));
    return exchange(**group, good, memory);
  });
}
