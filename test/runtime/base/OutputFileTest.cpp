//===- OutputFileTest.cpp - Files that are whole or not there -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/file/OutputFile.h"
#include "runtime/base/file/FileLock.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/Printable.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dyna;
using namespace dyna::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> namesIn(const std::string &directory) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
using Names = std::vector<std::string>;

TEST(OutputFileTest, AppearsWhenItIsWhole) {
  TemporaryDirectory dir;
  std::string path = dir / "f";
  for (const char *text : {"first", "second"}) {
    auto file = OutputFile::replace(path);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    ASSERT_TRUE(file->write(text).isOk());
    // Until then there is what there was, and nothing beside it.
    EXPECT_EQ(fs::exists(path) ? readAll(path) : "",
              text == std::string("first") ? "" : "first");
    EXPECT_LE(namesIn(dir.path()).size(), 1u);
    ASSERT_TRUE(file->close().isOk());
    EXPECT_EQ(readAll(path), text);
    EXPECT_EQ(namesIn(dir.path()), (Names{"f"}));
  }
  // Dropped halfway, nothing has happened.
  {
    ASSERT_TRUE(OutputFile::replace(path)->write("third").isOk());
  }
  EXPECT_EQ(readAll(path), "second");
  EXPECT_EQ(namesIn(dir.path()), (Names{"f"}));
  EXPECT_TRUE(OutputFile::checkReplace(path).isOk());
  EXPECT_TRUE(OutputFile::checkReplace(dir / "other").isOk());
  EXPECT_EQ(namesIn(dir.path()), (Names{"f"}));
}

TEST(OutputFileTest, KeepsWhoMayReadIt) {
  TemporaryDirectory dir;
  std::string path = dir.write("f", "secret");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(replaceFile(path, "more").isOk());
  struct stat facts;
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(OutputFileTest, ReplacesRegularFilesOnly) {
  TemporaryDirectory dir;
  std::string victim = dir.write("victim", "dear");
  fs::create_symlink(victim, dir / "link");
  fs::create_symlink(dir / "nothing", dir / "dangling");
  fs::create_directory(dir / "folder");
  int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string name = dir / "socket";
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(
      ::bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof address),
      0);
  std::string from = dir.write("from", "program");
  for (auto [path, words] :
       {std::pair("link", "a symbolic link to"),
        std::pair("dangling", "a symbolic link to"),
        std::pair("folder", "a directory, expected a file name"),
        std::pair("none/", "Not a directory"), std::pair("new/", "directory"),
        std::pair("socket", "or a socket")}) {
    SCOPED_TRACE(path);
    if (std::string(path) == "none/")
      dir.write("none", "");
    for (const Status &status :
         {OutputFile::checkReplace(dir / path), replaceFile(dir / path, "x"),
          moveToOutput(from, dir / path)}) {
      EXPECT_NE(status.message().find(words), std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find(path), std::string::npos);
    }
  }
  ::close(socket);
  EXPECT_EQ(readAll(victim), "dear");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_FALSE(fs::exists(dir / "nothing"));
  expectFailure(replaceFile("", "x"), "without a name");
  expectFailure(replaceFile(dir / "no/f", "x"), "No such file");
}

TEST(OutputFileTest, WritesIntoDevicesAndPipes) {
  TemporaryDirectory dir;
  std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(OutputFile::checkReplace(pipe).isOk());
  Status status = replaceFile(pipe, "text");
  EXPECT_TRUE(status.isOk()) << status.message();
  char buffer[8] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 4);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(replaceFile("/dev/null", "text").isOk());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  // A program goes nowhere but to a file. (A pipe: were it replaced after all,
  // nothing outside this folder would be lost.)
  std::string from = dir.write("from", "program");
  expectFailure(moveToOutput(from, pipe), "pipe: it is a device or a pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
  EXPECT_EQ(namesIn(dir.path()), (Names{"from", "pipe"}));
}

