//===- SparseBench.cpp - Sparse products beside dense ones ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Forward, the gradient of the input and the gradient of the weight of one linear layer.
// One line for each sparsity. Dense and sparse products take turns, so that both meet the
// same machine:
//
// - `dense_s`, `sparse_s`: seconds of all three, the least of the repeats; `dense_median_s`
//   and `sparse_median_s`: the median; `parts_s`: the least of each of the three;
// - `ratio`: dense over sparse, of the least;
// - `floor_s`: 6 * tokens * survivors operations at the peak of the multiply-add units,
//   which the same run measures; null without AVX-512;
// - `bytes`: values, gradient and index of the sparse weight; `dense_bytes`: values and
//   gradient of the dense one;
// - `build_s`: seconds for the index.
//
// Times are processor seconds with one thread, else seconds on the wall.
//
// Usage: bench_sparse [--threads N] [--size ROWS COLUMNS TOKENS] [--bf16] [--repeats N]
//                     [--sparsity S]...
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/device/SparseIndex.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/sparse/Sparse.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace dyna;

namespace {

struct Options {
  int threads = 1, repeats = 5;
  int64_t rows = 4096, columns = 4096, tokens = 4096;
  bool isBf16 = false;
  std::vector<double> sparsities;
};

/// A matrix of the compute type.
struct Matrix {
  std::vector<float> f32;
  std::vector<uint16_t> bf16;

  Matrix(int64_t elements, bool isBf16, std::mt19937 &random) {
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    f32.resize(isBf16 ? 0 : static_cast<size_t>(elements));
    bf16.resize(isBf16 ? static_cast<size_t>(elements) : 0);
    for (float &element : f32)
      element = uniform(random);
    for (uint16_t &element : bf16) {
      const float value = uniform(random);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      element = static_cast<uint16_t>(bits >> 16);
    }
  }
  void *data() {
    return f32.empty() ? static_cast<void *>(bf16.data()) : f32.data();
  }
};

struct Bench {
  Options options;
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[256] = "";
  std::mt19937 random{1};
  Matrix weight, x, y, dy, dx;
  std::vector<float> dw;

  Bench(const Options &o, std::unique_ptr<HostDevice> host)
      : options(o), device(std::move(host)),
        weight(o.rows * o.columns, o.isBf16, random),
        x(o.tokens * o.columns, o.isBf16, random),
        y(o.tokens * o.rows, o.isBf16, random),
        dy(o.tokens * o.rows, o.isBf16, random),
        dx(o.tokens * o.columns, o.isBf16, random),
        dw(static_cast<size_t>(o.rows * o.columns)) {
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context);
  }

  double now() const {
    if (options.threads == 1)
      return coreSeconds();
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  double secondsOf(const std::function<dyna_status()> &work) {
    const double begin = now();
    if (work() != DYNA_OK) {
      std::fprintf(stderr, "bench_sparse: %s\n", message);
      std::exit(1);
    }
    return now() - begin;
  }
  dyna_status multiply(const dyna_matmul &p, bool isGradient) {
    if (!options.isBf16)
      return dyna_matmul_f32(&context, &p);
    return isGradient ? dyna_matmul_bf16_f32(&context, &p)
                      : dyna_matmul_bf16(&context, &p);
  }
  dyna_status multiply(const dyna_sparse_product &p) {
    return options.isBf16 ? host::sparseProductBf16(&context, &p)
                          : host::sparseProductF32(&context, &p);
  }
  std::array<double, 3> dense();
  std::array<double, 3> sparse(const SparseIndex &index, const void *values,
                               float *gradient);
};

std::array<double, 3> Bench::dense() {
  const auto [threads, repeats, rows, columns, tokens, isBf16, sparsities] =
      options;
  dyna_matmul forward = {}, input = {}, gradient = {};
  forward.m = input.m = gradient.k = tokens;
  forward.n = input.k = gradient.m = rows;
  forward.k = input.n = gradient.n = columns;
  forward.a = gradient.b = x.data();
  forward.b = input.b = weight.data();
  input.a = gradient.a = dy.data();
  forward.c = y.data();
  input.c = dx.data();
  gradient.c = dw.data();
  forward.lda = forward.ldb = input.ldb = input.ldc = gradient.ldb =
      gradient.ldc = columns;
  forward.ldc = input.lda = gradient.lda = rows;
  forward.transpose_b = gradient.transpose_a = 1;
  return {secondsOf([&] { return multiply(forward, false); }),
          secondsOf([&] { return multiply(input, false); }),
          secondsOf([&] { return multiply(gradient, true); })};
}

std::array<double, 3> Bench::sparse(const SparseIndex &index,
                                    const void *values, float *gradient) {
  const dyna_sparse_weight w = index.view();
  const Options &o = options;
  const dyna_sparse_product forward = {
      &w, values, o.tokens, x.data(), o.columns, y.data(), o.rows, 0, 0};
  const dyna_sparse_product input = {
      &w, values, o.tokens, dy.data(), o.rows, dx.data(), o.columns, 1, 0};
  const dyna_sparse_gradient p = {
      &w, gradient, o.tokens, x.data(), o.columns, dy.data(), o.rows, 0, 0};
  return {secondsOf([&] { return multiply(forward); }),
          secondsOf([&] { return multiply(input); }), secondsOf([&] {
            return o.isBf16 ? host::sparseGradientBf16(&context, &p)
                            : host::sparseGradientF32(&context, &p);
          })};
}

/// Times of some repeats.
struct Times {
  std::vector<double> sums;
  std::array<double, 3> least = {1e9, 1e9, 1e9};

