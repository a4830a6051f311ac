//===- ManifestFuzz.cpp - Manifests ---------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"
#include "test/fuzz/SmallManifest.h"

#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/plan/graph/RankView.h"

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

namespace {

/// Everything that is worked out from a manifest must stay in range.
void useModel(const Model &model) {
  const RankView view = RankView::whole(model);
  for (int p = 0; p < view.parameters(); ++p) {
    require(view.elements(p) > 0, "parameters have elements");
    require(view.owner(p) >= 0 && view.owner(p) < view.layers(),
            "parameters have owners");
    require(model.findParameter(view.parameter(p).name()) == p,
            "parameters are found by name");
  }
  Load load;
  load.queries = load.keys = 4096;
  load.segments = 64;
  for (int l = 0; l < view.layers(); ++l) {
    require(view.inputBytes(l, load) >= 0, "input bytes");
    require(view.gradientBytes(l, load) >= 0, "gradient bytes");
    for (plan::Recompute mode :
         {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
          plan::RECOMPUTE_FULL}) {
      plan::Recompute nearest = nearestMode(view.kind(l), mode);
      require(view.keptBytes(l, nearest, load) >= 0, "kept bytes");
      require(view.lateBytes(l, nearest, splitsBackward(view.kind(l)), load) >=
                  0,
              "late bytes");
    }
    for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
      require(view.workspaceBytes(l, role, load) >= 0, "workspace bytes");
  }
  require(!describeManifest(model, 64).empty(), "descriptions");
  require(!manifestToJson(model).empty(), "descriptions for tools");
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  // An empty message has 2 bytes in a file.
  bytesPerByte = 96;
  fixedBytes += protobufStringBytes;
  return {makeManifest().SerializeAsString(),
          makeManifestWithDegree().SerializeAsString()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Every broken message would be reported on its own.
  google::protobuf::LogSilencer silencer;
  StatusOr<Model> whole = Model::parse(data, static_cast<int64_t>(size));
  if (whole.isOk())
    useModel(*whole);
  // Almost no mutation keeps the hash: repair it to get past it.
  plan::Manifest manifest;
  if (!manifest.ParseFromArray(data, static_cast<int>(size)))
    return 0;
  manifest.set_hash(manifestHash(manifest));
  StatusOr<Model> model = Model::create(std::move(manifest));
  if (!model.isOk())
    return 0;
  ++acceptedInputs;
  useModel(*model);
  return 0;
}
