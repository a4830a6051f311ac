//===- ReshardContentTest.cpp - Reshards deliver the right elements ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

//
// Plans are carried out on arrays, by the rules of runtime/abi/Collectives.h,
// and every element on every rank is compared with what the layout promises.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/layout/RandomLayouts.h"
#include "test/runtime/layout/Simulation.h"

#include <gmock/gmock.h>

using namespace dyna;
using namespace dyna::test;
using testing::Each;
using testing::Gt;

namespace {

/// Carries out a plan between the layouts; says what went wrong, if anything.
std::string failureOf(const Mesh &mesh, const Layout &from, const Layout &to,
                      const Shape &shape,
                      const std::vector<ReshardStep> &steps) {
  Arrays arrays = fill(mesh, from, shape);
  const Layout *last = &from;
  for (const ReshardStep &step : steps) {
    std::string text = describeStep(mesh, step);
    if (!samePlacement(mesh, *last, step.before, shape))
      return "does not follow: " + text;
    if (Status status = checkStep(mesh, step, shape); !status.isOk())
      return "no step: " + text + "; " + status.message();
    if (!carryOut(mesh, step, shape, arrays))
      return "wrong sizes: " + text;
    if (!holds(mesh, step.after, shape, arrays))
      return "wrong elements: " + text;
    last = &step.after;
  }
  return holds(mesh, to, shape, arrays) ? "" : "wrong elements in the end";
}

std::string describeCase(const Mesh &mesh, const Layout &from, const Layout &to,
                         const Shape &shape) {
  return mesh.describe() + ": " + describeLayout(mesh, from) + " -> " +
         describeLayout(mesh, to) + " of " + Box::whole(shape).describe();
}

TEST(ReshardContent, RandomReshardsDeliverEveryElement) {
  Random random(11);
  std::vector<int> seen(5, 0);
  int longest = 0;
  for (int i = 0; i < 8000; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout from = drawLayout(random, mesh, shape.size(), true);
    Layout to = drawTarget(random, mesh, from);
    StatusOr<std::vector<ReshardStep>> steps =
        planReshard(mesh, from, to, shape);
    ASSERT_TRUE(steps.isOk()) << steps.status().message();
    ASSERT_EQ(failureOf(mesh, from, to, shape, *steps), "")
        << describeCase(mesh, from, to, shape);
    for (const ReshardStep &step : *steps)
      ++seen[int(step.kind)];
    longest = std::max(longest, int(steps->size()));
  }
  EXPECT_THAT(seen, Each(Gt(500)));
  EXPECT_GE(longest, 4);
}

TEST(ReshardContent, UnknownSizesWorkForEverySize) {
  Random random(12);
  for (int i = 0; i < 600; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout from = drawLayout(random, mesh, shape.size(), true);
    Layout to = drawTarget(random, mesh, from);
    shape[0] = kDynamicSize;
    StatusOr<std::vector<ReshardStep>> steps =
        planReshard(mesh, from, to, shape);
    ASSERT_TRUE(steps.isOk()) << steps.status().message();
    for (int64_t size : {0, 1, 2, 3, 5, 6, 7, 9, 13, 16, 17}) {
      shape[0] = size;
      ASSERT_EQ(failureOf(mesh, from, to, shape, *steps), "")
          << describeCase(mesh, from, to, shape);
    }
  }
}

TEST(ReshardContent, PlanWithoutSearchIsRightToo) {
  Random random(13);
  for (int i = 0; i < 1500; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout from = drawLayout(random, mesh, shape.size(), true);
    Layout to = drawTarget(random, mesh, from);
    StatusOr<std::vector<ReshardStep>> steps =
        planReshard(mesh, from, to, shape, /*maxMoves=*/draw(random, 3));
    ASSERT_TRUE(steps.isOk()) << steps.status().message();
    ASSERT_EQ(failureOf(mesh, from, to, shape, *steps), "")
        << describeCase(mesh, from, to, shape);
  }
}

// The gradient of a weight that is split over tp and summed over dp, scattered
// as ZeRO does. Whether dp is cut inside tp or tp inside dp decides which rows
// a rank holds; each must get those that its label says.
TEST(ReshardContent, ZeroRowsFollowTheOrderOfAxes) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 2}});
  Shape shape = {8, 3};
  Layout gradient = *parseLayout(mesh, "[[tp], []] partial [dp]");
  struct Case {
    const char *layout;
    int64_t firstRows[4]; // by rank
  };
  for (const Case &zero : {Case{"[[tp, dp], []]", {0, 4, 2, 6}},
                           Case{"[[dp, tp], []]", {0, 2, 4, 6}}}) {
    Layout rows = *parseLayout(mesh, zero.layout);
    Arrays arrays = fill(mesh, gradient, shape);
    StatusOr<std::vector<ReshardStep>> steps =
        planReshard(mesh, gradient, rows, shape);
    ASSERT_TRUE(steps.isOk());
    for (const ReshardStep &step : *steps)
      ASSERT_TRUE(carryOut(mesh, step, shape, arrays));
    for (int64_t rank = 0; rank < 4; ++rank) {
      Array expected; // elements are numbered from 1
      for (int64_t i = 0; i < 6; ++i)
        expected.push_back(zero.firstRows[rank] * 3 + i + 1);
      EXPECT_EQ(arrays[rank], expected) << zero.layout << " rank " << rank;
      EXPECT_EQ(localBox(mesh, rows, shape, rank),
                (Box{{zero.firstRows[rank], 0}, {2, 3}}));
    }
  }
}

// What the test above would not notice if `holds` were always true.
TEST(ReshardContent, JudgeNoticesSwappedRows) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 2}});
  Layout outer = *parseLayout(mesh, "[[dp, tp]]");
  Layout inner = *parseLayout(mesh, "[[tp, dp]]");
  Layout partial = *parseLayout(mesh, "[[dp]] partial [tp]");
  EXPECT_TRUE(holds(mesh, outer, {8}, fill(mesh, outer, {8})));
  EXPECT_FALSE(holds(mesh, inner, {8}, fill(mesh, outer, {8})));
  EXPECT_TRUE(holds(mesh, partial, {8}, fill(mesh, partial, {8})));
  Layout summed = *parseLayout(mesh, "[[dp]]");
  EXPECT_FALSE(holds(mesh, summed, {8}, fill(mesh, partial, {8})));
}

} // namespace
