//===- TrainFreezeTest.cpp - Layers that freeze while a run trains --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs with --freeze, each held against a run on one rank that trains everything.
// Between two steps that one puts back values and moments of what is frozen. That is a
// learning rate of zero for these parameters, and moments that rest.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

#include <sstream>

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainFreezeTest : public ReplacedTraining {
protected:
  using Numbers = std::vector<double>;

  static TinyOptions freezable(plan::ElementType compute = plan::F64) {
    TinyOptions options;
    options.vocabulary = 257;
    options.hidden = 12;
    options.compute = compute;
    options.untied = options.freezable = true;
    options.degrees = {{2, false}, {2, true}};
    return options;
  }

  /// Parameters that rest from one step to another.
  struct Rest {
    std::vector<std::string> parameters;
    int64_t from = 0, until = 1000;
  };
  static std::vector<std::string> ofBlock(int block) {
    const std::string name = "h." + std::to_string(block);
    return {name + ".w1", name + ".b1", name + ".w2"};
  }

  /// Puts back parameters and moments after each step of a run without --freeze.
  class Held {
  public:
    explicit Held(std::vector<Rest> rests) : rests_(std::move(rests)) {}

    void putBack(RankTeam &ranks, int64_t step) {
      for (const Rest &rest : rests_)
        for (const std::string &name : rest.parameters)
          for (ParameterPart part :
               {ParameterPart::Master, ParameterPart::FirstMoment,
                ParameterPart::SecondMoment}) {
            const int p = ranks.model().findParameter(name);
            ASSERT_GE(p, 0) << name;
            if (step == rest.from)
              kept_[{p, part}] = readBytes(ranks, p, part);
            if (step <= rest.from || step > rest.until)
              continue;
            ASSERT_TRUE(ranks
                            .writeRows(p, part, {0, ranks.model().rows(p)},
                                       kept_.at({p, part}).data())
                            .isOk());
          }
    }

  private:
    std::vector<Rest> rests_;
    std::map<std::pair<int, ParameterPart>, std::vector<uint8_t>> kept_;
  };

  static Status runHeld(const std::vector<std::string> &arguments,
                        std::vector<Rest> rests, Outcome &outcome) {
    const TinyProgram program(freezable());
    DYNA_ASSIGN_OR_RETURN(const Model model, openProgram(program.program()));
    TrainOptions options;
    DYNA_RETURN_IF_ERROR(parseCommandLine(arguments, options));
    DYNA_RETURN_IF_ERROR(resolveOptions(options));
    Session session;
    session.arenaBytes = 4 << 20;
    DYNA_RETURN_IF_ERROR(
        openSession(program.program(), model, options, true, nullptr, session));
    Trainer trainer(session, nullptr, nullptr);
    Held held(std::move(rests));
    trainer.setNext([&](int64_t step) -> std::optional<NextStrategy> {
      held.putBack(*session.ranks, step);
      return std::nullopt;
    });
    DYNA_RETURN_IF_ERROR(trainer.run());
    held.putBack(*session.ranks, kSteps);
    for (ParameterPart part :
         {ParameterPart::Master, ParameterPart::FirstMoment,
          ParameterPart::SecondMoment})
      outcome.state.push_back(readAll(*session.ranks, part));
    return trainer.endFiles();
  }

  static constexpr int64_t kSteps = 8;
  /// Norms are of what is trained, so they must not scale.
  std::vector<std::string> arguments(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"--steps=" + std::to_string(kSteps), "--weight-decay=0.2",
                 "--clip=0", "--metrics=" + path("metrics")});
    return training(std::move(more));
  }

  Outcome held(std::vector<Rest> rests) {
    Outcome outcome;
    fs::remove(path("metrics"));
    testing::internal::CaptureStderr();
    outcome.status = runHeld(arguments(), std::move(rests), outcome);
    outcome.said = testing::internal::GetCapturedStderr();
    outcome.losses = numbers("metrics", "loss");
    return outcome;
  }

  struct Case {
    const char *freeze;
    std::vector<Rest> rests;
  };
  static std::vector<Case> cases() {
    std::vector<std::string> front = ofBlock(0), behind = ofBlock(1);
    front.insert(front.begin(), "wte");
    std::vector<std::string> blocks = ofBlock(0);
    for (int block : {1, 2})
      for (const std::string &name : ofBlock(block))
        blocks.push_back(name);
    return {
        // A prefix, on its own stage where stages begin with two layers.
        {"embedding+h.0@2", {{front, 2}}},
        // Layers in the middle and at the end pass gradients.
        {"h.1+head@1", {{behind, 1}, {{"head.w", "head.b"}, 1}}},
        // The head alone learns.
        {"embedding-h.2@3", {{{"wte"}, 3}, {blocks, 3}}},
        // What was frozen trains again, in two events, with other layers frozen since.
        {"embedding+h.0@1; h.1@3; thaw=h.0@4; thaw=embedding@6",
         {{{"wte"}, 1, 6}, {ofBlock(0), 1, 4}, {behind, 3}}},
    };
  }
};

