//===- Datasets.h - Data sets of a test ----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DATA_DATASETS_H
#define DYNA_TEST_RUNTIME_DATA_DATASETS_H

#include "runtime/data/OpenDataset.h"
#include "runtime/data/Sources.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <chrono>
#include <cstring>
#include <sys/stat.h>

namespace dyna::test {

inline std::vector<int32_t> bytesOf(std::string_view text,
                                    bool withEnd = true) {
  std::vector<int32_t> tokens;
  for (unsigned char c : text)
    tokens.push_back(c);
  if (withEnd)
    tokens.push_back(256);
  return tokens;
}

inline DatasetPointer mustOpen(const std::vector<std::string> &paths,
                               int64_t vocabulary = 257) {
  StatusOr<DatasetPointer> dataset = openDataset(paths, {vocabulary, 0});
  if (!dataset.isOk()) {
    ADD_FAILURE() << dataset.status().message();
    return nullptr;
  }
  return *dataset;
}

inline Document mustRead(const DatasetPointer &dataset, int64_t index) {
  StatusOr<Document> document = dataset->read(index);
  EXPECT_TRUE(document.isOk()) << document.status().message();
  return document.isOk() ? *document : Document();
}

/// As if it had been written to, at a time that the clock can tell apart.
inline void touch(const std::string &path) {
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
}

/// Writes other bytes into the file, no more and no fewer, and puts its time of
/// writing back, as `touch -r` does.
inline void rewriteUnseen(const std::string &path, std::string_view text) {
  struct stat before, after;
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_EQ(static_cast<size_t>(before.st_size), text.size());
  auto written = std::filesystem::last_write_time(path);
  do { // until the clock of the file system can tell the times apart
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << text;
    std::filesystem::last_write_time(path, written);
    ASSERT_EQ(::stat(path.c_str(), &after), 0);
  } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
           after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

template <typename T> void put(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

struct IndexParts {
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths = {3, 0, 2, 1};
  std::vector<int64_t> offsets = {0, 6, 6, 10};
  std::vector<int64_t> documents = {0, 1, 3, 4};
  int64_t extraSequences = 0, extraDocuments = 0;

  std::string bytes() const {
    std::string result("MMIDIDX\0\0", 9);
    put(result, version);
    put(result, type);
    put(result, uint64_t(lengths.size() + extraSequences));
    put(result, uint64_t(documents.size() + extraDocuments));
    for (int32_t value : lengths)
      put(result, value);
    for (int64_t value : offsets)
      put(result, value);
    for (int64_t value : documents)
      put(result, value);
    return result;
  }
};

template <typename T> std::string tokenBytes(std::vector<int64_t> tokens) {
  std::string bytes;
  for (int64_t token : tokens)
    put(bytes, static_cast<T>(token));
  return bytes;
}

inline std::string u16Tokens() {
  return tokenBytes<uint16_t>({1, 2, 3, 4, 5, 65535});
}

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_DATA_DATASETS_H
