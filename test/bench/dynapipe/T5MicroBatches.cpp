//===- T5MicroBatches.cpp - Ways to make micro-batches of pairs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Figure 16a of DynaPipe (EuroSys'24): T5-11B (table 1) on one node of eight
// devices, without a pipeline. There is no frontend of T5, so its layers are
// described here: products, what they read and write, exchanges at tp=8, and
// stored scores or a fused kernel (runtime/cost). Orders and cuts are the
// planner's own.
//
//     bench_t5 LENGTHS.csv MAXIMUM_LENGTH STEPS
//
// The file has the columns of encoder and decoder tokens, and nothing else. One
// JSON line for each attention and method: `packed` rows of the maximum length
// (a fourth of it in the decoder), `tokens` runs of so many padded tokens,
// `optimum` the exact cut; from samples sorted or in a salesman's order. Each
// with its best size of micro-batches and recomputation.
//
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostTable.h"
#include "runtime/planner/cut/PartitionMicroBatches.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

using namespace dyna;

namespace {

constexpr double width = 1024, heads = 128, inner = 128 * heads, hidden = 65536;
constexpr double layers = 24, vocabulary = 32128; // in encoder and in decoder
constexpr int tp = 8;
constexpr double parameters =
    layers * (12 * width * inner + 4 * width * hidden) + vocabulary * width;
constexpr int64_t tokensPerStep = 65536;

using Lengths = std::vector<SampleLength>;
enum Mode { None, Selective, Full };
constexpr const char *modeNames[] = {"none", "selective", "full"};

/// Micro-batches, each a number of equal rows.
using Cut = std::vector<PaddedShape>;

class Costs {
public:
  Costs(const CostTable &table, Mode mode)
      : device_(table.device()), cluster_(table.cluster()),
        scores_(table.scores()), mode_(mode) {}

  /// Of a micro-batch, forward, backward and what is computed again.
  double seconds(const PaddedShape &shape) const {
    double e = rows(shape) * encoder(shape), d = rows(shape) * decoder(shape);
    double ee = e * encoder(shape), dd = d * decoder(shape),
           ed = e * decoder(shape);
    // A causal half is saved by a fused kernel alone.
    double seen = scores_ ? dd : (dd + d) / 2;
    double products = 4 * width * inner + 2 * width * hidden;
    double one = layerSeconds(products, e, ee, 2) +
                 layerSeconds(products, d, seen, 2) +
                 // Keys and values of the encoder, queries of the decoder.
                 layerSeconds(2 * width * inner, e + d, ed, 1);
    double loss = 6 * vocabulary * width * d / tp / flops();
    return layers * one + loss;
  }

  /// Kept from forward to backward, with those of one layer at work.
  int64_t bytes(const PaddedShape &shape) const {
    double e = rows(shape) * encoder(shape), d = rows(shape) * decoder(shape);
    double pairs = e * encoder(shape) + d * decoder(shape) + e * decoder(shape);
    double scores = scores_ ? heads / tp * scores_->kept_bytes() * pairs : 0;
    // Inputs and norms on all ranks; what products make, on each its part.
    double input = 2 * 2 * width * (e + d);
    double made = 2 * (4 * inner * (e + 2 * d) + 2 * hidden * (e + d)) / tp;
    double kept = mode_ == Full        ? input / 2
                  : mode_ == Selective ? input + made
                                       : input + made + scores;
    return std::llround(layers * kept + made + scores);
  }

  double stepSeconds() const {
    // Gradient, master and moments, each read and written.
    return parameters / tp * (6 * 4 + 2 * 2 + 2) / bandwidth();
  }
  int64_t room() const {
    // bf16 weights and gradients; master and two moments of f32.
    return device_.memory_bytes() - std::llround(parameters / tp * 16);
  }

private:
  static double rows(const PaddedShape &s) {
    return static_cast<double>(s.samples);
  }
  static double encoder(const PaddedShape &s) {
    return static_cast<double>(s.longest.tokens);
  }
  static double decoder(const PaddedShape &s) {
    return static_cast<double>(s.longest.decoderTokens);
  }
  double flops() const { return device_.bf16_flops() * device_.flops_reach(); }
  double bandwidth() const {
    return device_.bytes_per_second() * device_.bytes_reach();
  }

