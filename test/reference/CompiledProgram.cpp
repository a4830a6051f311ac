//===- CompiledProgram.cpp - A module compiled in this process ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/CompiledProgram.h"

#include "codegen/cpu/Pipelines.h"
#include "codegen/cuda/Passes.h"
#include "codegen/cuda/Pipelines.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/Pipelines.h"
#include "passes/memory/place/KeyStore.h"
#include "passes/memory/value/Target.h"
#include "runtime/abi/Collectives.h"
#include "runtime/abi/Kernels.h"
#include "test/reference/Emulation.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <set>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::reference;

CompiledProgram::CompiledProgram() = default;
CompiledProgram::~CompiledProgram() = default;

/// The sizes that tiers and workspaces have, and which functions there are.
bool CompiledProgram::readMemory(ModuleOp module) {
  for (LayerOp layer : module.getOps<LayerOp>()) {
    CompiledLayer &compiled = layers[layer.getSymName().str()];
    std::optional<ArrayAttr> tiers = layer.getTiers();
    if (!tiers || tiers->size() != 4)
      return false;
    for (auto [i, place] : llvm::enumerate(tiers->getAsRange<PlaceAttr>()))
      compiled.tiers[i] = place.getOffset();
  }
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    if (!gradients)
      gradients = function.getGradientElementType();
    PlaceAttr workspace = function.getWorkspaceAttr();
    layers[function.getLayer().str()].functions[function.getRole()] = {
        nullptr, workspace ? workspace.getOffset() : LinearBytes()};
  }
  return true;
}

/// Finds where the attentions of each layer have their keys, values and gradients.
bool CompiledProgram::readStores(ModuleOp module) {
  std::set<std::pair<std::string, int64_t>> seen;
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    const std::string name = function.getLayer().str();
    FailureOr<KeyStore> store = KeyStore::create(module, name);
    if (failed(store))
      return false;
    CompiledLayer &layer = layers[name];
    layer.keyRowBytes = store->getRowBytes();
    layer.gradientRowBytes = store->getGradientRowBytes();
    function.walk([&](AttentionOp op) {
      const auto number = static_cast<int64_t>(op.getNumber());
      if (!seen.insert({name, number}).second)
        return;
      const KeyStore::Columns columns = store->columnsOf(number);
      const int64_t element = layer.keyRowBytes / store->getStride();
      const int64_t sum = layer.gradientRowBytes / store->getGradientStride();
      const int64_t heads = op.getKvHeads();
      const int64_t width = element * heads * op.getHeadDim();
      const int64_t wide = sum * heads * dyna_padded_head_dim(op.getHeadDim());
      auto add = [&](Carry carry, int64_t begin, int64_t size) {
        layer.carries[carry].push_back({begin, size});
      };
      add(Carry::Keys, element * columns.keys, width);
      add(Carry::Values, element * columns.values, width);
      add(Carry::KeyGradients, sum * columns.keyGradients, wide);
      add(Carry::ValueGradients, sum * columns.valueGradients, wide);
    });
  }
  return true;
}

