//===- LengthsFile.h - Reads lengths of samples -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_LENGTHSFILE_H
#define DYNA_TOOLS_LENGTHSFILE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// Returns the tokens of samples, in their order. The text is a list such as
/// "30,5,40", or a file with one sample per line. A line is a number, or fields
/// with commas between them. With fields, the first line names the columns.
/// `columns` are added up. Without any, the only column that is called "tokens"
/// or ends in "_tokens" is used. Fails with the file and line, or the entry of
/// the list.
StatusOr<std::vector<int64_t>>
readLengths(const std::string &textOrPath,
            const std::vector<std::string> &columns);

} // namespace dyna

#endif // DYNA_TOOLS_LENGTHSFILE_H
