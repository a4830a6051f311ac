//===- VerifyLocalTest.cpp - Nothing in a local program is left unproved --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPT-2 and LLaMA at several tensor degrees, in bf16, so that every role is
// there. In each local program every attribute is deleted and changed, one at a
// time, wherever it stands (module, layer, function, op, collective in an
// exchange), attributes that could be there are added, and every op is deleted:
// what it gave is replaced by something of the same type. Each mutant must be
// refused by the verifiers of the ops or by verify-local. There are no
// exceptions; what is no mutant is what the text could not say (an attribute
// with a default is never absent) or another spelling of the same layout.
//
// A model is walked layer by layer: its layers share nothing but their groups.
//
// With DYNA_WALK_ALL set all mutants are tried; otherwise all deletions, and
// one in sixteen of the others.
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/distribute/Passes.h"
#include "test/passes/SmallConfigs.h"
#include "llvm/ADT/TypeSwitch.h"
#include "gtest/gtest.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisPart;
using ::dyna::AxisParts;
using ::dyna::Layout;

//===----------------------------------------------------------------------===//
// Attributes that are not the given one
//===----------------------------------------------------------------------===//

static SmallVector<Attribute> mutantsOf(Attribute attribute);

/// The parts of a list that an axis can be split into.
static std::vector<AxisParts> partsOn(const ::dyna::Mesh &mesh) {
  int64_t size = mesh.axes()[0].size;
  std::vector<AxisParts> lists = {{}, {mesh.wholeAxis(0)}};
  for (int64_t factor = 2; factor < size; ++factor)
    if (size % factor == 0) {
      AxisPart minor{0, 1, factor}, major{0, factor, size / factor};
      lists.insert(lists.end(), {{minor}, {major}, {minor, major}});
    }
  return lists;
}

static SmallVector<dist::MeshAttr> meshesBut(dist::MeshAttr mesh) {
  int64_t size = mesh.getMesh().size();
  std::vector<int64_t> turned;
  for (int64_t i = size; i-- > 0;)
    turned.push_back(i);
  auto make = [&](std::vector<::dyna::MeshAxis> axes,
                  std::vector<int64_t> ranks) {
    return dist::MeshAttr::get(
        mesh.getContext(),
        *::dyna::Mesh::create(std::move(axes), std::move(ranks)));
  };
  return {make({{"tp", size + 1}}, {}), make({{"tp", 2 * size}}, {}),
          make({{"tp", size}}, turned), make({{"dp", 1}, {"tp", size}}, {}),
          make({{"dp", size}}, {}),     make({{"tp", 1}}, {})};
}

static SmallVector<Attribute> mutantsOf(dist::LayoutAttr attribute) {
  SmallVector<Attribute> mutants{UnitAttr::get(attribute.getContext())};
  Layout layout = attribute.getLayout();
  auto add = [&](const Layout &other) {
    ::dyna::Mesh mesh = attribute.getMesh().getMesh();
    if (!::dyna::checkLayout(mesh, other, other.dims.size()).isOk())
      return;
    auto changed = dist::LayoutAttr::get(attribute.getMesh(), other);
    if (!changed.isEquivalentTo(attribute))
      mutants.push_back(changed);
  };
  for (const AxisParts &parts : partsOn(attribute.getMesh().getMesh())) {
    for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
      Layout other = layout;
      other.dims[dim] = parts;
      add(other);
      other.partial.clear();
      add(other);
    }
    Layout other = layout;
    other.partial = parts;
    add(other);
    other.dims.assign(layout.dims.size(), {});
    add(other);
  }
  Layout longer = layout;
  longer.dims.push_back({});
  add(longer);
  for (dist::MeshAttr mesh : meshesBut(attribute.getMesh()))
    mutants.push_back(
        dist::LayoutAttr::get(mesh, Layout::replicated(layout.dims.size())));
  return mutants;
}

static SmallVector<Attribute> mutantsOf(dist::GroupAttr attribute) {
  SmallVector<Attribute> mutants;
  auto silent = [&]() {
    return emitError(UnknownLoc::get(attribute.getContext()));
  };
  SmallVector<dist::MeshAttr> meshes = meshesBut(attribute.getMesh());
  meshes.push_back(attribute.getMesh());
  for (dist::MeshAttr mesh : meshes)
    for (const AxisParts &parts : partsOn(mesh.getMesh())) {
      std::string text = ::dyna::describeParts(mesh.getMesh(), parts);
      for (int64_t index = 0; index < 7; ++index)
        if (auto group = dist::GroupAttr::getChecked(
                silent, attribute.getContext(), index, mesh, StringRef(text)))
          mutants.push_back(group);
    }
  return mutants;
}

