//===- TrainProgram.h - Whole runs, as users start them ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRAIN_TRAINPROGRAM_H
#define DYNA_TEST_RUNTIME_TRAIN_TRAINPROGRAM_H

#include "runtime/abi/Random.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/train/session/Checkpointing.h"
#include "test/Patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dyna::test {

using testing::HasSubstr;
namespace fs = std::filesystem;

struct Result {
  int code = -1;
  std::string out, err;
};

class TrainProgram : public testing::Test {
protected:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;
  static constexpr auto patience = kPatience;

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

  /// Expects finite numbers that differ by at most 1e-10 of the largest one.
  static void expectNear(const std::vector<double> &a,
                         const std::vector<double> &b) {
    ASSERT_EQ(a.size(), b.size());
    double most = 0, scale = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(std::isfinite(a[i]) && std::isfinite(b[i])) << i;
      most = std::max(most, std::abs(a[i] - b[i]));
      scale = std::max(scale, std::abs(a[i]));
    }
    EXPECT_LE(most, 1e-10 * scale);
  }

  pid_t start(std::vector<std::string> arguments,
              std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), TINY_TRAIN_PATH);
    return startProgram(std::move(arguments), std::move(environment));
  }

  /// The first argument is the program. Returns once the child runs it. Until then the
  /// child has the signal handlers of this process, some of which tests in this process
  /// have installed.
  pid_t startProgram(std::vector<std::string> arguments,
                     std::vector<std::string> environment = {}) const {
    int ends[2]; // closed in the child by execv
    if (pipe2(ends, O_CLOEXEC) != 0) {
      ADD_FAILURE() << "no pipe";
      return -1;
    }
    pid_t child = fork();
    if (child != 0) {
      close(ends[1]);
      char byte;
      (void)!read(ends[0], &byte, 1);
      close(ends[0]);
      return child;
    }
    for (auto [name, descriptor] : {std::pair("out", 1), std::pair("err", 2)}) {
      int file = open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(file, descriptor);
    }
    for (std::string &variable : environment)
      putenv(variable.data());
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
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

  /// Waits until `folder` has a checkpoint of step `wanted`, or of one of the next 20.
  bool waitForSave(pid_t child, const char *folder, int64_t wanted) const {
    return waitFor(child, [&] {
      for (int64_t step = wanted; step < wanted + 20; ++step)
        if (fs::exists(folder_ / folder / ("step-" + std::to_string(step)) /
                       "state.json"))
          return true;
      return false;
    });
  }

  /// Returns the bytes of a part of parameter `p`, put together from all ranks.
  static std::vector<uint8_t> readBytes(RankTeam &ranks, int p,
                                        ParameterPart part) {
    std::vector<uint8_t> bytes(static_cast<size_t>(ranks.partBytes(p, part)));
    if (!bytes.empty())
      EXPECT_TRUE(
          ranks.readRows(p, part, {0, ranks.model().rows(p)}, bytes.data())
              .isOk());
    return bytes;
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
    return isInMask(child, "SigCgt:", SIGTERM);
  }

  /// Whether `signal` was sent to the program and is not delivered yet.
  static bool isPending(pid_t child, int signal) {
    return isInMask(child, "ShdPnd:", signal);
  }

  static bool isInMask(pid_t child, const std::string &mask, int signal) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind(mask, 0) == 0)
        return std::stoull(line.substr(mask.size()), nullptr, 16) >>
                   (signal - 1) &
               1;
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

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_TRAIN_TRAINPROGRAM_H
