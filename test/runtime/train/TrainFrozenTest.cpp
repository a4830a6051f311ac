//===- TrainFrozenTest.cpp - Runs of models with frozen parameters --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs, each held against a run on one rank that trains everything, and puts what
// is frozen back between two steps. That is a learning rate of zero for these alone.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

#include "runtime/executor/open/OpenProgram.h"
#include "runtime/train/loop/PruneEvents.h"
#include "runtime/train/loop/Trainer.h"
#include "runtime/train/open/OpenSession.h"
#include "test/runtime/executor/TinyModel.h"

#include <map>

using namespace dyna;
using namespace dyna::test;

namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class TrainFrozenTest : public TrainProgram {
protected:
  /// What a run leaves, by parameter. Frozen ones have no moments.
  struct Left {
    Numbers losses, norms;
    std::map<std::string, Numbers> masters, moments, squares;
    std::map<std::string, std::vector<uint8_t>> bytes; ///< of masters
    std::map<std::string, int64_t> copies;             ///< bytes
  };

  static TinyOptions tiny(Names frozen, plan::ElementType compute = plan::F64) {
    TinyOptions options;
    options.vocabulary = 257;
    options.hidden = 12;
    options.compute = compute;
    options.degrees = {{2, false}, {2, true}, {4, false}};
    options.frozen = std::move(frozen);
    return options;
  }

  /// The parameters of every block that begin with these names, and others as they are.
  static Names inBlocks(const Names &slots, Names others = {}) {
    for (int block = 0; block < 3; ++block)
      for (const std::string &slot : slots)
        others.push_back("h." + std::to_string(block) + "." + slot);
    return others;
  }

  /// As numbers; none of bf16.
  static Numbers numbersOf(const std::vector<uint8_t> &bytes, bool isWide) {
    Numbers values;
    for (size_t at = 0; at < bytes.size(); at += isWide ? 8 : 4) {
      double wide = 0;
      float narrow = 0;
      std::memcpy(isWide ? static_cast<void *>(&wide) : &narrow,
                  bytes.data() + at, isWide ? 8 : 4);
      values.push_back(isWide ? wide : narrow);
    }
    return values;
  }

  static void readAll(RankTeam &ranks, Left &left) {
    const Model &model = ranks.model();
    const bool isWide = model.masterType() == plan::F64;
    for (int p = 0; p < model.parameters(); ++p) {
      const std::string &name = model.parameter(p).name();
      left.bytes[name] = readBytes(ranks, p, ParameterPart::Master);
      if (model.masterType(p) != plan::BF16)
        left.masters[name] = numbersOf(left.bytes[name], isWide);
      left.copies[name] = ranks.partBytes(p, ParameterPart::Copy);
      left.moments[name] =
          numbersOf(readBytes(ranks, p, ParameterPart::FirstMoment), isWide);
      left.squares[name] =
          numbersOf(readBytes(ranks, p, ParameterPart::SecondMoment), isWide);
    }
  }

  /// The values that these parameters have before the first step are theirs before
  /// every step.
  static void putBack(RankTeam &ranks, const Names &held,
                      std::map<int, std::vector<uint8_t>> &begun) {
    for (int p = 0; p < ranks.model().parameters(); ++p) {
      const std::string &name = ranks.model().parameter(p).name();
      if (std::count(held.begin(), held.end(), name) == 0)
        continue;
      if (begun.count(p) == 0)
        begun[p] = readBytes(ranks, p, ParameterPart::Master);
      EXPECT_TRUE(ranks
                      .writeRows(p, ParameterPart::Master,
                                 {0, ranks.model().rows(p)}, begun[p].data())
                      .isOk());
    }
  }

  static Status go(const TinyOptions &tiny,
                   const std::vector<std::string> &arguments, const Names &held,
                   Left &left) {
    const TinyProgram program(tiny);
    DYNA_ASSIGN_OR_RETURN(Model model, openProgram(program.program()));
    TrainOptions options;
    DYNA_RETURN_IF_ERROR(parseCommandLine(arguments, options));
    DYNA_RETURN_IF_ERROR(resolveOptions(options));
    DYNA_RETURN_IF_ERROR(setMasks(model, options));
    Session session;
    session.arenaBytes = 4 << 20;
    DYNA_RETURN_IF_ERROR(openSession(program.program(), model, options,
                                     /*training=*/true, nullptr, session));
    Trainer trainer(session, nullptr, nullptr);
    std::map<int, std::vector<uint8_t>> begun;
    if (!held.empty())
      trainer.setNext([&](int64_t) -> std::optional<NextStrategy> {
        putBack(*session.ranks, held, begun);
        return std::nullopt;
      });
    DYNA_RETURN_IF_ERROR(trainer.run());
    if (!held.empty())
      putBack(*session.ranks, held, begun);
    readAll(*session.ranks, left);
    return trainer.endFiles();
  }

  Left train(const TinyOptions &tiny, std::vector<std::string> more,
             const Names &held = {}) {
    fs::remove(path("metrics"));
    more.insert(more.begin(), {"--steps=6", "--weight-decay=0.2",
                               "--metrics=" + path("metrics")});
    Left left;
    testing::internal::CaptureStderr();
    const Status status = go(tiny, training(std::move(more)), held, left);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(status.isOk()) << status.message() << said;
    left.losses = numbers("metrics", "loss");
    left.norms = numbers("metrics", "gradient_norm");
    return left;
  }

  using TrainProgram::expectNear;
  /// `frozen` have no moments in `a`.
  static void expectNear(const Left &a, const Left &b, const Names &frozen) {
    ASSERT_EQ(a.losses.size(), 6u);
    expectNear(a.losses, b.losses);
    ASSERT_EQ(a.masters.size(), b.masters.size());
    for (const auto &[name, values] : a.masters) {
      SCOPED_TRACE(name);
      if (std::count(frozen.begin(), frozen.end(), name) > 0) {
        EXPECT_EQ(a.bytes.at(name) == b.bytes.at(name), true);
        EXPECT_TRUE(a.moments.at(name).empty() && a.squares.at(name).empty());
        continue;
      }
      expectNear(values, b.masters.at(name));
      expectNear(a.moments.at(name), b.moments.at(name));
      expectNear(a.squares.at(name), b.squares.at(name));
    }
  }

  static std::vector<Names> choices() {
    return {{"wte"},                                   // tied: both its layers
            inBlocks({"w1", "b1"}, {"wte", "head.b"}), // w2 alone trains
            inBlocks({"w1", "b1", "w2"})};             // no block trains
  }
};

