//===- OrchestrateTest.cpp - Home and order, against all of them ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/Orchestrate.h"

#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Seconds: bytes between ranks.
double movedBytes(const GraphSwitch &made) {
  double bytes = 0;
  for (const SwitchBucket &bucket : made.plan.buckets)
    for (const SwitchTransfer &transfer : bucket.transfers)
      if (transfer.from != transfer.to)
        bytes += static_cast<double>(
            transfer.box.volume() * made.tensors[transfer.tensor].elementBytes);
  return bytes;
}

class Graphs {
public:
  explicit Graphs(const std::vector<std::string> &strategies) {
    for (const std::string &text : strategies)
      owned_.push_back(std::make_unique<ExecutableGraph>(
          *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(text))));
    for (const auto &graph : owned_)
      list.push_back(graph.get());
  }
  int count() const { return static_cast<int>(list.size()); }

  std::vector<const ExecutableGraph *> list;

private:
  std::vector<std::unique_ptr<ExecutableGraph>> owned_;
};

StatusOr<Orchestration> make(const Graphs &graphs, bool searchOrder = false,
                             int home = -1) {
  OrchestrateOptions options;
  options.searchOrder = searchOrder;
  options.home = home;
  return orchestrate(graphs.list, {planNaively, movedBytes}, options);
}

/// Whether the rank's part is rows that it updates at home, and aligned there.
bool liesAtHome(const RankView &view, const RankView &home, int p) {
  if (!home.holds(p))
    return false;
  const RankPart::Parameter &own = view.place(p), &there = home.place(p);
  const int64_t row = own.firstRow - there.firstRow;
  return own.firstColumn == there.firstColumn &&
         own.rowElements == there.rowElements &&
         view.elements(p) == own.rows * own.rowElements &&
         row >= there.updateBegin && row + view.rows(p) <= there.updateEnd &&
         row * own.rowElements * elementBytes(view.computeType(p)) % 64 == 0;
}

/// Tensor by tensor, by what each is for: home's all the time, of the others two
/// that follow each other in some order.
int64_t bytesOf(const Graphs &graphs, int home, int rank) {
  auto bytes = [](int64_t elements, plan::ElementType type) {
    return (elements * elementBytes(type) + 63) / 64 * 64;
  };
  int64_t always = 0;
  std::vector<std::array<int64_t, 2>> others; // values, gradients
  for (int g = 0; g < graphs.count(); ++g) {
    const RankView view = graphs.list[g]->rankView(rank);
    std::array<int64_t, 2> own = {0, 0};
    for (int p = 0; p < view.parameters(); ++p) {
      if (!view.holds(p))
        continue;
      if (g == home || !liesAtHome(view, graphs.list[home]->rankView(rank), p))
        own[0] +=
            bytes(view.elements(p), view.computeType(p)); // read by layers
      own[1] += bytes(view.elements(p), view.gradientType());
      if (g == home && view.hasCopy(p))
        always += bytes(view.updatedElements(p), view.masterType());
      for (int moment = 0; g == home && moment < 2; ++moment)
        always += bytes(view.updatedElements(p), view.masterType());
    }
    if (g == home)
      always += own[0] + own[1];
    else
      others.push_back(own);
  }
  int64_t most = 0;
  std::sort(others.begin(), others.end());
  do {
    for (size_t at = 0; at < others.size(); ++at)
      most =
          std::max(most, others[at][0] + others[at][1] +
                             (at + 1 < others.size() ? others[at + 1][0] : 0));
  } while (std::next_permutation(others.begin(), others.end()));
  return always + most;
}

double secondsOf(const Graphs &graphs, int home,
                 const std::vector<int> &order) {
  double seconds = 0;
  const ExecutableGraph *before = nullptr;
  for (int g : order) {
    if (g == home)
      continue;
    for (auto &&tensors :
         {valueTensors(*graphs.list[home], before, *graphs.list[g]),
          gradientTensors(*graphs.list[g], *graphs.list[home])})
      seconds += movedBytes({tensors, *planNaively(tensors), {}});
    before = graphs.list[g];
  }
  return seconds;
}

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

