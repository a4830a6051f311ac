//===- Scores.cpp - Adds up the scores of weights -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/BufferRange.h"
#include "runtime/device/host/HostDevice.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace dyna;

namespace {

float widen(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
float widen(float value) { return value; }
double widen(double value) { return value; }

/// Calls a function for pieces of [0, count) on all threads.
template <typename Function>
void forPieces(Team &team, int64_t count, const Function &function) {
  constexpr int64_t piece = 1 << 16;
  team.parallelFor((count + piece - 1) / piece, [&](int64_t task, int) {
    function(task * piece, std::min(count, (task + 1) * piece));
  });
}

template <typename Score, typename Gradient>
void addTo(Team &team, char *base, const ScoredWeights &scored) {
  auto *const scores = reinterpret_cast<Score *>(base + scored.scores);
  const auto *gradients =
      reinterpret_cast<const Gradient *>(base + scored.gradients);
  if (scored.weights < 0) {
    const auto *mask = reinterpret_cast<const uint8_t *>(base) + scored.mask;
    return forPieces(team, scored.count, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        scores[i] = mask[i] == 0 ? std::abs(widen(gradients[i])) : scores[i];
    });
  }
  const auto *weights = reinterpret_cast<const Score *>(base + scored.weights);
  forPieces(team, scored.count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      scores[i] += std::abs(weights[i] * widen(gradients[i]));
  });
}

} // namespace

Status HostDevice::addScores(Stream &, Buffer &buffer,
                             const ScoredWeights &scored) {
  DYNA_RETURN_IF_ERROR(checkScores(buffer, scored));
  if (scored.scale && std::isnan(*scored.scale))
    return Status::ok();
  auto *const base = static_cast<char *>(buffer.data());
  if (scored.scoreBytes == 8)
    addTo<double, double>(*team_, base, scored);
  else if (scored.gradientBytes == 4)
    addTo<float, float>(*team_, base, scored);
  else
    addTo<float, uint16_t>(*team_, base, scored);
  return Status::ok();
}
