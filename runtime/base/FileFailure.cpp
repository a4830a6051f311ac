//===- FileFailure.cpp - Failures of files, for people --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/FileFailure.h"

#include <cerrno>
#include <cstring>

using namespace dyna;

Status dyna::fileFailure(std::string_view action, const std::string &path,
                         int error) {
  std::string text = "cannot ";
  text.append(action).append(" ").append(path).append(": ");
  switch (error) {
  case ENOSPC:
  case EDQUOT:
    return Status::resourceExhausted(
        text + "the disk is full; free some space or choose another directory");
  case EFBIG:
    return Status::resourceExhausted(
        text + "the file would pass the size limit of this process or file "
               "system; raise it (ulimit -f) or choose another directory");
  case ENOENT:
  case ENOTDIR:
    return Status::invalidArgument(text + std::strerror(error) +
                                   "; check the path");
  case EACCES:
  case EPERM:
  case EROFS:
    return Status::invalidArgument(
        text + std::strerror(error) +
        "; check its permissions or choose another path");
  case EMFILE:
    return Status::invalidArgument(
        text + "this process has as many open files as it may; raise the limit "
               "(ulimit -n) or give fewer files");
  case ENFILE:
    return Status::invalidArgument(
        text + "this machine has as many open files as it may; close some");
  case EIO:
    return Status::invalidArgument(
        text + "the disk or the server that holds it has failed (" +
        std::strerror(error) + "); use a copy elsewhere");
  default:
    return Status::invalidArgument(text + std::strerror(error));
  }
}
