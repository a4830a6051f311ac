//===- LineFields.h - Reads the members of a line of JSON -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A line of JSON is one of three forms:
//
//     {"text": "..."}                       all of it is in the loss
//     {"input": "...", "target": "..."}     the loss is on the target
//     {"messages": [{"role": "user", "content": "..."}, ...]}
//                                           the loss is on the assistant's part
//
// Messages become text by this template; its marks are plain text:
//
//     <|im_start|>user
//     Hello<|im_end|>
//     <|im_start|>assistant
//     Good morning<|im_end|>
//
// Each line of the template ends with a line break. The loss includes an
// answer, its "<|im_end|>" and the line break after it. It includes the end of
// the document if the last message is the assistant's.
//
// The user can give other names of members, and several members for one part:
//
//     text=title+body
//     input=instruction+input,target=output
//     messages=conversation
//
// Then only the named form is read. Members that are absent, null or empty are
// left out. The members of a part have a line break between them. Each member
// of an input has one after it, so that the input ends before the target.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_LINEFIELDS_H
#define DYNA_RUNTIME_DATA_LINEFIELDS_H

#include "runtime/data/Dataset.h"

#include <string_view>

namespace dyna {

/// Parses "input=instruction+input,target=output".
StatusOr<LineFields> parseLineFields(std::string_view text);

/// The text of a line.
struct LineParts {
  std::vector<std::string> pieces;    ///< one behind the other
  int64_t firstTarget = 1;            ///< as in Document
  std::vector<DocumentRange> ignored; ///< see Dataset::readIgnored

  int64_t bytes() const;
};

/// Reads the members that training uses, and skips the values of all others,
/// whatever they are. `endTokens` tokens follow the line's bytes.
StatusOr<LineParts> readLine(std::string_view line, const LineFields &fields,
                             int64_t endTokens);

/// Returns true if a line begins like a line of a data set. Its end may lie
/// after the part of the file that was read.
bool beginsAsLine(std::string_view text, const LineFields &fields);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_LINEFIELDS_H
