//===- JsonLinesSource.cpp - Lines of JSON as documents -------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Json.h"
#include "runtime/data/Sources.h"

#include <algorithm>
#include <thread>

using namespace dyna;

StatusOr<DatasetPointer> JsonLinesDataset::open(const std::string &path,
                                                const DataOptions &options) {
  StatusOr<MappedFile> file = MappedFile::open(path);
  if (!file.isOk())
    return file.status();
  std::string_view bytes = file->bytes();
  return create(std::move(*file), bytes, path, options);
}

StatusOr<DatasetPointer>
JsonLinesDataset::fromBytes(std::string_view bytes, const std::string &name,
                            const DataOptions &options) {
  return create(MappedFile(), bytes, name, options);
}

/// `file` owns `bytes`, or is empty where the caller does.
StatusOr<DatasetPointer> JsonLinesDataset::create(MappedFile file,
                                                  std::string_view bytes,
                                                  const std::string &name,
                                                  const DataOptions &options) {
  auto result = std::make_shared<JsonLinesDataset>();
  StatusOr<ByteTokens> tokens = ByteTokens::create(options.vocabulary, name);
  if (!tokens.isOk())
    return tokens.status();
  result->bytes_ = *tokens;
  result->file_ = std::move(file);
  result->name_ = name;
  result->text_ = bytes;
  result->findLines();
  if (result->lines_.empty())
    return Status::invalidArgument(
        name + " has no line of JSON; expected one object such as {\"text\": "
               "\"...\"} per line");
  DYNA_RETURN_IF_ERROR(result->checkLines());
  return DatasetPointer(result);
}

/// Reads every line once: a bad one late in the file must not end a run hours
/// after its start. Threads take ranges of lines of about the same size; of
/// several bad lines the first is reported.
Status JsonLinesDataset::checkLines() const {
  constexpr size_t bytesWorthAThread = size_t(4) << 20;
  size_t count =
      std::clamp<size_t>(text_.size() / bytesWorthAThread, 1,
                         std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Status> results(count);
  auto check = [&](size_t part) {
    // The lines that begin in this part of the text.
    auto lineAt = [&](size_t number) {
      size_t begin = text_.size() / count * number;
      return std::partition_point(
                 lines_.begin(), lines_.end(),
                 [&](const Line &line) { return line.begin < begin; }) -
             lines_.begin();
    };
    int64_t end = part + 1 == count ? size() : lineAt(part + 1);
    for (int64_t i = lineAt(part); i < end && results[part].isOk(); ++i)
      results[part] = read(i).status();
  };
  std::vector<std::thread> threads;
  for (size_t part = 1; part < count; ++part)
    threads.emplace_back(check, part);
  check(0);
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : results)
    DYNA_RETURN_IF_ERROR(status);
  return Status::ok();
}

void JsonLinesDataset::findLines() {
  constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";
  size_t begin = 0;
  if (text_.substr(0, byteOrderMark.size()) == byteOrderMark)
    begin = byteOrderMark.size();
  for (int64_t number = 1; begin < text_.size(); ++number) {
    size_t end = std::min(text_.find('\n', begin), text_.size());
    size_t first = text_.find_first_not_of(" \t\r", begin);
    if (first < end)
      lines_.push_back({begin, number});
    begin = end + 1;
  }
}

std::string JsonLinesDataset::describe(int64_t index) const {
  return name_ + ":" + std::to_string(lines_[index].number);
}

StatusOr<Document> JsonLinesDataset::read(int64_t index) const {
  auto failure = [&](const std::string &what) {
    return Status::invalidArgument(describe(index) + ": " + what);
  };
  DYNA_RETURN_IF_ERROR(file_.checkSize());
  size_t begin = lines_[index].begin;
  size_t end = std::min(text_.find('\n', begin), text_.size());
  StatusOr<JsonValue> line = parseJson(text_.substr(begin, end - begin));
  if (!line.isOk())
    return failure(line.status().message());
  if (!line->isObject())
    return failure(std::string("expected an object such as {\"text\": "
                               "\"...\"}, but got ") +
                   jsonKindName(line->kind));
  const JsonValue *text = line->find("text");
  const JsonValue *input = line->find("input");
  const JsonValue *target = line->find("target");
  if (text && (input || target))
    return failure("has \"text\" and also \"input\" or \"target\"; expected "
                   "one of the two forms");
  if (!text && !(input && target))
    return failure(input    ? "has \"input\" but no \"target\""
                   : target ? "has \"target\" but no \"input\""
                            : "has neither \"text\" nor \"input\" and "
                              "\"target\"");
  for (const JsonValue *value : {text, input, target})
    if (value && !value->isString())
      return failure(std::string("expected a string for \"") +
                     (value == text    ? "text"
                      : value == input ? "input"
                                       : "target") +
                     "\", but got " + jsonKindName(value->kind));
  Document document;
  if (text) {
    bytes_.append(document.tokens, text->text);
  } else {
    bytes_.append(document.tokens, input->text);
    document.firstTarget =
        std::max<int64_t>(1, static_cast<int64_t>(document.tokens.size()));
    bytes_.append(document.tokens, target->text);
  }
  bytes_.end(document.tokens);
  return document;
}
