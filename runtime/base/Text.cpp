//===- Text.cpp - Formatted text ------------------------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Text.h"

#include <cstdarg>
#include <cstdio>

namespace dyna {

std::string formatText(const char *format, ...) {
  va_list arguments, copy;
  va_start(arguments, format);
  va_copy(copy, arguments);
  int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? length : 0, '\0');
  if (length > 0)
    std::vsnprintf(text.data(), text.size() + 1, format, copy);
  va_end(copy);
  return text;
}

std::string formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return formatText(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

} // namespace dyna
