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
#include "llvm/ADT/StringMap.h"

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

namespace {

/// How deep aliases are: `#a1 = [#a0]` is one bracket around what `#a0` is, and
/// whoever prints `#a1` opens all of them. A definition ends where the next one
/// or an op begins; at the latest where what it defines is used.
class AliasDepths {
public:
  explicit AliasDepths(StringRef text) : text(text) {}

  /// How many brackets the alias at `at`, `#name` or `!name`, stands for: 0 if
  /// it begins a definition, or is none.
  int use(size_t at, int depth) {
    StringRef name = text.substr(at).take_front(1 + wordAt(at + 1).size());
    size_t equals = text.find_first_not_of(" \t\r\n", at + name.size());
    if (text.substr(equals).starts_with("=")) {
      defined = &(depths[name] = 0);
      valueAt = equals + 1;
      outside = depth;
      return 0;
    }
    auto known = depths.find(name);
    if (known == depths.end())
      return 0;
    if (defined == &known->second)
      defined = nullptr;
    return known->second;
  }
  /// A word at the begin of a line, outside of brackets and behind a value, is
  /// an op.
  void endAt(size_t at, int depth) {
    if (at > 0 && text[at - 1] == '\n' && depth == outside &&
        lastSeen >= valueAt)
      defined = nullptr;
  }
  /// The character at `at` is neither space nor comment.
  void see(size_t at) { lastSeen = at; }
  void reach(int depth) {
    if (defined)
      *defined = std::max(*defined, depth - outside);
  }

private:
  StringRef wordAt(size_t at) const {
    return text.substr(at).take_while([](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
    });
  }

  StringRef text;
  llvm::StringMap<int> depths;
  int *defined = nullptr; ///< the depth of the alias whose definition this is
  size_t valueAt = 0;     ///< where its value begins
  size_t lastSeen = 0;
  int outside = 0; ///< how many brackets are open around the definition
};

} // namespace

std::optional<size_t> mlir::dyna::findDeepNesting(StringRef text) {
  static constexpr StringLiteral opening = "([{<", closing = ")]}>";
  AliasDepths aliases(text);
  // Of each kind by itself: what `>` closes is no business of `[`.
  int open[4] = {}, minus = 0, depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    int inside = 0;
    if (llvm::isAlpha(c) || c == '"' || c == '%')
      aliases.endAt(at, depth);
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
    } else if (c == '#' || c == '!') {
      inside = aliases.use(at, depth);
    }
    if (!llvm::isSpace(c)) {
      minus = c == '-' ? minus + 1 : 0;
      if (c != '/')
        aliases.see(at);
    }
    aliases.reach(depth + inside);
    if (depth + inside + minus > kMaxNesting)
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
