//===- BlasProducts.h - Matrix products by cuBLASLt -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library is column-major: a row-major C = op(A) op(B) is its transpose there,
// op(B)' op(A)', so that A and B change places and nothing is copied.
//
// An algorithm is chosen once per class of products (ProductClass.h), when the
// first of a class comes: that which a file of an earlier run says is fastest,
// else the first that the library proposes. Neither waits. `measure` times all
// that are proposed for the classes seen so far.
//
// Sums over k are f32 throughout (f64 of f64): algorithms that add parts in
// another type, or in an order that changes, are not taken.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASPRODUCTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASPRODUCTS_H

#include "runtime/device/cuda/driver/PrimaryContext.h"
#include "runtime/device/cuda/product/Blas.h"
#include "runtime/device/cuda/product/ProductFile.h"

#include <map>
#include <memory>
#include <vector>

namespace dyna::cuda {

/// Memory of the device, aligned to kBlasWorkspaceAlignment, that algorithms may
/// use. One product at a time has it: on another stream, a product waits.
struct BlasWorkspace {
  Address address = 0;
  int64_t bytes = 0;
};

/// Bytes of workspace by which the library's algorithms for a device of this
/// capability are as fast as with more.
int64_t blasWorkspaceBytes(int capability);

/// Whether the library's epilogues are faster on such a device than a pass over
/// the product behind it.
bool hasFastEpilogues(int capability);

class BlasProducts {
public:
  /// Binds a handle of the library to the device. `tf32`: products of f32 may
  /// round their operands to 10 bits of mantissa.
  static StatusOr<std::unique_ptr<BlasProducts>>
  create(std::shared_ptr<PrimaryContext> context, Blas blas,
         BlasWorkspace workspace, bool tf32);
  BlasProducts(const BlasProducts &) = delete;
  BlasProducts &operator=(const BlasProducts &) = delete;
  ~BlasProducts();

  /// Gives the product to the stream; `p` has no size of 0, and no epilogue but a
  /// described one. False: the library has no algorithm for it, and nothing was
  /// given.
  StatusOr<bool> multiply(ProductKind kind, const dyna_matmul &p,
                          StreamHandle stream);

  /// Times the proposed algorithms of every class that was seen and not timed, on
  /// memory of its own; a class for which there is none left keeps its first one.
  /// Begins with no class after `seconds`: those left are for the next call.
  /// Returns how many were timed.
  /// Waits: not inside of a step. All other work of the device should be done.
  StatusOr<int64_t> measure(StreamHandle stream, double seconds,
                            Device::Deadline deadline);

  /// Algorithms that earlier runs timed, and what they were timed for; replaces
  /// none that was chosen already.
  ProductRecords records() const;
  void use(const ProductRecords &records);
  /// Records with nothing timed, for this device and library.
  ProductRecords noRecords() const;

  const Blas &library() const { return blas_; }
  /// Classes that `measure` has not come to.
  int64_t unmeasured() const;

private:
  /// One class: what the library is told of it, and what it proposed.
  struct Case {
    BlasOperation *operation = nullptr;
    BlasLayout *a = nullptr, *b = nullptr, *c = nullptr; ///< of Kernels.h
    int64_t m = 0, n = 0, k = 0;     ///< that the layouts have
    std::vector<BlasChoice> choices; ///< the first is taken; none: not done
    bool isTimed = false;
    bool isMeasured = false; ///< timed, or found to be impossible to time
    double microseconds = 0;
  };

  BlasProducts(std::shared_ptr<PrimaryContext> context, Blas blas,
               BlasWorkspace workspace, bool tf32)
      : context_(std::move(context)), blas_(std::move(blas)),
        workspace_(workspace), tf32_(tf32) {}

  /// OK, or that the library cannot do `what`.
  Status check(BlasResult result, const char *what) const;
  StatusOr<Case *> caseOf(const ProductClass &shape);
  Status describe(const ProductClass &shape, Case &made);
  Status resize(Case &made, const ProductClass &shape, int64_t m, int64_t n,
                int64_t k);
  /// Up to `count` algorithms for the layouts as they are.
  StatusOr<std::vector<BlasChoice>>
  propose(const Case &made, const ProductClass &shape, int count);
  /// Where bias and aux lie, of a class that has them.
  BlasResult setEpiloguePointers(const Case &made, const void *bias,
                                 const void *aux);
  BlasResult call(const Case &made, ProductKind kind, const dyna_matmul &p,
                  const BlasChoice &choice, StreamHandle stream);
  Status measureCase(const ProductClass &shape, Case &made, StreamHandle stream,
                     Device::Deadline deadline);
  StatusOr<double> time(const ProductClass &shape, const Case &made,
                        const dyna_matmul &p, const BlasChoice &choice,
                        StreamHandle stream, Device::Deadline deadline);
  void destroy(Case &made);

  std::shared_ptr<PrimaryContext> context_;
  Blas blas_;
  BlasWorkspace workspace_;
  bool tf32_;
  BlasHandle handle_ = nullptr;
  StreamHandle lastStream_ = nullptr; ///< which used the workspace
  std::map<ProductClass, Case> cases_;
  std::map<ProductClass, ProductRecord> records_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASPRODUCTS_H
