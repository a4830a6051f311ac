//===- SwitchMeasure.h - Switches beside copies -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One rank's part in a switch of a model 1,024 wide (bf16, 8 blocks of 2 M
// parameters) from home to another graph and back, as the executor carries it,
// beside what it is compared with. Nothing is computed meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_EXECUTOR_SWITCHMEASURE_H
#define DYNA_TEST_BENCH_EXECUTOR_SWITCHMEASURE_H

#include "runtime/executor/step/SwitchCarrier.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "test/Patience.h"
#include "test/bench/WideModel.h"
#include "test/bench/transport/Measure.h"
#include "test/runtime/device/TestDevice.h"

#include <optional>

namespace bench {

using dyna::Status;

/// The graphs of a step, and what moves between them; the same on all ranks.
struct Switched {
  Switched(const std::string &graph, const std::string &homeOf) {
    dyna::TinyOptions tiny;
    tiny.blocks = 8;
    tiny.vocabulary = 4096;
    tiny.hidden = 1024;
    tiny.compute = dyna::plan::BF16;
    tiny.degrees = {{2, false}, {4, false}};
    dyna::plan::Manifest manifest = dyna::tinyManifest(tiny);
    widen(manifest, 1024);
    model.emplace(must(dyna::Model::create(std::move(manifest))));
    for (const std::string &text : {graph, homeOf})
      graphs.push_back(std::make_unique<dyna::ExecutableGraph>(
          must(dyna::ExecutableGraph::create(
              *model, must(dyna::parseStrategy(text))))));
    dyna::SwitchNetwork network;
    network.ranks = network.ranksPerNode = graphs[0]->ranks();
    table.emplace(must(dyna::SwitchTable::create(
        {graphs[0].get(), graphs[1].get()}, 1,
        [&](const std::vector<dyna::SwitchTensor> &tensors) {
          return dyna::planSwitch(tensors, network);
        })));
    name = homeOf + " and " + graph;
  }

  template <typename T> static T must(dyna::StatusOr<T> made) {
    check(made.status());
    return std::move(*made);
  }

  const dyna::GraphSwitch &way(bool isGradients) const {
    return isGradients ? table->gradients(0) : table->values(-1, 0);
  }
  /// Bytes from each rank to each; to itself too, from place to place.
  std::vector<std::vector<int64_t>> bytes(bool isGradients) const {
    const size_t ranks = static_cast<size_t>(graphs[0]->ranks());
    std::vector<std::vector<int64_t>> pairs(ranks, std::vector<int64_t>(ranks));
    const dyna::GraphSwitch &all = way(isGradients);
    for (const dyna::SwitchBucket &bucket : all.plan.buckets)
      for (const dyna::SwitchTransfer &t : bucket.transfers)
        pairs[size_t(t.from)][size_t(t.to)] +=
            t.box.volume() * all.tensors[size_t(t.tensor)].elementBytes;
    return pairs;
  }

  std::string name;
  std::optional<dyna::Model> model;
  std::vector<std::unique_ptr<dyna::ExecutableGraph>> graphs; ///< home last
  std::optional<dyna::SwitchTable> table;
};

/// A rank with the tensors of both graphs.
class SwitchedRank {
public:
  SwitchedRank(const Switched &switched, dyna::Transport &transport)
      : switched_(switched), device_(dyna::makeTestDevice()),
        machine_(*device_, &transport, dyna::kPatience),
        graph_(*switched.graphs[0], dyna::Persistent::Gradients, machine_, 0),
        home_(*switched.graphs[1], dyna::Persistent::Training, machine_,
              (graph_.layout().bytes + 4095) / 4096 * 4096) {
    check(machine_.start(home_.layout().bytes + graph_.layout().bytes + 8192,
                         transit(false) + transit(true), 1));
  }

  /// A whole switch: all starts, then all waits.
  Status carry(bool isGradients, bool homeComputes) {
    using dyna::plan::Instruction;
    dyna::SwitchTable::PhaseSwitches switches;
    switches.values = &switched_.way(false);
    switches.gradients = &switched_.way(true);
    dyna::SwitchCarrier::Phase phase, home;
    phase.switches = switches;
    phase.seat = &graph_;
    phase.valueTransit = machine_.dynamicStart();
    phase.gradientTransit = phase.valueTransit + transit(false);
    phase.addsLate = homeComputes;
    home.switches.graph = 1;
    home.switches.before = 0;
    home.seat = &home_;
    home.before = &graph_;
    dyna::SwitchCarrier carrier(machine_, home_, {phase, home});
    const dyna::GraphSwitch &way = switched_.way(isGradients);
    std::vector<bool> isWaited(size_t(way.buckets()));
    Instruction i;
    auto wait = [&](int bucket) -> Status {
      if (isWaited[size_t(bucket)] || !takesPart(way, bucket))
        return Status::ok();
      isWaited[size_t(bucket)] = true;
      i.op = isGradients ? Instruction::SWITCH_GRADS_WAIT
                         : Instruction::SWITCH_WAIT;
      i.bucket = bucket;
      return carrier.wait(i);
    };
    for (int b = 0; b < way.buckets(); ++b) {
      if (!takesPart(way, b))
        continue;
      for (int after = way.plan.buckets[size_t(b)].after; after >= 0;
           after = way.plan.buckets[size_t(after)].after)
        DYNA_RETURN_IF_ERROR(wait(after));
      i.op = isGradients ? Instruction::SWITCH_GRADS_START
                         : Instruction::SWITCH_START;
      i.bucket = b;
      DYNA_RETURN_IF_ERROR(carrier.start(i));
    }
    for (int b = 0; b < way.buckets(); ++b)
      DYNA_RETURN_IF_ERROR(wait(b));
    return Status::ok();
  }

