//===- DescribeData.cpp - Describes the data of a run for people ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/DescribeData.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dyna {
namespace {

/// Formats a count: "1 document", "12,345 documents".
std::string count(int64_t number, const char *noun) {
  return groupDigits(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string describeLengths(const SampleStatistics &data) {
  auto at = [&](double fraction) {
    return groupDigits(data.lengthAt(fraction));
  };
  return at(0) + " to " + at(1) + " tokens (half of them up to " + at(0.5) +
         ", 9 of 10 up to " + at(0.9) + ", 99 of 100 up to " + at(0.99) + ")";
}

std::string describeDocuments(const SampleStatistics &data) {
  std::string text = count(data.documents, "document") + ", " +
                     count(data.documentTokens, "token");
  if (data.split > 0)
    text += ", " + groupDigits(data.split) + " too long and split";
  return text;
}

/// Returns a file that was probably misread: in a folder every file is read as
/// text, which is rarely intended for these.
std::string misreadFile(const Dataset &data) {
  constexpr int64_t enough = 1000;
  for (int64_t i = 0; i < std::min(data.size(), enough); ++i) {
    std::string path = data.describe(i);
    for (const char *ending : {".jsonl", ".idx"})
      if (size_t size = std::strlen(ending);
          path.size() > size && path.substr(path.size() - size) == ending)
        return path;
  }
  return "";
}

/// Describes a step size far from the data; empty if it is not.
std::string noteStepSize(int64_t tokens, const SampleStatistics &data) {
  const auto longest = static_cast<int64_t>(data.counts.size()) - 1;
  std::string flag = "--tokens-per-batch of " + groupDigits(tokens) + " is ";
  // A sample that does not fit a step is left for the next one.
  if (tokens >= data.tokens + longest)
    return flag + "more than all samples have together (" +
           groupDigits(data.tokens) +
           " tokens): every step sees samples more than once";
  if (tokens < longest)
    return flag + "less than the longest sample (" + groupDigits(longest) +
           " tokens): steps with such a sample have it alone";
  return "";
}

} // namespace

std::string nameData(const Session &session) {
  std::string names;
  for (const std::string &name : session.options.data)
    names += (names.empty() ? "" : ", ") + printable(name);
  return names + ": " + describeDocuments(session.data->statistics());
}

std::string describeLongDocuments(const Session &session) {
  const SampleStatistics &data = session.data->statistics();
  if (data.tooLong() == 0)
    return "";
  std::string text = groupDigits(data.tooLong()) + " of more than " +
                     groupDigits(session.sampleLimit) + " tokens: ";
  const char *gap = "";
  for (auto [number, what] : {std::pair(data.split, "split"),
                              {data.truncated, "cut"},
                              {data.shortened, "shortened"},
                              {data.skipped, "left out"}})
    if (number > 0) {
      text += gap + groupDigits(number) + " " + what;
      gap = ", ";
    }
  return text + "; the longest: " +
         printable(session.data->dataset().describe(data.longestDocument)) +
         ", " + count(data.longestDocumentTokens, "token");
}

std::vector<std::string> describeData(const Session &session) {
  const SampleStatistics &data = session.data->statistics();
  std::vector<std::string> lines = {"data: " + describeDocuments(data),
                                    "samples: " + groupDigits(data.samples) +
                                        " of " + describeLengths(data)};
  if (!session.options.evaluate) {
    double perStep =
        static_cast<double>(session.options.tokensPerBatch) / data.meanTokens();
    lines.back() += ", about " +
                    groupDigits(std::max<int64_t>(1, std::llround(perStep))) +
                    " a step";
  }
  if (session.heldOut)
    lines.push_back(
        "held out: " + describeDocuments(session.heldOut->statistics()) + ", " +
        count(session.heldOut->size(), "sample"));
  return lines;
}

/// Returns the number of training samples whose lengths are in the range.
static int64_t samplesOf(const LengthRange &range,
                         const SampleStatistics &data) {
  int64_t samples = 0;
  for (int64_t tokens = range.first;
       tokens <= std::min(range.last, data.longestSample()); ++tokens)
    samples += data.counts[tokens];
  return samples;
}

std::vector<std::string> describeRanges(const Session &session) {
  std::vector<std::string> lines;
  if (!session.hasRanges())
    return lines;
  const StepGraphs &graphs = *session.graphs;
  for (int index = 0; index < graphs.count(); ++index) {
    const LengthRange &range = graphs.ranges().ranges()[index];
    lines.push_back(formatText(
        "range: %s tokens, %s: %s%s", describeLengths(range),
        describeStrategy(graphs.graph(index).graph->strategy()),
        count(samplesOf(range, session.data->statistics()), "sample"),
        graphs.isHome(graphs.graph(index)) ? "; home" : ""));
  }
  return lines;
}

/// Notes a strategy without samples, which is rarely intended.
static std::string noteEmptyRange(const Session &session,
                                  const LengthRange &range) {
  if (samplesOf(range, session.data->statistics()) > 0)
    return "";
  const std::string none =
      formatText("no sample has %s tokens, so that strategy '%s' gets none",
                 describeLengths(range), range.name);
  if (session.graphs->areSeveral() && range.name == session.home().name)
    return none + "; it is home, so every step switches to it all the same: "
                  "home=NAME, as one more range, makes another one home";
  return range.first > session.sampleLimit
             ? none + ": samples have at most " +
                   groupDigits(session.sampleLimit)
             : none;
}

std::vector<std::string> lengthNotes(const Session &session) {
  const SampleStatistics &data = session.data->statistics();
  std::vector<std::string> notes;
  std::string limit = groupDigits(session.sampleLimit) + " tokens";
  if (data.shortened > 0)
    notes.push_back(
        count(data.shortened, "input/target pair") + " of more than " + limit +
        " shortened in the middle of the input" +
        (data.targetCut > 0
             ? ", " + groupDigits(data.targetCut) + " at the target's end too"
             : ""));
  if (data.truncated > 0)
    notes.push_back(count(data.truncated, "document") + " cut behind " + limit +
                    " (--long-documents=truncate)");
  if (data.skipped > 0)
    notes.push_back(count(data.skipped, "document") + " of more than " + limit +
                    " left out (--long-documents=skip)");
  if (data.dropped > 0)
    notes.push_back(count(data.dropped, "document") +
                    " left out: nothing to predict in them");
  return notes;
}

std::vector<std::string> dataNotes(const Session &session) {
  const SampleStatistics &data = session.data->statistics();
  std::vector<std::string> notes = lengthNotes(session);
  if (session.hasRanges())
    for (const LengthRange &range : session.graphs->ranges().ranges())
      if (std::string note = noteEmptyRange(session, range); !note.empty())
        notes.push_back(std::move(note));
  std::vector<SampleIndexPointer> given = {session.data};
  if (!session.options.heldOut
           .empty()) // otherwise held-out data are a part of the same files
    given.push_back(session.heldOut);
  for (const SampleIndexPointer &set : given)
    for (std::string &note : set->dataset().notes())
      notes.push_back(std::move(note));
  if (!session.options.evaluate)
    if (std::string note = noteStepSize(session.options.tokensPerBatch, data);
        !note.empty())
      notes.push_back(std::move(note));
  if (std::string path = misreadFile(session.data->dataset()); !path.empty())
    notes.push_back(path + " is read as plain text, as the folder that it lies "
                           "in was given; give the file itself to have its "
                           "samples");
  return notes;
}

} // namespace dyna
