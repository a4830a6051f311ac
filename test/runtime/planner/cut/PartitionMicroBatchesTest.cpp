//===- PartitionMicroBatchesTest.cpp - The cut against all cuts -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PartitionMicroBatches.h"
#include "runtime/abi/Random.h"
#include "test/runtime/planner/GridCosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Lengths = std::vector<SampleLength>;
using Order = std::vector<int64_t>;

class Random {
public:
  explicit Random(uint64_t seed) : counter_(seed << 32) {}
  uint64_t below(uint64_t limit) { return dyna_mix64(++counter_) % limit; }
  double real() { return static_cast<double>(below(1 << 20)) / (1 << 20); }

private:
  uint64_t counter_;
};

PaddedShape shapeOf(const Lengths &lengths, const Order &order, size_t begin,
                    size_t end) {
  PaddedShape shape;
  for (size_t i = begin; i < end; ++i, ++shape.samples) {
    const SampleLength &length = lengths[order[i]];
    shape.longest.tokens = std::max(shape.longest.tokens, length.tokens);
    shape.longest.decoderTokens =
        std::max(shape.longest.decoderTokens, length.decoderTokens);
  }
  return shape;
}

bool isAllowed(const PaddedShape &shape, const PaddedCosts &costs,
               const PartitionOptions &options) {
  if (!costs.bytes)
    return true;
  int64_t bytes = costs.bytes(shape);
  return bytes <= options.limitBytes &&
         (shape.samples == 1 || bytes <= options.shareBytes);
}

double objectiveOf(double largest, double sum,
                   const PartitionOptions &options) {
  return (options.stages - 1) * largest + sum / options.replicas;
}

/// The smallest objective of all 2^(n-1) cuts; infinite where none is allowed.
double bestOfAllCuts(const Lengths &lengths, const Order &order,
                     const PaddedCosts &costs,
                     const PartitionOptions &options) {
  double best = std::numeric_limits<double>::infinity();
  const size_t count = order.size();
  for (uint64_t cut = 0; cut < UINT64_C(1) << (count - 1); ++cut) {
    double largest = 0, sum = 0;
    bool allowed = true;
    size_t begin = 0;
    for (size_t end = 1; end <= count && allowed; ++end) {
      if (end < count && (cut >> (end - 1) & 1) == 0)
        continue;
      PaddedShape shape = shapeOf(lengths, order, begin, end);
      allowed = isAllowed(shape, costs, options);
      double seconds = costs.seconds(shape);
      largest = std::max(largest, seconds);
      sum += seconds;
      begin = end;
    }
    if (allowed)
      best = std::min(best, objectiveOf(largest, sum, options));
  }
  return best;
}

/// The paper's program, plainly, for every t that any run has.
double bestOfAllBounds(const Lengths &lengths, const Order &order,
                       const PaddedCosts &costs,
                       const PartitionOptions &options) {
  const size_t count = order.size();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(count * count, infinity), bounds;
  for (size_t begin = 0; begin < count; ++begin)
    for (size_t end = begin; end < count; ++end) {
      PaddedShape shape = shapeOf(lengths, order, begin, end + 1);
      if (!isAllowed(shape, costs, options))
        continue;
      seconds[end * count + begin] = costs.seconds(shape);
      bounds.push_back(seconds[end * count + begin]);
    }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  double best = infinity;
  std::vector<double> sums(count + 1, 0);
  for (double bound : bounds) {
    for (size_t end = 0; end < count; ++end) {
      sums[end + 1] = infinity;
      for (size_t begin = 0; begin <= end; ++begin) {
        double run = seconds[end * count + begin];
        if (run <= bound)
          sums[end + 1] = std::min(sums[end + 1], sums[begin] + run);
      }
    }
    best = std::min(best, objectiveOf(bound, sums[count], options));
  }
  return best;
}

