//===- DiskFull.h - Describes writes that find no room ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_DISKFULL_H
#define DYNA_RUNTIME_BASE_FILE_DISKFULL_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace dyna {

/// Returns the failure of `action` on `path` if bytes are what its disk lacks.
Status diskFull(std::string_view action, const std::string &path);

/// Returns ResourceExhausted if the file system of `folder` has inodes for less
/// than `files` more files.
Status checkInodes(const std::string &folder, uint64_t files);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_DISKFULL_H
