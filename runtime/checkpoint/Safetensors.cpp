//===- Safetensors.cpp - The safetensors format ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Safetensors.h"

#include "runtime/base/Json.h"

#include <algorithm>
#include <cstring>
#include <tuple>

using namespace dyna;

namespace {

constexpr uint64_t headerLimit = 100000000;
constexpr std::string_view metadataKey = "__metadata__";

Status invalid(const std::string &what) {
  return Status::invalidArgument(what);
}

struct Entry {
  TensorView view;
  int64_t begin = 0, end = 0;
};

Status parseShape(const JsonValue *value, std::vector<int64_t> &shape) {
  if (!value || !value->isArray())
    return invalid("expected an array \"shape\"");
  for (const JsonValue &size : value->items) {
    if (!size.integer || *size.integer < 0)
      return invalid("expected whole numbers in \"shape\"");
    shape.push_back(*size.integer);
  }
  return Status::ok();
}

Status parseEntry(const JsonValue &value, int64_t bufferBytes, Entry &entry) {
  if (!value.isObject())
    return invalid(std::string("expected an object, but got ") +
                   jsonKindName(value.kind));
  const JsonValue *dtype = value.find("dtype");
  if (!dtype || !dtype->isString())
    return invalid("expected a string \"dtype\"");
  std::optional<DType> type = parseDType(dtype->text);
  if (!type)
    return invalid(
        "the type " + quoteJson(dtype->text) +
        " is not supported; expected F64, F32, F16, BF16, BOOL or an "
        "integer type");
  entry.view.type = *type;
  DYNA_RETURN_IF_ERROR(parseShape(value.find("shape"), entry.view.shape));
  const JsonValue *offsets = value.find("data_offsets");
  if (!offsets || !offsets->isArray() || offsets->items.size() != 2 ||
      !offsets->items[0].integer || !offsets->items[1].integer)
    return invalid("expected two whole numbers in \"data_offsets\"");
  entry.begin = *offsets->items[0].integer;
  entry.end = *offsets->items[1].integer;
  std::string range = "[" + std::to_string(entry.begin) + ", " +
                      std::to_string(entry.end) + ")";
  if (entry.begin < 0 || entry.begin > entry.end || entry.end > bufferBytes)
    return invalid("its bytes " + range + " lie outside the data of " +
                   std::to_string(bufferBytes) + " bytes");
  std::optional<int64_t> bytes = tensorBytes(*type, entry.view.shape);
  if (!bytes || *bytes != entry.end - entry.begin)
    return invalid("shape " + shapeText(entry.view.shape) + " of " +
                   dtypeName(*type) + " needs " +
                   (bytes ? std::to_string(*bytes) : "too many") +
                   " bytes, but its bytes are " + range);
  return Status::ok();
}

Status parseMetadata(const JsonValue &value, Metadata &metadata) {
  if (!value.isObject())
    return invalid("expected an object for __metadata__");
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (!value.items[i].isString())
      return invalid("expected strings in __metadata__, but got " +
                     std::string(jsonKindName(value.items[i].kind)) + " for " +
                     quoteJson(value.keys[i]));
    metadata[value.keys[i]] = value.items[i].text;
  }
  return Status::ok();
}

/// The entries, in order, must cover the data without gap and overlap.
Status checkCoverage(const std::vector<Entry> &entries, int64_t bufferBytes) {
  int64_t end = 0;
  for (const Entry &entry : entries) {
    if (entry.begin != end)
      return invalid("tensor " + quoteJson(entry.view.name) +
                     " starts at byte " + std::to_string(entry.begin) +
                     " of the data, but the tensors before it end at byte " +
                     std::to_string(end));
    end = entry.end;
  }
  if (end != bufferBytes)
    return invalid("the tensors end at byte " + std::to_string(end) +
                   " of the data, but it has " + std::to_string(bufferBytes) +
                   " bytes");
  return Status::ok();
}

} // namespace

StatusOr<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  DYNA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  StatusOr<SafetensorsFile> result = parse(file.bytes(), path);
  if (result.isOk())
    result->file_ = std::move(file);
  return result;
}

StatusOr<SafetensorsFile> SafetensorsFile::parse(std::string_view bytes,
                                                 const std::string &name) {
  SafetensorsFile file;
  file.name_ = name;
  file.bytes_ = bytes;
  if (Status status = file.parseAll(); !status.isOk())
    return Status(status.code(), name + ": " + status.message());
  return file;
}

