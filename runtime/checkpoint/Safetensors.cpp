//===- Safetensors.cpp - Reads and writes the safetensors format ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Safetensors.h"

#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/Printable.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

using namespace dyna;

namespace {

constexpr uint64_t headerLimit = 100000000;
constexpr std::string_view metadataKey = "__metadata__";

Status invalid(const std::string &what) {
  return Status::invalidArgument(what);
}

/// A rank is small; a long "shape" takes eight bytes for two of the header.
constexpr size_t rankLimit = 64;
constexpr size_t metadataLimit = 65536;

std::string named(std::string_view name) { return quoteJson(excerpt(name)); }

Status twice(const JsonReader &reader, std::string_view key) {
  return reader.failure("the key " + named(key) +
                        " appears twice in one object");
}

/// The members of a tensor's object that say what it is, in whatever order.
class EntryReader {
public:
  explicit EntryReader(JsonReader &reader) : reader_(reader) {}

  Status read() {
    return reader_.readObject([this](const std::string &key) -> Status {
      if (key == "dtype")
        return once(key, dtype_, JsonValue::Kind::String,
                    [&] { return reader_.readString(dtype_.text); });
      if (key == "shape")
        return once(key, shape_, JsonValue::Kind::Array, [&] {
          return readIntegers(rankLimit, shape_, shapeNumbers_);
        });
      if (key == "data_offsets")
        return once(key, offsets_, JsonValue::Kind::Array,
                    [&] { return readIntegers(2, offsets_, range_); });
      return reader_.skip();
    });
  }

  /// Checks the entry, and returns it as a tensor of `buffer`.
  Status check(std::string_view buffer, TensorView &view) {
    const auto bufferBytes = static_cast<int64_t>(buffer.size());
    if (!dtype_.isThere)
      return invalid("expected a string \"dtype\"");
    std::optional<DType> type = parseDType(dtype_.text);
    if (!type)
      return invalid(
          "the type " + named(dtype_.text) +
          " is not supported; expected F64, F32, F16, BF16, BOOL or an "
          "integer type");
    view.type = *type;
    if (!shape_.isThere)
      return invalid("expected an array \"shape\"");
    if (shape_.isBad ||
        *std::min_element(shapeNumbers_.begin(), shapeNumbers_.end()) < 0)
      return invalid("expected at most " + std::to_string(rankLimit) +
                     " whole numbers in \"shape\"");
    view.shape.assign(shapeNumbers_.begin() + 1, shapeNumbers_.end());
    if (!offsets_.isThere || offsets_.isBad || range_.size() != 3)
      return invalid("expected two whole numbers in \"data_offsets\"");
    const int64_t begin = range_[1], end = range_[2];
    std::string range =
        "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
    if (begin < 0 || begin > end || end > bufferBytes)
      return invalid("its bytes " + range + " lie outside the data of " +
                     std::to_string(bufferBytes) + " bytes");
    std::optional<int64_t> bytes = tensorBytes(*type, view.shape);
    if (!bytes || *bytes != end - begin)
      return invalid("shape " + shapeText(view.shape) + " of " +
                     dtypeName(*type) + " needs " +
                     (bytes ? std::to_string(*bytes) : "too many") +
                     " bytes, but its bytes are " + range);
    view.data = buffer.data() + begin;
    return Status::ok();
  }

private:
  struct Member {
    bool isSeen = false, isThere = false, isBad = false;
    std::string text;
  };

  template <typename Read>
  Status once(const std::string &key, Member &member, JsonValue::Kind kind,
              Read read) {
    if (std::exchange(member.isSeen, true))
      return twice(reader_, key);
    DYNA_ASSIGN_OR_RETURN(JsonValue::Kind got, reader_.kind());
    member.isThere = got == kind;
    return member.isThere ? read() : reader_.skip();
  }

  /// Appends integers to `numbers`, which begins with a 0.
  Status readIntegers(size_t limit, Member &member,
                      std::vector<int64_t> &numbers) {
    return reader_.readArray([&, limit]() -> Status {
      DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader_.kind());
      member.isBad |= kind != JsonValue::Kind::Number || numbers.size() > limit;
      if (member.isBad)
        return reader_.skip();
      JsonValue number;
      DYNA_RETURN_IF_ERROR(reader_.readValue(number));
      member.isBad = !number.integer;
      numbers.push_back(number.integer.value_or(0));
      return Status::ok();
    });
  }

  JsonReader &reader_;
  Member dtype_, shape_, offsets_;
  std::vector<int64_t> shapeNumbers_ = {0}, range_ = {0};
};

Status readTensor(JsonReader &reader, const std::string &name,
                  std::string_view buffer, std::vector<TensorView> &tensors) {
  DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader.kind());
  if (kind != JsonValue::Kind::Object)
    return invalid("tensor " + named(name) + ": expected an object, but got " +
                   jsonKindName(kind));
  EntryReader entry(reader);
  DYNA_RETURN_IF_ERROR(entry.read());
  TensorView &view = tensors.emplace_back();
  view.name = name;
  if (Status status = entry.check(buffer, view); !status.isOk())
    return invalid("tensor " + named(name) + ": " + status.message());
  return Status::ok();
}

