//===- MovedContentTest.cpp - Random moves with every kind of state -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every byte of the state is random: masters, copies, masks and both moments of weights,
// biases, tied and frozen parameters, whoever updates their rows. Graphs change at random.
// Behind each move all ranks have the bytes that they must have, and have sent as many as
// the plan says. A switch that forgets any one kind is found.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/RandomShares.h"
#include "test/runtime/executor/ReplacedGraphs.h"

#include <gmock/gmock.h>
#include <map>

using namespace dyna;
using namespace dyna::test;

namespace {

constexpr int mostRanks = 6;

/// A random model, and its state as logical tensors.
class MovedContent {
public:
  MovedContent(int seed, ReplacedGraphs::Options options)
      : random_(seed), tiny_(draw(seed)),
        run_("dp=" + std::to_string(mostRanks), tiny_, carriage(),
             withMasks(tiny_, std::move(options))) {
    const Model &model = run_.model();
    for (int p = 0; p < model.parameters(); ++p)
      for (ParameterPart part : stateParts(model, p, Persistent::Training)) {
        std::vector<unsigned char> &bytes = content_[{p, part}];
        bytes.resize(static_cast<size_t>(run_.team().partBytes(p, part)));
        for (unsigned char &byte : bytes)
          byte = static_cast<unsigned char>(part == ParameterPart::Mask
                                                ? random_.below(2)
                                                : random_.below(256));
        EXPECT_OK(
            run_.team().writeRows(p, part, {0, model.rows(p)}, bytes.data()));
      }
  }

  void move() {
    const int64_t before = sentBytes();
    constexpr std::array ranks = {1, 2, 3, 4, mostRanks};
    EXPECT_OK(run_.replace(random_.strategy(
        tiny_.blocks + 2, ranks[static_cast<size_t>(random_.below(5))])));
    EXPECT_EQ(sentBytes() - before, run_.sentBytes());
  }

  /// Returns how many tensors of all ranks have other bytes than they must have.
  int wrong() {
    int count = 0;
    for (size_t local = 0; local < run_.team().localRanks(); ++local) {
      Executor &executor = run_.team().executor(local);
      if (!executor.hasPlace())
        continue;
      for (const auto &[name, bytes] : content_)
        count += isWrong(executor.seat(), name.first, name.second, bytes);
    }
    return count;
  }

  const Model &model() const { return run_.model(); }

private:
  using Name = std::pair<int, ParameterPart>;

  TinyOptions draw(int seed) {
    TinyOptions tiny;
    tiny.compute = random_.below(2) ? plan::BF16 : plan::F64;
    tiny.hidden = tinyWidth;
    tiny.blocks = 2 + random_.below(3);
    if (seed % 3 == 0)
      tiny.shares = random_.shares(tiny.blocks, random_.below(2));
    if (seed % 3 == 1)
      for (int block = 0; block < tiny.blocks; ++block)
        tiny.frozen.push_back("h." + std::to_string(block) + ".w1");
    return tiny;
  }

  static Carriage carriage() {
    Carriage carriage;
    carriage.checksMemory = false;
    return carriage;
  }

  /// Gives masks to all matrices that train.
  static ReplacedGraphs::Options withMasks(const TinyOptions &tiny,
                                           ReplacedGraphs::Options options) {
    const Model model = *Model::create(tinyManifest(tiny));
    for (int p = 0; p < model.parameters(); ++p)
      if (model.rowElements(p) > 1 && !model.isFrozen(p))
        options.masked.push_back(p);
    options.isScored = true;
    return options;
  }

  int64_t sentBytes() {
    int64_t bytes = 0;
    for (size_t local = 0; local < run_.team().localRanks(); ++local)
      bytes += run_.team().executor(local).machine().traffic().messageBytes;
    return bytes;
  }

