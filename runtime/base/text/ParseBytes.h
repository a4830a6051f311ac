//===- ParseBytes.h - Parses sizes in bytes ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_PARSEBYTES_H
#define DYNA_RUNTIME_BASE_TEXT_PARSEBYTES_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>

namespace dyna {

/// Parses "4GiB", "512M" or "1000000", with a result above 0; InvalidArgument
/// for anything else. Units are powers of 1024.
StatusOr<int64_t> parseBytes(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_PARSEBYTES_H
