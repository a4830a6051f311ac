//===- LastingTest.cpp - What is flushed before a checkpoint counts -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/OutputFile.h"
#include "test/runtime/checkpoint/Checkpoints.h"

using namespace dyna;
using namespace dyna::test;

namespace {

/// What was flushed and renamed, in order: "flush w/.dyna-tmp-3", "rename ...".
std::vector<std::string> calls;
/// The number of the call to fail, from 1; 0: none.
size_t failingCall = 0;

bool fails() {
  errno = EIO;
  return calls.size() == failingCall;
}

std::string pathOf(int descriptor) {
  char path[4096] = {};
  std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  EXPECT_GT(::readlink(link.c_str(), path, sizeof path - 1), 0);
  return path;
}

class LastingTest : public testing::Test {
protected:
  void SetUp() override {
    calls.clear();
    failingCall = 0;
    before_ = fileOperations();
    fileOperations().flush = [](int descriptor) {
      calls.push_back("flush " + pathOf(descriptor));
      return fails() ? -1 : 0;
    };
    fileOperations().rename = [](const char *from, const char *to) {
      calls.push_back(std::string("rename ") + from + " " + to);
      return fails() ? -1 : std::rename(from, to);
    };
  }
  void TearDown() override { fileOperations() = before_; }

private:
  FileOperations before_ = fileOperations();
};

// After the rename the checkpoint counts: everything in it must be on the disk
// before, and its name at once after.
TEST_F(LastingTest, FilesAndFolderAreFlushedBeforeTheRename) {
  TemporaryDirectory dir;
  CheckpointStore store = mustOpen(dir.path());
  Example example(3);
  ASSERT_TRUE(store.save(example.contents).isOk());
  const std::string temporary = dir / ".dyna-tmp-3";
  std::vector<std::string> expected;
  for (const std::string &name : namesIn(dir / "step-3"))
    expected.push_back("flush " + temporary + "/" + name);
  ASSERT_GE(expected.size(), 4u);
  ASSERT_EQ(calls.size(), expected.size() + 3);
  auto files = calls.begin() + static_cast<std::ptrdiff_t>(expected.size());
  std::sort(calls.begin(), files);
  std::sort(expected.begin(), expected.end());
  expected.push_back("flush " + temporary);
  expected.push_back("rename " + temporary + " " + (dir / "step-3"));
  expected.push_back("flush " + dir.path());
  EXPECT_EQ(calls, expected);
}

TEST_F(LastingTest, AFailureAtAnyCallLeavesNoHalfCheckpoint) {
  for (size_t failing = 1;; ++failing) {
    TemporaryDirectory dir;
    CheckpointStore store = mustOpen(dir.path());
    calls.clear();
    failingCall = failing;
    Example example(3);
    Status status = store.save(example.contents);
    if (calls.size() < failing) {
      EXPECT_TRUE(status.isOk());
      EXPECT_GT(failing, 6u);
      break;
    }
    EXPECT_FALSE(status.isOk()) << calls.back();
    // Only the last flush comes after the rename.
    bool renamed = calls.back().rfind("flush " + dir.path(), 0) == 0 &&
                   calls.back().find(".dyna-tmp") == std::string::npos;
    EXPECT_EQ(namesIn(dir.path()), renamed ? std::vector<std::string>{"step-3"}
                                           : std::vector<std::string>{});
  }
}

} // namespace