static SmallVector<Attribute> mutantsOf(ShardAttr shard) {
  SmallVector<Attribute> mutants;
  for (int64_t group = 0; group < 6; ++group)
    for (int64_t rows :
         {shard.getRows(), shard.getRows() - 1, shard.getRows() + 1,
          2 * shard.getRows(), int64_t(250)})
      mutants.push_back(ShardAttr::get(shard.getContext(), group, rows));
  return mutants;
}

static SmallVector<Attribute> mutantsOf(PlaceAttr place) {
  SmallVector<Attribute> mutants;
  MLIRContext *context = place.getContext();
  for (unsigned memory = 0; memory <= getMaxEnumValForMemory(); ++memory)
    for (int64_t index : {0, 1, 2, 3})
      if (!(index && PlaceAttr::get(context, Memory(memory), 0).isBlock()))
        mutants.push_back(PlaceAttr::get(context, Memory(memory), index));
  if (place.isBlock()) {
    mutants.push_back(
        PlaceAttr::get(context, place.getMemory(), 0, 64, 0, 0, 128, 0, 0));
    mutants.push_back(
        PlaceAttr::get(context, place.getMemory(), 0, 0, 0, 0, 0, 64, 4096));
  }
  return mutants;
}

/// Each element changed, one left out, one doubled, the order turned.
static SmallVector<Attribute> mutantsOf(ArrayAttr array) {
  SmallVector<Attribute> mutants;
  auto add = [&](SmallVector<Attribute> elements) {
    mutants.push_back(ArrayAttr::get(array.getContext(), elements));
  };
  for (size_t i = 0; i < array.size(); ++i) {
    SmallVector<Attribute> elements(array.getValue());
    for (Attribute element : mutantsOf(array[i])) {
      elements[i] = element;
      add(elements);
    }
    elements = SmallVector<Attribute>(array.getValue());
    elements.erase(elements.begin() + i);
    add(elements);
    elements.insert(elements.begin() + i, 2, array[i]);
    add(elements);
  }
  add(SmallVector<Attribute>(llvm::reverse(array.getValue())));
  return mutants;
}

/// One type changed, left out or doubled.
static SmallVector<Attribute> mutantsOf(FunctionType type) {
  SmallVector<Attribute> mutants;
  auto changed = [](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return RankedTensorType::get({4, 4}, Float32Type::get(type.getContext()));
    SmallVector<int64_t> shape(tensor.getShape());
    shape.back() = ShapedType::isDynamic(shape.back()) ? 3 : shape.back() + 1;
    return RankedTensorType::get(shape, tensor.getElementType());
  };
  for (bool isResult : {false, true}) {
    ArrayRef<Type> all = isResult ? type.getResults() : type.getInputs();
    for (size_t i = 0; i < all.size(); ++i) {
      SmallVector<Type> one(all), fewer(all), more(all);
      one[i] = changed(all[i]);
      fewer.erase(fewer.begin() + i);
      more.push_back(all[i]);
      for (ArrayRef<Type> types : {one, fewer, more})
        mutants.push_back(TypeAttr::get(FunctionType::get(
            type.getContext(), isResult ? type.getInputs() : types,
            isResult ? types : type.getResults())));
    }
  }
  return mutants;
}

