//===- CommandLineTest.cpp - Flags, right and wrong -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/CommandLine.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

std::string failure(const std::vector<std::string> &arguments) {
  TrainOptions options;
  if (Status status = parseCommandLine(arguments, options); !status.isOk())
    return status.message();
  return resolveOptions(options).message();
}

TEST(CommandLineTest, ValuesWithEqualsOrApart) {
  TrainOptions options;
  Status status =
      parseCommandLine({"--data", "a", "--data=b", "--lr=1e-3", "--steps", "7",
                        "--schedule", "linear", "--evaluate", "--describe"},
                       options);
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(options.data, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.learningRate, 1e-3);
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.schedule, "linear");
  EXPECT_TRUE(options.evaluate);
  EXPECT_EQ(options.describe, "table");
  EXPECT_TRUE(options.isGiven("steps"));
  EXPECT_FALSE(options.isGiven("seed"));
}

TEST(CommandLineTest, MistakesAreOneClearLine) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"corpus"}, "'corpus' is no flag"},
      {{"--stps=5"}, "did you mean --steps?"},
      {{"--zzzzzzzzzz"}, "--help lists all flags"},
      {{"--steps"}, "--steps expects a value: --steps N"},
      {{"--steps=-1"}, "--steps expects a whole number from 1"},
      {{"--steps=5x"}, "but got '5x'"},
      {{"--steps= 5"}, "but got ' 5'"},
      {{"--steps=99999999999999999999"}, "--steps expects"},
      {{"--lr=inf"}, "--lr expects a number"},
      {{"--lr="}, "--lr expects a number"},
      {{"--beta1=1"}, "--beta1 expects a number from 0 to 0.999999999,"},
      {{"--lr=0x1p-3"}, "--lr expects a number from 0"},
      {{"--rank-memory=0x10"}, "--rank-memory"},
      {{"--schedule=step"}, "one of cosine, linear, constant"},
      {{"--describe=xml"}, "one of table, json, proto"},
      {{"--describe", "json"}, "'json' is no flag"},
      {{"--evaluate=1"}, "--evaluate takes no value"},
      {{"--data="}, "--data expects a path"},
      {{"--save="}, "--save expects DIR"},
      {{"--steps=5"}, "no data: give --data PATH"},
      {{"--data=x", "--resume=a", "--load=b"}, "only one of them"},
      {{"--data=x", "--progress", "--no-progress"}, "exclude each other"},
      {{"--data=x", "--no-gradient-norm"},
       "--no-gradient-norm leaves nothing to clip by, but --clip is 1"},
      {{"--data=x", "--no-gradient-norm", "--clip=0", "--skip-nonfinite=2"},
       "--skip-nonfinite goes by the gradient norm"},
      {{"--data=x", "--save-every=3"}, "--save-every needs --save"},
      {{"--data=x", "--save=m", "--save-every=soon"}, "such as 100, 30s"},
      {{"--data=x", "--min-lr=1"}, "--min-lr 1 is above --lr"},
      {{"--data=x", "--memory-limit=4Gigs"}, "--memory-limit: expects bytes"},
      {{"--data=x", "--pad", "--micro-batches=packed"},
       "--pad and --micro-batches packed do not go together"},
      {{"--data=x", "--pad", "--micro-batches=packed-masked"},
       "--pad and --micro-batches packed-masked do not go together"},
      {{"--data=x", "--ranges=a: 0-", "--micro-batches=packed"},
       "micro-batches of 'packed' join them to long rows before: choose "
       "'packed-masked'"},
  };
  for (const auto &[arguments, message] : cases) {
    EXPECT_THAT(failure(arguments), HasSubstr(message));
    EXPECT_THAT(failure(arguments), Not(HasSubstr("\n")));
  }
}