  static bool isWrong(GraphSeat &seat, int p, ParameterPart part,
                      const std::vector<unsigned char> &bytes) {
    const bool isFrozen = seat.model().isFrozen(p);
    if (!seat.view().holds(p) || (!isFrozen && seat.updatedPlace(p, part) < 0))
      return false;
    // With ZeRO a rank gathers the rows of other owners before it reads them.
    const Box box =
        seat.partBox(p, isFrozen ? part : ParameterPart::FirstMoment);
    const int64_t columns = seat.model().rowElements(p);
    const int64_t element =
        static_cast<int64_t>(bytes.size()) / seat.model().elements(p);
    std::vector<unsigned char> own(static_cast<size_t>(box.volume() * element));
    EXPECT_OK(seat.readBox(p, part, box, own.data()));
    const int64_t row = box.size[1] * element;
    for (int64_t r = 0; r < box.size[0]; ++r)
      if (std::memcmp(own.data() + r * row,
                      bytes.data() +
                          ((box.begin[0] + r) * columns + box.begin[1]) *
                              element,
                      static_cast<size_t>(row)) != 0)
        return true;
    return false;
  }

  RandomShares random_;
  const TinyOptions tiny_;
  ReplacedGraphs run_;
  std::map<Name, std::vector<unsigned char>> content_;
};

class MovedContentTest : public testing::TestWithParam<int> {};

TEST_P(MovedContentTest, AllRanksHaveTheirBytes) {
  MovedContent content(GetParam(), {});
  ASSERT_EQ(content.wrong(), 0);
  for (int move = 0; move < 12; ++move) {
    content.move();
    ASSERT_EQ(content.wrong(), 0) << move;
  }
}

INSTANTIATE_TEST_SUITE_P(Some, MovedContentTest, testing::Range(0, 6));
// Three thousand moves.
INSTANTIATE_TEST_SUITE_P(CheckAll, MovedContentTest, testing::Range(6, 256));

/// A kind of state that a broken switch does not carry.
struct Forgotten {
  const char *name;
  std::function<bool(const Model &, const SwitchTensor &, const RankBox &)>
      matches;
};

std::vector<Forgotten> allKinds() {
  auto part = [](ParameterPart wanted) {
    return [wanted](const Model &, const SwitchTensor &tensor,
                    const RankBox &) { return tensor.part == wanted; };
  };
  return {
      {"masters", part(ParameterPart::Master)},
      {"copies", part(ParameterPart::Copy)},
      {"masks", part(ParameterPart::Mask)},
      {"scores", part(ParameterPart::Score)},
      {"first moments", part(ParameterPart::FirstMoment)},
      {"second moments", part(ParameterPart::SecondMoment)},
      {"biases",
       [](const Model &model, const SwitchTensor &tensor, const RankBox &) {
         return model.rowElements(tensor.parameter) == 1;
       }},
      {"matrices",
       [](const Model &model, const SwitchTensor &tensor, const RankBox &) {
         return model.rowElements(tensor.parameter) > 1;
       }},
      {"frozen parameters",
       [](const Model &model, const SwitchTensor &tensor, const RankBox &) {
         return model.isFrozen(tensor.parameter);
       }},
      {"rows that other owners update",
       [](const Model &model, const SwitchTensor &tensor, const RankBox &box) {
         return box.box.size[0] < model.rows(tensor.parameter) &&
                box.box.begin[0] > 0;
       }},
      {"ranks but the first one",
       [](const Model &, const SwitchTensor &, const RankBox &box) {
         return box.rank > 0;
       }}};
}

TEST(ForgottenContentTest, EveryKindIsMissed) {
  for (const Forgotten &kind : allKinds()) {
    SCOPED_TRACE(kind.name);
    bool isFound = false, isThere = false;
    for (int seed = 0; seed < 12 && !isFound; ++seed) {
      const Model *model = nullptr;
      ReplacedGraphs::Options options;
      options.forgets = [&](const SwitchTensor &tensor, const RankBox &box) {
        const bool matches = kind.matches(*model, tensor, box);
        isThere |= matches;
        return matches;
      };
      MovedContent content(seed, options);
      model = &content.model();
      for (int move = 0; move < 4 && !isFound; ++move) {
        content.move();
        isFound = content.wrong() > 0;
      }
    }
    EXPECT_TRUE(isThere);
    EXPECT_TRUE(isFound);
  }
}

} // namespace
