//===- TextInput.cpp - Refuses text that would exhaust parsers ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/text/TextInput.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;

/// Returns the position after the string that begins at `at`. A string without
/// an end stops at the end of its line.
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

/// Computes the depth and length of aliases: `#a1 = [#a0]` is one bracket
/// around `#a0`, and printing `#a1` expands all of them. A definition ends
/// where the next one or an op begins, and at the latest where its value is
/// used.
class Aliases {
public:
  explicit Aliases(StringRef text) : text(text) {}

  /// Returns how many brackets the alias at `at`, `#name` or `!name`, expands
  /// to; 0 if it begins a definition, or is none.
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
  /// Returns the bytes that all aliases used so far expand to.
  uint64_t getUsedBytes() const { return usedBytes; }
  /// Ends an alias at a word at the beginning of a line, outside of brackets
  /// and after a value: it is an op.
  void endAt(size_t at, int depth) {
    if (at > 0 && text[at - 1] == '\n' && depth == outside &&
        lastSeen >= valueAt)
      defined = nullptr;
  }
  /// Records that the character at `at` is neither space nor comment.
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
    uint64_t bytes = 0; ///< length with all aliases in it replaced
  };

  StringRef text;
  llvm::StringMap<Alias> aliases;
  Alias *defined = nullptr; ///< the alias that is being defined
  uint64_t usedBytes = 0;
  size_t valueAt = 0; ///< start of the alias's value
  size_t lastSeen = 0;
  int outside = 0; ///< brackets open around the definition
};

/// Finds text that is long without being nested. `see` takes every character outside
/// of strings, comments and space.
class Lengths {
public:
  explicit Lengths(StringRef text) : text(text) {}

  std::optional<TextFaultKind> see(size_t at) {
    const char c = text[at];
    // Affine expressions, numbers, names and dimensions consist of these
    // characters.
    const bool isOfRun =
        llvm::isAlnum(c) || StringRef("_$.()+*-?[]").contains(c);
    run = isOfRun ? run + 1 : 0;
    if (isOfRun && at > lastSeen + 1 && isPart(text[lastSeen]) && isPart(c) &&
        !goesOn(at))
      run = 1;
    lastSeen = at;
    if (run > kMaxRun)
      return TextFaultKind::Run;
    if (c == 'i' && isWide(at))
      return TextFaultKind::Width;
    if (c == 'a' && (at == 0 || !isOfWord(text[at - 1])))
      seeWord(at);
    return seeAffine(at) ? std::optional(TextFaultKind::Affine) : std::nullopt;
  }

private:
  static bool isOfWord(char c) {
    return llvm::isAlnum(c) || StringRef("_$.-%@#!^\"").contains(c);
  }
  /// Returns true for a character of a name or number.
  static bool isPart(char c) {
    return llvm::isAlnum(c) || StringRef("_$.").contains(c);
  }

  /// Returns true if the word before `at`, or the one at `at`, is an operator or the
  /// `x` of dimensions. Otherwise the second word begins something new.
  bool goesOn(size_t at) const {
    StringRef before = text.take_front(lastSeen + 1);
    const size_t begin = before.size() - std::min(before.size(), kMaxRun);
    size_t first = before.size();
    while (first > begin && isPart(before[first - 1]))
      --first;
    before = before.substr(first);
    StringRef behind = text.substr(at).take_while(isPart);
    for (StringRef word : {"mod", "floordiv", "ceildiv"})
      if (before == word || behind == word)
        return true;
    return before.ends_with("x") || behind.starts_with("x");
  }

  /// Returns true if an integer type that is too wide begins here. It may stand behind
  /// a sign or the `x` of dimensions.
  bool isWide(size_t at) const {
    const size_t end =
        std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    if (end - at - 1 <= kMaxWidthDigits ||
        (end < text.size() && isOfWord(text[end])))
      return false;
    return at == 0 || !isOfWord(text[at - 1]) ||
           StringRef("sux").contains(text[at - 1]);
  }

  void seeWord(size_t at) {
    StringRef rest = text.substr(at);
    if (!rest.consume_front("affine_map") && !rest.consume_front("affine_set"))
      return;
    if (!rest.empty() && isOfWord(rest.front()))
      return;
    state = Named;
    nameEnd = text.size() - rest.size();
  }

