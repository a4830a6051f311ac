//===- OrderChecker.h - What follows what on one rank (P3 to P5) ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A part of the plan verifier; see PlanVerifier.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_ORDERCHECKER_H
#define DYNA_RUNTIME_PLAN_ORDERCHECKER_H

#include "runtime/plan/ProgramBlocks.h"

namespace dyna {

/// Follows every micro-batch of a rank's replica through the layers of its
/// stage, and the parameters through reduction, norm and update.
class OrderChecker {
public:
  /// `view` is the rank's, `microBatches` are those of its replica, in order.
  /// Both must outlive this object.
  OrderChecker(const RankView &view, const std::vector<int> &microBatches);

  Status step(const plan::Instruction &i);
  Status finish() const;

private:
  struct LayerState {
    plan::Recompute mode = plan::RECOMPUTE_NONE;
    bool recomputed = false;
    bool inputDone = false;
    bool weightDone = false;
    bool freed = false;
  };
  /// Of a message: 0, 1 started, 2 waited for.
  struct Messages {
    int received = 0, sent = 0;
  };
  struct Progress {
    bool loaded = false;
    bool evaluates = false;
    int forward = 0;  ///< the next layer of forward
    int backward = 0; ///< the next layer of backward, counting down
    Messages activation, gradient;
    std::vector<LayerState> layers;
  };
  struct Parameters {
    int reduced = 0, gathered = 0; ///< 0, 1 started, 2 waited for
    bool normed = false, updated = false, cast = false;
  };

  Status load(const plan::Instruction &i);
  Status forward(const plan::Instruction &i);
  Status recompute(const plan::Instruction &i);
  Status backward(const plan::Instruction &i);
  Status backwardWeight(const plan::Instruction &i);
  Status free(const plan::Instruction &i);
  Status message(const plan::Instruction &i);
  Status parameters(const plan::Instruction &i);
  Status gather(const plan::Instruction &i);
  Status reduce(const plan::Instruction &i);
  Status combine();
  Status checkGathered(int layer) const;
  Status checkNotGathering(int layer) const;
  Status checkGradients(int layer) const;
  bool receives() const { return view_.firstLayer() > 0; }
  bool sends() const { return view_.endLayer() < view_.layers(); }
  Progress &progress(const plan::Instruction &i) {
    return progress_.at(i.microBatch);
  }
  LayerState &state(const plan::Instruction &i) {
    return progress(i).layers[i.layer];
  }
  Status finishMicroBatch(int m) const;

  const RankView &view_;
  const std::vector<int> &microBatches_;
  std::unordered_map<int, Progress> progress_;
  std::vector<Parameters> parameters_; ///< by layer
  bool combined_ = false;
  bool updating_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_ORDERCHECKER_H
