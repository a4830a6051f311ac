//===- SavedWeightsTest.cpp - Weights of losses in checkpoints ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/SavedWeights.h"

#include "runtime/base/text/JsonReader.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;

namespace {

/// Returns the tiny model, whose blocks give losses with these weights; the last is of the
/// head.
Model withExits(const std::vector<double> &weights) {
  plan::Manifest manifest = tinyManifest();
  *manifest.mutable_kinds(1)->add_outputs() = manifest.kinds(2).outputs(0);
  *manifest.mutable_kinds(1)->add_inputs() = manifest.kinds(2).inputs(1);
  for (double weight : weights)
    manifest.mutable_facts()->add_loss_weights(weight);
  return *Model::create(manifest);
}

bool reads(const std::string &text, SavedWeights &weights) {
  return weights.readFrom(*parseJson(text));
}

TEST(SavedWeightsTest, WeightsAreReadAsTheyWereWritten) {
  // A third has no short decimal form.
  const SavedWeights written = SavedWeights::of(withExits({1.0 / 3, 0, 2, 1}));
  ASSERT_EQ(written.byLayer.size(), 4u);
  JsonObject state;
  written.addTo(state);
  SavedWeights read;
  ASSERT_TRUE(reads(state.text(), read));
  EXPECT_EQ(read.byLayer, written.byLayer);
  EXPECT_EQ(read.differences(written), "");
}

TEST(SavedWeightsTest, AModelWithoutExitsHasNone) {
  JsonObject state;
  SavedWeights::of(*Model::create(tinyManifest())).addTo(state);
  EXPECT_TRUE(state.isEmpty());
}

TEST(SavedWeightsTest, DifferencesNameLayersAndBothWeights) {
  const SavedWeights saved = SavedWeights::of(withExits({0.5, 2, 2, 1}));
  const SavedWeights here = SavedWeights::of(withExits({0.25, 2, 2, 3}));
  const std::string &exit = saved.byLayer[0].first,
                    &head = saved.byLayer[3].first;
  EXPECT_EQ(saved.differences(here), exit + " is 0.5 there and 0.25 here, " +
                                         head + " is 1 there and 3 here");
}

// Weights that look alike with few digits are said to differ, with all of them.
TEST(SavedWeightsTest, SmallDifferencesAreSeen) {
  const SavedWeights saved = SavedWeights::of(withExits({0.1, 0, 0, 1}));
  const SavedWeights here = SavedWeights::of(withExits({0.1 + 1e-9, 0, 0, 1}));
  EXPECT_THAT(saved.differences(here),
              testing::HasSubstr("is 0.1 there and 0.100000001 here"));
}

TEST(SavedWeightsTest, EarlierCheckpointsSayNothing) {
  SavedWeights read;
  EXPECT_TRUE(reads("{\"format\": 1}", read));
  EXPECT_EQ(read.differences(SavedWeights::of(withExits({0.5, 2, 2, 1}))), "");
}

TEST(SavedWeightsTest, InvalidWeightsAreRefused) {
  for (const char *text :
       {"[0.5]", "\"0.5\"", "{\"h.0.exit\": \"0.5\"}", "{\"h.0.exit\": -0.5}",
        "{\"h.0.exit\": null}", "{\"h.0.exit\": 1e999}"}) {
    SavedWeights read;
    EXPECT_FALSE(reads(std::string("{\"loss_weights\": ") + text + "}", read))
        << text;
  }
}

} // namespace