  bool seeAffine(size_t at) {
    if (state == Named && at >= nameEnd) {
      state = text[at] == '<' ? Inside : Outside;
      affineBegin = at;
    } else if (state == Inside && text[at] == '>') {
      const bool isOperator =
          text[at - 1] == '-' || text.substr(at).starts_with(">=");
      state = isOperator ? Inside : Outside;
    }
    return state == Inside && at - affineBegin > kMaxAffine;
  }

  StringRef text;
  size_t run = 0, lastSeen = 0;
  enum { Outside, Named, Inside } state = Outside; ///< of an affine map
  size_t nameEnd = 0, affineBegin = 0;
};

/// Reads a text once, character by character.
class FaultFinder {
public:
  explicit FaultFinder(StringRef text)
      : text(text), aliases(text), lengths(text),
        mostBytes(std::max<uint64_t>(kMaxAliasBytes,
                                     kMaxAliasGrowth * text.size())) {}

  std::optional<TextFault> find() {
    for (size_t at = 0; at < text.size(); ++at) {
      const size_t begin = at;
      const int inside = step(at);
      if (llvm::isSpace(text[begin]))
        continue;
      minus = text[begin] == '-' ? minus + 1 : 0;
      if (text[begin] != '/')
        aliases.see(begin);
      aliases.reach(depth + inside);
      if (depth + inside + minus > kMaxNesting)
        return TextFault{begin, TextFaultKind::Nesting};
      if (aliases.getUsedBytes() > mostBytes)
        return TextFault{begin, TextFaultKind::Aliases};
      const bool isText = text[begin] != '"' && !isComment(begin);
      for (size_t seen = begin; isText && seen <= at; ++seen)
        if (auto kind = lengths.see(seen))
          return TextFault{seen, *kind};
      if (text[begin] == '"')
        lengths.see(begin); // which ends a run of such characters
    }
    return std::nullopt;
  }

private:
  bool isComment(size_t at) const { return text.substr(at).starts_with("//"); }

  /// Moves `at` to the last character of what begins there, and counts brackets.
  /// Returns how many more an alias stands for.
  int step(size_t &at) {
    static constexpr StringLiteral opening = "([{<", closing = ")]}>";
    const char c = text[at];
    if (llvm::isAlpha(c) || c == '"' || c == '%')
      aliases.endAt(at, depth);
    if (c == '"') {
      at = skipString(text, at) - 1;
    } else if (c == '/' && isComment(at)) {
      at = std::min(text.find('\n', at), text.size());
    } else if (size_t kind = opening.find(c); kind != StringRef::npos) {
      ++open[kind];
      ++depth;
    } else if (c == '-' && text.substr(at).starts_with("->")) {
      ++at;
    } else if (size_t kind = closing.find(c); kind != StringRef::npos) {
      depth -= open[kind] > 0;
      open[kind] -= open[kind] > 0;
    } else if (c == '#' || c == '!') {
      return aliases.use(at, depth);
    }
    return 0;
  }

  StringRef text;
  Aliases aliases;
  Lengths lengths;
  const uint64_t mostBytes;
  // Open brackets are counted by kind, because `>` must not close `[`.
  int open[4] = {}, minus = 0, depth = 0;
};

} // namespace

std::optional<TextFault> mlir::dyna::findTextFault(StringRef text) {
  return FaultFinder(text).find();
}

std::string mlir::dyna::describeFault(const TextFault &fault) {
  switch (fault.kind) {
  case TextFaultKind::Nesting:
    return "more than " + std::to_string(kMaxNesting) +
           " brackets are open here: nothing that this tool reads is nested so "
           "deeply";
  case TextFaultKind::Aliases:
    return "the aliases used up to here stand for more than " +
           std::to_string(kMaxAliasBytes >> 20) +
           " MiB of text, far more than there is: nothing that this tool "
           "reads repeats itself so often";
  case TextFaultKind::Run:
    return "an expression, name, number or list of dimensions has more than " +
           std::to_string(kMaxRun) +
           " characters: nothing that this tool reads is so long";
  case TextFaultKind::Affine:
    return "an affine map has more than " + std::to_string(kMaxAffine) +
           " characters: nothing that this tool reads is so long";
  case TextFaultKind::Width:
    return "an integer type has more than " +
           std::string(kMaxWidthDigits, '9') +
           " bits: nothing that this tool reads is so wide";
  }
  return "unknown";
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
