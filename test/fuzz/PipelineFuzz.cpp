//===- PipelineFuzz.cpp - Modules through every phase ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

//
// A module as text goes through the phases that dynac runs, at a tensor degree
// of two, down to the LLVM dialect. A phase may refuse it with an error; it may
// neither crash nor stop without a word.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "codegen/cpu/Pipelines.h"
#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/exec/Exec.h"
#include "frontends/Frontends.h"
#include "frontends/Passes.h"
#include "passes/Pipelines.h"
#include "passes/plan/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace ::dyna::test;
using namespace mlir;

namespace {

constexpr const char *parameters =
    "dyna.parameter @t : tensor<9x4xf32> normal 0.02 decay\n"
    "dyna.parameter @g : tensor<4xf32> constant 1.0\n"
    "dyna.parameter @w : tensor<4x4xf32> normal 0.02 decay\n"
    "dyna.parameter @v : tensor<4x4xf32> normal 0.02 decay\n";

constexpr const char *ends =
    "dyna.layer @embed[%t: tensor<9x4xf32>](%i: tensor<?xi32>)"
    " -> tensor<?x4xf32> {\n"
    "  %x = dyna.embedding %i, %t : tensor<?xi32>, tensor<9x4xf32>\n"
    "  dyna.return %x : tensor<?x4xf32>\n}\n"
    "dyna.layer @head[%t: tensor<9x4xf32>](%x: tensor<?x4xf32>,"
    " %y: tensor<?xi32>) -> tensor<1xf64> {\n"
    "  %l = dyna.linear_cross_entropy %x, %t, %y : tensor<?x4xf32>,"
    " tensor<9x4xf32>, tensor<?xi32>\n"
    "  dyna.return %l : tensor<1xf64>\n}\n";

/// The block, between an embedding and a head; `heads`: facts of its attention.
std::string moduleAround(const std::string &body, const std::string &heads) {
  return std::string(parameters) + ends +
         "dyna.layer @block[%g: tensor<4xf32>, %w: tensor<4x4xf32>,"
         " %v: tensor<4x4xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments)"
         " -> tensor<?x4xf32> {\n" +
         body +
         "}\n"
         "dyna.model @m(%i: tensor<?xi32>, %y: tensor<?xi32>,"
         " %s: !dyna.segments) facts<family = \"custom\", vocabulary = 9,"
         " positions = 16, width = 4, " +
         heads +
         ", feed_forward = 0, config = \"\"> {\n"
         "  %0 = dyna.call \"embed\" @embed[@t](%i) : (tensor<?xi32>)"
         " -> tensor<?x4xf32>\n"
         "  %1 = dyna.call \"b\" @block[@g, @w, @v](%0, %s)"
         " : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>\n"
         "  %2 = dyna.call \"head\" @head[@t](%1, %y)"
         " : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>\n"
         "  dyna.return %2 : tensor<1xf64>\n}\n";
}

/// What the front end writes of a configuration.
std::string familyModule(StringRef config) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::dyna::DynaDialect>();
  OwningOpRef<ModuleOp> module = mlir::dyna::importConfig(
      &context, llvm::MemoryBufferRef(config, "config.json"));
  require(bool(module), "the configuration is one");
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

bool runPhase(ModuleOp module, const int &errors,
              llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  build(manager);
  bool isDone = succeeded(manager.run(module));
  require(isDone || errors > 0, "a phase that fails says why");
  return isDone;
}

} // namespace

namespace dyna::test {
std::vector<std::string> fuzzSeeds() {
  // A compiler, not a reader: tools look at a text before they parse it.
  fixedBytes = INT64_MAX / 2;
  return {
      moduleAround(
          "  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x4xf32>,"
          " tensor<4xf32>\n"
          "  %a = dyna.linear %n, %w : tensor<?x4xf32>, tensor<4x4xf32>\n"
          "  %b = dyna.silu %a : tensor<?x4xf32>\n"
          "  %c = dyna.linear %b, %v : tensor<?x4xf32>, tensor<4x4xf32>\n"
          "  %d = dyna.dropout %c, %s {instance = 0, probability = 0.1}"
          " : tensor<?x4xf32>\n"
          "  %z = dyna.add %x, %d : tensor<?x4xf32>\n"
          "  dyna.return %z : tensor<?x4xf32>\n",
          "heads = 0, kv_heads = 0, head_dim = 0"),
      moduleAround(
          "  %q0 = dyna.linear %x, %w : tensor<?x4xf32>, tensor<4x4xf32>\n"
          "  %k0 = dyna.linear %x, %v : tensor<?x4xf32>, tensor<4x4xf32>\n"
          "  %q = dyna.rotary %q0, %s {head_dim = 2, theta = 1.0e4}"
          " : tensor<?x4xf32>\n"
          "  %k = dyna.rotary %k0, %s {head_dim = 2, theta = 1.0e4}"
          " : tensor<?x4xf32>\n"
          "  %a, %lse = dyna.attention %q, %k, %k0, %s {causal, heads = 2,"
          " kv_heads = 2, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>,"
          " tensor<?x4xf32>\n"
          "  %m = dyna.mul %a, %x : tensor<?x4xf32>\n"
          "  dyna.return %m : tensor<?x4xf32>\n",
          "heads = 2, kv_heads = 2, head_dim = 2"),
      familyModule("{\"model_type\": \"gpt2\", \"vocab_size\": 9,"
                   " \"n_positions\": 8, \"n_embd\": 4, \"n_layer\": 1,"
                   " \"n_head\": 2}"),
      familyModule("{\"model_type\": \"llama\", \"vocab_size\": 9,"
                   " \"hidden_size\": 4, \"intermediate_size\": 8,"
                   " \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
                   " \"num_key_value_heads\": 1}")};
}
} // namespace dyna::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context for each input: uniqued types and attributes never die.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, dist::DistDialect, exec::ExecDialect,
                  LLVM::LLVMDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  int errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  std::string text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  require(module || errors > 0, "a refused module has an error");
  if (!module)
    return 0;
  mlir::dyna::DistributePhaseOptions distribute;
  distribute.strategy = "tp=2,sp=1";
  // As dynac does: models of named families are compared with theirs.
  bool isDone =
      runPhase(*module, errors,
               [](OpPassManager &m) {
                 m.addPass(mlir::dyna::createCheckFamilies());
               }) &&
      runPhase(
          *module, errors,
          [](OpPassManager &m) { mlir::dyna::buildDifferentiatePhase(m); }) &&
      runPhase(*module, errors,
               [&](OpPassManager &m) {
                 mlir::dyna::buildDistributePhase(m, distribute);
               }) &&
      runPhase(*module, errors,
               [](OpPassManager &m) { mlir::dyna::buildMemoryPhase(m); }) &&
      runPhase(*module, errors, [](OpPassManager &m) {
        mlir::dyna::cpu::buildLowerCpuPipeline(m, {});
      });
  acceptedInputs += isDone;
  return 0;
}
