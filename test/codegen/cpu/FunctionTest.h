//===- FunctionTest.h - Tests of one layer function -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_CODEGEN_CPU_FUNCTIONTEST_H
#define DYNA_TEST_CODEGEN_CPU_FUNCTIONTEST_H

#include "test/codegen/cpu/CompiledFunction.h"
#include <gtest/gtest.h>

namespace dyna::test {

/// What every `dyna.function @f of @l` needs before it.
inline constexpr const char *layer =
    "dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : "
    "tensor<?x8xf32> }\n";

/// Values that differ from element to element and are exact in bf16.
inline Tensor pattern(Element element, size_t count, int seed) {
  Tensor tensor(element, count);
  for (size_t i = 0; i < count; ++i)
    tensor.set(i, double((i * 7 + seed * 5) % 13) / 4.0 - 1.5);
  return tensor;
}

/// What a tensor of `element` has after `value` is stored there.
inline double rounded(Element element, double value) {
  return Tensor(element, std::vector<double>{value}).get(0);
}

inline std::string replaceAll(std::string text, const std::string &from,
                              const std::string &to) {
  for (size_t at; (at = text.find(from)) != std::string::npos;)
    text.replace(at, from.size(), to);
  return text;
}

class FunctionTest : public testing::Test {
protected:
  void SetUp() override { kernelLog() = KernelLog(); }

  dyna_status run(const std::string &text, Call &call,
                  const std::string &options = "") {
    module = std::make_unique<CompiledModule>(declared + text, options);
    EXPECT_TRUE(module->ok());
    if (!call.workspace)
      call.workspace = workspace.data();
    return module->ok() ? call.run(module->find("f")) : DYNA_INTERNAL;
  }

  const char *declared = layer; ///< what stands before the function
  std::unique_ptr<CompiledModule> module;
  Tensor workspace = Tensor(Element::F64, 1 << 16);
};

} // namespace dyna::test

#endif // DYNA_TEST_CODEGEN_CPU_FUNCTIONTEST_H
