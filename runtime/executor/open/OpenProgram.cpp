//===- OpenProgram.cpp - Opens a compiled program -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/open/OpenProgram.h"

#include "runtime/base/text/Text.h"
#include "runtime/executor/open/CpuFeatures.h"

namespace dyna {

StatusOr<Model> openProgram(const dyna_program &program) {
  if (program.abi_version != DYNA_ABI_VERSION)
    return Status::invalidArgument(formatText(
        "the model was compiled for ABI version %d, but the runtime has %d: "
        "compile it again",
        program.abi_version, DYNA_ABI_VERSION));
  DYNA_ASSIGN_OR_RETURN(Model model,
                        Model::parse(program.manifest, program.manifest_size));
  if (program.variant_count == 0 || !program.variants)
    return Status::invalidArgument("the compiled model has no code");
  const plan::Manifest &manifest = model.manifest();
  for (uint32_t v = 0; v < program.variant_count; ++v) {
    const dyna_variant &variant = program.variants[v];
    const dyna_layer_function *functions = variant.functions;
    for (int degree = -1; degree < manifest.degrees_size(); ++degree)
      for (int k = 0; k < manifest.kinds_size(); ++k) {
        const plan::LayerKind &kind =
            degree < 0 ? manifest.kinds(k) : manifest.degrees(degree).kinds(k);
        for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
          if (kind.roles(role).present() && !functions[role])
            return Status::invalidArgument(formatText(
                "variant '%s' lacks function %d of layer kind '%s', which the "
                "manifest lists: compile the model again",
                variant.name, role, kind.name()));
        functions += DYNA_ROLE_COUNT;
      }
  }
  return model;
}

StatusOr<const dyna_variant *> chooseVariant(const dyna_program &program,
                                             const std::string &isa,
                                             uint64_t features) {
  std::string names;
  for (uint32_t v = 0; v < program.variant_count; ++v) {
    const dyna_variant &variant = program.variants[v];
    names += (v ? ", " : "") + std::string(variant.name);
    bool runs = (variant.features & ~features) == 0;
    if (isa.empty() ? !runs : isa != variant.name)
      continue;
    if (!runs)
      return Status::invalidArgument(
          formatText("--isa=%s needs %s, but this processor has %s", isa,
                     featuresText(variant.features), featuresText(features)));
    return &variant;
  }
  if (isa.empty())
    return Status::invalidArgument(formatText(
        "this processor has %s; the compiled variants (%s) need more",
        featuresText(features), names));
  return Status::invalidArgument(
      formatText("--isa=%s is not compiled in, there are: %s", isa, names));
}

} // namespace dyna
