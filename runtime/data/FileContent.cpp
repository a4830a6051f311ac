//===- FileContent.cpp - Recognizes the form of a data file ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/FileContent.h"

#include "runtime/base/file/InputFile.h"
#include "runtime/data/LineFields.h"

#include <algorithm>

namespace dyna {
namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t at;
  std::string_view bytes;
  const char *name, *advice;
};

constexpr const char *unpackIt = "unpack it first";
constexpr const char *convertIt =
    "convert it to lines of JSON first, {\"text\": \"...\"} each";
constexpr const char *nameText = "give text, lines of JSON or token ids";

constexpr Signature signatures[] = {
    {0, "\x1f\x8b"sv, "gzip data", unpackIt},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd data", unpackIt},
    {0, "\x50\x2a\x4d\x18"sv, "zstd data", unpackIt}, // pzstd writes this first
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "xz data", unpackIt},
    {4, "1AY&SY"sv, "bzip2 data", unpackIt},
    {0, "\x04\x22\x4d\x18"sv, "lz4 data", unpackIt},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", unpackIt},
    {0, "PK\3\4"sv, "a zip archive", unpackIt},
    {0, "Rar!\x1a\7"sv, "a RAR archive", unpackIt},
    {0, "\x1f\x9d"sv, "compress data", unpackIt},
    {257, "ustar"sv, "a tar archive", unpackIt},
    {0, "PAR1\x15"sv, "a Parquet table", convertIt},
    {0, "ARROW1\0"sv, "an Arrow table", convertIt},
    {0, "Obj\1"sv, "an Avro table", convertIt},
    {0, "ORC\n"sv, "an ORC table", convertIt},
    {0, "\x89HDF\r\n"sv, "an HDF5 file", convertIt},
    {0, "\x93NUMPY"sv, "a NumPy array", convertIt},
    {0, "SQLite format 3\0"sv, "a SQLite database", convertIt},
    {3, "\0\0\0\0\0{\""sv, "a safetensors file", nameText},
    {0, "GGUF"sv, "a GGUF model", nameText},
    {0, "\x80\2"sv, "a pickle of Python", convertIt},
    {0, "\x80\3"sv, "a pickle of Python", convertIt},
    {0, "\x80\4\x95"sv, "a pickle of Python", convertIt},
    {0, "\x80\5\x95"sv, "a pickle of Python", convertIt},
    {0, "%PDF-"sv, "a PDF document", "extract its text first"},
    {0,
     "\x7f"
     "ELF"sv,
     "an executable or library", nameText},
    {0, "MZ\x90\0"sv, "an executable", nameText},
    {0, "\xcf\xfa\xed\xfe"sv, "an executable", nameText},
    {0, "\xca\xfe\xba\xbe"sv, "an executable", nameText},
    {0, "\x89PNG\r\n"sv, "a picture", nameText},
    {0, "\xff\xd8\xff"sv, "a picture", nameText},
    {0, "MMIDIDX\0\0"sv, "the index of a Megatron-LM data set",
     "name it PREFIX.idx beside its PREFIX.bin, and give PREFIX"},
    {0, "version https://git-lfs.github.com/spec/"sv, "a Git LFS pointer",
     "fetch the file that it stands for with git lfs pull"},
    {0, "/annex/objects/"sv, "a git-annex pointer",
     "fetch the file that it stands for with git annex get"},
    {0, "\xff\xfe\0\0"sv, "UTF-32 text", "convert it: iconv -t UTF-8"},
    {0, "\0\0\xfe\xff"sv, "UTF-32 text", "convert it: iconv -t UTF-8"},
    {0, "\xff\xfe"sv, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"},
    {0, "\xfe\xff"sv, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"},
};

/// Returns the name of the order of bytes of UTF-16 text without a mark, and
/// otherwise null. In most European languages at least every second of its
/// units has a zero as its upper byte, and nearly none as its lower one.
const char *utf16WithoutMark(std::string_view text) {
  constexpr size_t enough = 4, share = 2, fewOf = 64;
  const size_t units = text.size() / 2;
  if (units < enough)
    return nullptr;
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < 2 * units; ++i)
    zeros[i % 2] += text[i] == '\0';
  for (size_t upper : {0, 1})
    if (zeros[upper] * share >= units && zeros[1 - upper] <= units / fewOf)
      return upper == 0 ? "UTF-16BE" : "UTF-16LE";
  return nullptr;
}

