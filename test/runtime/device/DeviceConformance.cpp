//===- DeviceConformance.cpp - Buffers, streams, events ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/device/DeviceConformance.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace dyna;

class DeviceConformance : public DeviceFixture {};
INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance,
                         testing::ValuesIn(conformanceBackends()), nameOf);

TEST_P(DeviceConformance, BuffersAreAlignedAndSized) {
  for (int64_t bytes : {0, 1, 63, 4096, 5 << 20}) {
    std::unique_ptr<Buffer> buffer = allocate(bytes);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(buffer->data()) % DYNA_BLOCK_ALIGNMENT, 0u);
  }
}

TEST_P(DeviceConformance, AbsurdSizesFailCleanly) {
  for (int64_t bytes : {int64_t(1) << 50, INT64_MAX}) {
    StatusOr<std::unique_ptr<Buffer>> buffer = device->allocate(bytes);
    ASSERT_FALSE(buffer.isOk());
    EXPECT_EQ(buffer.status().code(), StatusCode::ResourceExhausted);
    EXPECT_NE(buffer.status().message().find("available"), std::string::npos);
  }
  EXPECT_EQ(device->allocate(-1).status().code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(device->allocate(1 << 20).isOk()) << "the device must live on";
}

TEST_P(DeviceConformance, CopiesMoveBytes) {
  std::vector<int32_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 7);
  std::unique_ptr<Buffer> first = upload(numbers);
  std::unique_ptr<Buffer> second = allocate(first->bytes());
  ASSERT_TRUE(device->fill(*stream, *second, 0, second->bytes(), 0xff).isOk());
  ASSERT_TRUE(device->copy(*stream, *second, 40, *first, 400, 4 * 100).isOk());
  std::vector<int32_t> result = download<int32_t>(*second);
  EXPECT_EQ(result[9], -1);
  EXPECT_EQ(result[10], 107);
  EXPECT_EQ(result[109], 206);
  EXPECT_EQ(result[110], -1);
}

TEST_P(DeviceConformance, ElementsBesideAZeroOfTheMaskBecomeZero) {
  auto expectZeros = [&](auto one, int64_t count) {
    using Word = decltype(one);
    constexpr int64_t gap = 3;
    std::vector<Word> words(static_cast<size_t>(count + 2 * gap));
    std::vector<uint8_t> mask(words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = static_cast<Word>(~Word(i)); // as of no number, too
      mask[i] = static_cast<uint8_t>(i * i % 7 % 3);
    }
    std::unique_ptr<Buffer> target = upload(words), marks = upload(mask);
    ASSERT_TRUE(device
                    ->zeroWhere(*stream, *target, gap * int64_t(sizeof(Word)),
                                *marks, gap - 1, count, sizeof(Word))
                    .isOk());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (mask[i + gap - 1] == 0)
        words[i + gap] = 0;
    EXPECT_EQ(download<Word>(*target), words);
    EXPECT_EQ(download<uint8_t>(*marks), mask);
  };
  for (int64_t count : {0, 1, 5, 1000, 200003}) {
    expectZeros(uint16_t(), count);
    expectZeros(uint32_t(), count);
    expectZeros(uint64_t(), count);
  }
  std::unique_ptr<Buffer> buffer = allocate(64), mask = allocate(16);
  auto isRefused = [&](int64_t offset, int64_t maskOffset, int64_t count,
                       int64_t bytes) {
    return device
               ->zeroWhere(*stream, *buffer, offset, *mask, maskOffset, count,
                           bytes)
               .code() == StatusCode::InvalidArgument;
  };
  EXPECT_FALSE(isRefused(0, 0, 16, 4));
  EXPECT_TRUE(isRefused(0, 0, 17, 2)); // marks are missing
  EXPECT_TRUE(isRefused(0, 1, 16, 4));
  EXPECT_TRUE(isRefused(4, 0, 16, 4));
  EXPECT_TRUE(isRefused(2, 0, 1, 4));
  EXPECT_TRUE(isRefused(0, 0, 1, 3));
  EXPECT_TRUE(isRefused(0, 0, -1, 4));
  EXPECT_TRUE(isRefused(-4, 0, 1, 4));
  EXPECT_TRUE(isRefused(0, 0, INT64_MAX, 8));
}