/// What `orchestrate` has to find, by trying everything.
struct Tried {
  std::vector<int> order;
  double seconds = 0;
};

Tried tryAll(const Graphs &graphs, bool searchOrder) {
  const int count = graphs.count();
  std::vector<int64_t> fullest(count);
  for (int home = 0; home < count; ++home)
    for (int rank = 0; rank < 4; ++rank)
      fullest[home] = std::max(fullest[home], bytesOf(graphs, home, rank));
  const int64_t least = *std::min_element(fullest.begin(), fullest.end());
  Tried best;
  for (int home = 0; home < count; ++home) {
    if (static_cast<double>(fullest[home]) > 1.01 * static_cast<double>(least))
      continue;
    std::vector<int> others;
    for (int g = 0; g < count; ++g)
      if (g != home)
        others.push_back(g);
    do {
      std::vector<int> order = others;
      order.push_back(home);
      const double seconds = secondsOf(graphs, home, order);
      if (best.order.empty() || seconds < best.seconds)
        best = {order, seconds};
    } while (searchOrder &&
             std::next_permutation(others.begin(), others.end()));
  }
  return best;
}

TEST(Orchestrate, FindsHomeAndOrderLikeTryingAll) {
  int moved = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    std::vector<std::string> some = strategies;
    for (size_t i = 0; i + 1 < some.size(); ++i)
      std::swap(some[i], some[i + static_cast<size_t>(draw.below(
                                      static_cast<int>(some.size() - i)))]);
    some.resize(1 + static_cast<size_t>(draw.below(4)));
    SCOPED_TRACE(testing::PrintToString(some));
    Graphs graphs(some);
    for (bool searchOrder : {false, true}) {
      const Tried tried = tryAll(graphs, searchOrder);
      auto made = make(graphs, searchOrder);
      ASSERT_TRUE(made.isOk()) << made.status().message();
      EXPECT_EQ(made->order, tried.order);
      EXPECT_DOUBLE_EQ(made->switchSeconds(made->order), tried.seconds);
      for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(made->parameterBytes[rank],
                  bytesOf(graphs, made->home(), rank));
      EXPECT_EQ(made->switches.home(), made->home());
      std::vector<int> asGiven = made->order;
      std::sort(asGiven.begin(), asGiven.end() - 1);
      moved += asGiven != made->order;
    }
  }
  // The order that is found is not always the one given.
  EXPECT_GT(moved, 5);
}

TEST(Orchestrate, HomeIsWhereTheStateIsLeast) {
  // Masters and moments are whole on every replica without ZeRO.
  auto made = make(Graphs({"dp=4", "tp=4", "dp=4,zero=1"}));
  ASSERT_TRUE(made.isOk());
  EXPECT_THAT(made->order, ElementsAre(0, 2, 1));
}

TEST(Orchestrate, OfEqualHomesTheOneWithTheLeastSwitches) {
  // Only the numbers of ranks differ: memory is the same, and so is the way
  // back, but the first is further from the second than from the third.
  Graphs graphs(
      {"tp=2,pp=2,layers=3+2,order=tp+pp+dp", "tp=4", "tp=2,pp=2,layers=3+2"});
  auto made = make(graphs);
  ASSERT_TRUE(made.isOk());
  EXPECT_EQ(made->order, tryAll(graphs, false).order);
  for (int home = 0; home < graphs.count(); ++home) {
    auto other = make(graphs, false, home);
    ASSERT_TRUE(other.isOk());
    EXPECT_EQ(other->home(), home);
  }
}

