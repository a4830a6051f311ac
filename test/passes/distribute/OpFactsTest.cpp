//===- OpFactsTest.cpp - Every op states what phases ask for --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A fact that an op does not state is read as its contrary: no flops, a
// parameter on every rank, a value that is not added to. Each is asked here of
// every op, against what the op's layout rule shows: which dimensions of its
// tensors are one, and which are summed over. An op without a rule is an error
// itself.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/distribute/deduce/LayoutRules.h"
#include "passes/memory/value/Values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace mlir;
using namespace mlir::dyna;
using mlir::dist::Factor;
using mlir::dist::FactorRule;
using mlir::dist::TensorFactors;

namespace {

/// What has no results to be placed: the structure of models.
const std::set<std::string> structure = {
    "dyna.parameter", "dyna.layer",    "dyna.model", "dyna.call",
    "dyna.return",    "dyna.function", "dyna.yield"};

class OpFactsTest : public testing::Test {
protected:
  OpFactsTest() {
    DialectRegistry registry;
    registry.insert<DynaDialect>();
    registerLayoutRules(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<DynaDialect, dist::DistDialect>();
    context.allowUnregisteredDialects();
    std::ifstream file(DYNA_SOURCE_DIR
                       "/test/passes/distribute/layout-rules.mlir");
    std::stringstream stream;
    stream << file.rdbuf();
    std::string text = stream.str();
    SmallVector<StringRef> pieces;
    StringRef(text).split(pieces, "// -----");
    for (StringRef piece : pieces) {
      modules.push_back(parseSourceString<ModuleOp>(piece, &context));
      if (modules.back())
        modules.back()->walk([&](Operation *op) {
          if (auto ruled = dyn_cast<dist::LayoutRuleOpInterface>(op))
            rules[op] = ruled.getLayoutRule();
        });
    }
  }

  /// Asks `check`, which explains itself by EXPECT, of every op with a rule.
  void forEach(function_ref<void(Operation *, const FactorRule &)> check) {
    EXPECT_FALSE(rules.empty());
    for (auto &[op, rule] : rules) {
      SCOPED_TRACE(op->getName().getStringRef().str() + " " +
                   describeRule(rule));
      check(op, rule);
    }
  }

  SmallVector<RegisteredOperationName> opsOf(StringRef dialect) {
    return llvm::filter_to_vector(
        context.getRegisteredOperations(), [&](RegisteredOperationName name) {
          return name.getDialectNamespace() == dialect;
        });
  }

  MLIRContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::map<Operation *, FactorRule> rules;
};

std::set<int> factorsOf(const TensorFactors &factors) {
  std::set<int> all;
  for (const auto &list : factors)
    all.insert(list.begin(), list.end());
  return all;
}

bool isTied(const FactorRule &rule, int operand) {
  return llvm::any_of(rule.tied,
                      [&](auto pair) { return pair.first == operand; });
}

/// Whether two operands share a dimension and each has one of its own: their
/// elements meet in more combinations than there are elements.
bool multiplies(const FactorRule &rule) {
  auto includes = [](const std::set<int> &all, const std::set<int> &part) {
    return std::includes(all.begin(), all.end(), part.begin(), part.end());
  };
  for (size_t i = 0; i < rule.operands.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      std::set<int> a = factorsOf(rule.operands[i]),
                    b = factorsOf(rule.operands[j]), shared;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                            std::inserter(shared, shared.end()));
      if (!shared.empty() && !includes(a, b) && !includes(b, a) &&
          !isTied(rule, int(i)) && !isTied(rule, int(j)))
        return true;
    }
  return false;
}

bool hasTokens(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.isDynamicDim(0);
}

bool hasTokens(Operation *op) {
  return llvm::any_of(op->getOperands(),
                      [](Value value) { return hasTokens(value); }) ||
         llvm::any_of(op->getResults(),
                      [](Value value) { return hasTokens(value); });
}

/// The kind of the factor of tokens, if the op has any.
std::optional<Factor::Kind> tokenKind(Operation *op, const FactorRule &rule) {
  for (auto [value, factors] : llvm::zip_equal(op->getResults(), rule.results))
    if (hasTokens(value))
      return rule.factors[factors[0].front()].kind;
  for (auto [value, factors] :
       llvm::zip_equal(op->getOperands(), rule.operands))
    if (hasTokens(value))
      return rule.factors[factors[0].front()].kind;
  return std::nullopt;
}

/// Whether all tensors have one, undivided dimension of features, which ranks
/// could share.
bool sharesFeatures(Operation *op, const FactorRule &rule) {
  const auto &features = rule.results[0].back();
  auto ends = [&](const TensorFactors &factors) {
    return factors.empty() || factors.back() == features;
  };
  return hasTokens(op) && features.size() == 1 &&
         rule.factors[features.front()].kind == Factor::Even &&
         llvm::all_of(rule.operands, ends) && llvm::all_of(rule.results, ends);
}

/// Numbers of operands and results. No value is given twice.
std::set<std::pair<int, int>> accumulationNumbers(Operation *op) {
  std::set<std::pair<int, int>> pairs;
  for (auto [accumulator, result] : accumulationsOf(op))
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == accumulator)
        pairs.insert({operand.getOperandNumber(), result.getResultNumber()});
  return pairs;
}

} // namespace

