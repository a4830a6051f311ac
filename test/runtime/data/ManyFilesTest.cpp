//===- ManyFilesTest.cpp - More files than descriptors --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/data/Datasets.h"

#include <dirent.h>
#include <sys/resource.h>

using namespace dyna;
using namespace dyna::test;

namespace {

/// Few descriptors while it lives.
class FewDescriptors {
public:
  explicit FewDescriptors(rlim_t count) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few = {count, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_ = {};
};

size_t openDescriptors() {
  size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += !entry.path().empty();
  return count;
}

TEST(ManyFilesTest, AnyNumberOfFilesIsRead) {
  TemporaryDirectory dir;
  std::vector<std::string> paths;
  for (int i = 0; i < 500; ++i) {
    const std::string name = std::to_string(i), text = "text " + name;
    if (i % 3 == 0) {
      paths.push_back(
          dir.write(name + ".jsonl", "{\"text\": \"" + text + "\"}\n"));
    } else if (i % 3 == 1) {
      paths.push_back(dir.write(name + ".txt", text));
    } else {
      dir.write(name + ".idx", IndexParts().bytes());
      dir.write(name + ".bin", tokenBytes<uint16_t>({1, 2, 3, 4, 5, 6}));
      paths.push_back(dir / name);
    }
  }
  const size_t before = openDescriptors();
  FewDescriptors few(64);
  DatasetPointer all = mustOpen(paths);
  ASSERT_TRUE(all);
  EXPECT_EQ(openDescriptors(), before);
  int64_t document = 0;
  for (int i = 0; i < 500; ++i) {
    if (i % 3 == 2) {
      EXPECT_EQ(mustRead(all, document).tokens,
                (std::vector<int32_t>{1, 2, 3}));
      document += 3;
      continue;
    }
    EXPECT_EQ(mustRead(all, document++).tokens,
              bytesOf("text " + std::to_string(i)));
  }
  EXPECT_EQ(document, all->size());
}

// Without a descriptor it is the path that tells of a change.
TEST(ManyFilesTest, NoticesThatAMappedFileIsGoneOrAnother) {
  TemporaryDirectory dir;
  const std::string line = "{\"text\": \"abc\"}\n";
  auto opened = [&](const char *name) {
    return mustOpen({dir.write(name, line)});
  };
  std::vector<int32_t> tokens;
  DatasetPointer removed = opened("a.jsonl"), replaced = opened("b.jsonl"),
                 kept = opened("c.jsonl");
  std::filesystem::remove(dir / "a.jsonl");
  expectFailure(removed->readTokens(0, 0, 4, tokens),
                "cannot look at " + (dir / "a.jsonl"));
  dir.write("new", line);
  std::filesystem::last_write_time(
      dir / "new", std::filesystem::last_write_time(dir / "b.jsonl"));
  std::filesystem::rename(dir / "new", dir / "b.jsonl");
  expectFailure(replaced->readTokens(0, 0, 4, tokens),
                "b.jsonl was changed while it was in use");
  EXPECT_TRUE(kept->readTokens(0, 0, 4, tokens).isOk());
}

} // namespace
