//===- Linker.h - Links objects and runtime to a training binary ----------===//
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
  /// Target of the objects: "cpu", "cuda" or "emulated". The last two use
  /// `<target>-libraries.txt` in place of link-libraries.txt.
  std::string target = "cpu";
  /// Optional libraries. `link-<name>.txt` in the runtime's folder lists what
  /// to link for each.
  std::vector<std::string> libraries;
  /// Show the command and everything that the linker prints.
  bool verbose = false;
};

/// Returns the optional libraries that were built: `mpi` if there is a
/// `link-mpi.txt`.
std::vector<std::string> optionalLibraries(llvm::StringRef runtimeDirectory);

/// Checks that the linker and all libraries exist; call this before the work
/// starts.
llvm::Error checkLinking(const LinkOptions &options);

/// Links `objects` with the static runtime into `program`. It lies with them in
/// a private folder, where the linker also keeps its temporary files. All paths
/// are absolute, so that the linker does not read one as an option, or `@name`
/// as a file of options. `output` is the user's name for the program.
llvm::Error linkTrainingBinary(llvm::ArrayRef<std::string> objects,
                               const std::string &program,
                               llvm::StringRef output,
                               const LinkOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_LINKER_H