TEST_F(TrainFrozenTest, EqualsALearningRateOfZero) {
  for (const Names &frozen : choices()) {
    SCOPED_TRACE(frozen.back());
    // The norm is of what is trained, so that it must not scale.
    const Left held = train(tiny({}), {"--clip=0"}, frozen);
    for (const char *strategy :
         {"dp=1", "dp=2", "dp=2,zero=1", "pp=2,layers=3+2", "tp=2", "tp=2,sp=1",
          "dp=2,tp=2,zero=1", "dp=2,pp=2,layers=2+3,zero=1"}) {
      SCOPED_TRACE(strategy);
      const Left left = train(
          tiny(frozen), {"--clip=0", "--strategy=" + std::string(strategy)});
      expectNear(left, held, frozen);
    }
  }
}

/// Values of other graphs arrive by switches within a step, and between steps.
TEST_F(TrainFrozenTest, SwitchesAndNewGraphsCarryWhatIsFrozen) {
  for (const Names &frozen : choices()) {
    SCOPED_TRACE(frozen.back());
    const Left held = train(tiny({}), {"--clip=0"}, frozen);
    for (const std::vector<std::string> &more :
         {std::vector<std::string>{
              "--clip=0", "--merge-ranges=never",
              "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
              "--ranges=short: 0-40; long: 41-"},
          {"--clip=0", "--strategy=dp=2,zero=1",
           "--repack=2@2; tp=2,pp=2,layers=3+2@3; dp=1@4; dp=2,zero=1@5"}}) {
      SCOPED_TRACE(more.back());
      expectNear(train(tiny(frozen), more), held, frozen);
    }
  }
}

/// Without a memory of gradients the first moment is the last gradient.
TEST_F(TrainFrozenTest, NormsAreThoseOfWhatIsTrained) {
  for (const Names &frozen : choices())
    for (const char *strategy : {"dp=1", "dp=2,zero=1", "tp=2"}) {
      const Left left =
          train(tiny(frozen), {"--clip=0", "--beta1=0",
                               "--strategy=" + std::string(strategy)});
      double sum = 0;
      for (const auto &[name, gradients] : left.moments)
        for (double gradient : gradients)
          sum += gradient * gradient;
      EXPECT_GT(sum, 0);
      EXPECT_NEAR(left.norms.back(), std::sqrt(sum), 1e-12);
    }
}

