//===- LengthsFile.h - Lengths of samples from a table ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_LENGTHSFILE_H
#define DYNA_TOOLS_LENGTHSFILE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// Tokens of samples, in their order: "30,5,40", or a file with one sample per
/// line. A line is a number; or fields with commas between them, behind a first
/// line that names the columns: `columns` are added up, or without any the only
/// one called "tokens" or ending in "_tokens". Fails with the file and line, or
/// the entry of the list.
StatusOr<std::vector<int64_t>>
readLengths(const std::string &textOrPath,
            const std::vector<std::string> &columns);

} // namespace dyna

#endif // DYNA_TOOLS_LENGTHSFILE_H
