//===- BatchReader.cpp - Reads mini-batches of samples in a seeded order --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchReader.h"

#include "runtime/data/Permutation.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

using namespace dyna;

static constexpr std::pair<const char *, Shuffle> orders[] = {
    {"samples", Shuffle::Samples},
    {"documents", Shuffle::Documents},
    {"none", Shuffle::None}};

static const char *orderName(Shuffle shuffle) {
  return std::find_if(std::begin(orders), std::end(orders),
                      [&](auto &order) { return order.second == shuffle; })
      ->first;
}

StatusOr<Shuffle> dyna::parseShuffle(std::string_view text) {
  for (auto [name, shuffle] : orders)
    if (text == name)
      return shuffle;
  return Status::invalidArgument(
      "expected samples, documents or none to shuffle, but got \"" +
      std::string(text) + "\"");
}

//===----------------------------------------------------------------------===//
// Cursors
//===----------------------------------------------------------------------===//

namespace {

struct CursorField {
  const char *key;
  int64_t DataCursor::*field;
};

constexpr CursorField cursorFields[] = {
    {"epoch", &DataCursor::epoch},
    {"place", &DataCursor::place},
    {"piece", &DataCursor::piece},
    {"samples", &DataCursor::samples},
    {"documents", &DataCursor::documents},
    {"epoch_samples", &DataCursor::epochSamples}};

/// Limit of numbers in a cursor. No run counts so far, and sums of a few such
/// numbers do not overflow.
constexpr int64_t mostCounted = INT64_C(1) << 60;

/// Formats a value as 16 hexadecimal digits: JSON numbers end at 2^53.
std::string toHex(uint64_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 0; i < text.size(); ++i)
    text[text.size() - 1 - i] = digits[value >> (4 * i) & 15];
  return text;
}

/// Finds a hexadecimal value; nothing if the member is missing or malformed.
std::optional<uint64_t> findHex(const JsonValue &value, const char *key) {
  const JsonValue *member = value.find(key);
  if (!member || !member->isString() || member->text.size() != 16)
    return std::nullopt;
  uint64_t result = 0;
  const char *end = member->text.data() + member->text.size();
  auto [stop, error] = std::from_chars(member->text.data(), end, result, 16);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return result;
}

} // namespace

JsonObject DataCursor::toJson() const {
  JsonObject object;
  for (const CursorField &field : cursorFields)
    object.add(field.key, this->*field.field);
  return object.add("shuffle", orderName(shuffle))
      .add("data", toHex(fingerprint));
}

StatusOr<DataCursor> DataCursor::fromJson(const JsonValue &value) {
  // Before samples could be shuffled, cursors had documents and token offsets.
  if (value.find("offset") && !value.find("place"))
    return Status::invalidArgument(
        "the place in the data is that of an earlier version, which knew no "
        "order of samples: start a new run from this model with --load");
  auto missing = [](const char *key) {
    return Status::invalidArgument(
        std::string("the place in the data has no valid \"") + key + "\"");
  };
  DataCursor cursor;
  for (const CursorField &field : cursorFields) {
    std::optional<int64_t> number = value.findInteger(field.key);
    if (!number || *number < 0 || *number > mostCounted)
      return missing(field.key);
    cursor.*field.field = *number;
  }
  const JsonValue *order = value.find("shuffle");
  StatusOr<Shuffle> shuffle =
      parseShuffle(order && order->isString() ? order->text : "");
  if (!shuffle.isOk())
    return missing("shuffle");
  cursor.shuffle = *shuffle;
  std::optional<uint64_t> data = findHex(value, "data");
  if (!data)
    return missing("data");
  cursor.fingerprint = *data;
  return cursor;
}

