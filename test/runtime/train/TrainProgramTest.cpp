//===- TrainProgramTest.cpp - Whole runs, as users start them -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainProgramTest : public TrainProgram {};

TEST_F(TrainProgramTest, LearnsAndWritesWhatWasAskedFor) {
  Result result = run(training(
      {"--steps=40", "--metrics=" + path("m.jsonl"), "--save=" + path("model/"),
       "--trace=" + path("t.json"), "--held-out-fraction=0.2",
       "--print-grad-norms=" + path("g.json")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char *word : {"training loss", "held-out bits per byte",
                           "tokens/s", "peak memory", "model/step-40"})
    EXPECT_THAT(result.out, HasSubstr(word));
  std::vector<double> gradientNorms = numbers("m.jsonl", "gradient_norm");
  ASSERT_EQ(gradientNorms.size(), 40u);
  std::vector<double> losses = numbers("m.jsonl", "loss");
  ASSERT_EQ(losses.size(), 42u); // with held-out ones at start and end
  EXPECT_LT(losses.back(), 0.9 * losses.front());
  EXPECT_TRUE(parseJson(*readFile(path("t.json"))).isOk());

  auto report = parseJson(*readFile(path("g.json")));
  ASSERT_TRUE(report.isOk()) << report.status().message();
  EXPECT_EQ(report->find("losses")->items.size(), 40u);
  EXPECT_EQ(report->find("losses")->items[0].number, losses[1]);
  double squares = 0;
  for (const JsonValue &norm : report->find("gradient_norms")->items)
    squares += norm.number * norm.number;
  EXPECT_NEAR(std::sqrt(squares), gradientNorms[0], 1e-12);
}

// Looking at gradients runs the update apart, with the same numbers.
TEST_F(TrainProgramTest, TwoRunsAreBitwiseEqual) {
  ASSERT_EQ(run(training({"--steps=8", "--save=" + path("a")})).code, 0);
  ASSERT_EQ(run(training({"--steps=8", "--save=" + path("b"),
                          "--print-grad-norms=" + path("g")}))
                .code,
            0);
  expectSame("a/step-8", "b/step-8");
}

// The cursor that is saved is that of the step that was trained, however far
// the reader has got.
TEST_F(TrainProgramTest, PlanningAheadChangesNothing) {
  for (const char *ahead : {"0", "1", "7", "7 with 3 threads"}) {
    std::string name = std::string("ahead") + ahead;
    ASSERT_EQ(run(training({"--steps=9", "--save=" + path(name),
                            "--metrics=" + path(name + ".jsonl"),
                            std::string("--plan-ahead=") + ahead[0],
                            name.size() > 6 ? "--plan-threads=3"
                                            : "--plan-threads=1"}))
                  .code,
              0);
    std::string line = *readFile(path(name + ".jsonl"));
    auto metrics = parseJson(line.substr(0, line.find('\n')));
    EXPECT_GT(metrics->find("plan_seconds")->number, 0);
    EXPECT_GE(metrics->find("plan_wait_seconds")->number, 0);
    expectSame("ahead0/step-9", name + "/step-9");
    auto one = parseJson(*readFile(path("ahead0/step-9/state.json")));
    auto two = parseJson(*readFile(path(name + "/step-9/state.json")));
    for (const char *key : {"epoch", "place", "piece", "samples"})
      EXPECT_EQ(one->find("cursor")->findInteger(key),
                two->find("cursor")->findInteger(key))
          << key;
  }
}

TEST_F(TrainProgramTest, OneOrSeveralThreadsInitialiseAlike) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("a")})).code, 0);
  ASSERT_EQ(
      run(training({"--steps=2", "--save=" + path("b"), "--threads=3"})).code,
      0);
  expectSame("a/step-2", "b/step-2");
}

