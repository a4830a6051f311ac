//===- Families.cpp - Lists the families of models ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "frontends/Family.h"
#include "frontends/Frontends.h"

using namespace mlir;
using namespace mlir::dyna;

ArrayRef<const Family *> mlir::dyna::families() {
  static const Family *const all[] = {
#define DYNA_FAMILY(name) &name##Family(),
#include "frontends/Families.def"
  };
  return all;
}

const Family *mlir::dyna::findFamily(StringRef name) {
  for (const Family *family : families())
    if (family->name == name)
      return family;
  return nullptr;
}

std::string mlir::dyna::listFamilies(StringRef quote, StringRef last) {
  std::string text;
  SmallVector<std::string> names;
  for (const Family *family : families())
    names.push_back((quote + family->name + quote).str());
  if (!last.empty())
    names.push_back(last.str());
  for (auto [i, name] : llvm::enumerate(names))
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + name;
  return text;
}

OwningOpRef<ModuleOp> mlir::dyna::importConfig(MLIRContext *context,
                                               llvm::MemoryBufferRef text,
                                               const ModelParts &parts) {
  const Family *family = nullptr;
  {
    ConfigReader reader(context, text);
    if (!reader.isValid())
      return {};
    const std::string type = reader.string("model_type", "");
    family = findFamily(type);
    if (!family) {
      reader.error("model_type")
          << "expects " << listFamilies("'", "") << ", but "
          << (reader.has("model_type") ? "got '" + type + "'"
                                       : "the field is missing");
      return {};
    }
  }
  return family->import(context, text, parts);
}
