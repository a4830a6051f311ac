//===- main.cpp - Starts a compiled binary --------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Program.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Libraries allocate some memory before `main`, and end the process with
/// messages of their own if there is none. So it is checked before they start.
/// Nothing else has run yet, so only system calls are possible.
__attribute__((no_sanitize("address", "thread", "undefined"))) static void
proveRoomToStart() {
  constexpr size_t room = size_t(4) << 20;
  long place = syscall(SYS_mmap, nullptr, room, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place != -1) {
    syscall(SYS_munmap, place, room);
    return;
  }
  static const char text[] =
      "out of memory: the limit of this process (ulimit -v, ulimit -d) holds "
      "the program, but leaves less than 4 MiB: raise it\n";
  (void)syscall(SYS_write, STDERR_FILENO, text, sizeof text - 1);
  constexpr int refused = 2;
  syscall(SYS_exit_group, refused);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const beforeLibraries)() = proveRoomToStart;

int main(int argc, char **argv) {
  return dyna::runProgram(dyna_compiled_program, argc, argv);
}
