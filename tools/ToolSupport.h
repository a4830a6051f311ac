//===- ToolSupport.h - Supports the command-line tools ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_TOOLSUPPORT_H
#define DYNA_TOOLS_TOOLSUPPORT_H

#include "runtime/base/text/Printable.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace mlir::dyna {

/// Makes --version print this project's version.
inline void setVersion(llvm::StringRef tool) {
  llvm::cl::SetVersionPrinter([tool = tool.str()](llvm::raw_ostream &os) {
    os << tool << ", Dyna " DYNA_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
}

namespace crash {

inline constexpr int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
inline struct sigaction libraryActions[std::size(signals)];
inline volatile std::sig_atomic_t ending = 0; ///< the signal that came

/// Ends the program as the signal would have.
inline void onAlarm(int) {
  int signal = ending;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);
}

inline void onSignal(int signal, siginfo_t *info, void *context) {
  ending = signal;
  alarm(5);
  for (size_t i = 0; i < std::size(signals); ++i) {
    const struct sigaction &library = libraryActions[i];
    if (signals[i] != signal)
      continue;
    if (library.sa_flags & SA_SIGINFO)
      library.sa_sigaction(signal, info, context);
    else if (library.sa_handler != SIG_DFL && library.sa_handler != SIG_IGN)
      library.sa_handler(signal);
    else
      onAlarm(0);
  }
}

} // namespace crash

/// Makes a crash end the program in all cases. A crashing program prints its
/// stack, and the library allocates memory for it. In the middle of an
/// allocation it would wait for itself forever. So an alarm ends it with the
/// original signal. Called after `llvm::InitLLVM`, whose handlers run in
/// between.
inline void endCrashes() {
  struct sigaction action = {};
  action.sa_handler = crash::onAlarm;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_sigaction = crash::onSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < std::size(crash::signals); ++i)
    sigaction(crash::signals[i], &action, &crash::libraryActions[i]);
}

/// Explains errors of output (a full disk, a closed pipe), for which LLVM ends
/// a program through this handler. `tool` is a constant. Called after
/// `llvm::InitLLVM`, which has a handler for the limit on the size of files.
inline void explainFatalErrors(const char *tool) {
  // A write beyond the size limit becomes an error, which can name the file.
  std::signal(SIGXFSZ, SIG_IGN);
  llvm::install_fatal_error_handler(
      [](void *name, const char *reason, bool) {
        llvm::errs() << static_cast<const char *>(name) << ": " << reason;
        if (llvm::StringRef(reason).contains("output stream"))
          llvm::errs() << "; the output is not complete: free some space, or "
                          "write it elsewhere";
        llvm::errs() << '\n';
        std::_Exit(2);
      },
      const_cast<char *>(tool));
}

/// Makes `@name` the plain name of a file. LLVM would read further options from
/// it, although it may come from another person's folder.
inline void keepPlainNames(int argc, char **argv) {
  static std::vector<std::string> names;
  names.reserve(argc);
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] == '@')
      argv[i] = names.emplace_back(std::string("./") + argv[i]).data();
}

/// Hides the hundreds of options that the LLVM libraries register. Some have
/// names that mean something else here (`stop-after`, `time-passes`). Called
/// before a tool declares its own options.
inline void hideLibraryOptions() {
  llvm::SmallVector<llvm::cl::Option *> options;
  for (auto &entry : llvm::cl::getRegisteredOptions())
    options.push_back(entry.second);
  for (llvm::cl::Option *option : options)
    if (!llvm::StringRef(option->ArgStr).starts_with("help") &&
        option->ArgStr != "version")
      option->removeArgument();
}

/// Parses the command line. Returns false after one line about the error.
inline bool parseToolOptions(int argc, char **argv, llvm::StringRef overview) {
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview, &errors))
    return true;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).trim().split(lines, '\n', -1, /*KeepEmpty=*/false);
  // Some errors were already printed.
  if (!lines.empty())
    llvm::errs() << ::dyna::messageText(llvm::join(lines, "; ")) << '\n';
  return false;
}

} // namespace mlir::dyna

#endif // DYNA_TOOLS_TOOLSUPPORT_H
