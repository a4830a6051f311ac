//===- SavedConfigTest.cpp - Configs beside saved checkpoints -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/files/SavedConfig.h"

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/base/text/JsonWriter.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

// As the front ends of the families write them into manifests.
const std::string gpt2 =
    R"({"vocab_size": 50257, "bos_token_id": 50256, "eos_token_id": 50256})";
const std::string llama =
    R"({"vocab_size": 32000, "bos_token_id": 1, "eos_token_id": 2,
        "rope_theta": 10000})";

// What others load it by must be true of the tensors beside it.
TEST(SavedConfigTest, SaysTheTypeOfTheFileAndTheEndToken) {
  const std::string config = R"({"model_type": "llama", "rope_theta": 1e-05,
      "rms": 0.1, "torch_dtype": "bfloat16", "big": 9007199254740993,
      "x": [1, true, {"a\"b": null}, []]})";
  std::string saved = savedConfig(config, llama, DType::F32, 256);
  auto json = parseJson(saved);
  ASSERT_TRUE(json.isOk()) << saved;
  EXPECT_EQ(json->find("torch_dtype")->text, "float32");
  EXPECT_EQ(json->findInteger("eos_token_id"), 256);
  EXPECT_EQ(json->find("dtype"), nullptr);
  EXPECT_EQ(json->find("rope_theta")->number, 1e-05);
  EXPECT_EQ(json->findInteger("bos_token_id"), 256);
  EXPECT_EQ(json->find("rms")->number, 0.1);
  EXPECT_EQ(json->findInteger("big"), 9007199254740993);
  ASSERT_EQ(json->find("x")->items.size(), 4u);
  EXPECT_EQ(json->find("x")->items[2].keys[0], "a\"b");
  EXPECT_EQ(savedConfig(saved, llama, DType::F32, 256), saved);
  saved = savedConfig(R"({"dtype": "bfloat16", "eos_token_id": 7})", "",
                      DType::F64, 256);
  json = parseJson(saved);
  EXPECT_EQ(json->find("dtype")->text, "float64");
  EXPECT_EQ(json->find("torch_dtype")->text, "float64");
  EXPECT_EQ(json->findInteger("eos_token_id"), 7); // the user's word
  saved = savedConfig(R"({"eos_token_id": null})", "", DType::F32, 256);
  EXPECT_EQ(parseJson(saved)->findInteger("eos_token_id"), 256);
  saved = savedConfig("{}", "", DType::F32, std::nullopt);
  EXPECT_EQ(parseJson(saved)->find("eos_token_id"), nullptr);
  EXPECT_EQ(savedConfig("", gpt2, DType::F32, 256), "");
  // A model that says no defaults, whatever its configuration calls itself.
  saved = savedConfig(R"({"model_type": "llama", "vocab_size": 5})", "",
                      DType::F32, std::nullopt);
  EXPECT_EQ(parseJson(saved)->find("rope_theta"), nullptr);
  EXPECT_EQ(parseJson(saved)->find("bos_token_id"), nullptr);
}

// Ids of the vocabulary, or none: those of the family lie outside a small one.
TEST(SavedConfigTest, TokensAreOfTheVocabulary) {
  auto saved = [](const std::string &config, std::optional<int32_t> end) {
    const std::string &defaults =
        config.find("llama") == std::string::npos ? gpt2 : llama;
    return std::move(
        *parseJson(savedConfig(config, defaults, DType::F32, end)));
  };
  for (const char *key : {"bos_token_id", "eos_token_id"}) {
    const std::string given = std::string(", \"") + key + "\": ";
    const std::string small = R"({"model_type": "gpt2", "vocab_size": 257)";
    EXPECT_EQ(saved(small + "}", 256).findInteger(key), 256);
    EXPECT_EQ(saved(small + given + "50256}", 256).findInteger(key), 256);
    EXPECT_EQ(saved(small + given + "-1}", 256).findInteger(key), 256);
    EXPECT_EQ(saved(small + given + "7}", 256).findInteger(key), 7);
    EXPECT_TRUE(saved(small + given + "[7, 8]}", 256).find(key)->isArray());
    EXPECT_EQ(saved(small + given + "[7, 257]}", 256).findInteger(key), 256);
    for (const std::string &config :
         {small + "}", small + given + "50256}", small + given + "null}"}) {
      const JsonValue none = saved(config, std::nullopt);
      ASSERT_TRUE(none.find(key)) << config;
      EXPECT_EQ(none.find(key)->kind, JsonValue::Kind::Null) << config;
    }
    // As the family has it.
    EXPECT_EQ(saved(R"({"model_type": "gpt2"})", std::nullopt).find(key),
              nullptr);
    EXPECT_EQ(saved(R"({"model_type": "llama", "vocab_size": 3})", std::nullopt)
                  .find(key),
              nullptr);
  }
}

