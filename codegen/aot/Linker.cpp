//===- Linker.cpp - Links objects and runtime to a training binary --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/Linker.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace mlir;
using namespace mlir::dyna;

static llvm::Error refusal(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static llvm::Expected<std::string> findDriver(llvm::StringRef wanted) {
  if (!wanted.empty()) {
    if (auto path = llvm::sys::findProgramByName(wanted))
      return *path;
    return refusal("linker driver '" + wanted + "' is not on PATH");
  }
#ifdef DYNA_LINK_DRIVER
  return std::string(DYNA_LINK_DRIVER);
#endif
  for (llvm::StringRef name : {"c++", "g++", "clang++", "clang++-22"})
    if (auto path = llvm::sys::findProgramByName(name))
      return *path;
  return refusal("no C++ compiler on PATH to link with (tried c++, g++, "
                 "clang++, clang++-22); install g++ or name one with --linker");
}

/// Reads the libraries, one per line. `@` stands for the runtime directory,
/// whose libraries must have been built.
static llvm::Expected<std::vector<std::string>>
readLibraries(llvm::StringRef directory, llvm::StringRef file) {
  llvm::SmallString<256> folder(directory);
  if (std::error_code error = llvm::sys::fs::make_absolute(folder))
    return refusal("cannot find '" + directory + "': " + error.message());
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, file);
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return refusal("cannot read '" + path + "' (" +
                   buffer.getError().message() +
                   "): the runtime libraries are not there; build or install "
                   "Dyna, or name their folder with --runtime-dir");
  std::vector<std::string> libraries;
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    std::string library = line.trim().str();
    if (!library.empty() && library[0] == '@') {
      library = (folder + library.substr(1)).str();
      if (!llvm::sys::fs::exists(library))
        return refusal("'" + library + "', which " + file +
                       " asks for, is not there: build the target "
                       "quickstart-tools, or install Dyna");
    }
    if (!library.empty())
      libraries.push_back(library);
  }
  return libraries;
}

/// Reads all libraries that objects are linked with.
static llvm::Expected<std::vector<std::string>>
readLibraries(const LinkOptions &options) {
  std::vector<std::string> libraries;
  llvm::SmallString<256> kernels(options.runtimeDirectory);
  llvm::sys::path::append(kernels, "cuda-libraries.txt");
  if (options.target == "cuda" && !llvm::sys::fs::exists(kernels))
    return refusal("there are no runtime libraries for CUDA in '" +
                   options.runtimeDirectory +
                   "': they are built where nvcc and ptxas are found "
                   "(tools/setup.sh --cuda installs both)");
  std::vector<std::string> files = {options.target == "cpu"
                                        ? "link-libraries.txt"
                                        : options.target + "-libraries.txt"};
  for (const std::string &library : options.libraries)
    files.push_back("link-" + library + ".txt");
  for (const std::string &file : files) {
    auto lines = readLibraries(options.runtimeDirectory, file);
    if (!lines)
      return lines.takeError();
    libraries.insert(libraries.end(), lines->begin(), lines->end());
  }
  return libraries;
}

llvm::Error mlir::dyna::checkLinking(const LinkOptions &options) {
  llvm::Expected<std::string> driver = findDriver(options.driver);
  if (!driver)
    return driver.takeError();
  return readLibraries(options).takeError();
}

std::vector<std::string>
mlir::dyna::optionalLibraries(llvm::StringRef runtimeDirectory) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(runtimeDirectory, error), end;
       !error && at != end; at.increment(error)) {
    llvm::StringRef file = llvm::sys::path::filename(at->path());
    if (file.consume_front("link-") && file.consume_back(".txt") &&
        file != "libraries")
      names.push_back(file.str());
  }
  llvm::sort(names);
  return names;
}

static std::string readText(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Returns the most informative line of the linker's output.
static llvm::StringRef mainLine(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : {"undefined", "cannot", "link failed", "error"})
    for (llvm::StringRef line : lines)
      if (line.contains(word))
        return line.trim();
  return lines.empty() ? "it said nothing" : lines.front().trim();
}

/// Returns the environment, with a folder for temporary files.
static std::vector<std::string> environmentWith(llvm::StringRef folder) {
  std::vector<std::string> variables;
  for (char **at = environ; *at; ++at)
    if (!llvm::StringRef(*at).starts_with("TMPDIR="))
      variables.push_back(*at);
  variables.push_back(("TMPDIR=" + folder).str());
  return variables;
}

static llvm::SmallVector<llvm::StringRef>
refsTo(const std::vector<std::string> &strings) {
  return llvm::SmallVector<llvm::StringRef>(strings.begin(), strings.end());
}

llvm::Error mlir::dyna::linkTrainingBinary(llvm::ArrayRef<std::string> objects,
                                           const std::string &program,
                                           llvm::StringRef output,
                                           const LinkOptions &options) {
  llvm::Expected<std::string> driver = findDriver(options.driver);
  if (!driver)
    return driver.takeError();
  llvm::Expected<std::vector<std::string>> libraries = readLibraries(options);
  if (!libraries)
    return libraries.takeError();

  std::string log = program + ".log";
  std::vector<std::string> arguments = {*driver,
                                        "-o",
                                        program,
                                        "-pie",
                                        "-Wl,--gc-sections",
                                        "-Wl,-z,relro,-z,now"};
  arguments.insert(arguments.end(), objects.begin(), objects.end());
  arguments.push_back("-Wl,--start-group");
  arguments.insert(arguments.end(), libraries->begin(), libraries->end());
  arguments.push_back("-Wl,--end-group");
  arguments.push_back("-lpthread");

  std::vector<std::string> environment =
      environmentWith(llvm::sys::path::parent_path(program));
  llvm::SmallVector<llvm::StringRef> variables = refsTo(environment);
  std::string message;
  std::optional<llvm::StringRef> redirects[] = {
      std::nullopt, llvm::StringRef(log), llvm::StringRef(log)};
  int code = llvm::sys::ExecuteAndWait(
      *driver, refsTo(arguments), llvm::ArrayRef<llvm::StringRef>(variables),
      redirects, /*SecondsToWait=*/300, /*MemoryLimit=*/0, &message);
  std::string printed = readText(log);
  if (options.verbose)
    llvm::errs() << llvm::join(arguments, " ") << '\n' << printed;
  if (code != 0)
    return refusal(
        "linking '" + output + "' with " + *driver + " failed: " +
        (message.empty() ? mainLine(printed) : llvm::StringRef(message)) +
        (options.verbose ? "" : " (--verbose shows everything)"));
  return llvm::Error::success();
}
