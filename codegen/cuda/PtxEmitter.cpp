//===- PtxEmitter.cpp - Kernels to PTX and cubins -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/PtxEmitter.h"

#include "codegen/layers/ToLlvm.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::dyna::cuda;

static constexpr int kArchitectures[] = {80, 90, 100, 120};
static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

ArrayRef<int> mlir::dyna::cuda::getArchitectures() { return kArchitectures; }

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Null where this LLVM has no such target.
static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(int architecture) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
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
      triple, "sm_" + std::to_string(architecture), "", llvm::TargetOptions(),
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

FailureOr<std::string> mlir::dyna::cuda::emitPtx(ModuleOp kernels,
                                                 int architecture) {
  auto machine = createTargetMachine(architecture);
  if (!machine) {
    kernels.emitError("this LLVM has no NVPTX target");
    return failure();
  }
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  kernels.getContext()->appendDialectRegistry(registry);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, "dyna_kernels");
  if (!module)
    return failure();
  module->setTargetTriple(llvm::Triple(kTriple));
  module->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *module)
    function.addFnAttr(llvm::Attribute::NoUnwind);
  if (llvm::verifyModule(*module, &llvm::errs())) {
    kernels.emitError("code generation made invalid LLVM IR");
    return failure();
  }
  layers::optimizeModule(*module, *machine, 3);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile)) {
    kernels.emitError("this LLVM cannot emit PTX");
    return failure();
  }
  passes.run(*module);
  return text.str().str();
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

llvm::Expected<std::string> mlir::dyna::cuda::findPtxas(StringRef given) {
  if (given == "none")
    return llvm::createStringError("none is to be used");
  if (!given.empty()) {
    if (llvm::sys::fs::can_execute(given))
      return given.str();
    return llvm::createStringError("no program at '" + given + "'");
  }
  SmallVector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  for (const std::string &folder : folders) {
    std::string path = folder + "/ptxas";
    if (llvm::sys::fs::can_execute(path))
      return path;
  }
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  std::string usual = "/usr/local/cuda/bin/ptxas";
  if (llvm::sys::fs::can_execute(usual))
    return usual;
  return llvm::createStringError(
      "no ptxas in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin");
}

llvm::Expected<std::string>
mlir::dyna::cuda::assemble(StringRef ptxas, StringRef ptx, int architecture) {
  SmallString<128> paths[3];
  static constexpr StringRef suffixes[] = {"ptx", "cubin", "log"};
  for (auto [path, suffix] : llvm::zip(paths, suffixes))
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("dyna", suffix, path))
      return llvm::createStringError("cannot make a temporary file: " +
                                     error.message());
  llvm::FileRemover removers[] = {llvm::FileRemover(paths[0]),
                                  llvm::FileRemover(paths[1]),
                                  llvm::FileRemover(paths[2])};
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(paths[0], error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      return llvm::createStringError("cannot write " + paths[0].str());
    }
  }
  std::string name = "-arch=sm_" + std::to_string(architecture);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(paths[2]),
                                          StringRef(paths[2])};
  std::string message;
  constexpr unsigned seconds = 300;
  int result = llvm::sys::ExecuteAndWait(
      ptxas, {ptxas, name, "-O3", "-o", paths[1], paths[0]}, std::nullopt,
      redirects, seconds, /*MemoryLimit=*/0, &message);
  auto read = [](StringRef path) -> std::string {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  };
  if (result != 0) {
    std::string log = read(paths[2]);
    StringRef line = StringRef(log).trim().split('\n').first;
    return llvm::createStringError(ptxas + " " + name + " failed: " +
                                   (line.empty() ? StringRef(message) : line));
  }
  return read(paths[1]);
}
