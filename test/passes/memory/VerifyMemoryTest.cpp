//===- VerifyMemoryTest.cpp - No place is left unproved -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPT-2 and LLaMA behind the memory phase. Every place that it wrote (tiers,
// workspace, places of arguments, results and ops) is moved to each memory,
// its offsets, column and stride are changed, and it is left out. Each
// mutant must be refused by the verifiers of the ops or by verify-memory, but
// for three kinds that are as good as what the phase wrote, or not its work:
// - a temporary in another part of the workspace that is free while it lives;
//   the workspace is not larger for it, which is compared. It may have lain
//   where the function returns something later;
// - an op's result in another place where the function returns something that
//   is not there yet;
// - an argument or result of another memory or number: the signature, which
//   the phase takes as it is. Verify-differentiated, which runs before, proves
//   it. What contradicts the functions of the layer is refused here, too.
//
// With DYNA_WALK_ALL set all mutants are tried, else one in 29.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "frontends/Frontends.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/memory/Passes.h"
#include "passes/memory/place/MemoryPlan.h"
#include "test/passes/SmallConfigs.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <iostream>

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct Case {
  const char *name;
  std::string config;
  const char *strategy;
};

/// Places that are not the given one.
SmallVector<PlaceAttr> mutantsOf(PlaceAttr place) {
  SmallVector<PlaceAttr> mutants;
  bool isBlock =
      isTier(place.getMemory()) || place.getMemory() == Memory::Workspace;
  auto add = [&](Memory memory, int64_t index, int64_t tq, int64_t tkv,
                 int64_t s, int64_t constant, int64_t column, int64_t stride) {
    auto other = PlaceAttr::get(place.getContext(), memory, index, tq, tkv, s,
                                constant, column, stride);
    if (other != place)
      mutants.push_back(other);
  };
  for (unsigned memory = 0; memory <= getMaxEnumValForMemory(); ++memory)
    if (auto other = symbolizeMemory(memory); other && isBlock)
      add(*other, place.getIndex(), place.getTq(), place.getTkv(), place.getS(),
          place.getConstant(), place.getColumn(), place.getStride());
  if (!isBlock) {
    for (Memory memory : {Memory::Workspace, Memory::Products})
      add(memory, 0, 0, 0, 0, 0, 0, 0);
    return mutants;
  }
  for (int64_t by : {-(1 << 20), -256, -192, -64, -1, 1, 64, 192, 256, 1 << 20})
    for (int field = 0; field < 7; ++field) {
      int64_t numbers[] = {place.getIndex(),    place.getTq(),
                           place.getTkv(),      place.getS(),
                           place.getConstant(), place.getColumn(),
                           place.getStride()};
      numbers[field] += by;
      add(place.getMemory(), numbers[0], numbers[1], numbers[2], numbers[3],
          numbers[4], numbers[5], numbers[6]);
    }
  return mutants;
}

class VerifyMemoryTest : public testing::TestWithParam<Case> {
protected:
  VerifyMemoryTest() {
    context.disableMultithreading();
    context.loadDialect<DynaDialect, dist::DistDialect>();
  }

  bool isTried() { return walksAll || ++numOthers % 29 == 0; }
  bool isRefused() {
    return failed(mlir::verify(*module)) || failed(verifyMemory(*module));
  }
  bool isHarmless(Operation *op, StringRef name, PlaceAttr before,
                  PlaceAttr after) const;
  void walkList(Operation *op, StringRef name);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  const bool walksAll = std::getenv("DYNA_WALK_ALL") != nullptr;
  size_t numOthers = 0;
  size_t numMutants = 0, numMoved = 0, numReturned = 0, numEntries = 0;
};

/// Another memory or number, not another place in it.
bool isOtherEntry(PlaceAttr before, PlaceAttr after) {
  return after == PlaceAttr::get(before.getContext(), after.getMemory(),
                                 after.getIndex(), before.getTq(),
                                 before.getTkv(), before.getS(),
                                 before.getConstant(), before.getColumn(),
                                 before.getStride());
}

