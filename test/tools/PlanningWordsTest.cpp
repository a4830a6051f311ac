//===- PlanningWordsTest.cpp - Planning words are one table ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the table of planning words with what every tool says of them: the help, the
// default, and the message for a bad value. Fails if a tool declares such a word itself,
// or if two tools share an option that is not in the table.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/PlanningWords.h"
#include "runtime/planner/search/StrategyCandidates.h"
#include "runtime/train/flags/CommandLine.h"
#include "runtime/train/flags/Flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace dyna;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

/// Help of each option by its name.
using Options = std::map<std::string, std::string>;

/// Runs a command, and returns what it prints on both streams.
std::string outputOf(const std::string &command) {
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), count);
  pclose(pipe);
  return text;
}

std::string toolPath(const std::string &tool) {
  return DYNA_TOOLS_FOLDER "/" + tool;
}

/// Options that --help of an LLVM tool lists in lines that begin with `indent`.
Options parseHelp(const std::string &text, const std::string &indent) {
  const std::regex line("^" + indent +
                        "--?([a-z-]+)(=<[^>]*>|\\[=<[^>]*>\\])? +- (.*)$");
  Options options;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string one; std::getline(lines, one);)
    if (std::regex_match(one, match, line))
      options[match[1]] = match[3];
  return options;
}

Options toolOptions(const std::string &tool) {
  return parseHelp(outputOf(toolPath(tool) + " --help"), "  ");
}

Options passOptions(const std::string &pass) {
  static const std::string help = outputOf(toolPath("dyna-opt") + " --help");
  const std::string indent = "      ";
  size_t begin = help.find("\n" + indent + "--" + pass + " ");
  EXPECT_NE(begin, std::string::npos) << pass;
  size_t end = help.find("\n" + indent + "--", begin + 1);
  return parseHelp(help.substr(begin, end - begin), indent + "  ");
}

Options binaryOptions() {
  Options options;
  for (const Flag &flag : flags())
    options[flag.name] = flag.help;
  return options;
}

struct Tool {
  std::string name;
  Options options;
  std::set<Word> words; ///< that it needs
};

const std::set<Word> kRequestWords = {
    Word::TokensPerBatch, Word::MicroBatches,  Word::TokensPerMicroBatch,
    Word::InFlight,       Word::SplitBackward, Word::Slices,
    Word::Recompute,      Word::Pipeline,      Word::RankMemory,
    Word::MergeRanges};

std::set<Word> with(std::set<Word> words, std::set<Word> more) {
  words.insert(more.begin(), more.end());
  return words;
}

const std::vector<Tool> &tools() {
  static const std::vector<Tool> all = [] {
    const auto begins =
        with(kRequestWords, {Word::Strategy, Word::Costs, Word::Cluster});
    const auto planned = with(
        kRequestWords, {Word::Strategies, Word::Ranges, Word::Costs,
                        Word::Cluster, Word::Lengths, Word::LengthColumns});
    return std::vector<Tool>{
        {"train", binaryOptions(),
         with(kRequestWords, {Word::Strategy, Word::Strategies, Word::Ranges,
                              Word::Ranks, Word::Costs})},
        {"dyna-plan", toolOptions("dyna-plan"),
         with(planned, {Word::Strategy})},
        {"dynac", toolOptions("dynac"), with(planned, {Word::Ranks})},
        {"--dyna-plan", passOptions("dyna-plan"), begins},
        {"--dyna-build-micro-batches", passOptions("dyna-build-micro-batches"),
         begins},
        {"--dyna-schedule",
         passOptions("dyna-schedule"),
         {Word::Costs, Word::Cluster, Word::Pipeline, Word::InFlight,
          Word::SplitBackward, Word::Recompute, Word::RankMemory}},
        {"--dyna-order-communication",
         passOptions("dyna-order-communication"),
         {Word::Costs, Word::Cluster, Word::Pipeline}}};
  }();
  return all;
}

bool isPass(const Tool &tool) { return tool.name.rfind("--", 0) == 0; }

TEST(PlanningWords, TableFollowsItsEnumeration) {
  size_t index = 0;
  for (const PlanningWord &word : planningWords()) {
    EXPECT_EQ(static_cast<size_t>(word.word), index++);
    EXPECT_EQ(findWord(word.name), &word);
    EXPECT_FALSE(word.meaning.empty());
  }
  EXPECT_EQ(findWord("tokens"), nullptr);
}

TEST(PlanningWords, EveryToolHasTheWordsOfItsJob) {
  for (const Tool &tool : tools())
    for (Word word : tool.words)
      EXPECT_TRUE(tool.options.count(wordOf(word).name))
          << tool.name << " has no --" << wordOf(word).name;
}

TEST(PlanningWords, HelpAndDefaultAreThoseOfTheTable) {
  for (const Tool &tool : tools())
    for (const auto &[name, help] : tool.options) {
      const PlanningWord *word = findWord(name);
      // Passes read a list of numbers, but no file.
      if (!word || (isPass(tool) && word->word == Word::Lengths))
        continue;
      EXPECT_TRUE(tool.words.count(word->word))
          << tool.name << " has --" << name << ", which no list here has";
      EXPECT_THAT(help, StartsWith(word->meaning)) << tool.name;
      if (!word->defaultValue.empty())
        EXPECT_THAT(help, EndsWith("(default: " + word->defaultValue + ")"))
            << tool.name << " --" << name;
    }
}

