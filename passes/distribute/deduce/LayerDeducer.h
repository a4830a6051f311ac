//===- LayerDeducer.h - Deduces the layouts of a layer's functions --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of one layer at one tensor degree share values: parameters and
// their gradients, activations at the layer's borders, saved values. Parameters
// and borders have given layouts. A saved value keeps the layout that it has in
// forward, and backward reads it as it is. The first function that adds to a
// gradient decides over which axes the gradient is partial.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYERDEDUCER_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYERDEDUCER_H

#include "passes/distribute/deduce/BlockDeducer.h"
#include "passes/distribute/deduce/TensorDegree.h"

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

  /// Deduces the layer's own body, which evaluates.
  LogicalResult deduce(LayerOp layer);
  /// Deduces one function. Order: forward, backward, backward_input, then all
  /// others.
  LogicalResult deduce(FunctionOp function);
  /// Sets the function that reads what backward_input defers; call this before
  /// that one is deduced.
  void setBackwardWeight(FunctionOp function) { backwardWeight = function; }

  /// Returns the layouts of the parameters' gradients, after all functions.
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

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_LAYERDEDUCER_H