/// See above.
bool VerifyMemoryTest::isHarmless(Operation *op, StringRef name,
                                  PlaceAttr before, PlaceAttr after) const {
  if (name == "tiers")
    return false;
  if (name != "places")
    return isOtherEntry(before, after);
  auto function = op->getParentOfType<FunctionOp>();
  if (after.getMemory() == Memory::Workspace)
    return true;
  return llvm::is_contained(function.getResultPlaces(), after);
}

/// All places of an attribute that lists some.
void VerifyMemoryTest::walkList(Operation *op, StringRef name) {
  auto list = op->getAttrOfType<ArrayAttr>(name);
  if (!list)
    return;
  for (auto [index, attribute] : llvm::enumerate(list)) {
    auto place = cast<PlaceAttr>(attribute);
    for (PlaceAttr mutant : mutantsOf(place)) {
      if (!isTried())
        continue;
      SmallVector<Attribute> changed(list.begin(), list.end());
      changed[index] = mutant;
      op->setAttr(name, ArrayAttr::get(&context, changed));
      ++numMutants;
      if (isRefused())
        continue;
      if (isHarmless(op, name, place, mutant)) {
        ++(name != "places"                          ? numEntries
           : mutant.getMemory() == Memory::Workspace ? numMoved
                                                     : numReturned);
        continue;
      }
      std::string text, was, is;
      llvm::raw_string_ostream(text) << op->getName();
      llvm::raw_string_ostream(was) << Attribute(place);
      llvm::raw_string_ostream(is) << Attribute(mutant);
      ADD_FAILURE() << name.str() << " #" << index << " of " << text << ": "
                    << is << " instead of " << was << " is accepted";
    }
    SmallVector<Attribute> shorter(list.begin(), list.end());
    shorter.erase(shorter.begin() + static_cast<int64_t>(index));
    op->setAttr(name, ArrayAttr::get(&context, shorter));
    ++numMutants;
    EXPECT_TRUE(isRefused()) << name.str() << " without #" << index;
  }
  op->setAttr(name, list);
}

TEST_P(VerifyMemoryTest, RefusesEveryMutant) {
  module =
      importConfig(&context, llvm::MemoryBufferRef(GetParam().config, "test"));
  ASSERT_TRUE(module);
  PassManager passes(&context);
  buildDifferentiatePhase(passes);
  DistributePhaseOptions distribute;
  distribute.strategy = GetParam().strategy;
  if (!distribute.strategy.empty())
    buildDistributePhase(passes, distribute);
  buildMemoryPhase(passes);
  ASSERT_TRUE(succeeded(passes.run(*module)));
  ASSERT_FALSE(isRefused());
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  SmallVector<Operation *> ops;
  module->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    for (StringRef name : {"tiers", "arg_places", "result_places", "places"})
      walkList(op, name);
    auto function = dyn_cast<FunctionOp>(op);
    if (!function || !function.getWorkspaceAttr())
      continue;
    PlaceAttr workspace = function.getWorkspaceAttr();
    for (PlaceAttr mutant : mutantsOf(workspace)) {
      if (!isTried())
        continue;
      function.setWorkspaceAttr(mutant);
      ++numMutants;
      EXPECT_TRUE(isRefused()) << function.getSymName().str();
    }
    function.setWorkspaceAttr(workspace);
  }
  EXPECT_FALSE(isRefused());
  std::cout << numMutants << " mutants, of them " << numMoved
            << " moved within the workspace, " << numReturned
            << " where something is returned, " << numEntries
            << " of another signature\n";
  EXPECT_GT(numMutants, walksAll ? 10000u : 500u);
  EXPECT_LT(numMoved + numReturned + numEntries, numMutants / 10);
}

INSTANTIATE_TEST_SUITE_P(
    Models, VerifyMemoryTest,
    testing::Values(Case{"Gpt2", smallGpt2(), ""},
                    Case{"Llama", smallLlama(), ""},
                    Case{"LlamaTp2Sp", smallLlama(), "tp=2,sp=1"}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