/// In bf16 the value that layers read is all that there is. With clipping, whose norm
/// ranks agree on.
TEST_F(TrainFrozenTest, NarrowValuesHaveNoMasterBeside) {
  const Names frozen = inBlocks({"w1", "w2"}, {"wte"});
  const Left begun = train(tiny(frozen, plan::BF16), {"--lr=0"});
  for (const char *strategy : {"dp=2,zero=1", "tp=2"}) {
    SCOPED_TRACE(strategy);
    const Left left =
        train(tiny(frozen, plan::BF16),
              {"--check-memory", "--strategy=" + std::string(strategy)});
    for (const auto &[name, bytes] : left.bytes) {
      const bool isFrozen = std::count(frozen.begin(), frozen.end(), name) > 0;
      EXPECT_EQ(bytes == begun.bytes.at(name), isFrozen) << name;
      EXPECT_EQ(left.copies.at(name) == 0, isFrozen) << name;
      EXPECT_EQ(left.masters.count(name) == 0, isFrozen) << name;
    }
  }
}

TEST_F(TrainFrozenTest, ResumesBitwiseAndUnderAnotherStrategy) {
  const std::vector<std::string> environment = {
      "TINY_FROZEN=wte,h.0.w1,h.1.w1,h.2.w1"};
  const std::vector<std::string> arguments =
      training({"--schedule-steps=6", "--warmup=2", "--save-every=1",
                "--keep=20", "--strategy=dp=2,zero=1"});
  auto with = [&](std::vector<std::string> extra) {
    extra.insert(extra.begin(), arguments.begin(), arguments.end());
    return extra;
  };
  Result result =
      run(with({"--steps=6", "--save=" + path("whole")}), environment);
  ASSERT_EQ(result.code, 0) << result.err;
  auto end = loadStep(path("whole/step-6"));
  ASSERT_TRUE(end.isOk());
  EXPECT_NE(end->optimizer->find("h.0.b1.m"), nullptr);
  EXPECT_EQ(end->optimizer->find("h.0.w1.m"), nullptr);
  EXPECT_EQ(end->optimizer->find("wte.v"), nullptr);
  for (const char *strategy : {"dp=2,zero=1", "pp=2,layers=3+2"}) {
    SCOPED_TRACE(strategy);
    fs::remove_all(folder_ / "part");
    fs::create_directories(folder_ / "part");
    fs::copy(folder_ / "whole" / "step-3", folder_ / "part" / "step-3",
             fs::copy_options::recursive);
    result = run({"--resume=" + path("part"), "--no-progress", "--steps=6",
                  "--save-every=0", "--strategy=" + std::string(strategy)},
                 environment);
    ASSERT_EQ(result.code, 0) << result.err;
    if (strategy[0] == 'd') {
      expectSame("part/step-6", "whole/step-6");
      continue;
    }
    auto again = loadStep(path("part/step-6"));
    ASSERT_TRUE(again.isOk());
    EXPECT_EQ(again->optimizer->tensors().size(),
              end->optimizer->tensors().size());
    for (const TensorView &tensor : end->model.tensors()) {
      const TensorView *other = again->model.find(tensor.name);
      ASSERT_NE(other, nullptr);
      const size_t bytes = *tensorBytes(tensor.type, tensor.shape);
      auto values = [&](const void *data) {
        const auto *begin = static_cast<const uint8_t *>(data);
        return numbersOf({begin, begin + bytes}, true);
      };
      expectNear(values(tensor.data), values(other->data));
    }
  }
  // A run of another set of frozen parameters is another model.
  result = run({"--resume=" + path("whole"), "--no-progress", "--steps=7"});
  EXPECT_NE(result.code, 0);
}

TEST_F(TrainFrozenTest, FrozenWeightsAreNotPruned) {
  const std::vector<std::string> environment = {
      "TINY_FROZEN=h.0.w1,h.1.w1,h.2.w1"};
  const Result result =
      run(training({"--steps=2", "--prune=final=0.5,from=1,params=h.0.w1"}),
          environment);
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("'params=h.0.w1': it is frozen, and only trained "
                        "weights are pruned"));
}

} // namespace
