//===- FileId.h - Identifies files by any of their names --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_FILEID_H
#define DYNA_RUNTIME_BASE_FILE_FILEID_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace dyna {

/// Identity of a file whatever its name: its device, and its number there.
using FileId = std::pair<uint64_t, uint64_t>;

/// Returns the identity of the regular file at `path`, also through links;
/// nothing if there is none. Devices and pipes may be read and written under
/// one name.
std::optional<FileId> fileIdOf(const std::string &path);

/// Returns true if files written to these two paths would be one file, whether
/// they exist yet or not.
bool areOneOutput(const std::string &a, const std::string &b);

/// Returns true if the file that `descriptor` has open is still the one at
/// `path`.
bool isAt(int descriptor, const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_FILEID_H
