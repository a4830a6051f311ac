//===- TinyProgram.cpp - The tiny model as a compiled object --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Defines what a compiled model's object defines, so that whole training
// binaries can be tested without a compiler.

#include "test/runtime/executor/TinyModel.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

// Tests that stop a run need one that takes a while: milliseconds per update.
static void sleepFor(const char *variable) {
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::atoi(std::getenv(variable))));
}
static void sleepInUpdate(int64_t) {
  // A file by which tests see that the run has come here.
  if (const char *mark = std::getenv("TINY_SLEEP_MARK"))
    std::ofstream(mark).flush();
  sleepFor("TINY_SLEEP");
}
// The same per micro-batch.
static void sleepInForward(const dyna_context &) {
  sleepFor("TINY_SLEEP_FORWARD");
}

static const dyna::TinyProgram &tiny() {
  static const dyna::TinyProgram program = [] {
    dyna::TinyOptions options;
    options.vocabulary = 257;
    const char *type = std::getenv("TINY_TYPE");
    if (type && std::strcmp(type, "bf16") == 0)
      options.compute = dyna::plan::BF16;
    if (const char *blocks = std::getenv("TINY_BLOCKS"))
      options.blocks = std::atoi(blocks);
    if (const char *frozen = std::getenv("TINY_FROZEN")) {
      std::istringstream names(frozen);
      for (std::string name; std::getline(names, name, ',');)
        options.frozen.push_back(name);
    }
    options.freezable = options.untied = std::getenv("TINY_FREEZABLE");
    if (std::getenv("TINY_SLEEP"))
      dyna::tinyUpdateHook = sleepInUpdate;
    if (std::getenv("TINY_SLEEP_FORWARD"))
      dyna::tinyEmbeddingHook = sleepInForward;
    return dyna::TinyProgram(options);
  }();
  return program;
}

extern "C" const dyna_program dyna_compiled_program = tiny().program();