template <typename Score, typename Gradient> struct ScoredNumbers {
  std::vector<Score> scores, weights;
  std::vector<Gradient> gradients;
  std::vector<uint8_t> mask;

  /// Numbers whose products and sums are exact.
  explicit ScoredNumbers(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      scores.push_back(static_cast<Score>(i % 11));
      weights.push_back(static_cast<Score>(i % 5 - 2));
      const auto gradient = static_cast<float>(i % 7 - 3);
      uint32_t bits;
      std::memcpy(&bits, &gradient, sizeof bits);
      if constexpr (sizeof(Gradient) == 2)
        gradients.push_back(static_cast<uint16_t>(bits >> 16));
      else
        gradients.push_back(static_cast<Gradient>(gradient));
      mask.push_back(static_cast<uint8_t>(i % 3 != 0));
    }
  }
  static Score gradientAt(int64_t i) { return static_cast<Score>(i % 7 - 3); }
  int64_t count() const { return static_cast<int64_t>(scores.size()); }

  /// Places of the lists, one behind the other, with gaps.
  ScoredWeights places() const {
    auto behind = [](int64_t begin, size_t bytes) {
      return begin + static_cast<int64_t>((bytes + 23) / 8 * 8);
    };
    ScoredWeights scored;
    scored.count = count();
    scored.scores = 16;
    scored.weights = behind(scored.scores, sizeof(Score) * scores.size());
    scored.gradients = behind(scored.weights, sizeof(Score) * scores.size());
    scored.mask = behind(scored.gradients, sizeof(Gradient) * scores.size());
    scored.scoreBytes = sizeof(Score);
    scored.gradientBytes = sizeof(Gradient);
    return scored;
  }
  std::vector<uint8_t> bytes() const {
    const ScoredWeights at = places();
    std::vector<uint8_t> all(static_cast<size_t>(at.mask + count() + 5), 7);
    auto put = [&](int64_t begin, const auto &list) {
      std::memcpy(all.data() + begin, list.data(),
                  list.size() * sizeof(list[0]));
    };
    put(at.scores, scores);
    put(at.weights, weights);
    put(at.gradients, gradients);
    put(at.mask, mask);
    return all;
  }
};

TEST_P(DeviceConformance, ScoresAreSumsOfMagnitudes) {
  auto expectSums = [&](auto numbers) {
    auto expected = numbers;
    using Score = std::decay_t<decltype(expected.scores[0])>;
    std::unique_ptr<Buffer> buffer = upload(numbers.bytes());
    ScoredWeights scored = numbers.places();
    std::unique_ptr<Buffer> scales =
        upload(std::vector<double>{0.5, std::nan("")});
    const auto *scale = static_cast<const double *>(scales->data());
    // Any factor counts as 1; one that is no number adds nothing.
    for (const double *one :
         {static_cast<const double *>(nullptr), scale, scale + 1}) {
      scored.scale = one;
      ASSERT_TRUE(device->addScores(*stream, *buffer, scored).isOk());
    }
    for (int64_t i = 0; i < numbers.count(); ++i)
      expected.scores[static_cast<size_t>(i)] +=
          2 * std::abs(static_cast<Score>(i % 5 - 2) * numbers.gradientAt(i));
    EXPECT_EQ(download<uint8_t>(*buffer), expected.bytes());
    scored.scale = nullptr;
    scored.weights = -1;
    ASSERT_TRUE(device->addScores(*stream, *buffer, scored).isOk());
    for (int64_t i = 0; i < numbers.count(); i += 3)
      expected.scores[static_cast<size_t>(i)] = std::abs(numbers.gradientAt(i));
    EXPECT_EQ(download<uint8_t>(*buffer), expected.bytes());
  };
  for (int64_t count : {0, 1, 5, 1000, 200003}) {
    expectSums(ScoredNumbers<float, float>(count));
    expectSums(ScoredNumbers<float, uint16_t>(count));
    expectSums(ScoredNumbers<double, double>(count));
  }
}

