//===- Scrambler.h - Random changes of plans --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Changes the programs of some ranks of a plan, each by itself or several alike.
// Most of what comes out is wrong; what the verifier accepts of it must be right
// (ScrambledPlansTest.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_EXECUTOR_SCRAMBLER_H
#define DYNA_TEST_RUNTIME_EXECUTOR_SCRAMBLER_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/ProgramBlocks.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace dyna {

using plan::Instruction;

/// Gives every block a place of its own, so that no order is refused for lack
/// of memory.
inline void placeApart(const ExecutableGraph &graph, plan::Plan &plan,
                       int rank) {
  plan::RankProgram &program = plan.ranks[rank];
  ProgramBlocks table(graph.replicaView(rank), plan, program);
  int64_t end = 0;
  for (int index = 0; index < program.count(); ++index) {
    Instruction &i = program.instructions[index];
    // What it had under another name, or at another place.
    i.places.fill(plan::noPlace);
    for (int field = 0; field < fieldCount; ++field)
      if (!hasField(i.op, static_cast<Field>(field)))
        setField(i, static_cast<Field>(field), 0);
    for (const BlockUse &use : table.uses(index))
      if (use.takes) {
        i.places[use.placeIndex] = end;
        end += dyna_align_block(use.bytes);
      }
  }
  program.dynamicBytes = end;
}

class Scrambler {
public:
  Scrambler(const ExecutableGraph &graph, const plan::Plan &other,
            uint64_t seed)
      : graph_(graph), other_(other), random_(seed) {}

  int below(int64_t count) {
    return static_cast<int>(random_() % static_cast<uint64_t>(count));
  }

  /// Changes some ranks' programs, or one in all of its ranks' programs, or which tokens
  /// the slices of a sample have.
  void change(plan::Plan &plan) {
    if (moveBorder(plan))
      return;
    int rank = below(graph_.ranks());
    std::vector<int> ranks = {rank};
    ExecutableGraph::Place place = graph_.placeOf(rank);
    // Consistent along a channel, or on all replicas.
    bool allStages = below(3) == 0, allReplicas = below(4) == 0;
    bool allShards = below(8) == 0;
    for (int r = 0; r < graph_.ranks(); ++r) {
      ExecutableGraph::Place there = graph_.placeOf(r);
      if (r != rank && (there.stage == place.stage || allStages) &&
          (there.replica == place.replica || allReplicas) &&
          (there.shard == place.shard || allShards))
        ranks.push_back(r);
    }
    int what = below(18);
    std::vector<int> own;
    for (int m = 0; m < plan.microBatchCount(); ++m)
      if (plan.microBatches[m].replica == place.replica)
        own.push_back(m);
    int a = own[below(own.size())], b = own[below(own.size())];
    uint64_t seed = random_();
    for (int r : ranks) {
      random_.seed(seed); // the same change on all of them
      plan::RankProgram &program = plan.ranks[r];
      std::vector<Instruction> list = program.instructions;
      if (what < 6)
        move(list);
      else if (what == 6)
        leaveOut(list);
      else if (what == 7)
        repeat(list);
      else if (what == 8)
        list = other_.ranks[r].instructions;
      else if (what == 9)
        join(list, other_.ranks[r]);
      else if (what <= 11)
        exchange(list, a, b);
      else if (what == 12)
        evaluate(list, a);
      else if (what == 13)
        recompute(list, a);
      else if (what == 14)
        split(list, a);
      else if (what == 15)
        moveMany(list);
      else
        moveStart(list);
      program.instructions = list;
      random_.seed(seed + 1);
    }
  }

private:
  using List = std::vector<Instruction>;

  /// Moves a border between two slices, in one change of eight. Both slices change, or
  /// one alone.
  bool moveBorder(plan::Plan &plan) {
    std::vector<plan::Segment *> behind;
    for (plan::MicroBatch &microBatch : plan.microBatches)
      for (plan::Segment &segment : microBatch.segments)
        if (segment.begin > 0)
          behind.push_back(&segment);
    if (behind.empty() || below(8) > 0)
      return false;
    plan::Segment &slice = *behind[below(behind.size())];
    const int by = below(5) - 2;
    for (plan::MicroBatch &microBatch : plan.microBatches)
      for (plan::Segment &before : microBatch.segments)
        if (before.sample == slice.sample && below(8) > 0 &&
            before.begin + before.length == slice.begin)
          before.length += by;
    slice.begin += by;
    slice.length -= by;
    return true;
  }

