//===- AcceptSparse.cpp - Lets weights of products be sparse --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/AcceptSparse.h"
#include "dialects/dyna/Requirements.h"
#include "mlir/Pass/Pass.h"
#include "passes/memory/Passes.h"
#include "passes/memory/place/MemoryPlan.h"
#include "passes/memory/value/Target.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_ACCEPTSPARSE
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

/// Returns true if products read the parameter, and no other op uses it.
static bool feedsProducts(ArrayRef<FunctionOp> functions, int64_t entry) {
  bool isUsed = false;
  for (FunctionOp function : functions) {
    if (!function.hasProductsAlone(entry))
      return false;
    BlockArgument argument = function.findArgument(Memory::Parameter, entry);
    isUsed |= argument && !argument.use_empty();
  }
  return isUsed;
}

/// Returns the matrices of a layer that may be sparse, from the functions that
/// compute it.
static SmallVector<int64_t> sparseParameters(ArrayRef<FunctionOp> functions) {
  SmallVector<int64_t> entries;
  FunctionOp first = functions.front();
  for (auto [argument, place] :
       llvm::zip_equal(first.getBody().getArguments(),
                       first.getArgPlaces().getAsRange<PlaceAttr>())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (place.getMemory() == Memory::Parameter && type && type.getRank() == 2 &&
        feedsProducts(functions, place.getIndex()))
      entries.push_back(place.getIndex());
  }
  llvm::sort(entries);
  return entries;
}

namespace {

struct AcceptSparse : mlir::dyna::impl::AcceptSparseBase<AcceptSparse> {
  void runOnOperation() override {
    if (failed(requireFunctions(getOperation())))
      return signalPassFailure();
    if (targetOf(getOperation()).name != TargetName::Cpu) {
      emitError(getOperation().getLoc())
          << "has no kernels for sparse weights on "
          << stringifyTargetName(targetOf(getOperation()).name)
          << ": plan for cpu, or leave --dyna-accept-sparse out";
      return signalPassFailure();
    }
    for (auto &[name, all] : functionsByLayer(getOperation())) {
      SmallVector<FunctionOp> functions = llvm::filter_to_vector(
          all, [](FunctionOp f) { return computesLayer(f.getRole()); });
      if (functions.empty())
        continue;
      SmallVector<int64_t> entries = sparseParameters(functions);
      numWeights += entries.size();
      for (FunctionOp function : functions)
        function.setSparseAttr(
            entries.empty() ? DenseI64ArrayAttr()
                            : DenseI64ArrayAttr::get(&getContext(), entries));
    }
  }
};

} // namespace
