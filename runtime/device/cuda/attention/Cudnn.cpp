//===- Cudnn.cpp - Opens cuDNN at run time --------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/Cudnn.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <optional>

using namespace dyna;
using namespace dyna::cuda;

static std::string textOf(int64_t version) {
  return formatText("%d.%d.%d", version / 10000, version / 100 % 100,
                    version % 100);
}

std::string Cudnn::versionText() const { return textOf(version); }

#ifdef DYNA_HAS_CUDNN

StatusOr<Cudnn> Cudnn::open() {
  static std::optional<Cudnn> opened;
  if (opened)
    return *opened;
  DYNA_ASSIGN_OR_RETURN(Library library, Library::open({"libcudnn.so.9"}));
  auto *ask = reinterpret_cast<size_t (*)()>(library.find("cudnnGetVersion"));
  const int64_t version = ask ? static_cast<int64_t>(ask()) : 0;
  if (version < kOldestCudnn)
    return Status::invalidArgument(formatText(
        "%s is of version %s; %s or newer is needed", printable(library.path()),
        textOf(version), textOf(kOldestCudnn)));
  opened = Cudnn{library, version};
  return *opened;
}

#else

StatusOr<Cudnn> Cudnn::open() {
  return Status::invalidArgument(
      "compiled without the headers of cuDNN and of its frontend");
}

#endif