// Version 5 of transformers reads rope_parameters, version 4 rope_theta.
TEST(SavedConfigTest, RotationIsSaidInBothForms) {
  auto theta = [](const std::string &members) {
    auto saved = parseJson(savedConfig(
        R"({"model_type": "llama")" + members + "}", llama, DType::F32, 1));
    const JsonValue *object = saved->find("rope_parameters");
    EXPECT_EQ(object->find("rope_type")->text, "default");
    EXPECT_EQ(object->find("rope_theta")->number,
              saved->find("rope_theta")->number);
    return saved->find("rope_theta")->number;
  };
  EXPECT_EQ(theta(""), 10000);
  EXPECT_EQ(theta(R"(, "rope_theta": null)"), 10000);
  EXPECT_EQ(theta(R"(, "rope_theta": 5e5)"), 5e5);
  EXPECT_EQ(theta(R"(, "rope_parameters": {"rope_theta": 2e4,
                                           "rope_type": "default"})"),
            2e4);
  EXPECT_EQ(theta(R"(, "rope_theta": 5e5, "rope_parameters":
                     {"rope_theta": 2e4})"),
            2e4);
  EXPECT_EQ(
      parseJson(savedConfig(R"({"model_type": "gpt2"})", gpt2, DType::F32, 1))
          ->find("rope_theta"),
      nullptr);
}

// The same for scalings: version 4 reads rope_scaling and its type under either name.
TEST(SavedConfigTest, ScalingIsSaidInBothForms) {
  const std::string scaling = R"("factor": 8.0, "low_freq_factor": 1.0)";
  for (const std::string &members :
       {R"(, "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", )" +
            scaling + "}",
        R"(, "rope_theta": 5e5, "rope_scaling": {"type": "llama3", )" +
            scaling + "}",
        R"(, "rope_theta": null, "rope_scaling": null, "rope_parameters":
            {"rope_theta": 5e5, "rope_type": "llama3", )" +
            scaling + "}",
        R"(, "rope_parameters": {"rope_theta": 5e5}, "rope_scaling":
            {"rope_type": "llama3", )" +
            scaling + "}"}) {
    auto saved = parseJson(savedConfig(
        R"({"model_type": "llama")" + members + "}", llama, DType::F32, 1));
    ASSERT_TRUE(saved.isOk()) << members;
    for (const char *name : {"rope_scaling", "rope_parameters"}) {
      const JsonValue *object = saved->find(name);
      ASSERT_TRUE(object && object->isObject()) << members << name;
      EXPECT_EQ(object->find("rope_type")->text, "llama3") << members;
      EXPECT_EQ(object->find("type"), nullptr) << members;
      EXPECT_EQ(object->find("factor")->number, 8) << members;
      EXPECT_EQ(object->find("low_freq_factor")->number, 1) << members;
    }
    EXPECT_THAT(writeJson(*saved), HasSubstr("\"factor\": 8.0"));
    EXPECT_EQ(saved->find("rope_theta")->number, 5e5) << members;
    EXPECT_EQ(saved->find("rope_parameters")->find("rope_theta")->number, 5e5);
    EXPECT_EQ(saved->find("rope_scaling")->find("rope_theta"), nullptr);
  }
}

} // namespace
