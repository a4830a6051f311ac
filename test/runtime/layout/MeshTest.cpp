//===- MeshTest.cpp - Tests of meshes and axis parts ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Mesh.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Mesh makeMesh(std::vector<MeshAxis> axes, std::vector<int64_t> ranks = {}) {
  StatusOr<Mesh> mesh = Mesh::create(std::move(axes), std::move(ranks));
  EXPECT_TRUE(mesh.isOk()) << mesh.status().message();
  return mesh.isOk() ? *mesh : Mesh();
}

std::string errorOf(std::vector<MeshAxis> axes,
                    std::vector<int64_t> ranks = {}) {
  StatusOr<Mesh> mesh = Mesh::create(std::move(axes), std::move(ranks));
  return mesh.isOk() ? "no error" : mesh.status().message();
}

TEST(Mesh, PositionsAreRowMajor) {
  Mesh mesh = makeMesh({{"dp", 2}, {"pp", 1}, {"tp", 4}});
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.rankAt(6), 6);
  EXPECT_EQ(mesh.coordinate(6, mesh.wholeAxis(0)), 1);
  EXPECT_EQ(mesh.coordinate(6, mesh.wholeAxis(1)), 0);
  EXPECT_EQ(mesh.coordinate(6, mesh.wholeAxis(2)), 2);
  EXPECT_EQ(mesh.describe(), "dp=2,pp=1,tp=4");
}

TEST(Mesh, WithoutAxesHoldsOneRank) {
  Mesh mesh = makeMesh({});
  EXPECT_EQ(mesh.size(), 1);
  EXPECT_EQ(mesh, Mesh());
  EXPECT_THAT(mesh.groupRanks(0, {}), ElementsAre(0));
}

TEST(Mesh, FactorsAreDigitsOfACoordinate) {
  Mesh mesh = makeMesh({{"tp", 4}});
  AxisPart major{0, 2, 2}, minor{0, 1, 2};
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(mesh.coordinate(c, major), c / 2);
    EXPECT_EQ(mesh.coordinate(c, minor), c % 2);
    EXPECT_EQ(mesh.indexIn(c, {major, minor}), c);
    EXPECT_EQ(mesh.indexIn(c, {minor, major}), c % 2 * 2 + c / 2);
  }
}

TEST(Mesh, GroupsFollowTheOrderOfTheirParts) {
  Mesh mesh = makeMesh({{"dp", 2}, {"tp", 3}});
  AxisPart dp = mesh.wholeAxis(0), tp = mesh.wholeAxis(1);
  EXPECT_THAT(mesh.groupRanks(4, {tp}), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.groupRanks(4, {dp}), ElementsAre(1, 4));
  EXPECT_THAT(mesh.groupRanks(4, {dp, tp}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(mesh.groupRanks(4, {tp, dp}), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Mesh, RanksMayBeAssignedFreely) {
  Mesh mesh = makeMesh({{"dp", 2}, {"tp", 2}}, {7, 4, 6, 5});
  EXPECT_THAT(mesh.groupRanks(0, {mesh.wholeAxis(1)}), ElementsAre(7, 4));
  EXPECT_THAT(mesh.groupRanks(0, {mesh.wholeAxis(0)}), ElementsAre(7, 6));
  EXPECT_EQ(mesh.positionOf(5), 3);
  EXPECT_EQ(mesh.positionOf(0), std::nullopt);
  EXPECT_EQ(mesh.describe(), "dp=2,tp=2 ranks [7,4,6,5]");
  EXPECT_NE(mesh, makeMesh({{"dp", 2}, {"tp", 2}}));
}

TEST(Mesh, IndexAndGroupAgree) {
  Mesh mesh = makeMesh({{"dp", 4}, {"tp", 6}});
  AxisParts parts = {{1, 2, 3}, {0, 1, 2}};
  for (int64_t position = 0; position < mesh.size(); ++position) {
    std::vector<int64_t> group = mesh.groupPositions(position, parts);
    ASSERT_EQ(group.size(), 6u);
    EXPECT_EQ(group[mesh.indexIn(position, parts)], position);
    for (size_t i = 0; i < group.size(); ++i)
      EXPECT_EQ(mesh.indexIn(group[i], parts), int64_t(i));
  }
}

TEST(Mesh, RefusesBadAxes) {
  EXPECT_THAT(errorOf({{"", 2}}), HasSubstr("axis 0 is named ''"));
  EXPECT_THAT(errorOf({{"dp", 2}, {"t p", 2}}),
              HasSubstr("axis 1 is named 't p'"));
  EXPECT_THAT(errorOf({{"dp", 2}, {"dp", 2}}),
              HasSubstr("'dp' is named twice"));
  EXPECT_THAT(errorOf({{"dp", 0}}), HasSubstr("'dp' has size 0"));
  EXPECT_THAT(errorOf({{"dp", -3}}), HasSubstr("'dp' has size -3"));
  EXPECT_THAT(errorOf({{"dp", int64_t(1) << 62}, {"tp", 4}}),
              HasSubstr("more than 1048576 positions at axis 'dp'"));
}

TEST(Mesh, RefusesBadRanks) {
  EXPECT_THAT(errorOf({{"dp", 2}}, {0}),
              HasSubstr("lists 1 ranks; its axes have 2 positions"));
  EXPECT_THAT(errorOf({{"dp", 2}}, {0, 1, 2}), HasSubstr("lists 3 ranks"));
  EXPECT_THAT(errorOf({{"dp", 3}}, {1, 0, 1}), HasSubstr("rank 1 twice"));
  EXPECT_THAT(errorOf({{"dp", 2}}, {0, -1}), HasSubstr("lists rank -1"));
}

} // namespace
