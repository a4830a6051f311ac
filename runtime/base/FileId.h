//===- FileId.h - Files by any of their names ----------------- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILEID_H
#define DYNA_RUNTIME_BASE_FILEID_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace dyna {

/// A file whatever it is called: its device and its number there.
using FileId = std::pair<uint64_t, uint64_t>;

/// The regular file that stands at `path`, through links too; none where none
/// does. Devices and pipes may be read and written under one name.
std::optional<FileId> fileIdOf(const std::string &path);

/// Whether files written to these two paths would be one, be they there yet or
/// not.
bool areOneOutput(const std::string &a, const std::string &b);

/// Whether what `descriptor` has open is still what stands at `path`.
bool isAt(int descriptor, const std::string &path);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILEID_H
