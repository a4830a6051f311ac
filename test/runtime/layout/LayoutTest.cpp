//===- LayoutTest.cpp - Tests of layouts ---------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/layout/RandomLayouts.h"
#include "test/runtime/layout/Simulation.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <set>

using namespace dyna;
using namespace dyna::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Mesh makeMesh(std::vector<MeshAxis> axes) {
  return *Mesh::create(std::move(axes));
}

const Mesh &twoByTwo() {
  static const Mesh mesh = makeMesh({{"dp", 2}, {"tp", 2}});
  return mesh;
}

Layout parse(const Mesh &mesh, const std::string &text) {
  StatusOr<Layout> layout = parseLayout(mesh, text);
  EXPECT_TRUE(layout.isOk()) << layout.status().message();
  return layout.isOk() ? *layout : Layout();
}

/// Begin and end of dimension 0 per rank, in the order of the ranks.
std::vector<std::pair<int64_t, int64_t>>
rowsOf(const Mesh &mesh, const std::string &layout, const Shape &shape) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (int64_t i = 0; i < mesh.size(); ++i) {
    Box box = localBox(mesh, parse(mesh, layout), shape, i);
    rows.push_back({box.begin[0], box.begin[0] + box.size[0]});
  }
  return rows;
}

using Rows = std::pair<int64_t, int64_t>;

// The drawings of Layout.h.
TEST(Layout, OrderOfPartsIsTheLoopNest) {
  const Mesh &mesh = twoByTwo();
  EXPECT_THAT(rowsOf(mesh, "[[dp, tp]]", {8}),
              ElementsAre(Rows{0, 2}, Rows{2, 4}, Rows{4, 6}, Rows{6, 8}));
  EXPECT_THAT(rowsOf(mesh, "[[tp, dp]]", {8}),
              ElementsAre(Rows{0, 2}, Rows{4, 6}, Rows{2, 4}, Rows{6, 8}));
  EXPECT_THAT(rowsOf(mesh, "[[tp]]", {8}),
              ElementsAre(Rows{0, 4}, Rows{4, 8}, Rows{0, 4}, Rows{4, 8}));
}

TEST(Layout, SeveralPartsAreOneSplit) {
  EXPECT_THAT(rowsOf(twoByTwo(), "[[dp, tp]]", {5}),
              ElementsAre(Rows{0, 2}, Rows{2, 4}, Rows{4, 5}, Rows{5, 5}));
  Mesh mesh = makeMesh({{"tp", 4}});
  EXPECT_EQ(rowsOf(mesh, "[[tp]]", {5}),
            rowsOf(mesh, "[[tp:2/2, tp:2/1]]", {5}));
}

TEST(Layout, FactorReplicatesOverTheRest) {
  // Two key/value heads on four ranks.
  Mesh mesh = makeMesh({{"tp", 4}});
  EXPECT_THAT(rowsOf(mesh, "[[tp:2/2]]", {2}),
              ElementsAre(Rows{0, 1}, Rows{0, 1}, Rows{1, 2}, Rows{1, 2}));
  EXPECT_THAT(rowsOf(mesh, "[[tp:2/1]]", {2}),
              ElementsAre(Rows{0, 1}, Rows{1, 2}, Rows{0, 1}, Rows{1, 2}));
}

TEST(Layout, CanonicalFormIsShortest) {
  Mesh mesh = makeMesh({{"dp", 1}, {"tp", 8}});
  auto canonical = [&](const std::string &text) {
    return describeLayout(mesh, canonicalLayout(parse(mesh, text)));
  };
  EXPECT_EQ(canonical("[[tp:2/4, dp, tp:2/2, tp:2/1]]"), "[[tp]]");
  EXPECT_EQ(canonical("[[tp:2/4, tp:2/2]]"), "[[tp:4/2]]");
  EXPECT_EQ(canonical("[[tp:2/2, tp:2/4]]"), "[[tp:2/2, tp:2/4]]");
  EXPECT_EQ(canonical("[[tp:2/4, tp:2/1]]"), "[[tp:2/4, tp:2/1]]");
  EXPECT_EQ(canonical("[[]] partial [tp:2/1, dp, tp:4/2]"),
            "[[]] partial [tp]");
}

