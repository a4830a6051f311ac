//===- Formulas.h - Every op as naive loops in f64 --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One function per op, written from the op's description and nothing else. They
// are slow on purpose: no blocking, no online softmax, no shared subexpressions
// that could hide the same mistake as the compiled code.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_FORMULAS_H
#define DYNA_TEST_REFERENCE_FORMULAS_H

#include "test/reference/Values.h"

namespace mlir::dyna::reference {

//===----------------------------------------------------------------------===//
// Random numbers (the definitions of runtime/abi/Random.h, written again)
//===----------------------------------------------------------------------===//

/// Whether dropout removes feature `feature` of (sample, position).
bool isDropped(const Context &context, uint64_t instance, double probability,
               uint64_t sample, uint64_t position, uint64_t feature);

/// `constant + normal * N(0,1)`, keyed by seed and parameter name.
Tensor initialParameter(const std::string &name, std::vector<int64_t> shape,
                        double constant, double normal, uint64_t seed);

/// A uniform value in [0, 1) for test inputs.
double uniform(uint64_t seed, uint64_t index);

/// To the nearest value of the format, ties to even.
double roundToFloat(double value);
double roundToBfloat16(double value);

//===----------------------------------------------------------------------===//
// Model ops
//===----------------------------------------------------------------------===//

Tensor embedding(const Ids &ids, const Tensor &table);
Tensor positions(const Tensor &table, const Segments &segments);
/// `bias` may be null.
Tensor linear(const Tensor &x, const Tensor &weight, const Tensor *bias);
Tensor bias(const Tensor &x, const Tensor &bias);
Tensor add(const Tensor &x, const Tensor &y);
Tensor mul(const Tensor &x, const Tensor &y);
Tensor layerNorm(const Tensor &x, const Tensor &weight, const Tensor &bias,
                 double epsilon);
Tensor rmsNorm(const Tensor &x, const Tensor &weight, double epsilon);
/// HuggingFace's scalings of rotations. `factor` 0: none; without `positions` it is
/// "linear", with them "llama3".
struct RotaryScaling {
  double factor = 0, low = 0, high = 0, positions = 0;
};
/// Radians per position of pair `j` of a head.
double rotaryFrequency(int64_t j, int64_t headDim, double theta,
                       const RotaryScaling &scaling);
Tensor rotary(const Tensor &x, const Segments &segments, int64_t headDim,
              double theta, bool inverse, const RotaryScaling &scaling = {});
Tensor gelu(const Tensor &x, bool tanhForm);
Tensor silu(const Tensor &x);
Tensor relu(const Tensor &x);
Tensor dropout(const Tensor &x, const Segments &segments, double probability,
               uint64_t instance, const Context &context);

struct AttentionShape {
  int64_t heads = 1;
  int64_t kvHeads = 1;
  double scale = 1.0;
  bool causal = false;
};
struct AttentionResult {
  Tensor result;
  Tensor lse;
};
AttentionResult attention(const Tensor &query, const Tensor &key,
                          const Tensor &value, const Segments &segments,
                          const AttentionShape &shape);

double linearCrossEntropy(const Tensor &x, const Tensor &weight,
                          const Ids &targets, int64_t ignoreIndex);

//===----------------------------------------------------------------------===//
// Gradients; `add...` functions add to their first argument
//===----------------------------------------------------------------------===//

void addEmbeddingGrad(Tensor &accumulator, const Tensor &dy, const Ids &ids);
void addPositionsGrad(Tensor &accumulator, const Tensor &dy,
                      const Segments &segments);
Tensor linearGradInput(const Tensor &dy, const Tensor &weight);
void addLinearGradWeight(Tensor &accumulator, const Tensor &dy,
                         const Tensor &x);
void addBiasGrad(Tensor &accumulator, const Tensor &dy);
Tensor geluGrad(const Tensor &x, const Tensor &dy, bool tanhForm);
Tensor siluGrad(const Tensor &x, const Tensor &dy);
Tensor reluGrad(const Tensor &x, const Tensor &dy);
Tensor layerNormGradInput(const Tensor &x, const Tensor &weight,
                          const Tensor &dy, double epsilon);
void addLayerNormGradWeight(Tensor &weight, Tensor &bias, const Tensor &x,
                            const Tensor &dy, double epsilon);
Tensor rmsNormGradInput(const Tensor &x, const Tensor &weight, const Tensor &dy,
                        double epsilon);
void addRmsNormGradWeight(Tensor &weight, const Tensor &x, const Tensor &dy,
                          double epsilon);

struct AttentionGradients {
  Tensor query, key, value;
};
/// `forward` and `dResult` as backward finds them: probabilities come from the
/// saved `lse`, so a wrong one shows.
AttentionGradients
attentionGrad(const Tensor &query, const Tensor &key, const Tensor &value,
              const AttentionResult &forward, const Tensor &dResult,
              const Segments &segments, const AttentionShape &shape);

/// Gradient of `linearCrossEntropy` times `scale`: returns that of x, adds that
/// of the weight.
Tensor linearCrossEntropyGrad(Tensor &weightAccumulator, const Tensor &x,
                              const Tensor &weight, const Ids &targets,
                              int64_t ignoreIndex, double scale);

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

/// Changes all four in place; the gradient becomes zero.
void adamw(Tensor &master, Tensor &gradient, Tensor &m, Tensor &v, bool decay,
           const Optimizer &optimizer);
double sumSquares(const Tensor &x);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_FORMULAS_H
