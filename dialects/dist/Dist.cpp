//===- Dist.cpp - Defines attributes of the dist dialect ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dyna/KnownAttributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dist;

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

static ::dyna::StatusOr<::dyna::Mesh> createMesh(ArrayRef<StringAttr> names,
                                                 ArrayRef<int64_t> sizes,
                                                 ArrayRef<int64_t> ranks) {
  std::vector<::dyna::MeshAxis> axes;
  for (auto [name, size] : llvm::zip_equal(names, sizes))
    axes.push_back({name.str(), size});
  return ::dyna::Mesh::create(std::move(axes), {ranks.begin(), ranks.end()});
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> ranks) {
  // MESH1
  auto mesh = createMesh(names, sizes, ranks);
  if (!mesh.isOk())
    return emitError() << mesh.status().message();
  return success();
}

MeshAttr MeshAttr::get(MLIRContext *context, const ::dyna::Mesh &mesh) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (const ::dyna::MeshAxis &axis : mesh.axes()) {
    names.push_back(StringAttr::get(context, axis.name));
    sizes.push_back(axis.size);
  }
  ArrayRef<int64_t> ranks = mesh.ranks();
  bool isIdentity = true;
  for (auto [position, rank] : llvm::enumerate(ranks))
    isIdentity &= rank == static_cast<int64_t>(position);
  return get(context, names, sizes, isIdentity ? ArrayRef<int64_t>() : ranks);
}

::dyna::Mesh MeshAttr::getMesh() const {
  return *createMesh(getNames(), getSizes(), getRanks());
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(llvm::zip_equal(getNames(), getSizes()), printer,
                        [&](auto axis) {
                          printer.printKeywordOrString(std::get<0>(axis));
                          printer << '=' << std::get<1>(axis);
                        });
  if (!getRanks().empty()) {
    printer << (getNames().empty() ? "ranks [" : " ranks [");
    llvm::interleaveComma(getRanks(), printer);
    printer << ']';
  }
  printer << '>';
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes, ranks;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  auto parseRank = [&]() { return parser.parseInteger(ranks.emplace_back()); };
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseCommaSeparatedList(parseAxis))
    return {};
  if (succeeded(parser.parseOptionalKeyword("ranks")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRank))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MeshAttr>(location, parser.getContext(), names,
                                     sizes, ranks);
}

//===----------------------------------------------------------------------===//
// Lists of axis parts as text
//===----------------------------------------------------------------------===//

/// Parses `[tp, dp:2/1]` and appends it to `text`.
static ParseResult parseParts(AsmParser &parser, std::string &text) {
  text += '[';
  bool isFirst = true;
  auto parsePart = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    text += (isFirst ? "" : ", ") + name;
    isFirst = false;
    if (failed(parser.parseOptionalColon()))
      return success();
    int64_t size, stride;
    if (parser.parseInteger(size) || parser.parseSlash() ||
        parser.parseInteger(stride))
      return failure();
    text += ":" + std::to_string(size) + "/" + std::to_string(stride);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePart))
    return failure();
  text += ']';
  return success();
}

/// Parses `on <mesh>>`.
static ParseResult parseOnMesh(AsmParser &parser, MeshAttr &mesh) {
  return failure(parser.parseKeyword("on") ||
                 parser.parseCustomAttributeWithFallback(mesh) ||
                 parser.parseGreater());
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 MeshAttr mesh, StringRef text) {
  // LAYOUT1
  auto layout = ::dyna::parseLayout(mesh.getMesh(), text.str());
  if (!layout.isOk())
    return emitError() << layout.status().message();
  return success();
}

LayoutAttr LayoutAttr::get(MeshAttr mesh, const ::dyna::Layout &layout) {
  return get(mesh.getContext(), mesh,
             ::dyna::describeLayout(mesh.getMesh(), layout));
}

::dyna::Layout LayoutAttr::getLayout() const {
  return *::dyna::parseLayout(getMesh().getMesh(), getText().str());
}