/// Null for a kind of attribute that nobody has taught it.
static SmallVector<Attribute> mutantsOf(Attribute attribute) {
  MLIRContext *context = attribute.getContext();
  Builder builder(context);
  return llvm::TypeSwitch<Attribute, SmallVector<Attribute>>(attribute)
      .Case<dist::LayoutAttr, dist::GroupAttr, ShardAttr, PlaceAttr, ArrayAttr>(
          [](auto attribute) { return mutantsOf(attribute); })
      .Case([&](dist::MeshAttr mesh) {
        return SmallVector<Attribute>(llvm::map_range(
            meshesBut(mesh), [](dist::MeshAttr other) { return other; }));
      })
      .Case([&](TypeAttr type) {
        return mutantsOf(cast<FunctionType>(type.getValue()));
      })
      .Case([&](IntegerAttr integer) {
        SmallVector<Attribute> mutants;
        int64_t value = integer.getInt();
        for (int64_t other : {int64_t(0), int64_t(1), value + 1, value - 1,
                              2 * value, 3 * value, value / 2, -value})
          mutants.push_back(builder.getIntegerAttr(integer.getType(), other));
        return mutants;
      })
      .Case([&](FloatAttr number) {
        SmallVector<Attribute> mutants;
        double value = number.getValueAsDouble();
        for (double other : {0.0, 0.5, 2 * value, -value, 1 / value})
          mutants.push_back(builder.getFloatAttr(number.getType(), other));
        return mutants;
      })
      .Case([&](RoleAttr) {
        SmallVector<Attribute> mutants;
        for (unsigned role = 0; role <= getMaxEnumValForRole(); ++role)
          mutants.push_back(RoleAttr::get(context, Role(role)));
        return mutants;
      })
      .Case([&](GeluFormAttr) {
        return SmallVector<Attribute>{
            GeluFormAttr::get(context, GeluForm::Tanh),
            GeluFormAttr::get(context, GeluForm::Erf)};
      })
      .Case([&](StringAttr name) {
        return SmallVector<Attribute>{
            builder.getStringAttr(name.getValue() + "x"),
            builder.getStringAttr("x"), builder.getStringAttr("")};
      })
      .Case([&](FlatSymbolRefAttr) {
        SmallVector<Attribute> mutants;
        for (StringRef name : {"embed", "block", "head", "other", "block.tp2",
                               "embed.tp2", "block.forward"})
          mutants.push_back(FlatSymbolRefAttr::get(context, name));
        return mutants;
      })
      .Case([&](UnitAttr) {
        return SmallVector<Attribute>{builder.getBoolAttr(false)};
      })
      .Default([](Attribute) { return SmallVector<Attribute>{}; });
}

/// What could stand where no attribute is.
static SmallVector<NamedAttribute> additionsTo(Operation *op,
                                               dist::MeshAttr mesh) {
  SmallVector<NamedAttribute> additions;
  MLIRContext *context = op->getContext();
  AxisParts whole{mesh.getMesh().wholeAxis(0)};
  auto tensorLayouts = [&](TypeRange types) {
    SmallVector<Attribute> layouts;
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        layouts.push_back(
            dist::LayoutAttr::get(mesh, Layout::replicated(tensor.getRank())));
    return ArrayAttr::get(context, layouts);
  };
  SmallVector<Attribute> places(op->getNumResults(),
                                PlaceAttr::get(context, Memory::Workspace));
  SmallVector<Attribute> values = {
      UnitAttr::get(context), ShardAttr::get(context, 1, 1 << 20),
      ArrayAttr::get(context, places),
      PlaceAttr::get(context, Memory::Workspace, 0, 0, 0, 0, 64, 0, 0),
      ArrayAttr::get(context,
                     SmallVector<Attribute>(
                         4, PlaceAttr::get(context, Memory::Products)))};
  for (StringAttr name : op->getName().getAttributeNames())
    if (!op->hasAttr(name))
      for (Attribute value : values)
        additions.emplace_back(name, value);
  auto add = [&](StringRef name, Attribute value) {
    if (!op->hasAttr(name))
      additions.emplace_back(StringAttr::get(context, name), value);
  };
  add(dist::kTokens.name, dist::GroupAttr::get(1, mesh, whole));
  add(dist::kFeatures.name, dist::GroupAttr::get(1, mesh, whole));
  add(dist::kLayouts.name, tensorLayouts(op->getResultTypes()));
  add(dist::kSequence.name, UnitAttr::get(context));
  add(dist::kMesh.name, mesh);
  add(dist::kLogical.name, FlatSymbolRefAttr::get(context, "block"));
  add(dist::kGradients.name, ArrayAttr::get(context, {}));
  add(dist::kGroups.name,
      ArrayAttr::get(context, dist::GroupAttr::get(1, mesh, whole)));
  return additions;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

namespace {

struct Case {
  const char *name;
  std::string config;
  const char *strategy;
};

class VerifyLocalTest : public testing::TestWithParam<Case> {
protected:
  VerifyLocalTest() {
    context.disableMultithreading();
    context.loadDialect<DynaDialect, dist::DistDialect>();
  }

  OwningOpRef<ModuleOp> differentiated();
  OwningOpRef<ModuleOp> distributed(ModuleOp differentiated, StringRef layer);
  void walk(ModuleOp module);
  void mutateAttributes(Operation *op);
  void mutate(Operation *op, StringAttr name, Attribute value);
  bool isTried() { return walksAll || ++numOthers % 16 == 0; }
  void deleteOp(Operation *op);
  void expectRefused(Operation *op, const Twine &what);

  MLIRContext context;
  ModuleOp module;
  dist::MeshAttr mesh;
  const bool walksAll = std::getenv("DYNA_WALK_ALL") != nullptr;
  size_t numOthers = 0;
  /// Ops without whose result no well-typed program is left.
  size_t numIndispensable = 0;
  size_t numMutants = 0, numDeleted = 0;
};

} // namespace

OwningOpRef<ModuleOp> VerifyLocalTest::differentiated() {
  OwningOpRef<ModuleOp> result =
      importConfig(&context, llvm::MemoryBufferRef(GetParam().config, "test"));
  PassManager passes(&context);
  ConvertPhaseOptions convert;
  convert.type = "bf16";
  buildConvertPhase(passes, convert);
  buildDifferentiatePhase(passes);
  if (!result || failed(passes.run(*result)))
    return {};
  return result;
}

/// One layer alone.
OwningOpRef<ModuleOp> VerifyLocalTest::distributed(ModuleOp differentiated,
                                                   StringRef layer) {
  OwningOpRef<ModuleOp> result(differentiated.clone());
  for (Operation &op : llvm::make_early_inc_range(result->getOps())) {
    auto function = dyn_cast<FunctionOp>(op);
    auto other = dyn_cast<LayerOp>(op);
    if (isa<ModelOp>(op) || (function && function.getLayer() != layer) ||
        (other && other.getSymName() != layer))
      op.erase();
  }
  PassManager passes(&context);
  DistributePhaseOptions options;
  options.strategy = GetParam().strategy;
  buildDistributePhase(passes, options);
  if (failed(passes.run(*result)))
    return {};
  return result;
}

void VerifyLocalTest::expectRefused(Operation *op, const Twine &what) {
  ++numMutants;
  if (failed(mlir::verify(module)) || failed(verifyLocal(module)))
    return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().skipRegions().useLocalScope());
  ADD_FAILURE() << what.str() << " is accepted: " << text;
}

