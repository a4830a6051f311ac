//===- StepFloor.cpp - The matrix products of a step, each timed alone ----===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The floor of a training step: every matrix product it contains, at its own
// shape, on the same threads, one at a time and repeated until the median is
// steady. Attention is not in it, the head is there three times, in the chunks
// it runs in.
//
//   step_floor TOKENS WIDTH INNER KV_WIDTH LAYERS VOCABULARY f32|bf16 THREADS
//
// prints one JSON line. A middle dimension of a gated feed-forward is not
// covered: this is the floor of the GPT-2 family.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/device/host/HostDevice.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace dyna;

namespace {

struct Product {
  const char *what;
  int64_t m, n, k;
  int transposeA, transposeB, accumulate;
  bool wideResult; ///< f32 result of bf16 operands
  double count;    ///< how often a step runs it
};

class Floor {
public:
  Floor(HostDevice &device, bool bf16) : device_(device), bf16_(bf16) {
    device.bind(context_);
    context_.message = message_;
    context_.message_capacity = sizeof(message_);
  }

  /// Median seconds of one product, on memory like the arena's (huge pages).
  double time(const Product &p) {
    size_t element = bf16_ ? 2 : 4;
    size_t resultElement = bf16_ && !p.wideResult ? 2 : 4;
    std::unique_ptr<Buffer> a = allocate(p.m * p.k * element);
    std::unique_ptr<Buffer> b = allocate(p.k * p.n * element);
    std::unique_ptr<Buffer> c = allocate(p.m * p.n * resultElement);
    std::vector<double> seconds;
    double total = 0;
    while (seconds.size() < 5 || (total < 0.4 && seconds.size() < 60)) {
      dyna_matmul product = {};
      product.m = p.m, product.n = p.n, product.k = p.k;
      product.a = a->data(), product.lda = p.transposeA ? p.m : p.k;
      product.b = b->data(), product.ldb = p.transposeB ? p.k : p.n;
      product.c = c->data(), product.ldc = p.n;
      product.transpose_a = p.transposeA, product.transpose_b = p.transposeB;
      product.accumulate = p.accumulate;
      auto begin = std::chrono::steady_clock::now();
      dyna_status status = run(product, p.wideResult);
      double elapsed = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - begin)
                           .count();
      if (status != DYNA_OK) {
        std::fprintf(stderr, "step_floor: %s: %s\n", p.what, message_);
        std::exit(1);
      }
      seconds.push_back(elapsed);
      total += elapsed;
    }
    // The first call of a shape may prepare something.
    seconds.erase(seconds.begin());
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2,
                     seconds.end());
    return seconds[seconds.size() / 2];
  }

private:
  std::unique_ptr<Buffer> allocate(int64_t bytes) {
    auto buffer = device_.allocate(bytes);
    if (!buffer.isOk()) {
      std::fprintf(stderr, "step_floor: %s\n",
                   buffer.status().message().c_str());
      std::exit(2);
    }
    // Not zeros: products of zeros may draw less power.
    auto *words = static_cast<uint16_t *>((*buffer)->data());
    for (int64_t i = 0; i < bytes / 2; ++i)
      words[i] = 0x3c00 + i % 251;
    return std::move(*buffer);
  }

  dyna_status run(const dyna_matmul &product, bool wide) {
    if (!bf16_)
      return dyna_matmul_f32(&context_, &product);
    return wide ? dyna_matmul_bf16_f32(&context_, &product)
                : dyna_matmul_bf16(&context_, &product);
  }

  HostDevice &device_;
  bool bf16_;
  dyna_context context_ = {};
  char message_[512] = {};
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 9) {
    std::fprintf(stderr, "usage: step_floor TOKENS WIDTH INNER KV_WIDTH LAYERS "
                         "VOCABULARY f32|bf16 THREADS\n");
    return 2;
  }
  int64_t t = std::atoll(argv[1]), d = std::atoll(argv[2]),
          inner = std::atoll(argv[3]), kv = std::atoll(argv[4]),
          layers = std::atoll(argv[5]), vocabulary = std::atoll(argv[6]);
  bool bf16 = std::strcmp(argv[7], "bf16") == 0;
  auto device = HostDevice::create(std::atoi(argv[8]));
  if (!device.isOk()) {
    std::fprintf(stderr, "step_floor: %s\n", device.status().message().c_str());
    return 2;
  }
  Floor floor(**device, bf16);
  double n = layers;
  int64_t chunk = DYNA_HEAD_CHUNK_ROWS;
  double chunks = double(t) / chunk;
  std::vector<Product> products;
  auto linear = [&](const char *what, int64_t out, int64_t in, double count) {
    products.push_back({what, t, out, in, 0, 1, 0, false, count});
    products.push_back({what, t, in, out, 0, 0, 0, false, count});
    products.push_back({what, out, in, t, 1, 0, 1, true, count});
  };
  linear("query, projection", d, d, 2 * n);
  linear("key, value", kv, d, 2 * n);
  linear("up", inner, d, n);
  linear("down", d, inner, n);
  products.push_back({"logits", chunk, vocabulary, d, 0, 1, 0, true, chunks});
  products.push_back(
      {"head input", chunk, d, vocabulary, 0, 0, 0, false, chunks});
  products.push_back(
      {"head weight", vocabulary, d, chunk, 1, 0, 1, true, chunks});

  double seconds = 0, flops = 0;
  for (const Product &p : products) {
    seconds += p.count * floor.time(p);
    flops += p.count * 2.0 * p.m * p.n * p.k;
  }
  std::printf("{\"what\": \"step_floor\", \"dtype\": \"%s\", \"threads\": %s, "
              "\"tokens\": %lld, \"seconds\": %.6f, \"gflops\": %.1f, "
              "\"tokens_per_s\": %.1f}\n",
              argv[7], argv[8], (long long)t, seconds, flops / seconds / 1e9,
              t / seconds);
  return 0;
}
