//===- TrainEvaluationTest.cpp - Held-out losses during runs --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

#include "runtime/base/text/Text.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainEvaluationTest : public TrainProgram {
protected:
  /// A run of nine steps that evaluates after every second one.
  std::vector<std::string> curved(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "--held-out-fraction=0.3", "--evaluate-every=2", "--schedule-steps=9"};
    for (const std::string &argument : more)
      if (argument.rfind("--save=", 0) == 0)
        arguments.push_back("--save-every=1");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return training(arguments);
  }

  /// What each line of metrics says without its times: "KIND STEP LOSS", with all
  /// digits of the loss.
  std::vector<std::string> lines(const std::string &file) const {
    std::ifstream text(path(file));
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line);) {
      auto json = parseJson(line);
      EXPECT_TRUE(json.isOk()) << line;
      const JsonValue *point = json->find("held_out_loss");
      const JsonValue *end = json->find("held_out");
      result.push_back(
          formatText("%s %d %.17g",
                     point ? "curve"
                     : end ? end->text
                           : "step",
                     *json->findInteger("step"),
                     (point ? point : json->find("loss"))->number));
    }
    return result;
  }

  /// Those lines without losses.
  std::vector<std::string> kinds(const std::string &file) const {
    std::vector<std::string> result;
    for (const std::string &line : lines(file))
      result.push_back(line.substr(0, line.rfind(' ')));
    return result;
  }
};