/// Every second strategy for each case, so that each one has two cases.
TEST_F(TrainFreezeTest, EqualsALearningRateOfZero) {
  const std::vector<std::vector<std::string>> strategies = {
      {"--strategy=dp=1", "--check-memory"},
      {"--strategy=dp=2"},
      {"--strategy=dp=2,zero=1"},
      {"--strategy=pp=2,layers=2+3", "--check-memory"},
      {"--strategy=pp=3,layers=2+1+2", "--split-backward"},
      {"--strategy=pp=2,layers=3+2", "--pipeline=gpipe", "--recompute=full"},
      {"--strategy=pp=2,layers=2+3", "--pipeline=1f1b", "--slices=uniform:2"},
      {"--strategy=tp=2"},
      {"--strategy=tp=2,sp=1"},
      {"--strategy=dp=2,pp=2,layers=2+3,zero=1"},
      {"--strategy=dp=2,tp=2,zero=1"}};
  size_t skipped = 0;
  for (const Case &one : cases()) {
    SCOPED_TRACE(one.freeze);
    const Outcome rested = held(one.rests);
    for (size_t i = skipped++ % 2; i < strategies.size(); i += 2) {
      std::vector<std::string> more = strategies[i];
      SCOPED_TRACE(more.front() + " " + more.back());
      more.push_back("--freeze=" + std::string(one.freeze));
      expectNear(train(freezable(), arguments(more)), rested);
    }
  }
}

/// Values that other graphs need come from home, and new graphs get parked moments.
TEST_F(TrainFreezeTest, OtherGraphsCarryWhatIsFrozen) {
  for (const Case &one : cases()) {
    SCOPED_TRACE(one.freeze);
    const Outcome rested = held(one.rests);
    for (std::vector<std::string> more : std::vector<std::vector<std::string>>{
             {"--merge-ranges=never",
              "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
              "--ranges=short: 0-40; long: 41-"},
             {"--strategy=dp=2,zero=1",
              "--repack=2@2; tp=2,pp=2,layers=3+2@3; dp=1@4; "
              "dp=2,zero=1@5; pp=2,layers=2+3@7"}}) {
      SCOPED_TRACE(more.back());
      more.push_back("--freeze=" + std::string(one.freeze));
      expectNear(train(freezable(), arguments(more)), rested);
    }
  }
}

/// A frozen layer is a change of the model: `--repack auto` answers again, and
/// `--rebalance` weighs other cuts. Both carry what is frozen.
TEST_F(TrainFreezeTest, RanksAndCutsFollow) {
  for (const Case &one : cases()) {
    SCOPED_TRACE(one.freeze);
    const Outcome rested = held(one.rests);
    for (const char *flag : {"--repack=auto", "--repack=auto=replicas",
                             "--rebalance=time,every=1,margin=0,least=0"}) {
      SCOPED_TRACE(flag);
      const Outcome moves = train(
          freezable(), arguments({"--strategy=pp=3", flag,
                                  "--freeze=" + std::string(one.freeze)}));
      expectNear(moves, rested);
    }
  }
  const Outcome packed =
      train(freezable(), arguments({"--strategy=pp=3", "--repack=auto@3",
                                    "--freeze=embedding+h.0@2"}));
  EXPECT_THAT(packed.said,
              HasSubstr("note: --repack auto: fewest: 1 rank instead of 3"));
}

