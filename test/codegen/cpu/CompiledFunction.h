//===- CompiledFunction.h - Runs lowered layer functions -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers a module of `dyna.function`s with places, compiles it in memory for
// this machine and calls its functions. The kernels that the code calls are
// stand-ins: one thread, naive loops (TestKernels.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_CODEGEN_CPU_COMPILEDFUNCTION_H
#define DYNA_TEST_CODEGEN_CPU_COMPILEDFUNCTION_H

#include "codegen/cpu/Pipelines.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/abi/Collectives.h"
#include "runtime/abi/Kernels.h"
#include <functional>
#include <string>
#include <vector>

namespace dyna::test {

/// Names and addresses of functions that compiled code calls.
using Kernels = std::vector<std::pair<std::string, void *>>;

/// A compiled module.
class CompiledModule {
public:
  CompiledModule(const std::string &text,
                 const std::string &pipelineOptions = "");
  /// Lowered by other passes, into code that calls `kernels`.
  CompiledModule(const std::string &text,
                 const std::function<void(mlir::OpPassManager &)> &lower,
                 const Kernels &kernels);

  bool ok() const { return engine != nullptr; }
  /// The functions that the module imports.
  const std::vector<std::string> &imports() const { return importNames; }
  dyna_layer_function find(const std::string &name);

private:
  void compile(const std::string &text,
               const std::function<void(mlir::OpPassManager &)> &lower,
               const Kernels &kernels);

  mlir::MLIRContext context;
  std::unique_ptr<mlir::ExecutionEngine> engine;
  std::vector<std::string> importNames;
};

/// The element types that layer functions compute in.
enum class Element { F64, F32, BF16 };
std::string nameOf(Element element);
std::string accumulatorOf(Element element); ///< "f64" or "f32"

/// A compute type, and the type in which gradients of parameters are added up.
struct GradientTypes {
  Element compute, gradient;
};
inline constexpr GradientTypes gradientTypes[] = {
    {Element::F32, Element::F32},
    {Element::F64, Element::F64},
    {Element::BF16, Element::F32},
    {Element::BF16, Element::BF16}};
size_t bytesOf(Element element);

/// An aligned tensor of one element type, read and written as doubles.
class Tensor {
public:
  Tensor(Element element, size_t count);
  Tensor(Element element, const std::vector<double> &values);

  void *data() { return storage.data() + shift; }
  size_t count() const { return size; }
  double get(size_t index) const;
  void set(size_t index, double value);
  std::vector<double> values() const;
  /// Whether the bytes behind the tensor are still what they were.
  bool guardIntact() const;

private:
  Element element;
  size_t size, shift;
  std::vector<unsigned char> storage;
};

/// Everything a call takes, with defaults.
struct Call {
  std::vector<dyna_tensor> params, grads, in, out;
  dyna_saved saved = {};
  void *workspace = nullptr;
  dyna_context context = {};
  std::vector<dyna_segment> segmentRows;
  std::vector<int64_t> rowSample, rowPosition;

  /// Samples of these lengths, from position 0 on.
  explicit Call(const std::vector<int64_t> &lengths);
  int64_t tokens() const { return static_cast<int64_t>(rowSample.size()); }
  dyna_status run(dyna_layer_function function);
};

/// What the stand-ins saw.
struct KernelLog {
  std::vector<dyna_attention> attention;
  std::vector<dyna_attention_grad> attentionGrad;
  std::vector<dyna_head> head;
  std::vector<dyna_matmul> matmul;
  /// Exchanges along one dimension, with their names.
  std::vector<std::pair<std::string, dyna_collective>> collectives;
  std::vector<dyna_transposition> transpositions;
  std::vector<std::vector<dyna_exchange>> exchanges; ///< by call
  int launches = 0;
  /// If not negative, the launch of this number fails.
  int failingLaunch = -1;
};
KernelLog &kernelLog();

/// The stand-ins.
Kernels testKernels();

} // namespace dyna::test

#endif // DYNA_TEST_CODEGEN_CPU_COMPILEDFUNCTION_H
