//===- TextInput.h - Text that parsers can take -----------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parsers of MLIR and of LLVM's JSON call themselves for everything that
// lies inside something: 100,000 brackets would exhaust the stack. Every tool
// reads its input through here, where such text ends in a message.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_TEXTINPUT_H
#define DYNA_DIALECTS_DYNA_TEXTINPUT_H

#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>
#include <string>

namespace mlir::dyna {

/// How many brackets may be open at a time; modules have less than twenty.
inline constexpr int kMaxNesting = 200;

/// Where the text opens one bracket too many: `()`, `[]`, `{}`, `<>` outside of
/// strings and comments, and those that aliases stand for. Unary minus counts,
/// too: the parser of affine expressions calls itself for each.
std::optional<size_t> findDeepNesting(llvm::StringRef text);

/// The file `path`, `-` being standard input; null with a message of one line
/// if it cannot be read or is nested too deeply. Bytecode is not looked at.
std::unique_ptr<llvm::MemoryBuffer> openTextInput(llvm::StringRef path,
                                                  std::string *message);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_TEXTINPUT_H
