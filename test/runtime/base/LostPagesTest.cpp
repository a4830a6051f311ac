//===- LostPagesTest.cpp - Mapped pages that cannot be read ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/Files.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>

using namespace dyna;
using namespace dyna::test;

namespace {

constexpr size_t pages = 64, bytesOfPage = 64 << 10; // of any machine
const std::string text(pages *bytesOfPage, 'x');

int64_t countOf(char byte, std::string_view bytes) {
  return std::count(bytes.begin(), bytes.end(), byte);
}

TEST(LostPagesTest, aShortenedFileIsAFailure) {
  TemporaryDirectory dir;
  std::string path = dir.write("data", text);
  StatusOr<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.isOk());
  StatusOr<MappedFile> other = MappedFile::open(dir.write("other", text));
  ASSERT_TRUE(other.isOk());
  std::filesystem::resize_file(path, bytesOfPage);
  // Several threads come to the lost pages at once, and again.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int pass = 0; pass < 2; ++pass) {
        EXPECT_EQ(countOf('x', file->bytes()), bytesOfPage);
        EXPECT_EQ(countOf('x', other->bytes()), pages * bytesOfPage);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  expectFailure(file->checkReadable(), "data has become shorter while it was");
  expectFailure(file->checkUnchanged(), "data has become shorter while it was");
  EXPECT_TRUE(other->checkUnchanged().isOk());
}

// A disk that fails leaves size and times as they are.
TEST(LostPagesTest, aPageThatCannotBeReadIsAFailure) {
  TemporaryDirectory dir;
  std::string path = dir.write("data", text);
  StatusOr<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.isOk());
  std::filesystem::resize_file(path, bytesOfPage);
  EXPECT_EQ(file->bytes().back(), '\0');
  std::filesystem::resize_file(path, text.size());
  expectFailure(file->checkReadable(),
                "cannot read " + path +
                    ": the disk or the server that holds "
                    "it has failed");
  // Another mapping of the same place is not concerned.
  *file = MappedFile();
  StatusOr<MappedFile> again = MappedFile::open(path);
  ASSERT_TRUE(again.isOk());
  EXPECT_EQ(countOf('x', again->bytes()), bytesOfPage);
  EXPECT_TRUE(again->checkReadable().isOk());
}

TEST(LostPagesTest, otherBusErrorsStayWhatTheyAre) {
  TemporaryDirectory dir;
  std::string path = dir.write("data", text);
  ASSERT_TRUE(MappedFile::open(path).isOk()); // the handler is there
  pid_t child = ::fork();
  if (child == 0) {
    int file = ::open(path.c_str(), O_RDONLY);
    void *bytes = ::mmap(nullptr, text.size(), PROT_READ, MAP_PRIVATE, file, 0);
    std::filesystem::resize_file(path, 0);
    ::_exit(static_cast<volatile const char *>(bytes)[0]);
  }
  int state = 0;
  ::waitpid(child, &state, 0);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGBUS) << state;
#endif
}

} // namespace
