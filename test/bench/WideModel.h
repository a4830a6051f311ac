//===- WideModel.h - The tiny model at any width ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What plans and switches take depends on sizes that are numbers of a manifest,
// not on functions that are there.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_WIDEMODEL_H
#define DYNA_TEST_BENCH_WIDEMODEL_H

#include "test/runtime/executor/TinyModel.h"

namespace bench {

/// Makes every dimension of the tiny model's width `width`. Its functions do not
/// fit it any more; none is called.
inline void widen(google::protobuf::Message &message, int64_t width) {
  const auto *reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor *> fields;
  reflection->ListFields(message, &fields);
  for (const auto *field : fields) {
    if (field->name() == "shape")
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        if (reflection->GetRepeatedInt64(message, field, i) == dyna::tinyWidth)
          reflection->SetRepeatedInt64(&message, field, i, width);
    if (field->name() == "tq") // bytes of activations: enough of them
      reflection->SetInt64(&message, field,
                           reflection->GetInt64(message, field) *
                               (width / dyna::tinyWidth + 1));
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
      continue;
    if (!field->is_repeated())
      widen(*reflection->MutableMessage(&message, field), width);
    for (int i = 0;
         field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
      widen(*reflection->MutableRepeatedMessage(&message, field, i), width);
  }
}

} // namespace bench

#endif // DYNA_TEST_BENCH_WIDEMODEL_H