TEST(PlanningWords, DefaultsAreOne) {
  const int64_t tokens = defaultTokensPerBatch;
  EXPECT_EQ(TrainOptions().tokensPerBatch, tokens);
  EXPECT_EQ(PlanRequest().tokensPerBatch, tokens);
  EXPECT_EQ(PlanningValues().tokensPerBatch, tokens);
  EXPECT_EQ(StrategySpace().tokensPerStep, tokens);
  EXPECT_THAT(wordOf(Word::TokensPerBatch).defaultValue,
              StartsWith(std::to_string(tokens)));
  EXPECT_EQ(TrainOptions().mergeRanges, wordOf(Word::MergeRanges).defaultValue);
  EXPECT_EQ(TrainOptions().microBatches,
            wordOf(Word::MicroBatches).defaultValue);
}

/// A value that the word does not take.
std::string badValue(const PlanningWord &word) {
  switch (word.kind) {
  case WordKind::Number:
    return std::to_string(word.high + 1);
  case WordKind::Choice:
    return "zigzag";
  case WordKind::Modes:
    return "half";
  case WordKind::Bytes:
    return "much";
  case WordKind::Toggle:
    return "maybe";
  case WordKind::Text:
    return "";
  }
  return "";
}

std::string messageOf(const Tool &tool, const PlanningWord &word,
                      const std::string &text) {
  const std::string argument = std::string(word.name) + "=" + text;
  if (tool.name == "train") {
    TrainOptions options;
    return parseCommandLine({"--" + argument}, options).message();
  }
  if (isPass(tool))
    return outputOf("echo 'module {}' | " + toolPath("dyna-opt") + " " +
                    tool.name + "='" + argument + "'");
  return outputOf(toolPath(tool.name) + " model.mlir '--" + argument + "'");
}

TEST(PlanningWords, BadValuesHaveOneMessage) {
  for (const PlanningWord &word : planningWords()) {
    std::vector<std::string> texts = {badValue(word)};
    if (word.kind == WordKind::Number)
      texts.push_back("many");
    for (const std::string &text : texts) {
      PlanningValues values;
      const Status status = setWord(word.word, text, values);
      ASSERT_FALSE(status.isOk()) << word.name;
      EXPECT_THAT(status.message(), HasSubstr(word.flag() + " expects "));
      EXPECT_THAT(status.message(), HasSubstr("but got '" + text + "'"));
      for (const Tool &tool : tools())
        // An empty option of a pass is one that is not given.
        if (tool.words.count(word.word) && !(isPass(tool) && text.empty()))
          EXPECT_THAT(messageOf(tool, word, text), HasSubstr(status.message()))
              << tool.name;
    }
  }
}

/// Options of two tools that are no planning words: what they say is of the tool.
const std::set<std::string> kOwn = {
    "help",         // of every tool
    "help-list",    // of LLVM
    "version",      // of every tool
    "isa",          // one of a run; those that dynac compiles
    "report",       // more of each plan; remarks of a pass
    "attention",    // kernels of a run; recorded scores of a forecast
    "compute-type", // of what is compiled; a binary has its own
    "steps",        // optimizer steps of a run; planned steps of a forecast
    "trace",        // file
    "evaluate",     // losses only
    "lengths",      // of passes: numbers alone
    "rebalance",    // what a run follows; what a forecast compares
    "repack",       // ranks at steps of a run; ranks that a forecast compares
    "target-tokens" // of passes
};

TEST(PlanningWords, SharedOptionsAreInTheTable) {
  std::map<std::string, std::set<std::string>> having;
  for (const Tool &tool : tools())
    for (const auto &[name, help] : tool.options)
      having[name].insert(tool.name);
  for (const auto &[name, users] : having)
    if (users.size() > 1 && !kOwn.count(name) && name != "schedule")
      EXPECT_NE(findWord(name), nullptr)
          << "--" << name << " is declared by " << users.size() << " tools";
}

/// Names in declarations of options of LLVM, of a binary and of passes.
std::vector<std::string> declaredNames(const std::string &source) {
  static const std::regex declaration(
      R"re((?:cl::(?:opt|list)<[^;{]*>\s*\w+\{\s*|Option<"\w+",\s*|\b(?:integer|real|choice|text|toggle|list)\(\s*"\w+",\s*)"([a-z-]+)")re");
  std::vector<std::string> names;
  for (std::sregex_iterator it(source.begin(), source.end(), declaration), end;
       it != end; ++it)
    names.push_back((*it)[1]);
  return names;
}

TEST(PlanningWords, NoToolDeclaresOne) {
  int declared = 0;
  for (const char *folder : {"tools", "passes/plan", "runtime/train/flags"})
    for (const auto &entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(DYNA_SOURCE_FOLDER) / folder)) {
      const std::string ending = entry.path().extension();
      if (ending != ".h" && ending != ".cpp" && ending != ".td")
        continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const std::string &name : declaredNames(text.str())) {
        ++declared;
        EXPECT_TRUE(!findWord(name) || (ending == ".td" && name == "lengths"))
            << entry.path() << " declares --" << name;
      }
    }
  EXPECT_GT(declared, 60); // the expression finds them
}

TEST(PlanningWords, DeclarationsAreFound) {
  EXPECT_THAT(
      declaredNames("llvm::cl::opt<int64_t> t{\n \"in-flight\", cl::x}; "
                    "cl::list<std::string> u{\"ranges\"}; "
                    "Option<\"a\", \"rank-memory\", \"x\">, "
                    "integer(\"Steps\", \"pipeline\", \"order\")"),
      ::testing::ElementsAre("in-flight", "ranges", "rank-memory", "pipeline"));
}

} // namespace
