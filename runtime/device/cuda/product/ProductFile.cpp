//===- ProductFile.cpp - Stores algorithms of products in a file ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/ProductFile.h"

#include "runtime/base/file/InputFile.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <charconv>
#include <cmath>

using namespace dyna;
using namespace dyna::cuda;

static constexpr std::string_view kFirstLine = "dyna products 1";

static std::string checksumLine(std::string_view text) {
  return formatText("checksum %016x\n", Checksum::of(text));
}

Status cuda::writeProductFile(const std::string &path,
                              const ProductRecords &records) {
  std::string text =
      formatText("%s\ndevice %s\nlibrary %d\nworkspace %d\ntf32 %d\n",
                 kFirstLine, printable(records.device), records.library,
                 records.workspaceBytes, static_cast<int>(records.tf32));
  for (const ProductRecord &record : records.products) {
    text +=
        formatText("%s : %d %d :", record.shape.text(), record.workspaceBytes,
                   std::llround(1000 * record.microseconds));
    for (uint64_t word : record.algorithm.data)
      text += formatText(" %016x", word);
    text += "\n";
  }
  return replaceFile(path, text + checksumLine(text));
}

namespace {

/// Takes lines and numbers off the front of a text.
class Reader {
public:
  explicit Reader(std::string_view text) : rest_(text) {}

  int line() const { return line_; }
  bool atEnd() const { return rest_.empty(); }

  std::string_view takeLine() {
    ++line_;
    size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return taken;
  }

private:
  std::string_view rest_;
  int line_ = 0;
};

bool takePrefix(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename T>
bool takeNumber(std::string_view &text, T &number, int base = 10) {
  auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return error == std::errc();
}

/// Reads a line of `prefix` and a number of at least 0.
bool readField(Reader &reader, std::string_view prefix, int64_t &number) {
  std::string_view line = reader.takeLine();
  return takePrefix(line, prefix) && takeNumber(line, number) && line.empty() &&
         number >= 0;
}

bool readRecord(std::string_view line, ProductRecord &record) {
  size_t end = line.find(" : ");
  if (end == std::string_view::npos)
    return false;
  StatusOr<ProductClass> shape = ProductClass::parse(line.substr(0, end));
  if (!shape.isOk())
    return false;
  record.shape = *shape;
  line.remove_prefix(end + 3);
  int64_t nanoseconds = 0;
  if (!takeNumber(line, record.workspaceBytes) || record.workspaceBytes < 0 ||
      !takePrefix(line, " ") || !takeNumber(line, nanoseconds) ||
      nanoseconds < 0 || !takePrefix(line, " :"))
    return false;
  record.microseconds = static_cast<double>(nanoseconds) / 1000;
  for (uint64_t &word : record.algorithm.data)
    if (!takePrefix(line, " ") || !takeNumber(line, word, 16))
      return false;
  return line.empty();
}

bool readHeader(Reader &reader, ProductRecords &records) {
  if (reader.takeLine() != kFirstLine)
    return false;
  std::string_view device = reader.takeLine();
  if (!takePrefix(device, "device "))
    return false;
  records.device = device;
  int64_t tf32 = 0;
  bool isGood = readField(reader, "library ", records.library) &&
                readField(reader, "workspace ", records.workspaceBytes) &&
                readField(reader, "tf32 ", tf32) && tf32 <= 1;
  records.tf32 = tf32 == 1;
  return isGood;
}

} // namespace

StatusOr<ProductRecords> cuda::readProductFile(const std::string &path) {
  constexpr int64_t kLimit = INT64_C(64) << 20;
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(path, kLimit));
  // Line 0 means that the line is unknown.
  auto refuse = [&](int line, const char *why) {
    const std::string where =
        line > 0 ? formatText("%s:%d", printable(path), line) : printable(path);
    return Status::invalidArgument(formatText(
        "%s: %s; remove the file, and products are timed again", where, why));
  };
  Reader reader(text);
  ProductRecords records;
  if (!readHeader(reader, records))
    return refuse(reader.line(),
                  "this is no file of algorithms of products of version 1");
  size_t last = text.rfind("checksum ");
  if (last == std::string::npos || text[last - 1] != '\n' ||
      checksumLine(std::string_view(text).substr(0, last)) !=
          std::string_view(text).substr(last))
    return refuse(0, "the file is damaged, or was changed");
  Reader body(std::string_view(text).substr(0, last));
  for (int line = 0; line < reader.line(); ++line)
    (void)body.takeLine();
  while (!body.atEnd()) {
    ProductRecord record;
    if (!readRecord(body.takeLine(), record))
      return refuse(body.line(), "the line describes no algorithm");
    records.products.push_back(record);
  }
  return records;
}
