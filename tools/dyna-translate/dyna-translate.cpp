//===- dyna-translate.cpp - Translates other formats to dyna modules -*- C++
//-*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

using Import = OwningOpRef<ModuleOp> (*)(MLIRContext *, llvm::MemoryBufferRef);

static void registerImport(StringRef name, StringRef description,
                           Import import) {
  // Registration is done by the constructor and outlives the object.
  TranslateToMLIRRegistration(
      name, description,
      [import](llvm::SourceMgr &sources,
               MLIRContext *context) -> OwningOpRef<Operation *> {
        auto *buffer = sources.getMemoryBuffer(sources.getMainFileID());
        return import(context, buffer->getMemBufferRef());
      });
}

int main(int argc, char **argv) {
  registerImport("gpt2", "the config.json of a GPT-2 to dyna",
                 dyna::importGpt2);
  registerImport("llama", "the config.json of a LLaMA to dyna",
                 dyna::importLlama);
  registerImport("from-config",
                 "a config.json to dyna, by the family in its model_type",
                 dyna::importConfig);
  // Bad input exits with 2, as everywhere in the project.
  return failed(mlirTranslateMain(argc, argv, "Dyna translation driver\n")) ? 2
                                                                            : 0;
}
