//===- Products.h - Runs matrix products of a CUDA device -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Uses cuBLASLt if it is found and has an algorithm. Our own kernels run the
// rest (Matmul.cpp). Only `measure` waits.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTS_H

#include "runtime/device/cuda/product/BlasProducts.h"

#include <memory>
#include <optional>
#include <string>

namespace dyna::cuda {

struct ProductOptions {
  bool useLibrary = true; ///< cuBLASLt, if there is one
  bool tf32 = false; ///< f32 products may round operands to 10 bits (cuBLASLt)
  /// True if cuBLASLt runs described epilogues; false if our own kernel follows
  /// the product. Unset: the faster one on the device.
  std::optional<bool> epilogues;
  /// File for timed algorithms; empty: none, and nothing is timed.
  std::string file;
  /// Times nothing. Algorithms are those of the file, which must exist, or else
  /// the library's first. So the same products have the same bits in every run.
  bool isFixed = false;
};

class Products {
public:
  /// Opens the library and allocates its workspace. A missing library is no
  /// failure. Fails if the file has another form or cannot be written.
  static StatusOr<std::unique_ptr<Products>>
  create(std::shared_ptr<PrimaryContext> context,
         const ProductOptions &options);
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;
  ~Products();

  /// Describes the library: "products by cuBLASLt 13.0.2, algorithms of 14
  /// classes timed", or why our own kernels are used.
  std::string describe() const;
  /// Returns why the library is not used; empty if it is.
  const std::string &whyNot() const { return whyNot_; }
  int64_t scratchBytes() const { return workspace_.bytes; }

  /// Gives the product to the stream. `p` has no epilogue except a described
  /// one, and sizes may be 0. Returns false, and gives nothing, if our own
  /// kernels must run it. With an epilogue, the caller then first tries the
  /// product without.
  StatusOr<bool> multiply(ProductKind kind, const dyna_matmul &p,
                          StreamHandle stream);

  /// Returns the number of classes of products since the start that `measure`
  /// has to time; 0 without a file.
  int64_t unmeasured() const;
  /// Times the algorithms of these classes for about `seconds`, and uses the
  /// fastest from now on. Returns the number of timed classes. Waits, so it is
  /// called between steps.
  StatusOr<int64_t> measure(StreamHandle stream, double seconds,
                            Device::Deadline deadline);
  /// Writes the timed algorithms to the file, for later runs.
  Status keep() const;

private:
  Products(std::shared_ptr<PrimaryContext> context,
           const ProductOptions &options)
      : context_(std::move(context)), options_(options),
        takesEpilogues_(options.epilogues.value_or(
            hasFastEpilogues(context_->capability()))) {}
  Status openLibrary();
  Status readRecords();
  Status clear(ProductKind kind, const dyna_matmul &p, StreamHandle stream);

  std::shared_ptr<PrimaryContext> context_;
  ProductOptions options_;
  bool takesEpilogues_;
  BlasWorkspace workspace_; ///< none without a library
  std::unique_ptr<BlasProducts> blas_;
  std::string whyNot_; ///< why the library is not used
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTS_H