/// Every sample once, in order, within the limits; the objective is its own.
void checkPartition(const MicroBatchPartition &partition,
                    const Lengths &lengths, const Order &order,
                    const PaddedCosts &costs, const PartitionOptions &options) {
  Order joined;
  double largest = 0, sum = 0;
  ASSERT_EQ(partition.seconds.size(), partition.microBatches.size());
  for (size_t m = 0; m < partition.seconds.size(); ++m) {
    const Order &samples = partition.microBatches[m];
    ASSERT_FALSE(samples.empty());
    PaddedShape shape = shapeOf(lengths, samples, 0, samples.size());
    EXPECT_TRUE(isAllowed(shape, costs, options));
    EXPECT_EQ(partition.seconds[m], costs.seconds(shape));
    largest = std::max(largest, partition.seconds[m]);
    sum += partition.seconds[m];
    joined.insert(joined.end(), samples.begin(), samples.end());
  }
  EXPECT_EQ(joined, order);
  EXPECT_EQ(partition.objective, objectiveOf(largest, sum, options));
}

/// Costs that are monotone and otherwise as they come: products and sums of
/// stairs, of which many steps are flat, so that there are ties.
struct Stairs {
  std::vector<double> bySamples, byTokens, byDecoder;

  Stairs(Random &random, int64_t samples, int64_t tokens) {
    bySamples = make(random, samples);
    byTokens = make(random, tokens);
    byDecoder = make(random, tokens);
  }
  static std::vector<double> make(Random &random, int64_t steps) {
    uint64_t kind = random.below(4);
    double at = random.below(2) ? 0 : random.real();
    std::vector<double> stairs;
    for (int64_t step = 0; step <= steps; ++step) {
      stairs.push_back(at);
      at += kind == 0              ? 0
            : kind == 1            ? 1
            : random.below(3) == 0 ? random.real()
                                   : 0;
    }
    return stairs;
  }
  double operator()(const PaddedShape &shape) const {
    double tokens = byTokens[shape.longest.tokens],
           decoder = byDecoder[shape.longest.decoderTokens];
    return bySamples[shape.samples] * (tokens + decoder) +
           (tokens + bySamples[shape.samples]) / 3;
  }
};

struct Case {
  Lengths lengths;
  Order order;
  PaddedCosts costs;
  PartitionOptions options;
};

Case randomCase(Random &random, size_t mostSamples) {
  Case made;
  constexpr int64_t longest = 40;
  size_t count = 1 + random.below(mostSamples);
  int64_t spread = 1 + static_cast<int64_t>(random.below(longest));
  bool pairs = random.below(3) == 0;
  for (size_t i = 0; i < count; ++i) {
    auto length = [&] { return static_cast<int64_t>(random.below(spread)); };
    made.lengths.push_back({1 + length(), pairs ? length() : 0});
  }
  switch (random.below(4)) {
  case 0:
    made.order = orderSamples(made.lengths, SampleOrder::ShortestWay);
    break;
  case 1:
    // Not sorted at all.
    made.order = orderSamples(made.lengths, SampleOrder::Length);
    for (size_t i = 1; i < count; ++i)
      std::swap(made.order[i], made.order[random.below(i + 1)]);
    break;
  default:
    made.order = orderSamples(made.lengths, SampleOrder::Length);
  }
  if (random.below(2)) {
    made.costs.seconds = Stairs(random, static_cast<int64_t>(count), longest);
  } else {
    double start = random.below(3) ? random.real() * 100 : 0;
    made.costs.seconds = [start](const PaddedShape &shape) {
      auto tokens = static_cast<double>(
          shape.samples * (shape.longest.tokens + shape.longest.decoderTokens));
      return (start + tokens) / 7;
    };
  }
  made.options.stages = 1 + static_cast<int>(random.below(6));
  made.options.replicas = 1 + static_cast<int>(random.below(3));
  if (random.below(3)) {
    made.costs.bytes = [](const PaddedShape &shape) {
      return shape.samples *
             (shape.longest.tokens + 2 * shape.longest.decoderTokens);
    };
    made.options.shareBytes = static_cast<int64_t>(random.below(4 * longest));
    made.options.limitBytes =
        static_cast<int64_t>(longest / 2 + random.below(6 * longest));
  }
  return made;
}

