//===- ReshardTest.cpp - Tests of the choice of steps --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/layout/RandomLayouts.h"
#include "test/runtime/layout/Simulation.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;
using namespace dyna::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

const Mesh &twoByTwo() {
  static const Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 2}});
  return mesh;
}

using Steps = std::vector<std::string>;

/// The plan as text, or the error.
Steps planOf(const Mesh &mesh, const std::string &from, const std::string &to,
             const Shape &shape) {
  StatusOr<std::vector<ReshardStep>> steps = planReshard(
      mesh, *parseLayout(mesh, from), *parseLayout(mesh, to), shape);
  if (!steps.isOk())
    return {steps.status().message()};
  Steps texts;
  for (const ReshardStep &step : *steps)
    texts.push_back(describeStep(mesh, step));
  return texts;
}

Steps planOf(const std::string &from, const std::string &to,
             const Shape &shape) {
  return planOf(twoByTwo(), from, to, shape);
}

TEST(Reshard, OneStepWhereOneStepDoes) {
  Shape shape = {8, 8};
  EXPECT_THAT(
      planOf("[[], []] partial [tp]", "[[], []]", shape),
      ElementsAre("all_reduce [tp]: [[], []] partial [tp] -> [[], []]"));
  EXPECT_THAT(planOf("[[], []] partial [tp]", "[[tp], []]", shape),
              ElementsAre("reduce_scatter [tp] dim 0: [[], []] partial [tp] -> "
                          "[[tp], []]"));
  EXPECT_THAT(planOf("[[tp], []]", "[[], []]", shape),
              ElementsAre("all_gather [tp] dim 0: [[tp], []] -> [[], []]"));
  EXPECT_THAT(planOf("[[], []]", "[[], [tp]]", shape),
              ElementsAre("slice [tp] dim 1: [[], []] -> [[], [tp]]"));
  EXPECT_THAT(
      planOf("[[tp], []]", "[[], [tp]]", shape),
      ElementsAre("all_to_all [tp] dim 0 to 1: [[tp], []] -> [[], [tp]]"));
  EXPECT_THAT(
      planOf("[[], []] partial [tp, dp]", "[[], []]", shape),
      ElementsAre(
          "all_reduce [dp, tp]: [[], []] partial [tp, dp] -> [[], []]"));
}

TEST(Reshard, NothingForTheSamePlacement) {
  Mesh mesh = *Mesh::create({{"dp", 1}, {"tp", 4}});
  EXPECT_THAT(planOf(mesh, "[[dp, tp]]", "[[tp:2/2, tp:2/1]]", {5}), IsEmpty());
  EXPECT_THAT(planOf(mesh, "[[tp]] partial [dp]", "[[tp]]", {5}), IsEmpty());
  EXPECT_THAT(
      planOf(mesh, "[[]] partial [tp]", "[[]] partial [tp:2/1, tp:2/2]", {5}),
      IsEmpty());
}

TEST(Reshard, FactorsMoveOnTheirOwn) {
  Mesh mesh = *Mesh::create({{"tp", 4}});
  EXPECT_THAT(planOf(mesh, "[[tp]]", "[[tp:2/2]]", {8}),
              ElementsAre("all_gather [tp:2/1] dim 0: [[tp]] -> [[tp:2/2]]"));
  // The major factor has no neighbouring rows: it cannot leave first.
  EXPECT_THAT(planOf(mesh, "[[tp]]", "[[tp:2/1]]", {8}),
              ElementsAre("all_gather [tp] dim 0: [[tp]] -> [[]]",
                          "slice [tp:2/1] dim 0: [[]] -> [[tp:2/1]]"));
}

TEST(Reshard, UnevenPartsGoThroughTheWholeList) {
  // 7 rows in four parts are 2 2 | 2 1: gathering tp yields 4 | 3.
  EXPECT_THAT(planOf("[[dp, tp]]", "[[dp]]", {7}),
              ElementsAre("all_gather [tp] dim 0: [[dp, tp]] -> [[dp]]"));
  // 5 rows are 2 2 | 1 0, and halves are 3 | 2.
  Steps through = {"all_gather [dp, tp] dim 0: [[dp, tp]] -> [[]]",
                   "slice [dp] dim 0: [[]] -> [[dp]]"};
  EXPECT_EQ(planOf("[[dp, tp]]", "[[dp]]", {5}), through);
  EXPECT_EQ(planOf("[[dp, tp]]", "[[dp]]", {kDynamicSize}), through);
}

