//===- ValuesAtHomeTest.cpp -----------------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ValuesAtHome.h"

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dyna;

namespace {

const std::vector<std::string> strategies = {
    "dp=4",
    "dp=4,zero=1",
    "dp=2,tp=2",
    "dp=2,tp=2,sp=1,zero=1",
    "tp=4",
    "tp=2,pp=2,layers=3+2",
    "dp=2,pp=2,layers=1+4,zero=1",
    "tp=2,pp=2,layers=3+2,order=tp+pp+dp",
    "pp=4,layers=2+1+1+1"};

constexpr int64_t columns = 1 << 20;

/// A rank's tensor of a parameter, element by element: which of the logical
/// tensor it is; -1 where it is not up to date.
std::vector<int64_t> elementsOf(const RankView &view, int p, bool currentOnly) {
  std::vector<int64_t> elements;
  if (!view.holds(p))
    return elements;
  const RankPart::Parameter &place = view.place(p);
  for (int64_t r = 0; r < view.rows(p); ++r)
    for (int64_t c = 0; c < place.rowElements; ++c) {
      const bool isCurrent = r >= place.updateBegin && r < place.updateEnd;
      elements.push_back(!currentOnly || isCurrent
                             ? (place.firstRow + r) * columns +
                                   place.firstColumn + c
                             : -1);
    }
  return elements;
}

/// Element by element: a part is read at home exactly where the same elements, in
/// the same order, lie one behind the other there, all up to date.
TEST(ValuesAtHome, AreThereElementByElement) {
  // Rows are as wide as places are aligned.
  TinyOptions options;
  options.hidden = 16;
  options.degrees = {{2, false}, {2, true}, {4, false}};
  const Model model = *Model::create(tinyManifest(options));
  int64_t found = 0, moved = 0, missing = 0;
  for (const std::string &a : strategies)
    for (const std::string &b : strategies) {
      SCOPED_TRACE(b + " beside home " + a);
      auto home = ExecutableGraph::create(model, *parseStrategy(a));
      auto graph = ExecutableGraph::create(model, *parseStrategy(b));
      const auto rows = rowsAtHome(*home, *graph);
      const auto held = heldOf(*home, *graph);
      for (int rank = 0; rank < 4; ++rank) {
        const RankView there = home->rankView(rank);
        const RankView own = graph->rankView(rank);
        int64_t bytes = 0;
        for (int p = 0; p < model.parameters(); ++p) {
          const auto has = elementsOf(there, p, true);
          const auto wants = elementsOf(own, p, false);
          const int64_t size = elementBytes(own.computeType(p));
          const auto at = wants.empty()
                              ? has.end()
                              : std::search(has.begin(), has.end(),
                                            wants.begin(), wants.end());
          const int64_t offset = at - has.begin();
          const bool isThere =
              at != has.end() && offset * size % DYNA_BLOCK_ALIGNMENT == 0 &&
              // What two columns of a table have is not a row.
              own.place(p).rowElements == there.place(p).rowElements &&
              // Layer functions see rows behind an uneven part, too.
              own.elements(p) == static_cast<int64_t>(wants.size());
          ASSERT_EQ(rows[rank][p] >= 0, isThere) << own.parameter(p).name();
          if (isThere) {
            EXPECT_EQ(rows[rank][p] * own.place(p).rowElements, offset);
            ++found;
            moved += offset > 0;
          } else if (!wants.empty()) {
            bytes += dyna_align_block(own.elements(p) * size);
            ++missing;
          }
        }
        ASSERT_EQ(held[rank].values, bytes);
        EXPECT_EQ(
            held[rank].values + held[rank].gradients,
            persistentLayout(own, Persistent::Gradients, 0, rows[rank]).bytes);
      }
      // No switch brings it.
      auto table = SwitchTable::create({&*home, &*graph}, 0, planNaively);
      for (const SwitchTensor &tensor : table.isOk()
                                            ? table->values(-1, 1).tensors
                                            : std::vector<SwitchTensor>())
        for (const RankBox &to : tensor.to)
          EXPECT_LT(rows[to.rank][tensor.parameter], 0);
    }
  EXPECT_GT(found, 500);
  EXPECT_GT(moved, 20);
  EXPECT_GT(missing, 500);
}

} // namespace
