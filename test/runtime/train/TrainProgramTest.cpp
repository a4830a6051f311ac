//===- TrainProgramTest.cpp - Whole runs, as users start them -------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/data/Files.h"
#include "runtime/data/Json.h"
#include "runtime/files/OutputFile.h"
#include "runtime/train/Checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace dyna;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

struct Result {
  int code = -1;
  std::string out, err;
};

class TrainProgramTest : public testing::Test {
protected:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;
  static constexpr std::chrono::seconds patience{120};

  void SetUp() override {
    const auto *info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) /
              (std::string("train-program-") + info->name() + "-" +
               std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "corpus");
    for (int i = 0; i < 12; ++i) {
      std::ofstream file(folder_ / "corpus" / std::to_string(i));
      for (int word = 0; word < 5 + 13 * i; ++word)
        file << "abcdefgh"[dyna_mix64(100 * i + word) % 8]
             << (word % 7 ? "" : " the ");
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string &name) const {
    return (folder_ / name).string();
  }

  pid_t start(std::vector<std::string> arguments,
              std::vector<std::string> environment = {}) const {
    pid_t child = fork();
    if (child != 0)
      return child;
    for (auto [name, descriptor] : {std::pair("out", 1), std::pair("err", 2)}) {
      int file = open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(file, descriptor);
    }
    for (std::string &variable : environment)
      putenv(variable.data());
    arguments.insert(arguments.begin(), TINY_TRAIN_PATH);
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(TINY_TRAIN_PATH, pointers.data());
    _exit(127);
  }

  /// Waits until `condition` holds; false when the program ended or too much
  /// time went by before that.
  template <typename Condition>
  static bool waitFor(pid_t child, Condition condition) {
    Deadline deadline = Clock::now() + patience;
    while (!condition()) {
      siginfo_t info = {};
      // Only looks: `finish` collects the exit code.
      bool ended = waitid(P_PID, static_cast<id_t>(child), &info,
                          WEXITED | WNOHANG | WNOWAIT) != 0 ||
                   info.si_pid != 0;
      if (ended || Clock::now() > deadline) {
        ADD_FAILURE() << (ended ? "the run ended too early"
                                : "the run does not get on");
        return false;
      }
      usleep(500);
    }
    return true;
  }

  Result finish(pid_t child) const {
    int status = 0;
    Deadline deadline = Clock::now() + patience;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        ADD_FAILURE() << "the run does not end";
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        break;
      }
      usleep(500);
    }
    Result result;
    result.code =
        WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    result.out = *readFile(path("out"));
    result.err = *readFile(path("err"));
    return result;
  }

  Result run(std::vector<std::string> arguments,
             std::vector<std::string> environment = {}) const {
    return finish(start(std::move(arguments), std::move(environment)));
  }

  /// A training run on the corpus.
  std::vector<std::string> training(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"--data=" + path("corpus"),
                                          "--tokens-per-batch=256",
                                          "--tokens-per-micro-batch=100",
                                          "--lr=1e-2",
                                          "--threads=1",
                                          "--no-progress"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void expectSame(const std::string &a, const std::string &b) const {
    for (const char *file : {"/model.safetensors", "/optimizer.safetensors"}) {
      auto one = readFile(path(a) + file), two = readFile(path(b) + file);
      ASSERT_TRUE(one.isOk() && two.isOk()) << a << " " << b;
      EXPECT_EQ(*one == *two, true)
          << a << " and " << b << " differ in " << file;
    }
  }

  /// The member `key` of each line of a JSON-lines file that has it.
  std::vector<double> numbers(const std::string &file,
                              const std::string &key) const {
    std::ifstream lines(path(file));
    std::vector<double> values;
    for (std::string line; std::getline(lines, line);) {
      auto json = parseJson(line);
      EXPECT_TRUE(json.isOk()) << line;
      if (const JsonValue *value = json->find(key))
        values.push_back(value->number);
    }
    return values;
  }

  /// Whether the program has got as far as to finish its step at a SIGTERM.
  static bool catchesSignals(pid_t child) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("SigCgt:", 0) == 0)
        return std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1;
    return false;
  }

  /// Puts another state.json into a checkpoint, with its size and checksum.
  static void rewriteState(const std::string &step, const std::string &state,
                           const std::string &list) {
    std::ofstream(step + "/state.json") << state;
    char entry[100];
    std::snprintf(entry, sizeof entry,
                  "\"state.json\": {\"bytes\": %zu, \"checksum\": \"%016llx\"}",
                  state.size(),
                  static_cast<unsigned long long>(Checksum::of(state)));
    size_t begin = list.find("\"state.json\""), end = list.find('}', begin);
    ASSERT_NE(begin, std::string::npos);
    std::ofstream(step + "/checkpoint.json")
        << std::string(list).replace(begin, end + 1 - begin, entry);
  }

  fs::path folder_;
};

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
  for (const char *ahead : {"0", "1", "7"}) {
    std::string name = std::string("ahead") + ahead;
    ASSERT_EQ(run(training({"--steps=9", "--save=" + path(name),
                            std::string("--plan-ahead=") + ahead}))
                  .code,
              0);
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

TEST_F(TrainProgramTest, ResumingIsBitwiseTheSame) {
  for (const char *type : {"TINY_TYPE=f64", "TINY_TYPE=bf16"}) {
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "parts");
    ASSERT_EQ(
        run(training({"--steps=23", "--save=" + path("whole")}), {type}).code,
        0);
    // Half of a schedule warms up like the whole of it.
    ASSERT_EQ(run(training({"--steps=7", "--schedule-steps=23",
                            "--save=" + path("parts")}),
                  {type})
                  .code,
              0);
    // Everything but the number of steps comes from the checkpoint.
    Result resumed = run(
        {"--resume=" + path("parts"), "--steps=23", "--no-progress"}, {type});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(resumed.err, "");
    expectSame("whole/step-23", "parts/step-23");
  }
}

