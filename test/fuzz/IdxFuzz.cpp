//===- IdxFuzz.cpp - Megatron-LM's indexes --------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "runtime/data/Sources.h"

using namespace dyna;
using namespace dyna::test;

namespace {

constexpr int64_t binBytes = 64;

std::string makeIndex(uint8_t type, int64_t width,
                      const std::vector<int32_t> &lengths,
                      const std::vector<int64_t> &documents, bool hasModes) {
  std::string bytes("MMIDIDX\0\0", 9);
  putValue<uint64_t>(bytes, 1);
  putValue(bytes, type);
  putValue<uint64_t>(bytes, lengths.size());
  putValue<uint64_t>(bytes, documents.size());
  for (int32_t length : lengths)
    putValue(bytes, length);
  int64_t offset = 0;
  for (int32_t length : lengths) {
    putValue(bytes, offset);
    offset += length * width;
  }
  for (int64_t boundary : documents)
    putValue(bytes, boundary);
  if (hasModes)
    bytes.append(lengths.size(), '\0');
  return bytes;
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {makeIndex(8, 2, {3, 0, 2}, {0, 1, 3}, false),
          makeIndex(4, 4, {16}, {0, 1}, false),
          makeIndex(5, 8, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 4, 4, 8}, true),
          makeIndex(1, 1, {64}, {0, 1}, false)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view idx(reinterpret_cast<const char *>(data), size);
  // On the heap, so that sanitizers see reads past its end.
  std::vector<char> tokens(binBytes);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<char>(i % 2 ? 0 : i);
  StatusOr<MegatronIndex> index =
      MegatronIndex::parse(idx, binBytes, "input.idx");
  if (!index.isOk())
    return 0;
  ++acceptedInputs;
  StatusOr<DatasetPointer> opened = MegatronDataset::fromIndex(
      *index, {tokens.data(), tokens.size()}, "input", {1000, 0});
  if (!opened.isOk())
    return 0;
  DatasetPointer dataset = *opened;
  require(dataset->size() >= 1, "a good index has a document");
  int64_t total = 0, expected = 0;
  for (int64_t i = 0; i < index->sequences(); ++i)
    expected += index->length(i);
  require(expected * index->tokenBytes() <= binBytes,
          "the sequences lie in the .bin file");
  for (int64_t i = 0; i < dataset->size(); ++i) {
    StatusOr<Document> document = dataset->read(i);
    require(document.isOk(), "what was checked can be read");
    total += static_cast<int64_t>(document->tokens.size());
    for (int32_t token : document->tokens)
      require(token >= 0 && token < 1000, "ids are in the vocabulary");
  }
  require(total == expected, "the documents are all sequences");
  return 0;
}
