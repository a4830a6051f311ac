//===- StateTensorsTest.cpp - State that moves between graphs -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random pairs of graphs of one model. The state of one is carried to the other one and
// back by a planned switch, element by element, and compared with a gather of whole
// tensors that are then scattered. What ranks have comes from their views, not from the
// boxes that the switch was made of.
//
// DYNA_STATES says how many pairs there are, DYNA_STATES_SEED names the first.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/StateTensors.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "test/runtime/executor/RandomShares.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <tuple>

using namespace dyna;

namespace {

int64_t numberFrom(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

/// A part of a parameter: numbers of both.
using Part = std::pair<int, int>;

/// Elements of a box of a logical tensor.
struct Piece {
  Box box;
  std::vector<uint64_t> bits;

  uint64_t &at(int64_t row, int64_t column) {
    return bits[(row - box.begin[0]) * box.size[1] + column - box.begin[1]];
  }
};

/// Holds the state of a graph, by rank and part.
using Memory = std::map<std::tuple<int, Part>, Piece>;

/// The rows that a rank updates, as its view says; of a frozen parameter all rows.
Box stateBox(const RankView &view, int parameter) {
  const RankPart::Parameter &place = view.place(parameter);
  if (view.isFrozen(parameter))
    return {{place.firstRow, place.firstColumn},
            {place.rows, place.rowElements}};
  return {{place.firstRow + place.updateBegin, place.firstColumn},
          {place.updateEnd - place.updateBegin, place.rowElements}};
}

/// Empty memory of all parts that a rank's layout has a place for, but gradients.
Memory memoryOf(const ExecutableGraph &graph) {
  Memory memory;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const RankView view = graph.rankView(rank);
    const PersistentLayout layout = persistentLayout(view);
    for (int p = 0; p < view.parameters(); ++p) {
      if (!view.holds(p) || stateBox(view, p).isEmpty())
        continue;
      const ParameterPlace &place = layout.parameters[p];
      for (auto [part, offset] :
           {std::pair(ParameterPart::Master, place.master),
            {ParameterPart::Copy, place.copy},
            {ParameterPart::FirstMoment, place.m},
            {ParameterPart::SecondMoment, place.v},
            {ParameterPart::Mask, place.mask},
            {ParameterPart::Score, place.score}}) {
        if (offset < 0)
          continue;
        Piece &piece = memory[{rank, {p, static_cast<int>(part)}}];
        piece.box = stateBox(view, p);
        piece.bits.assign(piece.box.volume(), 0);
      }
    }
  }
  return memory;
}

template <typename Visit> void forEach(const Box &box, Visit visit) {
  for (int64_t row = box.begin[0]; row < box.begin[0] + box.size[0]; ++row)
    for (int64_t column = box.begin[1]; column < box.begin[1] + box.size[1];
         ++column)
      visit(row, column);
}

/// Every element of every tensor has bits of its own.
void fill(Memory &memory, uint64_t seed) {
  for (auto &[name, piece] : memory) {
    const auto [p, part] = std::get<1>(name);
    forEach(piece.box, [&, p = p, part = part, &piece = piece](int64_t row,
                                                               int64_t column) {
      piece.at(row, column) =
          ((seed * 64 + static_cast<uint64_t>(p)) * 8 + part) << 32 |
          static_cast<uint64_t>(row << 16 | column);
    });
  }
}

/// Gathers whole tensors and scatters them.
Memory scattered(Memory &from, const ExecutableGraph &to) {
  std::map<std::tuple<Part, int64_t, int64_t>, uint64_t> whole;
  for (auto &[name, piece] : from) {
    const Part part = std::get<1>(name);
    forEach(piece.box, [&, &piece = piece](int64_t row, int64_t column) {
      whole[{part, row, column}] = piece.at(row, column);
    });
  }
  Memory memory = memoryOf(to);
  for (auto &[name, piece] : memory) {
    const Part part = std::get<1>(name);
    forEach(piece.box, [&, &piece = piece](int64_t row, int64_t column) {
      piece.at(row, column) = whole.at({part, row, column});
    });
  }
  return memory;
}

/// Carries out a plan. A transfer that finds nothing, or no room, is a failure.
Memory carried(Memory &from, const ExecutableGraph &to,
               const GraphSwitch &way) {
  Memory memory = memoryOf(to);
  std::map<int, std::vector<std::tuple<int, int, Piece>>> passed; // by bucket
  for (int b = 0; b < way.buckets(); ++b)
    for (const SwitchTransfer &one : way.plan.buckets[b].transfers) {
      const SwitchTensor &tensor = way.tensors[one.tensor];
      const Part part = {tensor.parameter, static_cast<int>(tensor.part)};
      const Box box = one.box;
      Piece *source = nullptr;
      if (one.source == SwitchPlace::Passing) {
        for (auto &[rank, number, piece] : passed[way.plan.buckets[b].after])
          if (rank == one.from && number == one.tensor &&
              piece.box.contains(box))
            source = &piece;
      } else {
        source =
            &(one.source == SwitchPlace::Old ? from : memory)[{one.from, part}];
      }
      Piece *target = nullptr;
      if (one.target == SwitchPlace::Passing) {
        auto &added = passed[b].emplace_back(
            one.to, one.tensor,
            Piece{box, std::vector<uint64_t>(box.volume())});
        target = &std::get<2>(added);
      } else {
        target = &memory[{one.to, part}];
      }
      if (!source || !source->box.contains(box) || !target->box.contains(box)) {
        ADD_FAILURE() << "tensor " << one.tensor << " " << box.describe()
                      << " from " << one.from << " to " << one.to;
        return memory;
      }
      forEach(box, [&](int64_t row, int64_t column) {
        target->at(row, column) = source->at(row, column);
      });
    }
  return memory;
}

void expectSame(Memory &got, Memory &expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (auto &[name, piece] : expected) {
    ASSERT_TRUE(got.count(name));
    ASSERT_EQ(got[name].bits, piece.bits)
        << "rank " << std::get<0>(name) << ", parameter "
        << std::get<1>(name).first << ", part " << std::get<1>(name).second;
  }
}

class Pairs {
public:
  explicit Pairs(uint64_t seed) : random_(seed) {
    TinyOptions tiny;
    tiny.blocks = 2 + random_.below(4);
    tiny.hidden = tinyWidth;
    // A parameter that is w1 here and w2 there cannot be split.
    const bool crosses = random_.below(4) == 0;
    if (!crosses)
      tiny.degrees = {{2, false}, {2, true}, {3, false}};
    tiny.compute = random_.below(2) ? plan::BF16 : plan::F64;
    if (crosses || random_.below(2))
      tiny.shares = random_.shares(tiny.blocks, crosses);
    else
      tiny.nestedTie = random_.below(2);
    if (tiny.shares.empty() && random_.below(3) == 0) {
      tiny.frozen = {"wte"};
      for (int block = 0; block < tiny.blocks; ++block)
        tiny.frozen.push_back("h." + std::to_string(block) + ".w1");
    }
    auto model = Model::create(tinyManifest(tiny));
    EXPECT_TRUE(model.isOk()) << model.status().message();
    model_ = std::make_unique<Model>(std::move(*model));
    std::vector<bool> masked(static_cast<size_t>(model_->parameters()));
    for (size_t p = 0; p < masked.size(); ++p)
      masked[p] = (seed + p) % 3 == 0 && !model_->isFrozen(static_cast<int>(p));
    model_->setMasks(std::move(masked));
    model_->setScores(seed % 2 == 0);
  }

