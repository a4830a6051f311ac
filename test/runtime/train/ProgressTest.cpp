//===- ProgressTest.cpp - Progress, summary and metrics -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/Progress.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Text.h"
#include "runtime/train/loop/Summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>

using namespace dyna;

namespace {

TEST(ProgressTest, Durations) {
  EXPECT_EQ(Progress::formatDuration(0), "0:00");
  EXPECT_EQ(Progress::formatDuration(59.6), "1:00");
  EXPECT_EQ(Progress::formatDuration(3723), "1:02:03");
  EXPECT_EQ(Progress::formatDuration(-5), "0:00");
}

TEST(ProgressTest, StepsSayWhatMatters) {
  StepMetrics metrics;
  metrics.step = 3;
  metrics.loss = 2.5;
  metrics.tokens = 4096;
  metrics.seconds = 2;
  metrics.gflops = 400.25;
  EXPECT_EQ(Progress::formatStep(metrics, 10, 65),
            "step 3/10  loss 2.5000  2048 tok/s  400.2 GFLOP/s  1:05 left");
  metrics.predictedSeconds = 1.75;
  EXPECT_EQ(Progress::formatStep(metrics, 10, 65),
            "step 3/10  loss 2.5000  2048 tok/s  400.2 GFLOP/s  2.000 s "
            "(predicted 1.750)  1:05 left");
}

TEST(SummaryTest, DigitsInGroups) {
  EXPECT_EQ(groupDigits(0), "0");
  EXPECT_EQ(groupDigits(999), "999");
  EXPECT_EQ(groupDigits(1000), "1,000");
  EXPECT_EQ(groupDigits(1234567), "1,234,567");
  EXPECT_EQ(groupDigits(-123456), "-123,456");
}

TEST(MetricsTest, LinesAreJsonAndKeepEveryBit) {
  std::string path = testing::TempDir() + "/metrics-test.jsonl";
  std::remove(path.c_str());
  {
    auto file = MetricsFile::open(path);
    ASSERT_TRUE(file.isOk());
    StepMetrics metrics;
    metrics.step = 1;
    metrics.loss = 1.0 / 3;
    ASSERT_TRUE(file->write(metrics).isOk());
    metrics.loss = std::nan("");
    ASSERT_TRUE(file->write(metrics).isOk());
  }
  auto more = MetricsFile::open(path, 1);
  ASSERT_TRUE(more.isOk());
  ASSERT_TRUE(more->writeLine("{}").isOk());
  auto text = readFile(path);
  ASSERT_TRUE(text.isOk());
  size_t first = text->find('\n'), second = text->find('\n', first + 1);
  auto line = parseJson(text->substr(0, first));
  ASSERT_TRUE(line.isOk()) << line.status().message();
  EXPECT_EQ(line->find("loss")->number, 1.0 / 3);
  auto next = parseJson(text->substr(first + 1, second - first - 1));
  ASSERT_TRUE(next.isOk()) << next.status().message();
  EXPECT_EQ(next->find("loss")->kind, JsonValue::Kind::Null);
  EXPECT_EQ(text->substr(second + 1), "{}\n");
}

// What was measured has what dyna-plan says of a plan, but for what only a
// simulation knows.
TEST(MetricsTest, LinesHaveTheReport) {
  std::string path = testing::TempDir() + "/metrics-report-test.jsonl";
  std::remove(path.c_str());
  StepMetrics metrics;
  metrics.step = 1;
  PlanReport &ran = metrics.measured;
  ran.steps = 1;
  ran.seconds = 8;
  ran.tokens = 30;
  ran.padding = 10;
  ran.stages = {{6, 70, 0}, {2, 50, 0}};
  ran.rankBytes = {70, 50};
  PlanReport predicted = ran;
  predicted.seconds = 10;
  predicted.pipelines = 1;
  predicted.bound = 6;
  predicted.stages[0].stock = 1;
  {
    auto file = MetricsFile::open(path);
    ASSERT_TRUE(file.isOk());
    ASSERT_TRUE(file->write(metrics).isOk());
    metrics.predicted = predicted;
    ASSERT_TRUE(file->write(metrics).isOk());
  }
  auto text = readFile(path);
  ASSERT_TRUE(text.isOk());
  const size_t first = text->find('\n');
  auto line = parseJson(text->substr(0, first));
  ASSERT_TRUE(line.isOk()) << line.status().message();
  EXPECT_EQ(line->find("padding_share")->number, 0.25);
  EXPECT_EQ(line->find("bubble")->number, 0.25);
  const auto &stages = line->find("stages")->items;
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].find("imbalance")->number, 0);
  EXPECT_EQ(stages[1].find("imbalance")->number, 0.5);
  EXPECT_EQ(stages[1].find("peak_bytes")->number, 50);
  EXPECT_FALSE(stages[1].find("safety_stock"));
  EXPECT_EQ(line->find("rank_peak_bytes")->items[0].number, 70);
  EXPECT_FALSE(line->find("predicted"));
  auto second = parseJson(text->substr(first + 1));
  ASSERT_TRUE(second.isOk()) << second.status().message();
  const JsonValue *made = second->find("predicted");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->find("bound_seconds")->number, 6);
  EXPECT_EQ(made->find("bubble")->number, 0.4);
  EXPECT_EQ(made->find("stages")->items[0].find("safety_stock")->number, 1);
}

