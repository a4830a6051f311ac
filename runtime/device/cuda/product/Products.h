//===- Products.h - Matrix products of a CUDA device ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// cuBLASLt where it is found and has an algorithm; the rest is for kernels of our
// own (Matmul.cpp). Nothing here waits but `measure`.
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
  bool tf32 =
      false; ///< products of f32 may round operands to 10 bits (cuBLASLt)
  /// Whether cuBLASLt does described epilogues; unset: as is faster on the
  /// device. Otherwise a kernel of our own follows the product.
  std::optional<bool> epilogues;
  /// Where algorithms that were timed are kept; empty: nowhere, and none is.
  std::string file;
  /// Nothing is timed: an algorithm is the file's, which has to be there, or else
  /// the library's first. So the same products have the same bits in every run.
  bool isFixed = false;
};

class Products {
public:
  /// Opens the library and takes its workspace. No library is no failure; a file
  /// that is none, or cannot be written, is.
  static StatusOr<std::unique_ptr<Products>>
  create(std::shared_ptr<PrimaryContext> context,
         const ProductOptions &options);
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;
  ~Products();

  /// "products by cuBLASLt 13.0.2, algorithms of 14 classes timed", or why by own
  /// kernels.
  std::string describe() const;
  /// Empty where the library is used.
  const std::string &whyNot() const { return whyNot_; }
  int64_t scratchBytes() const { return workspace_.bytes; }

  /// Gives the product to the stream; `p` has no epilogue but a described one,
  /// sizes may be 0. False: nothing was given, it is for kernels of our own, or,
  /// with an epilogue, to be asked for without.
  StatusOr<bool> multiply(ProductKind kind, const dyna_matmul &p,
                          StreamHandle stream);

  /// Classes of products, since the start, that `measure` is to time; none without
  /// a file.
  int64_t unmeasured() const;
  /// Times the algorithms of these and takes the fastest from now on, for about
  /// `seconds`; returns of how many classes. Waits: between steps.
  StatusOr<int64_t> measure(StreamHandle stream, double seconds,
                            Device::Deadline deadline);
  /// Writes what was timed into the file, for later runs.
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
  std::string whyNot_; ///< the library is not used
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTS_H
