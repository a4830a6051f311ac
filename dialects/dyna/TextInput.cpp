//===- TextInput.cpp - Text that parsers can take -------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/TextInput.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::dyna;

/// Behind the string that begins at `at`. One without an end stops at the end
/// of its line.
static size_t skipString(StringRef text, size_t at) {
  for (++at; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return at;
}

std::optional<size_t> mlir::dyna::findDeepNesting(StringRef text) {
  static constexpr StringLiteral opening = "([{<", closing = ")]}>";
  // Of each kind by itself: what `>` closes is no business of `[`.
  int open[4] = {}, minus = 0, depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '"') {
      at = skipString(text, at) - 1;
    } else if (c == '/' && text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (size_t kind = opening.find(c); kind != StringRef::npos) {
      ++open[kind];
      ++depth;
    } else if (text.substr(at).starts_with("->")) {
      ++at;
    } else if (size_t kind = closing.find(c); kind != StringRef::npos) {
      depth -= open[kind] > 0;
      open[kind] -= open[kind] > 0;
    }
    if (!llvm::isSpace(c))
      minus = c == '-' ? minus + 1 : 0;
    if (depth + minus > kMaxNesting)
      return at;
  }
  return std::nullopt;
}

std::unique_ptr<llvm::MemoryBuffer>
mlir::dyna::openTextInput(StringRef path, std::string *message) {
  auto buffer = openInputFile(path, message);
  if (!buffer || buffer->getBuffer().starts_with("ML\xEFR"))
    return buffer;
  StringRef text = buffer->getBuffer();
  std::optional<size_t> deep = findDeepNesting(text);
  if (!deep)
    return buffer;
  StringRef before = text.take_front(*deep);
  *message =
      (buffer->getBufferIdentifier() + ":" + Twine(before.count('\n') + 1) +
       ":" + Twine(*deep - before.rfind('\n')) + ": error: more than " +
       Twine(kMaxNesting) +
       " brackets are open here: nothing that this tool reads is nested "
       "so deeply")
          .str();
  return nullptr;
}
