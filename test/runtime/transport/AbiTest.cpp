//===- AbiTest.cpp - The functions that compiled code calls -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"

#include "runtime/transport/threads/ThreadTransport.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace dyna;

namespace {

/// A context with one group.
struct Context {
  explicit Context(dyna_group group) : group(group) {
    context.groups = &this->group;
    context.group_count = 1;
    context.message = message;
    context.message_capacity = sizeof(message);
  }
  dyna_group group;
  dyna_context context = {};
  char message[256] = "";
};

dyna_collective floats(const float *in, float *out, int64_t outer,
                       int64_t split, int64_t inner) {
  dyna_collective c = {};
  c.in = in, c.out = out;
  c.outer = outer, c.split = split, c.inner = inner;
  c.element = DYNA_ELEMENT_F32;
  return c;
}

using Function = dyna_status (*)(dyna_context *, const dyna_collective *);
const Function kFunctions[] = {dyna_all_reduce, dyna_all_gather,
                               dyna_reduce_scatter, dyna_slice};

} // namespace

TEST(CollectivesAbi, AGroupOfOneIsTheIdentity) {
  Context c(toAbi(nullptr));
  std::vector<float> in(30), out(30);
  std::iota(in.begin(), in.end(), 1.0f);
  dyna_collective args = floats(in.data(), out.data(), 2, 5, 3);
  for (Function function : kFunctions) {
    std::fill(out.begin(), out.end(), 0.0f);
    EXPECT_EQ(function(&c.context, &args), DYNA_OK) << c.message;
    EXPECT_EQ(out, in);
    dyna_collective inPlace = args;
    inPlace.in = out.data();
    EXPECT_EQ(function(&c.context, &inPlace), DYNA_OK) << c.message;
    EXPECT_EQ(out, in);
  }
  dyna_transposition t = {};
  t.in = in.data(), t.out = out.data();
  t.outer = 1, t.first = 5, t.middle = 1, t.second = 3, t.inner = 2;
  t.element = DYNA_ELEMENT_F32;
  std::fill(out.begin(), out.end(), 0.0f);
  EXPECT_EQ(dyna_all_to_all(&c.context, &t), DYNA_OK) << c.message;
  EXPECT_EQ(out, in);
}