bool dyna::operator==(const DataCursor &a, const DataCursor &b) {
  return a.toJson().text() == b.toJson().text();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

BatchReader::BatchReader(SampleIndexPointer index, const BatchOptions &options)
    : index_(std::move(index)), options_(options) {
  setCursor({});
}

/// Moves to a position in this reader's data and order.
void BatchReader::setCursor(const DataCursor &cursor) {
  cursor_ = cursor;
  cursor_.shuffle = options_.shuffle;
  cursor_.documents = index_->documents();
  cursor_.epochSamples = index_->size();
  cursor_.fingerprint = index_->dataset().fingerprint();
  head_ = cursor_;
  pending_.reset();
}

Status BatchReader::seek(const DataCursor &cursor) {
  const std::string remedy =
      "; give the same, or --allow-changed-data to go on with a new epoch";
  auto changed = [&](const char *what, int64_t before, int64_t now) {
    return Status::invalidArgument(
        "the data changed: " + std::to_string(before) + " " + what +
        " when the run was saved, " + std::to_string(now) + " now" + remedy);
  };
  if (cursor.documents != index_->documents())
    return changed("documents", cursor.documents, index_->documents());
  if (cursor.fingerprint != index_->dataset().fingerprint())
    return Status::invalidArgument(
        "the data changed: their lengths or contents are not those of the run "
        "that was saved (as many documents as then, fingerprint " +
        toHex(cursor.fingerprint) + " then, " +
        toHex(index_->dataset().fingerprint()) + " now)" + remedy);
  if (cursor.epochSamples != index_->size())
    return changed("samples (which follow from the data, --long-documents and "
                   "the longest sample that --rank-memory allows)",
                   cursor.epochSamples, index_->size());
  if (cursor.shuffle != options_.shuffle)
    return Status::invalidArgument(
        std::string("the run was saved with --shuffle=") +
        orderName(cursor.shuffle) +
        " and its place in the data says nothing "
        "for --shuffle=" +
        orderName(options_.shuffle) + remedy);
  // After the last piece of a document comes the first of the next document.
  bool isOrdered = cursor.shuffle == Shuffle::Documents;
  int64_t places = isOrdered ? index_->documents() : index_->size();
  if (cursor.place > places || cursor.piece > (isOrdered ? index_->size() : 0))
    return Status::invalidArgument("the data cursor " + cursor.toJson().text() +
                                   " lies outside the data" + remedy);
  setCursor(cursor);
  return Status::ok();
}

void BatchReader::seekNextEpoch(const DataCursor &cursor) {
  DataCursor next;
  next.epoch = cursor.epoch + 1;
  next.samples = cursor.samples;
  setCursor(next);
}

/// Returns the sample at `head_`, and moves after it. Nothing at the end.
std::optional<int64_t> BatchReader::nextNumber() {
  bool isOrdered = options_.shuffle == Shuffle::Documents;
  int64_t places = isOrdered ? index_->documents() : index_->size();
  // The loop ends, because there is at least one sample.
  while (true) {
    if (head_.place >= places) {
      ++head_.epoch;
      head_.place = head_.piece = 0;
    }
    if (options_.epochs > 0 && head_.epoch >= options_.epochs)
      return std::nullopt;
    if (options_.shuffle == Shuffle::None)
      return head_.place++;
    uint64_t key = dyna_parameter_key(
        options_.seed, isOrdered ? "order of documents" : "order of samples");
    key = dyna_mix64(key ^ static_cast<uint64_t>(head_.epoch));
    int64_t number = Permutation(places, key)(head_.place);
    if (!isOrdered) {
      ++head_.place;
      return number;
    }
    int64_t sample = index_->firstSample(number) + head_.piece;
    int64_t end = index_->firstSample(number + 1);
    if (sample + 1 < end) {
      ++head_.piece;
    } else {
      ++head_.place;
      head_.piece = 0;
    }
    if (sample < end)
      return sample;
  }
}

StatusOr<std::optional<Sample>> BatchReader::nextSample() {
  std::optional<int64_t> number = nextNumber();
  if (!number)
    return std::optional<Sample>();
  DYNA_ASSIGN_OR_RETURN(Sample sample, index_->read(*number));
  sample.id = head_.samples++;
  return std::optional<Sample>(std::move(sample));
}

std::vector<int64_t> MiniBatch::lengths() const {
  std::vector<int64_t> lengths;
  for (const Sample &sample : samples)
    lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
  return lengths;
}

StatusOr<MiniBatch> BatchReader::next(int64_t tokens) {
  if (tokens <= 0)
    return Status::invalidArgument(
        "expected a positive number of tokens per batch, but got " +
        std::to_string(tokens));
  MiniBatch batch;
  while (true) {
    if (!pending_) {
      DYNA_ASSIGN_OR_RETURN(std::optional<Sample> sample, nextSample());
      if (!sample)
        break;
      pending_ = std::move(sample);
    }
    int64_t size = static_cast<int64_t>(pending_->tokens.size());
    if (!batch.samples.empty() && batch.tokens + size > tokens)
      return batch; // cursor_ is still before the pending sample
    batch.tokens += size;
    batch.targets += size - std::count(pending_->targets.begin(),
                                       pending_->targets.end(), ignoreTarget);
    batch.samples.push_back(std::move(*pending_));
    pending_.reset();
    cursor_ = head_;
  }
  return batch;
}