TEST_P(DeviceConformance, ScoresOutsideABufferAreRefused) {
  std::unique_ptr<Buffer> buffer = allocate(128);
  auto isRefused = [&](auto change) {
    ScoredWeights scored;
    scored.count = 8;
    scored.weights = 32;
    scored.gradients = 64;
    scored.mask = 96;
    change(scored);
    return device->addScores(*stream, *buffer, scored).code() ==
           StatusCode::InvalidArgument;
  };
  EXPECT_FALSE(isRefused([](ScoredWeights &) {}));
  EXPECT_FALSE(isRefused([](ScoredWeights &s) { s.weights = -1; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.weights = s.mask = -1; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.count = -1; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.count = 33; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.count = INT64_MAX; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.scores = 2; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.scores = 100; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.weights = 100; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.gradients = 100; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.gradients = 65; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) {
    s.weights = -1;
    s.mask = 121;
  }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.gradientBytes = 8; }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) {
    s.scoreBytes = 8;
    s.gradientBytes = 2;
  }));
  EXPECT_TRUE(isRefused([](ScoredWeights &s) { s.scoreBytes = 2; }));
}

TEST_P(DeviceConformance, CopiesOutsideABufferAreRefused) {
  std::unique_ptr<Buffer> buffer = allocate(16), other = allocate(32);
  char bytes[64] = {};
  for (auto [offset, size] : {std::pair<int64_t, int64_t>{0, 17},
                              {16, 1},
                              {-1, 4},
                              {4, -1},
                              {INT64_MAX, INT64_MAX}}) {
    EXPECT_EQ(
        device->copyToDevice(*stream, *buffer, offset, bytes, size).code(),
        StatusCode::InvalidArgument);
    EXPECT_EQ(device->copyToHost(*stream, bytes, *buffer, offset, size).code(),
              StatusCode::InvalidArgument);
    EXPECT_EQ(device->copy(*stream, *buffer, offset, *other, 0, size).code(),
              StatusCode::InvalidArgument);
    EXPECT_EQ(device->copy(*stream, *other, 0, *buffer, offset, size).code(),
              StatusCode::InvalidArgument);
    EXPECT_EQ(device->fill(*stream, *buffer, offset, size, 1).code(),
              StatusCode::InvalidArgument);
  }
  Status status = device->copyToDevice(*stream, *buffer, 12, bytes, 8);
  EXPECT_NE(status.message().find("8 bytes at offset 12 of a buffer of 16"),
            std::string::npos)
      << status.message();
}

