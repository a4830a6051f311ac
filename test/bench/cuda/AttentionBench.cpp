//===- AttentionBench.cpp - Speed of attention on a GPU ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One JSON line per direction, size and path (own kernels; cuDNN with gradients in a
// fixed order, and in any), of bf16: milliseconds of the device, between events. Rates
// count visible pairs alone, as runs do. The first call of cuDNN's makes its plan, and
// is no part of them; where cuDNN has no plan there is a line that says why. Usage:
// bench_cuda_attention [--repeats N] [--tokens N] [--peak TFLOPS]; `bound` is
// the peak that was given.
// bench_cuda_attention --properties prints the device as cuDNN describes it: what
// CudnnPlanTest makes plans for; --ceilings N what the device reaches of its rates: bytes
// read and written by a copy of 16 N^2 bytes, and a bf16 product of N x N x N.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "test/Patience.h"
#include "test/runtime/device/KernelConformance.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace dyna;

namespace {

[[noreturn]] void stop(const std::string &why) {
  std::fprintf(stderr, "bench_cuda_attention: %s\n", why.c_str());
  std::exit(1);
}

template <typename T> T must(StatusOr<T> result) {
  if (!result.isOk())
    stop(result.status().message());
  return std::move(*result);
}
void must(const Status &status) {
  if (!status.isOk())
    stop(status.message());
}

Device::Deadline soon() { return dyna::patienceEnds(); }

struct Path {
  const char *name;
  bool useLibrary, isOrdered;
};
constexpr Path kPaths[] = {{"own", false, true},
                           {"cudnn", true, true},
                           {"cudnn-any-order", true, false}};

CudaOptions optionsOf(const Path &path) {
  CudaOptions options;
  options.attention.useLibrary = path.useLibrary;
  options.attention.isOrdered = path.isOrdered;
  options.attention.workspaceBytes = int64_t(4) << 30;
  return options;
}

struct Bench {
  explicit Bench(const Path &path)
      : path(path), device(must(CudaDevice::create(optionsOf(path)))) {}

  Path path;
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Stream> stream = must(device->createStream());
  dyna_context context = {};
  char message[512] = "";
  int repeats = 20;
  double peak = 0; ///< TFLOP/s; 0: not given

  void bind() {
    device->bind(context, *stream);
    context.message = message, context.message_capacity = sizeof(message);
  }
  std::unique_ptr<Buffer> put(const void *data, int64_t bytes) {
    std::unique_ptr<Buffer> buffer = must(device->allocate(bytes));
    if (data)
      must(device->copyToDevice(*stream, *buffer, 0, data, bytes));
    must(device->synchronize(*stream, soon()));
    return buffer;
  }
  std::unique_ptr<Buffer> random(int64_t count) {
    std::mt19937 random(1);
    auto data = naive::randomElements<Bf16>(count, random);
    return put(data.data(), count * 2);
  }

