//===- StepFloor.cpp - The matrix products of a step alone ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How long the matrix library takes for the products of one training step:
// oneDNN called directly, on its own team of threads, each product at its whole
// size and timed alone. None of this project's kernels is in it, so that making
// those slower moves no bound. Of the library's two calls for f32 (sgemm,
// matmul primitive) the faster counts, of the head's products whole or in
// chunks of rows the faster too. Attention, the optimizer and all element-wise
// work are left out.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Kernels.h"
#include "runtime/device/host/HostDevice.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.h>
#include <functional>
#include <vector>

using namespace dyna;

namespace {

struct Product {
  const char *what;
  int64_t m, n, k;
  bool transposeA, transposeB, accumulate;
  bool wideResult; ///< f32 result of bf16 operands
  double count;    ///< how often a step runs it
};

void require(bool good, const char *what) {
  if (good)
    return;
  std::fprintf(stderr, "step_floor: oneDNN failed: %s\n", what);
  std::exit(1);
}

/// A matmul primitive on plain matrices.
class Primitive {
public:
  Primitive(dnnl_engine_t engine, const Product &p, bool bf16, void *a, void *b,
            void *c) {
    dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    dnnl_memory_desc_t x = matrix(p.m, p.k, p.transposeA, type);
    dnnl_memory_desc_t y = matrix(p.k, p.n, p.transposeB, type);
    dnnl_memory_desc_t z =
        matrix(p.m, p.n, false, p.wideResult ? dnnl_f32 : type);
    dnnl_matmul_desc_t operation;
    require(dnnl_matmul_desc_init(&operation, &x, &y, nullptr, &z) ==
                dnnl_success,
            "matmul description");
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_attr_create(&attributes);
    if (p.accumulate) {
      dnnl_post_ops_t sum;
      dnnl_post_ops_create(&sum);
      dnnl_post_ops_append_sum(sum, 1.0f);
      dnnl_primitive_attr_set_post_ops(attributes, sum);
      dnnl_post_ops_destroy(sum);
    }
    dnnl_primitive_desc_t description;
    require(dnnl_primitive_desc_create(&description, &operation, attributes,
                                       engine, nullptr) == dnnl_success,
            "matmul primitive");
    require(dnnl_primitive_create(&primitive_, description) == dnnl_success,
            "matmul code");
    dnnl_primitive_desc_destroy(description);
    dnnl_primitive_attr_destroy(attributes);
    require(dnnl_stream_create(&stream_, engine, dnnl_stream_default_flags) ==
                dnnl_success,
            "stream");
    void *data[] = {a, b, c};
    const dnnl_memory_desc_t *layouts[] = {&x, &y, &z};
    int slots[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for (int i = 0; i < 3; ++i) {
      arguments_[i].arg = slots[i];
      require(dnnl_memory_create(&arguments_[i].memory, layouts[i], engine,
                                 data[i]) == dnnl_success,
              "memory");
    }
  }
  Primitive(const Primitive &) = delete;
  Primitive &operator=(const Primitive &) = delete;
  ~Primitive() {
    for (dnnl_exec_arg_t &argument : arguments_)
      dnnl_memory_destroy(argument.memory);
    dnnl_stream_destroy(stream_);
    dnnl_primitive_destroy(primitive_);
  }

  void run() {
    require(dnnl_primitive_execute(primitive_, stream_, 3, arguments_) ==
                    dnnl_success &&
                dnnl_stream_wait(stream_) == dnnl_success,
            "matmul");
  }

private:
  static dnnl_memory_desc_t matrix(int64_t rows, int64_t columns,
                                   bool transposed, dnnl_data_type_t type) {
    dnnl_memory_desc_t result;
    dnnl_dims_t sizes = {rows, columns};
    dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    require(dnnl_memory_desc_init_by_strides(&result, 2, sizes, type,
                                             strides) == dnnl_success,
            "matrix description");
    return result;
  }

  dnnl_primitive_t primitive_ = nullptr;
  dnnl_stream_t stream_ = nullptr;
  dnnl_exec_arg_t arguments_[3] = {};
};

class Floor {
public:
  Floor(HostDevice &memory, bool bf16) : memory_(memory), bf16_(bf16) {
    require(dnnl_engine_create(&engine_, dnnl_cpu, 0) == dnnl_success,
            "engine");
  }

  /// Median seconds of one product by the library's faster call, on memory like
  /// the arena's (huge pages).
  double time(const Product &p) {
    int64_t element = bf16_ ? 2 : 4;
    std::unique_ptr<Buffer> a = allocate(p.m * p.k * element);
    std::unique_ptr<Buffer> b = allocate(p.k * p.n * element);
    std::unique_ptr<Buffer> c =
        allocate(p.m * p.n * (p.wideResult ? 4 : element));
    Primitive primitive(engine_, p, bf16_, a->data(), b->data(), c->data());
    double best = median([&] { primitive.run(); });
    if (bf16_)
      return best;
    return std::min(
        best, median([&] {
          require(dnnl_sgemm(
                      p.transposeA ? 'T' : 'N', p.transposeB ? 'T' : 'N', p.m,
                      p.n, p.k, 1.0f, static_cast<float *>(a->data()),
                      p.transposeA ? p.m : p.k, static_cast<float *>(b->data()),
                      p.transposeB ? p.k : p.n, p.accumulate ? 1.0f : 0.0f,
                      static_cast<float *>(c->data()), p.n) == dnnl_success,
                  "sgemm");
        }));
  }

private:
  static double median(const std::function<void()> &body) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> seconds;
    double total = 0;
    body(); // the first call of a shape may prepare something
    while (seconds.size() < 5 || (total < 0.4 && seconds.size() < 60)) {
      auto begin = Clock::now();
      body();
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - begin).count());
      total += seconds.back();
    }
    auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }

  std::unique_ptr<Buffer> allocate(int64_t bytes) {
    auto buffer = memory_.allocate(bytes);
    if (!buffer.isOk()) {
      std::fprintf(stderr, "step_floor: %s\n",
                   buffer.status().message().c_str());
      std::exit(2);
    }
    // Not zeros: products of zeros may draw less power.
    auto *words = static_cast<uint16_t *>((*buffer)->data());
    for (int64_t i = 0; i < bytes / 2; ++i)
      words[i] = static_cast<uint16_t>(0x3c00 + i % 251);
    return std::move(*buffer);
  }

  HostDevice &memory_;
  bool bf16_;
  dnnl_engine_t engine_ = nullptr;
};