TEST(CommandLineTest, DefaultsThatDependOnOthers) {
  TrainOptions options;
  ASSERT_TRUE(
      parseCommandLine({"--data=x", "--steps=300", "--lr=1e-2"}, options)
          .isOk());
  ASSERT_TRUE(resolveOptions(options).isOk());
  EXPECT_EQ(options.warmup, 30);
  EXPECT_DOUBLE_EQ(options.minLearningRate, 1e-3);
  // The warm-up is a part of the schedule, not of the steps done now.
  TrainOptions half;
  ASSERT_TRUE(parseCommandLine(
                  {"--data=x", "--steps=150", "--schedule-steps=300"}, half)
                  .isOk());
  ASSERT_TRUE(resolveOptions(half).isOk());
  EXPECT_EQ(half.warmup, 30);
}

// What a checkpoint stores gives the same options again, to the last bit.
TEST(CommandLineTest, StoredArgumentsGiveTheSameRun) {
  TrainOptions options;
  ASSERT_TRUE(parseCommandLine({"--data=/x,/y", "--data=synthetic:equal=9",
                                "--lr=0.1234567890123456789",
                                "--split-backward", "--seed=42", "--save=/m",
                                "--tokens-per-micro-batch=77"},
                               options)
                  .isOk());
  ASSERT_TRUE(resolveOptions(options).isOk());
  std::vector<std::string> stored = runArguments(options);
  TrainOptions again;
  ASSERT_TRUE(parseCommandLine(stored, again).isOk());
  EXPECT_EQ(runArguments(again), stored);
  EXPECT_EQ(again.learningRate, options.learningRate);
  EXPECT_EQ(again.data, options.data);
  EXPECT_TRUE(again.splitBackward);
  EXPECT_TRUE(changedFlags(options, again).empty());
  // Given again, a list replaces the stored one.
  again.given.clear();
  ASSERT_TRUE(parseCommandLine({"--data=/z", "--seed=43"}, again).isOk());
  EXPECT_EQ(again.data, std::vector<std::string>{"/z"});
  EXPECT_THAT(changedFlags(options, again),
              testing::ElementsAre("--data", "--seed"));
}

/// What a run computes on is no part of it: a checkpoint says nothing of it, and
/// can be resumed on what there is.
TEST(CommandLineTest, FlagsOfDevicesAreNotStored) {
  TrainOptions options;
  ASSERT_TRUE(parseCommandLine({"--data=x", "--device=1", "--tf32",
                                "--algorithms=a", "--deterministic"},
                               options)
                  .isOk());
  EXPECT_TRUE(options.tf32);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.algorithms, "a");
  TrainOptions without;
  ASSERT_TRUE(parseCommandLine({"--data=x"}, without).isOk());
  EXPECT_EQ(runArguments(options), runArguments(without));
  EXPECT_TRUE(changedFlags(options, without).empty());
}

TEST(CommandLineTest, HelpNamesEveryFlagWithItsDefault) {
  std::string help = helpText("train-gpt");
  EXPECT_NE(help.find("--describe[=WORD]"), std::string::npos) << help;
  EXPECT_THAT(help, HasSubstr("train-gpt --resume model/"));
  EXPECT_THAT(help, HasSubstr("--tokens-per-batch TOKENS"));
  EXPECT_THAT(help, HasSubstr("(default: 16384"));
  EXPECT_THAT(help, HasSubstr("(0.0003)"));
  EXPECT_THAT(help, HasSubstr("or with --pipeline gpipe (default: 1 with one "
                              "stage, else all of a step)"));
}

TEST(RecomputeTest, OneForAllOrOneEach) {
  using plan::RECOMPUTE_FULL;
  using plan::RECOMPUTE_NONE;
  EXPECT_EQ(*parseRecompute("full", 3),
            std::vector<plan::Recompute>(3, RECOMPUTE_FULL));
  EXPECT_EQ(*parseRecompute("none,full*2,none", 4),
            (std::vector<plan::Recompute>{RECOMPUTE_NONE, RECOMPUTE_FULL,
                                          RECOMPUTE_FULL, RECOMPUTE_NONE}));
  EXPECT_EQ(*parseRecompute("selective*3", 3),
            std::vector<plan::Recompute>(3, plan::RECOMPUTE_SELECTIVE));
  for (const char *text : {"", "some", "none,", "full*", "full*x", "full*0",
                           "none,full", "full*99999999999"})
    EXPECT_FALSE(parseRecompute(text, 4).isOk()) << text;
}

} // namespace
