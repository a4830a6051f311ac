//===- SurvivorsBench.cpp - Exact survivors beside Algorithm 1 ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Selects the largest of 124 M f32 weights that two ranks hold, a thread each. Weights
// are normal, with a deviation for each matrix. One line for each sparsity:
//
// - `seconds`: processor time of a rank for the selection and its masks, median of 5;
// - `passes`: this over the time in which a rank copies its weights;
// - `sent_bytes`: what a rank sends if sums go around a ring;
// - `algorithm1_seconds`, `algorithm1_bytes`: the published algorithm (DynPipe, appendix
//   B.2, Algorithm 1): each rank selects its k largest, rank 0 gets them from the other
//   one, selects again and sends back indices. Copies of memory stand for messages.
//
// Usage: bench_survivors [--weights N]
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/elastic/prune/PruningSchedule.h"
#include "runtime/elastic/prune/SelectSurvivors.h"
#include "test/runtime/elastic/SumOfThreads.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <tuple>
#include <vector>

using namespace dyna;

namespace {

constexpr int ranks = 2, repeats = 5;
constexpr int64_t columns = 1024;

/// Sums of four uniform numbers are near a normal one.
void fill(std::vector<float> &weights, uint64_t seed) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const uint64_t bits = dyna_mix64(seed * 0x9E3779B97F4A7C15ull + i);
    double sum = -2 * 65535.0;
    for (int part = 0; part < 4; ++part)
      sum += static_cast<double>(bits >> (16 * part) & 0xFFFF);
    const double deviation = 0.01 * (1 + static_cast<double>(i / 4194304 % 7));
    weights[i] = static_cast<float>(deviation * sum / 65536);
  }
}

/// Returns the processor seconds of the rank that takes most, the median of some runs.
double secondsOf(const std::function<void(int)> &work) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    double own[ranks] = {};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const double begin = coreSeconds();
        work(rank);
        own[rank] = coreSeconds() - begin;
      });
    for (std::thread &thread : threads)
      thread.join();
    seconds.push_back(*std::max_element(own, own + ranks));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[repeats / 2];
}

struct Weights {
  std::vector<float> values[ranks];
  std::vector<float> copies[ranks];
  std::vector<uint8_t> masks[ranks];

  explicit Weights(int64_t count) {
    for (int rank = 0; rank < ranks; ++rank) {
      values[rank].resize(
          static_cast<size_t>(count / ranks / columns * columns));
      fill(values[rank], static_cast<uint64_t>(rank) + 1);
      copies[rank].resize(values[rank].size());
      masks[rank].resize(values[rank].size());
    }
  }
  int64_t count() const {
    return static_cast<int64_t>(values[0].size() + values[1].size());
  }
  WeightBox<float> boxOf(int rank) const {
    const auto own = static_cast<int64_t>(values[rank].size());
    return {values[rank].data(), own / columns, columns, rank * own, columns};
  }
};

double secondsOfCopy(Weights &weights) {
  return secondsOf([&](int rank) {
    std::memcpy(weights.copies[rank].data(), weights.values[rank].data(),
                weights.values[rank].size() * sizeof(float));
  });
}

struct Found {
  double seconds;
  int64_t bytes, marked;
};

Found selectExactly(Weights &weights, int64_t kept) {
  Found found = {};
  int64_t marked[ranks] = {};
  SumOfThreads meeting(ranks);
  found.seconds = secondsOf([&](int rank) {
    const WeightBox<float> box = weights.boxOf(rank);
    auto survivors = selectSurvivors<float>(
        {box}, kept, weights.count(),
        [&](std::vector<int64_t> &counts) { return meeting.sum(counts); });
    if (!survivors.isOk())
      std::abort();
    marked[rank] = markSurvivors(box, *survivors, weights.masks[rank].data());
  });
  // Around a ring.
  found.bytes = 2 * (ranks - 1) * meeting.bytes() / ranks / repeats;
  found.marked = marked[0] + marked[1];
  return found;
}

