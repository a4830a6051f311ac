//===- EmbedKernels.cpp - Embeds kernels into the host's code -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Passes.h"

#include "codegen/cuda/CudaLowering.h"
#include "codegen/cuda/EmulateKernels.h"
#include "codegen/cuda/PtxEmitter.h"
#include "runtime/abi/DeviceCode.h"
#include "runtime/base/file/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <variant>

namespace mlir::dyna::cuda {
#define GEN_PASS_DEF_EMBEDKERNELS
#include "codegen/cuda/Passes.h.inc"
} // namespace mlir::dyna::cuda

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

namespace {
/// Makes constants in a module.
class Constants {
public:
  explicit Constants(ModuleOp module)
      : module(module), builder(module.getLoc(), module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  /// A field is a number, the address of a symbol, or null.
  using Field = std::variant<IntegerAttr, FlatSymbolRefAttr, std::monostate>;
  Field i32(int64_t value) { return builder.getI32IntegerAttr(value); }
  Field i64(int64_t value) { return builder.getI64IntegerAttr(value); }
  Field address(Operation *symbol) {
    return FlatSymbolRefAttr::get(SymbolTable::getSymbolName(symbol));
  }

  /// Returns the name of a function, as a constant that ends in 0.
  Field name(LLVM::LLVMFuncOp function) {
    std::string symbol = ("dyna_name_" + function.getName()).str();
    if (Operation *known = module.lookupSymbol(symbol))
      return address(known);
    return address(bytes(symbol, function.getName().str() + '\0'));
  }

  Operation *bytes(StringRef name, StringRef contents) {
    builder.setInsertionPointToStart(module.getBody());
    return LLVM::GlobalOp::create(
        builder, LLVM::LLVMArrayType::get(builder.getI8Type(), contents.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, name,
        builder.getStringAttr(contents), /*alignment=*/16);
  }

  /// Makes an array of structs with equally many fields.
  LLVM::GlobalOp table(StringRef name, ArrayRef<SmallVector<Field>> rows,
                       LLVM::Linkage linkage = LLVM::Linkage::Internal) {
    builder.setInsertionPointToEnd(module.getBody());
    SmallVector<Type> types;
    for (const Field &field : rows.front())
      types.push_back(typeOf(field));
    auto rowType = LLVM::LLVMStructType::getLiteral(module.getContext(), types);
    auto type = LLVM::LLVMArrayType::get(rowType, rows.size());
    auto global = LLVM::GlobalOp::create(builder, type, /*isConstant=*/true,
                                         linkage, name, Attribute());
    builder.setInsertionPointToStart(
        &global.getInitializerRegion().emplaceBlock());
    Value value = LLVM::UndefOp::create(builder, type);
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, field] : llvm::enumerate(row))
        value = LLVM::InsertValueOp::create(
            builder, value, emit(field),
            ArrayRef<int64_t>{static_cast<int64_t>(i),
                              static_cast<int64_t>(j)});
    LLVM::ReturnOp::create(builder, value);
    return global;
  }

private:
  Type typeOf(const Field &field) {
    if (const auto *number = std::get_if<IntegerAttr>(&field))
      return number->getType();
    return pointer;
  }
  Value emit(const Field &field) {
    if (const auto *number = std::get_if<IntegerAttr>(&field))
      return LLVM::ConstantOp::create(builder, number->getType(), *number);
    if (const auto *symbol = std::get_if<FlatSymbolRefAttr>(&field))
      return LLVM::AddressOfOp::create(builder, pointer, *symbol);
    return LLVM::ZeroOp::create(builder, pointer);
  }

  ModuleOp module;
  ImplicitLocOpBuilder builder;
  Type pointer;
};

class EmbedKernelsPass : public cuda::impl::EmbedKernelsBase<EmbedKernelsPass> {
public:
  using EmbedKernelsBase::EmbedKernelsBase;

  void runOnOperation() override;

private:
  using Rows = SmallVector<SmallVector<Constants::Field>>;
  FailureOr<SmallVector<int>> parseArchitectures();
  /// Sets `oldestDriver`, too.
  LogicalResult addImages(ModuleOp kernels, ArrayRef<int> architectures,
                          Constants &constants, Rows &images);
  LogicalResult addEmulated(ModuleOp kernels,
                            ArrayRef<LLVM::LLVMFuncOp> functions,
                            ArrayRef<int64_t> argumentBytes,
                            Constants &constants, Rows &images);

  int64_t oldestDriver = 0; ///< in the form of dyna_device_code
};
} // namespace

/// Parses the architectures; empty for `emulated`.
FailureOr<SmallVector<int>> EmbedKernelsPass::parseArchitectures() {
  llvm::Expected<SmallVector<int>> result = readArchitectures(arch);
  if (!result)
    return getOperation().emitError(llvm::toString(result.takeError()));
  return *result;
}

