//===- LineFields.h - Members of a line of JSON that are read ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A line of JSON is one of three forms:
//
//   {"text": "..."}                           all of it is in the loss
//   {"input": "...", "target": "..."}         the loss is on the target
//   {"messages": [{"role": "user", "content": "..."}, ...]}
//                                             the loss is on the assistant's part
//
// Messages become text by this template, whose marks are plain text:
//
//   <|im_start|>user
//   Hello<|im_end|>
//   <|im_start|>assistant
//   Good morning<|im_end|>
//
// Each line of the template ends with a line break. An answer is in the loss with its
// "<|im_end|>" and the line break behind. So is the end of the document, if the last
// message is the assistant's.
//
// Other names of members, and several for one part, are given as
//
//   text=title+body
//   input=instruction+input,target=output
//   messages=conversation
//
// Only the form that is named is read then. Members that are absent, null or empty are
// left out. Those of a part have a line break between them. Those of an input have one
// behind each, so that it ends before the target.
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
  std::vector<DocumentRange> ignored; ///< as of Dataset::readIgnored

  int64_t bytes() const;
};

/// Reads the members that training reads. The values of all others are passed over,
/// whatever they are. `endTokens` stand behind the line's bytes.
StatusOr<LineParts> readLine(std::string_view line, const LineFields &fields,
                             int64_t endTokens);

/// Returns true if a line begins as a line of a data set does. Its end may lie behind
/// the part of the file that was read.
bool beginsAsLine(std::string_view text, const LineFields &fields);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_LINEFIELDS_H