struct Candidate {
  float magnitude;
  int index;
  bool operator<(const Candidate &other) const {
    return magnitude != other.magnitude ? magnitude > other.magnitude
                                        : index < other.index;
  }
};

std::vector<Candidate> largestOf(const std::vector<float> &values,
                                 size_t kept) {
  std::vector<Candidate> all(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    all[i] = {std::fabs(values[i]), static_cast<int>(i)};
  kept = std::min(kept, all.size());
  std::nth_element(all.begin(), all.begin() + static_cast<long>(kept),
                   all.end());
  all.resize(kept);
  return all;
}

Found selectAsPublished(Weights &weights, int64_t kept) {
  Found found = {};
  std::vector<Candidate> own[ranks];
  double seconds[ranks] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const double begin = coreSeconds();
      own[rank] = largestOf(weights.values[rank], static_cast<size_t>(kept));
      seconds[rank] = coreSeconds() - begin;
    });
  for (std::thread &thread : threads)
    thread.join();
  // Rank 0 gathers, and tells ranks which of theirs they keep.
  const double begin = coreSeconds();
  std::vector<std::pair<Candidate, int>> all;
  for (int rank = 0; rank < ranks; ++rank)
    for (const Candidate &one : own[rank])
      all.push_back({one, rank});
  std::nth_element(
      all.begin(), all.begin() + static_cast<long>(kept), all.end(),
      [](const auto &a, const auto &b) {
        return std::tuple(-a.first.magnitude, a.second, a.first.index) <
               std::tuple(-b.first.magnitude, b.second, b.first.index);
      });
  all.resize(static_cast<size_t>(kept));
  for (int rank = 0; rank < ranks; ++rank)
    std::fill(weights.masks[rank].begin(), weights.masks[rank].end(), 0);
  int64_t toOther = 0;
  for (const auto &[one, rank] : all) {
    weights.masks[rank][static_cast<size_t>(one.index)] = 1;
    toOther += rank == 1;
  }
  found.seconds =
      *std::max_element(seconds, seconds + ranks) + coreSeconds() - begin;
  found.bytes = static_cast<int64_t>(own[1].size() * sizeof(Candidate)) +
                toOther * static_cast<int64_t>(sizeof(int));
  found.marked = kept;
  return found;
}

} // namespace

int main(int count, char **words) {
  int64_t weightsWanted = 124439808;
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(words[i], "--weights") == 0)
      weightsWanted = std::max<int64_t>(2 * columns, std::atoll(words[i + 1]));
  Weights weights(weightsWanted);
  secondsOfCopy(weights); // pages
  for (double sparsity : {0.5, 0.75, 0.9, 0.95}) {
    const int64_t kept = survivorsAt(weights.count(), sparsity);
    const double copy = secondsOfCopy(weights);
    Found exact = selectExactly(weights, kept);
    const std::vector<uint8_t> masks[ranks] = {weights.masks[0],
                                               weights.masks[1]};
    const Found published = selectAsPublished(weights, kept);
    const bool isSame =
        masks[0] == weights.masks[0] && masks[1] == weights.masks[1];
    std::printf("{\"bench\": \"survivors\", \"weights\": %lld, \"sparsity\": "
                "%.2f, \"seconds\": %.4f, \"copy_seconds\": %.4f, \"passes\": "
                "%.2f, \"sent_bytes\": %lld, \"algorithm1_seconds\": %.4f, "
                "\"algorithm1_bytes\": %lld, \"same\": %s}\n",
                static_cast<long long>(weights.count()), sparsity,
                exact.seconds, copy, exact.seconds / copy,
                static_cast<long long>(exact.bytes), published.seconds,
                static_cast<long long>(published.bytes),
                isSame && exact.marked == kept ? "true" : "false");
    std::fflush(stdout);
    if (exact.marked != kept)
      return 1;
  }
  return 0;
}
