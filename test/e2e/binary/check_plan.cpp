//===- check_plan.cpp - Verifies a plan for a binary ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   check_plan MANIFEST PLAN STRATEGY LENGTH...
//
// MANIFEST is what a binary prints with --describe=proto, PLAN a serialised
// plan. Exits with 0 where that binary could execute it, else with 1 and the
// reason.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/PartitionLayers.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

using namespace dyna;

static std::string read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static Status check(const std::string &manifest, const std::string &bytes,
                    const std::string &text,
                    const std::vector<int64_t> &lengths) {
  auto model =
      Model::parse(manifest.data(), static_cast<int64_t>(manifest.size()));
  if (!model.isOk())
    return model.status();
  auto plan = readPlan(bytes);
  if (!plan.isOk())
    return plan.status();
  auto strategy = findStrategy(text, {model->manifest().strategies().begin(),
                                      model->manifest().strategies().end()});
  if (!strategy.isOk())
    return strategy.status();
  auto cut = chooseLayers(CostModel(*model), *strategy);
  if (!cut.isOk())
    return cut.status();
  auto graph = ExecutableGraph::create(*model, cut->strategy);
  if (!graph.isOk())
    return graph.status();
  return verifyPlan(*graph, *plan, lengths, VerifyOptions());
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  std::vector<int64_t> lengths;
  for (int i = 4; i < argc; ++i)
    lengths.push_back(std::atoll(argv[i]));
  Status status = check(read(argv[1]), read(argv[2]), argv[3], lengths);
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}