  /// A part of a layer with so many weights, on tokens and pairs.
  double layerSeconds(double weights, double tokens, double pairs,
                      int exchanges) const {
    double attention = 4 * inner * pairs / tp / flops();
    double reads = 2 * weights / tp / bandwidth();
    double forward =
        std::max(2 * weights * tokens / tp / flops() + attention, reads);
    double moved = heads / tp * pairs / bandwidth();
    double scores = scores_ ? scores_->forward_bytes() * moved : 0;
    double sums =
        exchanges * cluster_.exchangeSeconds(plan::LayerExchange::ALL_REDUCE,
                                             2 * width * tokens, {tp, tp});
    double again = mode_ == Full        ? forward + scores + sums
                   : mode_ == Selective ? scores + (scores_ ? attention : 0)
                                        : 0;
    double backward =
        2 * forward + (scores_ ? scores_->backward_bytes() * moved : 0);
    return forward + scores + backward + again + 2 * sums +
           (mode_ == None ? 2 : 3) * device_.launch_seconds();
  }

  const cost::Device &device_;
  const Cluster &cluster_;
  const std::optional<cost::StoredScores> &scores_;
  Mode mode_;
};

/// Rows of joined samples, first fit, so many to a micro-batch.
Cut packed(const Lengths &lengths, int64_t longest, int64_t rowsOfOne) {
  Lengths rows;
  const SampleLength most{longest, longest / 4};
  for (const SampleLength &sample : lengths) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto &there) {
      return there.tokens + sample.tokens <= most.tokens &&
             there.decoderTokens + sample.decoderTokens <= most.decoderTokens;
    });
    if (row == rows.end())
      row = rows.insert(rows.end(), SampleLength{});
    row->tokens += sample.tokens;
    row->decoderTokens += sample.decoderTokens;
  }
  Cut cut;
  for (int64_t left = static_cast<int64_t>(rows.size()); left > 0;
       left -= rowsOfOne)
    cut.push_back({std::min(left, rowsOfOne), most});
  return cut;
}

PaddedShape with(PaddedShape shape, const SampleLength &sample) {
  ++shape.samples;
  shape.longest.tokens = std::max(shape.longest.tokens, sample.tokens);
  shape.longest.decoderTokens =
      std::max(shape.longest.decoderTokens, sample.decoderTokens);
  return shape;
}

/// Runs of at most so many padded tokens.
Cut runsOf(const Lengths &lengths, const std::vector<int64_t> &order,
           int64_t tokens) {
  Cut cut(1);
  for (int64_t sample : order) {
    PaddedShape more = with(cut.back(), lengths[sample]);
    if (cut.back().samples > 0 &&
        more.samples * (more.longest.tokens + more.longest.decoderTokens) >
            tokens) {
      cut.emplace_back();
      more = with({}, lengths[sample]);
    }
    cut.back() = more;
  }
  return cut;
}

Cut optimum(const Lengths &lengths, const std::vector<int64_t> &order,
            const Costs &costs) {
  PartitionOptions options;
  options.shareBytes = options.limitBytes = costs.room();
  PaddedCosts padded{
      [&](const PaddedShape &shape) { return costs.seconds(shape); },
      [&](const PaddedShape &shape) { return costs.bytes(shape); }};
  auto found = partitionMicroBatches(lengths, order, padded, options);
  Cut cut;
  if (found.isOk())
    for (const auto &samples : found->microBatches) {
      cut.emplace_back();
      for (int64_t sample : samples)
        cut.back() = with(cut.back(), lengths[sample]);
    }
  return cut;
}

/// The best of what is tried for one method; steps one after another.
struct Method {
  std::string name;
  SampleOrder order;
  /// Of a micro-batch: rows or tokens; one entry of 0 where none is chosen.
  std::vector<int64_t> sizes;
};

struct Result {
  double seconds = std::numeric_limits<double>::infinity();
  double computed = 0; ///< tokens, padding included
  int64_t size = 0, microBatches = 0;
  Mode mode = None;
};

