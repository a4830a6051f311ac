//===- TinyModel.h - A hand-written compiled program ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `dynac` would emit for a tiny model, written by hand and naively, so
// that the runtime can be tested without a compiler, and the ABI has an example
// that people can read:
//
//     embedding  x_t = E[token_t]
//     block      u_t = x_t + mean of x over the sample's tokens up to t / 2
//                h_t = W1 u_t + b1
//                a_t = dropout(tanh(h_t))
//                y_t = x_t + W2 a_t
//     head       loss = sum over targets of -log softmax(E (x_t + b))[target_t]
//
// On the ranks of a tensor degree the rows of E (logits), of W1 and b1 and the
// columns of W2 are dealt to the ranks, which add up what they have; with sp
// each has some of the tokens between layers.
//
// E is tied: the embedding updates it, the head only b. Tiers of the block:
// products h, elementwise u and a, deferred dh and dy. The head keeps the
// gradient of its input in `products`.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_TINYMODEL_H
#define DYNA_TEST_RUNTIME_EXECUTOR_TINYMODEL_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/Manifest.pb.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dyna {

struct TinyDegree {
  int tp;
  bool sp;
};

struct TinyOptions {
  int blocks = 3;
  int64_t vocabulary = 11;
  int64_t hidden = 5;
  plan::ElementType compute = plan::F64; ///< F64 or BF16
  /// That of masters, or BF16 where `compute` is.
  plan::ElementType gradients = plan::ELEMENT_UNKNOWN;
  bool splitBackward = true; ///< with BACKWARD_INPUT and _WEIGHT
  bool wholeBackward = true; ///< with BACKWARD
  bool headBias = true;      ///< the head has b
  /// The last block has the first one's w2 as its own: a tie inside the one
  /// of embedding and head.
  bool nestedTie = false;
  /// Numbers of the parameters w1, b1 and w2 of each block. Equal numbers are one shared
  /// parameter. Empty: each block has its own. With hidden = width, w1 and w2 may share.
  std::vector<std::array<int, 3>> shares = {};
  bool untied = false; ///< the head has a table of its own
  /// With the kinds that runs need to freeze layers (TinyVariants.h).
  bool freezable = false;
  /// Names of frozen parameters; of blocks the same ones in each.
  std::vector<std::string> frozen = {};
  /// Beside tp=1; they must divide `hidden`.
  std::vector<TinyDegree> degrees = {};
  /// DYNA_BATCH_*: asked for, and compared with what they are of.
  uint32_t batchTables = 0;
};

constexpr int64_t tinyVocabulary = 11, tinyWidth = 6, tinyHidden = 5;

constexpr int tinyKinds = 3;

plan::Manifest tinyManifest(const TinyOptions &options = {});
/// Adds the ranks' parts of all kinds; the manifest's hash is not renewed.
plan::TensorDegree *addDegree(plan::Manifest &manifest, int tp, bool sp);
void addPart(google::protobuf::RepeatedPtrField<plan::AxisPart> *parts,
             int64_t stride, int64_t size);

/// Of the last program made; see TinyProgram.
struct TinySizes {
  int64_t vocabulary = tinyVocabulary, hidden = tinyHidden;
  bool headBias = true;
  uint32_t batchTables = 0;
};
extern TinySizes tinySizes;

/// Owns what its `program` points to. All programs of a process have one
/// vocabulary and hidden size: those of the last one made.
class TinyProgram {
public:
  explicit TinyProgram(const TinyOptions &options = {});
  const dyna_program &program() const { return program_; }
  plan::Manifest manifest;

private:
  std::string bytes_;
  std::unique_ptr<dyna_layer_function[]> functions_;
  dyna_variant variants_[2];
  dyna_program program_;
};

/// Faults that the functions commit when asked to. Reset it after use.
struct TinyFault {
  enum class Kind {
    None,
    Fail,
    WriteBehindWorkspace,
    WriteBehindOutput,
    WriteParameter,
    LoseLoss ///< the head's loss is no number, what it hands back is
  };
  Kind kind = Kind::None;
  int role = -1;
  int64_t layer = -1;
  int64_t targets = -1; ///< of the micro-batches at fault; -1: of any
};
extern TinyFault tinyFault;
/// Called at the start of every backward of an embedding, if set.
extern void (*tinyEmbeddingHook)(const dyna_context &context);
/// Called in every forward and backward of a layer but the head, if set.
extern void (*tinyLayerHook)(const dyna_context &context);
/// Called at the start of every update, if set.
extern void (*tinyUpdateHook)(int64_t step);
/// Probability of dropout in the block.
extern double tinyDropout;

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_TINYMODEL_H