TEST_F(TrainProgramTest, ChangedFlagsAreWarnedAbout) {
  ASSERT_EQ(run(training({"--steps=4", "--save=" + path("m")})).code, 0);
  Result resumed = run({"--resume", path("m"), "--steps=6", "--lr=1e-3"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("warning: --lr is not what"));
  EXPECT_THAT(resumed.err, HasSubstr("now falls over 6 steps instead of 4"));
  // Nothing is left to do, which is no failure.
  Result done = run({"--resume", path("m")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("has done 6 of 6 steps"));
  EXPECT_EQ(done.err, "");
}

TEST_F(TrainProgramTest, SignalsFinishTheStepAndSave) {
  for (int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(folder_ / "stopped");
    fs::remove_all(folder_ / "m.jsonl");
    fs::remove_all(folder_ / "whole");
    pid_t child = start(
        training({"--steps=2000", "--schedule=constant",
                  "--save=" + path("stopped"), "--metrics=" + path("m.jsonl")}),
        {"TINY_SLEEP=2"});
    waitFor(child, [&] {
      return fileExists(path("m.jsonl")) &&
             fs::file_size(path("m.jsonl")) >= 500;
    });
    kill(child, signal);
    Result result = finish(child);
    EXPECT_EQ(result.code, 128 + signal) << result.err;
    EXPECT_THAT(result.out, HasSubstr("stopped by a signal after step "));
    size_t steps = numbers("m.jsonl", "loss").size();
    ASSERT_GT(steps, 0u);
    ASSERT_LT(steps, 2000u);
    std::string step = "step-" + std::to_string(steps);
    EXPECT_TRUE(fileExists(path("stopped/" + step)));
    EXPECT_EQ(run(training({"--steps=" + std::to_string(steps), "--warmup=100",
                            "--schedule=constant", "--save=" + path("whole")}))
                  .code,
              0);
    expectSame("stopped/" + step, "whole/" + step);
  }
}

TEST_F(TrainProgramTest, ASecondSignalEndsAtOnce) {
  pid_t child = start(training({"--steps=100", "--metrics=" + path("m.jsonl")}),
                      {"TINY_SLEEP=3000"});
  waitFor(child, [&] { return fileExists(path("m.jsonl")); });
  usleep(100000);
  kill(child, SIGTERM);
  usleep(1100000);
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM);
  EXPECT_EQ(result.out, ""); // no summary, as of a run that ends in peace
}

// As `timeout` and launchers send it: to the process and to its group.
TEST_F(TrainProgramTest, OneWishInSeveralSignalsIsOne) {
  pid_t child = start(training({"--steps=2000", "--save=" + path("stopped"),
                                "--metrics=" + path("m.jsonl")}),
                      {"TINY_SLEEP=20"});
  waitFor(child, [&] {
    return fileExists(path("m.jsonl")) && fs::file_size(path("m.jsonl")) > 0;
  });
  for (int signal : {SIGTERM, SIGTERM, SIGINT}) {
    kill(child, signal);
    usleep(1000);
  }
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stopped by a signal after step "));
}

TEST_F(TrainProgramTest, KillsLeaveALoadableCheckpoint) {
  for (int round = 0; round < 12; ++round) {
    fs::remove_all(folder_ / "killed");
    pid_t child = start(training(
        {"--steps=100000", "--save-every=1", "--save=" + path("killed")}));
    auto saved = [&] {
      std::error_code ignored;
      for (const auto &entry : fs::directory_iterator(path("killed"), ignored))
        if (entry.path().filename().string().rfind("step-", 0) == 0)
          return true;
      return false;
    };
    waitFor(child, saved);
    usleep(static_cast<useconds_t>(dyna_mix64(round) % 40000));
    kill(child, SIGKILL);
    EXPECT_EQ(finish(child).code, 1000 + SIGKILL);
    Result loaded = run({"--evaluate", "--load", path("killed"), "--data",
                         path("corpus"), "--threads=1", "--no-progress"});
    EXPECT_EQ(loaded.code, 0) << loaded.err;
    EXPECT_THAT(loaded.out, HasSubstr("bits per byte"));
  }
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

TEST_F(TrainProgramTest, SamplesFitMicroBatches) {
  Result result = run(
      training({"--tokens-per-micro-batch=40", "--steps=3", "--check-memory"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("at most 40 of the model's 64 positions"));
}

// A killed run has written further than it has saved, and half a line.
TEST_F(TrainProgramTest, ResumingCutsTheMetricsAfterTheCheckpoint) {
  ASSERT_EQ(
      run(training({"--steps=4", "--save=" + path("m"),
                    "--held-out-fraction=0.2", "--metrics=" + path("m.jsonl")}))
          .code,
      0);
  std::string before = *readFile(path("m.jsonl"));
  std::ofstream(path("m.jsonl"), std::ios::app)
      << "{\"step\": 5, \"loss\": 1}\n"
         "{\"held_out\": \"end\", \"step\": 6, \"loss\": 1}\n"
         "{\"step\": 6, \"lo";
  Result resumed = run(
      {"--resume=" + path("m"), "--steps=7", "--metrics=" + path("m.jsonl")});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  std::string after = *readFile(path("m.jsonl"));
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_EQ(numbers("m.jsonl", "step"),
            (std::vector<double>{0, 1, 2, 3, 4, 4, 4, 5, 6, 7, 7}));
}

// The first signal is to end the evaluation, not the process.
TEST_F(TrainProgramTest, ASignalDuringAnEvaluationIsSaid) {
  std::ofstream held(folder_ / "held.txt");
  for (int i = 0; i < 100000; ++i)
    held << "abcdefgh "[dyna_mix64(i) % 9];
  held.close();
  std::vector<std::string> arguments = training(
      {"--steps=2", "--save=" + path("m"), "--held-out=" + path("held.txt")});
  pid_t child = start(arguments);
  waitFor(child, [&] { return catchesSignals(child); });
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, HasSubstr("before a step was done; nothing was"));
  EXPECT_FALSE(fileExists(path("m/step-2")));

  child = start(arguments);
  waitFor(child, [&] { return fileExists(path("m/step-2")); });
  kill(child, SIGTERM);
  result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, HasSubstr("after the last step, in the evaluation"));
  EXPECT_TRUE(fileExists(path("m/step-2")));
}

TEST_F(TrainProgramTest, OutputsAreNoInputs) {
  fs::copy_file(path("corpus/3"), path("data.txt"));
  fs::create_hard_link(path("data.txt"), path("linked"));
  std::string text = *readFile(path("data.txt"));
  for (std::string flag :
       {"--metrics", "--trace", "--counts", "--print-grad-norms"})
    for (const char *name : {"data.txt", "linked", "./data.txt"}) {
      Result result = run(
          {"--data=" + path("data.txt"), "--steps=1", flag + "=" + path(name)});
      EXPECT_EQ(result.code, 2) << flag << name;
      EXPECT_THAT(result.err, HasSubstr(flag + " would write over"));
      EXPECT_EQ(*readFile(path("data.txt")), text) << flag << name;
    }
  Result below = run(training({"--steps=1", "--counts=" + path("corpus/5")}));
  EXPECT_EQ(below.code, 2);
  EXPECT_THAT(below.err, HasSubstr("which is read by --data"));
  Result both = run(training(
      {"--steps=1", "--metrics=" + path("o"), "--counts=" + path("./o")}));
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--metrics and --counts both write"));
  EXPECT_FALSE(fileExists(path("o")));
  // Devices take what many write.
  Result device =
      run(training({"--steps=1", "--metrics=/dev/null", "--counts=/dev/null"}));
  EXPECT_EQ(device.code, 0) << device.err;
}

TEST_F(TrainProgramTest, StatesAreOfTheirCheckpointsStep) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::string state = *readFile(path("m/step-2/state.json"));
  size_t at = state.find("\"step\": 2");
  ASSERT_NE(at, std::string::npos);
  rewriteState(path("m/step-2"), state.replace(at, 9, "\"step\": 1"),
               *readFile(path("m/step-2/checkpoint.json")));
  Result result = run({"--resume=" + path("m"), "--steps=3"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("state.json is of step 1, but "
                                    "checkpoint.json of step 2"));
  EXPECT_FALSE(fileExists(path("m/step-3")));
}

// However a checkpoint is named, what follows comes to lie beside it.
TEST_F(TrainProgramTest, ResumedRunsSaveBesideTheirCheckpoint) {
  std::string store = path("step-runs"), one = store + "/step-2";
  fs::create_directories(store);
  fs::create_directory_symlink(one, path("latest"));
  for (const std::string &name :
       {store, store + "/", one, one + "/", one + "/.", path("latest")}) {
    fs::remove_all(store);
    ASSERT_EQ(run(training({"--steps=2", "--save=" + store})).code, 0);
    Result result = run({"--resume=" + name, "--steps=3", "--no-progress"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(fileExists(store + "/step-3/checkpoint.json")) << name;
    EXPECT_FALSE(fileExists(path("step-3"))) << name;
    EXPECT_FALSE(fileExists(one + "/step-3")) << name;
  }
}

// A checkpoint that was copied, or made by somebody else, names files of
// somebody else.
TEST_F(TrainProgramTest, ACheckpointChoosesNoFileToWrite) {
  ASSERT_EQ(run(training({"--steps=4", "--save=" + path("m"), "--save-every=2",
                          "--metrics=" + path("m.jsonl")}))
                .code,
            0);
  auto original = *readFile(path("m.jsonl"));
  fs::create_directories(path("elsewhere"));
  fs::copy(path("m/step-2"), path("elsewhere/step-2"));
  auto others = fs::last_write_time(path("m/step-4"));
  Result resumed = run({"--resume=" + path("elsewhere"), "--steps=3"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err,
              HasSubstr("the saved run wrote metrics to \"" + path("m.jsonl") +
                        "\", this one writes none: give "
                        "--metrics FILE"));
  EXPECT_EQ(*readFile(path("m.jsonl")), original);
  EXPECT_TRUE(fileExists(path("elsewhere/step-3")));
  EXPECT_FALSE(fileExists(path("m/step-3")));
  EXPECT_EQ(fs::last_write_time(path("m/step-4")), others);
}

TEST_F(TrainProgramTest, CraftedArgumentsAreNotObeyed) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::string state = *readFile(path("m/step-2/state.json"));
  std::string list = *readFile(path("m/step-2/checkpoint.json"));
  std::ofstream(path("victim")) << "dear";
  for (const char *flag : {"--metrics=", "--save=", "--counts=", "--trace=",
                           "--print-grad-norms=", "--resume=", "--load="}) {
    // As whoever makes a checkpoint can: without its list it is a model alone,
    // so the list is made to fit.
    std::string crafted = state;
    crafted.insert(crafted.rfind(']'),
                   ", \"" + std::string(flag) + path("victim") + "\"");
    rewriteState(path("m/step-2"), crafted, list);
    Result result = run({"--resume=" + path("m"), "--steps=3"});
    bool told =
        std::string(flag) == "--metrics=" || std::string(flag) == "--save=";
    EXPECT_EQ(result.code, told ? 0 : 2) << flag << result.err;
    if (!told)
      EXPECT_THAT(result.err,
                  HasSubstr(std::string("state.json has the argument '") +
                            flag + path("victim") + "', which no run stores"));
    EXPECT_EQ(*readFile(path("victim")), "dear") << flag;
    fs::remove_all(path("m/step-3"));
  }
  for (const char *argument : {"--lr", "--nonsense=1", "victim"}) {
    std::string crafted = state;
    crafted.insert(crafted.rfind(']'), std::string(", \"") + argument + "\"");
    rewriteState(path("m/step-2"), crafted, list);
    Result result = run({"--resume=" + path("m"), "--steps=3"});
    EXPECT_EQ(result.code, 2) << argument;
    EXPECT_THAT(result.err, HasSubstr("which no run stores")) << argument;
  }
}

TEST_F(TrainProgramTest, TwoRunsDoNotShareFiles) {
  pid_t first = start(training({"--steps=1000000", "--save=" + path("m"),
                                "--metrics=" + path("m.jsonl")}));
  ASSERT_TRUE(waitFor(first, [&] {
    return fileExists(path("m.jsonl")) && !readFile(path("m.jsonl"))->empty();
  }));
  std::string process = "(process " + std::to_string(first) + ")";
  Result metrics = run(training({"--steps=2", "--metrics=" + path("m.jsonl")}));
  EXPECT_EQ(metrics.code, 2);
  EXPECT_THAT(metrics.err,
              HasSubstr("another run " + process + " writes its metrics to " +
                        path("m.jsonl")));
  Result save = run(training({"--steps=2", "--save=" + path("m")}));
  EXPECT_EQ(save.code, 2);
  EXPECT_THAT(save.err,
              HasSubstr("another run " + process + " saves into " + path("m")));
  EXPECT_FALSE(readFile(path("m.jsonl"))->empty());
  // A lock ends with its run, however that ends.
  kill(first, SIGKILL);
  EXPECT_EQ(finish(first).code, 1000 + SIGKILL);
  Result again = run(training(
      {"--steps=2", "--save=" + path("m"), "--metrics=" + path("m.jsonl")}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(numbers("m.jsonl", "step"), (std::vector<double>{1, 2}));
}

TEST_F(TrainProgramTest, DataThatChangeDoNotCostTheSteps) {
  for (const char *change : {"shorter", "written"}) {
    fs::remove_all(folder_ / "m");
    fs::remove_all(folder_ / "m.jsonl");
    pid_t child = start(
        training({"--steps=100000", "--schedule-steps=100000", "--warmup=2",
                  "--metrics=" + path("m.jsonl"), "--save=" + path("m")}),
        {"TINY_SLEEP=2"});
    waitFor(child, [&] {
      return fileExists(path("m.jsonl")) &&
             fs::file_size(path("m.jsonl")) >= 500;
    });
    std::string file = path("corpus/9"), before = *readFile(file);
    if (change == std::string("shorter"))
      fs::resize_file(file, 10);
    else
      std::ofstream(file) << std::string(before.size(), 'x');
    Result result = finish(child);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("corpus/9"));
    EXPECT_THAT(result.err, HasSubstr("while it was in use"));
    EXPECT_THAT(result.err, HasSubstr("(the run up to step "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
    // Neither does a later run go on with them unasked, but once they are back.
    Result resumed = run({"--resume=" + path("m"), "--steps=100000"});
    EXPECT_EQ(resumed.code, 2);
    EXPECT_THAT(resumed.err, HasSubstr("the data changed"));
    std::ofstream(file) << before;
    std::string steps = std::to_string(numbers("m.jsonl", "loss").size() + 2);
    resumed = run({"--resume=" + path("m"), "--steps=" + steps});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
  }
}

TEST_F(TrainProgramTest, ChangedDataAreNotResumedWithUnasked) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::vector<std::string> resume = {"--resume=" + path("m"), "--steps=4",
                                     "--no-progress"};
  auto with = [&](const char *flag) {
    std::vector<std::string> arguments = resume;
    arguments.push_back(flag);
    return run(arguments);
  };
  // One letter of one document; documents and lengths are the same.
  std::string file = path("corpus/11"), text = *readFile(file);
  std::string other = text;
  other[7] ^= 1;
  std::ofstream(file) << other;
  Result refused = run(resume);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("lengths or contents are not those"));
  EXPECT_THAT(refused.err, HasSubstr("--allow-changed-data"));
  std::ofstream(file) << text;
  refused = with("--shuffle=documents");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("saved with --shuffle=samples"));
  refused = with("--long-documents=truncate");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("samples (which follow from"));
  std::ofstream(file) << other;
  Result allowed = with("--allow-changed-data");
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("going on with epoch 2"));
}

TEST(RunStateTest, EarlierVersionsCursorsSayWhatToDo) {
  StatusOr<RunState> state = RunState::fromJson(
      "{\"format\": 1, \"step\": 2, \"seed\": 1, \"arguments\": [], "
      "\"cursor\": {\"epoch\": 0, \"document\": 3, \"offset\": 0, "
      "\"samples\": 3, \"documents\": 12}}");
  ASSERT_FALSE(state.isOk());
  EXPECT_THAT(state.status().message(), HasSubstr("of an earlier version"));
  EXPECT_THAT(state.status().message(), HasSubstr("--load"));
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
  arguments.push_back("--evaluate");
  EXPECT_THAT(run(arguments).err, HasSubstr("note: 2 input/target pairs"));
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
      "--tokens-per-batch=256",       "--no-progress", "--memory-limit=2MiB"};
  Result result = run(arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("for the tables of the data"));
  EXPECT_THAT(result.err, HasSubstr("fewer, larger documents"));
  arguments.back() = "--memory-limit=8MiB";
  EXPECT_EQ(run(arguments).code, 0);
}

TEST_F(TrainProgramTest, LoadingStartsANewRun) {
  ASSERT_EQ(run(training({"--steps=30", "--save=" + path("a")})).code, 0);
  Result result = run(
      training({"--steps=2", "--load=" + path("a"), "--metrics=" + path("m")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_LT(numbers("m", "loss")[0], 5.0);
}

TEST_F(TrainProgramTest, UserErrorsAreOneLineAndCode2) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::ofstream(folder_ / "empty.txt");
  std::ofstream(folder_ / "bad.jsonl")
      << "{\"text\": \"fine\"}\n{\"txt\": 1}\n";
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {training({"--steps=0"}), "--steps expects"},
      {training({"--wat"}), "--wat is no flag"},
      {{"--data=" + path("nowhere")},
       "nowhere: No such file or directory; give"},
      {{"--data=" + path("empty.txt")}, "empty.txt"},
      {{"--data=" + path("bad.jsonl"), "--steps=1", "--tokens-per-batch=1"},
       "bad.jsonl:2"},
      {training({"--resume=" + path("nothing")}), "nothing"},
      // Before any of the two is looked at.
      {{"--resume=" + path("nothing"), "--load=" + path("no")},
       "only one of them"},
      {training({"--load=" + path("corpus")}), "holds no checkpoint"},
      {training({"--save=" + path("m")}), "of another run"},
      {training({"--save=/dev/null/x"}), "/dev/null/x"},
      {training({"--metrics=" + path("no/such/m")}), "no/such/m"},
      {training({"--trace=" + path("corpus")}), "corpus"},
      {training({"--recompute=full*9"}), "full*9"},
      {training({"--memory-limit=10K"}), "--memory-limit is 10.0 KiB"},
      {training({"--tokens-per-batch=1000000000"}), "from 1 to 268435456"},
      {training({"--tokens-per-batch=268435456", "--memory-limit=1G"}),
       "lower --tokens-per-batch"},
      {training({"--isa=future"}), "--isa=future needs"},
      {training({"--held-out-fraction=0.9999"}), "--held-out-fraction"},
      {training({"--long-documents=error"}), "positions"},
      {training({"--lr=1e5", "--clip=0", "--weight-decay=1e5", "--warmup=0",
                 "--steps=200"}),
       "diverged"},
  };
  for (const auto &[arguments, message] : cases) {
    Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << message << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
    std::string lines = result.err;
    lines.erase(0, lines.rfind("dyna_tiny_train: "));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << result.err;
  }
}

// What diverges keeps what it had, and says where; its metrics stay JSON.
TEST_F(TrainProgramTest, DivergenceSavesTheLastFiniteState) {
  std::vector<std::string> wild = {"--lr=1e5", "--clip=0", "--weight-decay=1e5",
                                   "--warmup=0", "--schedule=constant"};
  auto training = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), wild.begin(), wild.end());
    return this->training(flags);
  };
  Result result = run(training(
      {"--steps=200", "--save=" + path("d"), "--metrics=" + path("d.jsonl")}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("is not finite: training diverged"));
  std::ifstream metrics(path("d.jsonl"));
  int64_t lines = 0;
  std::string last;
  for (std::string line; std::getline(metrics, line); ++lines) {
    auto json = parseJson(line);
    ASSERT_TRUE(json.isOk()) << line;
    last = line;
  }
  EXPECT_THAT(last, HasSubstr("null"));
  ASSERT_GT(lines, 1);
  std::string steps = std::to_string(lines - 1);
  EXPECT_THAT(result.err, HasSubstr("the run up to step " + steps));
  // As if it had ended there.
  EXPECT_EQ(run(training({"--steps=" + steps, "--save=" + path("whole")})).code,
            0);
  expectSame("d/step-" + steps, "whole/step-" + steps);
  // Some steps may be passed over; here each after the first is like it.
  Result skips = run(training(
      {"--steps=200", "--skip-nonfinite=3", "--metrics=" + path("s.jsonl")}));
  EXPECT_EQ(skips.code, 2);
  EXPECT_THAT(skips.err, HasSubstr("warning: step " + std::to_string(lines) +
                                   " is skipped"));
  EXPECT_THAT(skips.err, HasSubstr("(3 of 3)"));
  EXPECT_EQ(numbers("s.jsonl", "step").size(), static_cast<size_t>(lines + 3));
}

