//===- Linker.h - Objects and runtime to one training binary -- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_LINKER_H
#define DYNA_CODEGEN_AOT_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::dyna {

struct LinkOptions {
  /// The compiler driver that links; empty: the first of c++, g++, clang++ on
  /// PATH.
  std::string driver;
  /// Folder of the runtime's static libraries and `link-libraries.txt`.
  std::string runtimeDirectory;
  /// What the objects are compiled for: "cpu", "cuda" or "emulated"; the last two
  /// have `<target>-libraries.txt` in place of link-libraries.txt.
  std::string target = "cpu";
  /// Optional libraries: for each, `link-<name>.txt` in that folder says what
  /// to link.
  std::vector<std::string> libraries;
  /// Show the command and everything that the linker prints.
  bool verbose = false;
};

/// The optional libraries that were built: `mpi` where there is a
/// `link-mpi.txt`.
std::vector<std::string> optionalLibraries(llvm::StringRef runtimeDirectory);

/// Whether there is a linker and every library: to be asked before the work.
llvm::Error checkLinking(const LinkOptions &options);

/// Links `objects` with the static runtime into `program`, which lies with them
/// in a folder of ours: the linker keeps its temporary files there, too. All
/// paths are absolute, so that the linker takes none for an option or, as
/// `@name`, for a file of options. `output` is the user's name for the program.
llvm::Error linkTrainingBinary(llvm::ArrayRef<std::string> objects,
                               const std::string &program,
                               llvm::StringRef output,
                               const LinkOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_LINKER_H
