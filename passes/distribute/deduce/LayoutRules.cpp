//===- LayoutRules.cpp - Registers the factor rules of dyna ops -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/LayoutRules.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::dyna;
using mlir::dist::Factor;
using mlir::dist::FactorRule;
using mlir::dist::TensorFactors;

namespace {
/// A rule under construction; operands and results are set by value.
class Rule {
public:
  explicit Rule(Operation *op) {
    rule.operands.resize(op->getNumOperands());
    rule.results.resize(op->getNumResults());
  }

  int tokens() {
    return rule.addFactor("t", Factor::Uneven, ShapedType::kDynamic);
  }
  /// Tokens of which the op needs all.
  int wholeTokens() {
    return rule.addFactor("t", Factor::Whole, ShapedType::kDynamic);
  }
  /// Adds the factor of one dimension of a value.
  int factor(StringRef name, Value value, int dim,
             Factor::Kind kind = Factor::Even) {
    return rule.addFactor(
        name, kind, cast<RankedTensorType>(value.getType()).getDimSize(dim));
  }
  int sized(StringRef name, int64_t size, Factor::Kind kind = Factor::Even) {
    return rule.addFactor(name, kind, size);
  }

  /// Sets the factors of operand number `index`, if there is such an operand.
  Rule &in(int index, TensorFactors factors) {
    if (index < static_cast<int>(rule.operands.size()))
      rule.operands[index] = std::move(factors);
    return *this;
  }
  Rule &out(int index, TensorFactors factors) {
    rule.results[index] = std::move(factors);
    return *this;
  }
  Rule &linearIn(SmallVector<int, 2> set) {
    rule.linearIn.push_back(std::move(set));
    return *this;
  }
  Rule &tie(int operand, int result) {
    rule.tied.push_back({operand, result});
    return *this;
  }
  Rule &reducedByOp(int result) {
    rule.reducedByOp.push_back(result);
    return *this;
  }
  operator FactorRule() const { return rule; }

private:
  FactorRule rule;
};
} // namespace

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static FactorRule ruleOf(EmbeddingOp op) {
  Rule r(op);
  int t = r.tokens(), v = r.factor("v", op.getTable(), 0, Factor::Uneven);
  int n = r.factor("n", op.getTable(), 1);
  return r.in(0, {{t}}).in(1, {{v}, {n}}).out(0, {{t}, {n}});
}
static FactorRule ruleOf(EmbeddingGradOp op) {
  Rule r(op);
  int t = r.tokens(), v = r.factor("v", op.getAccumulator(), 0, Factor::Uneven);
  int n = r.factor("n", op.getAccumulator(), 1);
  return r.in(0, {{t}, {n}})
      .in(1, {{t}})
      .in(2, {{v}, {n}})
      .out(0, {{v}, {n}})
      .linearIn({0})
      .tie(2, 0);
}
static FactorRule ruleOf(PositionsOp op) {
  Rule r(op);
  int t = r.tokens(), p = r.factor("p", op.getTable(), 0, Factor::Whole);
  int n = r.factor("n", op.getTable(), 1);
  return r.in(0, {{p}, {n}}).out(0, {{t}, {n}});
}
static FactorRule ruleOf(PositionsGradOp op) {
  Rule r(op);
  int t = r.tokens(), p = r.factor("p", op.getAccumulator(), 0, Factor::Whole);
  int n = r.factor("n", op.getAccumulator(), 1);
  return r.in(0, {{t}, {n}})
      .in(2, {{p}, {n}})
      .out(0, {{p}, {n}})
      .linearIn({0})
      .tie(2, 0);
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

static FactorRule ruleOf(LinearOp op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op.getWeight(), 0);
  // Otherwise every rank that sums over a part of k would add the bias.
  int k = r.factor("k", op.getWeight(), 1,
                   op.getBias() ? Factor::Whole : Factor::Even);
  r.in(0, {{t}, {k}}).in(1, {{n}, {k}}).in(2, {{n}}).out(0, {{t}, {n}});
  return op.getBias() ? r : r.linearIn({0});
}
static FactorRule ruleOf(LinearGradInputOp op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op.getWeight(), 0);
  int k = r.factor("k", op.getWeight(), 1);
  r.in(0, {{t}, {n}}).in(1, {{n}, {k}}).in(2, {{t}, {k}}).out(0, {{t}, {k}});
  if (!op.getAccumulator())
    return r.linearIn({0});
  return r.linearIn({0, 2}).tie(2, 0);
}
static FactorRule ruleOf(LinearGradWeightOp op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op.getAccumulator(), 0);
  int k = r.factor("k", op.getAccumulator(), 1);
  return r.in(0, {{t}, {n}})
      .in(1, {{t}, {k}})
      .in(2, {{n}, {k}})
      .out(0, {{n}, {k}})
      .linearIn({0})
      .tie(2, 0);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// g key/value heads with r query heads each, of d features.
