//===- Blas.cpp - Opens cuBLASLt at run time ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/Blas.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/device/cuda/driver/Library.h"

using namespace dyna;
using namespace dyna::cuda;

static std::string textOf(int64_t version) {
  return formatText("%d.%d.%d", version / 10000, version / 100 % 100,
                    version % 100);
}

StatusOr<Blas> Blas::open() {
  DYNA_ASSIGN_OR_RETURN(Library library, Library::open({"libcublasLt.so.13",
                                                        "libcublasLt.so.12"}));
  Blas blas;
  blas.path = library.path();
  const char *missing = nullptr;
#define DYNA_CUDA_FIND(member, symbol, ...)                                    \
  blas.member = reinterpret_cast<member##_type *>(library.find(#symbol));      \
  if (!blas.member && !missing)                                                \
    missing = #symbol;
  DYNA_CUDA_BLAS_FUNCTIONS(DYNA_CUDA_FIND)
#undef DYNA_CUDA_FIND

  if (blas.libraryVersion)
    blas.version = static_cast<int64_t>(blas.libraryVersion());
  if (missing || blas.version < kOldestBlas) {
    std::string lacks = missing ? formatText(" and lacks %s", missing) : "";
    return Status::invalidArgument(formatText(
        "%s is of version %s%s; %s or newer is needed", printable(blas.path),
        textOf(blas.version), lacks, textOf(kOldestBlas)));
  }
  return blas;
}

std::string Blas::versionText() const { return textOf(version); }

std::string Blas::describe(BlasResult result) const {
  const char *name = statusName(result);
  return name ? std::string(name) : formatText("error %d of cuBLASLt", result);
}
