//===- PrivateFolder.cpp - Makes a folder for intermediate files ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/PrivateFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir::dyna;

namespace {

/// Answer of the keeper, which it gives once.
struct Made {
  int error = 0;
  char path[PATH_MAX] = {};
};

} // namespace

static llvm::Error noFolder(llvm::StringRef output, int error) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "cannot write '" + output +
                                     "': " + std::strerror(error));
}

/// Removes the folder. The linker of a killed dynac may still write, so it
/// repeats until the folder is gone.
static void removeFolder(const std::filesystem::path &path) {
  using namespace std::chrono_literals;
  for (int attempt = 0; attempt < 500; ++attempt) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error)))
      return;
    std::this_thread::sleep_for(20ms);
  }
}

/// Runs the other process, which shares only one end of the socket with the
/// first.
[[noreturn]] static void keepFolder(int socket, Made made) {
  ::setsid(); // a terminal's Ctrl-C must only reach the first process
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU})
    std::signal(signal, SIG_IGN);
  int nothing = ::open("/dev/null", O_RDWR);
  for (int descriptor : {0, 1, 2})
    ::dup2(nothing, descriptor);
  ::dup2(socket, 3);
  ::close_range(4, ~0U, 0);
  made.error = ::mkdtemp(made.path) ? 0 : errno; // mkdtemp sets mode 0700
  (void)!::write(3, &made, sizeof made);
  char end;
  while (::read(3, &end, 1) < 0 && errno == EINTR)
    ;
  if (made.error == 0)
    removeFolder(made.path);
  ::_exit(0);
}

llvm::Expected<std::unique_ptr<PrivateFolder>>
PrivateFolder::create(llvm::StringRef output) {
  llvm::SmallString<256> pattern(output);
  if (std::error_code error = llvm::sys::fs::make_absolute(pattern))
    return noFolder(output, error.value());
  llvm::sys::path::remove_filename(pattern);
  llvm::sys::path::append(pattern, ".dynac-XXXXXX");
  Made made;
  if (pattern.size() >= sizeof made.path)
    return noFolder(output, ENAMETOOLONG);
  std::memcpy(made.path, pattern.data(), pattern.size());

  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return noFolder(output, errno);
  pid_t process = ::fork();
  if (process == 0)
    keepFolder(ends[1], made);
  int error = errno;
  ::close(ends[1]);
  ssize_t size =
      process > 0 ? ::recv(ends[0], &made, sizeof made, MSG_WAITALL) : -1;
  if (process > 0 && size != sizeof made)
    error = EIO;
  else if (process > 0)
    error = made.error;
  std::unique_ptr<PrivateFolder> folder(
      new PrivateFolder(made.path, ends[0], process));
  if (error != 0 || process < 0)
    return noFolder(output, error);
  return folder;
}

PrivateFolder::~PrivateFolder() {
  ::close(keeper);
  if (process > 0)
    while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR)
      ;
}