struct AttentionFactors {
  int t, s, g, r, d;
  TensorFactors query() const { return {{t}, {g, r, d}}; }
  TensorFactors key() const { return {{s}, {g, d}}; }
  TensorFactors lse() const { return {{t}, {g, r}}; }
};
} // namespace

template <typename Op>
static AttentionFactors attentionFactors(Rule &r, Op op) {
  AttentionFactors f;
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  f.t = r.wholeTokens();
  f.s = r.sized("s", ShapedType::kDynamic, Factor::Whole);
  f.g = r.sized("g", kvHeads);
  f.r = r.sized("r", heads / kvHeads);
  f.d = r.sized("d", op.getHeadDim(), Factor::Whole);
  return f;
}

static FactorRule ruleOf(AttentionOp op) {
  Rule r(op);
  AttentionFactors f = attentionFactors(r, op);
  return r.in(0, f.query())
      .in(1, f.key())
      .in(2, f.key())
      .out(0, f.query())
      .out(1, f.lse());
}
static FactorRule ruleOf(AttentionGradOp op) {
  Rule r(op);
  AttentionFactors f = attentionFactors(r, op);
  return r.in(0, f.query())
      .in(1, f.key())
      .in(2, f.key())
      .in(3, f.query())
      .in(4, f.lse())
      .in(5, f.query())
      .out(0, f.query())
      .out(1, f.key())
      .out(2, f.key());
}

static FactorRule ruleOf(RotaryOp op) {
  Rule r(op);
  int64_t headDim = op.getHeadDim();
  int t = r.wholeTokens();
  int h = r.sized("h", op.getX().getType().getDimSize(1) / headDim);
  int d = r.sized("d", headDim, Factor::Whole);
  return r.in(0, {{t}, {h, d}}).out(0, {{t}, {h, d}}).linearIn({0});
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

/// Makes the rule of elementwise ops: all operands and results are `[t, n]`,
/// apart from segments.
static Rule elementwise(Operation *op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op->getResult(0), 1);
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (isa<RankedTensorType>(operand.getType()))
      r.in(index, {{t}, {n}});
  return r.out(0, {{t}, {n}});
}
static FactorRule ruleOf(GeluOp op) { return elementwise(op); }
static FactorRule ruleOf(SiluOp op) { return elementwise(op); }
static FactorRule ruleOf(ReluOp op) { return elementwise(op); }
static FactorRule ruleOf(MulOp op) { return elementwise(op); }
static FactorRule ruleOf(GeluGradOp op) { return elementwise(op); }
static FactorRule ruleOf(SiluGradOp op) { return elementwise(op); }
static FactorRule ruleOf(ReluGradOp op) { return elementwise(op); }
static FactorRule ruleOf(AddOp op) { return elementwise(op).linearIn({0, 1}); }
static FactorRule ruleOf(ScaleOp op) { return elementwise(op).linearIn({0}); }
static FactorRule ruleOf(DropoutOp op) { return elementwise(op).linearIn({0}); }

