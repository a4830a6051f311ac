//===- CompiledFunction.cpp - Runs lowered layer functions -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/codegen/cpu/CompiledFunction.h"

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <algorithm>
#include <cstring>

using namespace dyna::test;

CompiledModule::CompiledModule(const std::string &text,
                               const std::string &pipelineOptions) {
  mlir::dyna::cpu::LowerCpuOptions options;
  if (succeeded(options.parseFromString(pipelineOptions)))
    compile(
        text,
        [&](mlir::OpPassManager &manager) {
          mlir::dyna::cpu::buildLowerCpuPipeline(manager, options);
        },
        testKernels());
}

CompiledModule::CompiledModule(
    const std::string &text,
    const std::function<void(mlir::OpPassManager &)> &lower,
    const Kernels &kernels) {
  compile(text, lower, kernels);
}

void CompiledModule::compile(
    const std::string &text,
    const std::function<void(mlir::OpPassManager &)> &lower,
    const Kernels &kernels) {
  static bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);

  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return;
  mlir::PassManager manager(&context);
  lower(manager);
  if (failed(manager.run(*module)))
    return;
  for (auto function : module->getOps<mlir::LLVM::LLVMFuncOp>())
    if (function.isExternal())
      importNames.push_back(function.getName().str());

  auto machine = llvm::cantFail(
      llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost())
          .setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive)
          .createTargetMachine());
  auto transformer =
      mlir::makeOptimizingTransformer(/*optLevel=*/3, 0, machine.get());
  mlir::ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Aggressive;
  auto created =
      mlir::ExecutionEngine::create(*module, options, std::move(machine));
  if (!created) {
    llvm::errs() << toString(created.takeError()) << "\n";
    return;
  }
  engine = std::move(*created);
  engine->registerSymbols([&](llvm::orc::MangleAndInterner intern) {
    llvm::orc::SymbolMap symbols;
    for (auto &[name, address] : kernels)
      symbols[intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported};
    return symbols;
  });
}

dyna_layer_function CompiledModule::find(const std::string &name) {
  auto address = engine->lookup(name);
  if (!address) {
    llvm::errs() << toString(address.takeError()) << "\n";
    return nullptr;
  }
  return reinterpret_cast<dyna_layer_function>(*address);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

std::string dyna::test::nameOf(Element element) {
  return element == Element::F64   ? "f64"
         : element == Element::F32 ? "f32"
                                   : "bf16";
}

std::string dyna::test::accumulatorOf(Element element) {
  return element == Element::F64 ? "f64" : "f32";
}

size_t dyna::test::bytesOf(Element element) {
  return element == Element::F64 ? 8 : element == Element::F32 ? 4 : 2;
}

static constexpr size_t guardBytes = 256;
static constexpr unsigned char guard = 0xA5;

Tensor::Tensor(Element element, size_t count) : element(element), size(count) {
  storage.assign(size * bytesOf(element) + guardBytes + 64, guard);
  shift = (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
}

Tensor::Tensor(Element element, const std::vector<double> &values)
    : Tensor(element, values.size()) {
  for (size_t i = 0; i < values.size(); ++i)
    set(i, values[i]);
}

double Tensor::get(size_t index) const {
  const unsigned char *at = storage.data() + shift + index * bytesOf(element);
  if (element == Element::F64) {
    double value;
    std::memcpy(&value, at, 8);
    return value;
  }
  uint32_t bits = 0;
  if (element == Element::F32)
    std::memcpy(&bits, at, 4);
  else
    std::memcpy(reinterpret_cast<char *>(&bits) + 2, at, 2);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void Tensor::set(size_t index, double number) {
  unsigned char *at = storage.data() + shift + index * bytesOf(element);
  if (element == Element::F64) {
    std::memcpy(at, &number, 8);
    return;
  }
  float value = static_cast<float>(number);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (element == Element::F32) {
    std::memcpy(at, &bits, 4);
    return;
  }
  bits += 0x7FFF + (bits >> 16 & 1);
  std::memcpy(at, reinterpret_cast<char *>(&bits) + 2, 2);
}

std::vector<double> Tensor::values() const {
  std::vector<double> result(size);
  for (size_t i = 0; i < size; ++i)
    result[i] = get(i);
  return result;
}

bool Tensor::guardIntact() const {
  for (size_t i = shift + size * bytesOf(element); i < storage.size(); ++i)
    if (storage[i] != guard)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Call::Call(const std::vector<int64_t> &lengths) {
  int64_t begin = 0, sample = 7;
  for (int64_t length : lengths) {
    segmentRows.push_back({sample, begin, length, begin, length, 0});
    for (int64_t i = 0; i < length; ++i) {
      rowSample.push_back(sample);
      rowPosition.push_back(i);
    }
    begin += length;
    sample += 3;
  }
  context.abi_version = DYNA_ABI_VERSION;
  context.seed = 42;
  context.step = 5;
  context.layer = 2;
  context.inverse_targets = 0.125;
}

dyna_status Call::run(dyna_layer_function function) {
  int64_t longest = 0, pairs = 0, causalPairs = 0;
  for (const dyna_segment &segment : segmentRows) {
    longest = std::max(longest, segment.q_len);
    pairs += dyna_visible_pairs(&segment, 0);
    causalPairs += dyna_visible_pairs(&segment, 1);
  }
  dyna_segments segments = {segmentRows.data(),
                            static_cast<int64_t>(segmentRows.size()),
                            tokens(),
                            tokens(),
                            rowSample.data(),
                            rowPosition.data(),
                            longest,
                            longest,
                            tokens(),
                            pairs,
                            causalPairs,
                            /*keys_are_queries=*/1,
                            /*stored=*/0,
                            nullptr,
                            {},
                            {},
                            nullptr};
  return function(&context, params.data(), grads.data(), &saved, workspace,
                  segmentRows.empty() && !tokens() ? nullptr : &segments,
                  in.data(), out.data());
}