void VerifyLocalTest::mutate(Operation *op, StringAttr name, Attribute value) {
  DictionaryAttr before = op->getAttrDictionary();
  Attribute old = op->getAttr(name);
  if (value)
    op->setAttr(name, value);
  else
    op->removeAttr(name);
  // As parsing does: what has a default cannot be absent.
  if (op->getPropertiesStorageSize())
    op->getName().populateDefaultProperties(op->getPropertiesStorage());
  if (op->getAttrDictionary() != before)
    expectRefused(op, name.getValue() + (value ? " changed" : " deleted"));
  if (old)
    op->setAttr(name, old);
  else
    op->removeAttr(name);
  ASSERT_EQ(op->getAttrDictionary(), before);
}

void VerifyLocalTest::mutateAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    mutate(op, attribute.getName(), Attribute());
    SmallVector<Attribute> mutants = mutantsOf(attribute.getValue());
    EXPECT_FALSE(mutants.empty()) << attribute.getName().str();
    for (Attribute mutant : mutants)
      if (isTried())
        mutate(op, attribute.getName(), mutant);
  }
  for (NamedAttribute addition : additionsTo(op, mesh))
    if (isTried())
      mutate(op, addition.getName(), addition.getValue());
}

/// Values of the result's type that are there before the op: what it, or
/// something in it, reads, and the last one made.
static SmallVector<Value> standInsFor(OpResult result) {
  SmallVector<Value> values;
  Operation *op = result.getOwner();
  auto consider = [&](Value value) {
    bool isBefore = !value.getDefiningOp() ||
                    value.getDefiningOp()->getBlock() != op->getBlock() ||
                    value.getDefiningOp()->isBeforeInBlock(op);
    if (value.getType() == result.getType() && isBefore &&
        !op->isProperAncestor(value.getParentBlock()->getParentOp()) &&
        value.getParentBlock()->getParentOp() != op &&
        !llvm::is_contained(values, value))
      values.push_back(value);
  };
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      consider(operand);
  });
  size_t numRead = values.size();
  for (Operation *other = op->getPrevNode(); other && values.size() == numRead;
       other = other->getPrevNode())
    for (Value value : other->getResults())
      consider(value);
  if (values.empty())
    for (BlockArgument argument : op->getBlock()->getArguments())
      consider(argument);
  return values;
}