TEST(PartitionMicroBatchesTest, NoCutIsBetter) {
  Random random(1);
  int impossible = 0, cut = 0, whole = 0;
  for (int round = 0; round < 6000; ++round) {
    Case made = randomCase(random, 11);
    double best =
        bestOfAllCuts(made.lengths, made.order, made.costs, made.options);
    auto partition = partitionMicroBatches(made.lengths, made.order, made.costs,
                                           made.options);
    if (std::isinf(best)) {
      ++impossible;
      EXPECT_EQ(partition.status().code(), StatusCode::ResourceExhausted);
      continue;
    }
    ASSERT_TRUE(partition.isOk()) << partition.status().message();
    checkPartition(*partition, made.lengths, made.order, made.costs,
                   made.options);
    // To the last bit.
    ASSERT_EQ(partition->objective, best) << "round " << round;
    (partition->microBatches.size() > 1 ? cut : whole) += 1;
  }
  // All kinds came up.
  EXPECT_GE(impossible, 150);
  EXPECT_GE(cut, 1500);
  EXPECT_GE(whole, 300);
}

TEST(PartitionMicroBatchesTest, NoBoundIsBetterForMoreSamples) {
  Random random(2);
  for (size_t count : {60, 61, 90, 120, 200}) {
    for (int round = 0; round < (count < 100 ? 12 : 2); ++round) {
      Case made = randomCase(random, 1);
      bool pairs = round % 3 == 2;
      made.lengths.clear();
      for (size_t i = 0; i < count; ++i)
        made.lengths.push_back(
            {1 + static_cast<int64_t>(std::exp(random.real() * 6)),
             pairs ? 1 + static_cast<int64_t>(std::exp(random.real() * 4))
                   : 0});
      made.order = orderSamples(made.lengths, pairs ? SampleOrder::ShortestStep
                                                    : SampleOrder::Length);
      double start = std::exp(random.real() * 10);
      GridCosts grid(
          [&](double samples, double tokens) {
            return start + samples * tokens + samples * tokens * tokens / 500;
          },
          8, 9);
      made.costs.seconds = [=](const PaddedShape &shape) {
        return grid(shape) +
               grid({shape.samples, {shape.longest.decoderTokens, 0}});
      };
      if (made.options.shareBytes < INT64_MAX / 20) // else there is none
        made.options.shareBytes *= 20;
      auto partition = partitionMicroBatches(made.lengths, made.order,
                                             made.costs, made.options);
      if (made.costs.bytes && made.options.limitBytes < 600) {
        made.options.limitBytes = 1000;
        partition = partitionMicroBatches(made.lengths, made.order, made.costs,
                                          made.options);
      }
      ASSERT_TRUE(partition.isOk()) << partition.status().message();
      checkPartition(*partition, made.lengths, made.order, made.costs,
                     made.options);
      EXPECT_EQ(
          partition->objective,
          bestOfAllBounds(made.lengths, made.order, made.costs, made.options));
    }
  }
}

/// More samples than a block of runs has, up to several octaves of blocks. Costs have
/// few values, so that the reference has few bounds and many cuts are equally good.
TEST(PartitionMicroBatchesTest, NoBoundIsBetterForRunsOfManyBlocks) {
  Random random(4);
  int cut = 0;
  size_t longest = 0;
  for (int round = 0; round < 400; ++round) {
    Case made = randomCase(random, 150);
    const auto exact = made.costs.seconds;
    const double start = random.below(3) ? 0 : random.real() * 50;
    const double all =
        exact(shapeOf(made.lengths, made.order, 0, made.order.size()));
    const double step = all / static_cast<double>(4 + random.below(60));
    made.costs.seconds = [=](const PaddedShape &shape) {
      return start * step + (step > 0 ? std::floor(exact(shape) / step) : 0);
    };
    if (made.costs.bytes) {
      made.options.limitBytes *= 20;
      made.options.shareBytes *= 20;
    }
    auto partition = partitionMicroBatches(made.lengths, made.order, made.costs,
                                           made.options);
    ASSERT_TRUE(partition.isOk()) << partition.status().message();
    checkPartition(*partition, made.lengths, made.order, made.costs,
                   made.options);
    ASSERT_EQ(partition->objective, bestOfAllBounds(made.lengths, made.order,
                                                    made.costs, made.options))
        << "round " << round;
    cut += partition->microBatches.size() > 1;
    for (const std::vector<int64_t> &samples : partition->microBatches)
      longest = std::max(longest, samples.size());
  }
  EXPECT_GE(cut, 150);
  EXPECT_GE(longest, 100U);
}