Status SafetensorsFile::parseAll() {
  uint64_t size = 0;
  if (bytes_.size() < sizeof size)
    return invalid("has " + std::to_string(bytes_.size()) +
                   " bytes, too few for a safetensors file; it is truncated");
  std::memcpy(&size, bytes_.data(), sizeof size);
  if (size > headerLimit)
    return invalid("it is no safetensors file, or damaged: its first bytes "
                   "announce a header of " +
                   std::to_string(size) + " bytes, beyond the limit of " +
                   std::to_string(headerLimit));
  if (size > bytes_.size() - sizeof size)
    return invalid("the header has " + std::to_string(size) +
                   " bytes, but the file only " +
                   std::to_string(bytes_.size()) + "; it is truncated");
  return parseHeader(bytes_.substr(sizeof size, size),
                     bytes_.substr(sizeof size + size));
}

Status SafetensorsFile::parseHeader(std::string_view header,
                                    std::string_view buffer) {
  StatusOr<JsonValue> json = parseJson(header);
  if (!json.isOk())
    return invalid("header, " + json.status().message());
  if (!json->isObject())
    return invalid("expected an object in the header");
  int64_t bufferBytes = static_cast<int64_t>(buffer.size());
  std::vector<Entry> entries;
  for (size_t i = 0; i < json->items.size(); ++i) {
    const std::string &key = json->keys[i];
    if (key == metadataKey) {
      DYNA_RETURN_IF_ERROR(parseMetadata(json->items[i], metadata_));
      continue;
    }
    Entry entry;
    entry.view.name = key;
    Status status = parseEntry(json->items[i], bufferBytes, entry);
    if (!status.isOk())
      return invalid("tensor " + quoteJson(key) + ": " + status.message());
    entry.view.data = buffer.data() + entry.begin;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.view.name) <
           std::tie(b.begin, b.end, b.view.name);
  });
  DYNA_RETURN_IF_ERROR(checkCoverage(entries, bufferBytes));
  for (Entry &entry : entries) {
    places_[entry.view.name] = tensors_.size();
    tensors_.push_back(std::move(entry.view));
  }
  return Status::ok();
}

const TensorView *SafetensorsFile::find(std::string_view name) const {
  auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

uint64_t SafetensorsFile::checksum() const {
  constexpr size_t piece = size_t(1) << 22;
  Checksum checksum;
  for (size_t begin = 0; begin < bytes_.size(); begin += piece) {
    std::string_view bytes = bytes_.substr(begin, piece);
    checksum.update(bytes.data(), bytes.size());
    dropPages();
  }
  return checksum.value();
}

void dyna::sortAsInFiles(std::vector<TensorView> &tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView &a, const TensorView &b) {
              return a.type != b.type ? a.type > b.type : a.name < b.name;
            });
}

/// The bytes of one tensor, from its memory or from `give`.
static Status writeTensor(OutputFile &file, const TensorView &tensor,
                          const GiveTensor &give) {
  int64_t bytes = *tensorBytes(tensor.type, tensor.shape);
  if (tensor.data || bytes == 0)
    return file.write(tensor.data, static_cast<size_t>(bytes));
  int64_t end = file.bytes() + bytes;
  DYNA_RETURN_IF_ERROR(give(tensor, [&](const void *data, size_t size) {
    return file.write(data, size);
  }));
  return file.bytes() == end
             ? Status::ok()
             : Status::internal("tensor " + tensor.name +
                                " was given with another number of bytes");
}

Status dyna::writeSafetensors(OutputFile &file, std::vector<TensorView> tensors,
                              const Metadata &metadata,
                              const GiveTensor &give) {
  sortAsInFiles(tensors);
  std::string header = "{";
  if (!metadata.empty()) {
    header += quoteJson(metadataKey) + ":{";
    for (const auto &[key, value] : metadata)
      header += (header.back() == '{' ? "" : ",") + quoteJson(key) + ":" +
                quoteJson(value);
    header += "}";
  }
  int64_t offset = 0;
  for (const TensorView &tensor : tensors) {
    std::optional<int64_t> bytes = tensorBytes(tensor.type, tensor.shape);
    int64_t end = 0;
    if (!bytes || __builtin_add_overflow(offset, *bytes, &end))
      return Status::internal("tensor " + tensor.name + " of shape " +
                              shapeText(tensor.shape) + " is too large");
    std::string shape;
    for (int64_t size : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += (header.size() == 1 ? "" : ",") + quoteJson(tensor.name) +
              ":{\"dtype\":\"" + dtypeName(tensor.type) + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t size = header.size();
  DYNA_RETURN_IF_ERROR(file.write(&size, sizeof size));
  DYNA_RETURN_IF_ERROR(file.write(header));
  for (const TensorView &tensor : tensors)
    DYNA_RETURN_IF_ERROR(writeTensor(file, tensor, give));
  return Status::ok();
}