std::string_view skipSpace(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// Leaves out a JSON string, as far as `text` has it. Returns false if none
/// begins here.
bool takeString(std::string_view &text) {
  if (text.substr(0, 1) != "\"")
    return false;
  for (size_t at = 1; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) < ' ')
      return false; // a line break is no part of a JSON string
    if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return true;
    }
    at += text[at] == '\\';
  }
  text = {};
  return true;
}

/// Leaves out white space and `what`. Returns false if something else follows.
bool take(std::string_view &text, std::string_view what) {
  text = skipSpace(text);
  const bool isThere = text.substr(0, what.size()) == what;
  text.remove_prefix(isThere ? what.size() : 0);
  return isThere;
}

/// Counts the whole numbers, with commas between them, with which `text`
/// begins, up to `most`.
size_t countNumbers(std::string_view text, size_t most) {
  size_t count = 0;
  while (count < most) {
    text = skipSpace(text);
    const size_t digits =
        std::min(text.find_first_not_of("-0123456789"), text.size());
    if (digits == 0)
      break;
    text.remove_prefix(digits);
    ++count;
    if (!take(text, ","))
      break;
  }
  return count;
}

/// Returns what to do with a JSON array; null if the text is none. Prose may
/// begin with a bracket, so its first items decide.
const char *adviceForArray(std::string_view text) {
  // Prose begins with [[ or [1, 2] too, but not with so many numbers.
  constexpr size_t numbers = 8;
  if (!take(text, "["))
    return nullptr;
  std::string_view item = text;
  if (take(item, "{") && take(item, "\""))
    return "write its objects one to a line: jq -c '.[]'";
  item = skipSpace(text);
  if (takeString(item) &&
      (skipSpace(item).empty() || take(item, ",") || take(item, "]")))
    return "write an object for each of its texts, one to a line: jq -c "
           "'.[] | {text: .}'";
  item = text;
  const size_t fewest = take(item, "[") ? 2 : numbers;
  if (countNumbers(item, fewest) == fewest)
    return "token ids are read from a Megatron-LM data set (.idx and .bin)";
  return nullptr;
}

} // namespace

FileContent contentOf(std::string_view beginning, const LineFields &fields) {
  for (const Signature &known : signatures)
    if (beginning.size() >= known.at &&
        beginning.substr(known.at, known.bytes.size()) == known.bytes)
      return {FileContent::Kind::Foreign, known.name, known.advice};
  if (const char *order = utf16WithoutMark(beginning))
    return {FileContent::Kind::Foreign, "UTF-16 text",
            std::string("convert it: iconv -f ") + order + " -t UTF-8"};
  std::string_view text = beginning;
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    text.remove_prefix(3);
  text = skipSpace(text);
  if (!text.empty() && text[0] == '{' && beginsAsLine(text, fields))
    return {FileContent::Kind::JsonLines, "", ""};
  if (const char *advice = adviceForArray(text))
    return {FileContent::Kind::Foreign, "a JSON array", advice};
  return {};
}

StatusOr<FileContent> lookAtContent(const std::string &path,
                                    const LineFields &fields) {
  DYNA_ASSIGN_OR_RETURN(Descriptor file, openRegularFile(path));
  std::string bytes(contentBytes, '\0');
  DYNA_ASSIGN_OR_RETURN(int64_t size,
                        readAt(file, path, 0, bytes.data(), contentBytes));
  bytes.resize(static_cast<size_t>(size));
  return contentOf(bytes, fields);
}

} // namespace dyna