/// Lengths so alike, and starting so dear, that many bounds are nearly as good.
TEST(PartitionMicroBatchesTest, NoBoundIsBetterWhereManyAreGood) {
  Random random(3);
  Lengths lengths;
  for (int i = 0; i < 200; ++i) {
    double u = 0.5 + random.real() / 2, v = random.real();
    double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    lengths.push_back({std::llround(std::exp(4.5 + 0.3 * normal)), 0});
  }
  Order order = orderSamples(lengths, SampleOrder::Length);
  PaddedCosts costs;
  costs.seconds = [](const PaddedShape &shape) {
    return layersSeconds(16, static_cast<double>(shape.samples) + 20,
                         static_cast<double>(shape.longest.tokens));
  };
  PartitionOptions options;
  options.stages = 4;
  auto partition = partitionMicroBatches(lengths, order, costs, options);
  ASSERT_TRUE(partition.isOk());
  EXPECT_GE(partition->tried, 15);
  EXPECT_LE(partition->tried, 35);
  EXPECT_EQ(partition->objective,
            bestOfAllBounds(lengths, order, costs, options));
}

/// Costs with steps, and runs as long as a step that are longer than those whose
/// costs bound the sum from below. One run more is so nearly as good that a bound
/// that is one sample in 64 too high would end the search there.
TEST(PartitionMicroBatchesTest, RunsBetweenThoseThatBoundTheSumAreFound) {
  for (int64_t asked : {64, 128})
    for (bool alike : {true, false}) {
      SCOPED_TRACE(asked);
      const int64_t step = asked + asked / 64, runs = 520 / step;
      Lengths lengths;
      for (int64_t i = 0; i < runs * step; ++i)
        lengths.push_back({alike ? 9 : 1 + i, 0});
      Order order = orderSamples(lengths, SampleOrder::Length);
      PartitionOptions options;
      options.stages = 17;
      options.replicas = 8;
      // What runs as long as the step cost more than those below it: little enough
      // to be better (`most`), and too much for that bound (`least`).
      const auto share = static_cast<double>(options.replicas *
                                             (options.stages - 1)),
                 count = static_cast<double>(runs);
      const double least = (1 - count / 64) / share, most = 1 / (share + count);
      ASSERT_LT(least, most);
      PaddedCosts costs;
      costs.seconds = [=](const PaddedShape &shape) {
        if (shape.samples <= asked)
          return 1.0;
        if (shape.samples <= step)
          return 1 + (least + most) / 2;
        return 1.1 * std::ceil(static_cast<double>(shape.samples) /
                               static_cast<double>(step));
      };
      auto partition = partitionMicroBatches(lengths, order, costs, options);
      ASSERT_TRUE(partition.isOk()) << partition.status().message();
      checkPartition(*partition, lengths, order, costs, options);
      EXPECT_EQ(partition->objective,
                bestOfAllBounds(lengths, order, costs, options));
      EXPECT_EQ(partition->microBatches.size(), static_cast<size_t>(runs));
      EXPECT_GT(partition->tried, 1);
    }
}

/// Differences of far less than what a search at fixed distances tells apart.
TEST(PartitionMicroBatchesTest, BoundsCloseTogetherAreToldApart) {
  PaddedCosts costs;
  costs.seconds = [](const PaddedShape &shape) {
    double tokens = static_cast<double>(shape.samples * shape.longest.tokens);
    return 1e-3 + 1e-6 * tokens;
  };
  costs.bytes = [](const PaddedShape &shape) {
    return shape.samples * shape.longest.tokens;
  };
  // Room for one each: two micro-batches, not "impossible".
  PartitionOptions room;
  room.stages = 4;
  room.shareBytes = room.limitBytes = 392;
  auto two = partitionMicroBatches({{320, 0}, {392, 0}}, {0, 1}, costs, room);
  ASSERT_TRUE(two.isOk());
  EXPECT_THAT(two->microBatches, ElementsAre(ElementsAre(0), ElementsAre(1)));
  for (const Lengths &lengths :
       {Lengths{{320, 0}, {392, 0}}, Lengths{{40, 0}, {50, 0}, {60, 0}},
        Lengths{{5, 0}, {10, 0}}})
    for (int stages : {1, 2, 4, 8, 16})
      for (int64_t share : {1, 10, 20, 60, 100, 120, 180, 392, 784}) {
        Order order(lengths.size());
        std::iota(order.begin(), order.end(), 0);
        PartitionOptions options;
        options.stages = stages;
        options.shareBytes = share;
        auto partition = partitionMicroBatches(lengths, order, costs, options);
        ASSERT_TRUE(partition.isOk());
        EXPECT_EQ(partition->objective,
                  bestOfAllCuts(lengths, order, costs, options));
      }
}