/// The products of a layer `out` x `in`: forward, input and weight gradient.
void addLinear(std::vector<Product> &products, const char *what, int64_t tokens,
               int64_t out, int64_t in, double count) {
  products.push_back({what, tokens, out, in, false, true, false, false, count});
  products.push_back(
      {what, tokens, in, out, false, false, false, false, count});
  products.push_back({what, out, in, tokens, true, false, true, true, count});
}

/// Those of the head for `rows` rows at a time.
std::vector<Product> headProducts(int64_t tokens, int64_t rows, int64_t width,
                                  int64_t vocabulary) {
  double n = static_cast<double>(tokens) / static_cast<double>(rows);
  return {
      {"logits", rows, vocabulary, width, false, true, false, true, n},
      {"head input", rows, width, vocabulary, false, false, false, false, n},
      {"head weight", vocabulary, width, rows, true, false, true, true, n}};
}

/// oneDNN's team, found among the loaded libraries.
void setLibraryThreads(int threads) {
  auto set = reinterpret_cast<void (*)(int)>(
      dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set)
    set(threads);
}

} // namespace

int main(int argc, char **argv) {
  bool verbose = argc == 10 && std::strcmp(argv[9], "--verbose") == 0;
  if (argc != 9 && !verbose) {
    std::fprintf(stderr, "usage: step_floor TOKENS WIDTH INNER KV_WIDTH LAYERS "
                         "VOCABULARY f32|bf16 THREADS [--verbose]\n");
    return 2;
  }
  int64_t t = std::atoll(argv[1]), d = std::atoll(argv[2]),
          inner = std::atoll(argv[3]), kv = std::atoll(argv[4]),
          layers = std::atoll(argv[5]), vocabulary = std::atoll(argv[6]);
  bool bf16 = std::strcmp(argv[7], "bf16") == 0;
  // It gives memory; its team has no worker to get into the library's way.
  auto memory = HostDevice::create(1);
  if (!memory.isOk()) {
    std::fprintf(stderr, "step_floor: %s\n", memory.status().message().c_str());
    return 2;
  }
  setLibraryThreads(std::atoi(argv[8]));
  Floor floor(**memory, bf16);
  double seconds = 0, flops = 0;
  auto timeAll = [&](const std::vector<Product> &products) {
    double sum = 0;
    for (const Product &p : products) {
      double one = floor.time(p), work = 2.0 * static_cast<double>(p.m) *
                                         static_cast<double>(p.n) *
                                         static_cast<double>(p.k);
      sum += p.count * one;
      if (verbose)
        std::printf("{\"what\": \"step_floor.product\", \"name\": \"%s\", "
                    "\"m\": %lld, \"n\": %lld, \"k\": %lld, \"count\": %g, "
                    "\"seconds\": %.6f, \"gflops\": %.1f}\n",
                    p.what, (long long)p.m, (long long)p.n, (long long)p.k,
                    p.count, p.count * one, work / one / 1e9);
    }
    return sum;
  };
  std::vector<Product> layer;
  addLinear(layer, "query, key, value", t, d + 2 * kv, d, layers);
  addLinear(layer, "projection", t, d, d, layers);
  addLinear(layer, "up", t, inner, d, layers);
  addLinear(layer, "down", t, d, inner, layers);
  std::vector<Product> whole = headProducts(t, t, d, vocabulary);
  std::vector<Product> chunked = headProducts(
      t, std::min<int64_t>(t, DYNA_HEAD_CHUNK_ROWS), d, vocabulary);
  seconds = timeAll(layer);
  for (size_t i = 0; i < whole.size(); ++i)
    seconds += std::min(timeAll({whole[i]}), timeAll({chunked[i]}));
  for (const std::vector<Product> *list : {&layer, &whole})
    for (const Product &p : *list)
      flops += p.count * 2.0 * static_cast<double>(p.m) *
               static_cast<double>(p.n) * static_cast<double>(p.k);
  std::printf("{\"what\": \"step_floor\", \"by\": \"onednn\", \"dtype\": "
              "\"%s\", \"threads\": %s, "
              "\"tokens\": %lld, \"seconds\": %.6f, \"gflops\": %.1f, "
              "\"tokens_per_s\": %.1f}\n",
              argv[7], argv[8], (long long)t, seconds, flops / seconds / 1e9,
              static_cast<double>(t) / seconds);
  return 0;
}
