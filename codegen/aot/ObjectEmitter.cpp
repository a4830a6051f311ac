//===- ObjectEmitter.cpp - Compiles LLVM modules to object files ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/ObjectEmitter.h"

#include "codegen/cuda/Passes.h"
#include "codegen/layers/ToLlvm.h"
#include "dialects/dyna/Dyna.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/abi/Abi.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;

// Features are listed one by one, because names of processors only tune. A
// run-time check of the same bits decides which variant runs
// (runtime/executor).
static constexpr InstructionSet kInstructionSets[] = {
    {"avx512", DYNA_FEATURE_AVX512 | DYNA_FEATURE_AVX2, "x86-64-v4",
     "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx2,+fma,+bmi2,+f16c"},
    {"avx2", DYNA_FEATURE_AVX2, "x86-64-v3", "+avx2,+fma,+bmi2,+f16c"},
};

ArrayRef<InstructionSet> mlir::dyna::getInstructionSets() {
  return kInstructionSets;
}

const InstructionSet &mlir::dyna::getLaunchingSet(bool isEmulated) {
  static constexpr InstructionSet any = {"cuda", 0, "x86-64", ""};
  static constexpr InstructionSet emulated = {
      "emulated", DYNA_FEATURE_AVX2, "x86-64-v3", "+avx2,+fma,+bmi2,+f16c"};
  return isEmulated ? emulated : any;
}

const InstructionSet *mlir::dyna::findInstructionSet(StringRef name) {
  for (const InstructionSet &isa : kInstructionSets)
    if (isa.name == name)
      return &isa;
  return nullptr;
}

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(StringRef cpu, StringRef features, unsigned level) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)initialized;
  std::string error;
  llvm::Triple triple(kTriple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, static_cast<llvm::CodeGenOptLevel>(level)));
}

void mlir::dyna::prepareTranslation(ModuleOp module) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
}

static LogicalResult emitObject(llvm::Module &module,
                                llvm::TargetMachine &machine, Location location,
                                ObjectBytes &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return emitError(location) << "this LLVM cannot emit object files";
  passes.run(module);
  return success();
}

