//===- FusedConformance.cpp - Several exchanges started as one --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/transport/CollectiveCases.h"

#include <random>

using namespace dyna;

class FusedConformance : public TransportFixture {};
DYNA_INSTANTIATE_TRANSPORTS(FusedConformance);

namespace {

/// An exchange, and the check of its result.
struct Case {
  Collective collective;
  std::function<bool()> isRight;
};

/// What one rank puts in and must get out.
template <typename T> struct Values {
  std::vector<T> in, out;
};

/// The cases of one rank, which keep their memory.
class Cases {
public:
  Cases(Group &group, RankMemory &memory) : group(group), memory(memory) {}

  /// `number` picks everything: kind, type, shape, direction.
  void add(int number) {
    switch (number % 4) {
    case 0:
      return add<double>(number / 4, number);
    case 1:
      return add<float>(number / 4, number);
    case 2:
      return add<Bf16>(number / 4, number);
    default:
      return add<int32_t>(number / 4, number);
    }
  }
  std::vector<Collective> collectives() const {
    std::vector<Collective> all;
    for (const Case &one : cases)
      all.push_back(one.collective);
    return all;
  }
  void check() const {
    for (size_t i = 0; i < cases.size(); ++i)
      EXPECT_TRUE(cases[i].isRight())
          << i << " of " << cases.size() << ": "
          << cases[i].collective.describe() << " on rank "
          << group.transport().rank();
  }

private:
  template <typename T> void add(int number, int salt) {
    auto kind = static_cast<CollectiveKind>(number % 4);
    int variant = number / 4;
    bool isTurn = kind == CollectiveKind::AllToAll;
    const Shape &shape =
        isTurn ? pick(kTransposedShapes, variant) : pick(kSplitShapes, variant);
    bool isOther = variant / 7 % 2; // a maximum; the other direction; in place
    Values<T> values = valuesFor<T>(kind, shape, salt, isOther);
    Array<T> in(memory, values.in);
    Array<T> result(memory, static_cast<int64_t>(values.out.size()), T());
    bool isInPlace = kind == CollectiveKind::AllReduce && variant % 2;
    Array<T> out = isInPlace ? in : result;
    Collective collective;
    if (isTurn) {
      dyna_transposition c = {};
      c.in = in.data(), c.out = out.data();
      c.outer = shape.outer, c.first = shape.first, c.middle = shape.middle;
      c.second = shape.second, c.inner = shape.inner;
      c.element = Element<T>::type;
      c.second_to_first = isOther;
      collective = Collective::of(c);
    } else {
      collective = Collective::of(
          kind, describe(shape, Element<T>::type,
                         isOther ? DYNA_REDUCE_MAX : DYNA_REDUCE_SUM, in.data(),
                         out.data()));
    }
    cases.push_back({collective, [in, out, wanted = values.out] {
                       return out.host() == wanted;
                     }});
  }

  template <size_t n>
  static const Shape &pick(const Shape (&shapes)[n], int which) {
    return shapes[static_cast<size_t>(which) % n];
  }

  template <typename T>
  Values<T> valuesFor(CollectiveKind kind, const Shape &shape, int salt,
                      bool isOther) {
    int ranks = group.size(), index = group.index();
    int rank = group.transport().rank();
    std::vector<T> whole = valuesOf<T>(0, shape, salt);
    auto part = [&](const std::vector<T> &of, bool ofSecond) {
      return partOf(of, shape, ranks, index, ofSecond);
    };
    auto sum = [&] {
      return reduced<T>(group.ranks(), shape, salt,
                        isOther ? DYNA_REDUCE_MAX : DYNA_REDUCE_SUM);
    };
    switch (kind) {
    case CollectiveKind::AllReduce:
      return {valuesOf<T>(rank, shape, salt), sum()};
    case CollectiveKind::AllGather:
      return {part(whole, false), whole};
    case CollectiveKind::ReduceScatter:
      return {valuesOf<T>(rank, shape, salt), part(sum(), false)};
    default:
      return {part(whole, isOther), part(whole, !isOther)};
    }
  }

  Group &group;
  RankMemory &memory;
  std::vector<Case> cases;
};

} // namespace

