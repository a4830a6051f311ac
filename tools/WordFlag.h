//===- WordFlag.h - Makes planning words options of a tool ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_WORDFLAG_H
#define DYNA_TOOLS_WORDFLAG_H

#include "runtime/planner/request/PlanningWords.h"
#include "llvm/Support/CommandLine.h"

#include <string>
#include <vector>

namespace dyna {

/// Row and help of an option, which refers to them.
struct WordHelp {
  WordHelp(Word word, const std::string &more)
      : row(wordOf(word)), help(describeWord(word, more)) {}
  const PlanningWord &row;
  const std::string help;
};

/// An option with one value that is a planning word. `more` is help text for
/// this tool alone.
class WordFlag : private WordHelp, public llvm::cl::opt<std::string> {
public:
  WordFlag(Word word, llvm::cl::OptionCategory &category,
           const std::string &more = "")
      : WordHelp(word, more),
        llvm::cl::opt<std::string>(
            llvm::StringRef(row.name), llvm::cl::desc(help),
            llvm::cl::value_desc(row.unit), llvm::cl::cat(category)) {
    if (row.kind == WordKind::Toggle)
      setValueExpectedFlag(llvm::cl::ValueOptional);
  }
  Word word() const { return row.word; }
  bool isGiven() const { return getNumOccurrences() > 0; }
  /// Sets the word's field if the option is given.
  Status read(PlanningValues &values) const {
    return isGiven() ? setWord(row.word, getValue(), values) : Status::ok();
  }
};

/// An option with several values of a planning word, which are all tried.
class WordList : private WordHelp, public llvm::cl::list<std::string> {
public:
  WordList(Word word, llvm::cl::OptionCategory &category,
           const std::string &more, bool hasCommas)
      : WordHelp(word, more),
        llvm::cl::list<std::string>(
            llvm::StringRef(row.name), llvm::cl::desc(help),
            llvm::cl::value_desc(row.unit), llvm::cl::cat(category)) {
    if (hasCommas)
      setMiscFlag(llvm::cl::CommaSeparated);
  }
  bool isGiven() const { return getNumOccurrences() > 0; }
  /// Parses every value into `values`, so that the last one stays.
  Status read(PlanningValues &values) const {
    for (const std::string &text : *this)
      if (Status status = setWord(row.word, text, values); !status.isOk())
        return status;
    return Status::ok();
  }
};

} // namespace dyna

#endif // DYNA_TOOLS_WORDFLAG_H