TEST_F(OpFactsTest, EveryOpIsAsked) {
  std::set<std::string> asked;
  for (auto &[op, rule] : rules)
    asked.insert(op->getName().getStringRef().str());
  for (RegisteredOperationName name : opsOf("dyna")) {
    std::string text = name.getStringRef().str();
    bool isPlaced = name.hasInterface<PlacedOpInterface>();
    EXPECT_EQ(isPlaced, structure.count(text) == 0)
        << text << " makes tensors, and has no place for them";
    // A sweep is what its ops are.
    if (isPlaced && text != "dyna.rows")
      EXPECT_EQ(asked.count(text), 1U)
          << text << " has no layout rule, or no example of it in "
          << "layout-rules.mlir";
  }
}

TEST_F(OpFactsTest, RulesCoverEveryDimension) {
  forEach([](Operation *op, const FactorRule &rule) {
    auto check = [](Value value, const TensorFactors &factors) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      ASSERT_EQ(factors.size(), type ? size_t(type.getRank()) : 0U)
          << "how is this tensor split over ranks?";
      for (const auto &list : factors)
        EXPECT_FALSE(list.empty());
    };
    for (auto [value, factors] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      check(value, factors);
    for (auto [value, factors] :
         llvm::zip_equal(op->getResults(), rule.results))
      check(value, factors);
  });
}

TEST_F(OpFactsTest, ProductsSayTheirWork) {
  forEach([](Operation *op, const FactorRule &rule) {
    EXPECT_EQ(isProduct(op), multiplies(rule))
        << "an op that multiplies matrices is a ProductOpInterface";
    Work work = workIn(op);
    EXPECT_EQ(
        work.perToken + work.perTarget + work.perPair + work.perCausalPair > 0,
        multiplies(rule));
  });
}

TEST_F(OpFactsTest, ProductsOfRowsSayTheirOperands) {
  forEach([](Operation *op, const FactorRule &rule) {
    bool isPerRow = multiplies(rule) && hasTokens(op->getResult(0)) &&
                    tokenKind(op, rule) == Factor::Uneven;
    EXPECT_EQ(isRowProduct(op), isPerRow)
        << "rows of a MatrixProductOpInterface go to sweeps as they are made";
  });
}

TEST_F(OpFactsTest, AccumulatorsAreSaid) {
  forEach([](Operation *op, const FactorRule &rule) {
    std::set<std::pair<int, int>> said = accumulationNumbers(op);
    // The optimizer replaces what it is given: no part of a sum.
    if (!isa<AdamwOp>(op)) {
      std::set<std::pair<int, int>> tied(rule.tied.begin(), rule.tied.end());
      EXPECT_EQ(said, tied) << "what is added to is laid out as the sum";
    }
    for (OpResult result : op->getResults()) {
      if (hasTokens(result))
        continue;
      bool isGiven = false;
      for (auto [operand, factors] :
           llvm::zip_equal(op->getOperands(), rule.operands))
        isGiven |= operand.getType() == result.getType() &&
                   factors == rule.results[result.getResultNumber()];
      bool isSaid = llvm::any_of(said, [&](auto pair) {
        return pair.second == int(result.getResultNumber());
      });
      EXPECT_EQ(isSaid, isGiven)
          << "result " << result.getResultNumber()
          << " has the shape of an operand without tokens: is it added to?";
    }
  });
}

