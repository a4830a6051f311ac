//===- ChimeraSlots.h - Numbers the items of mirrored pipelines -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chimera (Li and Hoefler, SC 2021) lays two pipelines over the same devices, the second
// one in mirrored order. Stage s of S of one replica shares a device with stage S - 1 - s
// of the other. A *slot* is the moment of an item if all items take equally long and
// messages take no time. Each replica begins its micro-batches in units of S / 2:
//
//     S = 4; A and B go down, a and b go up; ' is a backward
//
//     slot       0  1  2  3  4  5  6  7  8  9
//     device 0   A     B  a  a' b  b' A'    B'
//     device 1      A  a  B  b  a' A' b' B'
//     device 2      a  A  b  B  A' a' B' b'
//     device 3   a     b  A  A' B  B' a'    b'
//
// An item runs one slot after the item that it waits for. The items of a device have
// different slots if S is even. So if all devices run their items by slots, none waits for
// ever. Stages that run their items in another order have later slots, of which the same
// is true.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_CHIMERASLOTS_H
#define DYNA_RUNTIME_PLAN_CHIMERASLOTS_H

#include <cstdint>
#include <utility>
#include <vector>

namespace dyna {

/// Returns the micro-batches of a replica that belong to one unit.
constexpr int chimeraUnit(int stages) { return (stages + 1) / 2; }

/// Returns the slot of the forward or backward number `number` of a replica on one of its
/// stages. Items are numbered from 0, in the order in which stages run them.
constexpr int64_t chimeraSlot(bool isForward, int number, int stage,
                              int stages) {
  const int unit = chimeraUnit(stages);
  const int64_t begin =
      int64_t{2} * stages * (number / unit) + 2 * (number % unit);
  return begin + (isForward ? stage : 2 * stages - 1 - stage);
}

/// Work of a stage on one micro-batch.
struct SlotItem {
  enum class Kind { Forward, Backward, Weight };

  Kind kind = Kind::Forward;
  int microBatch = 0;
};

/// Returns the slots of all items of a replica, by stage. An item has the slot above, or
/// the one behind all items that it waits for if that is later. Weight gradients have
/// that of the item before. `stages` lists the items of each stage in the order in which it runs
/// them. `links` are pairs of stages: the first one hands activations to the second one.
/// Items that wait for each other get the last slot. O(items * links of a stage).
std::vector<std::vector<int64_t>>
chimeraSlots(const std::vector<std::vector<SlotItem>> &stages,
             const std::vector<std::pair<int, int>> &links);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_CHIMERASLOTS_H
