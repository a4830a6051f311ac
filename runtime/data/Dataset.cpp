//===- Dataset.cpp - Combines data sets -----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Dataset.h"

#include "runtime/data/Permutation.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>

using namespace dyna;

namespace {

/// Returns the hash of several values in this order.
uint64_t combine(std::initializer_list<uint64_t> values) {
  uint64_t hash = 0;
  for (uint64_t value : values)
    hash = dyna_mix64(hash ^ value);
  return hash;
}

std::vector<std::string> allNotes(const std::vector<DatasetPointer> &parts) {
  std::vector<std::string> notes;
  for (const DatasetPointer &part : parts)
    for (std::string &note : part->notes())
      notes.push_back(std::move(note));
  return notes;
}

class PairDataset : public Dataset {
public:
  PairDataset(DatasetPointer inputs, DatasetPointer targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  int64_t size() const override { return inputs_->size(); }

  DocumentShape shape(int64_t index) const override {
    int64_t input = inputs_->shape(index).tokens;
    return {input + targets_->shape(index).tokens, std::max<int64_t>(1, input)};
  }

  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override {
    int64_t input = inputs_->shape(index).tokens;
    if (begin < input)
      DYNA_RETURN_IF_ERROR(
          inputs_->readTokens(index, begin, std::min(end, input), tokens));
    if (end <= input)
      return Status::ok();
    return targets_->readTokens(index, std::max(begin, input) - input,
                                end - input, tokens);
  }

  std::string describe(int64_t index) const override {
    return inputs_->describe(index) + " with " + targets_->describe(index);
  }
  uint64_t fingerprint() const override {
    return combine({inputs_->fingerprint(), targets_->fingerprint()});
  }
  int64_t heldBytes() const override {
    return inputs_->heldBytes() + targets_->heldBytes();
  }
  std::vector<std::string> notes() const override {
    return allNotes({inputs_, targets_});
  }

private:
  DatasetPointer inputs_, targets_;
};

class JoinedDataset : public Dataset {
public:
  explicit JoinedDataset(std::vector<DatasetPointer> parts)
      : parts_(std::move(parts)) {
    for (const DatasetPointer &part : parts_)
      begins_.push_back(begins_.back() + part->size());
  }

  int64_t size() const override { return begins_.back(); }

  DocumentShape shape(int64_t index) const override {
    size_t part = find(index);
    return parts_[part]->shape(index - begins_[part]);
  }
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override {
    size_t part = find(index);
    return parts_[part]->readTokens(index - begins_[part], begin, end, tokens);
  }
  Status readIgnored(int64_t index,
                     std::vector<DocumentRange> &ranges) const override {
    size_t part = find(index);
    return parts_[part]->readIgnored(index - begins_[part], ranges);
  }
  std::string describe(int64_t index) const override {
    size_t part = find(index);
    return parts_[part]->describe(index - begins_[part]);
  }
  uint64_t fingerprint() const override {
    uint64_t hash = 0;
    for (const DatasetPointer &part : parts_)
      hash = combine({hash, part->fingerprint()});
    return hash;
  }
  int64_t heldBytes() const override {
    int64_t bytes = 0;
    for (const DatasetPointer &part : parts_)
      bytes += part->heldBytes();
    return bytes;
  }
  std::optional<int32_t> endToken() const override {
    std::optional<int32_t> token = parts_.front()->endToken();
    for (const DatasetPointer &part : parts_)
      if (part->endToken() != token)
        return std::nullopt;
    return token;
  }
  std::vector<std::string> notes() const override { return allNotes(parts_); }

private:
  size_t find(int64_t index) const {
    auto after = std::upper_bound(begins_.begin(), begins_.end(), index);
    return static_cast<size_t>(after - begins_.begin()) - 1;
  }

  std::vector<DatasetPointer> parts_;
  std::vector<int64_t> begins_ = {0};
};

/// A range of a permutation of another data set.
class ChosenDataset : public Dataset {
public:
  ChosenDataset(DatasetPointer all, Permutation order, int64_t begin,
                int64_t size)
      : all_(std::move(all)), order_(order), begin_(begin), size_(size) {}

  int64_t size() const override { return size_; }
  DocumentShape shape(int64_t index) const override {
    return all_->shape(order_(begin_ + index));
  }
  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override {
    return all_->readTokens(order_(begin_ + index), begin, end, tokens);
  }
  Status readIgnored(int64_t index,
                     std::vector<DocumentRange> &ranges) const override {
    return all_->readIgnored(order_(begin_ + index), ranges);
  }
  std::string describe(int64_t index) const override {
    return all_->describe(order_(begin_ + index));
  }
  // A few places of the order identify the seed that chose it.
  uint64_t fingerprint() const override {
    return combine({all_->fingerprint(), static_cast<uint64_t>(begin_),
                    static_cast<uint64_t>(size_),
                    static_cast<uint64_t>(order_(0)),
                    static_cast<uint64_t>(order_(order_.size() / 2))});
  }
  int64_t heldBytes() const override { return all_->heldBytes(); }
  std::optional<int32_t> endToken() const override { return all_->endToken(); }
  std::vector<std::string> notes() const override { return all_->notes(); }

private:
  DatasetPointer all_;
  Permutation order_;
  int64_t begin_, size_;
};

} // namespace

StatusOr<Document> Dataset::read(int64_t index) const {
  DocumentShape known = shape(index);
  Document document;
  document.firstTarget = known.firstTarget;
  DYNA_RETURN_IF_ERROR(readTokens(index, 0, known.tokens, document.tokens));
  return document;
}

StatusOr<DatasetPointer> dyna::pairDatasets(DatasetPointer inputs,
                                            DatasetPointer targets) {
  if (inputs->size() != targets->size())
    return Status::invalidArgument(
        "inputs and targets must have equally many documents, but there are " +
        std::to_string(inputs->size()) + " (" + inputs->describe(0) +
        ", ...) and " + std::to_string(targets->size()) + " (" +
        targets->describe(0) + ", ...)");
  return DatasetPointer(
      std::make_shared<PairDataset>(std::move(inputs), std::move(targets)));
}

DatasetPointer dyna::concatenate(std::vector<DatasetPointer> parts) {
  if (parts.size() == 1)
    return parts.front();
  return std::make_shared<JoinedDataset>(std::move(parts));
}

StatusOr<std::pair<DatasetPointer, DatasetPointer>>
dyna::holdOut(const DatasetPointer &all, int64_t count, uint64_t seed) {
  int64_t size = all->size();
  if (count <= 0 || count >= size)
    return Status::invalidArgument(
        "cannot hold out " + std::to_string(count) + " of " +
        std::to_string(size) +
        " documents; at least one must be held out and "
        "at least one left");
  Permutation order(size, dyna_parameter_key(seed, "held-out documents"));
  return std::make_pair(
      DatasetPointer(
          std::make_shared<ChosenDataset>(all, order, count, size - count)),
      DatasetPointer(std::make_shared<ChosenDataset>(all, order, 0, count)));
}
