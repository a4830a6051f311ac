//===- FuzzDriver.cpp - Replays inputs and seeded mutations ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   dyna_fuzz_X [--mutations N] [--swollen N] [--seed S] [--write-seeds DIR]
//               [FILE|DIR]...
//
// Runs the target on its seeds, on the given files, on N mutations of all of them and
// on N inputs of up to 2 MiB in which a piece or a word is repeated. The same arguments
// run the same inputs. When the target dies, the input is left in `fuzz-failure.bin`
// in the current directory.
//
// Every input also has a limit of memory (AllocatedBytes.h): a fixed part, and a small
// multiple of its size.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/AllocatedBytes.h"
#include "test/fuzz/Fuzz.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace dyna::test;

namespace {

constexpr size_t longestInput = 1 << 16, longestSwollen = 1 << 21;

/// The input that runs now, for the signal handler.
const char *currentData = nullptr;
size_t currentSize = 0;

void saveInput(int signal) {
  const char message[] = "the input that failed is in fuzz-failure.bin\n";
  int file = ::open("fuzz-failure.bin", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  bool isSaved = file >= 0 && ::write(file, currentData, currentSize) ==
                                  static_cast<ssize_t>(currentSize);
  if (isSaved && ::write(STDERR_FILENO, message, sizeof message - 1) < 0)
    ::_exit(3);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void runOne(const std::string &input) {
  // An exact copy on the heap, so that sanitizers see every byte too far.
  std::vector<uint8_t> copy(input.begin(), input.end());
  currentData = input.data();
  currentSize = input.size();
  const int64_t before = beginPeak();
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  const int64_t taken = peakBytes() - before;
  const int64_t limit =
      fixedBytes + bytesPerByte * static_cast<int64_t>(input.size());
  if (taken > limit)
    std::fprintf(stderr, "%lld bytes of memory for %zu bytes of input\n",
                 static_cast<long long>(taken), input.size());
  require(taken <= limit, "memory is bounded by the size of the input");
}

/// A field of a protocol buffer.
struct WireField {
  size_t begin, tagBytes, content, end;
  bool isBytes;
};

uint64_t readVarint(const std::string &bytes, size_t &at) {
  uint64_t value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128)
      return value;
  }
  at = bytes.size() + 1;
  return 0;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

/// Empty if the bytes are no message.
std::vector<WireField> fieldsOf(const std::string &bytes) {
  std::vector<WireField> fields;
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const uint64_t tag = readVarint(bytes, at);
    const size_t tagBytes = at - begin;
    const uint64_t wire = tag & 7;
    size_t content = at;
    if (wire == 0)
      readVarint(bytes, at);
    else if (wire == 1 || wire == 5)
      at += wire == 1 ? 8 : 4;
    else if (wire == 2) {
      const uint64_t size = readVarint(bytes, at);
      content = at;
      at = at <= bytes.size() && size <= bytes.size() - at ? at + size
                                                           : bytes.size() + 1;
    }
    if (tag < 8 || wire == 3 || wire == 4 || wire > 5 || at > bytes.size())
      return {};
    fields.push_back({begin, tagBytes, content, at, wire == 2});
  }
  return fields;
}

class Mutator {
public:
  Mutator(const std::vector<std::string> &corpus, uint64_t seed)
      : corpus_(corpus), state_(seed) {}

  std::string next() {
    std::string input = corpus_[below(corpus_.size())];
    for (size_t count = 1 + below(4); count > 0; --count)
      mutate(input);
    if (input.size() > longestInput)
      input.resize(longestInput);
    return input;
  }

  /// A piece of an input, or a word, many times: many members, deep nesting, a long
  /// name. Half of those that are protocol buffers stay such.
  std::string swollen() {
    std::string input = corpus_[below(corpus_.size())];
    if (below(2))
      if (std::vector<WireField> fields = fieldsOf(input); !fields.empty())
        return swollenMessage(input, fields);
    size_t at = below(input.size() + 1);
    std::string piece = input.substr(at, 1 + below(below(2) ? 64 : 4));
    if (below(3) == 0 || piece.empty())
      piece = drawWord();
    size_t size = (size_t(1) << 12) << below(10);
    return input.insert(at, repeat(piece, size));
  }

private:
  static std::string repeat(const std::string &piece, size_t size) {
    std::string many;
    while (many.size() < std::min(size, longestSwollen))
      many += piece;
    return many;
  }

  /// A field, or what is in one, many times, or empty ones of its number.
  std::string swollenMessage(const std::string &message,
                             const std::vector<WireField> &fields) {
    const WireField &field = fields[below(fields.size())];
    const std::string tag = message.substr(field.begin, field.tagBytes);
    std::string content =
        message.substr(field.content, field.end - field.content);
    const size_t size = (size_t(1) << 12) << below(10);
    std::string swollen;
    if (!field.isBytes || below(3) == 0) {
      swollen =
          repeat(message.substr(field.begin, field.end - field.begin), size);
    } else if (below(3) == 0) {
      swollen = repeat(tag + std::string(1, '\0'), size);
    } else {
      std::vector<WireField> within = fieldsOf(content);
      if (!within.empty() && below(4))
        content = swollenMessage(content, within);
      else
        content = repeat(content.empty() ? "x" : content, size);
      swollen = tag + varint(content.size()) + content;
    }
    return message.substr(0, field.begin) + swollen + message.substr(field.end);
  }

  uint64_t draw() { return dyna_mix64(state_++); }
  size_t below(size_t bound) { return bound ? draw() % bound : 0; }