static FactorRule ruleOf(BiasOp op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op.getX(), 1);
  return r.in(0, {{t}, {n}}).in(1, {{n}}).out(0, {{t}, {n}});
}
static FactorRule ruleOf(BiasGradOp op) {
  Rule r(op);
  int t = r.tokens(), n = r.factor("n", op.getDy(), 1);
  return r.in(0, {{t}, {n}}).in(1, {{n}}).out(0, {{n}}).linearIn({0}).tie(1, 0);
}

/// Norms need all features of a row.
template <typename Op> static std::pair<int, int> normFactors(Rule &r, Op op) {
  int t = r.tokens(), n = r.factor("n", op.getX(), 1, Factor::Whole);
  return {t, n};
}
static FactorRule ruleOf(LayerNormOp op) {
  Rule r(op);
  auto [t, n] = normFactors(r, op);
  return r.in(0, {{t}, {n}}).in(1, {{n}}).in(2, {{n}}).out(0, {{t}, {n}});
}
static FactorRule ruleOf(RmsNormOp op) {
  Rule r(op);
  auto [t, n] = normFactors(r, op);
  return r.in(0, {{t}, {n}}).in(1, {{n}}).out(0, {{t}, {n}});
}
template <typename Op> static FactorRule normGradInputRule(Op op) {
  Rule r(op);
  auto [t, n] = normFactors(r, op);
  return r.in(0, {{t}, {n}}).in(1, {{n}}).in(2, {{t}, {n}}).out(0, {{t}, {n}});
}
static FactorRule ruleOf(LayerNormGradInputOp op) {
  return normGradInputRule(op);
}
static FactorRule ruleOf(RmsNormGradInputOp op) {
  return normGradInputRule(op);
}
/// Makes the rule of a norm's gradients: accumulators follow x and dy.
template <typename Op> static FactorRule normGradWeightRule(Op op) {
  Rule r(op);
  auto [t, n] = normFactors(r, op);
  r.in(0, {{t}, {n}}).in(1, {{t}, {n}});
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    r.in(2 + i, {{n}}).out(i, {{n}}).tie(2 + i, i);
  return r;
}
static FactorRule ruleOf(LayerNormGradWeightOp op) {
  return normGradWeightRule(op);
}
static FactorRule ruleOf(RmsNormGradWeightOp op) {
  return normGradWeightRule(op);
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

/// Makes the rule of losses: ranks reduce the logits' statistics inside of the
/// op.
template <typename Op> static Rule lossRule(Op op) {
  Rule r(op);
  int t = r.wholeTokens();
  int v = r.factor("v", op.getWeight(), 0, Factor::Uneven);
  int k = r.factor("k", op.getWeight(), 1, Factor::Whole);
  int one = r.sized("1", 1, Factor::Whole);
  r.in(0, {{t}, {k}}).in(1, {{v}, {k}}).in(2, {{t}}).out(0, {{one}});
  r.reducedByOp(0);
  if (op->getNumResults() == 1)
    return r;
  r.out(1, {{t}, {k}});
  if (op->getNumResults() == 2)
    return r;
  return r.in(3, {{v}, {k}}).out(2, {{v}, {k}}).tie(3, 2);
}
static FactorRule ruleOf(LinearCrossEntropyOp op) { return lossRule(op); }
static FactorRule ruleOf(LinearCrossEntropyTrainOp op) { return lossRule(op); }
static FactorRule ruleOf(LinearCrossEntropyInputOp op) { return lossRule(op); }

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

/// Adds one factor per dimension.
static TensorFactors dimensionFactors(Rule &r, Value tensor) {
  TensorFactors factors;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    factors.push_back({r.factor(std::string(1, char('a' + dim)), tensor, dim,
                                Factor::Uneven)});
  return factors;
}
static FactorRule ruleOf(AdamwOp op) {
  Rule r(op);
  TensorFactors factors = dimensionFactors(r, op.getMaster());
  for (int i = 0; i < 4; ++i)
    r.in(i, factors).out(i, factors);
  return r;
}
static FactorRule ruleOf(CastOp op) {
  Rule r(op);
  TensorFactors factors = dimensionFactors(r, op.getX());
  return r.in(0, factors).out(0, factors);
}
static FactorRule ruleOf(SumSquaresOp op) {
  Rule r(op);
  TensorFactors factors = dimensionFactors(r, op.getX());
  int one = r.sized("1", 1, Factor::Whole);
  return r.in(0, factors).in(1, {{one}}).out(0, {{one}}).tie(1, 0);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
template <typename Op>
struct RuleModel
    : dist::LayoutRuleOpInterface::ExternalModel<RuleModel<Op>, Op> {
  FactorRule getLayoutRule(Operation *op) const { return ruleOf(cast<Op>(op)); }
};
} // namespace

template <typename... Ops> static void attachRules(MLIRContext &context) {
  (Ops::template attachInterface<RuleModel<Ops>>(context), ...);
}

void mlir::dyna::registerLayoutRules(DialectRegistry &registry) {
  registry.insert<dist::DistDialect>();
  registry.addExtension(+[](MLIRContext *context, DynaDialect *) {
    attachRules<EmbeddingOp, PositionsOp, LinearOp, AttentionOp, BiasOp,
                LayerNormOp, RmsNormOp, RotaryOp, GeluOp, SiluOp, ReluOp, AddOp,
                ScaleOp, MulOp, DropoutOp, LinearCrossEntropyOp,
                EmbeddingGradOp, PositionsGradOp, LinearGradInputOp,
                LinearGradWeightOp, BiasGradOp, AttentionGradOp, GeluGradOp,
                SiluGradOp, ReluGradOp, LayerNormGradInputOp,
                LayerNormGradWeightOp, RmsNormGradInputOp, RmsNormGradWeightOp,
                LinearCrossEntropyTrainOp, LinearCrossEntropyInputOp, AdamwOp,
                SumSquaresOp, CastOp>(*context);
  });
}

FailureOr<FactorRule> mlir::dyna::getLayoutRule(Operation *op) {
  auto interface = dyn_cast<dist::LayoutRuleOpInterface>(op);
  if (!interface)
    return op->emitOpError(
        "has no layout rule: nothing says how it can be split over ranks; "
        "implement dist::LayoutRuleOpInterface for it "
        "(passes/distribute/deduce/LayoutRules.cpp)");
  return interface.getLayoutRule();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string describeTensor(const FactorRule &rule,
                                  const TensorFactors &factors) {
  std::string text = "[";
  for (auto [dim, list] : llvm::enumerate(factors)) {
    text += dim ? ", " : "";
    for (auto [index, factor] : llvm::enumerate(list)) {
      const Factor &f = rule.factors[factor];
      text += (index ? " " : "") + f.name;
      text += f.kind == Factor::Whole ? "!" : "";
    }
  }
  return text + "]";
}

std::string mlir::dyna::describeRule(const FactorRule &rule) {
  std::string text;
  for (const TensorFactors &operand : rule.operands)
    text += describeTensor(rule, operand) + " ";
  text += "->";
  for (const TensorFactors &result : rule.results)
    text += " " + describeTensor(rule, result);
  for (const auto &set : rule.linearIn)
    text += " linear in {" +
            llvm::join(
                llvm::map_range(set, [](int i) { return std::to_string(i); }),
                ", ") +
            "}";
  for (auto [operand, result] : rule.tied)
    text += " tied " + std::to_string(operand) + "=" + std::to_string(result);
  for (int result : rule.reducedByOp)
    text += " reduced " + std::to_string(result);
  return text;
}