/// `auto` without a step answers once at the start, and once after each event.
TEST_F(TrainFreezeTest, FrozenLayersAreAChangeForAutoRepack) {
  const Result result =
      run(training({"--steps=20", "--schedule-steps=20", "--warmup=2",
                    "--strategy=pp=3", "--repack=auto=replicas",
                    "--freeze=embedding+h.0@9"}),
          {"TINY_FREEZABLE=1"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string note = "note: --repack auto: replicas: ";
  int answers = 0;
  for (size_t at = 0; (at = result.err.find(note, at)) != std::string::npos;
       ++at)
    ++answers;
  EXPECT_EQ(answers, 2) << result.err;
}

/// In bf16 the master rests beside the copy that layers read. Where stages are cut changes
/// no bit, and moves all of it.
TEST_F(TrainFreezeTest, NarrowValuesKeepTheirMasters) {
  std::vector<Outcome> outcomes;
  for (const char *strategy : {"pp=2,layers=3+2", "pp=2,layers=2+3"})
    for (const char *repack : {"--repack=pp=2,layers=1+4@3", ""}) {
      auto more = arguments({"--pipeline=1f1b", "--check-memory",
                             "--freeze=embedding+h.0@2; h.2@4; thaw=h.0@6",
                             "--strategy=" + std::string(strategy)});
      if (*repack)
        more.push_back(repack);
      outcomes.push_back(train(freezable(plan::BF16), more));
      ASSERT_TRUE(outcomes.back().status.isOk())
          << outcomes.back().status.message();
    }
  for (const Outcome &outcome : outcomes)
    expectSame(outcome, outcomes.front());
}

TEST_F(TrainFreezeTest, ResumesBitwiseAndUnderAnotherStrategy) {
  const std::vector<std::string> environment = {"TINY_FREEZABLE=1"};
  const std::string freeze =
      "--freeze=embedding+h.0@1; h.1@3; thaw=h.0@4; thaw=embedding@6";
  const auto whole = arguments({"--save=" + path("whole"), "--save-every=1",
                                "--keep=20", "--schedule-steps=8", "--warmup=2",
                                "--strategy=dp=2,zero=1", freeze});
  Result result = run(whole, environment);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("freezing"));
  auto end = loadStep(path("whole/step-8"));
  ASSERT_TRUE(end.isOk());
  for (int step = 1; step < kSteps; ++step)
    for (const char *strategy : {"dp=2,zero=1", "pp=2,layers=2+3"}) {
      if (strategy[0] == 'p' && step % 2 == 0)
        continue;
      SCOPED_TRACE(std::to_string(step) + " " + strategy);
      const std::string folder = "step-" + std::to_string(step);
      fs::remove_all(folder_ / "part");
      fs::create_directories(folder_ / "part");
      fs::copy(folder_ / "whole" / folder, folder_ / "part" / folder,
               fs::copy_options::recursive);
      result = run({"--resume=" + path("part"), "--no-progress",
                    "--save-every=0", "--strategy=" + std::string(strategy)},
                   environment);
      ASSERT_EQ(result.code, 0) << result.err;
      if (strategy[0] == 'd') {
        expectSame("part/step-8", "whole/step-8");
        continue;
      }
      auto again = loadStep(path("part/step-8"));
      ASSERT_TRUE(again.isOk());
      for (const SafetensorsFile *file : {&end->model, &*end->optimizer})
        for (const TensorView &tensor : file->tensors()) {
          const SafetensorsFile &there =
              file == &end->model ? again->model : *again->optimizer;
          const TensorView *other = there.find(tensor.name);
          ASSERT_NE(other, nullptr) << tensor.name;
          const auto count = *tensorBytes(tensor.type, tensor.shape) / 8;
          const auto *a = static_cast<const double *>(tensor.data);
          const auto *b = static_cast<const double *>(other->data);
          expectNear(Numbers(a, a + count), Numbers(b, b + count));
        }
    }
}

/// Stages that were cut while layers are frozen have the same cut in a resumed run.
TEST_F(TrainFreezeTest, CutsOfFrozenModelsAreSaved) {
  const std::vector<std::string> environment = {"TINY_FREEZABLE=1"};
  const auto whole =
      arguments({"--save=" + path("whole"), "--save-every=1", "--keep=20",
                 "--schedule-steps=8", "--warmup=2", "--strategy=dp=2",
                 "--freeze=embedding-h.1@1", "--repack=pp=2@2"});
  Result result = run(whole, environment);
  ASSERT_EQ(result.code, 0) << result.err;
  fs::create_directories(folder_ / "part");
  fs::copy(folder_ / "whole" / "step-4", folder_ / "part" / "step-4",
           fs::copy_options::recursive);
  const std::string state = *readFile(path("part/step-4/state.json"));
  EXPECT_THAT(state, HasSubstr("pp=2,layers="));
  result = run({"--resume=" + path("part"), "--no-progress", "--save-every=0"},
               environment);
  ASSERT_EQ(result.code, 0) << result.err;
  expectSame("part/step-8", "whole/step-8");
}

/// The rule freezes the same layers everywhere, and again from a checkpoint.
TEST_F(TrainFreezeTest, GoesByGradientNorms) {
  const std::string freeze = "--freeze=auto=0.45@3; auto=0.45@5";
  auto frozenIn = [&](const std::string &file) {
    std::vector<std::string> records;
    std::istringstream lines(*readFile(path(file)));
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"freeze\"") != std::string::npos)
        records.push_back(line);
    return records;
  };
  const Outcome one = train(freezable(), arguments({freeze}));
  ASSERT_TRUE(one.status.isOk()) << one.status.message();
  const std::vector<std::string> records = frozenIn("metrics");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0], HasSubstr("\"step\": 3"));
  // Two of five layers at most, but the first one has the smallest gradient. Then one of
  // the four that are left.
  EXPECT_THAT(records[0], HasSubstr("\"embedding\""));
  EXPECT_THAT(records[1], HasSubstr("\"embedding+h.0\""));
  expectNear(one, held({{{"wte"}, 3}, {ofBlock(0), 5}}));
  const Outcome none = train(freezable(), arguments({"--freeze=auto=0.1@3"}));
  EXPECT_THAT(none.said, HasSubstr("no more layers are frozen after step 3"));
  for (const char *strategy :
       {"dp=2,zero=1", "pp=2,layers=2+3", "tp=2,sp=1", "dp=2,tp=2"}) {
    SCOPED_TRACE(strategy);
    expectNear(
        train(freezable(),
              arguments({freeze, "--strategy=" + std::string(strategy)})),
        one);
    EXPECT_EQ(frozenIn("metrics"), records);
  }
  // A save at the end of a run is before the event of the next step.
  const std::vector<std::string> environment = {"TINY_FREEZABLE=1"};
  for (const char *steps : {"3", "8"}) {
    const Result result =
        run(training({"--steps=" + std::string(steps), "--schedule-steps=8",
                      "--save=" + path(steps), "--strategy=dp=2", freeze}),
            environment);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  const Result result = run({"--resume=" + path("3"), "--no-progress",
                             "--steps=8", "--metrics=" + path("again")},
                            environment);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(frozenIn("again").size(), 2u);
  expectSame("3/step-8", "8/step-8");
}