TEST(Reshard, ReducesBeforeItGathersAndCutsBeforeItReduces) {
  EXPECT_THAT(planOf("[[tp]] partial [dp]", "[[tp, dp]]", {8}),
              ElementsAre("reduce_scatter [dp] dim 0: [[tp]] partial [dp] -> "
                          "[[tp, dp]]"));
  EXPECT_THAT(
      planOf("[[], []] partial [dp]", "[[], [tp]]", {8, 8}),
      ElementsAre(
          "slice [tp] dim 1: [[], []] partial [dp] -> [[], [tp]] partial [dp]",
          "all_reduce [dp]: [[], [tp]] partial [dp] -> [[], [tp]]"));
  EXPECT_THAT(planOf("[[tp], []] partial [dp]", "[[], []]", {8, 8}).size(), 2u);
}

TEST(Reshard, RefusesWhatCannotBe) {
  EXPECT_THAT(planOf("[[]]", "[[]] partial [tp]", {8}),
              ElementsAre(HasSubstr("not partial over tp before and cannot")));
  EXPECT_THAT(planOf("[[]] partial [dp]", "[[]] partial [dp, tp]", {8}),
              ElementsAre(HasSubstr("not partial over tp before")));
  EXPECT_THAT(planOf("[[]]", "[[tp]]", {8, 8}),
              ElementsAre(HasSubstr("has 1 dimensions; the tensor has 2")));
  EXPECT_THAT(planOf("[[], []]", "[[tp]]", {8, 8}),
              ElementsAre(HasSubstr("has 1 dimensions; the tensor has 2")));
}

TEST(Reshard, EndsAreAsGiven) {
  Mesh mesh = *Mesh::create({{"dp", 1}, {"tp", 4}});
  Layout from = *parseLayout(mesh, "[[dp, tp:2/2, tp:2/1], []]");
  Layout to = *parseLayout(mesh, "[[dp], [tp]]");
  StatusOr<std::vector<ReshardStep>> steps =
      planReshard(mesh, from, to, {8, 8});
  ASSERT_TRUE(steps.isOk());
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->front().before, from);
  EXPECT_EQ(steps->back().after, to);
  EXPECT_EQ(steps->front().group, AxisParts{mesh.wholeAxis(1)});
}

TEST(Reshard, IsDeterministic) {
  Random random(21);
  for (int i = 0; i < 200; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout from = drawLayout(random, mesh, shape.size(), true);
    Layout to = drawTarget(random, mesh, from);
    auto texts = [&] {
      Steps texts;
      std::vector<ReshardStep> steps = *planReshard(mesh, from, to, shape);
      for (const ReshardStep &step : steps)
        texts.push_back(describeStep(mesh, step));
      return texts;
    };
    ASSERT_EQ(texts(), texts());
  }
}

//===----------------------------------------------------------------------===//
// Single steps
//===----------------------------------------------------------------------===//

/// The layout after a step on dp=2,tp=4, or the error.
std::string afterStep(ReshardKind kind, const std::string &group, int dim,
                      int toDim, const std::string &before,
                      const Shape &shape = {16, 16}) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 4}});
  ReshardStep step;
  step.kind = kind;
  step.group = parseLayout(mesh, "[" + group + "]")->dims[0];
  step.dim = dim;
  step.toDim = toDim;
  step.before = *parseLayout(mesh, before);
  StatusOr<Layout> after = layoutAfter(mesh, step, shape);
  return after.isOk() ? describeLayout(mesh, *after) : after.status().message();
}

