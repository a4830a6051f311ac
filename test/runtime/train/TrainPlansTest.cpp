//===- TrainPlansTest.cpp - Plans written, edited and run again -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/base/TraceNesting.h"
#include "test/runtime/executor/TinyRun.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

using namespace dyna;
using namespace dyna::test;
using plan::Instruction;

namespace {

class TrainPlansTest : public TrainProgram {
protected:
  /// Two stages with several micro-batches.
  std::vector<std::string> piped(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "--strategy=pp=2,layers=2+3", "--recompute=selective",
        "--tokens-per-batch=400", "--tokens-per-micro-batch=200"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return training(arguments);
  }

  plan::Plan readStep(const std::string &folder, int step) const {
    auto plan = readPlan(*readFile(planPath(folder, step)));
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    return *plan;
  }
  void writeStep(const std::string &folder, int step,
                 const plan::Plan &plan) const {
    fs::create_directories(path(folder));
    std::ofstream(planPath(folder, step)) << writePlan(plan);
  }
  std::string planPath(const std::string &folder, int step) const {
    return path(folder) + "/step-" + std::to_string(step) + ".plan";
  }

  std::vector<int64_t> lengthsOf(const plan::Plan &plan) const {
    std::map<int64_t, int64_t> lengths;
    for (const plan::MicroBatch &microBatch : plan.microBatches)
      for (const plan::Segment &segment : microBatch.segments)
        lengths[segment.sample] = segment.length;
    std::vector<int64_t> result;
    for (auto [sample, length] : lengths)
      result.push_back(length);
    return result;
  }

  /// But for notes about the flags.
  static int64_t linesOf(const std::string &text) {
    std::istringstream stream(text);
    int64_t count = 0;
    for (std::string line; std::getline(stream, line);)
      count += line.rfind("note: ", 0) != 0;
    return count;
  }

  /// What each rank did in the first traced step, as the trace tells it.
  std::vector<std::vector<std::string>> traced(const std::string &file) const {
    const std::string text = *readFile(path(file));
    EXPECT_EQ(droppedSlices(text), "");
    auto json = parseJson(text);
    EXPECT_TRUE(json.isOk());
    std::vector<std::vector<std::string>> ranks(2);
    for (const JsonValue &event : json->find("traceEvents")->items) {
      std::string name = event.find("name")->text;
      if (event.find("ph")->text != "X" || name == "CAST_PARAMS" ||
          event.find("cat")->text == "exchange")
        continue;
      const JsonValue *arguments = event.find("args");
      if (!arguments) // an arrow
        continue;
      if (auto layer = arguments->findInteger("layer"))
        name += formatText(" layer %d", *layer);
      if (auto microBatch = arguments->findInteger("micro_batch"))
        name += formatText(" micro-batch %d", *microBatch);
      ranks.at(*event.findInteger("pid")).push_back(name);
    }
    return ranks;
  }

  static std::vector<std::vector<std::string>> planned(const plan::Plan &plan) {
    std::vector<std::vector<std::string>> ranks;
    for (const plan::RankProgram &program : plan.ranks) {
      ranks.emplace_back();
      for (const Instruction &i : program.instructions)
        ranks.back().push_back(describeInstruction(i));
    }
    return ranks;
  }