Result play(const std::vector<Lengths> &steps, const Method &method,
            int64_t size, const CostTable &table, Mode mode, int64_t longest) {
  Costs costs(table, mode);
  Result result{0, 0, size, 0, mode};
  for (const Lengths &lengths : steps) {
    Cut cut;
    if (method.name == "packed") {
      cut = packed(lengths, longest, size);
    } else {
      auto order = orderSamples(lengths, method.order);
      cut = size > 0 ? runsOf(lengths, order, size)
                     : optimum(lengths, order, costs);
    }
    bool fits = !cut.empty();
    for (const PaddedShape &shape : cut) {
      fits &= costs.bytes(shape) <= costs.room();
      result.seconds += costs.seconds(shape);
      result.computed += static_cast<double>(
          shape.samples * (shape.longest.tokens + shape.longest.decoderTokens));
    }
    if (!fits)
      return Result();
    result.seconds += costs.stepSeconds();
    result.microBatches += static_cast<int64_t>(cut.size());
  }
  return result;
}

std::vector<Lengths> readSteps(const char *path, int64_t longest, int steps) {
  std::vector<Lengths> all;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line); // names of columns
  int64_t tokens = tokensPerStep;
  while (std::getline(file, line)) {
    long long encoder = 0, decoder = 0;
    if (std::sscanf(line.c_str(), "%lld,%lld", &encoder, &decoder) != 2)
      continue;
    SampleLength sample{std::clamp<int64_t>(encoder, 1, longest),
                        std::clamp<int64_t>(decoder, 1, longest / 4)};
    tokens += sample.tokens + sample.decoderTokens;
    if (tokens > tokensPerStep) {
      if (static_cast<int>(all.size()) == steps)
        break;
      all.emplace_back();
      tokens = sample.tokens + sample.decoderTokens;
    }
    all.back().push_back(sample);
  }
  return all;
}

} // namespace

int main(int argc, char **argv) {
  const int64_t longest = argc == 4 ? std::atoll(argv[2]) : 0;
  const int count = argc == 4 ? std::atoi(argv[3]) : 0;
  auto steps = longest >= 4 && count > 0 ? readSteps(argv[1], longest, count)
                                         : std::vector<Lengths>();
  if (steps.empty()) {
    std::fprintf(stderr, "bench_t5: expects LENGTHS.csv MAXIMUM_LENGTH STEPS, "
                         "with two columns of tokens\n");
    return 2;
  }
  double tokens = 0;
  for (const Lengths &lengths : steps)
    for (const SampleLength &sample : lengths)
      tokens += static_cast<double>(sample.tokens + sample.decoderTokens);
  const std::vector<int64_t> runs = {2048, 4096, 8192, 16384, 32768, 65536};
  const Method methods[] = {
      {"packed", SampleOrder::Length, {1, 2, 4, 8, 16}},
      {"tokens, sorted", SampleOrder::Length, runs},
      {"tokens, salesman", SampleOrder::ShortestWay, runs},
      {"optimum, sorted", SampleOrder::Length, {0}},
      {"optimum, salesman", SampleOrder::ShortestWay, {0}}};
  for (const char *attention : {"stored", "fused"}) {
    CostTable table = *CostTable::described("a100-40g:1x8");
    if (std::string(attention) == "stored")
      table.describeScores();
    for (const Method &method : methods) {
      Result best;
      for (int64_t size : method.sizes)
        for (Mode mode : {None, Selective, Full}) {
          Result one = play(steps, method, size, table, mode, longest);
          if (one.seconds < best.seconds)
            best = one;
        }
      if (!std::isfinite(best.seconds)) {
        std::printf("{\"attention\": \"%s\", \"method\": \"%s\", "
                    "\"out_of_memory\": true}\n",
                    attention, method.name.c_str());
        continue;
      }
      std::printf("{\"attention\": \"%s\", \"method\": \"%s\", \"steps\": %zu, "
                  "\"tokens_per_second\": %.6g, \"padding_share\": %.4f, "
                  "\"micro_batches\": %lld, \"size\": %lld, "
                  "\"recompute\": \"%s\"}\n",
                  attention, method.name.c_str(), steps.size(),
                  tokens / best.seconds, 1 - tokens / best.computed,
                  static_cast<long long>(best.microBatches),
                  static_cast<long long>(best.size), modeNames[best.mode]);
    }
  }
  return 0;
}
