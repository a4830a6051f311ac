//===- HostMemoryTest.cpp - Limits of machines and control groups ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostMemory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace dyna;
namespace fs = std::filesystem;

namespace {

class HostMemoryTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) /
            (std::string("host-memory-") + info->name() + "-" +
             std::to_string(getpid()));
    write("proc/meminfo", "MemTotal:  2000 kB\nMemFree: 100 kB\n"
                          "MemAvailable:   1000 kB\nBuffers: 1 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string &path, const std::string &text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int64_t available() const { return availableMemory(root_.string()); }

  fs::path root_;
};

TEST_F(HostMemoryTest, WithoutGroupsTheMachineCounts) {
  EXPECT_EQ(available(), 1000 * 1024);
  fs::remove_all(root_);
  EXPECT_EQ(available(), -1);
  EXPECT_GT(availableMemory(), 0); // of the machine that runs this
}

TEST_F(HostMemoryTest, VersionTwoGroupsLimitTheirChildren) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  const std::string group = "sys/fs/cgroup/outer/";
  write(group + "inner/memory.max", "max\n");
  write(group + "inner/memory.current", "5000\n");
  EXPECT_EQ(available(), 1000 * 1024);
  write(group + "memory.max", "9000\n");
  write(group + "memory.current", "7000\n");
  EXPECT_EQ(available(), 2000);
  // The page cache can be dropped.
  write(group + "memory.stat",
        "anon 6000\ninactive_file 600\nactive_file 400\n");
  EXPECT_EQ(available(), 3000);
  write(group + "inner/memory.max", "5001\n");
  EXPECT_EQ(available(), 1);
  write(group + "inner/memory.max", "4000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(HostMemoryTest, VersionOneGroups) {
  write("proc/self/cgroup", "9:cpu:/x\n4:memory:/deep/er\n0::/\n");
  // A container's path is that of the host, but its mount shows it as the root.
  const std::string group = "sys/fs/cgroup/memory/";
  write(group + "memory.limit_in_bytes", "9223372036854771712\n");
  write(group + "memory.usage_in_bytes", "7000\n");
  EXPECT_EQ(available(), 1000 * 1024);
  // Cache that came between reading both: no limit stays none.
  write(group + "memory.stat", "total_inactive_file 99999\n");
  EXPECT_EQ(available(), 1000 * 1024);
  write(group + "memory.limit_in_bytes", "9000\n");
  write(group + "memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  EXPECT_EQ(available(), 2500);
  write(group + "deep/er/memory.limit_in_bytes", "800\n");
  write(group + "deep/er/memory.usage_in_bytes", "100\n");
  EXPECT_EQ(available(), 700);
}

} // namespace
