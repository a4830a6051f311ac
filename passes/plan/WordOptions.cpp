//===- WordOptions.cpp - Makes pass options of planning words -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/WordOptions.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::dyna;

using ::dyna::PlanningValues;
using ::dyna::Status;
using ::dyna::StatusOr;
using ::dyna::Word;
using ::dyna::WordKind;

static bool isToggle(Word word) {
  return ::dyna::wordOf(word).kind == WordKind::Toggle;
}

WordOptions::Entry::Entry(Pass &pass, Word word)
    : word(word), help(::dyna::describeWord(word)),
      option(pass, ::dyna::wordOf(word).name, llvm::cl::desc(help),
             llvm::cl::init(std::string(isToggle(word) ? "false" : ""))) {
  if (isToggle(word))
    option.setValueExpectedFlag(llvm::cl::ValueOptional);
}

WordOptions::WordOptions(Pass &pass, std::initializer_list<Word> words) {
  for (Word word : words)
    entries.emplace_back(pass, word);
  if (llvm::is_contained(words, Word::Pipeline))
    otherName = std::make_unique<Pass::Option<std::string>>(
        pass, "schedule", llvm::cl::desc("Another name of pipeline"),
        llvm::cl::init(std::string()));
}

const std::string &WordOptions::text(Word word) const {
  return llvm::find_if(entries,
                       [&](const Entry &entry) { return entry.word == word; })
      ->option.getValue();
}

StatusOr<std::string> WordOptions::schedule() const {
  const std::string &pipeline = text(Word::Pipeline);
  const std::string &other = otherName->getValue();
  if (pipeline.empty() || other.empty() || pipeline == other)
    return pipeline.empty() ? other : pipeline;
  return Status::invalidArgument(
      "pipeline and schedule are two words for one option, but got '" +
      pipeline + "' and '" + other + "'");
}

StatusOr<PlanningValues> WordOptions::read() const {
  PlanningValues values;
  for (const Entry &entry : entries)
    if (!entry.option.empty() || isToggle(entry.word))
      DYNA_RETURN_IF_ERROR(
          ::dyna::setWord(entry.word, entry.option.getValue(), values));
  if (!otherName)
    return values;
  DYNA_ASSIGN_OR_RETURN(std::string word, schedule());
  if (!word.empty())
    DYNA_RETURN_IF_ERROR(::dyna::setWord(Word::Pipeline, word, values));
  return values;
}

void WordOptions::set(
    const std::vector<std::pair<std::string, std::string>> &texts) {
  for (const auto &[name, text] : texts) {
    auto found = llvm::find_if(entries, [&, &name = name](const Entry &entry) {
      return name == ::dyna::wordOf(entry.word).name;
    });
    assert(found != entries.end() && "the pass has no such planning word");
    found->option = text;
  }
}
