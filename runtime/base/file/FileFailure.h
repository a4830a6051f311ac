//===- FileFailure.h - Describes failures of files for people ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_FILEFAILURE_H
#define DYNA_RUNTIME_BASE_FILE_FILEFAILURE_H

#include "runtime/base/error/Status.h"

#include <string>
#include <string_view>

namespace dyna {

/// Returns the failure of `action` ("open", "write") on `path` with a value of
/// errno. A full disk or quota is ResourceExhausted, everything else
/// InvalidArgument.
Status fileFailure(std::string_view action, const std::string &path, int error);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_FILEFAILURE_H
