//===- DynaStructureOps.cpp - Parses layers, models and functions ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::dyna;

PlaceAttr FunctionOp::getPlaceOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getArgPlace(argument.getArgNumber());
  auto result = cast<OpResult>(value);
  auto placed = dyn_cast<PlacedOpInterface>(result.getOwner());
  return placed ? placed.getPlace(result.getResultNumber()) : PlaceAttr();
}

Type FunctionOp::getGradientElementType() {
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (getArgPlace(index).getMemory() == Memory::Gradient)
      return getElementTypeOrSelf(type);
  return {};
}

//===----------------------------------------------------------------------===//
// Types of the optimizer
//===----------------------------------------------------------------------===//

static ParseResult parseMasterAndGradient(OpAsmParser &parser, Type &master,
                                          Type &gradient) {
  if (parser.parseType(master))
    return failure();
  gradient = master;
  return parser.parseOptionalComma() ? success() : parser.parseType(gradient);
}

static void printMasterAndGradient(OpAsmPrinter &printer, AdamwOp, Type master,
                                   Type gradient) {
  printer << master;
  if (gradient != master)
    printer << ", " << gradient;
}

//===----------------------------------------------------------------------===//
// Names of arguments
//===----------------------------------------------------------------------===//

/// Keeps the names of arguments that have no location of their own.
static void keepNames(OpAsmParser &parser,
                      MutableArrayRef<OpAsmParser::Argument> arguments) {
  for (OpAsmParser::Argument &argument : arguments) {
    if (argument.sourceLoc)
      continue;
    auto name =
        parser.getBuilder().getStringAttr(argument.ssaName.name.drop_front());
    argument.sourceLoc = NameLoc::get(
        name, parser.getEncodedSourceLoc(argument.ssaName.location));
  }
}

/// Returns true if a name was chosen. `%0` and `%arg0` are the printer's own
/// names.
static bool isChosen(StringRef name) {
  if (name.empty() || llvm::isDigit(name.front()))
    return false;
  return !name.consume_front("arg") || name.empty() ||
         !llvm::all_of(name, llvm::isDigit);
}

static void nameArguments(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (auto location = dyn_cast<NameLoc>(argument.getLoc()))
      if (isChosen(location.getName()))
        setName(argument, location.getName());
}

void LayerOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

void ModelOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

void FunctionOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameArguments(region, setName);
}

/// Parses `attributes {...}`, which must not repeat attributes that have their
/// own syntax.
static ParseResult parseAttributes(OpAsmParser &parser, OperationState &result,
                                   ArrayRef<StringAttr> spelledElsewhere) {
  NamedAttrList attributes;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDictWithKeyword(attributes))
    return failure();
  for (StringAttr name : spelledElsewhere)
    if (attributes.get(name))
      return parser.emitError(location)
             << "expects no attribute '" << name.getValue()
             << "' here: the syntax of the op says it elsewhere";
  result.attributes.append(attributes);
  return success();
}

//===----------------------------------------------------------------------===//
// LayerOp
//===----------------------------------------------------------------------===//

ParseResult LayerOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes))
    return failure();

  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments,
                               OpAsmParser::Delimiter::OptionalSquare,
                               /*allowType=*/true))
    return failure();
  int64_t numParameters = arguments.size();
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  SmallVector<Type> results;
  if (parser.parseArrowTypeList(results) ||
      parseAttributes(parser, result,
                      {getSymNameAttrName(result.name),
                       getFunctionTypeAttrName(result.name),
                       getNumParametersAttrName(result.name)}))
    return failure();

  SmallVector<Type> types;
  for (OpAsmParser::Argument &argument : arguments)
    types.push_back(argument.type);
  Builder &builder = parser.getBuilder();
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(types, results)));
  result.addAttribute(getNumParametersAttrName(result.name),
                      builder.getI64IntegerAttr(numParameters));
  keepNames(parser, arguments);
  return parser.parseRegion(*result.addRegion(), arguments);
}

static void printArguments(OpAsmPrinter &printer,
                           ArrayRef<BlockArgument> arguments) {
  llvm::interleaveComma(arguments, printer, [&](BlockArgument argument) {
    printer.printRegionArgument(argument);
  });
}

void LayerOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  if (getNumParameters() > 0) {
    printer << '[';
    printArguments(printer, getParameterArguments());
    printer << ']';
  }
  printer << '(';
  printArguments(printer, getInputArguments());
  printer << ')';
  printer.printArrowTypeList(getFunctionType().getResults());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(),
                            getNumParametersAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

ParseResult ModelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  FactsAttr facts;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseKeyword("facts") ||
      parser.parseCustomAttributeWithFallback(facts, Type(), "facts",
                                              result.attributes) ||
      parseAttributes(
          parser, result,
          {getSymNameAttrName(result.name), getFactsAttrName(result.name)}))
    return failure();
  keepNames(parser, arguments);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ModelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  printArguments(printer, getBody().getArguments());
  // A configuration can be long: diagnostics show the line of the name.
  printer << ')';
  printer.printNewline();
  printer << "    facts";
  printer.printStrippedAttrOrType(getFacts());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFactsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

/// Names losses. Activations keep their numbers.
void CallOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (Value loss = getExitLoss())
    setName(loss, "loss");
}

