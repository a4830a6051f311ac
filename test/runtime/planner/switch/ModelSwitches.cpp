//===- ModelSwitches.cpp - Switches of large models -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/switch/ModelSwitches.h"

#include "runtime/base/text/Text.h"
#include "runtime/layout/Layout.h"

#include <algorithm>
#include <array>

namespace dyna {
namespace {

/// Returns the boxes of a weight on the ranks of one stage; with `zero` the
/// rows that each replica updates.
std::vector<RankBox> boxesOf(const ModelWeight &weight, const Numbering &ranks,
                             int stage, bool zero) {
  std::vector<RankBox> boxes;
  for (int d = 0; d < ranks.degrees.dp; ++d)
    for (int t = 0; t < ranks.degrees.tp; ++t) {
      Box box = Box::whole({weight.rows, weight.columns});
      if (weight.split >= 0) {
        box.begin[weight.split] =
            partBegin(box.size[weight.split], ranks.degrees.tp, t);
        box.size[weight.split] =
            partSize(box.size[weight.split], ranks.degrees.tp, t);
      }
      if (zero) {
        int64_t rows = box.size[0];
        box.begin[0] += partBegin(rows, ranks.degrees.dp, d);
        box.size[0] = partSize(rows, ranks.degrees.dp, d);
      }
      boxes.push_back({ranks.rankAt(d, stage, t), std::move(box)});
    }
  return boxes;
}

/// Returns the first block of a stage; the stages before it have as many blocks
/// or one more.
int firstBlock(const SwitchModel &model, const Numbering &ranks, int stage) {
  return static_cast<int>(partBegin(model.blocks, ranks.degrees.pp, stage));
}

int stageOf(const SwitchModel &model, const Numbering &ranks, int block) {
  int stage = 0;
  while (stage + 1 < ranks.degrees.pp &&
         firstBlock(model, ranks, stage + 1) <= block)
    ++stage;
  return stage;
}

Numbering drawNumbering(Draw &draw, const SwitchModel &model, int ranks) {
  std::vector<Degrees> all;
  for (int tp = 1; tp <= 16; tp *= 2)
    for (int pp = 1; pp <= model.blocks; ++pp)
      if (ranks % (tp * pp) == 0)
        all.push_back({ranks / (tp * pp), tp, pp});
  Numbering numbering = {all[draw.below(static_cast<int>(all.size()))]};
  const char *orders[] = {"dpt", "pdt", "dtp", "ptd", "tdp", "tpd"};
  if (draw.below(2) == 0)
    numbering.order = orders[draw.below(6)];
  return numbering;
}

} // namespace

SwitchModel llama32b() {
  const int64_t width = 6656, inner = 17920, words = 30592;
  return {"llama-32b",
          60,
          {{width, width, 1},
           {width, width, 1},
           {width, width, 1},
           {width, width, 0},
           {width, inner, 1},
           {width, inner, 1},
           {inner, width, 0},
           {width, 1, -1},
           {width, 1, -1}},
          {{words, width, 0}},
          {{width, 1, -1}, {words, width, 0}}};
}

SwitchModel gpt175b() {
  const int64_t width = 12288, inner = 49152, words = 50304;
  return {"gpt-175b",
          96,
          {{width, width, 1},
           {width, width, 1},
           {width, width, 1},
           {width, 1, 0},
           {width, 1, 0},
           {width, 1, 0},
           {width, width, 0},
           {width, 1, -1},
           {width, inner, 1},
           {inner, 1, 0},
           {inner, width, 0},
           {width, 1, -1},
           {width, 1, -1},
           {width, 1, -1},
           {width, 1, -1},
           {width, 1, -1}},
          {{words, width, 0}},
          {{width, 1, -1}, {width, 1, -1}, {words, width, 0}}};
}

int Numbering::rankAt(int d, int p, int t) const {
  int rank = 0;
  for (char axis : order)
    rank = axis == 'd'   ? rank * degrees.dp + d
           : axis == 'p' ? rank * degrees.pp + p
                         : rank * degrees.tp + t;
  return rank;
}

std::string Numbering::text() const {
  return formatText("dp=%d,tp=%d,pp=%d,order=%s", degrees.dp, degrees.tp,
                    degrees.pp, order);
}

std::vector<SwitchTensor> tensorsOf(const SwitchModel &model,
                                    const Numbering &from, const Numbering &to,
                                    bool zero) {
  struct Keyed {
    std::array<int64_t, 2> key;
    SwitchTensor tensor;
  };
  std::vector<Keyed> keyed;
  int parameter = 0;
  auto add = [&](const ModelWeight &weight, int block) {
    const int target = stageOf(model, to, block);
    SwitchTensor tensor;
    tensor.parameter = parameter++;
    tensor.elementBytes = 2;
    tensor.from = boxesOf(weight, from, stageOf(model, from, block), zero);
    tensor.to = boxesOf(weight, to, target, false);
    keyed.push_back({{block - firstBlock(model, to, target), tensor.parameter},
                     std::move(tensor)});
  };
  for (const ModelWeight &weight : model.first)
    add(weight, 0);
  for (int block = 0; block < model.blocks; ++block)
    for (const ModelWeight &weight : model.block)
      add(weight, block);
  for (const ModelWeight &weight : model.last)
    add(weight, model.blocks - 1);
  std::sort(keyed.begin(), keyed.end(),
            [](const Keyed &a, const Keyed &b) { return a.key < b.key; });
  std::vector<SwitchTensor> tensors;
  tensors.reserve(keyed.size());
  for (Keyed &one : keyed)
    tensors.push_back(std::move(one.tensor));
  return tensors;
}

SwitchNetwork nodesOfEight(int nodes) {
  SwitchNetwork network;
  network.ranks = 8 * nodes;
  network.ranksPerNode = 8;
  network.insideRate = 2e11;
  network.betweenRate = 2.5e10;
  network.insideLatency = 5e-6;
  network.betweenLatency = 1.5e-5;
  return network;
}

std::string ModelPair::text() const {
  return formatText("%s%s -> %s", from.text(), zero ? ",zero=1" : "",
                    to.text());
}

ModelPair drawPair(Draw &draw, const SwitchModel &model, int ranks) {
  ModelPair pair;
  do {
    pair.from = drawNumbering(draw, model, ranks);
    pair.to = drawNumbering(draw, model, ranks);
    pair.zero = draw.below(2) == 0;
  } while (pair.from.text() == pair.to.text());
  return pair;
}

} // namespace dyna
