//===- MoveTest.cpp -------------------------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans are carried out element by element on tensors whose elements are their
// own numbers, and held against what each rank must then have.
//
//===----------------------------------------------------------------------===//

#include "runtime/layout/Move.h"
#include "test/runtime/layout/RandomLayouts.h"
#include "gmock/gmock.h"

#include <algorithm>
#include <random>
#include <set>

using namespace dyna;
using testing::HasSubstr;

namespace {

using Element = std::vector<int64_t>;

/// Calls `visit` with every element of a box.
template <typename Visit> void forElements(const Box &box, Visit visit) {
  if (box.isEmpty())
    return;
  Element at = box.begin;
  while (true) {
    visit(at);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == box.begin[d - 1] + box.size[d - 1])
      at[d - 1] = box.begin[d - 1], --d;
    if (d == 0)
      return;
  }
}

bool has(const Box &box, const Element &at) {
  return box.contains({at, Element(at.size(), 1)});
}

bool hasAny(const std::vector<RankBox> &boxes, const Element &at,
            int rank = -1) {
  return std::any_of(boxes.begin(), boxes.end(), [&](const RankBox &one) {
    return (rank < 0 || one.rank == rank) && has(one.box, at);
  });
}

Box drawBox(std::mt19937 &random, const std::vector<int64_t> &shape) {
  Box box = Box::whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    box.begin[d] = static_cast<int64_t>(random() % (shape[d] + 1));
    box.size[d] =
        static_cast<int64_t>(random() % (shape[d] + 1 - box.begin[d]));
  }
  return box;
}

std::vector<RankBox> draw(std::mt19937 &random,
                          const std::vector<int64_t> &shape, int count) {
  std::vector<RankBox> boxes;
  for (int i = 0; i < count; ++i)
    boxes.push_back({static_cast<int>(random() % 4), drawBox(random, shape)});
  return boxes;
}

std::vector<int64_t> drawShape(std::mt19937 &random) {
  std::vector<int64_t> shape(random() % 4);
  for (int64_t &size : shape)
    size = 1 + static_cast<int64_t>(random() % 6);
  return shape;
}

/// Holds every wanted box against what the plan brings it. Returns the elements
/// that went from one rank to another.
int64_t check(const std::vector<RankBox> &from, const std::vector<RankBox> &to,
              const std::vector<Transfer> &plan) {
  int64_t sent = 0;
  size_t next = 0;
  for (const RankBox &wanted : to) {
    // The plan is in the order of `to`: a box's transfers are those that fill
    // it, no more.
    std::map<Element, int> arrived;
    while (next < plan.size() &&
           arrived.size() < static_cast<size_t>(wanted.box.volume())) {
      const Transfer &one = plan[next++];
      EXPECT_EQ(one.to, wanted.rank);
      forElements(one.box, [&](const Element &at) {
        EXPECT_TRUE(has(wanted.box, at));
        EXPECT_TRUE(hasAny(from, at, one.from));
        if (hasAny(from, at, wanted.rank))
          EXPECT_EQ(one.from, wanted.rank) << "sent what is there";
        EXPECT_EQ(++arrived[at], 1) << "twice";
      });
      sent += one.from == one.to ? 0 : one.box.volume();
    }
    forElements(wanted.box,
                [&](const Element &at) { EXPECT_EQ(arrived.count(at), 1u); });
  }
  EXPECT_EQ(next, plan.size()) << "more than is wanted";
  return sent;
}

TEST(MoveTest, EveryElementArrivesOnce) {
  int planned = 0, refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<int64_t> shape = drawShape(random);
    std::vector<RankBox> from = draw(random, shape, 1 + random() % 6);
    std::vector<RankBox> to = draw(random, shape, 1 + random() % 4);
    if (random() % 2)
      from.push_back({static_cast<int>(random() % 4), Box::whole(shape)});
    auto plan = planMove(from, to);
    bool isThere = true;
    for (const RankBox &wanted : to)
      forElements(wanted.box,
                  [&](const Element &at) { isThere &= hasAny(from, at); });
    ASSERT_EQ(plan.isOk(), isThere);
    ++(isThere ? planned : refused);
    if (!isThere) {
      EXPECT_THAT(plan.status().message(), HasSubstr("no rank has"));
      continue;
    }
    check(from, to, *plan);
    EXPECT_TRUE(*plan == *planMove(from, to)) << "not the same twice";
    if (HasFailure())
      return;
  }
  EXPECT_GT(planned, 1000);
  EXPECT_GT(refused, 300);
}

