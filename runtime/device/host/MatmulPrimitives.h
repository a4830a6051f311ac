//===- MatmulPrimitives.h - Caches oneDNN's matmul by shape -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// oneDNN's matmul primitive, with one thread per call. It is its only product
// of bf16, and for f32 it is often faster than sgemm. Code is generated for one
// shape, so shapes are cached. Micro-batches are ragged, so sizes that vary are
// cut into pieces of few different lengths (`pieces`).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_MATMULPRIMITIVES_H
#define DYNA_RUNTIME_DEVICE_HOST_MATMULPRIMITIVES_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

struct dnnl_engine;
struct dnnl_primitive;

namespace dyna {

struct KernelTable;

/// Returns true if oneDNN's bf16 product is clearly faster on this processor
/// than one in f32.
bool isNativeBf16Faster(const KernelTable &kernels);

/// Cuts `size` into pieces of `most`. The rest is cut into smaller powers of
/// two down to 32, and one last piece. There are at most 31 + log2(most / 16)
/// different lengths.
std::vector<int64_t> pieces(int64_t size, int64_t most);

class MatmulPrimitives {
public:
  /// Types of A and B, and of C.
  enum class Types { F32, Bf16, Bf16ToF32 };

  /// Shape of one product.
  struct Shape {
    int64_t m, n, k, lda, ldb, ldc;
    bool transposeA, transposeB, accumulate;
    Types types;
    bool operator<(const Shape &other) const { return key() < other.key(); }

  private:
    std::array<int64_t, 7> key() const {
      return {m,
              n,
              k,
              lda,
              ldb,
              ldc,
              transposeA + 2 * transposeB + 4 * accumulate +
                  8 * static_cast<int64_t>(types)};
    }
  };

  /// Returns null if the library cannot be used.
  static std::unique_ptr<MatmulPrimitives> create();
  ~MatmulPrimitives();

  /// Makes the code for a shape. Returns false if oneDNN has none, or none that
  /// is better than its sgemm (f32). Not thread-safe.
  bool prepare(const Shape &shape);
  /// Returns true if code could not be made because a limit of this process
  /// leaves too little memory (see availableAddresses).
  bool lacksMemory() const { return lacksMemory_; }
  /// Returns the scratch bytes that are enough for every prepared shape.
  int64_t scratchBytes() const { return scratchBytes_; }
  /// Runs a prepared shape. Several threads may call it at once, each with its
  /// own scratch.
  bool run(const Shape &shape, const void *a, const void *b, void *c,
           void *scratch) const;

private:
  struct Product;
  MatmulPrimitives() = default;

  std::unique_ptr<Product> make(const Shape &shape);

  dnnl_engine *engine_ = nullptr;
  bool lacksMemory_ = false;
  /// Null for a shape that oneDNN has no code for.
  std::map<Shape, std::unique_ptr<Product>> products_;
  int64_t scratchBytes_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_MATMULPRIMITIVES_H
