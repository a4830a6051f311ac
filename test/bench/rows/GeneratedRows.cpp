//===- GeneratedRows.cpp - Generated sweeps against memcpy ---- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generated layer_norm, bias + gelu and adamw on buffers four times the
// last-level cache, next to what memcpy reaches on the same threads and buffers
// in the same run. Bytes read plus bytes written per second; one JSON line
// each.
//
//   bench_rows [--threads N] [--bytes N] [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "mlir/Parser/Parser.h"
#include "runtime/abi/Kernels.h"
#include "runtime/device/host/HostDevice.h"
#include "test/reference/CompiledProgram.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <unistd.h>
#include <vector>

using namespace dyna;
using mlir::dyna::Role;

namespace {

constexpr int64_t kWidth = 384, kOptimizerRows = 64;

/// One layer per measured sweep; their `evaluate` and `update` roles are timed.
std::string moduleText(int64_t optimizerColumns) {
  std::string matrix = "tensor<" + std::to_string(kOptimizerRows) + "x" +
                       std::to_string(optimizerColumns) + "xf32>";
  return R"(
dyna.layer @norm[%g: tensor<384xf32>, %b: tensor<384xf32>](%x: tensor<?x384xf32>) -> tensor<?x384xf32> {
  %y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5} : tensor<?x384xf32>, tensor<384xf32>
  dyna.return %y : tensor<?x384xf32>
}
dyna.layer @tanh[%b: tensor<384xf32>](%x: tensor<?x384xf32>) -> tensor<?x384xf32> {
  %h = dyna.bias %x, %b : tensor<?x384xf32>, tensor<384xf32>
  %y = dyna.gelu %h tanh : tensor<?x384xf32>
  dyna.return %y : tensor<?x384xf32>
}
dyna.layer @erf[%b: tensor<384xf32>](%x: tensor<?x384xf32>) -> tensor<?x384xf32> {
  %h = dyna.bias %x, %b : tensor<?x384xf32>, tensor<384xf32>
  %y = dyna.gelu %h erf : tensor<?x384xf32>
  dyna.return %y : tensor<?x384xf32>
}
dyna.layer @table[%w: )" +
         matrix + "](%ids: tensor<?xi32>) -> tensor<?x" +
         std::to_string(optimizerColumns) + R"(xf32> {
  %y = dyna.embedding %ids, %w : tensor<?xi32>, )" +
         matrix + R"(
  dyna.return %y : tensor<?x)" +
         std::to_string(optimizerColumns) + "xf32>\n}\n";
}

struct Bench {
  std::unique_ptr<HostDevice> device;
  dyna_context context = {};
  char message[512] = {};
  int repeats = 7;