TEST(CollectivesAbi, DispatchesToTheGroup) {
  Status status = runRanks(3, [](Transport &t) -> Status {
    auto group = t.createGroup({0, 1, 2}, t.deadline());
    DYNA_RETURN_IF_ERROR(group.status());
    Context c(toAbi(group->get()));
    EXPECT_EQ(c.group.size, 3);
    EXPECT_EQ(c.group.index, t.rank());

    std::vector<float> whole = {1, 2, 3, 4}, sum(4), gathered(4), part(2);
    int64_t mine = dyna_part_size(4, 3, t.rank());
    dyna_collective args = floats(whole.data(), sum.data(), 1, 4, 1);
    EXPECT_EQ(dyna_all_reduce(&c.context, &args), DYNA_OK) << c.message;
    EXPECT_EQ(sum, (std::vector<float>{3, 6, 9, 12}));
    args.reduction = DYNA_REDUCE_MAX;
    EXPECT_EQ(dyna_all_reduce(&c.context, &args), DYNA_OK) << c.message;
    EXPECT_EQ(sum, whole);
    args.reduction = 77; // a slice does not reduce
    args.out = part.data();
    EXPECT_EQ(dyna_slice(&c.context, &args), DYNA_OK) << c.message;
    for (int64_t i = 0; i < mine; ++i)
      EXPECT_EQ(part[i], 2 * t.rank() + i + 1);
    dyna_collective gather = floats(part.data(), gathered.data(), 1, 4, 1);
    EXPECT_EQ(dyna_all_gather(&c.context, &gather), DYNA_OK) << c.message;
    EXPECT_EQ(gathered, whole);
    args.reduction = DYNA_REDUCE_SUM;
    EXPECT_EQ(dyna_reduce_scatter(&c.context, &args), DYNA_OK) << c.message;
    for (int64_t i = 0; i < mine; ++i)
      EXPECT_EQ(part[i], 3 * (2 * t.rank() + i + 1));

    // [first 3, second 3]: this rank's row becomes its column.
    std::vector<float> row(3), column(3);
    for (int i = 0; i < 3; ++i)
      row[i] = 10.0f * t.rank() + i;
    dyna_transposition turn = {};
    turn.in = row.data(), turn.out = column.data();
    turn.outer = turn.middle = turn.inner = 1, turn.first = turn.second = 3;
    turn.element = DYNA_ELEMENT_F32;
    EXPECT_EQ(dyna_all_to_all(&c.context, &turn), DYNA_OK) << c.message;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(column[i], 10.0f * i + t.rank());
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
}

namespace {

/// A gather of 5 floats and a turn of 3 x 3, as one call.
struct TwoAsOne {
  explicit TwoAsOne(int ranks, int rank)
      : part(5), row(9), whole(5), turned(9) {
    int64_t rows = dyna_part_size(3, ranks, rank);
    int64_t begin = dyna_part_begin(3, ranks, rank);
    for (int64_t i = 0; i < dyna_part_size(5, ranks, rank); ++i)
      part[i] = static_cast<float>(dyna_part_begin(5, ranks, rank) + i);
    for (int64_t i = 0; i < 3 * rows; ++i)
      row[i] = static_cast<float>(3 * begin + i);
    exchanges[0].kind = DYNA_EXCHANGE_ALL_GATHER;
    exchanges[0].collective = floats(part.data(), whole.data(), 1, 5, 1);
    exchanges[1].kind = DYNA_EXCHANGE_ALL_TO_ALL;
    dyna_transposition &turn = exchanges[1].transposition;
    turn = {};
    turn.in = row.data(), turn.out = turned.data();
    turn.outer = turn.middle = turn.inner = 1, turn.first = turn.second = 3;
    turn.element = DYNA_ELEMENT_F32;
  }
  std::vector<float> part, row, whole, turned;
  dyna_exchange exchanges[2] = {};
};

} // namespace

TEST(CollectivesAbi, SeveralExchangesAsOneCall) {
  for (int ranks : {1, 2, 3, 4}) {
    Status status = runRanks(ranks, [&](Transport &t) -> Status {
      std::vector<int> all(static_cast<size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      auto group = t.createGroup(all, t.deadline());
      DYNA_RETURN_IF_ERROR(group.status());
      Context c(toAbi(ranks > 1 ? group->get() : nullptr));
      TwoAsOne two(ranks, t.rank());
      EXPECT_EQ(dyna_exchange_all(&c.context, two.exchanges, 2), DYNA_OK)
          << c.message;
      EXPECT_EQ(two.whole, (std::vector<float>{0, 1, 2, 3, 4}));
      // [3, columns of this rank]
      int64_t columns = dyna_part_size(3, ranks, t.rank());
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < columns; ++j)
          EXPECT_EQ(two.turned[i * columns + j],
                    3 * i + dyna_part_begin(3, ranks, t.rank()) + j);
      EXPECT_EQ(t.traffic().collectiveCalls, ranks > 1 ? 1 : 0);
      return Status::ok();
    });
    EXPECT_TRUE(status.isOk()) << status.message();
  }
}

TEST(CollectivesAbi, BadExchangesAreErrorsWithText) {
  auto expectFailure = [](const dyna_exchange *exchanges, int64_t count,
                          const char *text) {
    Context c(toAbi(nullptr));
    EXPECT_EQ(dyna_exchange_all(&c.context, exchanges, count),
              DYNA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(c.message).find(text), std::string::npos)
        << c.message;
  };
  TwoAsOne two(1, 0);
  expectFailure(nullptr, 2, "exchange_all: null arguments");
  expectFailure(two.exchanges, 0, "at least one exchange, but got 0");
  two.exchanges[1].transposition.group = 1;
  expectFailure(two.exchanges, 2,
                "exchange 1 is over group 1, but the first is over group 0");
  two.exchanges[0].collective.group = 1;
  expectFailure(two.exchanges, 2, "group 1 of a context with 1 groups");
  two.exchanges[1].kind = 4;
  expectFailure(two.exchanges, 2, "exchange 1 is of unknown kind 4");
  TwoAsOne missing(1, 0);
  missing.exchanges[1].transposition.out = nullptr;
  expectFailure(missing.exchanges, 2, "null result");
  EXPECT_EQ(dyna_exchange_all(nullptr, two.exchanges, 2),
            DYNA_INVALID_ARGUMENT);
}

TEST(CollectivesAbi, BadArgumentsAreErrorsWithText) {
  float in[4] = {}, out[4] = {};
  const dyna_collective good = floats(in, out, 1, 4, 1);
  auto expectFailure = [](dyna_collective args, const char *text) {
    for (Function function : kFunctions) {
      Context c(toAbi(nullptr));
      EXPECT_EQ(function(&c.context, &args), DYNA_INVALID_ARGUMENT);
      EXPECT_NE(std::string(c.message).find(text), std::string::npos)
          << c.message;
    }
  };
  dyna_collective bad = good;
  bad.group = 1;
  expectFailure(bad, "group 1 of a context with 1 groups");
  bad.group = -1;
  expectFailure(bad, "group -1");
  bad = good, bad.in = nullptr;
  expectFailure(bad, "null input");
  bad = good, bad.out = nullptr;
  expectFailure(bad, "null result");
  bad = good, bad.split = -4;
  expectFailure(bad, "negative size");
  bad = good, bad.element = 0;
  expectFailure(bad, "unknown element type 0");
  bad = good, bad.outer = bad.inner = INT64_MAX;
  expectFailure(bad, "64 bits");
  // A 0 elsewhere hides no overflow.
  bad.split = 0;
  expectFailure(bad, "64 bits");

  for (Function function : kFunctions) {
    EXPECT_EQ(function(nullptr, &good), DYNA_INVALID_ARGUMENT);
    Context c({2, 0, nullptr});
    EXPECT_EQ(function(&c.context, nullptr), DYNA_INVALID_ARGUMENT);
    EXPECT_EQ(function(&c.context, &good), DYNA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(c.message).find("2 ranks and no transport"),
              std::string::npos)
        << c.message;
    c.context.message = nullptr;
    EXPECT_EQ(function(&c.context, &good), DYNA_INVALID_ARGUMENT);
    c.context.groups = nullptr;
    EXPECT_EQ(function(&c.context, &good), DYNA_INVALID_ARGUMENT);
  }
  Context c(toAbi(nullptr));
  EXPECT_EQ(dyna_all_to_all(&c.context, nullptr), DYNA_INVALID_ARGUMENT);
  EXPECT_EQ(dyna_all_to_all(nullptr, nullptr), DYNA_INVALID_ARGUMENT);
}

// Compiled code gives no deadlines; the transport's own holds.
TEST(CollectivesAbi, AMissingRankEndsInTheTransportsTimeout) {
  Status status = runRanks(2, [](Transport &t) -> Status {
    auto group = t.createGroup({0, 1}, t.deadline());
    DYNA_RETURN_IF_ERROR(group.status());
    if (t.rank() == 1)
      return Status::ok();
    // limit-is-tested: the other rank does not come.
    t.setTimeout(std::chrono::milliseconds(50));
    Context c(toAbi(group->get()));
    float value = 1;
    dyna_collective args = floats(&value, &value, 1, 1, 1);
    EXPECT_EQ(dyna_all_reduce(&c.context, &args), DYNA_DEADLINE_EXCEEDED);
    EXPECT_NE(std::string(c.message).find("in group {0, 1}: not done after"),
              std::string::npos)
        << c.message;
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
}
