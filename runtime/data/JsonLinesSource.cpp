//===- JsonLinesSource.cpp - Reads lines of JSON as documents -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/error/Guard.h"
#include "runtime/base/thread/ShareWork.h"
#include "runtime/data/LineFields.h"
#include "runtime/data/Sources.h"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace dyna;

StatusOr<DatasetPointer> JsonLinesDataset::open(const std::string &path,
                                                const DataOptions &options) {
  DYNA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  std::string_view bytes = file.bytes();
  return create(std::move(file), bytes, path, options);
}

StatusOr<DatasetPointer>
JsonLinesDataset::fromBytes(std::string_view bytes, const std::string &name,
                            const DataOptions &options) {
  return create(MappedFile(), bytes, name, options);
}

/// Returns a hash of the fields' names; 0 if none are given. Other fields of the same bytes
/// make other documents.
static uint64_t hashNames(const LineFields &fields) {
  if (!fields.isGiven)
    return 0;
  std::string names;
  for (const auto *part :
       {&fields.text, &fields.input, &fields.target, &fields.messages}) {
    for (const std::string &name : *part)
      names += name + '+';
    names += ',';
  }
  return hashBytes(names, 0);
}

/// Makes a data set. `file` owns `bytes`, or is empty if the caller does.
StatusOr<DatasetPointer> JsonLinesDataset::create(MappedFile file,
                                                  std::string_view bytes,
                                                  const std::string &name,
                                                  const DataOptions &options) {
  auto result = std::make_shared<JsonLinesDataset>();
  DYNA_ASSIGN_OR_RETURN(ByteTokens tokens,
                        ByteTokens::create(options.vocabulary, name));
  result->bytes_ = tokens;
  result->file_ = std::move(file);
  result->name_ = name;
  result->fields_ = options.fields;
  result->text_ = bytes;
  result->findLines(options.skipBadLines);
  DYNA_RETURN_IF_ERROR(result->file_.checkUnchanged());
  if (result->lines_.empty())
    return Status::invalidArgument(
        name + " has no line of JSON; expected one object such as {\"text\": "
               "\"...\"} per line");
  DYNA_RETURN_IF_ERROR(result->checkLines(options.skipBadLines));
  result->fingerprint_ = hashBytes(bytes, hashNames(options.fields));
  DYNA_RETURN_IF_ERROR(result->file_.checkUnchanged());
  result->file_.dropPages();
  return DatasetPointer(result);
}

/// Checks the lines that begin in a part of the text.
void JsonLinesDataset::checkPart(size_t part, size_t parts, int64_t mostBad,
                                 BadLines &bad) {
  constexpr size_t mostNamed = 3;
  auto lineAt = [&](size_t number) {
    const size_t begin = text_.size() / parts * number;
    return std::partition_point(
               lines_.begin(), lines_.end(),
               [&](const Line &line) { return line.begin < begin; }) -
           lines_.begin();
  };
  const int64_t end = part + 1 == parts ? size() : lineAt(part + 1);
  for (int64_t i = lineAt(part); i < end && bad.count <= mostBad; ++i) {
    DocumentShape &shape = lines_[static_cast<size_t>(i)].shape;
    StatusOr<LinePointer> line = parse(i);
    if (!line.isOk()) {
      bad.failure = file_.checkUnchanged();
      if (!bad.failure.isOk())
        return;
      shape.tokens = -1; // left out below
      ++bad.count;
      if (bad.named.size() < mostNamed)
        bad.named.push_back(line.status().message());
      continue;
    }
    shape = {(*line)->bytes() + bytes_.endTokens(), (*line)->firstTarget,
             !(*line)->ignored.empty()};
  }
}

/// Reads every line once: a bad one late in the file must not end a run hours
/// after its start. Threads take ranges of lines of about the same size.
Status JsonLinesDataset::checkLines(int64_t mostBad) {
  constexpr size_t bytesWorthAThread = size_t(4) << 20;
  size_t count =
      std::clamp<size_t>(text_.size() / bytesWorthAThread, 1,
                         std::max(1u, std::thread::hardware_concurrency()));
  std::vector<BadLines> parts(count);
  auto guardedCheck = [&](size_t part) {
    if (Status status = guarded([&] {
          checkPart(part, count, mostBad, parts[part]);
          return Status::ok();
        });
        !status.isOk())
      parts[part].failure = status;
  };
  std::atomic<size_t> next{0};
  shareWork(static_cast<int64_t>(count), [&] {
    for (size_t part; (part = next++) < count;)
      guardedCheck(part);
  });
  return leaveOut(parts, mostBad);
}

/// Leaves out bad lines; above `mostBad`, it fails with the first of them.
Status JsonLinesDataset::leaveOut(const std::vector<BadLines> &parts,
                                  int64_t mostBad) {
  for (const BadLines &part : parts) {
    DYNA_RETURN_IF_ERROR(part.failure);
    skipped_ += part.count;
    skippedLines_.insert(skippedLines_.end(), part.named.begin(),
                         part.named.end());
  }
  if (skipped_ == 0)
    return Status::ok();
  if (mostBad == 0)
    return Status::invalidArgument(skippedLines_.front());
  if (skipped_ > mostBad)
    return Status::invalidArgument(
        name_ + " has more bad lines than --skip-bad-lines allows (" +
        std::to_string(mostBad) + "); the first: " + skippedLines_.front());
  lines_.erase(
      std::remove_if(lines_.begin(), lines_.end(),
                     [](const Line &line) { return line.shape.tokens < 0; }),
      lines_.end());
  if (lines_.empty())
    return Status::invalidArgument(
        name_ +
        " has no line that can be read; the first: " + skippedLines_.front());
  return Status::ok();
}