  /// Milliseconds of the device for each call, sorted.
  template <typename Body> std::vector<double> times(Body body) {
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) { // the first is the warm-up
      std::unique_ptr<Event> begin = must(device->createEvent());
      std::unique_ptr<Event> end = must(device->createEvent());
      context.matrix_flops = 0;
      must(device->record(*stream, *begin));
      if (body() != DYNA_OK)
        stop(message);
      must(device->record(*stream, *end));
      must(device->wait(*end, soon()));
      if (i > 0)
        times.push_back(1e3 * must(device->secondsBetween(*begin, *end)));
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  template <typename Body>
  void report(const char *what, const std::string &size, Body body) {
    const int64_t before = device->attention().calls();
    const std::vector<double> times = this->times(body);
    if (path.useLibrary && device->attention().calls() == before) {
      std::printf("{\"what\":\"%s\",\"path\":\"%s\",\"size\":\"%s\","
                  "\"error\":\"%s\"}\n",
                  what, path.name, size.c_str(),
                  device->attention().describe().c_str());
      return;
    }
    double median = times[times.size() / 2];
    double rate = static_cast<double>(context.matrix_flops) / median / 1e9;
    std::printf(
        "{\"what\":\"%s\",\"path\":\"%s\",\"size\":\"%s\",\"dtype\":\"bf16\","
        "\"ranks\":1,\"warm_up\":1,\"repeats\":%d,\"median_ms\":%.4f,\"p99_"
        "ms\":%.4f,"
        "\"tflops\":%.2f",
        what, path.name, size.c_str(), repeats, median,
        times[std::min(times.size() - 1, times.size() * 99 / 100)], rate);
    if (peak > 0)
      std::printf(",\"bound\":%.1f,\"ratio\":%.3f}\n", peak, rate / peak);
    else
      std::printf(",\"bound\":null,\"ratio\":null}\n");
    std::fflush(stdout);
  }

  /// Causal attention over segments of `length` tokens, `tokens` in all.
  void run(int64_t tokens, int64_t length, int64_t heads, int64_t kvHeads,
           int64_t headDim) {
    std::vector<dyna_segment> rows;
    dyna_segments segments = {};
    for (int64_t at = 0; at < tokens; at += length) {
      int64_t n = std::min(length, tokens - at);
      rows.push_back({at / length, at, n, at, n, 0});
      segments.pairs += dyna_visible_pairs(&rows.back(), 0);
      segments.causal_pairs += dyna_visible_pairs(&rows.back(), 1);
    }
    auto table = put(rows.data(), int64_t(rows.size() * sizeof(dyna_segment)));
    segments.data = static_cast<const dyna_segment *>(table->data());
    segments.keys_are_queries = 1;
    segments.longest_query = segments.longest_key = std::min(length, tokens);
    segments.count = static_cast<int64_t>(rows.size());
    segments.tq = segments.tkv = tokens;
    const int64_t q = heads * headDim, kv = kvHeads * headDim;
    std::unique_ptr<Buffer> buffers[] = {
        random(tokens * q),  random(tokens * kv), random(tokens * kv),
        random(tokens * q),  random(tokens * q),  random(tokens * q),
        random(tokens * kv), random(tokens * kv)};
    auto lse = put(nullptr, tokens * heads * 4);
    dyna_linear_bytes formula =
        dyna_attention_grad_workspace(2, heads, kvHeads, headDim);
    auto workspace = put(
        nullptr,
        LinearBytes{formula.tq, formula.tkv, formula.s, formula.constant}.at(
            {tokens, tokens, segments.count}));
    dyna_attention_grad grad = {};
    dyna_attention &p = grad.forward;
    p.segments = &segments;
    p.heads = heads, p.kv_heads = kvHeads, p.head_dim = headDim;
    p.scale = 1 / std::sqrt(static_cast<double>(headDim));
    p.causal = 1;
    p.q = buffers[0]->data(), p.k = buffers[1]->data();
    p.v = buffers[2]->data(), p.out = buffers[3]->data();
    p.q_stride = p.out_stride = grad.dq_stride = q;
    p.k_stride = p.v_stride = grad.dk_stride = grad.dv_stride = kv;
    p.lse = lse->data();
    grad.dout = buffers[4]->data(), grad.dq = buffers[5]->data();
    grad.dk = buffers[6]->data(), grad.dv = buffers[7]->data();
    grad.workspace = workspace->data();
    std::string size = std::to_string(tokens) + " tokens by " +
                       std::to_string(length) + ", heads " +
                       std::to_string(heads) + "/" + std::to_string(kvHeads) +
                       " of " + std::to_string(headDim);
    report("attention", size,
           [&] { return dyna_attention_bf16(&context, &p); });
    report("attention_grad", size,
           [&] { return dyna_attention_grad_bf16(&context, &grad); });
  }
};

/// The first line of a run without cuDNN says why, and there are no others.
bool isThere(const Path &path, Bench &bench) {
  if (!path.useLibrary || bench.device->attention().whyNot().empty())
    return true;
  std::printf("{\"what\":\"attention\",\"path\":\"%s\",\"error\":\"%s\"}\n",
              path.name, bench.device->attention().describe().c_str());
  return false;
}

void reportCeilings(int64_t size) {
  Bench bench(kPaths[0]);
  bench.bind();
  const int64_t bytes = 16 * size * size;
  auto from = bench.put(nullptr, bytes), to = bench.put(nullptr, bytes);
  const std::vector<double> copies = bench.times([&]() -> dyna_status {
    must(bench.device->copy(*bench.stream, *to, 0, *from, 0, bytes));
    return DYNA_OK;
  });
  auto a = bench.random(size * size), b = bench.random(size * size);
  dyna_matmul product = {};
  product.m = product.n = product.k = size;
  product.lda = product.ldb = product.ldc = size;
  product.a = a->data(), product.b = b->data(), product.c = to->data();
  const std::vector<double> products =
      bench.times([&] { return dyna_matmul_bf16(&bench.context, &product); });
  auto rate = [](double amount, const std::vector<double> &times) {
    return 1e3 * amount / times[times.size() / 2];
  };
  const auto n = static_cast<double>(size);
  std::printf(
      "{\"copy_bytes_per_s\":%.4g,\"product_flops\":%.4g,\"size\":%d}\n",
      rate(2.0 * static_cast<double>(bytes), copies),
      rate(2 * n * n * n, products), static_cast<int>(size));
}

void runAll(const Path &path, int64_t tokens, int repeats, double peak) {
  Bench bench(path);
  bench.repeats = repeats;
  bench.peak = peak;
  bench.bind();
  std::fprintf(stderr, "%s\n", bench.device->describe().c_str());
  if (!isThere(path, bench))
    return;
  // GPT-2 124M and 1.3B, LLaMA with shared keys; short and long samples.
  for (int64_t length : {tokens / 128, tokens / 16, tokens / 4}) {
    length = std::max<int64_t>(length, 1);
    bench.run(tokens, length, 12, 12, 64);
    bench.run(tokens, length, 16, 16, 128);
    bench.run(tokens, length, 32, 8, 128);
  }
}

} // namespace

int main(int argc, char **argv) {
  int64_t tokens = 16384;
  int repeats = 20;
  double peak = 0;
  if (argc == 2 && std::string(argv[1]) == "--properties") {
    auto device = must(CudaDevice::create(optionsOf(kPaths[1])));
    std::printf("%s\n", must(device->attention().properties()).c_str());
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::printf("%s [--tokens N] [--repeats N] [--peak TFLOPS]: times "
                "attention\n%s --ceilings SIZE: times a copy and a product\n"
                "%s --properties: what cuDNN says of the device\n",
                argv[0], argv[0], argv[0]);
    return 0;
  }
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    double value = i + 1 < argc ? std::atof(argv[i + 1]) : 0;
    if (value <= 0)
      stop(flag + " needs a number above 0");
    if (flag == "--ceilings") {
      reportCeilings(static_cast<int64_t>(value));
      return 0;
    }
    if (flag == "--repeats")
      repeats = static_cast<int>(value);
    else if (flag == "--tokens")
      tokens = static_cast<int64_t>(value);
    else if (flag == "--peak")
      peak = value;
    else
      stop("unknown flag " + flag);
  }
  for (const Path &path : kPaths)
    runAll(path, tokens, repeats, peak);
}