TEST(OutputFileTest, WaitsForNoReader) {
  TemporaryDirectory dir;
  std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Status status = replaceFile(pipe, "text");
  EXPECT_FALSE(status.isOk());
  EXPECT_NE(status.message().find(pipe + ": it is a pipe that nobody reads"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(InputFileTest, WaitsForNoWriter) {
  TemporaryDirectory dir;
  std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (auto [path, what] :
       {std::pair(pipe, "it is a pipe, expected a regular file"),
        {dir.path(), "it is a directory, expected"},
        {std::string("/dev/zero"), "it is a device or a socket, expected"}}) {
    StatusOr<std::string> text = readFile(path);
    ASSERT_FALSE(text.isOk());
    EXPECT_NE(text.status().message().find(what), std::string::npos)
        << text.status().message();
  }
}

TEST(PrintableTest, NothingControlsTheTerminal) {
  for (auto [given, expected] :
       std::vector<std::pair<std::string, std::string>>{
           {"/plain/p\u00e4th \u6f22 'quoted' \\",
            "/plain/p\u00e4th \u6f22 'quoted' \\"},
           {"a\x1b[2J\x1b]0;title\x07", "a\\x1b[2J\\x1b]0;title\\x07"},
           {"\r\t\x7f", "\\x0d\\x09\\x7f"},
           {"c1 \u0085\u009b1m", "c1 \\xc2\\x85\\xc2\\x9b1m"},
           {"\u202etxt.exe\u2066", "\\xe2\\x80\\xaetxt.exe\\xe2\\x81\\xa6"},
           {"\xff\xc3", "\\xff\\xc3"},
           {"\xc0\x9b \xed\xa0\x80", "\\xc0\\x9b \\xed\\xa0\\x80"}})
    EXPECT_EQ(printable(given), expected);
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("a\nb"), "a\\nb");
  EXPECT_EQ(printable("a\n\rb", true), "a\n\\x0db");
}

TEST(PrintableTest, MessagesHaveAScreen) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(1000, 'x') + "end", 12),
            "xxxxxxxx...(991 bytes)...xend");
  // Of two bytes each.
  std::string accents;
  for (int i = 0; i < 100; ++i)
    accents += "\xC3\xA9";
  EXPECT_EQ(printable(excerpt(accents, 9)), excerpt(accents, 9));
  for (const std::string &text :
       {std::string(size_t(12) << 20, 'x'), std::string(size_t(12) << 20, '\1'),
        std::string(size_t(12) << 20, '\x80'), accents + accents}) {
    std::string message = messageText("begin " + text + " end");
    EXPECT_LT(message.size(), kMostMessageBytes + 50);
    EXPECT_EQ(message.substr(0, 6), "begin ");
    EXPECT_EQ(message.substr(message.size() - 4), " end");
  }
}

TEST(OutputFileTest, WritesToWhatTheSystemsLinksStandFor) {
  TemporaryDirectory dir;
  std::string path = dir.write("f", "before");
  int file = ::open(path.c_str(), O_RDWR);
  struct stat before, after;
  ASSERT_EQ(::fstat(file, &before), 0);
  for (const char *folder : {"/dev/fd/", "/proc/self/fd/"}) {
    Status status = replaceFile(folder + std::to_string(file), folder);
    EXPECT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(readAll(path), folder);
  }
  // It is the same file: the descriptor of whoever redirects still has it.
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ::close(file);
}

TEST(OutputFileTest, AsksWhereARenameWouldNot) {
  TemporaryDirectory dir;
  std::string path = dir.write("f", "protected");
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  EXPECT_TRUE(inChild([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0)
      return false;
    return replaceFile(path, "x").message().find("Permission denied") !=
           std::string::npos;
  }));
  EXPECT_EQ(readAll(path), "protected");
}

TEST(OutputFileTest, ASizeLimitLeavesWhatThereWas) {
  TemporaryDirectory dir;
  std::string path = dir.write("f", "before");
  EXPECT_TRUE(inChild([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limits = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    Status status = replaceFile(path, std::string(1000, 'x'));
    return status.message().find("size limit") != std::string::npos;
  }));
  EXPECT_EQ(readAll(path), "before");
  EXPECT_EQ(namesIn(dir.path()), (Names{"f"}));
}

TEST(OutputFileTest, AKillLeavesNothing) {
  TemporaryDirectory dir;
  EXPECT_FALSE(inChild([&] {
    auto file = OutputFile::replace(dir / "f");
    (void)file->write("half");
    return ::raise(SIGKILL) == 0;
  }));
  EXPECT_EQ(namesIn(dir.path()), (Names{}));
}

TEST(OutputFileTest, ManyAtOnceLeaveOneWholeFile) {
  TemporaryDirectory dir;
  std::string path = dir / "f";
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int writer = 0; writer < 4; ++writer)
    threads.emplace_back([&, writer] {
      std::string text(100000, static_cast<char>('a' + writer));
      for (int i = 0; i < 50; ++i)
        failures += !replaceFile(path, text).isOk();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  std::string text = readAll(path);
  EXPECT_EQ(text, std::string(100000, text[0]));
  EXPECT_EQ(namesIn(dir.path()), (Names{"f"}));
}

TEST(FileLockTest, NamesTheHolderAndEndsWithIt) {
  TemporaryDirectory dir;
  std::string path = dir.write("f", "");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    int mine = ::open(path.c_str(), O_RDWR);
    char answer = lockDescriptor(mine) ? 'y' : 'n';
    (void)!::write(ready[1], &answer, 1);
    ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  int other = ::open(path.c_str(), O_RDWR);
  EXPECT_FALSE(lockDescriptor(other));
  EXPECT_EQ(describeLockHolder(other), "process " + std::to_string(child));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(lockDescriptor(other));
  ::close(other);
}

} // namespace