TEST(Layout, TextRoundTrips) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    Mesh mesh = drawMesh(random);
    Layout layout = drawLayout(random, mesh, draw(random, 4), true);
    EXPECT_EQ(parse(mesh, describeLayout(mesh, layout)), layout);
  }
  EXPECT_EQ(parse(twoByTwo(), " [ [dp,tp],[ ] ]partial[] "),
            parse(twoByTwo(), "[[dp, tp], []]"));
  EXPECT_EQ(describeLayout(twoByTwo(), Layout::replicated(0)), "[]");
}

TEST(Layout, RefusesBadText) {
  Mesh mesh = makeMesh({{"dp", 2}, {"tp", 4}});
  auto errorOf = [&](const std::string &text) {
    StatusOr<Layout> layout = parseLayout(mesh, text);
    return layout.isOk() ? "no error" : layout.status().message();
  };
  EXPECT_THAT(errorOf(""), HasSubstr("expected '[' at character 1"));
  EXPECT_THAT(errorOf("[[dp"), HasSubstr("expected ',' or ']' at character 5"));
  EXPECT_THAT(errorOf("[dp]"), HasSubstr("expected '[' at character 2"));
  EXPECT_THAT(errorOf("[[dp,]]"), HasSubstr("expected the name of an axis"));
  EXPECT_THAT(errorOf("[[dp]] partially [tp]"), HasSubstr("'partial'"));
  EXPECT_THAT(errorOf("[[dp]] partial [tp] x"), HasSubstr("or the end"));
  EXPECT_THAT(errorOf("[[tp:2]]"), HasSubstr("expected '/'"));
  EXPECT_THAT(errorOf("[[tp:2/]]"), HasSubstr("expected a number"));
  EXPECT_THAT(errorOf("[[tp:2/99999999999999999999]]"),
              HasSubstr("expected a number"));
  EXPECT_THAT(errorOf("[[ep]]"), HasSubstr("axis 'ep'; the mesh is dp=2,tp=4"));
}

TEST(Layout, RefusesPartsThatAreNoFactors) {
  Mesh mesh = makeMesh({{"dp", 2}, {"tp", 4}});
  auto errorOf = [&](const std::string &text) {
    return parseLayout(mesh, text).status().message();
  };
  const char *must = "size times stride must divide 4, the size of axis 'tp'";
  EXPECT_THAT(errorOf("[[tp:3/1]]"), HasSubstr(must));
  EXPECT_THAT(errorOf("[[tp:4/2]]"), HasSubstr(must));
  EXPECT_THAT(errorOf("[[tp:0/1]]"), HasSubstr(must));
  EXPECT_THAT(errorOf("[[tp:2/0]]"), HasSubstr(must));
  EXPECT_THAT(errorOf("[[tp:999999999999999999/999999999999999999]]"),
              HasSubstr(must));
}

TEST(Layout, RefusesOverlappingParts) {
  Mesh mesh = makeMesh({{"dp", 12}, {"tp", 4}});
  auto errorOf = [&](const std::string &text) {
    return parseLayout(mesh, text).status().message();
  };
  EXPECT_THAT(errorOf("[[tp], [tp]]"), HasSubstr("tp and tp, which overlap"));
  EXPECT_THAT(errorOf("[[tp]] partial [tp]"), HasSubstr("which overlap"));
  EXPECT_THAT(errorOf("[[tp:2/2], [tp]]"),
              HasSubstr("tp:2/2 and tp, which overlap"));
  // 0..11 -> (c % 2, c / 3) does not take all pairs equally often.
  EXPECT_THAT(errorOf("[[dp:2/1], [dp:4/3]]"), HasSubstr("which overlap"));
}