  void moveRange(List &list, int begin, int count, int to) {
    List part(list.begin() + begin, list.begin() + begin + count);
    list.erase(list.begin() + begin, list.begin() + begin + count);
    to = std::clamp(to, 0, static_cast<int>(list.size()));
    list.insert(list.begin() + to, part.begin(), part.end());
  }

  void move(List &list) {
    if (list.empty())
      return;
    int from = below(list.size());
    int count = std::min<int>(1 + (below(3) == 0 ? below(6) : 0),
                              static_cast<int>(list.size()) - from);
    moveRange(list, from, count, from + below(25) - 12);
  }

  void moveMany(List &list) {
    for (int k = 0; k < 4; ++k)
      move(list);
  }

  /// Something that other ranks take part in.
  void moveStart(List &list) {
    std::vector<int> starts;
    for (size_t k = 0; k < list.size(); ++k)
      if (ExchangeOp op = exchangeOf(list[k].op);
          op.starts && op.kind != ExchangeKind::Norm)
        starts.push_back(static_cast<int>(k));
    if (starts.empty())
      return;
    int from = starts[below(starts.size())];
    moveRange(list, from, 1, from + below(61) - 30);
  }

  void leaveOut(List &list) {
    if (list.empty())
      return;
    int from = below(list.size());
    int count =
        std::min<int>(1 + below(3), static_cast<int>(list.size()) - from);
    list.erase(list.begin() + from, list.begin() + from + count);
  }

  void repeat(List &list) {
    if (list.empty())
      return;
    Instruction again = list[below(list.size())];
    list.insert(list.begin() + below(list.size() + 1), again);
  }

  static std::tuple<int, int, int> nameOf(const Instruction &i) {
    return {i.op, namesLayer(i.op) ? i.layer : 0,
            isPerMicroBatch(i.op) ? i.microBatch : 0};
  }

  /// The first part of one program, then what of another it does not have.
  void join(List &list, const plan::RankProgram &other) {
    list.resize(below(list.size() + 1));
    std::set<std::tuple<int, int, int>> here;
    for (const Instruction &i : list)
      here.insert(nameOf(i));
    for (const Instruction &i : other.instructions)
      if (!here.count(nameOf(i)))
        list.push_back(i);
  }

  static void exchange(List &list, int a, int b) {
    for (Instruction &i : list)
      if (isPerMicroBatch(i.op) && (i.microBatch == a || i.microBatch == b))
        i.microBatch = a + b - i.microBatch;
  }

  static void evaluate(List &list, int m) {
    List kept;
    for (Instruction i : list) {
      if (isPerMicroBatch(i.op) && i.microBatch == m) {
        if (i.op == Instruction::FORWARD) {
          i.op = Instruction::EVALUATE;
          i.recompute = plan::RECOMPUTE_NONE;
        } else if (int role = roleOf(i); role >= 0 ||
                                         i.op == Instruction::FREE ||
                                         exchangeOf(i.op).isGradient()) {
          continue;
        }
      }
      kept.push_back(i);
    }
    list = kept;
  }

  /// One layer in another mode.
  void recompute(List &list, int m) {
    auto mode = static_cast<plan::Recompute>(below(3));
    int layer = below(graph_.model().layers());
    List changed;
    for (Instruction i : list) {
      bool here =
          isPerMicroBatch(i.op) && i.microBatch == m && i.layer == layer;
      if (here && i.op == Instruction::RECOMPUTE)
        continue;
      bool back =
          i.op == Instruction::BACKWARD || i.op == Instruction::BACKWARD_INPUT;
      if (here && back && mode != plan::RECOMPUTE_NONE) {
        Instruction again = i;
        again.op = Instruction::RECOMPUTE;
        again.recompute = mode;
        changed.push_back(again);
      }
      if (here && i.op == Instruction::FORWARD)
        i.recompute = mode;
      changed.push_back(i);
    }
    list = changed;
  }

  /// One layer's backward in two parts.
  void split(List &list, int m) {
    int layer = below(graph_.model().layers());
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k].op == Instruction::BACKWARD && list[k].layer == layer &&
          list[k].microBatch == m) {
        Instruction weight = list[k];
        list[k].op = Instruction::BACKWARD_INPUT;
        weight.op = Instruction::BACKWARD_WEIGHT;
        list.insert(list.begin() + k + 1, weight);
        return;
      }
  }

  const ExecutableGraph &graph_;
  const plan::Plan &other_;
  std::mt19937_64 random_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_EXECUTOR_SCRAMBLER_H
