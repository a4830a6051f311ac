//===- ReplaceGraphsMpi.cpp - Graphs that change on processes -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What ReplaceGraphsTest does with threads, on four processes of one rank each. Rank 0
// compares with threads.
//
// Usage: mpirun -n 4 replace_graphs_mpi
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/ProcessTransport.h"
#include "test/runtime/executor/ReplacedGraphs.h"

#include <gmock/gmock.h>

#define ASSERT_OK(expression) ASSERT_EQ((expression).message(), std::string())

using namespace dyna;
using namespace dyna::test;

namespace {

TEST(ReplaceGraphsMpi, ProcessesComputeWhatThreadsDo) {
  ASSERT_NE(&dyna_process_transport, nullptr);
  auto transport =
      dyna_process_transport.open(4, std::chrono::seconds(kPatience));
  ASSERT_TRUE(transport.isOk()) << transport.status().message();
  auto processes = [&](const TinyProgram &program,
                       const std::vector<GraphUse> &uses) {
    std::vector<RankResources> own(1);
    own[0].rank = (*transport)->rank();
    own[0].transport = std::move(*transport);
    own[0].device = makeTestDevice();
    own[0].dynamicBytes = enoughDynamicBytes;
    ExecutorOptions options;
    options.seed = 7;
    return RankTeam::create(uses, **chooseVariant(program.program(), "", 0),
                            std::move(own), options);
  };
  const std::string stays = "dp=2,pp=2,layers=3+2";
  const std::vector<std::string> strategies = {
      stays, "dp=4,zero=1", "dp=1", "tp=2,pp=2,layers=2+3", "tp=2", stays};
  const TinyOptions tiny = tinyOptions(plan::F64);
  ReplacedGraphs::Options options;
  options.clip = 0.5;
  ReplacedGraphs run(stays, tiny, processes, options);
  for (const std::string &strategy : strategies) {
    if (&strategy != &strategies.front())
      ASSERT_OK(run.replace(strategy)) << strategy;
    for (int step = 0; step < 3; ++step)
      ASSERT_OK(run.step());
  }
  // Ranks share few groups: those of graphs before are used again.
  for (int round = 0; round < 150; ++round)
    ASSERT_OK(run.replace(round % 2 ? stays : "dp=3,zero=1")) << round;
  ASSERT_OK(run.step());
  const auto got = run.outcome();
  if (!run.team().hasRankZero())
    return;
  Carriage carriage;
  carriage.checksMemory = false;
  ReplacedGraphs threads(stays, tiny, carriage, options);
  for (size_t step = 0; step < got.losses.size(); ++step)
    EXPECT_OK(threads.step());
  const auto expected = threads.outcome();
  ASSERT_EQ(got.losses.size(), expected.losses.size());
  for (size_t step = 0; step < got.losses.size(); ++step)
    EXPECT_NEAR(got.losses[step], expected.losses[step], 1e-8);
  for (size_t part = 0; part < got.state.size(); ++part)
    for (size_t i = 0; i < got.state[part].size(); ++i)
      ASSERT_NEAR(got.state[part][i], expected.state[part][i], 1e-10);
}

} // namespace