TEST(Layout, RefusesWhatDoesNotFit) {
  const Mesh &mesh = twoByTwo();
  EXPECT_THAT(checkLayout(mesh, parse(mesh, "[[dp]]"), 2).message(),
              HasSubstr("has 1 dimensions; the tensor has 2"));
  Layout unknown{{{{2, 1, 2}}}, {}};
  EXPECT_THAT(checkLayout(mesh, unknown, 1).message(),
              HasSubstr("uses axis 2 of mesh dp=2,tp=2, which has 2 axes"));
}

TEST(Layout, BoxesTileTheTensor) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout layout = drawLayout(random, mesh, shape.size(), false);
    std::vector<int64_t> owners(Box::whole(shape).volume(), 0);
    for (int64_t position = 0; position < mesh.size(); ++position)
      for (int64_t element :
           elementsOf(localBox(mesh, layout, shape, position), shape))
        ++owners[element];
    int64_t replicas = mesh.size();
    for (const AxisParts &parts : layout.dims)
      replicas /= groupSize(parts);
    for (int64_t count : owners)
      ASSERT_EQ(count, replicas) << describeLayout(mesh, layout);
  }
}

TEST(Layout, SplitRefinesWhereNestedPartsCoincide) {
  EXPECT_TRUE(splitRefines(8, 2, 2));
  EXPECT_TRUE(splitRefines(7, 2, 2));  // 2 2 | 2 1
  EXPECT_FALSE(splitRefines(5, 2, 2)); // 2 2 | 1 0 against 2 1 | 1 1
  EXPECT_FALSE(splitRefines(6, 2, 2)); // 2 2 | 2 0 against 2 1 | 2 1
  EXPECT_TRUE(splitRefines(5, 1, 4));
  EXPECT_TRUE(splitRefines(5, 4, 1));
  EXPECT_TRUE(splitRefines(0, 3, 3));
  EXPECT_TRUE(splitRefines(kDynamicSize, 1, 4));
  EXPECT_FALSE(splitRefines(kDynamicSize, 2, 2));
}

/// What samePlacement promises, by elements: per rank, which it holds and with
/// which ranks it sums them.
using Held = std::map<int64_t, std::map<int64_t, std::set<int64_t>>>;
Held heldElements(const Mesh &mesh, const Layout &layout, const Shape &shape) {
  Held held;
  for (int64_t i = 0; i < mesh.size(); ++i) {
    std::set<int64_t> addends;
    for (int64_t j = 0; j < mesh.size(); ++j) {
      // Apart from the partial coordinates, both lie at the same place.
      int64_t distance = j - i;
      for (const AxisPart &part : layout.partial)
        distance -= (mesh.coordinate(j, part) - mesh.coordinate(i, part)) *
                    mesh.positionStride(part);
      if (distance == 0)
        addends.insert(mesh.rankAt(j));
    }
    std::map<int64_t, std::set<int64_t>> &mine = held[mesh.rankAt(i)];
    for (int64_t element : elementsOf(localBox(mesh, layout, shape, i), shape))
      mine[element] = addends;
  }
  return held;
}

TEST(Layout, SamePlacementIsElementWise) {
  Random random(3);
  int same = 0;
  for (int i = 0; i < 3000; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout a = drawLayout(random, mesh, shape.size(), true);
    Layout b = drawLayout(random, mesh, shape.size(), true);
    bool expected =
        heldElements(mesh, a, shape) == heldElements(mesh, b, shape);
    same += expected;
    ASSERT_EQ(samePlacement(mesh, a, b, shape), expected)
        << mesh.describe() << ": " << describeLayout(mesh, a) << " and "
        << describeLayout(mesh, b);
    ASSERT_TRUE(samePlacement(mesh, a, canonicalLayout(a), shape));
  }
  EXPECT_GT(same, 150);
  EXPECT_LT(same, 2850);
}