  void add(const std::array<double, 3> &parts) {
    sums.push_back(parts[0] + parts[1] + parts[2]);
    for (size_t i = 0; i < 3; ++i)
      least[i] = std::min(least[i], parts[i]);
    std::sort(sums.begin(), sums.end());
  }
  double shortest() const { return sums.front(); }
  double median() const { return sums[sums.size() / 2]; }
};

/// The cost of the index, and what it has.
struct Pruned {
  SparseIndex index;
  double seconds;
};

Pruned prune(Bench &bench, double sparsity) {
  std::bernoulli_distribution survives(1 - sparsity);
  std::vector<uint8_t> mask(bench.dw.size());
  for (uint8_t &byte : mask)
    byte = survives(bench.random);
  const double begin = coreSeconds();
  auto index = SparseIndex::build(bench.options.rows, bench.options.columns,
                                  mask.data());
  const double seconds = coreSeconds() - begin;
  if (!index.isOk()) {
    std::fprintf(stderr, "bench_sparse: %s\n",
                 index.status().message().c_str());
    std::exit(1);
  }
  return {std::move(*index), seconds};
}

void measure(Bench &bench, double sparsity, double peak) {
  const Options &o = bench.options;
  const Pruned pruned = prune(bench, sparsity);
  const int64_t survivors = pruned.index.survivors();
  Matrix values(survivors, o.isBf16, bench.random);
  std::vector<float> gradient(static_cast<size_t>(survivors));
  Times dense, sparse;
  for (int repeat = 0; repeat <= o.repeats; ++repeat) {
    const auto denseParts = bench.dense();
    const auto sparseParts =
        bench.sparse(pruned.index, values.data(), gradient.data());
    if (repeat == 0)
      continue; // pages, and code of the matrix library
    dense.add(denseParts);
    sparse.add(sparseParts);
  }
  const double operations =
      6.0 * static_cast<double>(o.tokens) * static_cast<double>(survivors);
  const int64_t element = o.isBf16 ? 2 : 4;
  char floor[32] = "null";
  if (peak > 0)
    std::snprintf(floor, sizeof(floor), "%.5f", operations / peak);
  std::printf(
      "{\"bench\": \"sparse\", \"rows\": %lld, \"columns\": %lld, \"tokens\": "
      "%lld, \"dtype\": \"%s\", \"threads\": %d, \"repeats\": %d, "
      "\"sparsity\": %.2f, \"dense_s\": %.5f, \"sparse_s\": %.5f, "
      "\"ratio\": %.2f, \"dense_median_s\": %.5f, \"sparse_median_s\": %.5f, "
      "\"parts_s\": [%.5f, %.5f, %.5f], \"floor_s\": %s, \"bytes\": %lld, "
      "\"dense_bytes\": %lld, \"build_s\": %.4f}\n",
      static_cast<long long>(o.rows), static_cast<long long>(o.columns),
      static_cast<long long>(o.tokens), o.isBf16 ? "bf16" : "f32", o.threads,
      o.repeats, sparsity, dense.shortest(), sparse.shortest(),
      dense.shortest() / sparse.shortest(), dense.median(), sparse.median(),
      sparse.least[0], sparse.least[1], sparse.least[2], floor,
      static_cast<long long>(survivors * (element + 4) + pruned.index.bytes()),
      static_cast<long long>(o.rows * o.columns * (element + 4)),
      pruned.seconds);
  std::fflush(stdout);
}

/// Operations a second of all threads; 0 if unknown.
double peakOf(const HostDevice &device, int threads) {
  double least = 0;
  for (int i = 0; i < 20; ++i) {
    const double seconds = device.kernels().secondsOfF32(20000);
    if (seconds > 0 && (least == 0 || seconds < least))
      least = seconds;
  }
  return least > 0 ? 20000.0 * kTimedInstructions * 32 * threads / least : 0;
}

Options parse(int count, char **words) {
  Options o;
  for (int i = 1; i < count; ++i) {
    auto is = [&](const char *word, int values) {
      return std::strcmp(words[i], word) == 0 && i + values < count;
    };
    if (is("--threads", 1))
      o.threads = std::max(1, std::atoi(words[++i]));
    else if (is("--repeats", 1))
      o.repeats = std::max(1, std::atoi(words[++i]));
    else if (is("--sparsity", 1))
      o.sparsities.push_back(std::atof(words[++i]));
    else if (is("--bf16", 0))
      o.isBf16 = true;
    else if (is("--size", 3)) {
      o.rows = std::max(1, std::atoi(words[++i]));
      o.columns = std::max(1, std::atoi(words[++i]));
      o.tokens = std::max(1, std::atoi(words[++i]));
    } else {
      std::fprintf(stderr, "bench_sparse: unknown word %s\n", words[i]);
      std::exit(2);
    }
  }
  if (o.sparsities.empty())
    o.sparsities = {0.5, 0.75, 0.8, 0.9, 0.95};
  return o;
}

} // namespace

int main(int count, char **words) {
  const Options options = parse(count, words);
  auto device = HostDevice::create(options.threads);
  if (!device.isOk())
    return std::fprintf(stderr, "%s\n", device.status().message().c_str()), 1;
  const double peak = peakOf(**device, options.threads);
  Bench bench(options, std::move(*device));
  for (double sparsity : options.sparsities)
    measure(bench, sparsity, peak);
  return 0;
}