/// The kernels are linked into this binary; their addresses are given by hand,
/// so that it need not export its symbols.
static llvm::orc::SymbolMap kernels(llvm::orc::LLJIT &jit) {
  const std::pair<const char *, void *> table[] = {
      {"dyna_launch", reinterpret_cast<void *>(&dyna_launch)},
      {"dyna_check_ids", reinterpret_cast<void *>(&dyna_check_ids)},
      {"dyna_check_positions", reinterpret_cast<void *>(&dyna_check_positions)},
      {"dyna_matmul_f32", reinterpret_cast<void *>(&dyna_matmul_f32)},
      {"dyna_matmul_bf16", reinterpret_cast<void *>(&dyna_matmul_bf16)},
      {"dyna_matmul_bf16_f32", reinterpret_cast<void *>(&dyna_matmul_bf16_f32)},
      {"dyna_attention_f32", reinterpret_cast<void *>(&dyna_attention_f32)},
      {"dyna_attention_f64", reinterpret_cast<void *>(&dyna_attention_f64)},
      {"dyna_attention_bf16", reinterpret_cast<void *>(&dyna_attention_bf16)},
      {"dyna_attention_grad_f32",
       reinterpret_cast<void *>(&dyna_attention_grad_f32)},
      {"dyna_attention_grad_f64",
       reinterpret_cast<void *>(&dyna_attention_grad_f64)},
      {"dyna_attention_grad_bf16",
       reinterpret_cast<void *>(&dyna_attention_grad_bf16)},
      {"dyna_head_f32", reinterpret_cast<void *>(&dyna_head_f32)},
      {"dyna_head_f64", reinterpret_cast<void *>(&dyna_head_f64)},
      {"dyna_head_bf16", reinterpret_cast<void *>(&dyna_head_bf16)},
      {"dyna_all_reduce", reinterpret_cast<void *>(&dyna_all_reduce)},
      {"dyna_all_gather", reinterpret_cast<void *>(&dyna_all_gather)},
      {"dyna_reduce_scatter", reinterpret_cast<void *>(&dyna_reduce_scatter)},
      {"dyna_slice", reinterpret_cast<void *>(&dyna_slice)},
      {"dyna_all_to_all", reinterpret_cast<void *>(&dyna_all_to_all)},
      {"dyna_exchange_all", reinterpret_cast<void *>(&dyna_exchange_all)},
  };
  llvm::orc::SymbolMap symbols;
  std::vector<std::pair<const char *, void *>> all(std::begin(table),
                                                   std::end(table));
  llvm::append_range(all, emulationKernels());
  for (auto [name, address] : all)
    symbols[jit.mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(address),
        llvm::JITSymbolFlags::Exported};
  return symbols;
}

static std::unique_ptr<llvm::orc::LLJIT> createJit() {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto host = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  // Compiling takes most of the time of these tests; the code's speed does not
  // matter, and its optimisation is LLVM's business.
  host.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  auto jit = llvm::cantFail(
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(host).create());
  llvm::orc::JITDylib &library = jit->getMainJITDylib();
  llvm::cantFail(library.define(llvm::orc::absoluteSymbols(kernels(*jit))));
  // memcpy and its like; in f64 also libm.
  library.addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  return jit;
}

bool CompiledProgram::translate(ModuleOp module) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, *context);
  if (!translated)
    return false;
  jit = createJit();
  llvm::cantFail(jit->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(translated), std::move(context))));
  for (auto &[kind, layer] : layers)
    for (auto &[role, compiled] : layer.functions) {
      std::string name = kind + "." + stringifyRole(role).str();
      llvm::Expected<llvm::orc::ExecutorAddr> address = jit->lookup(name);
      if (!address) {
        emitError(module.getLoc()) << llvm::toString(address.takeError());
        return false;
      }
      compiled.function = address->toPtr<dyna_layer_function>();
    }
  return true;
}

std::unique_ptr<CompiledProgram>
CompiledProgram::compile(ModuleOp module, const CompileOptions &options) {
  OwningOpRef<ModuleOp> copy(module.clone());
  std::unique_ptr<CompiledProgram> program(new CompiledProgram());

  PassManager phases(module.getContext());
  ConvertPhaseOptions convert;
  convert.type = options.type;
  buildConvertPhase(phases, convert);
  DifferentiatePhaseOptions differentiate;
  differentiate.gradients = options.gradients;
  buildDifferentiatePhase(phases, differentiate);
  DistributePhaseOptions distribute;
  distribute.strategy = options.strategies;
  if (!options.strategies.empty())
    buildDistributePhase(phases, distribute);
  MemoryPhaseOptions memory;
  memory.target = options.emulated ? "cuda" : "cpu";
  buildMemoryPhase(phases, memory);
  if (failed(phases.run(*copy)) || !program->readMemory(*copy) ||
      !program->readStores(*copy))
    return nullptr;
  program->tables = targetOf(*copy).batchTables;

  PassManager lowering(module.getContext());
  if (options.emulated) {
    cuda::EmbedKernelsOptions embed;
    embed.arch = "emulated";
    cuda::buildLowerCudaPipeline(lowering);
    lowering.addPass(cuda::createEmbedKernels(embed));
  } else {
    cpu::LowerCpuOptions lower;
    lower.matmul = options.matmul;
    lower.vectorBits = options.vectorBits;
    cpu::buildLowerCpuPipeline(lowering, lower);
  }
  if (failed(lowering.run(*copy)) || !program->translate(*copy))
    return nullptr;
  return program;
}