/// Products that frozen layers do not run are in neither sum.
TEST_F(TrainFreezeTest, FlopsAreThoseOfTheFormulas) {
  std::vector<double> flops;
  for (const char *freeze :
       {"h.1@7", "h.1@0", "embedding+h.0@0", "embedding-h.2@0", "head@0"}) {
    SCOPED_TRACE(freeze);
    const Outcome outcome =
        train(freezable(), arguments({"--strategy=pp=2,layers=2+3",
                                      "--counts=" + path("counts"),
                                      "--freeze=" + std::string(freeze)}));
    ASSERT_TRUE(outcome.status.isOk()) << outcome.status.message();
    auto text = readFile(path("counts"));
    ASSERT_TRUE(text.isOk());
    auto counts = parseJson(*text);
    ASSERT_TRUE(counts.isOk());
    const JsonValue *all = counts->find("ranks");
    ASSERT_NE(all, nullptr);
    double sum = 0;
    for (const JsonValue &rank : all->items) {
      EXPECT_EQ(rank.find("matrix_flops")->number,
                rank.find("formula_flops")->number);
      sum += rank.find("matrix_flops")->number;
    }
    flops.push_back(sum);
  }
  for (size_t i = 1; i < flops.size(); ++i)
    EXPECT_LT(flops[i], flops[0]);
  EXPECT_LT(flops[2], flops[1]); // alone is less than passing
}

