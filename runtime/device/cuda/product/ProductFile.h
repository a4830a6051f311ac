//===- ProductFile.h - Stores algorithms of products in a file --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads and writes text with a version and a checksum. The timed algorithms are
// valid only for the device, the library and the settings that the file names.
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
  int64_t workspaceBytes = 0; ///< allowed to algorithms
  bool tf32 = false;
  std::vector<ProductRecord> products;

  /// Returns true if algorithms of one may be used for the other.
  bool fits(const ProductRecords &other) const {
    return device == other.device && library == other.library &&
           workspaceBytes == other.workspaceBytes && tf32 == other.tf32;
  }
};

/// Reads a file. Fails with InvalidArgument, and the file and line, if it has
/// another form.
StatusOr<ProductRecords> readProductFile(const std::string &path);
/// Replaces the file as a whole.
Status writeProductFile(const std::string &path, const ProductRecords &records);

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTFILE_H
