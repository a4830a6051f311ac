//===- LayerDeducer.h - Layouts of a layer's functions ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of one layer at one tensor degree share what lies between them:
// parameters and their gradients, activations at the layer's borders, saved
// values. Borders and parameters are given; a saved value has the layout in
// which forward has it, and backward takes it as it is; over what a gradient is
// partial is said by the first function that adds to it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_LAYERDEDUCER_H
#define DYNA_PASSES_DISTRIBUTE_LAYERDEDUCER_H

#include "passes/distribute/BlockDeducer.h"
#include "passes/distribute/TensorDegree.h"

namespace mlir::dyna {

class LayerDeducer {
public:
  LayerDeducer(MLIRContext *context, TensorDegree degree,
               std::vector<::dyna::Layout> parameters)
      : mesh(degree.mesh()), meshAttr(dist::MeshAttr::get(context, mesh)),
        tokens(degree.sequence ? ::dyna::AxisParts{mesh.wholeAxis(0)}
                               : ::dyna::AxisParts()),
        parameters(std::move(parameters)),
        gradientPartials(this->parameters.size()) {}

  /// The layer's own body, which evaluates.
  LogicalResult deduce(LayerOp layer);
  /// In this order: forward, backward, backward_input, then all others.
  LogicalResult deduce(FunctionOp function);
  /// The function that takes what backward_input defers; before that.
  void setBackwardWeight(FunctionOp function) { backwardWeight = function; }

  /// Of the gradients of the parameters, after all functions.
  ArrayAttr getGradients() const;

private:
  ::dyna::Layout borderLayout(Type type) const;
  ::dyna::Layout gradientLayout(size_t parameter) const;
  ::dyna::Layout argumentLayout(FunctionOp function, unsigned index,
                                std::map<Memory, size_t> &counts);
  LogicalResult layOutOptimizer(FunctionOp function);
  LogicalResult layOutResult(FunctionOp function, unsigned index,
                             BlockDeducer &deducer,
                             std::map<Memory, size_t> &counts);
  bool addsToPartialGradient(OpOperand &use) const;
  bool isAddedAsSum(size_t deferred) const;
  void noteGradients(FunctionOp function, BlockDeducer &deducer);
  Attribute attributeOf(const ::dyna::Layout &layout) const {
    return dist::LayoutAttr::get(meshAttr, layout);
  }

  ::dyna::Mesh mesh;
  dist::MeshAttr meshAttr;
  ::dyna::AxisParts tokens;
  std::vector<::dyna::Layout> parameters;
  std::vector<std::optional<::dyna::AxisParts>> gradientPartials;
  std::map<Memory, std::vector<::dyna::Layout>> saved;
  FunctionOp backwardWeight;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_LAYERDEDUCER_H
