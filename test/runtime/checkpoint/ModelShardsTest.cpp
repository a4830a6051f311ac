//===- ModelShardsTest.cpp - Models in several files ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/ModelShards.h"

#include "runtime/abi/Random.h"
#include "runtime/base/text/JsonReader.h"
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "test/runtime/base/TemporaryFiles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

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
  EXPECT_THAT(refusal(), HasSubstr("one.safetensors for tensor \"b\", which "
                                   "lies there"));
  index(R"({"a": "one.safetensors", "b": 5})");
  EXPECT_THAT(refusal(), HasSubstr("for tensor \"b\", but got a number"));
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

//===----------------------------------------------------------------------===//
// Saving
//===----------------------------------------------------------------------===//

TEST(DealToShardsTest, ShardsAreFullAndInOrder) {
  // Of every limit and random sizes: no shard is too large that has several tensors,
  // none could have taken the next one too, and together they are all.
  uint64_t state = 5;
  for (int round = 0; round < 200; ++round) {
    std::vector<TensorView> tensors;
    std::vector<int64_t> bytes;
    const size_t count = (state = dyna_mix64(state)) % 8;
    for (size_t i = 0; i < count; ++i) {
      bytes.push_back(4 *
                      static_cast<int64_t>((state = dyna_mix64(state)) % 6));
      tensors.push_back(
          {std::to_string(i), DType::F32, {bytes.back() / 4}, nullptr});
    }
    for (int64_t limit : {0, 1, 4, 12, 20, 1000}) {
      const std::vector<size_t> ends = dealToShards(tensors, limit);
      ASSERT_FALSE(ends.empty());
      EXPECT_EQ(ends.back(), count);
      if (limit == 0)
        EXPECT_EQ(ends.size(), 1u);
      size_t begin = 0;
      for (size_t end : ends) {
        ASSERT_LE(begin, end);
        int64_t sum = 0;
        size_t real = 0;
        for (size_t i = begin; i < end; ++i) {
          sum += bytes[i];
          real += bytes[i] > 0;
        }
        if (limit > 0 && sum > limit)
          EXPECT_EQ(real, 1u) << limit;
        if (limit > 0 && end < count)
          EXPECT_GT(sum + bytes[end], limit);
        begin = end;
      }
    }
  }
}

// However small the limit is, what is written can be read.
TEST(DealToShardsTest, ShardsAreFewEnoughToRead) {
  std::vector<TensorView> tensors;
  for (int i = 0; i < 20000; ++i)
    tensors.push_back({std::to_string(i), DType::F32, {1 + i % 3}, nullptr});
  const std::vector<size_t> ends = dealToShards(tensors, 1);
  EXPECT_LE(ends.size(), 4096u);
  EXPECT_GT(ends.size(), 1000u);
}

TEST(DealToShardsTest, NamesAreThoseOfHuggingFace) {
  EXPECT_EQ(shardName(0, 12), "model-00001-of-00012.safetensors");
  EXPECT_EQ(shardName(99999, 123456), "model-100000-of-123456.safetensors");
  for (const char *name : {"model-00001-of-00012.safetensors",
                           "model-100000-of-123456.safetensors"})
    EXPECT_TRUE(isShardName(name)) << name;
  for (const char *name :
       {"", "model.safetensors", "model-1-of-2.safetensors",
        "model-00001-of-00012.safetensors.index.json",
        "model-00001-of-.safetensors", "mine-00001-of-00012.safetensors",
        "model-00001-of-00012.bin", "model-0000x-of-00012.safetensors"})
    EXPECT_FALSE(isShardName(name)) << name;
}

class SavedShardsTest : public testing::Test {
protected:
  /// Three tensors of 12, 8 and 4 bytes.
  CheckpointContents contents(int64_t step, int64_t shardBytes) {
    CheckpointContents contents;
    contents.step = step;
    contents.shardBytes = shardBytes;
    contents.state = "{}";
    contents.model = {{"c", DType::F32, {1}, values_.data()},
                      {"a", DType::F32, {3}, values_.data() + 1},
                      {"b", DType::F32, {2}, values_.data() + 4}};
    contents.optimizer = {{"a.m", DType::F32, {1}, values_.data()}};
    return contents;
  }

  std::vector<std::string> files(const std::string &step) {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(dir_ / step))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  CheckpointStore open() {
    StatusOr<CheckpointStore> store = CheckpointStore::open(dir_.path(), -1, 2);
    EXPECT_TRUE(store.isOk()) << store.status().message();
    return std::move(*store);
  }

