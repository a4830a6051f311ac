//===- MicroBatchBench.cpp - Orders, cuts, bins and replicas, timed -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/bench/planner/MicroBatchBench.h"
#include "runtime/abi/Random.h"
#include "runtime/planner/cut/BalanceReplicas.h"
#include "runtime/planner/cut/PackForPipeline.h"
#include "test/runtime/planner/GridCosts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

namespace dyna {
namespace {

using Lengths = std::vector<SampleLength>;

constexpr size_t samples = 2048;
constexpr int64_t longest = 8192;
constexpr double layers = 64;
constexpr int repeats = 7;
/// Bytes of a token in a layer, and of all ranks of a stage.
constexpr double tokenBytes = 0.14e6, rankBytes = 63.8e9;

struct Drawn {
  std::string name;
  Lengths lengths;
  bool pairs = false;
};

Drawn lognormal() {
  Drawn drawn{"lognormal", {}, false};
  for (uint64_t i = 0; i < samples; ++i) {
    double u, v;
    dyna_parameter_uniforms(5, i, &u, &v);
    double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    drawn.lengths.push_back(
        {std::clamp<int64_t>(std::llround(std::exp(4.5 + 1.1 * normal)), 8,
                             longest),
         0});
  }
  return drawn;
}

std::vector<std::string> split(const std::string &line) {
  std::vector<std::string> fields;
  std::stringstream text(line);
  for (std::string field; std::getline(text, field, ',');)
    fields.push_back(field);
  return fields;
}

/// Empty where the file or a column is not there.
Drawn readLengths(const std::string &path, const std::string &columns) {
  Drawn drawn{path.substr(path.find_last_of('/') + 1), {}, false};
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<std::string> names = split(line), wanted = split(columns);
  std::vector<size_t> at;
  for (const std::string &name : wanted) {
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return drawn;
    at.push_back(static_cast<size_t>(found - names.begin()));
  }
  drawn.pairs = at.size() == 2;
  while (drawn.lengths.size() < samples && std::getline(file, line)) {
    std::vector<std::string> fields = split(line);
    auto length = [&](size_t column) {
      return std::clamp<int64_t>(std::atoll(fields[at[column]].c_str()), 1,
                                 longest);
    };
    drawn.lengths.push_back({length(0), drawn.pairs ? length(1) : 0});
  }
  return drawn;
}

std::vector<int64_t> sumsOf(const Lengths &lengths) {
  std::vector<int64_t> sums;
  for (const SampleLength &length : lengths)
    sums.push_back(std::min(length.tokens + length.decoderTokens, longest));
  return sums;
}

int measureOrder(const Drawn &drawn, SampleOrder order, const char *name) {
  std::vector<int64_t> visited;
  double ms = medianMs([&] {
    visited = orderSamples(drawn.lengths, order);
    return true;
  });
  int64_t way = 0, step = 0;
  for (size_t i = 1; i < visited.size(); ++i) {
    const SampleLength &a = drawn.lengths[visited[i - 1]],
                       &b = drawn.lengths[visited[i]];
    int64_t distance = std::abs(a.tokens - b.tokens) +
                       std::abs(a.decoderTokens - b.decoderTokens);
    way += distance;
    step = std::max(step, distance);
  }
  std::printf("{\"what\": \"order\", \"lengths\": \"%s\", \"order\": \"%s\", "
              "\"samples\": %zu, \"order_ms\": %.2f, \"way\": %lld, "
              "\"longest_step\": %lld}\n",
              drawn.name.c_str(), name, visited.size(), ms,
              static_cast<long long>(way), static_cast<long long>(step));
  return 0;
}

PaddedCosts paddedCosts(int stages, bool limited, bool pairs) {
  GridCosts encoder(
      [=](double samples, double tokens) {
        return layersSeconds(layers / stages, samples, tokens);
      },
      11, 13);
  PaddedCosts costs;
  costs.seconds = encoder;
  if (pairs)
    costs.seconds = [encoder](const PaddedShape &shape) {
      return encoder(shape) +
             encoder({shape.samples, {shape.longest.decoderTokens, 0}});
    };
  if (limited)
    costs.bytes = [=](const PaddedShape &shape) {
      double bytes = tokenBytes * layers / stages *
                     static_cast<double>(shape.samples) *
                     static_cast<double>(shape.longest.tokens +
                                         shape.longest.decoderTokens);
      return static_cast<int64_t>(bytes);
    };
  return costs;
}

PartitionOptions optionsOf(int stages) {
  PartitionOptions options;
  options.stages = stages;
  options.limitBytes = static_cast<int64_t>(rankBytes);
  options.shareBytes = options.limitBytes / stages;
  return options;
}

int measurePartition(const Drawn &drawn, SampleOrder order,
                     const char *orderName, int stages, bool limited) {
  PaddedCosts costs = paddedCosts(stages, limited, drawn.pairs);
  PartitionOptions options = optionsOf(stages);
  std::vector<int64_t> ordered = orderSamples(drawn.lengths, order);
  MicroBatchPartition partition;
  double ms = medianMs([&] {
    auto made = partitionMicroBatches(drawn.lengths, ordered, costs, options);
    if (made.isOk())
      partition = *made;
    else
      std::fprintf(stderr, "%s\n", made.status().message().c_str());
    return made.isOk();
  });
  double tokens = 0, padded = 0;
  for (const std::vector<int64_t> &microBatch : partition.microBatches) {
    SampleLength most;
    for (int64_t sample : microBatch) {
      const SampleLength &length = drawn.lengths[sample];
      most.tokens = std::max(most.tokens, length.tokens);
      most.decoderTokens = std::max(most.decoderTokens, length.decoderTokens);
      tokens += static_cast<double>(length.tokens + length.decoderTokens);
    }
    padded += static_cast<double>(most.tokens + most.decoderTokens) *
              static_cast<double>(microBatch.size());
  }
  std::printf("{\"what\": \"partition\", \"lengths\": \"%s\", \"order\": "
              "\"%s\", \"samples\": %zu, \"stages\": %d, \"limited\": %s, "
              "\"partition_ms\": %.2f, \"programs\": %d, \"micro_batches\": "
              "%zu, \"seconds\": %.4f, \"padding\": %.3f}\n",
              drawn.name.c_str(), orderName, drawn.lengths.size(), stages,
              limited ? "true" : "false", ms, partition.tried,
              partition.microBatches.size(), partition.objective,
              1 - tokens / padded);
  if (ms < 0 || stages != 8 || !limited)
    return ms < 0;
  for (int replicas : {2, 8, 48}) {
    Dealt dealt;
    double ms = medianMs([&] {
      dealt = balanceReplicas(partition.seconds, replicas);
      return true;
    });
    double sum = 0, largest = 0;
    for (const std::vector<int64_t> &items : dealt) {
      double own = 0;
      for (int64_t item : items)
        own += partition.seconds[item];
      sum += own;
      largest = std::max(largest, own);
    }
    std::printf("{\"what\": \"replicas\", \"lengths\": \"%s\", "
                "\"micro_batches\": %zu, \"replicas\": %d, \"balance_ms\": "
                "%.3f, \"imbalance\": %.2e}\n",
                drawn.name.c_str(), partition.seconds.size(), replicas, ms,
                largest * replicas / sum - 1);
  }
  return 0;
}

/// The largest number of programs and the most milliseconds of all cuts of an order,
/// with lengths cut at several tokens: if most samples are as long as one can be, many
/// bounds are nearly as good.
int measureHardest(const Drawn &drawn, SampleOrder order, const char *name) {
  int programs = 0, cuts = 0;
  double mostMs = 0;
  for (int64_t most = 128; most <= longest; most *= 4) {
    Lengths lengths = drawn.lengths;
    for (SampleLength &length : lengths) {
      length.tokens = std::min(length.tokens, most);
      length.decoderTokens = std::min(length.decoderTokens, most);
    }
    std::vector<int64_t> ordered = orderSamples(lengths, order);
    for (int stages : {1, 2, 4, 8, 16})
      for (int replicas : {1, 8})
        for (bool limited : {false, true}) {
          PaddedCosts costs = paddedCosts(stages, limited, drawn.pairs);
          PartitionOptions options = optionsOf(stages);
          options.replicas = replicas;
          StatusOr<MicroBatchPartition> made = MicroBatchPartition();
          double ms = medianMs([&] {
            made = partitionMicroBatches(lengths, ordered, costs, options);
            return made.isOk();
          });
          // One of 8,192 tokens has no room on a single stage.
          if (!made.isOk() &&
              made.status().code() == StatusCode::ResourceExhausted)
            continue;
          if (!made.isOk())
            return std::fprintf(stderr, "%s\n",
                                made.status().message().c_str()),
                   1;
          ++cuts;
          programs = std::max(programs, made->tried);
          mostMs = std::max(mostMs, ms);
        }
  }
  std::printf("{\"what\": \"hardest\", \"lengths\": \"%s\", \"order\": "
              "\"%s\", \"samples\": %zu, \"cuts\": %d, \"most_programs\": "
              "%d, \"most_ms\": %.2f}\n",
              drawn.name.c_str(), name, drawn.lengths.size(), cuts, programs,
              mostMs);
  return 0;
}

int measureBins(const Drawn &drawn, int stages, bool limited) {
  std::vector<int64_t> lengths = sumsOf(drawn.lengths);
  const double perStage = layers / stages;
  RaggedCosts costs;
  costs.seconds = [=](const Load &load) {
    return perStage * 3 *
           (5e-5 + 2.5e-6 * static_cast<double>(load.queries) +
            2.5e-10 * static_cast<double>(load.pairs));
  };
  if (limited)
    costs.bytes = [=](const Load &load) {
      double bytes = tokenBytes * perStage * static_cast<double>(load.queries);
      return static_cast<int64_t>(bytes);
    };
  PartitionOptions options = optionsOf(stages);
  MicroBatchPartition packed;
  double ms = medianMs([&] {
    auto made = packForPipeline(lengths, costs, options);
    if (made.isOk())
      packed = *made;
    else
      std::fprintf(stderr, "%s\n", made.status().message().c_str());
    return made.isOk();
  });
  double start = costs.seconds(loadOfSample(0)), work = 0, alone = 0, bytes = 0;
  for (int64_t length : lengths) {
    const Load load = loadOfSample(length);
    work += costs.seconds(load) - start;
    alone = std::max(alone, costs.seconds(load));
    bytes += limited ? static_cast<double>(costs.bytes(load)) : 0;
  }
  double bound = std::numeric_limits<double>::infinity();
  for (size_t bins = 1; bins <= lengths.size(); ++bins) {
    double count = static_cast<double>(bins);
    if (bytes <= count * static_cast<double>(options.limitBytes))
      bound =
          std::min(bound, (stages - 1) * std::max(alone, start + work / count) +
                              work + start * count);
  }
  std::printf("{\"what\": \"bins\", \"lengths\": \"%s\", \"samples\": %zu, "
              "\"stages\": %d, \"limited\": %s, \"bins_ms\": %.2f, \"tried\": "
              "%d, \"micro_batches\": %zu, \"seconds\": %.4f, \"over_bound\": "
              "%.5f}\n",
              drawn.name.c_str(), lengths.size(), stages,
              limited ? "true" : "false", ms, packed.tried,
              packed.microBatches.size(), packed.objective,
              packed.objective / bound);
  return ms < 0;
}

int measureAll(const Drawn &drawn) {
  struct Named {
    SampleOrder order;
    const char *name;
  };
  std::vector<Named> orders = {{SampleOrder::Length, "length"}};
  if (drawn.pairs)
    orders.insert(orders.end(), {{SampleOrder::ShortestWay, "way"},
                                 {SampleOrder::ShortestStep, "step"}});
  int failures = 0;
  for (const Named &one : orders) {
    failures += measureOrder(drawn, one.order, one.name);
    for (int stages : {4, 8, 16})
      for (bool limited : {false, true})
        failures +=
            measurePartition(drawn, one.order, one.name, stages, limited);
    failures += measureHardest(drawn, one.order, one.name);
  }
  for (int stages : {4, 8, 16})
    for (bool limited : {false, true})
      failures += measureBins(drawn, stages, limited);
  return failures;
}

} // namespace

double medianMs(const std::function<bool()> &work) {
  std::vector<double> times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    // Of this process alone: the machine may do other work.
    std::clock_t begin = std::clock();
    if (!work())
      return -1;
    times.push_back(static_cast<double>(std::clock() - begin) * 1e3 /
                    CLOCKS_PER_SEC);
  }
  std::sort(times.begin(), times.end());
  return times[repeats / 2];
}

int measureMicroBatches(int argc, char **argv) {
  int failures = measureAll(lognormal());
  for (int i = 1; i + 1 < argc; i += 2) {
    Drawn drawn = readLengths(argv[i], argv[i + 1]);
    if (drawn.lengths.empty()) {
      std::fprintf(stderr, "no lengths '%s' in %s\n", argv[i + 1], argv[i]);
      return failures + 1;
    }
    if (drawn.pairs) {
      Drawn joined{drawn.name + " sums", {}, false};
      for (int64_t sum : sumsOf(drawn.lengths))
        joined.lengths.push_back({sum, 0});
      failures += measureAll(joined);
    }
    failures += measureAll(drawn);
  }
  return failures;
}

} // namespace dyna