std::vector<std::string> JsonLinesDataset::notes() const {
  if (skipped_ == 0)
    return {};
  constexpr size_t mostNamed = 3;
  std::string text = std::to_string(skipped_) +
                     (skipped_ == 1 ? " line of " : " lines of ") + name_ +
                     " left out (--skip-bad-lines): ";
  for (size_t i = 0; i < std::min(skippedLines_.size(), mostNamed); ++i)
    text += (i ? "; " : "") + skippedLines_[i];
  return {text + (skipped_ > static_cast<int64_t>(mostNamed) ? "; ..." : "")};
}

/// Finds the lines. A line needs 40 bytes, so lines that are too short to be
/// valid are counted first. A file of such lines is refused early.
void JsonLinesDataset::findLines(int64_t mostBad) {
  constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";
  constexpr size_t shortest = std::string_view("{\"text\":\"\"}").size();
  size_t begin = 0;
  int64_t tooShort = 0;
  if (text_.substr(0, byteOrderMark.size()) == byteOrderMark)
    begin = byteOrderMark.size();
  for (int64_t number = 1; begin < text_.size() && tooShort <= mostBad;
       ++number) {
    size_t end = std::min(text_.find('\n', begin), text_.size());
    size_t first = text_.find_first_not_of(" \t\r", begin);
    if (first < end) {
      lines_.push_back({begin, number, {}});
      tooShort += end - first < shortest;
    }
    begin = end + 1;
  }
}

std::string JsonLinesDataset::describe(int64_t index) const {
  return name_ + ":" + std::to_string(lines_[index].number);
}

std::string_view JsonLinesDataset::textOf(int64_t index) const {
  size_t begin = lines_[static_cast<size_t>(index)].begin;
  size_t end = std::min(text_.find('\n', begin), text_.size());
  return text_.substr(begin, end - begin);
}

StatusOr<JsonLinesDataset::LinePointer>
JsonLinesDataset::parse(int64_t index) const {
  StatusOr<LineParts> line =
      readLine(textOf(index), fields_, bytes_.endTokens());
  if (!line.isOk())
    return Status::invalidArgument(describe(index) + ": " +
                                   line.status().message());
  return std::make_shared<const LineParts>(std::move(*line));
}

StatusOr<JsonLinesDataset::LinePointer>
JsonLinesDataset::parseUnchanged(int64_t index) const {
  StatusOr<LinePointer> line = parse(index);
  // Text that was read while the file changed may be wrong.
  DYNA_RETURN_IF_ERROR(file_.checkUnchanged());
  return line;
}

StatusOr<JsonLinesDataset::LinePointer>
JsonLinesDataset::parseOnce(int64_t index) const {
  constexpr int64_t longLine = 64 << 10;
  if (shape(index).tokens < longLine)
    return parseUnchanged(index);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (keptIndex_ == index) {
      DYNA_RETURN_IF_ERROR(file_.checkUnchanged());
      return kept_;
    }
    kept_.reset(); // frees it before the next line needs as much
    keptIndex_ = -1;
  }
  DYNA_ASSIGN_OR_RETURN(LinePointer line, parseUnchanged(index));
  std::lock_guard<std::mutex> lock(mutex_);
  keptIndex_ = index;
  kept_ = line;
  return line;
}

Status JsonLinesDataset::readTokens(int64_t index, int64_t begin, int64_t end,
                                    std::vector<int32_t> &tokens) const {
  DYNA_ASSIGN_OR_RETURN(LinePointer line, parseOnce(index));
  int64_t before = 0;
  for (const std::string &piece : line->pieces) {
    auto size = static_cast<int64_t>(piece.size());
    int64_t from = std::clamp<int64_t>(begin - before, 0, size);
    int64_t to = std::clamp<int64_t>(end - before, 0, size);
    if (from < to)
      bytes_.append(tokens, std::string_view(piece).substr(from, to - from));
    before += size;
  }
  if (begin <= before && end > before)
    tokens.push_back(endOfDocumentToken);
  return Status::ok();
}

Status JsonLinesDataset::readIgnored(int64_t index,
                                     std::vector<DocumentRange> &ranges) const {
  DYNA_ASSIGN_OR_RETURN(LinePointer line, parseOnce(index));
  ranges.insert(ranges.end(), line->ignored.begin(), line->ignored.end());
  return Status::ok();
}

int64_t JsonLinesDataset::heldBytes() const {
  int64_t longest = 0;
  for (const Line &line : lines_)
    // A parsed line is a string that grows by doubling. For messages there are
    // also a string of one message and the ranges.
    longest =
        std::max(longest, (line.shape.hasIgnored ? 6 : 2) * line.shape.tokens);
  return static_cast<int64_t>(lines_.capacity() * sizeof(Line)) + longest;
}
