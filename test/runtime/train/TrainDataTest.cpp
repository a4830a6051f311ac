//===- TrainDataTest.cpp - Runs on data from elsewhere --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

#include "runtime/base/text/Text.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainDataTest : public TrainProgram {
protected:
  std::vector<std::string> on(const std::string &data,
                              std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = training(std::move(more));
    arguments[0] = "--data=" + data;
    return arguments;
  }
};

// A step takes all samples, so that its targets are those of the data.
TEST_F(TrainDataTest, ConversationsAreInTheLossWhereTheAssistantSpeaks) {
  std::ofstream(path("chat.jsonl"))
      << "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, "
         "{\"role\": \"assistant\", \"content\": \"Hello\"}]}\n"
         "{\"messages\": [{\"role\": \"user\", \"content\": \"Bye\"}, "
         "{\"role\": \"assistant\", \"content\": \"\"}, "
         "{\"role\": \"user\", \"content\": \"Bye\"}]}\n";
  Result result =
      run(on(path("chat.jsonl"), {"--steps=1", "--metrics=" + path("m.jsonl"),
                                  "--tokens-per-batch=100"}));
  ASSERT_EQ(result.code, 0) << result.err;
  // "<|im_end|>" and its line break have 11 bytes. The tiny model has 64 positions and
  // a vocabulary with an end of documents.
  const double first = 5 + 11 + 1, second = 11;
  const double targets = numbers("m.jsonl", "targets").at(0);
  EXPECT_TRUE(targets == first || targets == second ||
              targets == first + second)
      << targets;
}

TEST_F(TrainDataTest, MembersByOtherNames) {
  std::ofstream(path("rows.jsonl"))
      << "{\"instruction\": \"Add\", \"input\": \"1 2\", \"output\": \"3\"}\n"
         "{\"instruction\": \"Say\", \"input\": \"\", \"output\": \"x\"}\n";
  const std::string fields = "--fields=input=instruction+input,target=output";
  Result result = run(on(path("rows.jsonl"),
                         {"--steps=2", fields, "--metrics=" + path("m.jsonl"),
                          "--save=" + path("m"), "--tokens-per-batch=14"}));
  ASSERT_EQ(result.code, 0) << result.err;
  // "Add\n1 2\n3" and "Say\nx", each with two targets.
  EXPECT_EQ(numbers("m.jsonl", "tokens").at(0), 9 + 5);
  // The names belong to the run.
  Result resumed = run({"--resume=" + path("m"), "--steps=3"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  Result other = run({"--resume=" + path("m"), "--steps=4",
                      "--fields=input=instruction,target=output"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("the data changed"));

  Result bad = run(on(path("rows.jsonl"), {"--fields=input=a"}));
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("--fields names an input, but no target"));
  Result none = run(on(path("rows.jsonl"), {"--fields=text=body"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("rows.jsonl:1: has no \"body\""));
  Result skipped =
      run(on(path("rows.jsonl"),
             {"--fields=input=input,target=none", "--skip-bad-lines=1"}));
  EXPECT_EQ(skipped.code, 2);
  EXPECT_THAT(skipped.err, HasSubstr("more bad lines than --skip-bad-lines"));
}

// More files than a process may have open.
TEST_F(TrainDataTest, AnyNumberOfFiles) {
  fs::create_directories(path("many"));
  std::string command = "ulimit -n 64; exec \"$0\" \"$@\"";
  std::vector<std::string> arguments = {"/bin/sh", "-c", command,
                                        TINY_TRAIN_PATH};
  for (int i = 0; i < 500; ++i) {
    const std::string file = path(formatText("many/%d.jsonl", i));
    std::ofstream(file) << formatText("{\"text\": \"number %d\"}\n", i);
    arguments.push_back("--data=" + file);
  }
  for (const char *more :
       {"--steps=20", "--tokens-per-batch=500", "--threads=1", "--no-progress"})
    arguments.push_back(more);
  arguments.push_back("--metrics=" + path("m.jsonl"));
  Result result = finish(startProgram(arguments));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(numbers("m.jsonl", "loss").size(), 20u);
}

// A run in shards is that of one file, and each resumes the other.
TEST_F(TrainDataTest, CheckpointsInShardsResume) {
  auto trained = [&](const std::string &name, const char *steps,
                     std::vector<std::string> more = {}) {
    more.insert(more.end(), {std::string("--steps=") + steps,
                             "--schedule-steps=6", "--save=" + path(name)});
    return run(training(more)).code;
  };
  ASSERT_EQ(trained("whole", "6"), 0);
  ASSERT_EQ(trained("shards", "3", {"--max-shard-size=2KiB"}), 0);
  EXPECT_FALSE(fileExists(path("shards/step-3/model.safetensors")));
  EXPECT_TRUE(fileExists(path("shards/step-3/model.safetensors.index.json")));
  // The size goes with the run; another one may be given.
  ASSERT_EQ(run({"--resume=" + path("shards"), "--steps=5"}).code, 0);
  EXPECT_TRUE(fileExists(path("shards/step-5/model.safetensors.index.json")));
  ASSERT_EQ(
      run({"--resume=" + path("shards"), "--steps=6", "--max-shard-size=0"})
          .code,
      0);
  expectSame("shards/step-6", "whole/step-6");
  Result loaded =
      run({"--evaluate", "--load=" + path("shards/step-5"), "--data",
           path("corpus"), "--threads=1", "--no-progress"});
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  Result bad = run(training({"--max-shard-size=much"}));
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("--max-shard-size: expects bytes"));
}

// A name of a file may be any bytes, for which JSON has no string.
TEST_F(TrainDataTest, NamesThatAreNoTextResume) {
  const std::string data = path("d\xff\"\xc3"), held = path("h\xfe");
  fs::rename(path("corpus"), data);
  fs::copy(data, held, fs::copy_options::recursive);
  Result first =
      run(on(data, {"--steps=2", "--save=" + path("m"), "--held-out=" + held}));
  ASSERT_EQ(first.code, 0) << first.err;
  Result resumed = run({"--resume=" + path("m"), "--steps=3"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(fileExists(path("m/step-3")));
  // What is no list of bytes is no argument.
  const std::string state = *readFile(path("m/step-3/state.json"));
  const size_t at = state.find("{\"hex\": \"");
  ASSERT_NE(at, std::string::npos) << state;
  for (const char *hex : {"{\"hex\": \"x", "{\"hex\": \"0", "{\"hxx\": \""}) {
    std::string other = state;
    other.replace(at, 9, hex);
    StatusOr<RunState> read = RunState::fromJson(other);
    EXPECT_FALSE(read.isOk()) << hex;
    EXPECT_THAT(read.status().message(), HasSubstr("\"arguments\""));
  }
}

} // namespace