// A log costs no training, on a full disk either.
TEST_F(TrainProgramTest, MetricsThatCannotBeWrittenCostNoTraining) {
  Result result =
      run(training({"--steps=5", "--save=" + path("m"), "--metrics=/dev/full",
                    "--held-out-fraction=0.2"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("warning: cannot write /dev/full"));
  EXPECT_THAT(result.err, HasSubstr("the model is in " + path("m/step-5")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2)
      << result.err;
  ASSERT_EQ(run(training({"--steps=5", "--save=" + path("whole"),
                          "--held-out-fraction=0.2"}))
                .code,
            0);
  expectSame("m/step-5", "whole/step-5");
}

TEST_F(TrainProgramTest, SavesByTime) {
  pid_t child = start(training({"--steps=100000", "--schedule=constant",
                                "--save-every=1s", "--save=" + path("timed")}),
                      {"TINY_SLEEP=2"});
  waitFor(child, [&] {
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(path("timed"), ignored))
      if (entry.path().filename().string().rfind("step-", 0) == 0)
        return true;
    return false;
  });
  kill(child, SIGKILL);
  finish(child);
}

TEST_F(TrainProgramTest, CheckpointsOfOtherModelsAreRefused) {
  ASSERT_EQ(
      run(training({"--steps=2", "--save=" + path("m")}), {"TINY_BLOCKS=4"})
          .code,
      0);
  for (const char *flag : {"--load=", "--resume="}) {
    Result result = run(
        training({"--steps=9", flag + path("m"), "--metrics=" + path("j")}));
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("h.3."));
    // What differs between the runs is of no interest then.
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_FALSE(fileExists(path("j")));
  }
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
