//===- PrunedParametersTest.cpp - Which parameters are pruned -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PrunedParameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// By the definition, one character after another.
bool matches(const char *pattern, const char *name) {
  if (*pattern == '\0')
    return *name == '\0';
  if (*pattern == '*')
    return matches(pattern + 1, name) || (*name && matches(pattern, name + 1));
  return *pattern == *name && matches(pattern + 1, name + 1);
}

/// All words of up to so many of the characters.
std::vector<std::string> wordsOf(const std::string &characters, int length) {
  std::vector<std::string> words = {""};
  for (size_t begin = 0; length > 0; --length) {
    const size_t end = words.size();
    for (; begin < end; ++begin)
      for (char character : characters)
        words.push_back(words[begin] + character);
  }
  return words;
}

TEST(PrunedParametersTest, PatternsAreThoseOfTheDefinition) {
  int matched = 0;
  for (const std::string &pattern : wordsOf("ab*", 4))
    for (const std::string &name : wordsOf("ab", 5)) {
      EXPECT_EQ(matchesPattern(pattern, name),
                matches(pattern.c_str(), name.c_str()))
          << pattern << " " << name;
      matched += matchesPattern(pattern, name);
    }
  EXPECT_GT(matched, 100);
}

class PrunedModel : public testing::Test {
protected:
  /// An embedding, two blocks and a head that uses the embedding's table. Blocks have a
  /// matrix and a vector each, and share a second matrix.
  static Model model(bool isTied = true, int frozen = -1) {
    plan::Manifest manifest;
    for (bool givesLoss : {false, false, true}) {
      plan::LayerKind *kind = manifest.add_kinds();
      kind->add_inputs();
      if (!givesLoss)
        kind->add_outputs();
      for (int slot = 0; slot < 3; ++slot)
        kind->add_parameters();
    }
    auto addParameter = [&](const char *name, std::vector<int64_t> shape) {
      plan::Parameter *parameter = manifest.add_parameters();
      parameter->set_name(name);
      for (int64_t size : shape)
        parameter->add_shape(size);
      parameter->set_frozen(manifest.parameters_size() == frozen + 1);
    };
    addParameter("wte", {7, 3});
    addParameter("h.0.w", {3, 3});
    addParameter("h.0.b", {3});
    addParameter("h.shared", {3, 2});
    addParameter("h.1.w", {3, 3});
    addParameter("h.1.b", {3});
    addParameter("head.w", {3, 7});
    auto addLayer = [&](int kind, std::vector<int> parameters) {
      plan::Layer *layer = manifest.add_layers();
      layer->set_kind(kind);
      if (kind > 0)
        layer->add_producers(manifest.layers_size() - 2);
      for (int p : parameters)
        layer->add_parameters(p);
    };
    addLayer(0, {0});
    addLayer(1, {1, 2, 3});
    addLayer(1, {4, 5, 3});
    addLayer(2, isTied ? std::vector<int>{0} : std::vector<int>{6});
    return Model::unchecked(std::move(manifest));
  }

  static std::vector<int> chosen(const StatusOr<std::vector<bool>> &pruned) {
    std::vector<int> numbers;
    EXPECT_TRUE(pruned.isOk()) << pruned.status().message();
    for (size_t p = 0; pruned.isOk() && p < pruned->size(); ++p)
      if ((*pruned)[p])
        numbers.push_back(static_cast<int>(p));
    return numbers;
  }
};

TEST_F(PrunedModel, LinearWeightsOfBlocksByDefault) {
  for (bool isTied : {true, false})
    EXPECT_THAT(chosen(prunedParameters(model(isTied), "")),
                ElementsAre(1, 3, 4));
}

TEST_F(PrunedModel, PatternsChooseMatrices) {
  EXPECT_THAT(chosen(prunedParameters(model(), "h.0.*")), ElementsAre(1));
  EXPECT_THAT(chosen(prunedParameters(model(), "*.w+wte")),
              ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(chosen(prunedParameters(model(), "*")),
              ElementsAre(0, 1, 3, 4, 6));
  EXPECT_THAT(prunedParameters(model(), "h.2.w").status().message(),
              HasSubstr("'params=h.2.w': there is no such parameter; a matrix "
                        "of this model is 'head.w'"));
  EXPECT_THAT(prunedParameters(model(), "h.*+h.0.b").status().message(),
              HasSubstr("'params=h.0.b': only matrices are pruned"));
}

TEST_F(PrunedModel, FrozenWeightsKeepTheirValues) {
  EXPECT_THAT(chosen(prunedParameters(model(true, 3), "")), ElementsAre(1, 4));
  EXPECT_THAT(chosen(prunedParameters(model(true, 3), "h.*")),
              ElementsAre(1, 4));
  EXPECT_THAT(prunedParameters(model(true, 3), "h.shared").status().message(),
              HasSubstr("it is frozen, and only trained weights are pruned"));
}

TEST_F(PrunedModel, GroupsAreTheModelOrLayers) {
  Model all = model();
  EXPECT_TRUE(prunedGroups(all, false).empty());
  all.setMasks(*prunedParameters(all, "*"));
  EXPECT_THAT(prunedGroups(all, false),
              ElementsAre(ElementsAre(0, 1, 3, 4, 6)));
  Model untied = model(false);
  untied.setMasks(*prunedParameters(untied, "*"));
  EXPECT_THAT(prunedGroups(untied, true),
              ElementsAre(ElementsAre(0), ElementsAre(1, 3), ElementsAre(4),
                          ElementsAre(6)));
}

} // namespace
