//===- PtxEmitter.cpp - Compiles kernels to PTX and cubins ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/PtxEmitter.h"

#include "codegen/layers/ToLlvm.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/abi/DeviceCode.h"
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

static constexpr int kArchitectures[] = DYNA_ARCHITECTURES;
static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

llvm::Expected<SmallVector<int>>
mlir::dyna::cuda::readArchitectures(StringRef text) {
  SmallVector<int> result;
  if (text == "emulated")
    return result;
  SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    int number = 0;
    StringRef digits = name.trim();
    if (!digits.consume_front("sm_") || digits.getAsInteger(10, number) ||
        !llvm::is_contained(kArchitectures, number))
      return llvm::createStringError(
          "expects architectures among sm_80 (which sm_86 and sm_89 run, too), "
          "sm_90, sm_100 and sm_120, separated by commas, or emulated alone, "
          "but got '" +
          name + (name.trim() == "emulated" ? "' beside others" : "'"));
    result.push_back(number);
  }
  llvm::sort(result);
  result.erase(llvm::unique(result), result.end());
  return result;
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Creates the target machine; null if this LLVM has no such target.
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

/// Temporary files of a run of ptxas, which are removed with this object.
namespace {
class AssemblerFiles {
public:
  ~AssemblerFiles() {
    for (StringRef path : made)
      (void)llvm::sys::fs::remove(path);
  }
  /// Makes an empty file, whose name ends in `suffix`.
  llvm::Error make(StringRef suffix, SmallString<128> &path) {
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("dyna", suffix, path))
      return llvm::createStringError("cannot make a temporary file: " +
                                     error.message());
    made.push_back(path.str().str());
    return llvm::Error::success();
  }

private:
  SmallVector<std::string, 3> made;
};
} // namespace

static std::string readAll(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Runs `ptxas`. Returns its output, or its first error message. The file `log`
/// receives the output.
static llvm::Expected<std::string>
runAssembler(StringRef ptxas, ArrayRef<StringRef> arguments, StringRef log) {
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  std::string message;
  constexpr unsigned seconds = 300;
  SmallVector<StringRef> command = {ptxas};
  command.append(arguments.begin(), arguments.end());
  int result =
      llvm::sys::ExecuteAndWait(ptxas, command, std::nullopt, redirects,
                                seconds, /*MemoryLimit=*/0, &message);
  std::string printed = readAll(log);
  if (result == 0)
    return printed;
  StringRef line = StringRef(printed).trim().split('\n').first;
  return llvm::createStringError(ptxas + " " + arguments.front() + " failed: " +
                                 (line.empty() ? StringRef(message) : line));
}

llvm::Expected<int> mlir::dyna::cuda::versionOf(StringRef ptxas) {
  AssemblerFiles files;
  SmallString<128> log;
  if (llvm::Error error = files.make("log", log))
    return std::move(error);
  llvm::Expected<std::string> printed = runAssembler(ptxas, {"--version"}, log);
  if (!printed)
    return printed.takeError();
  StringRef rest = StringRef(*printed).split("release ").second;
  unsigned major = 0, minor = 0;
  if (rest.consumeInteger(10, major) || !rest.consume_front(".") ||
      rest.consumeInteger(10, minor) || major == 0 || major > 999 || minor > 99)
    return llvm::createStringError(ptxas + " --version names no release of "
                                           "CUDA");
  return static_cast<int>(1000 * major + 10 * minor);
}

llvm::Expected<std::string>
mlir::dyna::cuda::assemble(StringRef ptxas, StringRef ptx, int architecture) {
  AssemblerFiles files;
  SmallString<128> text, cubin, log;
  if (llvm::Error error = files.make("ptx", text))
    return std::move(error);
  if (llvm::Error error = files.make("cubin", cubin))
    return std::move(error);
  if (llvm::Error error = files.make("log", log))
    return std::move(error);
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(text, error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      return llvm::createStringError("cannot write " + text.str());
    }
  }
  std::string name = "-arch=sm_" + std::to_string(architecture);
  llvm::Expected<std::string> printed =
      runAssembler(ptxas, {name, "-O3", "-o", cubin, text}, log);
  if (!printed)
    return printed.takeError();
  return readAll(cubin);
}
