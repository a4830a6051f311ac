//===- CostsFuzz.cpp - Files of costs -------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"
#include "test/fuzz/SmallManifest.h"

#include "runtime/cost/CostModel.h"

#include <cmath>

#include <google/protobuf/stubs/logging.h>

using namespace dyna;
using namespace dyna::test;

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {"entries { kind: \"block\" direction: BACKWARD\n"
          "  points { tokens: 1024 pairs: 524800 seconds: 0.0031 }\n"
          "  points { tokens: 4096 pairs: 2099200 seconds: 0.0118 }\n"
          "  points { tokens: 4096 pairs: 8390656 seconds: 0.0132 } }\n"
          "entries { kind: \"block\" direction: FORWARD\n"
          "  points { tokens: 4 pairs: 10 seconds: 1e-4 }\n"
          "  points { tokens: 4 pairs: 42 context: 8 seconds: 3e-4 } }\n"
          "entries { kind: \"head\" tp: 2 sp: true direction: FORWARD\n"
          "  points { tokens: 64 targets: 60 seconds: 1e-3 } }\n",
          "# only a device\ndevice { name: \"mine\" f64_flops: 5e11\n"
          "  f32_flops: 1e12 bf16_flops: 2e12 bytes_per_second: 1e11\n"
          "  launch_seconds: 1e-6 }\n",
          "cluster { nodes: 4 devices_per_node: 8\n"
          "  inside { latency_seconds: 2e-6 bytes_per_second: 1e10 }\n"
          "  between { latency_seconds: 2e-5 bytes_per_second: 3e9 } }\n"
          "device { f64_flops: 5e11 f32_flops: 1e12 bf16_flops: 2e12\n"
          "  bytes_per_second: 1e11 flops_reach: 0.8 bytes_reach: 0.9 }\n",
          "entries { kind: \"embedding\" direction: UPDATE points {} }"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silencer;
  static const Model *model = [] {
    StatusOr<Model> model = Model::create(makeManifestWithDegree());
    require(model.isOk(), "the model of the costs is good");
    return new Model(std::move(*model));
  }();
  std::string text(reinterpret_cast<const char *>(data), size);
  StatusOr<CostTable> table = CostTable::parse(text, "input.costs");
  if (!table.isOk())
    return 0;
  StatusOr<CostModel> costs = CostModel::create(*model, std::move(*table));
  if (!costs.isOk())
    return 0;
  ++acceptedInputs;
  // Whatever was accepted weighs: a cut needs finite times that grow with work.
  for (int kind = 0; kind < model->manifest().kinds_size(); ++kind)
    for (int tp : {1, 2})
      for (cost::Direction direction :
           {cost::FORWARD, cost::BACKWARD, cost::UPDATE}) {
        double before = 0;
        for (int64_t tokens : {0, 1, 100, 4096, 1 << 20}) {
          Load load = loadOfSample(tokens);
          load.targets = tokens;
          double seconds = costs->seconds({kind, tp, false}, direction, load);
          require(std::isfinite(seconds) && seconds >= 0,
                  "seconds are finite and not negative");
          require(seconds >= before * (1 - 1e-9), "more work costs no less");
          before = seconds;
        }
        for (int64_t context : {1, 100, 1 << 20}) {
          const double seconds =
              costs->seconds({kind, tp, false}, direction,
                             loadOf({context, 64}, {0, context + 64}));
          require(std::isfinite(seconds) && seconds >= 0,
                  "seconds of slices are finite and not negative");
        }
      }
  return 0;
}