TEST_F(TrainEvaluationTest, WritesACurveUnderItsOwnKey) {
  Result result =
      run(curved({"--steps=5", "--metrics=" + path("m.jsonl"), "--seed=3"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(kinds("m.jsonl"),
            (std::vector<std::string>{"curve 0", "start 0", "step 1", "step 2",
                                      "curve 2", "step 3", "step 4", "curve 4",
                                      "step 5", "end 5"}));
  // What a run of so many steps ends with.
  for (const char *steps : {"2", "4"}) {
    ASSERT_EQ(run(curved({std::string("--steps=") + steps, "--seed=3",
                          "--metrics=" + path("short.jsonl")}))
                  .code,
              0);
    const std::string end = lines("short.jsonl").back();
    EXPECT_THAT(lines("m.jsonl"),
                testing::Contains("curve" + end.substr(end.find(' '))));
  }
  // It is told, too, unless nothing is to be.
  EXPECT_EQ(result.err, "");
  std::vector<std::string> told = curved({"--steps=3"});
  told.erase(std::find(told.begin(), told.end(), "--no-progress"));
  EXPECT_THAT(run(told).err, HasSubstr("step 2: held-out loss "));
}

TEST_F(TrainEvaluationTest, ChangesNoNumberOfTraining) {
  for (const char *more : {"", "--plan-ahead=0", "--strategy=dp=2,zero=1"}) {
    auto trained = [&](const std::string &name, const std::string &every) {
      std::vector<std::string> arguments = training(
          {"--steps=6", "--held-out-fraction=0.3", "--evaluate-every=" + every,
           "--save=" + path(name), "--metrics=" + path(name + ".jsonl"),
           "--counts=" + path(name + ".json")});
      if (*more)
        arguments.push_back(more);
      return run(arguments);
    };
    fs::remove_all(path("a"));
    fs::remove_all(path("b"));
    Result plain = trained("a", "0"), curve = trained("b", "1");
    ASSERT_EQ(plain.code, 0) << plain.err;
    ASSERT_EQ(curve.code, 0) << curve.err;
    expectSame("a/step-6", "b/step-6");
    EXPECT_EQ(*readFile(path("a.json")), *readFile(path("b.json")));
    for (const char *key :
         {"loss", "gradient_norm", "learning_rate", "peak_bytes"})
      EXPECT_EQ(numbers("a.jsonl", key), numbers("b.jsonl", key)) << key;
    EXPECT_EQ(numbers("a.jsonl", "held_out_loss").size(), 0u);
    EXPECT_EQ(numbers("b.jsonl", "held_out_loss").size(), 7u);
  }
}

// Wherever a run is killed, and however often.
TEST_F(TrainEvaluationTest, KilledRunsWriteTheSameLines) {
  ASSERT_EQ(run(curved({"--steps=9", "--metrics=" + path("whole.jsonl")})).code,
            0);
  const std::vector<std::string> whole = lines("whole.jsonl");
  ASSERT_EQ(whole.size(), 16u);
  int killed = 0;
  for (int round = 0; round < 8; ++round) {
    fs::remove_all(path("m"));
    std::vector<std::string> arguments = curved(
        {"--steps=9", "--save=" + path("m"), "--metrics=" + path("m.jsonl")});
    pid_t child = start(arguments);
    waitFor(child, [&] { return fileExists(path("m/step-1")); });
    usleep(static_cast<useconds_t>(dyna_mix64(round) % 20000));
    kill(child, round % 2 ? SIGKILL : SIGTERM);
    const Result ended = finish(child);
    if (ended.code == 0)
      continue; // it was done before
    ++killed;
    Result resumed =
        run({"--resume=" + path("m"), "--metrics=" + path("m.jsonl")});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(lines("m.jsonl"), whole) << round;
  }
  EXPECT_GT(killed, 0);
}

// The point of the step that was saved is missing if the run was killed in it.
TEST_F(TrainEvaluationTest, AMissingPointIsWritten) {
  ASSERT_EQ(run(curved({"--steps=9", "--metrics=" + path("whole.jsonl"),
                        "--save=" + path("whole"), "--keep=9"}))
                .code,
            0);
  const std::vector<std::string> whole = lines("whole.jsonl");
  const std::string text = *readFile(path("whole.jsonl"));
  for (int step : {3, 4}) {
    const std::string behind = formatText("\n{\"step\": %d, \"loss\"", step);
    for (bool keepsStep : {false, true}) {
      // Up to that step's line, with it or without what comes behind.
      size_t end = text.find(behind) + 1;
      if (keepsStep)
        end = text.find('\n', end) + 1;
      std::ofstream(path("m.jsonl")) << text.substr(0, end);
      fs::remove_all(path("m"));
      fs::create_directories(path("m"));
      const std::string name =
          formatText("/step-%d", keepsStep ? step : step - 1);
      fs::copy(path("whole") + name, path("m") + name,
               fs::copy_options::recursive);
      Result resumed =
          run({"--resume=" + path("m"), "--metrics=" + path("m.jsonl")});
      ASSERT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_EQ(lines("m.jsonl"), whole) << step << keepsStep;
    }
  }
}

// A run that ended at its own last step has a line of its end more.
TEST_F(TrainEvaluationTest, AContinuedRunHasTheSameCurve) {
  ASSERT_EQ(run(curved({"--steps=9", "--metrics=" + path("whole.jsonl")})).code,
            0);
  for (int first : {3, 4}) {
    fs::remove_all(path("m"));
    ASSERT_EQ(
        run(curved({formatText("--steps=%d", first), "--save=" + path("m"),
                    "--metrics=" + path("m.jsonl")}))
            .code,
        0);
    ASSERT_EQ(run({"--resume=" + path("m"), "--steps=9",
                   "--metrics=" + path("m.jsonl")})
                  .code,
              0);
    std::vector<std::string> joined = lines("m.jsonl");
    const auto end =
        std::find_if(joined.begin(), joined.end(), [&](const auto &line) {
          return line.rfind(formatText("end %d ", first), 0) == 0;
        });
    ASSERT_NE(end, joined.end());
    joined.erase(end);
    EXPECT_EQ(joined, lines("whole.jsonl")) << first;
  }
}

// Held-out data that can no longer be read do not cost what was trained.
TEST_F(TrainEvaluationTest, ChangedDataSaveTheRun) {
  fs::create_directories(path("held"));
  std::ofstream(path("held/a")) << "what is held out, in words";
  pid_t child = start(training(
      {"--steps=100000", "--evaluate-every=5", "--held-out=" + path("held"),
       "--save=" + path("m"), "--metrics=" + path("m.jsonl")}));
  waitFor(child, [&] {
    StatusOr<std::string> text = readFile(path("m.jsonl"));
    return text.isOk() &&
           text->find("\"step\": 5, \"held_out_loss\"") != std::string::npos;
  });
  std::ofstream(path("held/a"), std::ios::app) << ", and more";
  Result ended = finish(child);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("held/a has become longer"));
  EXPECT_THAT(ended.err, HasSubstr("the run up to step "));
  const size_t lines = numbers("m.jsonl", "gradient_norm").size();
  EXPECT_TRUE(fileExists(path(formatText("m/step-%d", lines))));
}

TEST_F(TrainEvaluationTest, NeedsWhatIsHeldOut) {
  Result result = run(training({"--steps=2", "--evaluate-every=1"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("--evaluate-every has nothing to evaluate"));
  EXPECT_EQ(run(curved({"--steps=2", "--evaluate-every=-1"})).code, 2);
}

} // namespace
