//===- ReplaceBench.cpp - Replacing graphs beside copies ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two ranks as threads change to and fro between two graphs of a model 1,024 wide in
// bf16 (8 blocks of 2 M parameters and a table of 4 M): masters, moments and copies.
// Beside it, as many bytes without gaps by memcpy, by as many threads. Bytes are what is
// sent and what stays on a rank and goes to the other end of its arena.
//
// Usage: bench_replace [--repeats N]
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/open/OpenProgram.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/plan/graph/StateTensors.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/bench/WideModel.h"
#include "test/bench/transport/Measure.h"
#include "test/runtime/device/TestDevice.h"

#include <optional>
#include <thread>

using namespace bench;

namespace {

template <typename T> T must(dyna::StatusOr<T> made) {
  check(made.status());
  return std::move(*made);
}

struct Graphs {
  Graphs(const std::string &first, const std::string &second) {
    dyna::TinyOptions tiny;
    tiny.blocks = 8;
    tiny.vocabulary = 4096;
    tiny.hidden = 1024;
    tiny.compute = dyna::plan::BF16;
    tiny.degrees = {{2, false}};
    program.emplace(tiny);
    dyna::plan::Manifest manifest = dyna::tinyManifest(tiny);
    widen(manifest, 1024);
    model.emplace(must(dyna::Model::create(std::move(manifest))));
    for (const std::string &text : {first, second})
      graphs.push_back(std::make_unique<dyna::ExecutableGraph>(
          must(dyna::ExecutableGraph::create(
              *model, must(dyna::parseStrategy(text))))));
    dyna::SwitchNetwork network;
    network.ranks = network.ranksPerNode = 2;
    for (int from : {0, 1}) {
      auto tensors = dyna::stateTensors(*graphs[from], *graphs[1 - from]);
      auto plan = must(dyna::planSwitch(tensors, network));
      ways.push_back(must(dyna::GraphSwitch::create(
          std::move(tensors), std::move(plan), 2, model->parameters())));
    }
  }
  std::unique_ptr<dyna::RankTeam> team() const {
    auto transports = dyna::makeThreadTransports(2);
    std::vector<dyna::RankResources> ranks(2);
    for (int rank = 0; rank < 2; ++rank) {
      ranks[rank].rank = rank;
      ranks[rank].device = dyna::makeTestDevice();
      ranks[rank].transport = std::move(transports[rank]);
      int64_t most = 0;
      for (const auto &graph : graphs)
        most =
            std::max(most, dyna::persistentLayout(graph->rankView(rank)).bytes);
      ranks[rank].dynamicBytes = most + (1 << 20);
    }
    return must(dyna::RankTeam::create(
        {{graphs[0].get()}},
        *must(dyna::chooseVariant(program->program(), "", 0)), std::move(ranks),
        {}));
  }
  /// Bytes that go to a rank from another one, or stay on it.
  int64_t bytes(int way, bool stay) const {
    int64_t sum = 0;
    for (const dyna::SwitchBucket &bucket : ways[way].plan.buckets)
      for (const dyna::SwitchTransfer &one : bucket.transfers)
        if ((one.from == one.to) == stay)
          sum += one.box.volume() * ways[way].tensors[one.tensor].elementBytes;
    return sum;
  }

  std::optional<dyna::TinyProgram> program;
  std::optional<dyna::Model> model;
  std::vector<std::unique_ptr<dyna::ExecutableGraph>> graphs;
  std::vector<dyna::GraphSwitch> ways; ///< from the first, from the second
};

/// As many bytes, half of them by each of two threads.
double copySeconds(const Memory &from, const Memory &to, int64_t bytes) {
  const double begin = now();
  auto half = [&](int64_t at) {
    memcpy(to.data + at, from.data + at, static_cast<size_t>(bytes / 2));
  };
  std::thread other(half, bytes / 2);
  half(0);
  other.join();
  return now() - begin;
}

void measure(const std::string &first, const std::string &second, int repeats) {
  const Graphs graphs(first, second);
  auto team = graphs.team();
  std::vector<double> times[2], copies[2];
  int64_t most = 0;
  for (int way : {0, 1})
    most = std::max(most, graphs.bytes(way, true) + graphs.bytes(way, false));
  const Memory from(most), to(most);
  for (int repeat = 0; repeat <= repeats; ++repeat)
    for (int way : {0, 1}) {
      dyna::Replacement next;
      next.graphs = {{graphs.graphs[1 - way].get()}};
      next.state = &graphs.ways[way];
      const double begin = now();
      check(team->replace(next));
      times[way].push_back(now() - begin);
      copies[way].push_back(copySeconds(
          from, to, graphs.bytes(way, true) + graphs.bytes(way, false)));
    }
  for (int way : {0, 1}) {
    const Timing replaced = summarize(times[way]),
                 copied = summarize(copies[way]);
    const int64_t sent = graphs.bytes(way, false),
                  stays = graphs.bytes(way, true);
    printf("{\"what\":\"replace\",\"from\":\"%s\",\"to\":\"%s\",\"ranks\":2,"
           "\"sent_mib\":%.1f,\"floor_mib\":%.1f,\"stays_mib\":%.1f,"
           "\"repeats\":%d,\"median_ms\":%.2f,\"least_ms\":%.2f,"
           "\"gb_per_s\":%.2f,\"memcpy_ms\":%.2f,\"of_memcpy\":%.2f}\n",
           (way ? second : first).c_str(), (way ? first : second).c_str(),
           double(sent) / (1 << 20),
           double(dyna::missingBytes(graphs.ways[way].tensors)) / (1 << 20),
           double(stays) / (1 << 20), replaced.repeats, replaced.median * 1e3,
           replaced.least * 1e3, double(sent + stays) / replaced.median / 1e9,
           copied.median * 1e3, copied.median / replaced.median);
    fflush(stdout);
  }
}

} // namespace

int main(int argc, char **argv) {
  const int repeats =
      argc == 3 && !strcmp(argv[1], "--repeats") ? atoi(argv[2]) : 10;
  measure("pp=2,layers=5+5", "pp=2,layers=6+4", repeats);
  measure("dp=2,zero=1", "pp=2,layers=5+5", repeats);
  measure("dp=2", "tp=2", repeats);
  measure("dp=2", "dp=2,zero=1", repeats);
}
