//===- KernelBench.cpp - Speed of the host's kernels ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One JSON line per kernel and size. `bound` is what the cores' f32
// multiply-add units do at most, measured in the same run where the kernels
// have a loop for it (AVX-512; null otherwise); `peer` is the same product
// through oneDNN's own threads. Usage: bench_kernels [--threads N] [--seconds
// S] [filter...]
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/device/host/KernelTable.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.h>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace dyna;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Timing {
  int repeats;
  double median, p99;
};

struct Bench {
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[256] = "";
  std::vector<std::string> filters;
  double seconds = 0.5;
  double peak = 0; ///< flop/s of all threads

  bool wants(const std::string &name) const {
    return filters.empty() ||
           std::any_of(filters.begin(), filters.end(),
                       [&](const std::string &f) {
                         return name.find(f) != std::string::npos;
                       });
  }

  Timing time(const std::function<dyna_status()> &body) {
    // Threads of the previous measurement go to sleep first.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::vector<double> times;
    for (double start = now(); times.size() < 4 || now() - start < seconds;) {
      double begin = now();
      if (body() != DYNA_OK) {
        std::fprintf(stderr, "bench_kernels: %s\n", message);
        std::exit(1);
      }
      times.push_back(now() - begin);
    }
    times.erase(times.begin()); // warm-up
    std::sort(times.begin(), times.end());
    size_t n = times.size();
    return {int(n), times[n / 2], times[std::min(n - 1, n * 99 / 100)]};
  }