TEST(MetricsTest, AFullDiskIsReported) {
  auto file = MetricsFile::open("/dev/full");
  ASSERT_TRUE(file.isOk());
  Status status = file->write(StepMetrics());
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(status.message(), testing::HasSubstr("/dev/full"));
  EXPECT_FALSE(file->flush().isOk());
}

// Nothing is lost of a disk that is full for a while.
TEST(MetricsTest, LinesComeOnceThereIsRoom) {
  std::string path = testing::TempDir() + "/metrics-room-test.jsonl";
  std::remove(path.c_str());
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.isOk());
  ASSERT_TRUE(file->writeLine("[1]").isOk());
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit full = before;
  full.rlim_cur = 6; // in the middle of a line
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  Status second = file->writeLine("[2]"), third = file->writeLine("[3]");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(second.isOk());
  EXPECT_FALSE(third.isOk());
  EXPECT_FALSE(readFile(path)->find("[3]") != std::string::npos);
  EXPECT_TRUE(file->writeLine("[4]").isOk());
  EXPECT_EQ(*readFile(path), "[1]\n[2]\n[3]\n[4]\n");
  EXPECT_TRUE(file->flush().isOk());
}

// As a log that is rotated, or that an editor saves.
TEST(MetricsTest, FollowItsName) {
  namespace fs = std::filesystem;
  std::string path = testing::TempDir() + "/metrics-name-test.jsonl";
  std::remove(path.c_str());
  std::string aside = path + ".1";
  fs::remove(aside);
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.isOk());
  ASSERT_TRUE(file->writeLine("[1]").isOk());
  EXPECT_EQ(file->takeNote(), "");
  fs::rename(path, aside);
  EXPECT_TRUE(file->writeLine("[2]").isOk());
  EXPECT_EQ(*readFile(aside), "[1]\n");
  EXPECT_EQ(*readFile(path), "[2]\n");
  EXPECT_THAT(file->takeNote(),
              testing::HasSubstr(path + " was removed or renamed"));
  // Still nobody else's.
  EXPECT_FALSE(MetricsFile::open(path).isOk());
  fs::copy_file(path, path + ".new");
  std::ofstream(path + ".new", std::ios::app) << "[0]\n";
  fs::rename(path + ".new", path);
  EXPECT_TRUE(file->writeLine("[3]").isOk());
  EXPECT_EQ(*readFile(path), "[2]\n[0]\n[3]\n");
  EXPECT_EQ(file->takeNote(), ""); // once is enough
  // Nor does it write into what is another run's, until that is gone.
  fs::remove(path);
  {
    auto other = MetricsFile::open(path);
    ASSERT_TRUE(other.isOk());
    Status refused = file->writeLine("[4]");
    EXPECT_FALSE(refused.isOk());
    EXPECT_THAT(refused.message(), testing::HasSubstr("another run"));
    ASSERT_TRUE(other->writeLine("[a]").isOk());
  }
  EXPECT_TRUE(file->writeLine("[5]").isOk());
  EXPECT_EQ(*readFile(path), "[a]\n[4]\n[5]\n");
  // Nor through a link.
  fs::remove(path);
  fs::create_symlink(aside, path);
  EXPECT_FALSE(file->writeLine("[6]").isOk());
  EXPECT_EQ(*readFile(aside), "[1]\n");
  fs::remove(path);
  EXPECT_TRUE(file->flush().isOk());
  EXPECT_EQ(*readFile(path), "[6]\n");
}

TEST(MetricsTest, SaysOnceThatTheFileWasReplaced) {
  std::string path = testing::TempDir() + "/metrics-replaced-test.jsonl";
  std::remove(path.c_str());
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.isOk());
  std::ofstream(path + ".new") << "[0]\n";
  std::filesystem::rename(path + ".new", path);
  EXPECT_TRUE(file->writeLine("[1]").isOk());
  EXPECT_THAT(file->takeNote(), testing::HasSubstr(path + " was replaced"));
  EXPECT_EQ(*readFile(path), "[0]\n[1]\n");
}

} // namespace