LogicalResult mlir::dyna::emitVariantObject(ModuleOp module,
                                            const InstructionSet &isa,
                                            const EmitOptions &options,
                                            ObjectBytes &bytes) {
  auto machine = createTargetMachine(isa.cpu, isa.targetFeatures,
                                     options.optimizationLevel);
  if (!machine)
    return module.emitError("this LLVM has no x86-64 target");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return failure();
  llvmModule->setTargetTriple(llvm::Triple(kTriple));
  llvmModule->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.setName(function.getName() + "." + isa.name);
    function.addFnAttr("target-cpu", isa.cpu);
    function.addFnAttr("target-features", isa.targetFeatures);
    // Without this attribute LLVM would use narrower registers.
    if (isa.features & DYNA_FEATURE_AVX512) {
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  if (llvm::verifyModule(*llvmModule, &llvm::errs()))
    return module.emitError("code generation made invalid LLVM IR");
  layers::optimizeModule(*llvmModule, *machine, options.optimizationLevel);
  if (options.optimizedText)
    llvm::raw_string_ostream(*options.optimizedText) << *llvmModule;
  return emitObject(*llvmModule, *machine, module.getLoc(), bytes);
}

std::optional<std::string> mlir::dyna::printLlvmIr(ModuleOp module) {
  prepareTranslation(module);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << *llvmModule;
  return text;
}

//===----------------------------------------------------------------------===//
// The program object
//===----------------------------------------------------------------------===//

namespace {

/// Builds the constants of `dyna_compiled_program`.
class ProgramBuilder {
public:
  ProgramBuilder(llvm::Module &module, const plan::Manifest &manifest)
      : module(module), context(module.getContext()), manifest(manifest),
        pointer(llvm::PointerType::get(context, 0)) {}

  void build(ArrayRef<InstructionSet> isas) {
    SmallVector<llvm::Constant *> variants;
    llvm::Type *i64 = llvm::Type::getInt64Ty(context);
    llvm::Type *i32 = llvm::Type::getInt32Ty(context);
    auto *variantType = llvm::StructType::get(context, {pointer, i64, pointer});
    for (const InstructionSet &isa : isas)
      variants.push_back(llvm::ConstantStruct::get(
          variantType,
          {makeString(isa.name), llvm::ConstantInt::get(i64, isa.features),
           makeTable(isa)}));
    auto *variantArray = llvm::ArrayType::get(variantType, variants.size());
    llvm::Constant *variantTable = makeGlobal(
        llvm::ConstantArray::get(variantArray, variants), "dyna_variants");

    std::string bytes = manifest.SerializeAsString();
    llvm::Constant *manifestBytes = makeGlobal(
        llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false),
        "dyna_manifest");

    auto *programType = llvm::StructType::get(
        context, {i32, i32, pointer, pointer, i64, pointer});
    auto *program = llvm::ConstantStruct::get(
        programType,
        {llvm::ConstantInt::get(i32, DYNA_ABI_VERSION),
         llvm::ConstantInt::get(i32, isas.size()), variantTable, manifestBytes,
         llvm::ConstantInt::get(i64, bytes.size()), makeDeviceCode()});
    new llvm::GlobalVariable(module, programType, /*isConstant=*/true,
                             llvm::GlobalValue::ExternalLinkage, program,
                             "dyna_compiled_program");
  }

private:
  llvm::Constant *makeGlobal(llvm::Constant *value, StringRef name) {
    return new llvm::GlobalVariable(
        module, value->getType(),
        /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, value, name);
  }

  /// Returns the device code of the layer functions' object; null if they
  /// launch none.
  llvm::Constant *makeDeviceCode() {
    if (manifest.target() != "cuda")
      return llvm::ConstantPointerNull::get(pointer);
    auto *code = new llvm::GlobalVariable(
        module, llvm::Type::getInt8Ty(context), /*isConstant=*/true,
        llvm::GlobalValue::ExternalLinkage, /*Initializer=*/nullptr,
        cuda::codeName);
    code->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return code;
  }

  llvm::Constant *makeString(StringRef text) {
    return makeGlobal(llvm::ConstantDataArray::getString(context, text),
                      "dyna_name");
  }

  llvm::Constant *makeTable(const InstructionSet &isa) {
    SmallVector<llvm::Constant *> functions;
    auto *type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context),
                                         SmallVector<llvm::Type *>(8, pointer),
                                         /*isVarArg=*/false);
    SmallVector<const plan::LayerKind *> kinds;
    for (const plan::LayerKind &kind : manifest.kinds())
      kinds.push_back(&kind);
    for (const plan::TensorDegree &degree : manifest.degrees())
      for (const plan::LayerKind &kind : degree.kinds())
        kinds.push_back(&kind);
    for (const plan::LayerKind *entry : kinds) {
      const plan::LayerKind &kind = *entry;
      for (int role = 0; role < kind.roles_size(); ++role) {
        if (!kind.roles(role).present()) {
          functions.push_back(llvm::ConstantPointerNull::get(pointer));
          continue;
        }
        std::string name =
            (llvm::Twine(kind.name()) + "." +
             stringifyRole(static_cast<Role>(role)) + "." + isa.name)
                .str();
        functions.push_back(llvm::Function::Create(
            type, llvm::GlobalValue::ExternalLinkage, name, module));
      }
    }
    auto *array = llvm::ArrayType::get(pointer, functions.size());
    return makeGlobal(llvm::ConstantArray::get(array, functions),
                      "dyna_functions");
  }

  llvm::Module &module;
  llvm::LLVMContext &context;
  const plan::Manifest &manifest;
  llvm::PointerType *pointer;
};

} // namespace

LogicalResult mlir::dyna::emitProgramObject(ModuleOp module,
                                            const plan::Manifest &manifest,
                                            ArrayRef<InstructionSet> isas,
                                            ObjectBytes &bytes) {
  auto machine = createTargetMachine("x86-64", "", 0);
  if (!machine)
    return module.emitError("this LLVM has no x86-64 target");
  llvm::LLVMContext context;
  llvm::Module program("dyna_program", context);
  program.setTargetTriple(llvm::Triple(kTriple));
  program.setDataLayout(machine->createDataLayout());
  ProgramBuilder(program, manifest).build(isas);
  return emitObject(program, *machine, module.getLoc(), bytes);
}
