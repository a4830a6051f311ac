//===- ToolSupport.h - What the command-line tools share --------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_TOOLSUPPORT_H
#define DYNA_TOOLS_TOOLSUPPORT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace mlir::dyna {

/// Makes --version print this project's version.
inline void setVersion(llvm::StringRef tool) {
  llvm::cl::SetVersionPrinter([tool = tool.str()](llvm::raw_ostream &os) {
    os << tool << ", Dyna " DYNA_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
}

/// LLVM ends a program whose output cannot be written (a full disk, a closed
/// pipe) through this handler. `tool` is a constant. To be called after
/// `llvm::InitLLVM`, which has a handler for the limit on the size of files.
inline void explainFatalErrors(const char *tool) {
  // A file that may not grow is an error of the write, which can name it.
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

/// LLVM reads further options from the file `name` where it sees `@name`. Here
/// it is the name of a file, which may come from somebody else's folder.
inline void keepPlainNames(int argc, char **argv) {
  static std::vector<std::string> names;
  names.reserve(argc);
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] == '@')
      argv[i] = names.emplace_back(std::string("./") + argv[i]).data();
}

/// The LLVM libraries register hundreds of options of their own, some under
/// names that mean something else here (`stop-after`, `time-passes`). A user of
/// these tools sees the tool's only. To be called before it declares them.
inline void hideLibraryOptions() {
  llvm::SmallVector<llvm::cl::Option *> options;
  for (auto &entry : llvm::cl::getRegisteredOptions())
    options.push_back(entry.second);
  for (llvm::cl::Option *option : options)
    if (!llvm::StringRef(option->ArgStr).starts_with("help") &&
        option->ArgStr != "version")
      option->removeArgument();
}

/// Parses the command line; false after one line about what is wrong with it.
inline bool parseToolOptions(int argc, char **argv, llvm::StringRef overview) {
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview, &errors))
    return true;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).trim().split(lines, '\n', -1, /*KeepEmpty=*/false);
  // Some complaints have gone out already.
  if (!lines.empty())
    llvm::errs() << llvm::join(lines, "; ") << '\n';
  return false;
}

} // namespace mlir::dyna

#endif // DYNA_TOOLS_TOOLSUPPORT_H
