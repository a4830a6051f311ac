//===- BatchReader.cpp - Samples and mini-batches -------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchReader.h"

#include "runtime/data/Json.h"
#include "runtime/data/Permutation.h"

#include <algorithm>

using namespace dyna;

StatusOr<LongDocuments> dyna::parseLongDocuments(std::string_view text) {
  if (text == "split")
    return LongDocuments::Split;
  if (text == "truncate")
    return LongDocuments::Truncate;
  if (text == "error")
    return LongDocuments::Error;
  return Status::invalidArgument(
      "expected split, truncate or error for long documents, but got \"" +
      std::string(text) + "\"");
}

std::string DataCursor::toJson() const {
  return "{\"epoch\": " + std::to_string(epoch) +
         ", \"document\": " + std::to_string(document) +
         ", \"offset\": " + std::to_string(offset) +
         ", \"samples\": " + std::to_string(samples) +
         ", \"documents\": " + std::to_string(documents) + "}";
}

StatusOr<DataCursor> DataCursor::fromJson(std::string_view text) {
  StatusOr<JsonValue> value = parseJson(text);
  if (!value.isOk())
    return Status::invalidArgument("data cursor: " + value.status().message());
  DataCursor cursor;
  const std::pair<const char *, int64_t *> fields[] = {
      {"epoch", &cursor.epoch},
      {"document", &cursor.document},
      {"offset", &cursor.offset},
      {"samples", &cursor.samples},
      {"documents", &cursor.documents}};
  for (auto [key, field] : fields) {
    std::optional<int64_t> number = value->findInteger(key);
    if (!number || *number < 0)
      return Status::invalidArgument(
          std::string("data cursor: expected a number that is not negative "
                      "for \"") +
          key + "\" in " + std::string(text.substr(0, 200)));
    *field = *number;
  }
  return cursor;
}

BatchReader::BatchReader(DatasetPointer dataset, const BatchOptions &options)
    : dataset_(std::move(dataset)), options_(options) {
  cursor_.documents = dataset_->size();
  head_ = cursor_;
}

Status BatchReader::seek(const DataCursor &cursor) {
  int64_t size = dataset_->size();
  if (cursor.documents != 0 && cursor.documents != size)
    return Status::invalidArgument(
        "the data changed: " + std::to_string(cursor.documents) +
        " documents when the run was saved, " + std::to_string(size) +
        " now; resume with the same data");
  if (cursor.epoch < 0 || cursor.document < 0 || cursor.document > size ||
      cursor.offset < 0 || cursor.samples < 0)
    return Status::invalidArgument(
        "the data cursor " + cursor.toJson() +
        " lies outside the data; resume with the same data");
  cursor_ = cursor;
  cursor_.documents = size;
  head_ = cursor_;
  document_.reset();
  pending_.reset();
  return Status::ok();
}

void BatchReader::leaveDocument() {
  document_.reset();
  ++head_.document;
  head_.offset = 0;
}

Status BatchReader::loadDocument() {
  int64_t index = head_.document;
  if (options_.shuffle) {
    uint64_t key = dyna_parameter_key(options_.seed, "order of documents");
    key = dyna_mix64(key ^ static_cast<uint64_t>(head_.epoch));
    index = Permutation(dataset_->size(), key)(index);
  }
  StatusOr<Document> document = dataset_->read(index);
  if (!document.isOk())
    return document.status();
  int64_t inputs = static_cast<int64_t>(document->tokens.size()) - 1;
  if (options_.positions > 0 && inputs > options_.positions) {
    if (options_.longDocuments == LongDocuments::Error)
      return Status::invalidArgument(
          dataset_->describe(index) + " has " + std::to_string(inputs + 1) +
          " tokens, but the model has " + std::to_string(options_.positions) +
          " positions; use --long-documents=split or truncate");
    if (options_.longDocuments == LongDocuments::Truncate)
      document->tokens.resize(static_cast<size_t>(options_.positions) + 1);
  }
  document_ = std::move(*document);
  return Status::ok();
}

/// Inputs [begin, end) of the document; nothing if no target is in the loss.
std::optional<Sample> BatchReader::cutSample(int64_t begin, int64_t end) {
  if (end <= begin || document_->firstTarget > end)
    return std::nullopt;
  const std::vector<int32_t> &tokens = document_->tokens;
  Sample sample;
  sample.id = head_.samples;
  sample.tokens.assign(tokens.begin() + begin, tokens.begin() + end);
  sample.targets.assign(tokens.begin() + begin + 1, tokens.begin() + end + 1);
  int64_t ignored = std::max<int64_t>(0, document_->firstTarget - 1 - begin);
  std::fill_n(sample.targets.begin(), ignored, ignoreTarget);
  return sample;
}

StatusOr<std::optional<Sample>> BatchReader::nextSample() {
  // A whole epoch without a sample means that there never will be one.
  int64_t barren = 0;
  while (true) {
    if (head_.document >= dataset_->size()) {
      ++head_.epoch;
      head_.document = 0;
    }
    if (options_.epochs > 0 && head_.epoch >= options_.epochs)
      return std::optional<Sample>();
    if (!document_)
      DYNA_RETURN_IF_ERROR(loadDocument());
    int64_t inputs = static_cast<int64_t>(document_->tokens.size()) - 1;
    int64_t begin = head_.offset, end = inputs;
    if (options_.positions > 0)
      end = std::min(end, begin + options_.positions);
    std::optional<Sample> sample = cutSample(begin, end);
    if (end >= inputs)
      leaveDocument();
    else
      head_.offset = end;
    if (sample) {
      ++head_.samples;
      return sample;
    }
    if (!document_ && ++barren > dataset_->size())
      return Status::invalidArgument(
          "no document has a token to predict (for example " +
          dataset_->describe(0) + "); documents need at least two tokens");
  }
}

StatusOr<MiniBatch> BatchReader::next(int64_t tokens) {
  if (tokens <= 0)
    return Status::invalidArgument(
        "expected a positive number of tokens per batch, but got " +
        std::to_string(tokens));
  MiniBatch batch;
  while (true) {
    if (!pending_) {
      StatusOr<std::optional<Sample>> sample = nextSample();
      if (!sample.isOk())
        return sample.status();
      if (!*sample)
        break;
      pending_ = std::move(*sample);
    }
    int64_t size = static_cast<int64_t>(pending_->tokens.size());
    if (!batch.samples.empty() && batch.tokens + size > tokens)
      return batch; // cursor_ stands before the pending sample
    batch.tokens += size;
    batch.targets += size - std::count(pending_->targets.begin(),
                                       pending_->targets.end(), ignoreTarget);
    batch.samples.push_back(std::move(*pending_));
    pending_.reset();
    cursor_ = head_;
  }
  return batch;
}
