//===- SkippingModel.h - A model that is no chain ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Five layers of which layer 3 also takes the outputs of layers 1 and 0. No compiler
// makes such a model yet, and its layers cannot run. Tests use it for code that must
// not assume a chain.
//
//     edges 1 to 4    0 -> 1 -> 2 -> 3 -> 4
//     edge 5               1 ------> 3
//     edge 6          0 -----------> 3
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_SKIPPINGMODEL_H
#define DYNA_TEST_RUNTIME_PLAN_SKIPPINGMODEL_H

#include "test/runtime/plan/TinyPlans.h"

namespace dyna {

inline const Model &skippingModel() {
  static const Model model = [] {
    TinyOptions tiny;
    tiny.blocks = 3;
    plan::Manifest manifest = tinyManifest(tiny);
    manifest.mutable_layers(3)->add_producers(1);
    manifest.mutable_layers(3)->add_producers(0);
    plan::LayerKind *kind = manifest.mutable_kinds(manifest.layers(3).kind());
    for (int input : {1, 2}) {
      plan::TensorSpec *spec = kind->add_inputs();
      *spec = kind->inputs(0);
      spec->set_shape(0, kind->inputs(0).shape(0) * (1 + input));
    }
    return Model::unchecked(manifest);
  }();
  return model;
}

inline ExecutableGraph skippingGraph(const std::string &strategy) {
  return *ExecutableGraph::create(skippingModel(), *parseStrategy(strategy));
}

/// Appends an instruction on a layer, or on the edge of a message.
inline void addTo(plan::Plan &plan, int rank, plan::Instruction::Op op,
                  int layer, int microBatch = 0) {
  plan::Instruction i;
  i.op = op;
  i.layer = layer;
  i.microBatch = microBatch;
  plan.ranks[rank].instructions.push_back(i);
}

/// Messages of one micro-batch in pp=4,layers=1+1+1+2: all activations, then all
/// gradients. Nothing is computed.
inline plan::Plan skippingMessages() {
  using plan::Instruction;
  plan::Plan plan;
  plan.microBatches.push_back({{{0, 0, 10}}, 0});
  plan.ranks.resize(4);
  struct Way {
    int edge, from, to;
  };
  const Way ways[] = {{1, 0, 1}, {6, 0, 3}, {2, 1, 2}, {5, 1, 3}, {3, 2, 3}};
  for (const Way &way : ways) {
    addTo(plan, way.from, Instruction::SEND_ACT_START, way.edge);
    addTo(plan, way.to, Instruction::RECV_ACT_START, way.edge);
  }
  for (const Way &way : ways) {
    addTo(plan, way.from, Instruction::SEND_ACT_WAIT, way.edge);
    addTo(plan, way.to, Instruction::RECV_ACT_WAIT, way.edge);
  }
  for (int k = 4; k >= 0; --k) {
    addTo(plan, ways[k].to, Instruction::SEND_GRAD_START, ways[k].edge);
    addTo(plan, ways[k].from, Instruction::RECV_GRAD_START, ways[k].edge);
  }
  for (const Way &way : ways) {
    addTo(plan, way.to, Instruction::SEND_GRAD_WAIT, way.edge);
    addTo(plan, way.from, Instruction::RECV_GRAD_WAIT, way.edge);
  }
  return plan;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_SKIPPINGMODEL_H