TEST(ReshardStep, MakesTheLayoutAfter) {
  EXPECT_EQ(afterStep(ReshardKind::AllGather, "[tp:2/1]", 0, -1, "[[tp], []]"),
            "[[tp:2/2], []]");
  EXPECT_EQ(afterStep(ReshardKind::AllGather, "[dp, tp]", 0, -1,
                      "[[dp, tp:2/2, tp:2/1], []]"),
            "[[], []]");
  EXPECT_EQ(afterStep(ReshardKind::AllReduce, "[tp:2/2, dp]", -1, -1,
                      "[[], []] partial [tp, dp]"),
            "[[], []] partial [tp:2/1]");
  EXPECT_EQ(afterStep(ReshardKind::ReduceScatter, "[tp:2/1]", 0, -1,
                      "[[tp:2/2], []] partial [tp:2/1]"),
            "[[tp], []]");
  EXPECT_EQ(afterStep(ReshardKind::Slice, "[tp]", 1, -1, "[[dp], []]"),
            "[[dp], [tp]]");
  EXPECT_EQ(afterStep(ReshardKind::AllToAll, "[tp]", 0, 1, "[[dp, tp], []]"),
            "[[dp], [tp]]");
}

TEST(ReshardStep, RefusesWhatCannotBeCarriedOut) {
  EXPECT_THAT(
      afterStep(ReshardKind::AllGather, "[dp]", 0, -1, "[[dp, tp], []]"),
      HasSubstr(
          "all_gather over [dp] of [[dp, tp], []]: the parts of dimension "
          "0 do not end in them"));
  EXPECT_THAT(
      afterStep(ReshardKind::AllGather, "[tp:2/2]", 0, -1, "[[tp], []]"),
      HasSubstr("do not end in them"));
  EXPECT_THAT(afterStep(ReshardKind::AllGather, "[tp]", 1, -1, "[[tp], []]"),
              HasSubstr("dimension 1 do not end in them"));
  EXPECT_THAT(afterStep(ReshardKind::AllReduce, "[tp]", -1, -1,
                        "[[], []] partial [tp:2/1]"),
              HasSubstr("not partial over tp"));
  EXPECT_THAT(afterStep(ReshardKind::Slice, "[tp]", 0, -1, "[[], [tp]]"),
              HasSubstr("which overlap"));
  EXPECT_THAT(afterStep(ReshardKind::Slice, "[tp]", 2, -1, "[[], []]"),
              HasSubstr("slice along dimension 2 of a tensor with 2"));
  EXPECT_THAT(afterStep(ReshardKind::Slice, "[tp]", -1, -1, "[[], []]"),
              HasSubstr("along dimension -1"));
  EXPECT_THAT(afterStep(ReshardKind::AllToAll, "[tp]", 0, 0, "[[tp], []]"),
              HasSubstr("from dimension 0 to itself"));
  EXPECT_THAT(
      afterStep(ReshardKind::Slice, "[tp]", 0, -1, "[[dp], []]", {9, 16}),
      HasSubstr("dimension 0 of size 9: 2 parts cut again into 4"));
  EXPECT_THAT(afterStep(ReshardKind::AllGather, "[tp]", 0, -1, "[[dp, tp], []]",
                        {kDynamicSize, 16}),
              HasSubstr("dimension 0 of size unknown"));
  EXPECT_THAT(afterStep(ReshardKind::Slice, "[tp]", 0, -1, "[[]]"),
              HasSubstr("has 1 dimensions; the tensor has 2"));
}