// All kinds, element types and shapes, with empty parts, in lists of random
// length; the same on all ranks.
TEST_P(FusedConformance, SeveralAsOneGiveWhatEachGivesAlone) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
      Cases cases(**group, memory);
      for (int count = 1 + static_cast<int>(random() % 9); count > 0; --count)
        cases.add(static_cast<int>(random() % (16 * 126)));
      std::vector<Ticket> tickets;
      DYNA_START(tickets,
                 (*group)->start(cases.collectives(), memory.stream()));
      DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
      cases.check();
    }
    return Status::ok();
  });
}

// Nothing but what is empty on every rank, and a barrier beside a sum.
TEST_P(FusedConformance, NothingToMove) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    Collective none = Collective::flat(CollectiveKind::AllGather, nullptr,
                                       nullptr, 0, DYNA_ELEMENT_F32);
    Array<int32_t> data(memory, 3, 1);
    Collective sum = Collective::flat(CollectiveKind::AllReduce, data.data(),
                                      data.data(), 3, DYNA_ELEMENT_I32);
    std::vector<Ticket> tickets;
    DYNA_START(tickets, (*group)->start({none, none}, memory.stream()));
    DYNA_START(tickets, (*group)->start({Collective::barrier(), none, sum},
                                        memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    EXPECT_EQ(data.host(), std::vector<int32_t>(3, t.ranks()));
    return Status::ok();
  });
}

// Fused and single ones of one group in flight together, waited for backwards.
TEST_P(FusedConformance, InFlightWithOthers) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    std::vector<Cases> all;
    std::vector<Ticket> tickets;
    for (int i = 0; i < 8; ++i) {
      all.emplace_back(**group, memory);
      for (int j = 0; j < 1 + 4 * (i % 2); ++j)
        all.back().add(37 * i + 17 * j);
      DYNA_START(tickets,
                 (*group)->start(all.back().collectives(), memory.stream()));
    }
    std::reverse(tickets.begin(), tickets.end());
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    for (const Cases &cases : all)
      cases.check();
    return Status::ok();
  });
}

// A large sum and one of small parts that need no receiver to leave. While a
// rank looks away the others get on with the small one alone; when it looks
// again, both are there at once. So the ranks begin what follows (the parts'
// sums, for everybody) in different orders.
TEST_P(FusedConformance, RoundsBeginInAnyOrder) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int64_t small = 550 * t.ranks(), large = int64_t(1) << 18;
    for (int round = 0; round < 2 * t.ranks(); ++round) {
      int64_t sizes[] = {round % 2 ? small : large, round % 2 ? large : small};
      Array<float> first(memory, sizes[0], 1.0f),
          second(memory, sizes[1], 2.0f);
      std::vector<Collective> list;
      for (const Array<float> *data : {&first, &second})
        list.push_back(Collective::flat(CollectiveKind::AllReduce, data->data(),
                                        data->data(), data->size(),
                                        DYNA_ELEMENT_F32));
      std::vector<Ticket> tickets;
      DYNA_START(tickets, (*group)->start(list, memory.stream()));
      if (t.rank() == round / 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
      auto n = static_cast<float>(t.ranks());
      EXPECT_EQ(first.host(), std::vector<float>(first.size(), n));
      EXPECT_EQ(second.host(), std::vector<float>(second.size(), 2 * n));
    }
    return Status::ok();
  });
}

TEST_P(FusedConformance, CountsEachCollectiveAndOneCall) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    Array<float> in(memory, 7, 1.0f), out(memory, 7, 0.0f), sum(memory, 7, 1.f);
    Collective gather = Collective::flat(CollectiveKind::AllGather, in.data(),
                                         out.data(), 7, DYNA_ELEMENT_F32);
    Collective reduce = Collective::flat(CollectiveKind::AllReduce, sum.data(),
                                         sum.data(), 7, DYNA_ELEMENT_F32);
    DYNA_RETURN_IF_ERROR(exchange(**group, gather, memory));
    DYNA_RETURN_IF_ERROR(exchange(**group, reduce, memory));
    Traffic apart = t.traffic();
    std::vector<Ticket> tickets;
    DYNA_START(tickets, (*group)->start({gather, reduce}, memory.stream()));
    DYNA_RETURN_IF_ERROR(waitAll(t, memory, tickets));
    const Traffic &both = t.traffic();
    EXPECT_EQ(apart.collectiveCalls, 2);
    EXPECT_EQ(both.collectiveCalls, 3);
    for (int kind = 0; kind < kCollectiveKinds; ++kind) {
      EXPECT_EQ(both.collectives[kind], 2 * apart.collectives[kind]);
      EXPECT_EQ(both.collectiveBytes[kind], 2 * apart.collectiveBytes[kind]);
    }
    return Status::ok();
  });
}

