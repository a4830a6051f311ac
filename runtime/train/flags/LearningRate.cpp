//===- LearningRate.cpp - Computes the learning rate of a step ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/LearningRate.h"

#include <algorithm>
#include <cmath>

namespace dyna {

double learningRate(const TrainOptions &options, int64_t step) {
  if (step < options.warmup)
    return options.learningRate * static_cast<double>(step + 1) /
           static_cast<double>(options.warmup);
  if (options.schedule == "constant")
    return options.learningRate;
  double length = static_cast<double>(
      std::max<int64_t>(1, scheduleLength(options) - options.warmup));
  double done =
      std::min(1.0, static_cast<double>(step - options.warmup) / length);
  double share = options.schedule == "cosine"
                     ? 0.5 * (1 + std::cos(3.14159265358979323846 * done))
                     : 1 - done;
  return options.minLearningRate +
         (options.learningRate - options.minLearningRate) * share;
}

dyna_optimizer optimizerAt(const TrainOptions &options, int64_t step) {
  dyna_optimizer optimizer = {};
  optimizer.learning_rate = learningRate(options, step);
  optimizer.beta1 = options.beta1;
  optimizer.beta2 = options.beta2;
  optimizer.epsilon = options.epsilon;
  optimizer.weight_decay = options.weightDecay;
  double t = static_cast<double>(step + 1);
  optimizer.correction1 = 1 - std::pow(options.beta1, t);
  optimizer.correction2 = 1 - std::pow(options.beta2, t);
  return optimizer;
}

} // namespace dyna