bool LayoutAttr::isEquivalentTo(LayoutAttr other) const {
  return *this == other || (getMesh() == other.getMesh() &&
                            ::dyna::canonicalLayout(getLayout()) ==
                                ::dyna::canonicalLayout(other.getLayout()));
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << getText() << " on ";
  printer.printStrippedAttrOrType(getMesh());
  printer << '>';
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  std::string text = "[";
  auto parseDim = [&]() {
    text += text.size() == 1 ? "" : ", ";
    return parseParts(parser, text);
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  text += ']';
  if (succeeded(parser.parseOptionalKeyword("partial"))) {
    text += " partial ";
    if (parseParts(parser, text))
      return {};
  }
  MeshAttr mesh;
  if (parseOnMesh(parser, mesh))
    return {};
  return parser.getChecked<LayoutAttr>(location, parser.getContext(), mesh,
                                       text);
}

//===----------------------------------------------------------------------===//
// GroupAttr
//===----------------------------------------------------------------------===//

/// Returns parts from text: a list of parts is a layout of one dimension.
static ::dyna::StatusOr<::dyna::AxisParts> partsFromText(MeshAttr mesh,
                                                         StringRef text) {
  DYNA_ASSIGN_OR_RETURN(
      auto layout,
      ::dyna::parseLayout(mesh.getMesh(), ("[" + text + "]").str()));
  return layout.dims.front();
}

std::optional<int64_t> GroupAttr::getAxisIndex(const ::dyna::Mesh &mesh,
                                               const ::dyna::AxisParts &parts) {
  static constexpr StringLiteral axes[] = {"dp", "tp", "pp"};
  static_assert(std::size(axes) == kFirstFactorGroup);
  ::dyna::AxisParts canonical = ::dyna::canonicalParts(parts);
  for (auto [index, name] : llvm::enumerate(axes)) {
    std::optional<int> axis = mesh.findAxis(name.str());
    if (axis && canonical == ::dyna::canonicalParts(
                                 ::dyna::AxisParts{mesh.wholeAxis(*axis)}))
      return index;
  }
  return std::nullopt;
}

LogicalResult GroupAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t index, MeshAttr mesh, StringRef text) {
  // GROUP1
  auto parts = partsFromText(mesh, text);
  if (!parts.isOk())
    return emitError() << parts.status().message();
  if (parts->empty())
    return emitError() << "expects the axis parts in which the ranks of a "
                          "group differ, but got none";
  // GROUP2
  std::optional<int64_t> axis = getAxisIndex(mesh.getMesh(), *parts);
  if (axis && index != *axis)
    return emitError() << "expects the group over " << text << " to have index "
                       << *axis << ", but got " << index;
  if (!axis && index < kFirstFactorGroup)
    return emitError() << "expects a group over " << text
                       << " to have an index from " << kFirstFactorGroup
                       << " on, as it is none of the axes dp, tp and pp, but "
                          "got "
                       << index;
  return success();
}

GroupAttr GroupAttr::get(int64_t index, MeshAttr mesh,
                         const ::dyna::AxisParts &parts) {
  return get(mesh.getContext(), index, mesh,
             ::dyna::describeParts(mesh.getMesh(), parts));
}

::dyna::AxisParts GroupAttr::getParts() const {
  return *partsFromText(getMesh(), getText());
}

int64_t GroupAttr::getSize() const { return ::dyna::groupSize(getParts()); }

void GroupAttr::print(AsmPrinter &printer) const {
  printer << '<' << getIndex() << ' ' << getText() << " on ";
  printer.printStrippedAttrOrType(getMesh());
  printer << '>';
}

Attribute GroupAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  int64_t index;
  std::string text;
  MeshAttr mesh;
  if (parser.parseLess() || parser.parseInteger(index) ||
      parseParts(parser, text) || parseOnMesh(parser, mesh))
    return {};
  return parser.getChecked<GroupAttr>(location, parser.getContext(), index,
                                      mesh, text);
}

//===----------------------------------------------------------------------===//
// Dialect
//===----------------------------------------------------------------------===//

/// Verifies an array of layouts, with unit attributes if `allowsUnit`.
static LogicalResult verifyLayouts(Operation *op, NamedAttribute attribute,
                                   TypeRange types, bool allowsUnit) {
  auto array = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!array || array.size() != types.size())
    return op->emitOpError()
           << "expects '" << attribute.getName().getValue() << "' to list "
           << types.size() << " layouts, but got " << attribute.getValue();
  for (auto [element, type] : llvm::zip_equal(array, types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (allowsUnit && isa<UnitAttr>(element) && !tensor)
      continue;
    auto layout = dyn_cast<LayoutAttr>(element);
    if (!layout || !tensor ||
        layout.getLayout().dims.size() != size_t(tensor.getRank()))
      return op->emitOpError() << "expects '" << attribute.getName().getValue()
                               << "' to give a layout that fits " << type
                               << ", but got " << element;
  }
  return success();
}