  /// Steps of two graphs.
  std::vector<std::string> switched(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {
        "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
        "--ranges=short: 0-40; long: 41-", "--merge-ranges=never",
        "--tokens-per-batch=400", "--tokens-per-micro-batch=100"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return training(arguments);
  }

  static TinyOptions likeProgram() {
    TinyOptions options;
    options.vocabulary = 257;
    return options;
  }
  TinyProgram program_{likeProgram()};
  Model model_ = *openProgram(program_.program());
  ExecutableGraph graph_ =
      *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=2+3"));
};

// Plans are the same bytes with any number of threads, and run again they make
// the same steps.
TEST_F(TrainPlansTest, DumpedPlansRunAgain) {
  for (const char *threads : {"1", "2", "4"}) {
    Result result = run(piped({"--steps=5", "--plan-ahead=4",
                               "--save=" + path(std::string("s") + threads),
                               std::string("--plan-threads=") + threads,
                               "--dump-plans=" + path(threads)}));
    ASSERT_EQ(result.code, 0) << result.err;
    for (int step = 1; step <= 5; ++step)
      EXPECT_TRUE(*readFile(planPath(threads, step)) ==
                  *readFile(planPath("1", step)))
          << step;
  }
  Result result =
      run(piped({"--steps=5", "--plans=" + path("4"), "--save=" + path("s"),
                 "--dump-plans=" + path("again")}));
  ASSERT_EQ(result.code, 0) << result.err;
  expectSame("s1/step-5", "s/step-5");
  EXPECT_TRUE(*readFile(planPath("again", 5)) == *readFile(planPath("1", 5)));
}

// What is padded has more tokens than its samples.
TEST_F(TrainPlansTest, PaddedPlansRunAgain) {
  const std::string padded = "--micro-batches=padded";
  Result result = run(piped({"--steps=3", padded, "--save=" + path("s0"),
                             "--dump-plans=" + path("plans")}));
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string plans = "--plans=" + path("plans");
  result = run(piped({"--steps=3", padded, plans, "--save=" + path("s1")}));
  ASSERT_EQ(result.code, 0) << result.err;
  expectSame("s0/step-3", "s1/step-3");
  EXPECT_THAT(result.out, HasSubstr("padding  "));
  // Padding is the plan's own business.
  result = run(piped({"--steps=3", plans, "--save=" + path("s2")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("padding avoided")));
  expectSame("s0/step-3", "s2/step-3");
  // Of other samples, some of which have more tokens.
  result = run(piped({"--steps=3", plans, "--seed=5"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("a plan for "));
}

// Another hand may pad otherwise: here by less, for which there is room.
TEST_F(TrainPlansTest, APlanIsPaddedByHand) {
  ASSERT_EQ(run(piped({"--steps=1", "--micro-batches=padded",
                       "--dump-plans=" + path("plans")}))
                .code,
            0);
  plan::Plan plan = readStep("plans", 1);
  ASSERT_EQ(run(piped({"--steps=1", "--metrics=" + path("plain.jsonl"),
                       "--dump-plans=" + path("plain")}))
                .code,
            0);
  const std::vector<int64_t> lengths = lengthsOf(readStep("plain", 1));
  int64_t changed = 0;
  for (plan::MicroBatch &microBatch : plan.microBatches)
    for (plan::Segment &segment : microBatch.segments) {
      if (segment.length <= lengths[segment.sample] + 1)
        continue;
      --segment.length;
      ++changed;
    }
  ASSERT_GT(changed, 0);
  writeStep("plans", 1, plan);
  Result result = run(piped({"--steps=1", "--plans=" + path("plans"),
                             "--metrics=" + path("m.jsonl")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("padding  "));
  const double loss = numbers("plain.jsonl", "loss").front();
  EXPECT_NEAR(numbers("m.jsonl", "loss").front(), loss, 1e-10 * loss);
}

// One step that pads beside others: what none of them computed is no padding.
TEST_F(TrainPlansTest, PaddingIsThatOfTheStepsThatPad) {
  ASSERT_EQ(run(piped({"--steps=1", "--micro-batches=padded",
                       "--dump-plans=" + path("padded")}))
                .code,
            0);
  ASSERT_EQ(run(piped({"--steps=4", "--dump-plans=" + path("plans")})).code, 0);
  writeStep("plans", 1, readStep("padded", 1));
  Result result = run(piped({"--steps=4", "--plans=" + path("plans"),
                             "--metrics=" + path("m.jsonl")}));
  ASSERT_EQ(result.code, 0) << result.err;
  double padding = 0, tokens = 0;
  for (double one : numbers("m.jsonl", "padding"))
    padding += one;
  for (double one : numbers("m.jsonl", "tokens"))
    tokens += one;
  ASSERT_GT(padding, 0);
  EXPECT_THAT(result.out, HasSubstr(formatText(
                              "padding                %.1f %% of the tokens",
                              100 * padding / (padding + tokens))));
}

// Plans of a run with more steps would be taken for this one's.
TEST_F(TrainPlansTest, PlansBehindTheLastStepStandInTheWay) {
  auto dump = [&](const char *steps) {
    return run(piped(
        {std::string("--steps=") + steps, "--dump-plans=" + path("plans")}));
  };
  ASSERT_EQ(dump("4").code, 0);
  EXPECT_EQ(dump("4").code, 0);
  Result result = dump("2");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(linesOf(result.err), 1);
  EXPECT_THAT(result.err,
              HasSubstr("--dump-plans: " + planPath("plans", 3) +
                        " is of a step behind the last of this run, 2, and "
                        "would stay among its plans, as would 1 more: remove "
                        "them, or name another folder"));
  fs::remove(planPath("plans", 4));
  EXPECT_THAT(dump("2").err, HasSubstr("its plans: remove it, or"));
  fs::remove(planPath("plans", 3));
  // Whatever else lies there is nobody's plan.
  for (const char *name : {"step-3.plans", "step-x.plan", "step-.plan",
                           "step-99999999999999999999.plan", "a-step-7.plan"})
    std::ofstream(path("plans") + "/" + name) << "no plan";
  EXPECT_EQ(dump("2").code, 0);
}

// So are those of steps of several graphs, made in turn or side by side.
TEST_F(TrainPlansTest, StepsOfSeveralGraphsArePlannedAhead) {
  using Times = std::pair<const char *, const char *>;
  for (auto [ahead, threads] : {Times("0", "1"), {"4", "1"}, {"4", "4"}}) {
    const std::string name = std::string(ahead) + "-" + threads;
    Result result = run(switched({"--steps=5", "--save=" + path("s" + name),
                                  std::string("--plan-ahead=") + ahead,
                                  std::string("--plan-threads=") + threads,
                                  "--dump-plans=" + path(name),
                                  "--metrics=" + path(name + ".jsonl")}));
    ASSERT_EQ(result.code, 0) << result.err;
    for (int step = 1; step <= 5; ++step) {
      const std::string bytes = *readFile(planPath(name, step));
      EXPECT_TRUE(bytes == *readFile(planPath("0-1", step))) << step;
      auto plans = readStepPlan(bytes);
      ASSERT_TRUE(plans.isOk()) << plans.status().message();
      EXPECT_EQ(plans->phaseCount(), 2);
    }
    expectSame("s0-1/step-5", "s" + name + "/step-5");
    EXPECT_EQ(numbers(name + ".jsonl", "step"),
              (std::vector<double>{1, 2, 3, 4, 5}));
  }
}

// One mini-batch, several plans: those of other schedules, and some whose
// instructions were moved about by hand.
TEST_F(TrainPlansTest, TracesHaveTheOrderOfThePlan) {
  std::vector<std::string> folders;
  for (const char *pipeline : {"1f1b", "gpipe", "adaptive"}) {
    folders.push_back(pipeline);
    ASSERT_EQ(run(piped({"--steps=1", std::string("--pipeline=") + pipeline,
                         "--dump-plans=" + path(pipeline)}))
                  .code,
              0);
  }
  plan::Plan first = readStep("1f1b", 1);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    plan::Plan plan = first;
    int moved = 0;
    for (uint64_t i = 0; i < 400; ++i) {
      plan::Plan changed = plan;
      auto &list = changed.ranks[i % 2].instructions;
      size_t at = dyna_mix64(seed * 1000 + i) % (list.size() - 1);
      std::swap(list[at], list[at + 1]);
      if (!verifyPlan(graph_, changed, lengthsOf(plan), {}).isOk())
        continue;
      plan = changed;
      ++moved;
    }
    EXPECT_GT(moved, 10);
    folders.push_back("moved" + std::to_string(seed));
    writeStep(folders.back(), 1, plan);
  }
  std::set<std::vector<std::vector<std::string>>> different;
  for (const std::string &folder : folders) {
    SCOPED_TRACE(folder);
    Result result = run(piped({"--steps=1", "--pipeline=gpipe", // keeps most
                               "--plans=" + path(folder),
                               "--trace=" + path(folder + ".json")}));
    ASSERT_EQ(result.code, 0) << result.err;
    auto order = traced(folder + ".json");
    EXPECT_TRUE(order == planned(readStep(folder, 1)));
    different.insert(order);
  }
  EXPECT_EQ(different.size(), folders.size());
}

/// The instructions of these kinds are gone, on all ranks.
plan::Plan without(plan::Plan plan, std::set<Instruction::Op> kinds) {
  for (plan::RankProgram &program : plan.ranks) {
    auto &list = program.instructions;
    list.erase(std::remove_if(
                   list.begin(), list.end(),
                   [&](const Instruction &i) { return kinds.count(i.op) > 0; }),
               list.end());
  }
  return plan;
}

// Nothing else guards against gradients that are not finite.
TEST_F(TrainPlansTest, PlansWithoutNormsAreForRunsThatWantNone) {
  ASSERT_EQ(run(piped({"--steps=3", "--save=" + path("s"), "--clip=0",
                       "--dump-plans=" + path("plans")}))
                .code,
            0);
  const std::set<Instruction::Op> norms = {Instruction::GRAD_NORM,
                                           Instruction::COMBINE_NORM};
  writeStep("plans", 2, without(readStep("plans", 2), norms));
  const std::string plans = "--plans=" + path("plans");
  for (const char *clip : {"--clip=0", "--clip=1"}) {
    Result result = run(piped({"--steps=3", plans, clip}));
    EXPECT_EQ(result.code, 2) << clip;
    EXPECT_THAT(result.err,
                HasSubstr("step-2.plan: plan: rank 0: instruction"));
    EXPECT_THAT(result.err, HasSubstr("updated without the gradient norm of "
                                      "layer 0"));
  }
  Result result =
      run(piped({"--steps=3", plans, "--clip=0", "--no-gradient-norm",
                 "--save=" + path("t"), "--metrics=" + path("m.jsonl")}));
  ASSERT_EQ(result.code, 0) << result.err;
  expectSame("s/step-3", "t/step-3");
  // Two of three plans have norms; the metrics say which one has none.
  std::istringstream lines(*readFile(path("m.jsonl")));
  int number = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"step\"") != std::string::npos)
      EXPECT_EQ(line.find("\"gradient_norm\": null, ") != std::string::npos &&
                    line.find("\"has_gradient_norm\": false") !=
                        std::string::npos,
                ++number == 2)
          << line;
  EXPECT_EQ(number, 3);
}

// Plans that are made here have none then, and train alike.
TEST_F(TrainPlansTest, RunsWithoutNormsTrainAlike) {
  for (bool isSwitched : {false, true}) {
    auto flags = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--steps=3", "--clip=0"});
      return isSwitched ? switched(more) : piped(more);
    };
    const std::string name = isSwitched ? "switched" : "piped";
    ASSERT_EQ(run(flags({"--save=" + path(name)})).code, 0);
    Result result =
        run(flags({"--no-gradient-norm", "--save=" + path(name + "2"),
                   "--dump-plans=" + path(name + "-plans"),
                   "--metrics=" + path(name + ".jsonl")}));
    ASSERT_EQ(result.code, 0) << result.err;
    expectSame(name + "/step-3", name + "2/step-3");
    EXPECT_THAT(*readFile(path(name + ".jsonl")),
                HasSubstr("\"has_gradient_norm\": false"));
    auto plans = readStepPlan(*readFile(planPath(name + "-plans", 1)));
    for (const plan::Phase &phase : plans->phases)
      for (const plan::RankProgram &program : phase.plan.ranks)
        for (const Instruction &i : program.instructions)
          EXPECT_NE(i.op, Instruction::GRAD_NORM);
  }
  Result result = run(piped({"--steps=1", "--no-gradient-norm"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--no-gradient-norm leaves nothing to clip "
                                    "by, but --clip is 1: give --clip 0"));
}

/// One edit, as a hand might slip.
void edit(plan::Plan &plan, uint64_t seed) {
  uint64_t counter = seed * 100;
  auto draw = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  plan::RankProgram &program = plan.ranks[draw(plan.ranks.size())];
  auto &list = program.instructions;
  size_t at = draw(list.size() - 1);
  switch (draw(8)) {
  case 0:
    plan.manifestHash ^= 1;
    break;
  case 1:
    program.dynamicBytes += INT64_C(1) << 40;
    break;
  case 2: {
    auto &segments = plan.microBatches[0].segments;
    segments[0].sample = plan.microBatches[1].segments[0].sample;
    break;
  }
  case 3:
    list.erase(list.begin() + static_cast<ptrdiff_t>(at));
    break;
  case 4: {
    // To where another block lies, or to nowhere.
    auto isTaking = [](const Instruction &i) {
      return i.places[0] != plan::noPlace;
    };
    auto one = std::find_if(list.begin() + static_cast<ptrdiff_t>(at),
                            list.end(), isTaking);
    if (one != list.end())
      one->places[0] = draw(2) ? plan::noPlace : 0;
    break;
  }
  default: {
    size_t to = std::min(list.size() - 1, at + 1 + draw(6));
    std::swap(list[at], list[to]);
  }
  }
}

// Before the step that the plan is for, with the rule, on one line; the steps
// before are trained.
TEST_F(TrainPlansTest, IllegalEditsAreRefusedWithTheirRule) {
  ASSERT_EQ(run(piped({"--steps=2", "--pipeline=gpipe",
                       "--dump-plans=" + path("good")}))
                .code,
            0);
  plan::Plan good = readStep("good", 2);
  std::map<std::string, std::pair<plan::Plan, std::string>> byRule;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    plan::Plan bad = good;
    edit(bad, seed);
    VerifyOptions options;
    options.limits.assign(graph_.ranks(), INT64_C(1) << 38);
    Status status = verifyPlan(graph_, bad, lengthsOf(good), options);
    if (status.isOk())
      continue;
    std::string why = status.message();
    size_t rule = why.rfind(" (P");
    ASSERT_NE(rule, std::string::npos) << why;
    byRule.emplace(why.substr(rule), std::pair(bad, why));
  }
  // Not P9: a plan that trains has a message for every micro-batch at each end,
  // or breaks P3 there first. Others are in verify-plan-rules.test.
  for (int rule : {1, 2, 3, 4, 5, 6, 7, 8, 10, 11})
    EXPECT_EQ(byRule.count(formatText(" (P%d)", rule)), 1u) << rule;
  for (const auto &[rule, example] : byRule) {
    SCOPED_TRACE(example.second);
    writeStep("bad", 1, readStep("good", 1));
    writeStep("bad", 2, example.first);
    Result result =
        run(piped({"--steps=2", "--pipeline=gpipe", "--plans=" + path("bad"),
                   "--metrics=" + path("m.jsonl")}));
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("bad/step-2.plan: plan: "));
    EXPECT_THAT(result.err, HasSubstr(rule == " (P8)" ? rule : example.second));
    EXPECT_EQ(linesOf(result.err), 1);
    EXPECT_EQ(numbers("m.jsonl", "step"), std::vector<double>{1});
  }
}

TEST_F(TrainPlansTest, PlansOfOtherRunsAreRefusedWithNumbers) {
  ASSERT_EQ(run(piped({"--steps=1", "--dump-plans=" + path("good")})).code, 0);
  auto refusal = [&](std::vector<std::string> more) {
    more.push_back("--plans=" + path("good"));
    Result result = run(piped(std::move(more)));
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(linesOf(result.err), 1);
    return result.err;
  };
  plan::Plan plan = readStep("good", 1);
  EXPECT_THAT(refusal({"--steps=1", "--tokens-per-batch=300"}),
              HasSubstr(formatText("step-1.plan: a plan for %d samples",
                                   lengthsOf(plan).size())));
  EXPECT_THAT(refusal({"--steps=1", "--strategy=pp=2,layers=3+2"}),
              HasSubstr("made for strategy 'dp=1,tp=1,pp=2,layers=2+3', but"));
  EXPECT_THAT(refusal({"--steps=2"}),
              HasSubstr("step-2.plan, the plan of step 2"));
  EXPECT_THAT(refusal({"--steps=1", "--print-grad-norms=" + path("g")}),
              HasSubstr("a plan that updates"));
  ASSERT_EQ(run(piped({"--steps=1", "--print-grad-norms=" + path("g"),
                       "--dump-plans=" + path("looks")}))
                .code,
            0);
  auto refusalOfLooks = [&](const char *strategy) {
    return run(piped({"--steps=1", "--plans=" + path("looks"), strategy})).err;
  };
  EXPECT_THAT(refusalOfLooks("--strategy=pp=2,layers=2+3"),
              HasSubstr("looks/step-1.plan: a plan without updates, which "
                        "trains nothing, such as those of the first step of a "
                        "run with --print-grad-norms"));
  // What else is wrong is told first.
  EXPECT_THAT(refusalOfLooks("--strategy=pp=2,layers=3+2"),
              HasSubstr("made for strategy"));
  EXPECT_THAT(refusal({"--steps=1", "--dump-plans=" + path("good")}),
              HasSubstr("name one folder"));
  EXPECT_THAT(refusal({"--steps=1", "--evaluate"}),
              HasSubstr("--plans is for"));
  plan.manifestHash = 5;
  writeStep("good", 1, plan);
  EXPECT_THAT(refusal({"--steps=1"}),
              HasSubstr("made for model 0000000000000005, but this is"));
  std::ofstream(planPath("good", 1)) << "nothing";
  EXPECT_THAT(refusal({"--steps=1"}), HasSubstr("these bytes are no plan"));
  EXPECT_THAT(refusal({"--steps=1", "--dump-plans=" + path("corpus")}),
              HasSubstr("into the folder of data"));
}

} // namespace
