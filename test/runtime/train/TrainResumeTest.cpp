//===- TrainResumeTest.cpp - Runs that end early and go on ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainResumeTest : public TrainProgram {};

TEST_F(TrainResumeTest, ResumingIsBitwiseTheSame) {
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

TEST_F(TrainResumeTest, ChangedFlagsAreWarnedAbout) {
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

TEST_F(TrainResumeTest, SignalsFinishTheStepAndSave) {
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

TEST_F(TrainResumeTest, ASecondSignalEndsAtOnce) {
  pid_t child =
      start(training({"--steps=100"}),
            {"TINY_SLEEP=3600000", "TINY_SLEEP_MARK=" + path("in-first-step")});
  waitFor(child, [&] { return fileExists(path("in-first-step")); });
  kill(child, SIGTERM);
  while (isPending(child, SIGTERM))
    usleep(500);
  usleep(1100000);
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM);
  EXPECT_EQ(result.out, ""); // no summary, as of a run that ends in peace
  EXPECT_THAT(result.err, HasSubstr("ended at once by a second signal"));
}

// As `timeout` and launchers send it: to the process and to its group.
TEST_F(TrainResumeTest, OneWishInSeveralSignalsIsOne) {
  Deadline deadline = Clock::now() + patience;
  while (true) {
    fs::remove(path("m.jsonl"));
    fs::remove_all(path("stopped"));
    pid_t child = start(training({"--steps=2000", "--save=" + path("stopped"),
                                  "--metrics=" + path("m.jsonl")}),
                        {"TINY_SLEEP=20"});
    waitFor(child, [&] {
      return fileExists(path("m.jsonl")) && fs::file_size(path("m.jsonl")) > 0;
    });
    Deadline first = Clock::now();
    kill(child, SIGTERM);
    // Of several that wait, the system delivers the smallest number first.
    while (isPending(child, SIGTERM))
      usleep(500);
    kill(child, SIGTERM);
    kill(child, SIGINT);
    Result result = finish(child);
    // A machine that stood still has made several wishes of them.
    if (Clock::now() - first >= std::chrono::seconds(1) &&
        Clock::now() < deadline)
      continue;
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
    // It keeps signals until a safe moment, and hands them on by their numbers.
    if (result.code == 128 + SIGINT)
      result.code = 128 + SIGTERM;
#endif
#endif
    EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
    EXPECT_THAT(result.out, HasSubstr("stopped by a signal after step "));
    return;
  }
}

TEST_F(TrainResumeTest, KillsLeaveALoadableCheckpoint) {
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

// A killed run has written further than it has saved, and half a line.
TEST_F(TrainResumeTest, ResumingCutsTheMetricsAfterTheCheckpoint) {
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
            (std::vector<double>{0, 1, 2, 3, 4, 4, 5, 6, 7, 7}));
}

// A kill in the last evaluation leaves a run that is saved, but not its line.
TEST_F(TrainResumeTest, AnEvaluationThatWasKilledIsDone) {
  ASSERT_EQ(
      run(training({"--steps=3", "--save=" + path("m"),
                    "--metrics=" + path("m.jsonl"), "--held-out-fraction=0.3"}))
          .code,
      0);
  const std::string whole = *readFile(path("m.jsonl"));
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  ASSERT_THAT(whole.substr(last), HasSubstr("\"held_out\": \"end\""));
  const std::vector<double> losses = numbers("m.jsonl", "loss");
  fs::resize_file(path("m.jsonl"), last);
  // What the last save has left goes, too.
  fs::create_directories(path("m/.dyna-tmp-old-2"));
  std::ofstream(path("m/.dyna-tmp-old-2/dyna-unfinished"));
  Result left = run({"--resume=" + path("m"), "--no-progress",
                     "--metrics=" + path("m.jsonl")});
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_THAT(left.out, HasSubstr("only the evaluation behind them is left"));
  EXPECT_THAT(left.out, HasSubstr("held-out loss"));
  EXPECT_EQ(numbers("m.jsonl", "loss"), losses);
  EXPECT_THAT(*readFile(path("m.jsonl")),
              HasSubstr("{\"held_out\": \"end\", \"step\": 3,"));
  EXPECT_FALSE(fileExists(path("m/.dyna-tmp-old-2")));
  EXPECT_TRUE(fileExists(path("m/step-3/checkpoint.json")));

  fs::create_directories(path("m/.dyna-tmp-old-2"));
  std::ofstream(path("m/.dyna-tmp-old-2/dyna-unfinished"));
  const std::string done = *readFile(path("m.jsonl"));
  Result again = run({"--resume=" + path("m"), "--metrics=" + path("m.jsonl")});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("nothing is left to do"));
  EXPECT_EQ(*readFile(path("m.jsonl")), done);
  EXPECT_FALSE(fileExists(path("m/.dyna-tmp-old-2")));
}

// The first signal is to end the evaluation, not the process.
TEST_F(TrainResumeTest, ASignalDuringAnEvaluationIsSaid) {
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

TEST_F(TrainResumeTest, StatesAreOfTheirCheckpointsStep) {
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

TEST_F(TrainResumeTest, MoreSkippedStepsThanStepsAreNotBelieved) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::string state = *readFile(path("m/step-2/state.json"));
  std::string list = *readFile(path("m/step-2/checkpoint.json"));
  size_t at = state.find("\"skipped\": 0");
  ASSERT_NE(at, std::string::npos);
  for (const char *count : {"9223372036854775807", "3", "-1", "\"x\""}) {
    std::string other = state;
    rewriteState(path("m/step-2"),
                 other.replace(at, 12, std::string("\"skipped\": ") + count),
                 list);
    Result result = run({"--resume=" + path("m"), "--steps=3"});
    EXPECT_EQ(result.code, 2) << count;
    EXPECT_THAT(result.err, HasSubstr("skipped")) << count;
  }
}

// What cannot be counted further is refused, not counted past the end.
TEST_F(TrainResumeTest, NumbersAtTheirBoundsAreRefused) {
  ASSERT_EQ(run(training({"--steps=2", "--save=" + path("m")})).code, 0);
  std::string state = *readFile(path("m/step-2/state.json"));
  std::string list = *readFile(path("m/step-2/checkpoint.json"));
  auto put = [](std::string text, const std::string &key,
                const std::string &number) {
    size_t at = text.find("\"" + key + "\": ");
    EXPECT_NE(at, std::string::npos) << key;
    at += key.size() + 4;
    return text.replace(at, text.find_first_of(",}", at) - at, number);
  };
  for (std::string number :
       {"9223372036854775807", "9223372036854775806", "1152921504606846977"}) {
    for (const char *key : {"epoch", "place", "piece", "samples", "documents",
                            "epoch_samples", "skipped"}) {
      rewriteState(path("m/step-2"), put(state, key, number), list);
      Result result = run({"--resume=" + path("m"), "--steps=3"});
      EXPECT_EQ(result.code, 2) << key << result.out;
      EXPECT_THAT(result.err, HasSubstr("\"" + std::string(key) + "\""));
    }
    // The step stands at three places, which must agree.
    fs::create_directories(path("n"));
    fs::copy(path("m/step-2"), path("n/step-" + number));
    rewriteState(path("n/step-" + number), put(state, "step", number),
                 put(list, "step", number));
    for (const char *steps : {"--steps=3", "--steps=1000000000000"}) {
      Result result = run({"--resume=" + path("n"), steps});
      EXPECT_EQ(result.code, 2) << result.out;
      EXPECT_THAT(result.err, HasSubstr("state.json is of step " + number +
                                        ", but a run has at most "));
    }
    fs::remove_all(path("n"));
  }
}

TEST_F(TrainResumeTest, DataThatChangeDoNotCostTheSteps) {
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

TEST_F(TrainResumeTest, ChangedDataAreNotResumedWithUnasked) {
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

TEST_F(TrainResumeTest, LoadingStartsANewRun) {
  ASSERT_EQ(run(training({"--steps=30", "--save=" + path("a")})).code, 0);
  Result result = run(
      training({"--steps=2", "--load=" + path("a"), "--metrics=" + path("m")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_LT(numbers("m", "loss")[0], 5.0);
}

// What diverges keeps what it had, and says where; its metrics stay JSON.
TEST_F(TrainResumeTest, DivergenceSavesTheLastFiniteState) {
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
  // The number is the run's, however often it is resumed.
  Result stops = run(
      training({"--steps=200", "--skip-nonfinite=3", "--save=" + path("s")}));
  EXPECT_THAT(stops.err, HasSubstr("(3 of 3)"));
  Result again = run({"--resume=" + path("s"), "--no-progress"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("training diverged"));
  EXPECT_EQ(again.err.find("is skipped"), std::string::npos) << again.err;
  again = run({"--resume=" + path("s"), "--skip-nonfinite=4", "--no-progress"});
  EXPECT_THAT(again.err, HasSubstr("(4 of 4)"));
  // Nor does a smaller number than have been skipped skip all the rest.
  again = run({"--resume=" + path("s"), "--skip-nonfinite=1", "--no-progress"});
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.err.find("is skipped"), std::string::npos) << again.err;
}

// A run ends with the held-out loss that its continuation starts from.
TEST_F(TrainResumeTest, HeldOutLossesAreWrittenOnce) {
  auto flags = [&](const char *steps) {
    return training({"--held-out-fraction=0.3", "--schedule-steps=4",
                     "--metrics=" + path("m.jsonl"),
                     std::string("--steps=") + steps});
  };
  auto first = flags("2"), second = flags("4");
  first.push_back("--save=" + path("m"));
  second.push_back("--resume=" + path("m"));
  ASSERT_EQ(run(first).code, 0);
  Result result = run(second);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("held-out loss"));
  std::ifstream lines(path("m.jsonl"));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(lines, line);)
    if (auto json = parseJson(line); json.isOk() && json->find("held_out"))
      steps.push_back(*json->findInteger("step"));
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 2, 4}));
}

TEST_F(TrainResumeTest, SaysThatTheHeldOutDataHaveChanged) {
  fs::create_directories(path("held"));
  std::ofstream(path("held/a")) << "what is held out, in words";
  ASSERT_EQ(run(training({"--steps=1", "--held-out=" + path("held"),
                          "--save=" + path("m")}))
                .code,
            0);
  const char *words = "the held-out documents are not those of the saved run";
  Result same = run({"--resume=" + path("m"), "--steps=2"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.err.find(words), std::string::npos) << same.err;
  std::ofstream(path("held/a")) << "what is held out, in wordz";
  Result other = run({"--resume=" + path("m"), "--steps=3"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr(words));
}

// Whoever evaluates or trains on from such parameters learns why at once.
TEST_F(TrainResumeTest, SaysThatParametersAreNoNumbers) {
  ASSERT_EQ(run(training({"--steps=1", "--save=" + path("m")})).code, 0);
  fs::copy(path("m/step-1/model.safetensors"), path("good.safetensors"));
  std::string bytes = *readFile(path("good.safetensors"));
  const char *words = "holds values that are NaN or infinite (in '";
  // The last element, in f64: infinite, NaN.
  for (const char *end : {"\xf0\x7f", "\xf8\xff"}) {
    bytes.replace(bytes.size() - 8, 8, std::string(6, '\0') + end);
    std::ofstream(path("bad.safetensors"), std::ios::binary) << bytes;
    for (const char *flag : {"--evaluate", "--steps=1"}) {
      Result bad = run(training({"--load=" + path("bad.safetensors"), flag}));
      EXPECT_THAT(bad.err, HasSubstr(words)) << flag;
      Result good = run(training({"--load=" + path("good.safetensors"), flag}));
      EXPECT_EQ(good.code, 0) << good.err;
      EXPECT_EQ(good.err.find(words), std::string::npos) << flag;
    }
  }
}

TEST_F(TrainResumeTest, SavesByTime) {
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

TEST_F(TrainResumeTest, CheckpointsOfOtherModelsAreRefused) {
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

} // namespace
