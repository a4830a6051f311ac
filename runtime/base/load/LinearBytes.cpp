//===- LinearBytes.cpp - Computes sizes linear in tokens ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/load/LinearBytes.h"

std::string dyna::LinearBytes::str() const {
  std::string text;
  auto add = [&](int64_t factor, const char *name) {
    if (factor != 0)
      text += (text.empty() ? "" : " + ") + std::to_string(factor) + name;
  };
  add(tq, "*Tq");
  add(tkv, "*Tkv");
  add(s, "*S");
  add(constant, "");
  return text.empty() ? "0" : text;
}
