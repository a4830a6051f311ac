//===- TextInput.h - Text that parsers can take -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parsers of MLIR and of LLVM's JSON call themselves for everything that
// lies inside something: 100,000 brackets would exhaust the stack. So would the
// terms of a long sum, without any bracket; a tensor type of as many dimensions is
// read once more for each of them. Every tool reads its input through here, where
// such text ends in a message.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TEXTINPUT_H
#define DYNA_DIALECTS_DYNA_TEXTINPUT_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>
#include <string>

namespace mlir::dyna {

/// How many brackets may be open at a time; modules have less than twenty.
inline constexpr int kMaxNesting = 200;

/// How many bytes aliases may stand for, all places together where they are
/// used; or these times the text, if that is more.
inline constexpr size_t kMaxAliasBytes = size_t(64) << 20;
inline constexpr size_t kMaxAliasGrowth = 64;

/// How many characters, without space, stand between two that end whatever is
/// read: the longest sum, name, number or list of dimensions.
inline constexpr size_t kMaxRun = 2048;
/// How many characters `affine_map<...>` has: its parser looks for each name among
/// all that it declares.
inline constexpr size_t kMaxAffine = 16384;
/// How many digits the width of an integer type has.
inline constexpr size_t kMaxWidthDigits = 5;

enum class TextFaultKind { Nesting, Aliases, Run, Affine, Width };

struct TextFault {
  size_t at = 0;
  TextFaultKind kind = TextFaultKind::Nesting;
};

/// Where the text opens one bracket too many: `()`, `[]`, `{}`, `<>` outside of
/// strings and comments, and those that aliases stand for. Unary minus counts,
/// too: the parser of affine expressions calls itself for each. Or where its
/// aliases stand for too much: `#a1 = [#a0, #a0]`, and so on, doubles with
/// every line, and whoever prints or hashes it takes all of that. Or where a run,
/// an affine map or the width of an integer type becomes too long.
std::optional<TextFault> findTextFault(llvm::StringRef text);
/// What is said at the place of a fault.
std::string describeFault(const TextFault &fault);

/// The file `path`, `-` being standard input; null with a message of one line
/// if it cannot be read or has a fault. Bytecode is not looked at.
std::unique_ptr<llvm::MemoryBuffer> openTextInput(llvm::StringRef path,
                                                  std::string *message);

/// A JSON number without fraction. `getAsInteger` of LLVM takes 2^63, written
/// with a point or an exponent, as one, and converts what no int64_t holds.
std::optional<int64_t> readInteger(const llvm::json::Value &value);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TEXTINPUT_H