TEST_F(OpFactsTest, TablesAreKnown) {
  forEach([](Operation *op, const FactorRule &rule) {
    SmallVector<Value> tables;
    for (auto [operand, factors] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      if (hasTokens(op) && !factors.empty() && !hasTokens(operand) &&
          rule.factors[factors[0].front()].kind == Factor::Uneven)
        tables.push_back(operand);
    auto lookup = dyn_cast<TableOpInterface>(op);
    ASSERT_EQ(bool(lookup), !tables.empty())
        << "a table whose rows ranks may share unevenly is that of a "
           "TableOpInterface: no other is split";
    if (lookup)
      EXPECT_TRUE(llvm::is_contained(tables, lookup.getTable()));
  });
}

/// A softmax over rows of a table that ranks may share takes what all of them
/// have, before it has a result.
TEST_F(OpFactsTest, OpsThatExchangeInsideSaySo) {
  forEach([&](Operation *op, const FactorRule &rule) {
    auto inside = dyn_cast<ExchangingOpInterface>(op);
    auto lookup = dyn_cast<TableOpInterface>(op);
    ASSERT_EQ(bool(inside), lookup && multiplies(rule))
        << "its kernel would exchange what no plan knows of";
    if (!inside)
      return;
    ShardAttr before = lookup.getShardAttr();
    lookup.setShardAttr(nullptr);
    EXPECT_TRUE(inside.getInnerExchanges().empty()) << "the whole table";
    lookup.setShardAttr(ShardAttr::get(&context, 3, 5));
    EXPECT_FALSE(inside.getInnerExchanges().empty());
    for (const InnerExchange &sum : inside.getInnerExchanges()) {
      EXPECT_EQ(sum.group, 3);
      EXPECT_GT(sum.bytesPerRow, 0);
    }
    lookup.setShardAttr(before);
  });
}

/// Who adds rows to rows of a table looks for those of each; who multiplies
/// within segments, or the rows with a target alone, for these.
TEST_F(OpFactsTest, OpsThatGoByTablesOfMicroBatchesSaySo) {
  forEach([](Operation *op, const FactorRule &rule) {
    std::optional<BatchTable> expected;
    bool takesSegments =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<SegmentsType>);
    bool isLookup = isa<TableOpInterface>(op), isSum = false;
    for (auto [accumulator, result] : accumulationsOf(op))
      isSum |= !hasTokens(accumulator) && hasTokens(op);
    if (multiplies(rule) && workIn(op).perTarget > 0)
      expected = BatchTable::TargetRows;
    else if (multiplies(rule) && takesSegments)
      expected = BatchTable::Offsets;
    else if (isSum && isLookup)
      expected = BatchTable::TokenRuns;
    else if (isSum && takesSegments)
      expected = BatchTable::PositionRuns;
    auto reads = dyn_cast<BatchTableOpInterface>(op);
    ASSERT_EQ(bool(reads), expected.has_value())
        << "a table that is not asked for is made by a kernel, if at all";
    if (reads)
      EXPECT_EQ(reads.getBatchTable(), *expected);
  });
}

TEST_F(OpFactsTest, ElementwiseOpsSaySo) {
  forEach([](Operation *op, const FactorRule &rule) {
    using namespace mlir::dyna::OpTrait;
    bool isRowWise = op->hasTrait<RowWise>();
    bool isElementwise = op->hasTrait<Elementwise>();
    EXPECT_TRUE(isRowWise || !isElementwise);
    EXPECT_TRUE(isRowWise || !op->hasTrait<PairsFeatures>());
    if (isRowWise && sharesFeatures(op, rule))
      EXPECT_TRUE(isElementwise)
          << "features that ranks may share depend on each other in no way";
    if (!isRowWise)
      EXPECT_TRUE(!sharesFeatures(op, rule) || isa<TableOpInterface>(op) ||
                  isa<PositionsGradOp>(op))
          << "rows that depend on nothing else belong in sweeps";
  });
}

TEST_F(OpFactsTest, OpsThatCountTokensSaySo) {
  forEach([](Operation *op, const FactorRule &rule) {
    bool takesSegments =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<SegmentsType>);
    EXPECT_EQ(op->hasTrait<mlir::dyna::OpTrait::CountsTokens>(),
              takesSegments && tokenKind(op, rule) == Factor::Uneven)
        << "where its tokens may be split, an op that looks at segments has to "
           "know which it has";
  });
}

/// Positions read a table, and a rotation goes by heads: what looks at segments for
/// each feature by itself, and at nothing else, draws numbers.
TEST_F(OpFactsTest, OpsThatCountFeaturesSaySo) {
  forEach([](Operation *op, const FactorRule &rule) {
    using namespace mlir::dyna::OpTrait;
    bool takesSegments = false, takesParameters = false;
    for (Value operand : op->getOperands()) {
      takesSegments |= isa<SegmentsType>(operand.getType());
      takesParameters |= isa<RankedTensorType>(operand.getType()) &&
                         !isActivation(operand.getType());
    }
    EXPECT_EQ(op->hasTrait<CountsFeatures>(),
              takesSegments && !takesParameters && op->hasTrait<Elementwise>())
        << "where its features may be split, an op that numbers them has to "
           "know which it has";
  });
}

TEST_F(OpFactsTest, CollectivesSayTheirStep) {
  std::set<std::string> others;
  for (RegisteredOperationName name : opsOf("dist"))
    if (!name.hasInterface<dist::CollectiveOpInterface>())
      others.insert(name.getStringRef().str());
  EXPECT_THAT(others, testing::ElementsAre("dist.exchange", "dist.reshard",
                                           "dist.yield"));
}