TEST_P(DeviceConformance, MemoryOfTheHostIsCopiedFromAndTo) {
  auto staging = device->allocateHost(1 << 20);
  ASSERT_TRUE(staging.isOk()) << staging.status().message();
  EXPECT_EQ((*staging)->bytes(), 1 << 20);
  auto *bytes = static_cast<uint8_t *>((*staging)->data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % DYNA_BLOCK_ALIGNMENT, 0u);
  for (int i = 0; i < 1 << 20; ++i)
    bytes[i] = static_cast<uint8_t>(i % 251);
  std::unique_ptr<Buffer> buffer = allocate(1 << 20);
  ASSERT_TRUE(device->copyToDevice(*stream, *buffer, 0, bytes, 1 << 20).isOk());
  ASSERT_TRUE(device->copyToHost(*stream, bytes + 7, *buffer, 0, 100).isOk());
  ASSERT_TRUE(device->synchronize(*stream, soon()).isOk());
  EXPECT_EQ(bytes[7 + 99], 99);
  EXPECT_EQ(download<uint8_t>(*buffer)[1000], 1000 % 251);

  EXPECT_EQ(device->allocateHost(-1).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(device->allocateHost(int64_t(1) << 60).status().code(),
            StatusCode::ResourceExhausted);
  EXPECT_TRUE(device->allocateHost(0).isOk());
}

TEST_P(DeviceConformance, SaysHowMuchIsFree) {
  const int64_t free = device->freeBytes();
  if (free < 0)
    GTEST_SKIP() << "unknown on this machine";
  EXPECT_GT(free, 1 << 20);
  EXPECT_EQ(device->allocate(free + (int64_t(1) << 40)).status().code(),
            StatusCode::ResourceExhausted);
}

TEST_P(DeviceConformance, WorkOnAStreamRunsInOrder) {
  // b = a; a is overwritten after; c = a; a is cleared; all are read.
  constexpr int64_t kBytes = 1 << 20;
  std::unique_ptr<Buffer> a = upload(std::vector<int32_t>(kBytes / 4, 1));
  std::unique_ptr<Buffer> b = allocate(kBytes), c = allocate(kBytes);
  std::vector<int32_t> thousands(kBytes / 4, 1000), read(kBytes / 4);
  ASSERT_TRUE(device->copy(*stream, *b, 0, *a, 0, kBytes).isOk());
  ASSERT_TRUE(
      device->copyToDevice(*stream, *a, 0, thousands.data(), kBytes).isOk());
  ASSERT_TRUE(device->copy(*stream, *c, 0, *a, 0, kBytes).isOk());
  ASSERT_TRUE(device->copyToHost(*stream, read.data(), *b, 0, kBytes).isOk());
  ASSERT_TRUE(device->fill(*stream, *a, 0, kBytes, 0).isOk());
  ASSERT_TRUE(device->fill(*stream, *b, 0, kBytes, 0).isOk());
  EXPECT_EQ(download<int32_t>(*c), thousands);
  EXPECT_EQ(read, std::vector<int32_t>(kBytes / 4, 1));
  EXPECT_EQ(download<int32_t>(*a), std::vector<int32_t>(kBytes / 4, 0));
}

TEST_P(DeviceConformance, EventsOrderStreams) {
  StatusOr<std::unique_ptr<Event>> event = device->createEvent();
  StatusOr<std::unique_ptr<Stream>> other = device->createStream();
  ASSERT_TRUE(event.isOk() && other.isOk());
  EXPECT_EQ(device->wait(**event, soon()).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(device->streamWait(**other, **event).code(),
            StatusCode::InvalidArgument);

  std::unique_ptr<Buffer> buffer = allocate(1 << 20),
                          target = allocate(1 << 20);
  ASSERT_TRUE(device->fill(*stream, *buffer, 0, 1 << 20, 3).isOk());
  ASSERT_TRUE(device->record(*stream, **event).isOk());
  ASSERT_TRUE(device->streamWait(**other, **event).isOk());
  ASSERT_TRUE(device->copy(**other, *target, 0, *buffer, 0, 1 << 20).isOk());
  ASSERT_TRUE(device->synchronize(**other, soon()).isOk());
  EXPECT_TRUE(device->wait(**event, soon()).isOk());
  EXPECT_EQ(download<uint8_t>(*target)[(1 << 20) - 1], 3);
}

TEST_P(DeviceConformance, DevicesAreIndependent) {
  StatusOr<std::unique_ptr<Device>> second = GetParam().make();
  ASSERT_TRUE(second.isOk());
  std::unique_ptr<Buffer> here = upload<int32_t>({1});
  StatusOr<std::unique_ptr<Buffer>> there = (*second)->allocate(4);
  ASSERT_TRUE(there.isOk());
  here.reset();
  stream.reset();
  device.reset();
  StatusOr<std::unique_ptr<Stream>> otherStream = (*second)->createStream();
  EXPECT_TRUE((*second)->fill(**otherStream, **there, 0, 4, 1).isOk());
  EXPECT_FALSE((*second)->describe().empty());
}
