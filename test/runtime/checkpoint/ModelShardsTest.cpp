//===- ModelShardsTest.cpp - Models in several files ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/ModelShards.h"

#include "runtime/checkpoint/CheckpointStore.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <gmock/gmock.h>

using namespace dyna;
using namespace dyna::test;
using testing::HasSubstr;

namespace {

class ModelShardsTest : public testing::Test {
protected:
  void SetUp() override {
    write("one.safetensors", {"a", "b"});
    write("two.safetensors", {"c"});
    index(R"({"a": "one.safetensors", "c": "two.safetensors",
              "b": "one.safetensors"})");
  }

  /// Each tensor has the bytes of its name's first letter.
  void write(const std::string &name, const std::vector<std::string> &tensors) {
    std::vector<TensorView> views;
    for (const std::string &tensor : tensors) {
      values_.emplace_back(3, static_cast<float>(tensor[0]));
      views.push_back({tensor, DType::F32, {3}, values_.back().data()});
    }
    StatusOr<OutputFile> file = OutputFile::create(dir_ / name);
    ASSERT_TRUE(file.isOk());
    ASSERT_TRUE(writeSafetensors(*file, views).isOk());
    ASSERT_TRUE(file->close().isOk());
  }

  void index(const std::string &map) {
    dir_.write(shardIndexFile,
               "{\"metadata\": {}, \"weight_map\": " + map + "}");
  }

  std::string refusal() {
    StatusOr<Checkpoint> model = loadCheckpoint(dir_.path());
    EXPECT_FALSE(model.isOk());
    return model.status().message();
  }

  TemporaryDirectory dir_;
  std::vector<std::vector<float>> values_;
};

TEST_F(ModelShardsTest, ShardsAreOneModel) {
  for (const std::string &path : {dir_.path(), dir_ / shardIndexFile}) {
    StatusOr<Checkpoint> model = loadCheckpoint(path);
    ASSERT_TRUE(model.isOk()) << model.status().message();
    EXPECT_EQ(model->model.tensors().size(), 3u);
    for (const char *name : {"a", "b", "c"}) {
      const TensorView *tensor = model->model.find(name);
      ASSERT_TRUE(tensor) << name;
      EXPECT_EQ(static_cast<const float *>(tensor->data)[2], *name);
    }
    EXPECT_FALSE(model->model.find("d"));
    EXPECT_TRUE(model->checkReadable().isOk());
  }
}

TEST_F(ModelShardsTest, EveryShardCountsInTheChecksum) {
  const uint64_t before = openShards(dir_ / shardIndexFile)->checksum();
  EXPECT_EQ(openShards(dir_ / shardIndexFile)->checksum(), before);
  values_.clear();
  std::vector<float> other(3, 9);
  StatusOr<OutputFile> file = OutputFile::create(dir_ / "two.safetensors");
  ASSERT_TRUE(file.isOk());
  ASSERT_TRUE(
      writeSafetensors(*file, {{"c", DType::F32, {3}, other.data()}}).isOk());
  ASSERT_TRUE(file->close().isOk());
  EXPECT_NE(openShards(dir_ / shardIndexFile)->checksum(), before);
}

TEST_F(ModelShardsTest, NamesOfShardsAreSorted) {
  auto names = readShardNames(dir_ / shardIndexFile);
  ASSERT_TRUE(names.isOk());
  EXPECT_THAT(*names,
              testing::ElementsAre("one.safetensors", "two.safetensors"));
}

TEST_F(ModelShardsTest, FilesThatDoNotFitTheIndexAreRefused) {
  index(R"({"a": "one.safetensors", "b": "one.safetensors"})");
  EXPECT_TRUE(loadCheckpoint(dir_.path()).isOk()); // without "two"
  index(R"({"a": "one.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("does not name tensor \"b\""));
  index(R"({"a": "one.safetensors", "b": "one.safetensors",
            "d": "two.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("expected tensor \"d\" in "));
  index(R"({"a": "one.safetensors", "b": "one.safetensors",
            "c": "three.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("names \"three.safetensors\", which is not "
                                   "beside it: all 2 files"));
  write("three.safetensors", {"a"});
  index(R"({"a": "one.safetensors", "b": "one.safetensors",
            "c": "two.safetensors"})");
  EXPECT_TRUE(loadCheckpoint(dir_.path()).isOk());
}

TEST_F(ModelShardsTest, AnIndexLeadsNowhereElse) {
  for (const char *name : {"../one.safetensors", "/etc/passwd", "", ".", "..",
                           "folder/one.safetensors"}) {
    index(std::string("{\"a\": \"") + name + "\"}");
    EXPECT_THAT(refusal(), HasSubstr("expected the name of a file beside it"))
        << name;
  }
  for (const char *map :
       {"{}", "[]", "3", "{\"a\": 3}", "{\"a\": {}}", "null"}) {
    index(map);
    EXPECT_THAT(refusal(), HasSubstr("expected")) << map;
  }
  std::string many = "{";
  for (int i = 0; i < 5000; ++i)
    many += "\"t" + std::to_string(i) + "\": \"f" + std::to_string(i) + "\", ";
  index(many + "\"a\": \"one.safetensors\"}");
  EXPECT_THAT(refusal(), HasSubstr("names more than 4096 files"));
}

} // namespace
