//===- WordOptions.h - Makes pass options of planning words -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_WORDOPTIONS_H
#define DYNA_PASSES_PLAN_WORDOPTIONS_H

#include "mlir/Pass/Pass.h"
#include "runtime/planner/request/PlanningWords.h"

#include <deque>

namespace mlir::dyna {

/// Options of one pass that are rows of the table of planning words. TableGen
/// cannot read the table, so a pass has these as a member.
class WordOptions {
public:
  WordOptions(Pass &pass, std::initializer_list<::dyna::Word> words);

  /// Returns the text of an option; empty if it is not given, and "false" for a
  /// toggle.
  const std::string &text(::dyna::Word word) const;
  bool isGiven(::dyna::Word word) const { return !text(word).empty(); }
  /// Parses all options. Values that are not given keep their defaults.
  ::dyna::StatusOr<::dyna::PlanningValues> read() const;
  /// Sets options by name, as a driver does. Unknown names are a bug.
  void set(const std::vector<std::pair<std::string, std::string>> &texts);

private:
  /// Returns the schedule. "schedule" is a second name of "pipeline" in passes.
  /// Fails if both are given and differ.
  ::dyna::StatusOr<std::string> schedule() const;
  struct Entry {
    Entry(Pass &pass, ::dyna::Word word);
    ::dyna::Word word;
    std::string help; ///< the option refers to it
    Pass::Option<std::string> option;
  };
  std::deque<Entry> entries;
  std::unique_ptr<Pass::Option<std::string>> otherName;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_WORDOPTIONS_H