TEST_F(TrainProgramTest, MicroBatchesRecomputationAndFlightAgree) {
  ASSERT_EQ(run(training({"--steps=5", "--metrics=" + path("m")})).code, 0);
  std::vector<double> reference = numbers("m", "loss");
  for (std::vector<std::string> more :
       {std::vector<std::string>{"--tokens-per-micro-batch=256"},
        {"--recompute=full"},
        {"--recompute=none,full,selective,none,none", "--in-flight=3"},
        {"--split-backward", "--in-flight=2"},
        {"--check-memory", "--recompute=selective"}}) {
    std::string name = more[0];
    more.insert(more.end(), {"--steps=5", "--metrics=" + path("m")});
    Result result = run(training(more));
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<double> losses = numbers("m", "loss");
    ASSERT_EQ(losses.size(), reference.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], reference[i], 1e-12) << name;
  }
}

// Samples are what the data and the model make them, whatever micro-batches are.
TEST_F(TrainProgramTest, LongerSamplesThanMicroBatchesAreAlone) {
  ASSERT_EQ(run(training({"--steps=5", "--metrics=" + path("m")})).code, 0);
  std::vector<double> reference = numbers("m", "loss");
  for (const char *batching : {"ragged", "padded", "tokens", "samples"}) {
    Result result = run(training({"--tokens-per-micro-batch=30", "--steps=5",
                                  "--metrics=" + path("m"), "--check-memory",
                                  std::string("--micro-batches=") + batching}));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("of the model's")));
    std::vector<double> losses = numbers("m", "loss");
    ASSERT_EQ(losses.size(), reference.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], reference[i], 1e-12) << batching;
  }
}

// Instructions stay with their answers; what is lost is said, always.
TEST_F(TrainProgramTest, SaysWhatBecomesOfDocuments) {
  std::ofstream(folder_ / "d.jsonl")
      << "{\"input\": \"" << std::string(90, 'q') << "\", \"target\": \"a\"}\n"
      << "{\"input\": \"q\", \"target\": \"" << std::string(90, 'a') << "\"}\n"
      << "{\"input\": \"qq\", \"target\": \"" << std::string(90, 'a') << "\"}\n"
      << "{\"text\": \"\"}\n"
      << "{\"text\": \"" << std::string(100, 't') << "\"}\n";
  std::vector<std::string> arguments = {"--data=" + path("d.jsonl"),
                                        "--steps=2", "--tokens-per-batch=200"};
  Result result = run(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char *part :
       {"data: 5 documents, 379 tokens, 2 too long and split\n",
        "samples: 6 of 45 to 64 tokens (half of them up to 50, 9 of 10 up to "
        "64, 99 of 100 up to 64), about 4 a step\n",
        "note: 2 input/target pairs of more than 64 tokens shortened in the "
        "middle of the input, 1 at the target's end too\n",
        "note: 1 document left out: nothing to predict in them\n"})
    EXPECT_THAT(result.err, HasSubstr(part));
  arguments.push_back("--no-progress");
  Result quiet = run(arguments);
  EXPECT_THAT(quiet.err, HasSubstr("note: 2 input/target pairs"));
  EXPECT_THAT(quiet.err, Not(HasSubstr("data: ")));
  // Whatever is printed is of some data.
  std::string row = "data                   " + path("d.jsonl") +
                    ": 5 documents, 379 tokens, 2 too long and split\n";
  EXPECT_THAT(result.out, HasSubstr(row));
  EXPECT_THAT(quiet.out, HasSubstr(row));
  arguments.push_back("--evaluate");
  quiet = run(arguments);
  EXPECT_THAT(quiet.err, HasSubstr("note: 2 input/target pairs"));
  EXPECT_THAT(quiet.err, Not(HasSubstr("data: ")));
  EXPECT_THAT(quiet.out, HasSubstr(row));
  arguments.erase(arguments.end() - 2);
  Result evaluated = run(arguments);
  EXPECT_THAT(evaluated.err,
              HasSubstr("data: 5 documents, 379 tokens, 2 too long and split\n"
                        "samples: 6 of 45 to 64 tokens (half of them up to 50, "
                        "9 of 10 up to 64, 99 of 100 up to 64)\n"));
}

