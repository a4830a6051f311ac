//===- TextInput.cpp - Text that parsers can take -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/TextInput.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

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

/// How deep and how long aliases are: `#a1 = [#a0]` is one bracket around what
/// `#a0` is, and whoever prints `#a1` opens all of them. A definition ends where
/// the next one or an op begins; at the latest where what it defines is used.
class Aliases {
public:
  explicit Aliases(StringRef text) : text(text) {}

  /// How many brackets the alias at `at`, `#name` or `!name`, stands for: 0 if
  /// it begins a definition, or is none.
  int use(size_t at, int depth) {
    StringRef name = text.substr(at).take_front(1 + wordAt(at + 1).size());
    size_t equals = text.find_first_not_of(" \t\r\n", at + name.size());
    if (text.substr(equals).starts_with("=")) {
      defined = &(aliases[name] = {});
      valueAt = equals + 1;
      outside = depth;
      return 0;
    }
    auto known = aliases.find(name);
    if (known == aliases.end())
      return 0;
    if (defined == &known->second)
      defined = nullptr;
    usedBytes = llvm::SaturatingAdd(usedBytes, known->second.bytes);
    if (defined)
      defined->bytes = llvm::SaturatingAdd(defined->bytes, known->second.bytes);
    return known->second.depth;
  }
  /// What all aliases used so far stand for.
  uint64_t getUsedBytes() const { return usedBytes; }
  /// A word at the begin of a line, outside of brackets and behind a value, is
  /// an op.
  void endAt(size_t at, int depth) {
    if (at > 0 && text[at - 1] == '\n' && depth == outside &&
        lastSeen >= valueAt)
      defined = nullptr;
  }
  /// The character at `at` is neither space nor comment.
  void see(size_t at) {
    lastSeen = at;
    if (defined)
      ++defined->bytes;
  }
  void reach(int depth) {
    if (defined)
      defined->depth = std::max(defined->depth, depth - outside);
  }

private:
  StringRef wordAt(size_t at) const {
    return text.substr(at).take_while([](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
    });
  }

  struct Alias {
    int depth = 0;
    uint64_t bytes = 0; ///< with what the aliases in it stand for
  };

  StringRef text;
  llvm::StringMap<Alias> aliases;
  Alias *defined = nullptr; ///< whose definition this is
  uint64_t usedBytes = 0;
  size_t valueAt = 0; ///< where its value begins
  size_t lastSeen = 0;
  int outside = 0; ///< how many brackets are open around the definition
};

} // namespace

std::optional<TextFault> mlir::dyna::findTextFault(StringRef text) {
  static constexpr StringLiteral opening = "([{<", closing = ")]}>";
  Aliases aliases(text);
  const uint64_t mostBytes =
      std::max<uint64_t>(kMaxAliasBytes, kMaxAliasGrowth * text.size());
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
      return TextFault{at, /*isLong=*/false};
    if (aliases.getUsedBytes() > mostBytes)
      return TextFault{at, /*isLong=*/true};
  }
  return std::nullopt;
}

std::string mlir::dyna::describeFault(const TextFault &fault) {
  if (fault.isLong)
    return "the aliases used up to here stand for more than " +
           std::to_string(kMaxAliasBytes >> 20) +
           " MiB of text, far more than there is: nothing that this tool "
           "reads repeats itself so often";
  return "more than " + std::to_string(kMaxNesting) +
         " brackets are open here: nothing that this tool reads is nested so "
         "deeply";
}

std::unique_ptr<llvm::MemoryBuffer>
mlir::dyna::openTextInput(StringRef path, std::string *message) {
  auto buffer = openInputFile(path, message);
  if (!buffer || buffer->getBuffer().starts_with("ML\xEFR"))
    return buffer;
  StringRef text = buffer->getBuffer();
  std::optional<TextFault> fault = findTextFault(text);
  if (!fault)
    return buffer;
  StringRef before = text.take_front(fault->at);
  *message =
      (buffer->getBufferIdentifier() + ":" + Twine(before.count('\n') + 1) +
       ":" + Twine(fault->at - before.rfind('\n')) +
       ": error: " + describeFault(*fault))
          .str();
  return nullptr;
}

std::optional<int64_t> mlir::dyna::readInteger(const llvm::json::Value &value) {
  if (value.getAsNumber().value_or(0) < 0x1p63 || value.getAsUINT64())
    return value.getAsInteger();
  return std::nullopt;
}
