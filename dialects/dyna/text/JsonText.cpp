//===- JsonText.cpp - Checks JSON in modules and configurations -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/text/JsonText.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <vector>

using namespace llvm;
using mlir::dyna::DuplicateKey;
using Json = llvm::json::Value;

/// Finds duplicate keys. The text is known to be JSON.
SmallVector<DuplicateKey> mlir::dyna::findDuplicateKeys(StringRef text) {
  SmallVector<DuplicateKey> found;
  std::vector<std::map<std::string, size_t>>
      keys; // one map for each open object
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '{')
      keys.emplace_back();
    else if (c == '}')
      keys.pop_back();
    if (c != '"')
      continue;
    size_t begin = at++;
    for (; text[at] != '"'; ++at)
      at += text[at] == '\\';
    if (!text.drop_front(at + 1).ltrim().starts_with(":"))
      continue;
    // Compare parsed keys, because escapes may spell one key in two forms.
    auto key = llvm::cantFail(llvm::json::parse(text.slice(begin, at + 1)));
    std::string name = key.getAsString()->str();
    auto [entry, isNew] = keys.back().insert({name, begin});
    if (!isNew)
      found.push_back({name, entry->second, begin});
  }
  return found;
}

std::string mlir::dyna::printExcerpt(const Json &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  constexpr size_t most = 60;
  if (text.size() <= most)
    return text;
  size_t end = most - 3;
  while (end > 0 && (text[end] & 0xc0) == 0x80) // inside a character
    --end;
  return text.substr(0, end) + "...";
}
