//===- Products.cpp - Runs matrix products of a CUDA device ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/Products.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

using namespace dyna;
using namespace dyna::cuda;

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<Products>>
Products::create(std::shared_ptr<PrimaryContext> context,
                 const ProductOptions &options) {
  std::unique_ptr<Products> made(new Products(std::move(context), options));
  if (!options.useLibrary)
    made->whyNot_ = "cuBLASLt is not wanted";
  else
    DYNA_RETURN_IF_ERROR(made->openLibrary());
  if (made->blas_ && !options.file.empty())
    DYNA_RETURN_IF_ERROR(made->readRecords());
  return made;
}

Status Products::openLibrary() {
  StatusOr<Blas> blas = Blas::open();
  if (!blas.isOk()) {
    whyNot_ = blas.status().message();
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(context_->enter());
  const int64_t bytes = blasWorkspaceBytes(context_->capability());
  Result result = context_->driver().allocate(&workspace_.address,
                                              static_cast<size_t>(bytes));
  if (result == kOutOfMemory)
    return Status::resourceExhausted(
        formatText("%s has not the %s of memory left that cuBLASLt works in",
                   context_->label(), formatBytes(bytes)));
  DYNA_RETURN_IF_ERROR(
      context_->check(result, "taking the workspace of cuBLASLt"));
  workspace_.bytes = bytes;
  auto made = BlasProducts::create(context_, *blas, workspace_, options_.tf32);
  if (!made.isOk())
    return Status(made.status().code(),
                  made.status().message() +
                      ": DYNA_CUDA_LIBRARY_PATH may name a folder of another; "
                      "without one, products are by own kernels");
  blas_ = std::move(*made);
  return Status::ok();
}

Products::~Products() {
  blas_.reset();
  if (workspace_.bytes > 0 && context_->awaitIdle())
    (void)context_->driver().release(workspace_.address);
}

Status Products::readRecords() {
  auto refuse = [&](const char *why) {
    return Status::invalidArgument(
        formatText("%s %s, and none is to be timed: run once without that, for "
                   "some steps, and the file is written",
                   printable(options_.file), why));
  };
  if (!options_.isFixed)
    DYNA_RETURN_IF_ERROR(OutputFile::checkReplace(options_.file));
  if (!fileExists(options_.file))
    return options_.isFixed
               ? refuse("has no algorithms of products: there is no such file")
               : Status::ok();
  DYNA_ASSIGN_OR_RETURN(ProductRecords records, readProductFile(options_.file));
  if (records.fits(blas_->noRecords()))
    blas_->use(records);
  else if (options_.isFixed)
    return refuse("has algorithms of products of another device, library or "
                  "setting of TF32");
  // Records of another device are ignored: timing makes new ones that replace
  // them.
  return Status::ok();
}

std::string Products::describe() const {
  if (!blas_)
    return "products by own kernels (" + whyNot_ + ")";
  std::string text = "products by cuBLASLt " + blas_->library().versionText();
  if (options_.tf32)
    text += " with TF32";
  if (!takesEpilogues_)
    text += ", epilogues by own kernels";
  if (size_t timed = blas_->records().products.size())
    text += formatText(", algorithms of %d classes timed", timed);
  if (options_.isFixed)
    text += ", none to be timed";
  return text;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Clears the result: a sum over nothing is 0.
Status Products::clear(ProductKind kind, const dyna_matmul &p,
                       StreamHandle stream) {
  const int64_t element = resultBytes(kind);
  return context_->checkWork(
      context_->driver().fillRows(reinterpret_cast<Address>(p.c),
                                  static_cast<size_t>(p.ldc * element), 0,
                                  static_cast<size_t>(p.n * element),
                                  static_cast<size_t>(p.m), stream),
      "clearing a product");
}

StatusOr<bool> Products::multiply(ProductKind kind, const dyna_matmul &p,
                                  StreamHandle stream) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  if (p.m == 0 || p.n == 0 || (p.k == 0 && p.accumulate))
    return true;
  if (p.described && (p.k == 0 || !takesEpilogues_))
    return false;
  if (p.k == 0) {
    DYNA_RETURN_IF_ERROR(clear(kind, p, stream));
    return true;
  }
  return blas_ ? blas_->multiply(kind, p, stream) : StatusOr<bool>(false);
}

int64_t Products::unmeasured() const {
  return blas_ && !options_.file.empty() && !options_.isFixed
             ? blas_->unmeasured()
             : 0;
}

StatusOr<int64_t> Products::measure(StreamHandle stream, double seconds,
                                    Device::Deadline deadline) {
  return unmeasured() > 0 ? blas_->measure(stream, seconds, deadline)
                          : StatusOr<int64_t>(0);
}

Status Products::keep() const {
  return blas_ && !options_.file.empty() && !options_.isFixed
             ? writeProductFile(options_.file, blas_->records())
             : Status::ok();
}