TEST(PartitionMicroBatchesTest, ALongSampleRelaxesNothingForOthers) {
  PaddedCosts costs;
  // Starting is so dear that all would be one micro-batch.
  costs.seconds = [](const PaddedShape &shape) {
    return 1000 + static_cast<double>(shape.samples * shape.longest.tokens);
  };
  costs.bytes = [](const PaddedShape &shape) {
    return shape.samples * shape.longest.tokens;
  };
  PartitionOptions options;
  options.shareBytes = 20;
  options.limitBytes = 100;
  Lengths lengths = {{10, 0}, {10, 0}, {10, 0}, {90, 0}, {10, 0}};
  auto partition =
      partitionMicroBatches(lengths, {0, 1, 2, 4, 3}, costs, options);
  ASSERT_TRUE(partition.isOk());
  EXPECT_THAT(
      partition->microBatches,
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 4), ElementsAre(3)));
  // The same where it stands between the others.
  auto between =
      partitionMicroBatches(lengths, {0, 1, 3, 2, 4}, costs, options);
  ASSERT_TRUE(between.isOk());
  EXPECT_THAT(
      between->microBatches,
      ElementsAre(ElementsAre(0, 1), ElementsAre(3), ElementsAre(2, 4)));
}

/// Whichever key is the longest of a run, and wherever it stands.
TEST(PartitionMicroBatchesTest, BothKeysOfAPairArePadded) {
  PaddedCosts costs;
  costs.seconds = [](const PaddedShape &shape) {
    return static_cast<double>(
        shape.samples * (shape.longest.tokens + shape.longest.decoderTokens));
  };
  // 2 * (9 + 9) for both at once, 10 + 10 apart.
  auto partition = partitionMicroBatches({{9, 1}, {1, 9}}, {0, 1}, costs, {});
  ASSERT_TRUE(partition.isOk());
  EXPECT_EQ(partition->objective, 20);
}

TEST(PartitionMicroBatchesTest, ManySamplesNeedFewPrograms) {
  Lengths lengths;
  for (uint64_t i = 0; i < 2048; ++i) {
    double u, v;
    dyna_parameter_uniforms(5, i, &u, &v);
    double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    lengths.push_back({std::clamp<int64_t>(
                           std::llround(std::exp(4.5 + 1.1 * normal)), 8, 8192),
                       0});
  }
  Order order = orderSamples(lengths, SampleOrder::Length);
  for (int stages : {4, 8, 16}) {
    PaddedCosts costs;
    costs.seconds = GridCosts(
        [&](double samples, double tokens) {
          return layersSeconds(64.0 / stages, samples, tokens);
        },
        11, 13);
    PartitionOptions options;
    options.stages = stages;
    auto one = partitionMicroBatches(lengths, order, costs, options);
    auto two = partitionMicroBatches(lengths, order, costs, options);
    ASSERT_TRUE(one.isOk());
    checkPartition(*one, lengths, order, costs, options);
    EXPECT_EQ(one->microBatches, two->microBatches);
    EXPECT_EQ(one->objective, two->objective);
    EXPECT_LE(one->tried, 40);
  }
}