TEST_F(TrainFreezeTest, BadInputIsRefusedBeforeTraining) {
  const std::vector<std::string> environment = {"TINY_FREEZABLE=1"};
  struct Bad {
    std::vector<std::string> arguments;
    const char *said;
  };
  for (const Bad &bad : std::vector<Bad>{
           {{"--freeze=embedding"}, "expects entries LAYERS@STEP"},
           {{"--freeze=h.7@2"},
            "'h.7' is no layer and no range of layers: "
            "the layers are embedding-head"},
           {{"--freeze=h.1-h.0@2"}, "comes before the first one"},
           {{"--freeze=h.0@4; h.1@2"}, "does not come after 'h.0@4'"},
           {{"--freeze=h.0@4; h.1@4"}, "does not come after 'h.0@4'"},
           {{"--freeze=h.0@-1"}, "--freeze"},
           {{"--freeze=embedding-head@2"}, "nothing is left to train"},
           {{"--freeze=embedding-h.2@2; head@4"},
            "--freeze head@4: freezes all"},
           {{"--freeze=thaw=h.0@2"}, "layer 'h.0' is not frozen then"},
           {{"--freeze=h.0@2", "--prune=final=0.5,from=3"}, "--prune"},
           {{"--freeze=h.0@2", "--evaluate"}, "--evaluate"},
           {{"--freeze=auto=1.5@2"}, "between 0 and 1, but got '1.5'"},
           {{"--freeze=auto=0.2@0"}, "--freeze"},
           {{"--freeze=auto=0.2@2; h.9@3"}, "'h.9' is no layer"},
           {{"--freeze=auto=0.2@2", "--no-gradient-norm", "--clip=0"},
            "leave out --no-gradient-norm"},
       }) {
    SCOPED_TRACE(bad.arguments.front());
    const Result result = run(arguments(bad.arguments), environment);
    EXPECT_NE(result.code, 0);
    EXPECT_THAT(result.err, HasSubstr(bad.said));
  }
  // Tied tables, and a binary without the functions.
  Result result = run(arguments({"--freeze=embedding@2"}));
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("freezes layer 'embedding' and not 'head', but both "
                        "use 'wte'"));
  result = run(arguments({"--freeze=h.0@2"}));
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("dynac --freezable"));
  // In the past of a resumed run.
  result = run(arguments({"--save=" + path("saved")}), environment);
  ASSERT_EQ(result.code, 0) << result.err;
  result = run({"--resume=" + path("saved"), "--steps=12", "--no-progress",
                "--freeze=h.0@5"},
               environment);
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("--freeze h.0@5 is in the past: the run "
                                    "has done 8 steps"));
}

} // namespace