TEST_P(FusedConformance, AMismatchWithinFailsEverywhere) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("sizes");
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    int64_t n = t.rank() == 1 ? 400 : 200;
    Array<float> same(memory, 200, 1.0f), other(memory, n, 1.0f);
    StatusOr<Ticket> ticket = (*group)->start(
        {Collective::flat(CollectiveKind::AllReduce, same.data(), same.data(),
                          200, DYNA_ELEMENT_F32),
         Collective::flat(CollectiveKind::AllReduce, other.data(), other.data(),
                          n, DYNA_ELEMENT_F32)},
        memory.stream());
    Status status = ticket.isOk() ? t.wait(*ticket, memory.stream(), soon())
                                  : ticket.status();
    EXPECT_FALSE(status.isOk());
    EXPECT_NE(status.code(), StatusCode::DeadlineExceeded) << status.message();
    EXPECT_NE(status.message().find("all_reduce (sum) of f32 [1, 200, 1] with "
                                    "all_reduce (sum) of f32"),
              std::string::npos)
        << status.message();
    return Status::ok();
  });
}

// One rank calls a longer list than the others, all of whose exchanges they
// call too; the first to come has either the longer or the shorter one.
TEST_P(FusedConformance, ListsOfOtherLengthsFailEverywhere) {
  DYNA_NEEDS_RANKS(2);
  DYNA_NEEDS("counts");
  for (int late : {0, 1})
    for (int longer : {0, 1})
      run([&](Transport &t, RankMemory &memory) -> Status {
        auto group = everybody(t);
        DYNA_RETURN_IF_ERROR(group.status());
        Array<float> data(memory, 600, 1.0f);
        std::vector<Collective> list;
        for (int i = 0; i < (t.rank() == longer ? 3 : 2); ++i)
          list.push_back(
              Collective::flat(CollectiveKind::AllReduce, data.data() + 200 * i,
                               data.data() + 200 * i, 200, DYNA_ELEMENT_F32));
        if (t.rank() == late)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        StatusOr<Ticket> ticket = (*group)->start(list, memory.stream());
        Status status = ticket.isOk() ? t.wait(*ticket, memory.stream(), soon())
                                      : ticket.status();
        EXPECT_FALSE(status.isOk());
        EXPECT_NE(status.code(), StatusCode::DeadlineExceeded)
            << status.message();
        EXPECT_NE(status.message().find("of the group calls all_reduce (sum)"),
                  std::string::npos)
            << status.message();
        return Status::ok();
      });
}

TEST_P(FusedConformance, BadListsAreRefused) {
  run([](Transport &t, RankMemory &memory) -> Status {
    auto group = everybody(t);
    DYNA_RETURN_IF_ERROR(group.status());
    Array<float> data(memory, 4, 1.0f), other(memory, 4, 1.0f);
    Collective good = Collective::flat(CollectiveKind::AllReduce, data.data(),
                                       data.data(), 4, DYNA_ELEMENT_F32);
    Collective bad = Collective::flat(CollectiveKind::AllReduce, other.data(),
                                      nullptr, 4, DYNA_ELEMENT_F32);
    for (const std::vector<Collective> &list :
         {std::vector<Collective>(), {good, bad}})
      EXPECT_EQ((*group)->start(list, memory.stream()).status().code(),
                StatusCode::InvalidArgument);
    // Nothing of them was started.
    EXPECT_EQ(t.traffic().collectiveCalls, 0);
    return exchange(**group, good, memory);
  });
}
