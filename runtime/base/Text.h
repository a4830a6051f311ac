//===- Text.h - Formatted text ----------------------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_TEXT_H
#define DYNA_RUNTIME_BASE_TEXT_H

#include <cstdint>
#include <string>

namespace dyna {

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string formatText(const char *format, ...);

/// "1.5 GiB": bytes for people.
std::string formatBytes(int64_t bytes);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_TEXT_H
