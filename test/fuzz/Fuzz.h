//===- Fuzz.h - What a fuzz target consists of ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One file per reader defines the two functions below. Linked with
// FuzzDriver.cpp it is a test that replays seeds, the corpus and a fixed number
// of mutations of them. Linked with libFuzzer (dyna_fuzz_X_sanitized, built by
// check-all) it searches on its own, with AddressSanitizer and UBSan:
//
//   ninja -C build dyna_fuzz_jsonl_sanitized
//   build/bin/dyna_fuzz_jsonl_sanitized CORPUS
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_FUZZ_FUZZ_H
#define DYNA_TEST_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Runs the reader on one input. Broken promises end in `abort`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace dyna::test {

/// Inputs that the reader accepts, from which mutations start.
std::vector<std::string> fuzzSeeds();

/// Bytes of memory that an input may take: so many, and so many for each of its bytes.
/// A target raises them if few bytes stand for many by the format itself.
inline int64_t fixedBytes = INT64_C(32) << 20, bytesPerByte = 24;

/// The protobuf library reserves up to this many bytes for a string before it reads
/// it. The length in the file decides, even if the string is missing.
inline constexpr int64_t protobufStringBytes = 50000000 + 1000;

/// How many inputs the reader took so far, counted by the target: a target
/// whose seeds are all refused would test nothing.
inline uint64_t acceptedInputs = 0;

/// A promise of the reader, checked in every build.
inline void require(bool holds, const char *promise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

template <typename T> void putValue(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

} // namespace dyna::test

#endif // DYNA_TEST_FUZZ_FUZZ_H