  /// Draws a graph of 1 to 12 ranks.
  ExecutableGraph graph() {
    while (true) {
      const std::string degrees[] = {"", ",tp=2", ",tp=2,sp=1", ",tp=3"};
      auto strategy = parseStrategy(random_.strategy(model_->layers()) +
                                    degrees[random_.below(4)]);
      if (!strategy.isOk() || strategy->ranks() > 12)
        continue;
      auto graph = ExecutableGraph::create(*model_, *strategy);
      if (graph.isOk())
        return std::move(*graph);
    }
  }
  int below(int count) { return random_.below(count); }

private:
  RandomShares random_;
  std::unique_ptr<Model> model_;
};

StatusOr<GraphSwitch> planned(const ExecutableGraph &from,
                              const ExecutableGraph &to, int perNode) {
  SwitchNetwork network;
  network.ranks = std::max(from.ranks(), to.ranks());
  network.ranksPerNode = perNode;
  network.insideRate = 8e9;
  network.betweenRate = 1e9;
  SwitchOptions options;
  options.bucketBytes = 512;
  options.smallestPiece = 32;
  std::vector<SwitchTensor> tensors = stateTensors(from, to);
  DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, planSwitch(tensors, network, options));
  return GraphSwitch::create(std::move(tensors), std::move(plan), network.ranks,
                             from.model().parameters());
}