TEST_F(TrainProgramTest, SaysThatAStepIsFarFromTheData) {
  struct Case {
    const char *flag, *said;
  };
  for (const Case &c :
       {Case{"--tokens-per-batch=5000", "more than all samples have"},
        {"--tokens-per-batch=20", "less than the longest sample ("}}) {
    Result result = run(training({c.flag, "--steps=1"}));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.said)) << c.flag;
    // Each sample once, whatever the flag says.
    result = run(training({c.flag, "--evaluate"}));
    EXPECT_THAT(result.err, Not(HasSubstr(c.said))) << c.flag;
  }
  EXPECT_THAT(run(training({"--steps=1"})).err,
              Not(HasSubstr("--tokens-per-batch")));
}

TEST_F(TrainProgramTest, MetricsReplaceMetricsAlone) {
  for (const char *text :
       {"notes of mine\n", "{\n  \"model_type\": \"gpt2\"\n}\n", "[1]", "\n"}) {
    std::ofstream(path("notes")) << text;
    Result result = run(training({"--steps=1", "--metrics=" + path("notes")}));
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("holds something else than metrics"));
    std::ifstream file(path("notes"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  }
  // A step with many slices has a long line.
  std::ofstream(path("m")) << "{\"step\": 1, \"predicted\": \""
                           << std::string(200000, 'x') << "\"}\n";
  // Those of an earlier run, and of an evaluation, are replaced.
  for (const char *task : {"--evaluate", "--steps=2", "--steps=1"})
    EXPECT_EQ(run(training({task, "--metrics=" + path("m")})).code, 0) << task;
  EXPECT_EQ(numbers("m", "loss").size(), 1u);
}

TEST_F(TrainProgramTest, SaysWhatOfAFolderIsNoData) {
  fs::create_directories(folder_ / "held");
  fs::copy_file(path("corpus/3"), path("held/3"));
  ASSERT_EQ(mkfifo(path("corpus/pipe").c_str(), 0600), 0);
  fs::create_symlink("nowhere", path("held/link"));
  for (const char *task : {"--steps=1", "--evaluate"}) {
    Result result = run(training({task, "--held-out=" + path("held")}));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("note: 1 entry of " + path("corpus") + " left out"));
    EXPECT_THAT(result.err,
                HasSubstr("note: 1 entry of " + path("held") + " left out"));
  }
}

TEST_F(TrainProgramTest, WhatOneStageDoesNotUseIsSaid) {
  const char *note = "--pipeline 1f1b is not used: there is one stage";
  const std::vector<std::string> given = {"--steps=1", "--pipeline=1f1b"};
  EXPECT_THAT(run(training(given)).err, HasSubstr(note));
  auto with = [&](const char *flag) {
    std::vector<std::string> more = given;
    more.push_back(flag);
    return run(training(more)).err;
  };
  EXPECT_THAT(with("--strategy=dp=2"), HasSubstr(note));
  EXPECT_THAT(with("--strategy=pp=2"), Not(HasSubstr(note)));
  EXPECT_THAT(run(training({"--steps=1", "--pipeline=gpipe"})).err,
              Not(HasSubstr("not used")));
  EXPECT_THAT(run(training({"--steps=1"})).err, Not(HasSubstr("not used")));
}

// Padding only costs: what is computed for the loss is the same.
TEST_F(TrainProgramTest, PaddingChangesNoLoss) {
  ASSERT_EQ(run(training({"--steps=5", "--metrics=" + path("a")})).code, 0);
  Result padded =
      run(training({"--steps=5", "--metrics=" + path("b"), "--pad"}));
  EXPECT_EQ(padded.code, 0) << padded.err;
  EXPECT_THAT(padded.out, HasSubstr("% of the tokens of padded micro-batches"));
  std::vector<double> one = numbers("a", "loss"), two = numbers("b", "loss");
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one[i], two[i], 1e-12);
  EXPECT_EQ(numbers("a", "tokens"), numbers("b", "tokens"));
}

