//===- ProductFile.h - Algorithms of products, in a file --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Text, with a version and a checksum. What was timed counts for the device, the
// library and the settings that the file names, and for no other.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTFILE_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTFILE_H

#include "runtime/device/cuda/product/BlasApi.h"
#include "runtime/device/cuda/product/ProductClass.h"

#include <string>
#include <vector>

namespace dyna::cuda {

/// The fastest algorithm of a class.
struct ProductRecord {
  ProductClass shape;
  BlasAlgorithm algorithm = {};
  int64_t workspaceBytes = 0;
  double microseconds = 0; ///< of a product of the rounded sizes
};

struct ProductRecords {
  std::string device;         ///< its name and capability
  int64_t library = 0;        ///< version
  int64_t workspaceBytes = 0; ///< that algorithms were allowed
  bool tf32 = false;
  std::vector<ProductRecord> products;

  /// Whether algorithms of the one may be used for the other.
  bool fits(const ProductRecords &other) const {
    return device == other.device && library == other.library &&
           workspaceBytes == other.workspaceBytes && tf32 == other.tf32;
  }
};

/// InvalidArgument, with the file and line, when it is not such a file.
StatusOr<ProductRecords> readProductFile(const std::string &path);
/// Replaces the file as a whole.
Status writeProductFile(const std::string &path, const ProductRecords &records);

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTFILE_H
