//===- TextInput.h - Refuses text that would exhaust parsers ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parsers of MLIR and of LLVM's JSON recurse into everything that is
// nested: 100,000 brackets would exhaust the stack. So would the terms of a
// long sum, without any bracket. A tensor type with many dimensions is read
// once more for each of them. Every tool reads its input through this file,
// which refuses such text with a message.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TEXT_TEXTINPUT_H
#define DYNA_DIALECTS_DYNA_TEXT_TEXTINPUT_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>
#include <string>

namespace mlir::dyna {

/// Largest number of brackets open at a time; modules have less than twenty.
inline constexpr int kMaxNesting = 200;

/// Limit of the bytes that aliases stand for, over all their uses. The limit is
/// the larger of kMaxAliasBytes and kMaxAliasGrowth times the text.
inline constexpr size_t kMaxAliasBytes = size_t(64) << 20;
inline constexpr size_t kMaxAliasGrowth = 64;

/// Limit of characters without space between two delimiters: the longest sum,
/// name, number or list of dimensions.
inline constexpr size_t kMaxRun = 2048;
/// Limit of the characters of `affine_map<...>`: its parser searches all
/// declared names for each name.
inline constexpr size_t kMaxAffine = 16384;
/// Limit of the digits in the width of an integer type.
inline constexpr size_t kMaxWidthDigits = 5;

enum class TextFaultKind { Nesting, Aliases, Run, Affine, Width };

struct TextFault {
  size_t at = 0;
  TextFaultKind kind = TextFaultKind::Nesting;
};

/// Returns the place of the first fault of a text:
///
/// - One bracket too many is open: `()`, `[]`, `{}` or `<>`, outside of strings
///   and comments. Brackets in the text of aliases count too. Unary minus
///   counts as a bracket, because the parser of affine expressions recurses for
///   each.
/// - Aliases stand for too much text. A chain such as `#a1 = [#a0, #a0]`
///   doubles with every line, and whatever prints or hashes it pays for all of
///   it.
/// - A run, an affine map or the width of an integer type is too long.
std::optional<TextFault> findTextFault(llvm::StringRef text);
/// Returns the message for a fault.
std::string describeFault(const TextFault &fault);

/// Opens the file `path`; `-` is standard input. Returns null, with a message
/// of one line, if it cannot be read or has a fault. Bytecode is not checked.
std::unique_ptr<llvm::MemoryBuffer> openTextInput(llvm::StringRef path,
                                                  std::string *message);

/// Returns a JSON number without fraction. LLVM's `getAsInteger` accepts 2^63
/// with a point or an exponent, and converts numbers that no int64_t holds.
std::optional<int64_t> readInteger(const llvm::json::Value &value);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TEXT_TEXTINPUT_H
