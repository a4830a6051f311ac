//===- LengthsFile.cpp - Reads lengths of samples -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/LengthsFile.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/file/InputFile.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/model/Bytes.h"

#include <algorithm>

namespace dyna {
namespace {

constexpr int64_t maxFileBytes = INT64_C(1) << 32;

/// Splits a line at commas, and removes white space and quotes around fields.
std::vector<std::string> split(const std::string &line) {
  const char *around = " \t\r\"";
  std::vector<std::string> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    const std::string field = line.substr(begin, end - begin);
    const size_t first = field.find_first_not_of(around);
    fields.push_back(
        first == std::string::npos
            ? ""
            : field.substr(first, field.find_last_not_of(around) - first + 1));
    begin = end + 1;
  }
  return fields;
}

/// Returns false if the text is no whole number from 0 to 2^40.
bool parseNumber(const std::string &text, int64_t &number) {
  number = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || number > INT64_C(1) << 40)
      return false;
    number = 10 * number + (c - '0');
  }
  return !text.empty();
}

std::string shortened(const std::string &text) {
  constexpr size_t most = 100;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

bool isNumber(const std::string &text) {
  int64_t number = 0;
  return parseNumber(text, number);
}

/// Returns the error of a field; a long field is shortened.
Status noNumber(const std::string &field) {
  return Status::invalidArgument(
      "expects a number of tokens, but got '" + shortened(field) + "'" +
      (field.find(' ') != std::string::npos ? ": commas separate numbers"
                                            : ""));
}

bool namesTokens(const std::string &column) {
  const std::string end = "_tokens";
  return column == "tokens" ||
         (column.size() > end.size() &&
          column.compare(column.size() - end.size(), end.size(), end) == 0);
}

/// Returns true if the text begins as a number, even an illegal one such as -4
/// or 1e9. It is no name then.
bool isMeantAsNumber(const std::string &text) {
  return !text.empty() &&
         std::string("+-.0123456789").find(text[0]) != std::string::npos;
}

/// Returns true if the text is meant as numbers, not as a path. An error about
/// the numbers helps more than one about a missing file.
bool isMeantAsList(const std::vector<std::string> &fields,
                   const std::string &path) {
  return std::any_of(fields.begin(), fields.end(), isMeantAsNumber) &&
         path.find('/') == std::string::npos && !fileExists(path);
}

/// Returns the positions of the columns in a line.
StatusOr<std::vector<size_t>>
findColumns(const std::vector<std::string> &header,
            const std::vector<std::string> &columns) {
  std::vector<size_t> places;
  std::string names;
  for (const std::string &name : header)
    names += (names.empty() ? "" : ", ") + name;
  for (const std::string &column : columns) {
    auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end())
      return Status::invalidArgument(
          formatText("no column '%s': there are %s", column, shortened(names)));
    places.push_back(found - header.begin());
  }
  if (!places.empty())
    return places;
  for (size_t i = 0; i < header.size(); ++i)
    if (namesTokens(header[i]) || (header.size() == 1))
      places.push_back(i);
  if (places.size() == 1)
    return places;
  return Status::invalidArgument(
      formatText("which of the columns %s are the tokens of a sample? "
                 "--length-columns names those to add up",
                 shortened(names)));
}

/// Returns true for JSON: people try training data, which are no lengths.
bool looksLikeJson(const std::string &line) {
  const size_t at = line.find_first_not_of(" \t");
  return at != std::string::npos && (line[at] == '{' || line[at] == '[');
}

class Reader {
public:
  explicit Reader(const std::vector<std::string> &columns)
      : columns_(columns) {}

  Status line(const std::string &text) {
    if (places_.empty() && looksLikeJson(text))
      return Status::invalidArgument(
          "this is JSON, not lengths: expects a number of tokens a line, or "
          "columns that the first line names; a training binary writes those "
          "of its data with --write-lengths FILE");
    std::vector<std::string> fields = split(text);
    if (fields.size() == 1 && fields[0].empty())
      return Status::ok();
    if (places_.empty()) {
      bool isHeader =
          std::none_of(fields.begin(), fields.end(), isMeantAsNumber);
      if (!isHeader && (fields.size() != 1 || !columns_.empty()))
        return Status::invalidArgument(
            "expects a first line that names the columns");
      DYNA_ASSIGN_OR_RETURN(
          places_,
          findColumns(isHeader ? fields : std::vector<std::string>{"tokens"},
                      columns_));
      count_ = fields.size();
      if (isHeader)
        return Status::ok();
    }
    if (fields.size() != count_)
      return Status::invalidArgument(
          formatText("expects %d fields, but has %d", count_, fields.size()));
    int64_t sum = 0;
    for (size_t place : places_) {
      int64_t number = 0;
      if (!parseNumber(fields[place], number))
        return noNumber(fields[place]);
      sum += number;
    }
    if (sum == 0)
      return Status::invalidArgument("a sample of 0 tokens");
    lengths.push_back(sum);
    return Status::ok();
  }

  std::vector<int64_t> lengths;

private:
  const std::vector<std::string> &columns_;
  std::vector<size_t> places_;
  size_t count_ = 0;
};

} // namespace

StatusOr<std::vector<int64_t>>
readLengths(const std::string &textOrPath,
            const std::vector<std::string> &columns) {
  std::vector<std::string> listed = split(textOrPath);
  Reader reader(columns);
  const bool isList = std::all_of(listed.begin(), listed.end(), isNumber);
  if (isList || isMeantAsList(listed, textOrPath)) {
    if (!columns.empty())
      return Status::invalidArgument(
          "--length-columns is for a file, but --lengths lists numbers");
    for (size_t i = 0; i < listed.size(); ++i)
      if (Status status = isNumber(listed[i]) ? reader.line(listed[i])
                                              : noNumber(listed[i]);
          !status.isOk())
        return Status(status.code(), formatText("entry %d of --lengths: %s",
                                                i + 1, status.message()));
    return std::move(reader.lengths);
  }
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(textOrPath, maxFileBytes));
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    if (Status status = reader.line(text.substr(begin, end - begin));
        !status.isOk())
      return Status(status.code(), formatText("%s:%d: %s", textOrPath, number,
                                              status.message()));
    begin = end + 1;
  }
  if (reader.lengths.empty())
    return Status::invalidArgument(textOrPath + " has no lengths");
  return std::move(reader.lengths);
}

} // namespace dyna