/// Parses `[@a, @b]`, or nothing.
static ParseResult parseSymbolList(OpAsmParser &parser, ArrayAttr &symbols) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
    list.push_back(FlatSymbolRefAttr::get(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalSquare,
                                     parseOne))
    return failure();
  symbols = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printSymbolList(OpAsmPrinter &printer, Operation *,
                            ArrayAttr symbols) {
  if (symbols.empty())
    return;
  printer << '[';
  llvm::interleaveComma(symbols.getAsRange<FlatSymbolRefAttr>(), printer);
  printer << ']';
}

//===----------------------------------------------------------------------===//
// FunctionOp
//===----------------------------------------------------------------------===//

static ParseResult parsePlace(OpAsmParser &parser,
                              SmallVectorImpl<Attribute> &places) {
  PlaceAttr place;
  if (parser.parseKeyword("in") ||
      parser.parseCustomAttributeWithFallback(place))
    return failure();
  places.push_back(place);
  return success();
}

/// Parses `(%x: type in <place>, ...) -> (type in <place>, ...)`.
static ParseResult
parseSignature(OpAsmParser &parser, OperationState &result,
               SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> argumentPlaces, resultPlaces;
  SmallVector<Type> argumentTypes, resultTypes;
  auto parseArgument = [&]() -> ParseResult {
    if (parser.parseArgument(arguments.emplace_back(), /*allowType=*/true))
      return failure();
    argumentTypes.push_back(arguments.back().type);
    return parsePlace(parser, argumentPlaces);
  };
  auto parseResult = [&]() -> ParseResult {
    if (parser.parseType(resultTypes.emplace_back()))
      return failure();
    return parsePlace(parser, resultPlaces);
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseArgument))
    return failure();
  if (succeeded(parser.parseOptionalArrow()) &&
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseResult))
    return failure();
  auto &properties = result.getOrAddProperties<FunctionOp::Properties>();
  properties.function_type =
      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes));
  properties.arg_places = builder.getArrayAttr(argumentPlaces);
  properties.result_places = builder.getArrayAttr(resultPlaces);
  return success();
}

static ParseResult parseRole(OpAsmParser &parser, RoleAttr &role) {
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Role> known = symbolizeRole(name);
  if (!known)
    return parser.emitError(location)
           << "expects a role such as 'forward' or 'backward', but got '"
           << name << "'";
  role = RoleAttr::get(parser.getContext(), *known);
  return success();
}

BlockArgument FunctionOp::findArgument(Memory memory, int64_t index) {
  for (auto [number, place] :
       llvm::enumerate(getArgPlaces().getAsRange<PlaceAttr>()))
    if (place.getMemory() == memory && place.getIndex() == index)
      return getBody().getArgument(number);
  return {};
}

/// Returns true if only products use the value, as their matrix. A gradient may also be
/// added to by several products, and returned.
static bool isMatrixAlone(Value value, bool isGradient) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isGradient && isa<ReturnOp>(user))
      return true;
    auto product = dyn_cast<MatrixProductOpInterface>(user);
    if (!product || llvm::count(user->getOperands(), value) != 1)
      return false;
    const MatrixProduct parts = product.getProduct();
    return parts.matrix() == value && parts.isPerRow() != isGradient &&
           (!isGradient || isMatrixAlone(parts.c, true));
  });
}

bool FunctionOp::hasProductsAlone(int64_t parameter) {
  BlockArgument weight = findArgument(Memory::Parameter, parameter);
  BlockArgument gradient = findArgument(Memory::Gradient, parameter);
  return (!weight || isMatrixAlone(weight, false)) &&
         (!gradient || isMatrixAlone(gradient, true));
}

ParseResult FunctionOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<FunctionOp::Properties>();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(properties.sym_name) ||
      parser.parseKeyword("of") || parser.parseAttribute(properties.layer) ||
      parser.parseKeyword("as") || parseRole(parser, properties.role) ||
      parseSignature(parser, result, arguments))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("workspace")) &&
      parser.parseCustomAttributeWithFallback(properties.workspace))
    return failure();
  if (parseAttributes(
          parser, result,
          {getSymNameAttrName(result.name), getLayerAttrName(result.name),
           getRoleAttrName(result.name), getFunctionTypeAttrName(result.name),
           getArgPlacesAttrName(result.name),
           getResultPlacesAttrName(result.name),
           getWorkspaceAttrName(result.name)}))
    return failure();
  keepNames(parser, arguments);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void FunctionOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " of " << getLayerAttr() << " as " << stringifyRole(getRole())
          << '(';
  llvm::interleaveComma(
      llvm::enumerate(getBody().getArguments()), printer, [&](auto indexed) {
        printer.printRegionArgument(indexed.value());
        printer << " in ";
        printer.printStrippedAttrOrType(getArgPlace(indexed.index()));
      });
  printer << ')';
  if (!getResultTypes().empty()) {
    printer << " -> (";
    llvm::interleaveComma(
        llvm::enumerate(getResultTypes()), printer, [&](auto indexed) {
          printer << indexed.value() << " in ";
          printer.printStrippedAttrOrType(getResultPlace(indexed.index()));
        });
    printer << ')';
  }
  if (PlaceAttr workspace = getWorkspaceAttr()) {
    printer << " workspace ";
    printer.printStrippedAttrOrType(workspace);
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getLayerAttrName(), getRoleAttrName(),
       getFunctionTypeAttrName(), getArgPlacesAttrName(),
       getResultPlacesAttrName(), getWorkspaceAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

#define GET_OP_CLASSES
#include "dialects/dyna/Dyna.cpp.inc"