  /// Median seconds.
  double time(const std::function<dyna_status()> &work) {
    std::vector<double> seconds;
    for (int i = 0; i <= repeats; ++i) {
      auto begin = std::chrono::steady_clock::now();
      if (work() != DYNA_OK) {
        std::fprintf(stderr, "bench_rows: %s\n", message);
        std::exit(1);
      }
      std::chrono::duration<double> elapsed =
          std::chrono::steady_clock::now() - begin;
      if (i > 0) // the first one warms up
        seconds.push_back(elapsed.count());
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

struct CopyArgs {
  const char *source;
  char *target;
};

void copyRows(const void *args, int64_t begin, int64_t end, int64_t) {
  auto *copy = static_cast<const CopyArgs *>(args);
  std::memcpy(copy->target + begin * 4096, copy->source + begin * 4096,
              (end - begin) * 4096);
}

int64_t lastLevelCache() {
  int64_t size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? size : 32 << 20;
}

void report(const char *what, double bytes, double seconds, double copyRate,
            int threads, int64_t buffer) {
  double rate = bytes / seconds / 1e9;
  std::printf("{\"what\": \"%s\", \"dtype\": \"f32\", \"threads\": %d, "
              "\"buffer_mib\": %lld, \"median_ms\": %.2f, \"gb_per_s\": %.2f, "
              "\"memcpy_gb_per_s\": %.2f, \"part_of_memcpy\": %.3f}\n",
              what, threads, (long long)(buffer >> 20), seconds * 1e3, rate,
              copyRate, rate / copyRate);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  int threads = 2;
  int64_t bytes = 4 * lastLevelCache();
  Bench bench;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i];
    int64_t value = std::atoll(argv[i + 1]);
    if (flag == "--threads")
      threads = static_cast<int>(value);
    else if (flag == "--bytes")
      bytes = value;
    else if (flag == "--repeats")
      bench.repeats = static_cast<int>(value);
  }
  auto device = HostDevice::create(threads);
  if (!device.isOk()) {
    std::fprintf(stderr, "bench_rows: %s\n", device.status().message().c_str());
    return 2;
  }
  bench.device = std::move(*device);
  bench.device->bind(bench.context);
  bench.context.message = bench.message;
  bench.context.message_capacity = sizeof(bench.message);

  int64_t rows = bytes / (kWidth * 4) / 32 * 32;
  int64_t buffer = rows * kWidth * 4;
  // Four arrays for adamw, together as large as the two of a sweep.
  int64_t columns = buffer / 2 / 4 / kOptimizerRows / 16 * 16;

  mlir::MLIRContext mlirContext;
  mlirContext.loadDialect<mlir::dyna::DynaDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(moduleText(columns),
                                                        &mlirContext);
  auto program =
      module ? mlir::dyna::reference::CompiledProgram::compile(*module, {})
             : nullptr;
  if (!program)
    return 1;

  auto storage = bench.device->allocate(2 * buffer);
  if (!storage.isOk()) {
    std::fprintf(stderr, "bench_rows: %s\n",
                 storage.status().message().c_str());
    return 2;
  }
  char *in = static_cast<char *>((*storage)->data());
  char *out = in + buffer;
  auto *values = reinterpret_cast<float *>(in);
  for (int64_t i = 0; i < 2 * buffer / 4; ++i)
    values[i] = float(i % 1013) / 507.0f - 1.0f;

  CopyArgs copy = {in, out};
  double copyRate = 2.0 * buffer / bench.time([&] {
    return dyna_launch(&bench.context, copyRows, &copy, sizeof(copy),
                       buffer / 4096, 1);
  }) / 1e9;

  std::vector<float> vectors(2 * kWidth + 32, 0.5f);
  float *aligned = reinterpret_cast<float *>(
      (reinterpret_cast<uintptr_t>(vectors.data()) + 63) / 64 * 64);
  dyna_tensor params[2] = {{aligned, kWidth}, {aligned + kWidth, kWidth}};
  std::vector<int64_t> zeros(rows, 0), positions(rows);
  dyna_segment segment = {0, 0, rows, 0, rows, 0};
  dyna_segments segments = {&segment,
                            1,
                            rows,
                            rows,
                            zeros.data(),
                            positions.data(),
                            rows,
                            rows,
                            rows,
                            rows * rows,
                            rows * (rows + 1) / 2,
                            /*keys_are_queries=*/1,
                            /*stored=*/0,
                            nullptr,
                            {},
                            {},
                            nullptr};
  dyna_tensor input = {in, rows}, output = {out, rows};
  dyna_saved saved = {in, nullptr, nullptr, nullptr, nullptr};
  for (const char *kind : {"norm", "tanh", "erf"}) {
    const auto &function = program->layer(kind).functions.at(Role::Evaluate);
    double seconds = bench.time([&] {
      return function.function(&bench.context, params, nullptr, &saved, nullptr,
                               &segments, &input, &output);
    });
    std::string what =
        std::string("generated.") +
        (kind[0] == 'n' ? "layer_norm" : std::string("bias_gelu_") + kind);
    report(what.c_str(), 2.0 * buffer, seconds, copyRate, threads, buffer);
  }

  int64_t part = kOptimizerRows * columns * 4;
  std::fill(values, values + 2 * buffer / 4, 0.01f);
  dyna_tensor gradient = {in, kOptimizerRows};
  dyna_tensor state[3];
  for (int i = 0; i < 3; ++i)
    state[i] = {in + (i + 1) * part, kOptimizerRows};
  static const double kScale = 1;
  bench.context.optimizer = {1e-3, 0.9, 0.95, 1e-8, 0.1, &kScale, 0.1, 0.05};
  const auto &update = program->layer("table").functions.at(Role::Update);
  double seconds = bench.time([&] {
    return update.function(&bench.context, state, &gradient, nullptr, nullptr,
                           nullptr, state, nullptr);
  });
  report("generated.adamw", 8.0 * part, seconds, copyRate, threads, part);
  return 0;
}
