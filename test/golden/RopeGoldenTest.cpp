//===- RopeGoldenTest.cpp - Rotations against transformers ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each case of rope.json is a configuration of a LLaMA, from which a model is built. The
// frequencies of its rotations, as code is generated for them and as the reference
// evaluator has them, are those that transformers computed.
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontends.h"
#include "mlir/IR/MLIRContext.h"
#include "test/reference/Evaluator.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace mlir::dyna;

namespace {

/// The text of a small configuration with the rotation of a case, written in the way of
/// older or newer configurations.
std::string configText(const llvm::json::Object &golden, bool isNewer) {
  llvm::json::Object config{{"model_type", "llama"},
                            {"vocab_size", 257},
                            {"hidden_size", 8},
                            {"intermediate_size", 16},
                            {"num_hidden_layers", 1},
                            {"num_attention_heads", 2},
                            {"max_position_embeddings", 131072}};
  config["head_dim"] = *golden.get("head_dim");
  const llvm::json::Value &theta = *golden.get("rope_theta"),
                          &scaling = *golden.get("rope_scaling");
  if (!isNewer) {
    config["rope_theta"] = theta;
    config["rope_scaling"] = scaling;
  } else {
    llvm::json::Object parameters{{"rope_type", "default"}};
    if (scaling.getAsObject())
      parameters = *scaling.getAsObject();
    parameters["rope_theta"] = theta;
    config["rope_parameters"] = std::move(parameters);
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(config));
  return text;
}

TEST(RopeGoldenTest, FrequenciesAreThoseOfTransformers) {
  auto buffer =
      llvm::MemoryBuffer::getFile(std::string(DYNA_GOLDEN_DIR) + "/rope.json");
  ASSERT_TRUE(static_cast<bool>(buffer));
  auto cases = llvm::json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(static_cast<bool>(cases));
  ASSERT_GE(cases->getAsArray()->size(), 7u);
  MLIRContext context;
  context.loadDialect<DynaDialect>();
  // transformers rounds to f32 at each of a few steps.
  constexpr double tolerance = 1e-6;
  for (const llvm::json::Value &value : *cases->getAsArray()) {
    const llvm::json::Object &golden = *value.getAsObject();
    const llvm::json::Array &expected = *golden.getArray("inv_freq");
    for (bool isNewer : {false, true}) {
      const std::string text = configText(golden, isNewer);
      auto module =
          importLlama(&context, llvm::MemoryBufferRef(text, "config"));
      ASSERT_TRUE(module) << text;
      int rotaries = 0;
      module->walk([&](RotaryOp op) {
        ++rotaries;
        SmallVector<double> frequencies = rotaryFrequencies(op);
        ASSERT_EQ(frequencies.size(), expected.size());
        for (size_t j = 0; j < frequencies.size(); ++j) {
          const double theirs = *expected[j].getAsNumber();
          EXPECT_NEAR(frequencies[j], theirs, tolerance * theirs) << text;
          EXPECT_NEAR(
              reference::rotaryFrequency(static_cast<int64_t>(j),
                                         static_cast<int64_t>(op.getHeadDim()),
                                         op.getTheta().convertToDouble(),
                                         reference::scalingOf(op)),
              theirs, tolerance * theirs)
              << text;
        }
      });
      EXPECT_EQ(rotaries, 2);
    }
  }
}

} // namespace