static bool isLayer(Operation *op) { return isa<mlir::dyna::LayerOp>(op); }
static bool isLayerOrFunction(Operation *op) {
  return isa<mlir::dyna::LayerOp, mlir::dyna::FunctionOp>(op);
}

/// Attributes that phases add, and their ops. Phases verify the values.
static constexpr mlir::dyna::KnownAttribute attributes[] = {
    {kLayouts.name, "ops with results",
     [](Operation *op) { return op->getNumResults() > 0; },
     "an array of layouts", kLayouts.isKind},
    {kArguments.name, "layers and layer functions", isLayerOrFunction,
     "an array of layouts", kArguments.isKind},
    {kResults.name, "layers and layer functions", isLayerOrFunction,
     "an array of layouts", kResults.isKind},
    {kGradients.name, "layers", isLayer, "an array of layouts",
     [](Attribute value) {
       auto array = dyn_cast<ArrayAttr>(value);
       return array && llvm::all_of(array, llvm::IsaPred<LayoutAttr>);
     }},
    {kMesh.name, "layers", isLayer, "a mesh such as #dist.mesh<tp=2>",
     kMesh.isKind},
    {kLogical.name, "layers", isLayer, "the name of a layer", kLogical.isKind},
    {kSequence.name, "layers", isLayer, "a unit attribute", kSequence.isKind},
    {kTokens.name, "ops that count tokens: dropout, positions, positions_grad",
     [](Operation *op) {
       return op->hasTrait<mlir::dyna::OpTrait::CountsTokens>();
     },
     "a group such as #dist.group<1 [tp] on <tp=2>>", kTokens.isKind},
    {kFeatures.name, "ops that count features: dropout",
     [](Operation *op) {
       return op->hasTrait<mlir::dyna::OpTrait::CountsFeatures>();
     },
     "a group such as #dist.group<1 [tp] on <tp=2>>", kFeatures.isKind},
    {kGroups.name, "modules", [](Operation *op) { return isa<ModuleOp>(op); },
     "an array of groups",
     [](Attribute value) {
       auto array = dyn_cast<ArrayAttr>(value);
       return array && llvm::all_of(array, llvm::IsaPred<GroupAttr>);
     }},
};

/// Checks that all attributes of a part are present. The distribute phase
/// copies a layer and writes all of them onto the copy. In a layer with fewer
/// of them they have no meaning.
static LogicalResult verifyIsPart(Operation *op, StringRef name) {
  auto refuse = [&](StringRef what, StringRef missing) {
    return op->emitOpError()
           << "has '" << name << "', but its " << what << " has no '" << missing
           << "': attributes 'dist.*' are written by --dyna-distribute only";
  };
  if (auto layer = isLayer(op) ? cast<mlir::dyna::LayerOp>(op)
                               : op->getParentOfType<mlir::dyna::LayerOp>())
    for (StringRef needed : {kMesh.name, kLogical.name, kArguments.name,
                             kResults.name, kGradients.name})
      if (!layer->hasAttr(needed))
        return refuse("layer", needed);
  if (auto function = op->getParentOfType<mlir::dyna::FunctionOp>())
    if (!kArguments.isOn(function))
      return refuse("function", kArguments.name);
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  auto *known = getRegisteredInterface<dyna::KnownAttributes>();
  if (failed(known->verify(op, attribute)))
    return failure();
  // A layer may have the attribute with a typing error in its name.
  if (isLayer(op))
    for (NamedAttribute other : op->getDiscardableAttrs())
      if (other.getNameDialect() == this && failed(known->verify(op, other)))
        return failure();
  if (failed(verifyIsPart(op, attribute.getName())))
    return failure();
  StringRef name = attribute.getName().getValue();
  if (name == kLayouts.name)
    return verifyLayouts(op, attribute, op->getResultTypes(), false);
  if (auto function = dyn_cast<FunctionOpInterface>(op)) {
    // The verifier of the op runs later and reports the missing type.
    auto type = op->getAttrOfType<TypeAttr>("function_type");
    if (!type || !isa<FunctionType>(type.getValue()))
      return success();
    if (name == kArguments.name)
      return verifyLayouts(op, attribute, function.getArgumentTypes(), true);
    if (name == kResults.name)
      return verifyLayouts(op, attribute, function.getResultTypes(), true);
  }
  return success();
}

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttributes.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttributes.cpp.inc"
      >();
  dyna::StrictOps<
#define GET_OP_LIST
#include "dialects/dist/Dist.cpp.inc"
      >::addTo(*this);
  addInterface(std::make_unique<dyna::KnownAttributes>(this, attributes));
}