TEST(StateTensorsTest, StateGoesThereAndBack) {
  const auto first = static_cast<uint64_t>(numberFrom("DYNA_STATES_SEED", 0));
  const auto count = static_cast<uint64_t>(numberFrom("DYNA_STATES", 250));
  int64_t sent = 0, missing = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Pairs pairs(seed);
    const ExecutableGraph a = pairs.graph(), b = pairs.graph();
    SCOPED_TRACE("DYNA_STATES_SEED=" + std::to_string(seed) + ": " + a.name() +
                 " -> " + b.name());
    const int perNode = 1 + pairs.below(4);
    auto there = planned(a, b, perNode), back = planned(b, a, perNode);
    ASSERT_TRUE(there.isOk()) << there.status().message();
    ASSERT_TRUE(back.isOk()) << back.status().message();
    Memory before = memoryOf(a);
    fill(before, seed + 1);
    Memory behind = carried(before, b, *there);
    Memory expected = scattered(before, b);
    expectSame(behind, expected);
    Memory again = carried(behind, a, *back);
    expectSame(again, before);
    if (testing::Test::HasFailure())
      return;
    EXPECT_GE(there->sentBytes(), missingBytes(there->tensors));
    sent += there->sentBytes();
    missing += missingBytes(there->tensors);
  }
  // On slow links between nodes some plans pass data on through other ranks.
  if (count >= 250)
    EXPECT_LE(static_cast<double>(sent), 1.25 * static_cast<double>(missing));
}

/// A switch to the same graph needs nothing from other ranks.
TEST(StateTensorsTest, WhatLiesRightIsNotMissing) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Pairs pairs(100 + seed);
    const ExecutableGraph graph = pairs.graph();
    auto way = planned(graph, graph, 2);
    ASSERT_TRUE(way.isOk()) << way.status().message();
    EXPECT_EQ(missingBytes(way->tensors), 0);
    EXPECT_EQ(way->sentBytes(), 0);
  }
}

/// From ZeRO rows on two ranks to replicas, each rank lacks the other one's half.
TEST(StateTensorsTest, FloorIsWhatRanksLack) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  Model model = *Model::create(tinyManifest(tiny));
  auto graphOf = [&](const char *text) {
    return *ExecutableGraph::create(model, *parseStrategy(text));
  };
  const ExecutableGraph zero = graphOf("dp=2,zero=1"), whole = graphOf("dp=2");
  int64_t bytes = 0; // master, copy, two moments
  for (int p = 0; p < model.parameters(); ++p)
    bytes += model.elements(p) * (4 + 2 + 4 + 4);
  EXPECT_EQ(missingBytes(stateTensors(zero, whole)), bytes);
  EXPECT_EQ(missingBytes(stateTensors(whole, zero)), 0);
  // A rank that had nothing needs all of it.
  EXPECT_EQ(missingBytes(stateTensors(graphOf("dp=1"), whole)), bytes);
  EXPECT_EQ(missingBytes(stateTensors(whole, graphOf("dp=1"))), 0);
}

TEST(StateTensorsTest, EvaluationHasNoMoments) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  Model model = *Model::create(tinyManifest(tiny));
  using testing::ElementsAre;
  EXPECT_THAT(stateParts(model, 0, Persistent::Training),
              ElementsAre(ParameterPart::Master, ParameterPart::Copy,
                          ParameterPart::FirstMoment,
                          ParameterPart::SecondMoment));
  EXPECT_THAT(stateParts(model, 0, Persistent::Masters),
              ElementsAre(ParameterPart::Master, ParameterPart::Copy));
}

TEST(StateTensorsTest, MasksAreStateOfThePruned) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  Model model = *Model::create(tinyManifest(tiny));
  const int64_t dense = persistentLayout(RankView::whole(model)).bytes;
  const ExecutableGraph zero =
      *ExecutableGraph::create(model, *parseStrategy("dp=2,zero=1"));
  const int64_t shared = persistentLayout(zero.rankView(0)).bytes;
  std::vector<bool> masked(static_cast<size_t>(model.parameters()));
  masked[1] = true;
  model.setMasks(masked);
  EXPECT_EQ(stateParts(model, 1, Persistent::Training).back(),
            ParameterPart::Mask);
  EXPECT_EQ(stateParts(model, 0, Persistent::Training).size(), 4u);
  EXPECT_EQ(stateParts(model, 1, Persistent::Masters).size(), 2u);
  EXPECT_EQ(persistentLayout(RankView::whole(model)).bytes,
            dense + dyna_align_block(model.elements(1)));
  // Under ZeRO a rank has the mask of the rows that it updates.
  EXPECT_EQ(persistentLayout(zero.rankView(0)).bytes,
            shared + dyna_align_block(zero.rankView(0).updatedElements(1)));
  // Scores are numbers of the master type beside the masks.
  model.setScores(true);
  EXPECT_EQ(stateParts(model, 1, Persistent::Training).back(),
            ParameterPart::Score);
  EXPECT_EQ(stateParts(model, 0, Persistent::Training).size(), 4u);
  EXPECT_EQ(stateParts(model, 1, Persistent::Masters).size(), 2u);
  EXPECT_EQ(persistentLayout(RankView::whole(model)).bytes,
            dense + dyna_align_block(model.elements(1)) +
                dyna_align_block(4 * model.elements(1)));
}

} // namespace