  TemporaryDirectory dir_;
  std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
};

TEST_F(SavedShardsTest, ALargeModelIsSavedInShards) {
  CheckpointStore store = open();
  ASSERT_TRUE(store.save(contents(1, 12)).isOk());
  EXPECT_THAT(files("step-1"),
              testing::ElementsAre("checkpoint.json",
                                   "model-00001-of-00002.safetensors",
                                   "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json",
                                   "optimizer.safetensors", "state.json"));
  for (const std::string &path :
       {dir_.path(), dir_ / "step-1",
        dir_ / "step-1/model.safetensors.index.json"}) {
    StatusOr<Checkpoint> loaded = loadCheckpoint(path);
    ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
    for (const TensorView &tensor : contents(1, 12).model) {
      const TensorView *found = loaded->model.find(tensor.name);
      ASSERT_TRUE(found) << tensor.name;
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_EQ(std::memcmp(found->data, tensor.data, 4 * tensor.shape[0]), 0);
    }
  }
  // The index says what transformers reads.
  StatusOr<JsonValue> index =
      parseJson(*readFile(dir_ / "step-1/model.safetensors.index.json"));
  ASSERT_TRUE(index.isOk());
  EXPECT_EQ(index->find("metadata")->findInteger("total_size"), 24);
  EXPECT_EQ(index->find("weight_map")->find("a")->text,
            "model-00001-of-00002.safetensors");
  EXPECT_EQ(index->find("weight_map")->find("c")->text,
            "model-00002-of-00002.safetensors");
}

// What is saved otherwise takes the place of what was there, and old ones go.
TEST_F(SavedShardsTest, ShardsAreOurs) {
  CheckpointStore store = open();
  ASSERT_TRUE(store.save(contents(1, 4)).isOk());
  ASSERT_TRUE(store.save(contents(1, 12)).isOk());
  EXPECT_EQ(files("step-1").size(), 6u);
  ASSERT_TRUE(store.save(contents(1, 0)).isOk());
  EXPECT_EQ(files("step-1").size(), 4u);
  for (int64_t step : {2, 3, 4})
    ASSERT_TRUE(store.save(contents(step, 4)).isOk());
  EXPECT_EQ(files(""), (std::vector<std::string>{"step-3", "step-4"}));
}

TEST_F(SavedShardsTest, RemainsOfASaveGo) {
  std::filesystem::create_directories(dir_ / ".dyna-tmp-7");
  for (const char *name :
       {"dyna-unfinished", "model-00001-of-00002.safetensors"})
    dir_.write(std::string(".dyna-tmp-7/") + name, "half");
  // Of others, with a name that is not ours.
  std::filesystem::create_directories(dir_ / ".dyna-tmp-8");
  for (const char *name : {"dyna-unfinished", "model-1-of-2.safetensors"})
    dir_.write(std::string(".dyna-tmp-8/") + name, "half");
  open();
  EXPECT_FALSE(fileExists(dir_ / ".dyna-tmp-7"));
  EXPECT_TRUE(fileExists(dir_ / ".dyna-tmp-8"));
}

// A damaged shard is noticed, whichever it is, and an older checkpoint is taken.
TEST_F(SavedShardsTest, DamageIsNoticed) {
  CheckpointStore store = open();
  ASSERT_TRUE(store.save(contents(1, 12)).isOk());
  ASSERT_TRUE(store.save(contents(2, 12)).isOk());
  for (const char *name :
       {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
        "model.safetensors.index.json"}) {
    const std::string path = dir_ / ("step-2/" + std::string(name));
    const std::string whole = *readFile(path);
    std::string damaged = whole;
    damaged[damaged.size() - 3] ^= 1;
    for (const std::string &bytes : {damaged, std::string()}) {
      std::ofstream(path, std::ios::binary) << bytes;
      StatusOr<Checkpoint> loaded = loadCheckpoint(dir_.path());
      ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
      EXPECT_EQ(loaded->step, 1) << name;
      ASSERT_EQ(loaded->notes.size(), 1u);
      EXPECT_FALSE(
          loadCheckpoint(dir_ / "step-2/model.safetensors.index.json").isOk());
    }
    std::ofstream(path, std::ios::binary) << whole;
  }
  std::filesystem::remove(dir_ / "step-2/model-00002-of-00002.safetensors");
  EXPECT_EQ(loadCheckpoint(dir_.path())->step, 1);
}

} // namespace