/// In whatever order they are given.
TEST(Orchestrate, SwitchesDecideAmongHomesOfAboutAsMuchMemory) {
  struct Case {
    std::vector<std::string> all;
    std::string home;
    std::ptrdiff_t homes; ///< that have about as much memory
  };
  for (Case one : {Case{{"pp=4,layers=2+1+1+1", "tp=2,pp=2,layers=3+2",
                         "tp=2,pp=2,layers=3+2,order=tp+pp+dp"},
                        "tp=2,pp=2,layers=3+2",
                        2},
                   Case{{"dp=4,zero=1", "tp=2,pp=2,layers=3+2",
                         "tp=2,pp=2,layers=3+2,order=tp+pp+dp"},
                        "dp=4,zero=1",
                        3}})
    do {
      SCOPED_TRACE(testing::PrintToString(one.all));
      Graphs graphs(one.all);
      std::vector<int64_t> fullest;
      for (int home = 0; home < graphs.count(); ++home) {
        const auto bytes = parameterBytes(graphs.list, home);
        fullest.push_back(*std::max_element(bytes.begin(), bytes.end()));
      }
      const double most = 1.01 * static_cast<double>(*std::min_element(
                                     fullest.begin(), fullest.end()));
      EXPECT_EQ(std::count_if(fullest.begin(), fullest.end(),
                              [&](int64_t bytes) {
                                return static_cast<double>(bytes) <= most;
                              }),
                one.homes);
      auto made = make(graphs, true);
      ASSERT_TRUE(made.isOk()) << made.status().message();
      EXPECT_EQ(one.all[static_cast<size_t>(made->home())], one.home);
    } while (std::next_permutation(one.all.begin(), one.all.end()));
}

TEST(Orchestrate, OneGraphIsHomeAndSwitchesNothing) {
  auto made = make(Graphs({"dp=2,tp=2"}), true);
  ASSERT_TRUE(made.isOk());
  EXPECT_THAT(made->order, ElementsAre(0));
  EXPECT_EQ(made->switchSeconds(made->order), 0);
}

TEST(Orchestrate, StepsOfSomePhasesHaveTheirSwitchesAlone) {
  auto made = make(Graphs({"dp=4", "dp=2,tp=2", "tp=4"}), false, 2);
  ASSERT_TRUE(made.isOk());
  EXPECT_EQ(made->switchSeconds({2}), 0);
  EXPECT_EQ(made->switchSeconds({1, 2}),
            movedBytes(made->switches.values(-1, 1)) +
                movedBytes(made->switches.gradients(1)));
  EXPECT_EQ(made->switchSeconds({0, 1}),
            movedBytes(made->switches.values(-1, 0)) +
                movedBytes(made->switches.values(0, 1)) +
                movedBytes(made->switches.gradients(0)) +
                movedBytes(made->switches.gradients(1)));
}

TEST(Orchestrate, PlansItsSwitchesForTheNetwork) {
  Graphs graphs({"dp=4", "dp=2,tp=2", "tp=2,pp=2,layers=3+2"});
  SwitchNetwork network;
  network.ranks = 4;
  network.ranksPerNode = 2;
  network.insideRate = 1e6;
  network.betweenRate = 1e5;
  const SwitchMaker maker = switchMaker(network);
  auto made = orchestrate(graphs.list, maker);
  ASSERT_TRUE(made.isOk()) << made.status().message();
  const int first = made->order[0];
  EXPECT_GT(made->seconds.values[made->home()][first], 0);
  network.betweenRate /= 2;
  auto slower = orchestrate(graphs.list, switchMaker(network));
  ASSERT_TRUE(slower.isOk()) << slower.status().message();
  EXPECT_GT(slower->switchSeconds(made->order),
            made->switchSeconds(made->order));
}

TEST(Orchestrate, RefusesGraphsThatCannotSwitch) {
  EXPECT_THAT(make(Graphs({})).status().message(),
              HasSubstr("there is no strategy"));
  EXPECT_THAT(make(Graphs({"dp=4", "tp=2"})).status().message(),
              HasSubstr("has 2 ranks, but 'dp=4"));
  EXPECT_THAT(make(Graphs({"dp=4", "dp=2,tp=2", "dp=4"})).status().message(),
              HasSubstr("given twice"));
  EXPECT_THAT(make(Graphs({"dp=4"}), false, 1).status().message(),
              HasSubstr("strategy 1 is none of the 1"));
  EXPECT_THAT(orchestrate(Graphs({"dp=4", "tp=4"}).list,
                          {[](const auto &) -> StatusOr<SwitchPlan> {
                             return Status::invalidArgument("no way");
                           },
                           movedBytes})
                  .status()
                  .message(),
              HasSubstr("no way"));
}

} // namespace