TEST(Layout, SamePlacementHasOneCanonicalForm) {
  // Sizes at which different splits hold different rows.
  Random random(4);
  for (int i = 0; i < 3000; ++i) {
    Mesh mesh = drawMesh(random);
    Layout a = drawLayout(random, mesh, 1, true);
    Layout b = drawLayout(random, mesh, 1, true);
    ASSERT_EQ(samePlacement(mesh, a, b, {1000}),
              canonicalLayout(a) == canonicalLayout(b))
        << mesh.describe() << ": " << describeLayout(mesh, a) << " and "
        << describeLayout(mesh, b);
  }
}

TEST(Layout, SamePlacementComparesRanksNotPositions) {
  Mesh ascending = makeMesh({{"tp", 2}});
  Mesh descending = *Mesh::create({{"x", 2}}, {1, 0});
  Mesh elsewhere = *Mesh::create({{"tp", 2}}, {2, 3});
  Layout split = parse(ascending, "[[tp]]");
  Layout replicated = Layout::replicated(1);
  EXPECT_FALSE(samePlacement(ascending, split, descending, split, {4}));
  EXPECT_TRUE(
      samePlacement(ascending, replicated, descending, replicated, {4}));
  EXPECT_FALSE(samePlacement(ascending, split, elsewhere, split, {4}));
}

/// `inner` as a layout of the local tensors of `outer`, where `checkRefines`
/// says that there is one: the outer parts followed by the inner ones. `shape`
/// is that of the global tensor.
StatusOr<Layout> splitFurther(const Mesh &mesh, const Layout &outer,
                              const Layout &inner, const Shape &shape) {
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, outer, shape.size()));
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, inner, shape.size()));
  Layout both = outer;
  auto append = [](AxisParts &to, const AxisParts &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(both.partial, inner.partial);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t coarse = groupSize(outer.dims[d]), fine = groupSize(inner.dims[d]);
    DYNA_RETURN_IF_ERROR(checkRefines(shape, int(d), coarse, fine));
    append(both.dims[d], inner.dims[d]);
  }
  DYNA_RETURN_IF_ERROR(checkLayout(mesh, both, shape.size()));
  return both;
}

TEST(Layout, SplittingFurtherIsALayoutOfTheLocalTensor) {
  Random random(5);
  int composed = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout outer = drawLayout(random, mesh, shape.size(), true);
    Layout inner = drawLayout(random, mesh, shape.size(), false);
    StatusOr<Layout> both = splitFurther(mesh, outer, inner, shape);
    if (!both.isOk()) {
      ++refused;
      continue;
    }
    ++composed;
    for (int64_t position = 0; position < mesh.size(); ++position) {
      Box coarse = localBox(mesh, outer, shape, position);
      Box fine = localBox(mesh, inner, coarse.size, position).within(coarse);
      ASSERT_EQ(localBox(mesh, *both, shape, position), fine);
    }
  }
  EXPECT_GT(composed, 300);
  EXPECT_GT(refused, 300);
}

TEST(Layout, SplittingFurtherRefusesWhatDoesNotNest) {
  const Mesh &mesh = twoByTwo();
  Layout tp = parse(mesh, "[[tp]]"), dp = parse(mesh, "[[dp]]");
  EXPECT_EQ(describeLayout(mesh, *splitFurther(mesh, tp, dp, {8})),
            "[[tp, dp]]");
  EXPECT_THAT(splitFurther(mesh, tp, dp, {5}).status().message(),
              HasSubstr("dimension 0 of size 5: 2 parts cut again into 2 are "
                        "not 4 parts of it"));
  EXPECT_THAT(splitFurther(mesh, tp, dp, {kDynamicSize}).status().message(),
              HasSubstr("size unknown"));
  EXPECT_THAT(splitFurther(mesh, tp, tp, {8}).status().message(),
              HasSubstr("which overlap"));
}

} // namespace