Status readMetadata(JsonReader &reader, Metadata &metadata) {
  DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader.kind());
  if (kind != JsonValue::Kind::Object)
    return invalid("expected an object for __metadata__");
  return reader.readObject([&](const std::string &key) -> Status {
    DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader.kind());
    if (kind != JsonValue::Kind::String)
      return invalid("expected strings in __metadata__, but got " +
                     std::string(jsonKindName(kind)) + " for " + named(key));
    auto [place, isNew] = metadata.try_emplace(key);
    if (!isNew)
      return twice(reader, key);
    if (metadata.size() > metadataLimit)
      return invalid("__metadata__ has more than " +
                     std::to_string(metadataLimit) + " entries");
    return reader.readString(place->second);
  });
}

/// Checks that the tensors, in order, cover the data without gap and overlap.
Status checkCoverage(const std::vector<TensorView> &tensors,
                     std::string_view buffer) {
  const auto bufferBytes = static_cast<int64_t>(buffer.size());
  int64_t end = 0;
  for (const TensorView &tensor : tensors) {
    const int64_t begin =
        static_cast<const char *>(tensor.data) - buffer.data();
    if (begin != end)
      return invalid("tensor " + named(tensor.name) + " starts at byte " +
                     std::to_string(begin) +
                     " of the data, but the tensors before it end at byte " +
                     std::to_string(end));
    end = begin + *tensorBytes(tensor.type, tensor.shape);
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
  DYNA_RETURN_IF_ERROR(file.checkReadable());
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
  constexpr std::string_view pointer = "version https://git-lfs";
  if (bytes_.substr(0, pointer.size()) == pointer)
    return invalid("is a Git LFS pointer; fetch the file that it stands for "
                   "with git lfs pull");
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
  // Memory is limited for any header: each tensor keeps about twice the length
  // of its shortest text.
  JsonReader reader(header, "header, ");
  DYNA_ASSIGN_OR_RETURN(JsonValue::Kind kind, reader.kind());
  if (kind != JsonValue::Kind::Object)
    return invalid("expected an object in the header");
  bool hasMetadata = false;
  DYNA_RETURN_IF_ERROR(reader.readObject([&](const std::string &key) -> Status {
    if (key != metadataKey)
      return readTensor(reader, key, buffer, tensors_);
    if (std::exchange(hasMetadata, true))
      return twice(reader, key);
    return readMetadata(reader, metadata_);
  }));
  DYNA_RETURN_IF_ERROR(reader.finish());
  auto placeOf = [](const TensorView &tensor) {
    const auto *begin = static_cast<const char *>(tensor.data);
    return std::tuple(begin, begin + *tensorBytes(tensor.type, tensor.shape),
                      std::string_view(tensor.name));
  };
  std::sort(tensors_.begin(), tensors_.end(),
            [&](const TensorView &a, const TensorView &b) {
              return placeOf(a) < placeOf(b);
            });
  DYNA_RETURN_IF_ERROR(sortNames());
  return checkCoverage(tensors_, buffer);
}

/// Fails if a name is there twice.
Status SafetensorsFile::sortNames() {
  byName_.resize(tensors_.size());
  std::iota(byName_.begin(), byName_.end(), size_t(0));
  auto nameOf = [this](size_t i) { return std::string_view(tensors_[i].name); };
  std::sort(byName_.begin(), byName_.end(),
            [&](size_t a, size_t b) { return nameOf(a) < nameOf(b); });
  auto same = std::adjacent_find(
      byName_.begin(), byName_.end(),
      [&](size_t a, size_t b) { return nameOf(a) == nameOf(b); });
  if (same != byName_.end())
    return invalid("header: the key " + named(nameOf(*same)) +
                   " appears twice in one object");
  return Status::ok();
}

const TensorView *SafetensorsFile::find(std::string_view name) const {
  auto found =
      std::lower_bound(byName_.begin(), byName_.end(), name,
                       [this](size_t i, std::string_view sought) {
                         return std::string_view(tensors_[i].name) < sought;
                       });
  return found == byName_.end() || tensors_[*found].name != name
             ? nullptr
             : &tensors_[*found];
}

StatusOr<SafetensorsFile>
SafetensorsFile::join(std::vector<SafetensorsFile> parts,
                      const std::string &name) {
  SafetensorsFile joined;
  joined.name_ = name;
  for (SafetensorsFile &part : parts)
    joined.tensors_.insert(joined.tensors_.end(),
                           std::make_move_iterator(part.tensors_.begin()),
                           std::make_move_iterator(part.tensors_.end()));
  joined.parts_ = std::move(parts);
  if (Status status = joined.sortNames(); !status.isOk())
    return Status(status.code(), name + ": " + status.message());
  return joined;
}

Status SafetensorsFile::checkReadable() const {
  for (const SafetensorsFile &part : parts_)
    DYNA_RETURN_IF_ERROR(part.checkReadable());
  return file_.checkReadable();
}

void SafetensorsFile::dropPages() const {
  for (const SafetensorsFile &part : parts_)
    part.dropPages();
  file_.dropPages();
}

uint64_t SafetensorsFile::checksum() const {
  constexpr size_t piece = size_t(1) << 22;
  Checksum checksum;
  for (const SafetensorsFile &part : parts_) {
    const uint64_t own = part.checksum();
    checksum.update(&own, sizeof own);
  }
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

/// Writes the bytes of one tensor, from its memory or from `give`.
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