void VerifyLocalTest::deleteOp(Operation *op) {
  SmallVector<SmallVector<Value>> standIns;
  size_t numTries = 1;
  for (OpResult result : op->getResults()) {
    standIns.push_back(standInsFor(result));
    if (result.use_empty())
      continue;
    if (standIns.back().empty()) {
      ++numIndispensable;
      return;
    }
    numTries = std::max(numTries, standIns.back().size());
  }
  Block *block = op->getBlock();
  Operation *next = op->getNextNode();
  for (size_t attempt = 0; attempt < numTries; ++attempt) {
    SmallVector<std::pair<OpOperand *, Value>> uses;
    for (auto [result, values] : llvm::zip(op->getResults(), standIns))
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
        uses.push_back({&use, result});
        use.set(values[attempt % values.size()]);
      }
    op->remove();
    ++numDeleted;
    expectRefused(op, "program without op");
    block->getOperations().insert(next ? Block::iterator(next) : block->end(),
                                  op);
    for (auto [use, value] : uses)
      use->set(value);
  }
}

void VerifyLocalTest::walk(ModuleOp distributed) {
  module = distributed;
  SmallVector<Operation *> functions, ops;
  for (LayerOp layer : module.getOps<LayerOp>())
    if (auto attribute = dist::kMesh.of(layer)) {
      mesh = attribute;
      functions.push_back(layer);
      for (FunctionOp function : module.getOps<FunctionOp>())
        if (function.getLayer() == layer.getSymName())
          functions.push_back(function);
    }
  ASSERT_GE(functions.size(), 7u);
  for (Operation *function : functions)
    function->walk([&](Operation *op) { ops.push_back(op); });
  ASSERT_TRUE(succeeded(mlir::verify(module)));
  ASSERT_TRUE(succeeded(verifyLocal(module)));
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  mutateAttributes(module);
  for (Operation *op : ops) {
    mutateAttributes(op);
    deleteOp(op);
  }
  ASSERT_TRUE(succeeded(mlir::verify(module)));
  ASSERT_TRUE(succeeded(verifyLocal(module)));
}

TEST_P(VerifyLocalTest, RefusesEveryMutant) {
  OwningOpRef<ModuleOp> all = differentiated();
  ASSERT_TRUE(all);
  for (LayerOp layer : all->getOps<LayerOp>()) {
    SCOPED_TRACE(layer.getSymName().str());
    OwningOpRef<ModuleOp> one = distributed(*all, layer.getSymName());
    ASSERT_TRUE(one);
    ASSERT_NO_FATAL_FAILURE(walk(*one));
  }
  RecordProperty("mutants", numMutants);
  RecordProperty("ops_deleted", numDeleted);
  RecordProperty("ops_indispensable", numIndispensable);
  std::cout << numMutants << " mutants, of them " << numDeleted
            << " with an op deleted\n";
  EXPECT_GT(numDeleted, 350u);
  EXPECT_LT(numIndispensable, 100u);
  EXPECT_GT(numMutants, walksAll ? 20000u : 2000u);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, VerifyLocalTest,
    testing::Values(Case{"Gpt2Tp2", smallGpt2(), "tp=2"},
                    Case{"Gpt2Tp3", smallGpt2(), "tp=3"},
                    Case{"Gpt2Tp6", smallGpt2(), "tp=6"},
                    Case{"Gpt2Tp2Sp", smallGpt2(), "tp=2,sp=1"},
                    Case{"Gpt2Tp3Sp", smallGpt2(), "tp=3,sp=1"},
                    Case{"Gpt2Tp6Sp", smallGpt2(), "tp=6,sp=1"},
                    Case{"LlamaTp2", smallLlama({12, 2}), "tp=2"},
                    Case{"LlamaTp3", smallLlama({12, 3}), "tp=3"},
                    Case{"LlamaTp6", smallLlama({12, 2}), "tp=6"},
                    Case{"LlamaTp2Sp", smallLlama({12, 2}), "tp=2,sp=1"},
                    Case{"LlamaTp3Sp", smallLlama({12, 1}), "tp=3,sp=1"},
                    Case{"LlamaTp6Sp", smallLlama({12, 3}), "tp=6,sp=1"}),
    [](const auto &info) { return std::string(info.param.name); });
