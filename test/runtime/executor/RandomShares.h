//===- RandomShares.h - Random patterns of shared parameters ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks of the tiny model that share parameters as layers of published models
// do (all of a layer in turn, attention by pairs and MLPs by parity), or at random.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_RANDOMSHARES_H
#define DYNA_TEST_RUNTIME_EXECUTOR_RANDOMSHARES_H

#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace dyna {

class RandomShares {
public:
  explicit RandomShares(uint64_t seed) : random_(seed) {}

  int below(int count) {
    return static_cast<int>(random_() % static_cast<uint64_t>(count));
  }

  /// Draws TinyOptions::shares for `blocks` blocks. With `crosses`, w1 of one block may
  /// be w2 of another.
  std::vector<std::array<int, 3>> shares(int blocks, bool crosses) {
    std::vector<std::array<int, 3>> shares(blocks);
    const int kind = below(3), letters = 1 + below(blocks);
    for (int b = 0; b < blocks; ++b)
      for (int slot = 0; slot < 3; ++slot) {
        const int letter = kind == 0 && slot > 0 ? shares[b][0] / 3
                           : kind == 1           ? (slot == 0   ? b / 2
                                                    : slot == 2 ? b % 2
                                                                : b)
                                                 : below(letters);
        shares[b][slot] = 3 * letter + slot;
      }
    for (std::array<int, 3> &block : shares)
      for (int slot : {0, 2})
        if (crosses && below(3) == 0)
          block[slot] = 3 * below(letters) + 2 - slot;
    // Numbers say nothing of who comes first.
    std::vector<int> numbers(3 * static_cast<size_t>(blocks));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), random_);
    for (std::array<int, 3> &block : shares)
      for (int &number : block)
        number = numbers[number];
    return shares;
  }

  /// "2+1+3"
  std::string cut(int layers, int stages) {
    std::vector<int> ends(layers - 1);
    std::iota(ends.begin(), ends.end(), 1);
    std::shuffle(ends.begin(), ends.end(), random_);
    ends.resize(stages - 1);
    std::sort(ends.begin(), ends.end());
    ends.push_back(layers);
    std::string text;
    int last = 0;
    for (int end : ends) {
      text += (text.empty() ? "" : "+") + std::to_string(end - last);
      last = end;
    }
    return text;
  }

  /// Draws a strategy of `ranks` ranks, or of 1 to 8 if that is 0.
  std::string strategy(int layers, int ranks = 0) {
    int dp = 0, pp = 0;
    do {
      dp = 1 + below(3);
      pp = 1 + below(std::min(layers, 5));
    } while (ranks > 0 ? dp * pp != ranks : dp * pp > 8);
    return "dp=" + std::to_string(dp) + ",pp=" + std::to_string(pp) +
           ",layers=" + cut(layers, pp) + (below(2) ? ",zero=1" : "");
  }

private:
  std::mt19937_64 random_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_RANDOMSHARES_H