TEST_F(TrainProgramTest, MicroBatchesOfAnyKindHaveTheSameLoss) {
  ASSERT_EQ(run(training({"--steps=3", "--metrics=" + path("a"),
                          "--micro-batches=tokens"}))
                .code,
            0);
  for (const char *kind : {"ragged", "padded", "samples", "packed-masked"}) {
    Result result = run(training({"--steps=3", "--metrics=" + path(kind),
                                  std::string("--micro-batches=") + kind}));
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<double> one = numbers("a", "loss"), two = numbers(kind, "loss");
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(one[i], two[i], 1e-12);
    EXPECT_EQ(numbers("a", "tokens"), numbers(kind, "tokens"));
  }
  EXPECT_THAT(run(training({"--steps=1", "--micro-batches=padded"})).out,
              HasSubstr("\n  padding  "));
  Result result = run(training({"--steps=1", "--micro-batches=bins"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("ragged, padded"));
}

// Attention across samples is another function, but the same on all ranks.
TEST_F(TrainProgramTest, PackedRowsAreTheSameOnAllRanks) {
  for (const char *strategy : {"dp=1", "dp=2", "dp=2,pp=2"})
    EXPECT_EQ(run(training({"--steps=3", "--micro-batches=packed",
                            std::string("--strategy=") + strategy,
                            "--metrics=" + path(strategy)}))
                  .code,
              0);
  std::vector<double> one = numbers("dp=1", "loss");
  EXPECT_EQ(one.size(), 3u);
  for (const char *strategy : {"dp=2", "dp=2,pp=2"}) {
    std::vector<double> other = numbers(strategy, "loss");
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(one[i], other[i], 1e-10 * one[i]) << strategy;
    EXPECT_EQ(numbers("dp=1", "tokens"), numbers(strategy, "tokens"));
  }
}

TEST_F(TrainProgramTest, HoldsWhatItSaysOfLargeText) {
  std::ofstream(folder_ / "large.txt") << "a text";
  fs::resize_file(folder_ / "large.txt", uintmax_t(3) << 30);
  Result result =
      run({"--data=" + path("large.txt"), "--steps=2", "--threads=1",
           "--tokens-per-batch=256", "--memory-limit=64MiB"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("data: 1 document, 3,221,225,473 tokens"));
}

TEST_F(TrainProgramTest, CountsTheTablesOfTheData) {
  std::ofstream lines(folder_ / "many.jsonl");
  for (int i = 0; i < 50000; ++i)
    lines << "{\"text\": \"x\"}\n";
  lines.close();
  std::vector<std::string> arguments = {
      "--data=" + path("many.jsonl"), "--steps=1",     "--threads=1",
      "--tokens-per-batch=256",       "--no-progress", "--memory-limit=34MiB"};
  Result result = run(arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("for the tables of the data"));
  EXPECT_THAT(result.err, HasSubstr("fewer, larger documents"));
  arguments.back() = "--memory-limit=40MiB";
  EXPECT_EQ(run(arguments).code, 0);
}

TEST_F(TrainProgramTest, DescribesItself) {
  Result table = run({"--describe"});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, HasSubstr("model tiny"));
  Result json = run({"--describe=json"});
  EXPECT_TRUE(parseJson(json.out).isOk());
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_THAT(run({"--version"}).out, HasSubstr("Dyna 0."));
}

TEST_F(TrainProgramTest, ProgressWithoutATerminalIsPlainLines) {
  std::vector<std::string> arguments = training({"--steps=3"});
  arguments.erase(
      std::find(arguments.begin(), arguments.end(), "--no-progress"));
  Result lines = run(arguments);
  EXPECT_THAT(lines.err, Not(HasSubstr("bf16 products")));
  EXPECT_THAT(run(arguments, {"TINY_TYPE=bf16"}).err,
              HasSubstr("bf16 products "));
  EXPECT_THAT(lines.err, HasSubstr("step 3/3  loss "));
  EXPECT_THAT(lines.err, Not(HasSubstr("\r")));
  arguments.push_back("--progress");
  EXPECT_THAT(run(arguments).err, HasSubstr("\r\033[K[######"));
}

} // namespace