  /// Runs and prints; `peer` may be empty.
  void report(const std::string &what, const std::string &size,
              const char *dtype, double flops,
              const std::function<dyna_status()> &body,
              const std::function<dyna_status()> &peer = {}) {
    if (!wants(what + " " + size + " " + dtype))
      return;
    Timing t = time(body);
    double rate = flops / t.median;
    std::printf(
        "{\"what\":\"%s\",\"size\":\"%s\",\"dtype\":\"%s\",\"threads\":%d,"
        "\"warm_up\":1,\"repeats\":%d,\"median_ms\":%.4f,\"p99_ms\":%.4f",
        what.c_str(), size.c_str(), dtype, device->team().size(), t.repeats,
        t.median * 1e3, t.p99 * 1e3);
    if (flops > 0)
      std::printf(",\"gflops\":%.1f", rate / 1e9);
    if (flops > 0 && peak > 0)
      std::printf(",\"bound\":%.1f,\"ratio\":%.3f", peak / 1e9, rate / peak);
    else
      std::printf(",\"bound\":null,\"ratio\":null");
    if (peer) {
      Timing p = time(peer);
      std::printf(",\"peer\":\"onednn threads\",\"peer_gflops\":%.1f,"
                  "\"peer_ratio\":%.3f",
                  flops / p.median / 1e9, p.median / t.median);
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
};

template <typename T> std::vector<T> randomData(int64_t n) {
  static std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  std::vector<T> data(static_cast<size_t>(n));
  for (T &element : data) {
    float value = uniform(random);
    if constexpr (sizeof(T) == 2) {
      uint32_t bits;
      memcpy(&bits, &value, 4);
      element = static_cast<T>(bits >> 16);
    } else {
      element = static_cast<T>(value);
    }
  }
  return data;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

struct Product {
  const char *what;
  int64_t m, n, k;
  int transposeA, transposeB, accumulate;
};

const Product kProducts[] = {
    {"forward", 4096, 384, 384, 0, 1, 0},
    {"forward", 4096, 1536, 384, 0, 1, 0},
    {"forward", 4096, 384, 1536, 0, 1, 0},
    {"input_gradient", 4096, 384, 384, 0, 0, 0},
    {"input_gradient", 4096, 384, 1536, 0, 0, 0},
    {"input_gradient", 4096, 1536, 384, 0, 0, 0},
    {"weight_gradient", 384, 384, 4096, 1, 0, 1},
    {"weight_gradient", 1536, 384, 4096, 1, 0, 1},
    {"weight_gradient", 384, 1536, 4096, 1, 0, 1},
    {"head_logits", 256, 50257, 384, 0, 1, 0},
    {"head_input_gradient", 256, 384, 50257, 0, 0, 0},
    {"head_weight_gradient", 50257, 384, 256, 1, 0, 1},
};

dyna_status oneDnn(const dyna_matmul &p) {
  dnnl_status_t status = dnnl_sgemm(
      p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, 1.0f,
      static_cast<const float *>(p.a), p.lda, static_cast<const float *>(p.b),
      p.ldb, p.accumulate ? 1.0f : 0.0f, static_cast<float *>(p.c), p.ldc);
  return status == dnnl_success ? DYNA_OK : DYNA_DEVICE_ERROR;
}

template <typename T> void benchProducts(Bench &bench, const char *dtype) {
  for (const Product &product : kProducts) {
    bool wide = sizeof(T) == 2 && (product.accumulate || product.n > 40000);
    std::string size = std::to_string(product.m) + "x" +
                       std::to_string(product.n) + "x" +
                       std::to_string(product.k);
    std::string what = std::string("matmul_") + product.what;
    if (!bench.wants(what + " " + size + " " + dtype))
      continue;
    auto a = randomData<T>(product.m * product.k);
    auto b = randomData<T>(product.n * product.k);
    std::vector<float> c(static_cast<size_t>(product.m * product.n));
    dyna_matmul p = {};
    p.m = product.m, p.n = product.n, p.k = product.k;
    p.transpose_a = product.transposeA, p.transpose_b = product.transposeB;
    p.accumulate = product.accumulate;
    p.a = a.data(), p.lda = p.transpose_a ? p.m : p.k;
    p.b = b.data(), p.ldb = p.transpose_b ? p.k : p.n;
    p.c = c.data(), p.ldc = p.n;
    double flops = 2.0 * double(p.m) * double(p.n) * double(p.k);
    dyna_matmul_function function = sizeof(T) == 4 ? dyna_matmul_f32
                                    : wide         ? dyna_matmul_bf16_f32
                                                   : dyna_matmul_bf16;
    std::function<dyna_status()> peer;
    if (sizeof(T) == 4)
      peer = [&] { return oneDnn(p); };
    bench.report(
        what, size, dtype, flops, [&] { return function(&bench.context, &p); },
        peer);
  }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct Lengths {
  const char *name;
  std::vector<int64_t> values;
};

std::vector<Lengths> attentionLengths() {
  Lengths lognormal = {"64_lognormal_100_1", {}};
  std::mt19937 random(1);
  std::normal_distribution<double> normal(std::log(100.0), 1.0);
  for (int i = 0; i < 64; ++i)
    lognormal.values.push_back(
        std::clamp<int64_t>(int64_t(std::exp(normal(random))), 1, 2048));
  return {{"16x256", std::vector<int64_t>(16, 256)},
          {"2x2048", std::vector<int64_t>(2, 2048)},
          {"1x8192", {8192}},
          lognormal};
}

template <typename T>
void benchAttention(Bench &bench, const char *dtype,
                    decltype(dyna_attention_f32) forward,
                    decltype(dyna_attention_grad_f32) backward) {
  const int64_t heads = 6, headDim = 64, width = heads * headDim;
  for (const Lengths &lengths : attentionLengths()) {
    std::vector<dyna_segment> segments;
    int64_t tokens = 0, longest = 0;
    int64_t pairs = 0, causalPairs = 0;
    for (int64_t n : lengths.values) {
      longest = std::max(longest, n);
      segments.push_back({0, tokens, n, tokens, n, 0});
      tokens += n;
      pairs += n * n;
      causalPairs += n * (n + 1) / 2;
    }
    dyna_segments all = {segments.data(),
                         int64_t(segments.size()),
                         tokens,
                         tokens,
                         nullptr,
                         nullptr,
                         longest,
                         longest,
                         tokens,
                         pairs,
                         causalPairs,
                         /*keys_are_queries=*/1,
                         /*stored=*/0,
                         nullptr,
                         {},
                         {},
                         nullptr};
    auto q = randomData<T>(tokens * width), k = randomData<T>(tokens * width);
    auto v = randomData<T>(tokens * width),
         dout = randomData<T>(tokens * width);
    std::vector<T> out(q.size()), dq(q.size()), dk(q.size()), dv(q.size());
    std::vector<double> lse(static_cast<size_t>(tokens * heads));
    auto linear =
        dyna_attention_grad_workspace(sizeof(T), heads, heads, headDim);
    std::vector<char> workspace(
        static_cast<size_t>((linear.tq + linear.tkv) * (tokens + 32)));
    dyna_attention p = {&all,  heads,      heads, headDim,   0.125, 1,
                        0,     q.data(),   width, k.data(),  width, v.data(),
                        width, out.data(), width, lse.data()};
    dyna_attention_grad grad = {p,         dout.data(), dq.data(),
                                width,     dk.data(),   width,
                                dv.data(), width,       workspace.data()};
    // Only what causality leaves counts: 2 products forward, 5 backward.
    double flops = 2 * double(causalPairs) * double(width);
    std::string size = std::string(lengths.name) + " 6x64 causal";
    bench.report("attention_forward", size, dtype, 2 * flops,
                 [&] { return forward(&bench.context, &p); });
    bench.report("attention_backward", size, dtype, 5 * flops,
                 [&] { return backward(&bench.context, &grad); });
  }
}

//===----------------------------------------------------------------------===//
// Head, launch
//===----------------------------------------------------------------------===//

template <typename T>
void benchHead(Bench &bench, const char *dtype,
               decltype(dyna_head_f32) function) {
  const int64_t rows = 1024, width = 384, vocab = 50257;
  auto x = randomData<T>(rows * width), w = randomData<T>(vocab * width);
  std::vector<T> dx(x.size());
  std::vector<float> dw(w.size());
  std::vector<int32_t> targets(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i)
    targets[static_cast<size_t>(i)] = int32_t(i * 48 % vocab);
  auto linear = dyna_head_workspace(sizeof(T), width, vocab);
  std::vector<char> workspace(
      static_cast<size_t>(linear.tq * rows + linear.constant));
  double loss = 0;
  dyna_head p = {};
  p.target_rows = rows;
  p.rows = rows, p.width = width, p.vocab = vocab;
  p.x = x.data(), p.w = w.data(), p.targets = targets.data(),
  p.ignore_index = -1;
  p.loss_sum = &loss, p.gradient_scale = 1e-3;
  p.workspace = workspace.data();
  p.matmul = sizeof(T) == 4 ? dyna_matmul_f32 : dyna_matmul_bf16_f32;
  p.matmul_input = sizeof(T) == 4 ? dyna_matmul_f32 : dyna_matmul_bf16;
  p.matmul_weight = p.matmul;
  double flops = 2.0 * double(rows) * double(width) * double(vocab);
  bench.report("head_evaluate", "1024x384x50257", dtype, flops,
               [&] { return function(&bench.context, &p); });
  p.dx = dx.data(), p.dw = dw.data();
  bench.report("head_train", "1024x384x50257", dtype, 3 * flops,
               [&] { return function(&bench.context, &p); });
}

void benchLaunch(Bench &bench) {
  auto nothing = [](const void *, int64_t, int64_t, int64_t) {};
  // A thousand at a time: one alone is too short for the clock.
  bench.report("launch_x1000", "4096 rows", "none", 0, [&] {
    for (int i = 0; i < 1000; ++i)
      if (dyna_status status =
              dyna_launch(&bench.context, nothing, nullptr, 0, 4096, 1))
        return status;
    return dyna_status(DYNA_OK);
  });
}

/// Flop/s of all threads' f32 units together; the best of a few.
double measurePeak(HostDevice &device) {
  constexpr int64_t repeats = 200000;
  const KernelTable &kernels = device.kernels();
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<double> seconds(static_cast<size_t>(device.team().size()));
    device.team().parallelFor(device.team().size(), [&](int64_t task, int) {
      seconds[static_cast<size_t>(task)] = kernels.secondsOfF32(repeats);
    });
    double longest = *std::max_element(seconds.begin(), seconds.end());
    if (longest <= 0)
      return 0;
    double flops =
        2.0 * 16 * kTimedInstructions * repeats * device.team().size();
    best = std::max(best, flops / longest);
  }
  return best;
}

} // namespace

int main(int argc, char **argv) {
  Bench bench;
  int threads = 0;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--threads" && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else if (argument == "--seconds" && i + 1 < argc)
      bench.seconds = std::atof(argv[++i]);
    else
      bench.filters.push_back(argument);
  }
  StatusOr<std::unique_ptr<HostDevice>> device = HostDevice::create(threads);
  if (!device.isOk()) {
    std::fprintf(stderr, "bench_kernels: %s\n",
                 device.status().message().c_str());
    return 2;
  }
  bench.device = std::move(*device);
  bench.device->bind(bench.context);
  bench.context.message = bench.message;
  bench.context.message_capacity = sizeof(bench.message);
  bench.peak = measurePeak(*bench.device);
  std::fprintf(stderr, "%s\n", bench.device->describe().c_str());
  benchLaunch(bench);
  benchProducts<float>(bench, "f32");
  benchProducts<uint16_t>(bench, "bf16");
  benchAttention<float>(bench, "f32", dyna_attention_f32,
                        dyna_attention_grad_f32);
  benchAttention<uint16_t>(bench, "bf16", dyna_attention_bf16,
                           dyna_attention_grad_bf16);
  benchAttention<double>(bench, "f64", dyna_attention_f64,
                         dyna_attention_grad_f64);
  benchHead<float>(bench, "f32", dyna_head_f32);
  benchHead<uint16_t>(bench, "bf16", dyna_head_bf16);
  return 0;
}