TEST(ReshardStep, CheckComparesTheEnd) {
  Layout before = *parseLayout(twoByTwo(), "[[dp, tp]]");
  Layout after = *parseLayout(twoByTwo(), "[[tp]]");
  ReshardStep step = {
      ReshardKind::AllGather, {twoByTwo().wholeAxis(1)}, 0, -1, before, after};
  EXPECT_EQ(checkStep(twoByTwo(), step, {8}).message(),
            "all_gather [tp] dim 0: [[dp, tp]] -> [[tp]]: leads to [[dp]]");
  step.after = *parseLayout(twoByTwo(), "[[tp], []]");
  EXPECT_THAT(checkStep(twoByTwo(), step, {8}).message(),
              HasSubstr("has 2 dimensions; the tensor has 1"));
  step.after = *parseLayout(twoByTwo(), "[[dp]]");
  EXPECT_TRUE(checkStep(twoByTwo(), step, {8}).isOk());
  step.group.push_back(step.group[0]);
  EXPECT_THAT(checkStep(twoByTwo(), step, {8}).message(),
              HasSubstr("tp and tp, which overlap"));
  step.group = {{1, 1, 3}};
  EXPECT_THAT(checkStep(twoByTwo(), step, {8}).message(),
              HasSubstr("uses tp:3/1; size times stride must divide 2"));
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

int64_t bytesOf(const Mesh &mesh, const std::string &from,
                const std::string &to, const Shape &shape, int64_t position) {
  StatusOr<std::vector<ReshardStep>> steps = planReshard(
      mesh, *parseLayout(mesh, from), *parseLayout(mesh, to), shape);
  int64_t bytes = 0;
  for (const ReshardStep &step : *steps)
    bytes += bytesSent(mesh, step, shape, 4, position);
  return bytes;
}

TEST(ReshardBytes, EvenPartsFollowTheFormulas) {
  Mesh mesh = *Mesh::create({{"tp", 4}});
  for (int64_t rank = 0; rank < 4; ++rank) {
    int64_t whole = 8 * 12 * 4;
    auto bytes = [&](const std::string &from, const std::string &to) {
      return bytesOf(mesh, from, to, {8, 12}, rank);
    };
    EXPECT_EQ(bytes("[[], []] partial [tp]", "[[], []]"), 2 * whole * 3 / 4);
    EXPECT_EQ(bytes("[[], []] partial [tp]", "[[tp], []]"), whole * 3 / 4);
    EXPECT_EQ(bytes("[[tp], []]", "[[], []]"), whole / 4 * 3);
    EXPECT_EQ(bytes("[[tp], []]", "[[], [tp]]"), whole / 4 * 3 / 4);
    EXPECT_EQ(bytes("[[], []]", "[[], [tp]]"), 0);
  }
}

TEST(ReshardBytes, UnevenPartsAreExact) {
  Mesh mesh = *Mesh::create({{"tp", 4}});
  // 5 rows: 2 2 1 0.
  EXPECT_EQ(bytesOf(mesh, "[[tp]]", "[[]]", {5}, 0), 2 * 3 * 4);
  EXPECT_EQ(bytesOf(mesh, "[[tp]]", "[[]]", {5}, 3), 0);
  EXPECT_EQ(bytesOf(mesh, "[[]] partial [tp]", "[[tp]]", {5}, 0), 3 * 4);
  EXPECT_EQ(bytesOf(mesh, "[[]] partial [tp]", "[[tp]]", {5}, 3), 5 * 4);
  // Row 4 keeps column 2; rank 3 has nothing to send.
  EXPECT_EQ(bytesOf(mesh, "[[tp], []]", "[[], [tp]]", {5, 3}, 2), 2 * 4);
  EXPECT_EQ(bytesOf(mesh, "[[tp], []]", "[[], [tp]]", {5, 3}, 3), 0);
}

TEST(ReshardBytes, RanksTogetherSendWhatTheFormulaSays) {
  Random random(22);
  for (int i = 0; i < 500; ++i) {
    Mesh mesh = drawMesh(random);
    Shape shape = drawShape(random);
    Layout from = drawLayout(random, mesh, shape.size(), true);
    Layout to = drawTarget(random, mesh, from);
    std::vector<ReshardStep> steps = *planReshard(mesh, from, to, shape);
    for (const ReshardStep &step : steps) {
      int64_t sent = 0, whole = 0, ranks = groupSize(step.group);
      for (int64_t position = 0; position < mesh.size(); ++position) {
        sent += bytesSent(mesh, step, shape, 1, position);
        if (mesh.indexIn(position, step.group) == 0)
          whole += Box{shape, wholeShape(mesh, step, shape, position)}.volume();
      }
      switch (step.kind) {
      case ReshardKind::AllReduce:
        ASSERT_EQ(sent, 2 * (ranks - 1) * whole);
        break;
      case ReshardKind::AllGather:
      case ReshardKind::ReduceScatter:
        ASSERT_EQ(sent, (ranks - 1) * whole);
        break;
      case ReshardKind::AllToAll:
        ASSERT_LE(sent, whole);
        break;
      case ReshardKind::Slice:
        ASSERT_EQ(sent, 0);
        break;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Optimality
//===----------------------------------------------------------------------===//

/// All ways to choose some of `parts`, in every order.
void appendOrderedChoices(const AxisParts &parts, AxisParts &chosen,
                          std::vector<AxisParts> &choices) {
  choices.push_back(chosen);
  for (const AxisPart &part : parts) {
    if (std::find(chosen.begin(), chosen.end(), part) != chosen.end())
      continue;
    chosen.push_back(part);
    appendOrderedChoices(parts, chosen, choices);
    chosen.pop_back();
  }
}

/// Every layout of two dimensions over these parts.
std::vector<Layout> allLayouts(const AxisParts &parts) {
  std::vector<AxisParts> choices;
  AxisParts chosen;
  appendOrderedChoices(parts, chosen, choices);
  std::vector<Layout> layouts;
  auto isDisjoint = [](const AxisParts &a, const AxisParts &b) {
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) ==
           a.end();
  };
  auto byAxis = [](const AxisPart &a, const AxisPart &b) {
    return std::make_pair(a.axis, -a.stride) <
           std::make_pair(b.axis, -b.stride);
  };
  for (const AxisParts &rows : choices)
    for (const AxisParts &columns : choices)
      for (const AxisParts &partial : choices)
        if (isDisjoint(rows, columns) && isDisjoint(rows, partial) &&
            isDisjoint(columns, partial) &&
            std::is_sorted(partial.begin(), partial.end(), byAxis))
          layouts.push_back({{rows, columns}, partial});
  return layouts;
}

double shareSent(const ReshardStep &step) {
  double k = double(groupSize(step.group)), held = 1;
  for (const AxisParts &parts : step.before.dims)
    held /= double(groupSize(parts));
  switch (step.kind) {
  case ReshardKind::AllReduce:
    return 2 * (k - 1) / k * held;
  case ReshardKind::AllGather:
    return (k - 1) * held;
  case ReshardKind::ReduceScatter:
  case ReshardKind::AllToAll:
    return (k - 1) / k * held;
  case ReshardKind::Slice:
    return 0;
  }
  return 0;
}

/// The step from one layout to another that moves `group` and nothing else;
/// false if there is none of this kind.
bool isStructured(const ReshardStep &step) {
  auto appended = [&](const AxisParts &list) {
    AxisParts longer = list;
    longer.insert(longer.end(), step.group.begin(), step.group.end());
    return longer;
  };
  const Layout &before = step.before, &after = step.after;
  Layout expected = before;
  bool reduces = step.kind == ReshardKind::AllReduce ||
                 step.kind == ReshardKind::ReduceScatter;
  if (reduces) {
    for (const AxisPart &part : step.group) {
      AxisParts &partial = expected.partial;
      auto found = std::find(partial.begin(), partial.end(), part);
      if (found == partial.end())
        return false;
      partial.erase(found);
    }
  }
  if (step.kind == ReshardKind::AllReduce)
    return expected == after;
  if (step.kind == ReshardKind::ReduceScatter ||
      step.kind == ReshardKind::Slice) {
    expected.dims[step.dim] = appended(before.dims[step.dim]);
    return expected == after;
  }
  expected.dims[step.dim] = after.dims[step.dim];
  if (before.dims[step.dim] != appended(after.dims[step.dim]))
    return false;
  if (step.kind == ReshardKind::AllToAll)
    expected.dims[step.toDim] = appended(before.dims[step.toDim]);
  return expected == after;
}

/// Every step between two layouts that the arrays prove right.
std::vector<ReshardStep> provenSteps(const Mesh &mesh, const AxisParts &parts,
                                     const std::vector<Layout> &layouts,
                                     const Shape &shape) {
  std::vector<AxisParts> groups;
  AxisParts chosen;
  appendOrderedChoices(parts, chosen, groups);
  std::vector<ReshardStep> proven;
  auto add = [&](const ReshardStep &step) {
    if (!isStructured(step)) {
      // Too many to try them all on larger meshes.
      if (layouts.size() < 50)
        EXPECT_FALSE(checkStep(mesh, step, shape).isOk())
            << describeStep(mesh, step);
      return;
    }
    Arrays arrays = fill(mesh, step.before, shape);
    bool isRight = carryOut(mesh, step, shape, arrays) &&
                   holds(mesh, step.after, shape, arrays);
    EXPECT_EQ(checkStep(mesh, step, shape).isOk(), isRight)
        << describeStep(mesh, step);
    if (isRight)
      proven.push_back(step);
  };
  for (const Layout &before : layouts)
    for (const Layout &after : layouts)
      for (const AxisParts &group : groups) {
        if (group.empty())
          continue;
        add({ReshardKind::AllReduce, group, -1, -1, before, after});
        for (int dim = 0; dim < 2; ++dim) {
          for (ReshardKind kind : {ReshardKind::AllGather, ReshardKind::Slice,
                                   ReshardKind::ReduceScatter})
            add({kind, group, dim, -1, before, after});
          add({ReshardKind::AllToAll, group, dim, 1 - dim, before, after});
        }
      }
  return proven;
}

/// The least (share sent, steps) from each layout to `to`; steps that the
/// search leaves out by its own rule are left out here.
std::vector<std::pair<double, int>>
cheapest(const std::vector<Layout> &layouts,
         const std::vector<ReshardStep> &steps, const Layout &to) {
  std::vector<std::pair<double, int>> best(layouts.size(), {1e9, 0});
  auto indexOf = [&](const Layout &layout) {
    return std::find(layouts.begin(), layouts.end(), layout) - layouts.begin();
  };
  best[indexOf(to)] = {0, 0};
  std::vector<std::tuple<size_t, size_t, double>> edges;
  for (const ReshardStep &step : steps) {
    if (step.kind == ReshardKind::Slice) {
      const AxisParts &cut = step.after.dims[step.dim];
      const AxisParts &wanted = to.dims[step.dim];
      if (cut.size() > wanted.size() ||
          !std::equal(cut.begin(), cut.end(), wanted.begin()))
        continue;
    }
    edges.push_back(
        {indexOf(step.before), indexOf(step.after), shareSent(step)});
  }
  for (bool improved = true; improved;) {
    improved = false;
    for (const auto &[before, after, share] : edges) {
      double bytes = best[after].first + share;
      int count = best[after].second + 1;
      bool better =
          bytes < best[before].first - 1e-9 ||
          (bytes < best[before].first + 1e-9 && count < best[before].second);
      if (best[after].first < 1e8 && better) {
        best[before] = {bytes, count};
        improved = true;
      }
    }
  }
  return best;
}

/// Compares plans for all pairs with the cheapest chain of proven steps.
void expectOptimal(const Mesh &mesh, const AxisParts &parts,
                   const Shape &shape) {
  std::vector<Layout> layouts = allLayouts(parts);
  std::vector<ReshardStep> steps = provenSteps(mesh, parts, layouts, shape);
  for (const Layout &to : layouts) {
    std::vector<std::pair<double, int>> best = cheapest(layouts, steps, to);
    for (size_t i = 0; i < layouts.size(); ++i) {
      StatusOr<std::vector<ReshardStep>> plan =
          planReshard(mesh, layouts[i], to, shape);
      ASSERT_EQ(plan.isOk(), best[i].first < 1e8);
      if (!plan.isOk())
        continue;
      double share = 0;
      for (const ReshardStep &step : *plan)
        share += shareSent(step);
      std::string pair =
          describeLayout(mesh, layouts[i]) + " -> " + describeLayout(mesh, to);
      ASSERT_NEAR(share, best[i].first, 1e-9) << pair;
      ASSERT_EQ(int(plan->size()), best[i].second) << pair;
    }
  }
}

TEST(ReshardOptimality, TwoAxesEven) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 3}});
  expectOptimal(mesh, {mesh.wholeAxis(0), mesh.wholeAxis(1)}, {12, 18});
}

TEST(ReshardOptimality, TwoAxesUneven) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 3}});
  expectOptimal(mesh, {mesh.wholeAxis(0), mesh.wholeAxis(1)}, {13, 7});
  expectOptimal(mesh, {mesh.wholeAxis(0), mesh.wholeAxis(1)}, {11, 12});
}

TEST(ReshardOptimality, ThreeParts) {
  Mesh mesh = *Mesh::create({{"dp", 2}, {"tp", 4}});
  AxisParts parts = {mesh.wholeAxis(0), {1, 2, 2}, {1, 1, 2}};
  expectOptimal(mesh, parts, {9, 16});
}

} // namespace