  /// Where a transfer begins or ends on this rank.
  dyna::Strip rowsOf(bool isGradients, dyna::SwitchPlace place,
                     const dyna::SwitchTransfer &transfer) {
    const dyna::SwitchTensor &tensor =
        switched_.way(isGradients).tensors[size_t(transfer.tensor)];
    if (place == dyna::SwitchPlace::Passing)
      check(Status::internal("one node hands nothing on"));
    const bool isHome = isGradients == (place == dyna::SwitchPlace::New);
    return Switched::must(
        (isHome ? home_ : graph_)
            .rowsOf(tensor.parameter, tensor.part, transfer.box));
  }

private:
  /// Memory for what waits in a switch.
  int64_t transit(bool isGradients) const {
    const dyna::GraphSwitch::Side &side =
        switched_.way(isGradients).sides[size_t(machine_.rank())];
    return side.passedBytes + (isGradients ? side.gotBytes : 0);
  }
  bool takesPart(const dyna::GraphSwitch &way, int bucket) const {
    return way.sides[size_t(machine_.rank())].takesPart(bucket);
  }

  const Switched &switched_;
  std::unique_ptr<dyna::Device> device_;
  dyna::RankMachine machine_;
  dyna::GraphSeat graph_, home_;
};

/// By hand, as loops of a plain program: what transports are compared with.
inline void addRun(const char *from, char *to, int64_t bytes) {
  const auto *read = reinterpret_cast<const float *>(from);
  auto *written = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < bytes / int64_t(sizeof(float)); ++i)
    written[i] += read[i];
}

inline void copyRun(const char *from, char *to, int64_t bytes) {
  memcpy(to, from, size_t(bytes));
}

/// All of `source` to `target`, run by run.
inline void moveRuns(const std::vector<dyna::Strip> &source,
                     const std::vector<dyna::Strip> &target,
                     void (*move)(const char *, char *, int64_t)) {
  dyna::StripCursor from(source), to(target);
  dyna::forEachRun(from, to, dyna::totalBytes(source), move);
}

/// `sent` is what goes to other ranks, `moved` that and what ranks copy from place
/// to place; `bound` takes a time too. On a machine that does other work the least
/// times say more than the medians.
inline void reportSwitch(const char *what, const Switched &switched,
                         bool isGradients, const Timing &t, const char *boundIs,
                         const Timing &bound) {
  int64_t sent = 0, moved = 0;
  const auto pairs = switched.bytes(isGradients);
  for (size_t from = 0; from < pairs.size(); ++from)
    for (size_t to = 0; to < pairs.size(); ++to) {
      moved += pairs[from][to];
      sent += from == to ? 0 : pairs[from][to];
    }
  printf("{\"what\":\"%s\",\"between\":\"%s\",\"ranks\":%d,\"sent_bytes\":%lld,"
         "\"moved_bytes\":%lld,\"buckets\":%d,\"warm_up\":1,\"repeats\":%d,"
         "\"median_us\":%.1f,\"least_us\":%.1f,\"gb_per_s\":%.3f,"
         "\"bound_is\":\"%s\",\"bound_us\":%.1f,\"least_bound_us\":%.1f,"
         "\"bound_over_time\":%.3f,\"least_bound_over_time\":%.3f}\n",
         what, switched.name.c_str(), int(pairs.size()),
         static_cast<long long>(sent), static_cast<long long>(moved),
         switched.way(isGradients).buckets(), t.repeats, t.median * 1e6,
         t.least * 1e6, double(moved) / t.median / 1e9, boundIs,
         bound.median * 1e6, bound.least * 1e6, bound.median / t.median,
         bound.least / t.least);
  fflush(stdout);
}

} // namespace bench

#endif // DYNA_TEST_BENCH_EXECUTOR_SWITCHMEASURE_H