/// Pairs on a way through the plane, where no two samples share their runs. There are
/// 2,098,176 runs.
TEST(PartitionMicroBatchesTest, FewRunsAreAskedFor) {
  Random random(6);
  Lengths lengths;
  for (int i = 0; i < 2048; ++i)
    lengths.push_back({1 + static_cast<int64_t>(std::exp(random.real() * 6)),
                       1 + static_cast<int64_t>(std::exp(random.real() * 5))});
  Order order = orderSamples(lengths, SampleOrder::ShortestWay);
  for (int stages : {1, 2, 16}) {
    SCOPED_TRACE(stages);
    int64_t asked = 0;
    PaddedCosts costs;
    costs.seconds = [&asked](const PaddedShape &shape) {
      ++asked;
      return layersSeconds(16, static_cast<double>(shape.samples),
                           static_cast<double>(shape.longest.tokens +
                                               shape.longest.decoderTokens));
    };
    PartitionOptions options;
    options.stages = stages;
    auto partition = partitionMicroBatches(lengths, order, costs, options);
    ASSERT_TRUE(partition.isOk()) << partition.status().message();
    EXPECT_LE(asked, 400 * 2048);
    EXPECT_LE(partition->tried, 60);
  }
}

TEST(PartitionMicroBatchesTest, RefusesWhatIsNoInput) {
  PaddedCosts costs;
  costs.seconds = [](const PaddedShape &shape) {
    return static_cast<double>(shape.samples * shape.longest.tokens);
  };
  auto message = [&](const Lengths &lengths, const Order &order,
                     const PartitionOptions &options = {}) {
    return partitionMicroBatches(lengths, order, costs, options)
        .status()
        .message();
  };
  EXPECT_TRUE(partitionMicroBatches({}, {}, costs, {})->microBatches.empty());
  EXPECT_EQ(message({{5, 0}}, {}), "an order of 0 samples, but there are 1");
  EXPECT_EQ(message({{5, 0}, {5, 0}}, {1, 1}),
            "the order has sample 1 of 2, or has it twice");
  EXPECT_EQ(message({{5, 0}}, {1}),
            "the order has sample 1 of 1, or has it twice");
  EXPECT_EQ(message({{5, -2}}, {0}), "sample 0 has 5 + -2 tokens");
  PartitionOptions none;
  none.stages = 0;
  EXPECT_THAT(message({{5, 0}}, {0}, none),
              HasSubstr("for 1 replicas of 0 stages"));

  // The sample is named by its number, not by its place in the order.
  costs.bytes = [](const PaddedShape &shape) {
    return shape.samples * shape.longest.tokens * 1024;
  };
  PartitionOptions small;
  small.limitBytes = 4096;
  EXPECT_EQ(message({{9, 0}, {3, 0}}, {1, 0}, small),
            "sample 0 of 9 tokens needs 9.0 KiB in a micro-batch of its own, "
            "but there are 4.0 KiB");
  costs.bytes = [](const PaddedShape &) { return -1; };
  EXPECT_EQ(message({{9, 0}}, {0}), "1 sample of 9 tokens keeps -1 bytes");
  costs.bytes = [](const PaddedShape &shape) { return 10 / shape.samples; };
  EXPECT_EQ(message({{9, 0}, {9, 1}}, {0, 1}),
            "costs must not fall, but 2 samples of 9 + 1 tokens keep 5 bytes, "
            "and one of 9 + 1 tokens 10");
}

TEST(PartitionMicroBatchesTest, RefusesCostsThatFall) {
  auto message = [](std::function<double(const PaddedShape &)> seconds) {
    PaddedCosts costs;
    costs.seconds = std::move(seconds);
    return partitionMicroBatches({{3, 0}, {5, 0}}, {0, 1}, costs, {})
        .status()
        .message();
  };
  // With more samples.
  EXPECT_EQ(message([](const PaddedShape &shape) {
              return 6.0 / static_cast<double>(shape.samples);
            }),
            "costs must not fall, but 2 samples of 5 tokens cost 3 seconds, "
            "and a part of them 6");
  // With longer ones.
  EXPECT_EQ(message([](const PaddedShape &shape) {
              return 100.0 - static_cast<double>(shape.longest.tokens);
            }),
            "costs must not fall, but 2 samples of 5 tokens cost 95 seconds, "
            "and a part of them 97");
  EXPECT_EQ(message([](const PaddedShape &) { return std::nan(""); }),
            "1 sample of 3 tokens cost nan seconds");
  EXPECT_EQ(message([](const PaddedShape &) { return -1; }),
            "1 sample of 3 tokens cost -1 seconds");
}

} // namespace