TEST(MoveTest, EverySummandArrivesOnce) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::vector<int64_t> shape = drawShape(random);
    std::vector<RankBox> from = draw(random, shape, 1 + random() % 6);
    RankBox to = {static_cast<int>(random() % 4), drawBox(random, shape)};
    std::map<Element, int> arrived;
    for (const Transfer &one : planSum(from, {to}))
      forElements(one.box, [&](const Element &at) { ++arrived[at]; });
    std::map<Element, int> expected;
    for (const RankBox &summand : from)
      forElements(summand.box, [&](const Element &at) {
        if (has(to.box, at))
          ++expected[at];
      });
    ASSERT_EQ(arrived, expected) << seed;
  }
}

/// Between any two layouts: what moves is what is not there, and nothing else.
TEST(MoveTest, BetweenLayouts) {
  int moved = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(seed);
    Mesh mesh = test::drawMesh(random);
    Shape shape = {1 + int64_t(random() % 13), 1 + int64_t(random() % 13)};
    std::vector<RankBox> boxes[2];
    for (std::vector<RankBox> &own : boxes) {
      Layout layout = test::drawLayout(random, mesh, shape.size(), false);
      for (int64_t position = 0; position < mesh.size(); ++position)
        own.push_back({static_cast<int>(position),
                       localBox(mesh, layout, shape, position)});
    }
    auto plan = planMove(boxes[0], boxes[1]);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    int64_t missing = 0;
    for (const RankBox &wanted : boxes[1])
      forElements(wanted.box, [&](const Element &at) {
        missing += !hasAny(boxes[0], at, wanted.rank);
      });
    EXPECT_EQ(check(boxes[0], boxes[1], *plan), missing);
    moved += missing > 0;
  }
  EXPECT_GT(moved, 100);
}

/// Elements that each rank sends to others.
std::map<int, int64_t> loadOf(const std::vector<Transfer> &plan) {
  std::map<int, int64_t> load;
  for (const Transfer &one : plan)
    if (one.from != one.to)
      load[one.from] += one.box.volume();
  return load;
}

/// Of four that have all, each sends to two of the eight that have nothing.
TEST(MoveTest, SendersShareTheWork) {
  std::vector<RankBox> from, to;
  for (int rank = 0; rank < 4; ++rank)
    from.push_back({rank, Box::whole({6, 4})});
  for (int rank = 4; rank < 12; ++rank)
    to.push_back({rank, {{rank % 3, 0}, {2, 4}}});
  auto plan = planMove(from, to);
  ASSERT_TRUE(plan.isOk());
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(loadOf(*plan)[rank], 16);
}

/// What a rank brings to itself is no work.
TEST(MoveTest, OnesOwnIsNoLoad) {
  Box all = Box::whole({6, 4});
  auto plan = planMove({{0, all}, {1, all}}, {{0, all}, {2, all}});
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ((*plan)[0].from, 0);
  EXPECT_EQ((*plan)[1].from, 0) << "rank 1 has sent as little";
  EXPECT_EQ(loadOf(*plan)[0], 24);
  EXPECT_EQ(loadOf(*plan)[1], 0);
}

/// Pieces of one sender come as one.
TEST(MoveTest, PiecesAreJoined) {
  // Rows 0:4 by halves on ranks 0 and 1, columns by thirds on rank 2.
  std::vector<RankBox> from = {{0, {{0, 0}, {2, 6}}}, {1, {{2, 0}, {2, 6}}}};
  for (int third = 0; third < 3; ++third)
    from.push_back({2, {{0, 2 * third}, {4, 2}}});
  auto plan = planMove(from, {{2, {{0, 0}, {4, 6}}}});
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->size(), 1u);
  from.resize(2);
  plan = planMove(from, {{2, {{0, 1}, {4, 4}}}});
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->size(), 2u);
}

} // namespace
