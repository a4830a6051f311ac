//===- TemporaryFiles.h - Scratch files for tests ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_BASE_TEMPORARYFILES_H
#define DYNA_TEST_RUNTIME_BASE_TEMPORARYFILES_H

#include "runtime/base/error/Status.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

namespace dyna::test {

/// An empty directory that goes away with the object.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "dyna-test-XXXXXX").string();
    if (const char *made = ::mkdtemp(pattern.data()))
      path_ = made;
    else
      ADD_FAILURE() << "cannot make a directory like " << pattern;
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string &path() const { return path_; }
  std::string operator/(const std::string &name) const {
    return path_ + "/" + name;
  }

  /// Writes a file and the directories above it; returns its path.
  std::string write(const std::string &name, std::string_view text) const {
    std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

private:
  std::string path_;
};

inline std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

/// Runs `work` in a child, whose limits and rights are its own; true if it
/// returns true there.
template <typename Work> bool inChild(Work work) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(work() ? 0 : 1);
  int state = 0;
  ::waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/// Expects that `result`, a Status or StatusOr, failed with `part` in its one
/// line.
template <typename T>
void expectFailure(const T &result, std::string_view part) {
  ASSERT_FALSE(result.isOk()) << "expected a failure with: " << part;
  std::string message;
  if constexpr (std::is_same_v<T, Status>)
    message = result.message();
  else
    message = result.status().message();
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_BASE_TEMPORARYFILES_H
