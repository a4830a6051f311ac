//===- PrivateFolder.h - Makes a folder for intermediate files --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_PRIVATEFOLDER_H
#define DYNA_CODEGEN_AOT_PRIVATEFOLDER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <sys/types.h>

namespace mlir::dyna {

/// A private folder inside the folder of an output. Files that are made in it
/// can be renamed to the output.
///
/// A separate process makes the folder. It removes the folder with its files
/// when this object or this process ends, even if the process is killed. So
/// signals, crashes and LLVM's fatal errors need no special handling.
class PrivateFolder {
public:
  static llvm::Expected<std::unique_ptr<PrivateFolder>>
  create(llvm::StringRef output);
  PrivateFolder(const PrivateFolder &) = delete;
  PrivateFolder &operator=(const PrivateFolder &) = delete;
  ~PrivateFolder();

  /// Returns the absolute path.
  const std::string &path() const { return folder; }
  std::string file(llvm::StringRef name) const {
    return (folder + "/" + name).str();
  }

private:
  PrivateFolder(std::string folder, int keeper, pid_t process)
      : folder(std::move(folder)), keeper(keeper), process(process) {}

  std::string folder;
  int keeper; ///< a socket whose other end notices when this one closes
  pid_t process;
};

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_PRIVATEFOLDER_H
