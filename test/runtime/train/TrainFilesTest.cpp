//===- TrainFilesTest.cpp - What runs read and write ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainFilesTest : public TrainProgram {};

TEST_F(TrainFilesTest, OutputsAreNoInputs) {
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
  EXPECT_THAT(below.err, HasSubstr("into the folder of data"));
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

// A program that runs cannot be written into, but it can be replaced.
TEST_F(TrainFilesTest, ProgramAndModelAreNotOverwritten) {
  fs::copy_file(TINY_TRAIN_PATH, path("program"));
  fs::create_hard_link(path("program"), path("linked"));
  ASSERT_EQ(run(training({"--steps=1", "--save=" + path("s")})).code, 0);
  fs::create_directories(path("hf"));
  fs::copy_file(path("s/step-1/model.safetensors"),
                path("hf/model.safetensors"));
  std::ofstream(path("hf/config.json")) << "{}";
  auto start = [&](std::vector<std::string> more) {
    std::vector<std::string> all = training(more);
    all.insert(all.begin(), path("program"));
    return finish(startProgram(all));
  };
  for (std::string flag :
       {"--metrics", "--trace", "--counts", "--print-grad-norms"}) {
    for (const char *name : {"program", "linked", "./program"}) {
      Result result = start({"--steps=1", flag + "=" + path(name)});
      EXPECT_EQ(result.code, 2) << flag << name;
      EXPECT_THAT(result.err,
                  HasSubstr(flag + " would write over " + path(name) +
                            ", which is this program"));
    }
    for (const char *name : {"hf/model.safetensors", "hf/config.json"}) {
      std::string before = *readFile(path(name));
      Result result =
          start({"--steps=1", "--load=" + path("hf"), flag + "=" + path(name)});
      EXPECT_EQ(result.code, 2) << flag << name;
      EXPECT_THAT(result.err, HasSubstr("which is part of the model of"));
      EXPECT_EQ(*readFile(path(name)) == before, true) << flag << name;
    }
  }
  EXPECT_EQ(fs::file_size(path("program")), fs::file_size(TINY_TRAIN_PATH));
  EXPECT_EQ(start({"--steps=1", "--load=" + path("hf"),
                   "--metrics=" + path("hf/log.jsonl")})
                .code,
            0);
}

TEST_F(TrainFilesTest, NothingIsWrittenIntoCheckpointsOrData) {
  ASSERT_EQ(run(training({"--steps=1", "--save=" + path("s")})).code, 0);
  std::string step = path("s/step-1"), model = step + "/model.safetensors";
  std::string before = *readFile(model);
  for (std::string flag :
       {"--metrics", "--trace", "--counts", "--print-grad-norms"})
    for (const std::string &name : {model, step + "/state.json", step + "/new"})
      for (const std::vector<std::string> &flags :
           {training({"--steps=1", "--load=" + path("s")}),
            std::vector<std::string>{"--resume=" + path("s"), "--steps=2"}}) {
        std::vector<std::string> all = flags;
        all.push_back(flag + "=" + name);
        Result result = run(all);
        EXPECT_EQ(result.code, 2) << flag << name;
        EXPECT_THAT(result.err, HasSubstr("into a checkpoint"));
        EXPECT_EQ(*readFile(model), before) << flag << name;
      }
  // Beside the checkpoints logs are welcome.
  EXPECT_EQ(run({"--resume=" + path("s"), "--steps=2", "--no-progress",
                 "--metrics=" + path("s/log.jsonl")})
                .code,
            0);
  fs::create_directory_symlink(path("corpus"), path("alias"));
  for (std::string name : {"corpus/m", "corpus/new/m", "alias/m"})
    for (std::string flag : {"--metrics", "--save"}) {
      Result result = run(training({"--steps=1", flag + "=" + path(name)}));
      EXPECT_EQ(result.code, 2) << flag << name;
      EXPECT_THAT(result.err, HasSubstr("into the folder of data"));
      EXPECT_FALSE(fileExists(path(name))) << flag << name;
    }
}

// However a checkpoint is named, what follows comes to lie beside it.
TEST_F(TrainFilesTest, ResumedRunsSaveBesideTheirCheckpoint) {
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
TEST_F(TrainFilesTest, ACheckpointChoosesNoFileToWrite) {
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

TEST_F(TrainFilesTest, CraftedArgumentsAreNotObeyed) {
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

TEST_F(TrainFilesTest, TwoRunsDoNotShareFiles) {
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
  Result counts = run(training({"--steps=2", "--counts=" + path("m.jsonl")}));
  EXPECT_EQ(counts.code, 2);
  EXPECT_THAT(counts.err, HasSubstr("to which another run " + process));
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

TEST_F(TrainFilesTest, UserErrorsAreOneLineAndCode2) {
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
      {training({"--evaluate", "--save=" + path("e")}),
       "nothing for --save to write"},
      {training({"--evaluate", "--trace=" + path("e")}),
       "nothing for --trace to write"},
      {training({"--load=" + path("bad.jsonl")}),
       "bad.jsonl: it is no safetensors file"},
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
      {training({"--device=0"}), "--device is for programs of dynac "
                                 "--target=cuda: this one runs on the "
                                 "processor"},
      {training({"--tf32"}), "--tf32 is for programs of dynac --target=cuda"},
      {training({"--algorithms=" + path("a")}), "--algorithms is for programs"},
      {training({"--deterministic"}), "--deterministic is for programs"},
      {training({"--attention=cudnn"}), "--attention is for programs of dynac "
                                        "--target=cuda"},
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

TEST_F(TrainFilesTest, ADamagedListCostsNoRun) {
  for (const char *list : {"gone", "cut"}) {
    SCOPED_TRACE(list);
    fs::remove_all(path("m"));
    ASSERT_EQ(run(training({"--steps=4", "--save-every=2", "--schedule-steps=6",
                            "--save=" + path("m")}))
                  .code,
              0);
    if (list == std::string("gone"))
      fs::remove(path("m/step-4/checkpoint.json"));
    else
      fs::resize_file(path("m/step-4/checkpoint.json"), 30);
    Result result =
        run({"--resume=" + path("m"), "--steps=6", "--no-progress"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("using " + path("m/step-2") + " instead"));
    EXPECT_THAT(result.err,
                HasSubstr(path("m/step-4") + " was damaged and is now " +
                          path("m/step-4-damaged")));
    fs::remove_all(path("whole"));
    ASSERT_EQ(run(training({"--steps=6", "--save=" + path("whole")})).code, 0);
    expectSame("m/step-6", "whole/step-6");
  }
}

TEST_F(TrainFilesTest, AFolderThatIsTakenAwayCostsNoSave) {
  pid_t child =
      start(training({"--steps=2000", "--save-every=1", "--save=" + path("m")}),
            {"TINY_SLEEP=5"});
  auto isSaved = [&] {
    return fileExists(path("m")) && !fs::is_empty(path("m"));
  };
  waitFor(child, isSaved);
  // It may be writing there at this moment.
  fs::rename(path("m"), path("away"));
  waitFor(child, isSaved);
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("was removed during the run"));
  EXPECT_EQ(run({"--evaluate", "--load=" + path("m"),
                 "--data=" + path("corpus"), "--no-progress"})
                .code,
            0);
}

// A log costs no training, on a full disk either.
TEST_F(TrainFilesTest, MetricsThatCannotBeWrittenCostNoTraining) {
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

TEST_F(TrainFilesTest, MetricsThatAreTakenAwayAreSaid) {
  for (const char *how : {"removed", "replaced"}) {
    std::string log = path(std::string(how) + ".jsonl");
    pid_t child = start(training({"--steps=1000000", "--metrics=" + log}),
                        {"TINY_SLEEP=2"});
    auto isLogged = [&] {
      return fileExists(log) && fs::file_size(log) > 4000;
    };
    ASSERT_TRUE(waitFor(child, isLogged));
    std::ofstream(log + ".new") << "{}\n";
    if (how == std::string("removed"))
      fs::remove(log);
    else
      fs::rename(log + ".new", log);
    ASSERT_TRUE(waitFor(child, isLogged));
    kill(child, SIGTERM);
    Result result = finish(child);
    EXPECT_EQ(result.code, 128 + SIGTERM) << result.err;
    size_t at = result.err.find("warning: " + log + " was " + how);
    EXPECT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("warning: " + log, at + 1), std::string::npos);
    std::vector<double> steps = numbers(std::string(how) + ".jsonl", "step");
    ASSERT_GT(steps.size(), 1u);
    EXPECT_GT(steps[0], 1); // what was there before is gone with the file
    EXPECT_EQ(steps.back() - steps[0], static_cast<double>(steps.size() - 1));
  }
}

// Who names a pipe has made a mistake, or has not started its other end yet.
TEST_F(TrainFilesTest, PipesAreNotWaitedFor) {
  std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char *flag :
       {"--metrics", "--trace", "--counts", "--print-grad-norms"}) {
    Result result = run(training({"--steps=1", flag + ("=" + pipe)}));
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr("a pipe that nobody reads; start"));
    EXPECT_EQ(result.out, "");
  }
  for (const char *flag :
       {"--data", "--held-out", "--load", "--costs", "--resume"}) {
    Result result = run({"--data=" + path("corpus"), "--strategy=pp=2",
                         "--no-progress", flag + ("=" + pipe)});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(pipe)) << flag;
    EXPECT_THAT(result.err, HasSubstr("regular file")) << flag;
  }
  // A reader sees all of it, and no end before it.
  for (const char *flag : {"--metrics", "--trace"}) {
    int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    Result result = run(training({"--steps=1", flag + ("=" + pipe)}));
    EXPECT_EQ(result.code, 0) << result.err;
    char first = 0;
    EXPECT_EQ(read(reader, &first, 1), 1);
    close(reader);
  }
}

// A reader that goes away costs its output, no training.
TEST_F(TrainFilesTest, ReadersThatLeaveEndNoRun) {
  std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  pid_t child = start(training(
      {"--steps=1000000", "--metrics=" + pipe, "--save=" + path("m")}));
  char line;
  waitFor(child, [&] { return read(reader, &line, 1) == 1; });
  close(reader);
  waitFor(child, [&] {
    auto err = readFile(path("err"));
    return err.isOk() &&
           err->find("warning: cannot write") != std::string::npos;
  });
  kill(child, SIGTERM);
  Result result = finish(child);
  EXPECT_EQ(result.code, 2) << result.err; // lines are missing
  EXPECT_THAT(result.err, HasSubstr("Broken pipe"));
  EXPECT_FALSE(fs::is_empty(path("m")));
}

// Names come from archives, too.
TEST_F(TrainFilesTest, NamesDoNotControlTheTerminal) {
  const std::string evil = "\x1b]0;title\x07\x1b[2J\nfatal: all is lost";
  const std::string shown = "\\x1b]0;title\\x07\\x1b[2J\\nfatal: all is lost";
  for (const char *flag :
       {"--data", "--load", "--costs", "--metrics", "--lr", "--resume"}) {
    Result result = run({"--data=" + path("corpus"), "--strategy=pp=2",
                         "--no-progress", flag + ("=/none/" + evil)});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(shown)) << flag;
    EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << flag;
  }
  // What a run saves to, goes on from and passes over.
  ASSERT_EQ(run(training({"--steps=1", "--save=" + path(evil)})).code, 0);
  ASSERT_EQ(run({"--resume=" + path(evil), "--steps=2"}).code, 0);
  std::ofstream(path(evil) + "/step-2/state.json") << "{";
  Result result = run({"--resume=" + path(evil), "--steps=3"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(shown + "/step-2 is damaged"));
  EXPECT_THAT(result.out, HasSubstr(shown + "/step-3"));
  for (const std::string &text : {result.err, result.out})
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

// As on machines where a folder for results is a link to a large disk.
TEST_F(TrainFilesTest, SaysWhereALinkLeads) {
  fs::create_directory(path("disk"));
  fs::create_directory_symlink("disk", path("results"));
  Result result = run(training({"--steps=1", "--save=" + path("results")}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: --save " + path("results") +
                                    " is a symbolic link: checkpoints go to "));
  EXPECT_TRUE(fs::exists(path("disk/step-1")));
}

} // namespace
