//===- BlasProducts.h - Runs matrix products by cuBLASLt --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library is column-major: a row-major C = op(A) op(B) is its transpose
// there, op(B)' op(A)'. So A and B change places and nothing is copied.
//
// An algorithm is chosen once per class of products (ProductClass.h), when the
// first of the class comes. It is the fastest one in a file of an earlier run,
// or else the first that the library proposes. Neither waits. `measure` times
// all proposals for the classes seen so far.
//
// Sums over k are always f32 (f64 for f64). Algorithms that add parts in
// another type, or in a varying order, are not used.
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

/// Device memory that algorithms may use, aligned to kBlasWorkspaceAlignment.
/// One product at a time uses it: a product on another stream waits.
struct BlasWorkspace {
  Address address = 0;
  int64_t bytes = 0;
};

/// Returns the bytes of workspace with which the library's algorithms reach
/// full speed on a device of this capability.
int64_t blasWorkspaceBytes(int capability);

/// Returns true if the library's epilogues are faster on such a device than a
/// separate pass after the product.
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

  /// Gives the product to the stream. `p` has no size of 0, and no epilogue
  /// except a described one. Returns false, and gives nothing, if the library
  /// has no algorithm for it.
  StatusOr<bool> multiply(ProductKind kind, const dyna_matmul &p,
                          StreamHandle stream);

  /// Times the proposed algorithms of every class that was seen and not timed,
  /// on memory of its own. A class for which memory does not suffice keeps its
  /// first algorithm. Begins no further class after `seconds`; the rest is for
  /// the next call. Returns the number of timed classes. Waits, so it is not
  /// called in a step. The device should have no other work.
  StatusOr<int64_t> measure(StreamHandle stream, double seconds,
                            Device::Deadline deadline);

  /// Get and set the algorithms that were timed, with the settings that they
  /// are valid for. `use` replaces no algorithm that was already chosen.
  ProductRecords records() const;
  void use(const ProductRecords &records);
  /// Returns records without timed algorithms, for this device and library.
  ProductRecords noRecords() const;

  const Blas &library() const { return blas_; }
  /// Returns the number of classes that `measure` has not reached.
  int64_t unmeasured() const;

private:
  /// One class: its description for the library, and the proposed algorithms.
  struct Case {
    BlasOperation *operation = nullptr;
    BlasLayout *a = nullptr, *b = nullptr, *c = nullptr; ///< of Kernels.h
    int64_t m = 0, n = 0, k = 0;     ///< sizes of the layouts
    std::vector<BlasChoice> choices; ///< the first is taken; none: not done
    bool isTimed = false;
    bool isMeasured = false; ///< timed, or found to be impossible to time
    double microseconds = 0;
  };

  BlasProducts(std::shared_ptr<PrimaryContext> context, Blas blas,
               BlasWorkspace workspace, bool tf32)
      : context_(std::move(context)), blas_(std::move(blas)),
        workspace_(workspace), tf32_(tf32) {}

  /// Returns OK, or the failure of `what`.
  Status check(BlasResult result, const char *what) const;
  StatusOr<Case *> caseOf(const ProductClass &shape);
  Status describe(const ProductClass &shape, Case &made);
  Status resize(Case &made, const ProductClass &shape, int64_t m, int64_t n,
                int64_t k);
  /// Returns up to `count` algorithms for the present layouts.
  StatusOr<std::vector<BlasChoice>>
  propose(const Case &made, const ProductClass &shape, int count);
  /// Sets the addresses of bias and aux, for a class that has them.
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
  StreamHandle lastStream_ = nullptr; ///< that last used the workspace
  std::map<ProductClass, Case> cases_;
  std::map<ProductClass, ProductRecord> records_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLASPRODUCTS_H
