//===- ParseBytes.cpp - Parses sizes in bytes -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/ParseBytes.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace dyna {

StatusOr<int64_t> parseBytes(const std::string &text) {
  double value = 0;
  // Accept only decimal digits, so no 0x10.
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  static const std::pair<const char *, int> units[] = {
      {"", 0},     {"B", 0},   {"K", 10},   {"KB", 10}, {"KiB", 10},
      {"M", 20},   {"MB", 20}, {"MiB", 20}, {"G", 30},  {"GB", 30},
      {"GiB", 30}, {"T", 40},  {"TB", 40},  {"TiB", 40}};
  for (auto [name, shift] : units)
    if (unit == name && error == std::errc() && std::isfinite(value) &&
        std::ldexp(value, shift) >= 1 && std::ldexp(value, shift) < 1e18)
      return static_cast<int64_t>(std::ldexp(value, shift));
  return Status::invalidArgument(
      "expects bytes such as 4GiB or 512M, but got '" + text + "'");
}

} // namespace dyna