  void mutate(std::string &input) {
    size_t at = below(input.size() + 1);
    size_t length = std::min(input.size() - at, 1 + below(16));
    switch (below(10)) {
    case 0:
      if (at < input.size())
        input[at] ^= static_cast<char>(1 << below(8));
      return;
    case 1:
      if (at < input.size())
        input[at] = static_cast<char>(draw());
      return;
    case 2:
      input.erase(at, length);
      return;
    case 3:
      input.insert(at, input.substr(at, length));
      return;
    case 4:
      input.resize(at);
      return;
    case 5:
      overwriteNumber(input, at);
      return;
    case 6:
      input.insert(at, drawWord());
      return;
    case 7:
      splice(input, at);
      return;
    default:
      replaceToken(input);
    }
  }

  /// The word of a text at or behind `at`: {begin, length}; empty at the end.
  static std::pair<size_t, size_t> tokenAt(const std::string &text, size_t at) {
    auto isOfWord = [&](size_t i) {
      unsigned char c = static_cast<unsigned char>(text[i]);
      return std::isalnum(c) || (c != 0 && std::strchr("_.@%!$-", c));
    };
    while (at < text.size() && !isOfWord(at))
      ++at;
    while (at > 0 && at < text.size() && isOfWord(at - 1))
      --at;
    size_t end = at;
    while (end < text.size() && isOfWord(end))
      ++end;
    return {at, end - at};
  }

  /// Names, numbers and types change places: most of what comes out gets past
  /// a lexer.
  void replaceToken(std::string &input) {
    const std::string &other = corpus_[below(corpus_.size())];
    auto [from, length] = tokenAt(other, below(other.size() + 1));
    auto [at, replaced] = tokenAt(input, below(input.size() + 1));
    input.replace(at, replaced, other.substr(from, length));
  }

  /// Sizes and offsets that readers get wrong.
  void overwriteNumber(std::string &input, size_t at) {
    static constexpr uint64_t values[] = {0,
                                          1,
                                          7,
                                          8,
                                          255,
                                          256,
                                          65535,
                                          0x7FFFFFFF,
                                          0x80000000,
                                          0xFFFFFFFF,
                                          0x7FFFFFFFFFFFFFFF,
                                          0x8000000000000000,
                                          0xFFFFFFFFFFFFFFFF,
                                          0x1555555555555556,
                                          0x2000000000000000};
    uint64_t value = values[below(std::size(values))] + below(3) - 1;
    size_t width = size_t(1) << below(4);
    if (at + width <= input.size())
      std::memcpy(input.data() + at, &value, width);
  }

  const char *drawWord() {
    static constexpr const char *words[] = {"\"",
                                            "\\",
                                            "{",
                                            "}",
                                            "[",
                                            "]",
                                            ":",
                                            ",",
                                            "\n",
                                            "\\ud83d",
                                            "\\udc00",
                                            "\\u0000",
                                            "null",
                                            "true",
                                            "-",
                                            "0",
                                            "1e999",
                                            "9223372036854775807",
                                            "\"text\"",
                                            "\"input\"",
                                            "\"dtype\"",
                                            "\"shape\"",
                                            "tensor<?x0xf32>",
                                            "tensor<*xf32>",
                                            "-1",
                                            "points {}",
                                            "\xED\xA0\x80",
                                            "\xC0\x80",
                                            "\xF4\x90\x80\x80"};
    return words[below(std::size(words))];
  }

  void splice(std::string &input, size_t at) {
    const std::string &other = corpus_[below(corpus_.size())];
    input = input.substr(0, at) + other.substr(below(other.size() + 1));
  }

  const std::vector<std::string> &corpus_;
  uint64_t state_;
};

std::string readInput(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

void addInputs(const std::filesystem::path &path,
               std::vector<std::string> &corpus) {
  if (!std::filesystem::is_directory(path)) {
    corpus.push_back(readInput(path));
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path &file : files)
    corpus.push_back(readInput(file));
}

int writeSeeds(const std::filesystem::path &directory) {
  std::filesystem::create_directories(directory);
  int number = 0;
  for (const std::string &seed : fuzzSeeds())
    std::ofstream(directory / ("seed-" + std::to_string(number++)),
                  std::ios::binary)
        << seed;
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t mutations = 20000, swollen = 200, seed = 1;
  std::vector<std::string> corpus = fuzzSeeds();
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc)
      mutations = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--swollen" && i + 1 < argc)
      swollen = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--seed" && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--write-seeds" && i + 1 < argc)
      return writeSeeds(argv[i + 1]);
    else if (std::filesystem::exists(argument))
      addInputs(argument, corpus);
    else
      return std::fprintf(stderr, "unknown argument or missing file: %s\n",
                          argument.c_str()),
             2;
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    ::signal(signal, saveInput);
  size_t seeds = fuzzSeeds().size();
  for (size_t i = 0; i < corpus.size(); ++i) {
    runOne(corpus[i]);
    require(i >= seeds || acceptedInputs == i + 1, "every seed is accepted");
  }
  Mutator mutator(corpus, dyna_mix64(seed));
  for (uint64_t i = 0; i < mutations; ++i)
    runOne(mutator.next());
  for (uint64_t i = 0; i < swollen; ++i)
    runOne(mutator.swollen());
  std::printf("%zu inputs, %llu mutations of them and %llu swollen ones, %llu "
              "accepted\n",
              corpus.size(), static_cast<unsigned long long>(mutations),
              static_cast<unsigned long long>(swollen),
              static_cast<unsigned long long>(acceptedInputs));
  return 0;
}