LogicalResult EmbedKernelsPass::addImages(ModuleOp kernels,
                                          ArrayRef<int> architectures,
                                          Constants &constants, Rows &images) {
  auto addImage = [&](int architecture, bool isText, StringRef bytes) {
    std::string name = "dyna_image_sm_" + std::to_string(architecture) +
                       (isText ? "_ptx" : "");
    Operation *global = constants.bytes(name, bytes);
    images.push_back({constants.i32(architecture),
                      constants.i32(isText ? DYNA_IMAGE_PTX : DYNA_IMAGE_CUBIN),
                      constants.address(global), constants.i64(bytes.size())});
  };
  llvm::Expected<std::string> assembler = findPtxas(ptxas);
  if (!assembler && !ptxas.empty() && ptxas != "none")
    return getOperation().emitError(llvm::toString(assembler.takeError()));
  if (!assembler)
    getOperation().emitWarning("the kernels are embedded as PTX alone, which "
                               "the driver compiles when a run starts: ")
        << llvm::toString(assembler.takeError());
  if (assembler) {
    llvm::Expected<int> version = versionOf(*assembler);
    if (!version)
      return getOperation().emitError(llvm::toString(version.takeError()));
    oldestDriver = *version / 1000 * 1000;
  }
  std::string lowest;
  for (int architecture : architectures) {
    FailureOr<std::string> ptx = emitPtx(kernels, architecture);
    if (failed(ptx))
      return failure();
    if (lowest.empty())
      lowest = *ptx;
    if (!dump.empty()) {
      std::string path = llvm::formatv("{0}/kernels.sm_{1}.ptx",
                                       dump.getValue(), architecture);
      ::dyna::Status status = ::dyna::replaceFile(path, *ptx);
      if (!status.isOk())
        return getOperation().emitError(status.message());
    }
    if (!assembler)
      continue;
    llvm::Expected<std::string> cubin =
        assemble(*assembler, *ptx, architecture);
    if (!cubin)
      return getOperation().emitError(llvm::toString(cubin.takeError()));
    addImage(architecture, /*isText=*/false, *cubin);
  }
  // The driver expects text to end in 0.
  lowest.push_back('\0');
  addImage(architectures.front(), /*isText=*/true, lowest);
  return success();
}

LogicalResult EmbedKernelsPass::addEmulated(
    ModuleOp kernels, ArrayRef<LLVM::LLVMFuncOp> functions,
    ArrayRef<int64_t> argumentBytes, Constants &constants, Rows &images) {
  ModuleOp host = getOperation();
  if (failed(emulateKernels(kernels, host)))
    return failure();
  Rows entries;
  for (auto [function, bytes] : llvm::zip(functions, argumentBytes)) {
    LLVM::LLVMFuncOp kernel = function;
    entries.push_back({constants.name(kernel), constants.address(kernel),
                       constants.i64(bytes)});
  }
  OpBuilder builder = OpBuilder::atBlockBegin(host.getBody());
  Type pointer = LLVM::LLVMPointerType::get(host.getContext());
  auto run = LLVM::LLVMFuncOp::create(
      builder, host.getLoc(), "dyna_emulated_run",
      LLVM::LLVMFunctionType::get(builder.getI32Type(),
                                  {pointer, pointer, builder.getI64Type()}));
  // The fields of a dyna_emulated_image are magic, size, kernels, and a
  // function that runs them.
  constexpr int64_t magic = 0x00554D45414E5944; // "DYNAEMU"
  constexpr int64_t size = 40;
  Operation *image = constants.table(
      "dyna_image_emulated",
      {{constants.i64(magic), constants.i64(size),
        constants.i64(entries.size()),
        constants.address(constants.table("dyna_emulated_kernels", entries)),
        constants.address(run)}});
  images.push_back({constants.i32(0), constants.i32(DYNA_IMAGE_EMULATED),
                    constants.address(image), constants.i64(size)});
  return success();
}

void EmbedKernelsPass::runOnOperation() {
  ModuleOp host = getOperation();
  auto kernels = host.lookupSymbol<ModuleOp>(kernelsName);
  auto code = host.lookupSymbol<LLVM::GlobalOp>(codeName);
  FailureOr<SmallVector<int>> architectures = parseArchitectures();
  if (failed(architectures))
    return signalPassFailure();
  if (!kernels || !code) {
    host.emitError("expects kernels in '")
        << kernelsName << "'; run --dyna-convert-to-cuda before they are "
        << "embedded";
    return signalPassFailure();
  }
  code.erase();
  Constants constants(host);
  Rows functions, images;
  SmallVector<LLVM::LLVMFuncOp> all;
  SmallVector<int64_t> argumentBytes;
  for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
    // CudaLowering made these attributes.
    auto block = function->getAttrOfType<DenseI32ArrayAttr>(
        NVVM::NVVMDialect::getMaxntidAttrName());
    TypeAttr parameter;
    if (function.getNumArguments() == 1)
      parameter = function.getArgAttrOfType<TypeAttr>(
          0, LLVM::LLVMDialect::getByValAttrName());
    auto slots = parameter ? dyn_cast<LLVM::LLVMArrayType>(parameter.getValue())
                           : LLVM::LLVMArrayType();
    if (!block || block.size() != 1 || !slots) {
      function.emitError("expects a kernel with one parameter by value and its "
                         "threads per block");
      return signalPassFailure();
    }
    int64_t bytes = 8 * static_cast<int64_t>(slots.getNumElements());
    all.push_back(function);
    argumentBytes.push_back(bytes);
    functions.push_back({constants.name(function), constants.i64(bytes),
                         constants.i32(block[0]), constants.i32(0)});
  }
  if (!all.empty() &&
      failed(architectures->empty()
                 ? addEmulated(kernels, all, argumentBytes, constants, images)
                 : addImages(kernels, *architectures, constants, images)))
    return signalPassFailure();
  kernels.erase();
  auto addressOf = [&](StringRef name, const Rows &rows) -> Constants::Field {
    if (rows.empty())
      return std::monostate();
    return constants.address(constants.table(name, rows));
  };
  SmallVector<Constants::Field> row = {
      addressOf("dyna_images", images), constants.i64(images.size()),
      addressOf("dyna_kernel_table", functions),
      constants.i64(functions.size()), constants.i64(oldestDriver)};
  // The program's tables point to it.
  constants.table(codeName, {row}, LLVM::Linkage::External);
}
