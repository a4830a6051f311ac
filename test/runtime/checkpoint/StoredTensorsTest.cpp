//===- StoredTensorsTest.cpp - Tensors of files, and parameters in them -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/StoredTensors.h"

#include "test/runtime/base/TemporaryFiles.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace dyna;
using namespace dyna::test;

namespace {

/// Parameters with memory; element i of parameter p is 1000 p + i.
struct Parameters {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<float>> values;

  void add(const std::string &name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::vector<float> data(size_t(count), 0);
    std::iota(data.begin(), data.end(), float(1000 * names.size()));
    names.push_back(name);
    shapes.push_back(std::move(shape));
    values.push_back(std::move(data));
  }

  std::vector<TensorView> views() const {
    std::vector<TensorView> result;
    for (size_t i = 0; i < names.size(); ++i)
      result.push_back({names[i], DType::F32, shapes[i], values[i].data()});
    return result;
  }

  std::vector<ParameterSlot> slots() {
    std::vector<ParameterSlot> result;
    for (size_t i = 0; i < names.size(); ++i)
      result.push_back({names[i], shapes[i], DType::F32, values[i].data()});
    return result;
  }

  Parameters cleared() const {
    Parameters result = *this;
    for (std::vector<float> &value : result.values)
      std::fill(value.begin(), value.end(), -1.0f);
    return result;
  }
};

Parameters gpt2(int64_t layers = 2, int64_t width = 4) {
  Parameters p;
  p.add("wte", {7, width});
  p.add("wpe", {5, width});
  for (int64_t i = 0; i < layers; ++i) {
    std::string h = "h." + std::to_string(i) + ".";
    for (const char *norm : {"ln_1", "ln_2"}) {
      p.add(h + norm + ".weight", {width});
      p.add(h + norm + ".bias", {width});
    }
    for (const char *linear : {"attn.q", "attn.k", "attn.v", "attn.proj"}) {
      p.add(h + linear + ".weight", {width, width});
      p.add(h + linear + ".bias", {width});
    }
    p.add(h + "mlp.fc.weight", {3 * width, width});
    p.add(h + "mlp.fc.bias", {3 * width});
    p.add(h + "mlp.proj.weight", {width, 3 * width});
    p.add(h + "mlp.proj.bias", {width});
  }
  p.add("ln_f.weight", {width});
  p.add("ln_f.bias", {width});
  return p;
}

Parameters llama() {
  Parameters p;
  p.add("embed_tokens", {7, 4});
  p.add("layers.10.input_norm.weight", {4});
  p.add("layers.10.attn.q.weight", {8, 4});
  p.add("layers.10.attn.k.weight", {2, 4});
  p.add("layers.10.attn.v.weight", {2, 4});
  p.add("layers.10.attn.o.weight", {4, 8});
  p.add("layers.10.post_norm.weight", {4});
  p.add("layers.10.mlp.gate.weight", {6, 4});
  p.add("layers.10.mlp.up.weight", {6, 4});
  p.add("layers.10.mlp.down.weight", {4, 6});
  p.add("norm.weight", {4});
  p.add("lm_head", {7, 4});
  return p;
}

/// How the files of a model name its parameters, from rows of the middle of names.
struct Row {
  const char *ours, *theirs;
  bool isTransposed = false;
  int part = 0, parts = 1;
};

/// Names as the front ends of the families write them into manifests.
StoredNames namesOf(const Parameters &p, const std::vector<Row> &rows,
                    const std::string &body, const std::string &prefix,
                    const std::string &table) {
  StoredNames names;
  names.prefix = prefix;
  for (const std::string &name : p.names) {
    std::string stem = name, kind = ".weight";
    for (const char *end : {".weight", ".bias"})
      if (size_t at = name.rfind(end);
          at != std::string::npos && at + std::strlen(end) == name.size()) {
        stem = name.substr(0, at);
        kind = end;
      }
    Placement placement;
    for (const Row &row : rows)
      if (size_t at = stem.find(row.ours);
          at != std::string::npos &&
          at + std::strlen(row.ours) == stem.size()) {
        stem.replace(at, std::string::npos, row.theirs);
        placement.isTransposed = row.isTransposed && kind == ".weight";
        placement.part = row.part;
        placement.parts = row.parts;
        break;
      }
    placement.name = (stem == "lm_head" ? "" : body) + stem + kind;
    if (stem == table)
      placement.copy = "lm_head.weight";
    names.parameters.push_back(placement);
  }
  return names;
}

StoredNames gpt2Names(const Parameters &p) {
  StoredNames names = namesOf(p,
                              {{"attn.q", "attn.c_attn", true, 0, 3},
                               {"attn.k", "attn.c_attn", true, 1, 3},
                               {"attn.v", "attn.c_attn", true, 2, 3},
                               {"attn.proj", "attn.c_proj", true},
                               {"mlp.fc", "mlp.c_fc", true},
                               {"mlp.proj", "mlp.c_proj", true}},
                              "transformer.", "transformer.", "wte");
  names.buffers = {".attn.bias", ".attn.masked_bias"};
  return names;
}

StoredNames llamaNames(const Parameters &p) {
  StoredNames names = namesOf(p,
                              {{"input_norm", "input_layernorm"},
                               {"post_norm", "post_attention_layernorm"},
                               {"attn.q", "self_attn.q_proj"},
                               {"attn.k", "self_attn.k_proj"},
                               {"attn.v", "self_attn.v_proj"},
                               {"attn.o", "self_attn.o_proj"},
                               {"mlp.gate", "mlp.gate_proj"},
                               {"mlp.up", "mlp.up_proj"},
                               {"mlp.down", "mlp.down_proj"}},
                              "model.", "", "embed_tokens");
  names.buffers = {".rotary_emb.inv_freq"};
  return names;
}

struct Saved {
  TemporaryDirectory dir;
  std::string path = dir / "model.safetensors";
};

/// Writes `tensors`, each name after `prefix`, and opens the file.
SafetensorsFile save(const Saved &saved, std::vector<TensorView> tensors,
                     const std::string &prefix = "") {
  for (TensorView &tensor : tensors)
    tensor.name = prefix + tensor.name;
  StatusOr<OutputFile> file = OutputFile::create(saved.path);
  EXPECT_TRUE(file.isOk());
  EXPECT_TRUE(writeSafetensors(*file, tensors).isOk());
  EXPECT_TRUE(file->close().isOk());
  StatusOr<SafetensorsFile> result = SafetensorsFile::open(saved.path);
  EXPECT_TRUE(result.isOk()) << result.status().message();
  return std::move(*result);
}

/// A tensor with its memory, if it needed one of its own.
struct OwnedTensor {
  TensorView view;
  std::vector<unsigned char> storage;
};

/// The stored tensors with their data, as savers make them row by row.
StatusOr<std::vector<OwnedTensor>>
exportTensors(const StoredNames &names,
              const std::vector<TensorView> &parameters) {
  DYNA_ASSIGN_OR_RETURN(auto tensors, storedTensors(names, parameters));
  std::vector<OwnedTensor> result;
  for (const StoredTensor &stored : tensors) {
    OwnedTensor tensor;
    tensor.view = stored.view;
    tensor.view.data = parameters[stored.members[0]].data;
    if (!stored.isPlain()) {
      tensor.storage.resize(static_cast<size_t>(
          *tensorBytes(stored.view.type, stored.view.shape)));
      for (size_t member : stored.members)
        placeRows(stored, parameters, member, 0, parameters[member].shape[0],
                  parameters[member].data, tensor.storage.data());
      tensor.view.data = tensor.storage.data();
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

std::vector<TensorView> viewsOf(const std::vector<OwnedTensor> &tensors) {
  std::vector<TensorView> result;
  for (const OwnedTensor &tensor : tensors)
    result.push_back(tensor.view);
  return result;
}

/// A name of GPT-2's body as files of the body alone have it.
std::string bareName(const std::string &name) {
  const std::string prefix = "transformer.";
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}

std::vector<OwnedTensor> mustExport(const StoredNames &names,
                                    const Parameters &p) {
  StatusOr<std::vector<OwnedTensor>> result = exportTensors(names, p.views());
  EXPECT_TRUE(result.isOk()) << result.status().message();
  return std::move(*result);
}

const TensorView *findIn(const std::vector<OwnedTensor> &tensors,
                         std::string_view name) {
  for (const OwnedTensor &tensor : tensors)
    if (tensor.view.name == name)
      return &tensor.view;
  return nullptr;
}

float at(const TensorView &tensor, int64_t index) {
  return static_cast<const float *>(tensor.data)[index];
}

TEST(StoredTensorsTest, exportsGpt2) {
  Parameters p;
  p.add("h.0.attn.v.weight", {2, 3}); // the order of the parts is not given
  p.add("h.0.attn.q.weight", {2, 3});
  p.add("h.0.attn.k.weight", {2, 3});
  p.add("h.0.attn.k.bias", {2});
  p.add("h.0.attn.q.bias", {2});
  p.add("h.0.attn.v.bias", {2});
  p.add("h.0.mlp.proj.weight", {2, 3});
  p.add("wte", {4, 2});
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(p), p);
  ASSERT_EQ(tensors.size(), 4u);
  const TensorView *joined =
      findIn(tensors, "transformer.h.0.attn.c_attn.weight");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->shape, (std::vector<int64_t>{3, 6}));
  // Row 0 holds column 0 of q (1000, 1003), of k (2000, ...), of v (0, ...).
  const float expected[18] = {1000, 1003, 2000, 2003, 0, 3,
                              1001, 1004, 2001, 2004, 1, 4,
                              1002, 1005, 2002, 2005, 2, 5};
  for (int i = 0; i < 18; ++i)
    EXPECT_EQ(at(*joined, i), expected[i]) << i;
  const TensorView *bias = findIn(tensors, "transformer.h.0.attn.c_attn.bias");
  ASSERT_TRUE(bias);
  EXPECT_EQ(bias->shape, (std::vector<int64_t>{6}));
  const float biases[6] = {4000, 4001, 3000, 3001, 5000, 5001};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(at(*bias, i), biases[i]) << i;
  const TensorView *proj = findIn(tensors, "transformer.h.0.mlp.c_proj.weight");
  ASSERT_TRUE(proj);
  EXPECT_EQ(proj->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(at(*proj, 1), 6003);
  const TensorView *wte = findIn(tensors, "transformer.wte.weight");
  ASSERT_TRUE(wte);
  EXPECT_EQ(wte->data, p.values[7].data()) << "copied without need";
}

TEST(StoredTensorsTest, namesGpt2) {
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(gpt2(1)), gpt2(1));
  std::vector<std::string> names;
  for (const OwnedTensor &tensor : tensors) {
    const std::string prefix = "transformer.";
    ASSERT_EQ(tensor.view.name.rfind(prefix, 0), 0u) << tensor.view.name;
    names.push_back(tensor.view.name.substr(prefix.size()));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "h.0.attn.c_attn.bias", "h.0.attn.c_attn.weight",
                "h.0.attn.c_proj.bias", "h.0.attn.c_proj.weight",
                "h.0.ln_1.bias", "h.0.ln_1.weight", "h.0.ln_2.bias",
                "h.0.ln_2.weight", "h.0.mlp.c_fc.bias", "h.0.mlp.c_fc.weight",
                "h.0.mlp.c_proj.bias", "h.0.mlp.c_proj.weight", "ln_f.bias",
                "ln_f.weight", "wpe.weight", "wte.weight"}));
}

// Beside a head without the prefix, the body must have it for transformers 4.
TEST(StoredTensorsTest, namesAnUntiedHead) {
  Saved saved;
  Parameters p = gpt2(1);
  p.add("lm_head", {7, 4});
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(p), p);
  EXPECT_TRUE(findIn(tensors, "lm_head.weight"));
  EXPECT_TRUE(findIn(tensors, "transformer.ln_f.weight"));
  EXPECT_FALSE(findIn(tensors, "ln_f.weight"));
  // Earlier versions wrote the body without it.
  for (bool isBare : {false, true}) {
    std::vector<TensorView> views = viewsOf(tensors);
    for (TensorView &view : views)
      if (isBare)
        view.name = bareName(view.name);
    Parameters loaded = p.cleared();
    Status status =
        importTensors(gpt2Names(p), save(saved, views), loaded.slots());
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(loaded.values, p.values);
  }
}

TEST(StoredTensorsTest, namesLlama) {
  std::vector<OwnedTensor> tensors = mustExport(llamaNames(llama()), llama());
  std::vector<std::string> names;
  for (const OwnedTensor &tensor : tensors) {
    names.push_back(tensor.view.name);
    EXPECT_TRUE(tensor.storage.empty());
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "model.embed_tokens.weight",
                       "model.layers.10.input_layernorm.weight",
                       "model.layers.10.self_attn.q_proj.weight",
                       "model.layers.10.self_attn.k_proj.weight",
                       "model.layers.10.self_attn.v_proj.weight",
                       "model.layers.10.self_attn.o_proj.weight",
                       "model.layers.10.post_attention_layernorm.weight",
                       "model.layers.10.mlp.gate_proj.weight",
                       "model.layers.10.mlp.up_proj.weight",
                       "model.layers.10.mlp.down_proj.weight",
                       "model.norm.weight", "lm_head.weight"}));
}

// A model that says nothing, and one whose manifest says something of one parameter.
TEST(StoredTensorsTest, keepsOwnNames) {
  Parameters p = gpt2(1);
  std::vector<OwnedTensor> tensors = mustExport(StoredNames(), p);
  ASSERT_EQ(tensors.size(), p.names.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].view.name, p.names[i]);
    EXPECT_TRUE(tensors[i].storage.empty());
  }
}

TEST(StoredTensorsTest, readsNamesOfManifests) {
  plan::Manifest manifest;
  manifest.mutable_facts()->set_stored_prefix("body.");
  manifest.mutable_facts()->add_skipped_buffers(".mask");
  manifest.add_parameters()->set_name("a");
  plan::Parameter &b = *manifest.add_parameters();
  b.set_name("b");
  b.mutable_stored()->set_name("joined");
  b.mutable_stored()->set_part(1);
  b.mutable_stored()->set_parts(2);
  b.mutable_stored()->set_transposed(true);
  b.mutable_stored()->set_copy("again");
  const StoredNames names = storedNames(manifest);
  EXPECT_EQ(names.prefix, "body.");
  EXPECT_EQ(names.buffers, std::vector<std::string>{".mask"});
  ASSERT_EQ(names.parameters.size(), 2u);
  EXPECT_EQ(names.parameters[0].name, "a");
  EXPECT_EQ(names.parameters[0].parts, 1);
  EXPECT_FALSE(names.parameters[0].isTransposed);
  EXPECT_EQ(names.parameters[1].name, "joined");
  EXPECT_EQ(names.parameters[1].part, 1);
  EXPECT_EQ(names.parameters[1].parts, 2);
  EXPECT_TRUE(names.parameters[1].isTransposed);
  EXPECT_EQ(names.parameters[1].copy, "again");
}

TEST(StoredTensorsTest, readsBackWhatItWrites) {
  Saved saved;
  for (auto [names, p] : {std::pair(gpt2Names(gpt2()), gpt2()),
                          {gpt2Names(gpt2(1, 40)), gpt2(1, 40)},
                          {llamaNames(llama()), llama()},
                          {StoredNames(), gpt2()}}) {
    std::vector<OwnedTensor> tensors = mustExport(names, p);
    SafetensorsFile file = save(saved, viewsOf(tensors));
    Parameters loaded = p.cleared();
    Status status = importTensors(names, file, loaded.slots());
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(loaded.values, p.values);
  }
}

TEST(StoredTensorsTest, acceptsPrefixBuffersAndRepeatedHead) {
  Saved saved;
  Parameters p = gpt2();
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(p), p);
  std::vector<TensorView> views = viewsOf(tensors);
  for (TensorView &view : views)
    view.name = bareName(view.name);
  std::vector<float> mask(25);
  views.push_back({"h.0.attn.bias", DType::F32, {1, 1, 5, 5}, mask.data()});
  views.push_back({"h.1.attn.masked_bias", DType::F32, {}, mask.data()});
  Parameters loaded = p.cleared();
  {
    SafetensorsFile file = save(saved, views, "transformer.");
    Status status = importTensors(gpt2Names(p), file, loaded.slots());
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(loaded.values, p.values);
  }
  // Names as torch.compile and data parallelism leave them.
  for (const char *wrapper : {"_orig_mod.", "module.", "module._orig_mod.",
                              "_orig_mod.module.transformer."}) {
    Parameters wrapped = p.cleared();
    SafetensorsFile file = save(saved, views, wrapper);
    Status status = importTensors(gpt2Names(p), file, wrapped.slots());
    ASSERT_TRUE(status.isOk()) << wrapper << ": " << status.message();
    EXPECT_EQ(wrapped.values, p.values);
  }
  expectFailure(
      importTensors(gpt2Names(p), save(saved, views, "model."), loaded.slots()),
      "It holds 30 tensors: model.");
  views.push_back({"lm_head.weight", DType::F32, {7, 4}, p.values[0].data()});
  EXPECT_TRUE(
      importTensors(gpt2Names(p), save(saved, views, "module."), loaded.slots())
          .isOk());
  EXPECT_TRUE(
      importTensors(gpt2Names(p), save(saved, views), loaded.slots()).isOk());
  // An untied model in a tied one would change the function.
  std::vector<float> head(28, 5);
  views.back().data = head.data();
  expectFailure(importTensors(gpt2Names(p), save(saved, views), loaded.slots()),
                "holds tensor lm_head.weight of shape [7, 4]");
}

// Two exits, of a norm with two tensors each, behind a table that files must have.
TEST(StoredTensorsTest, leavesOutAddedPartsThatAreWhollyMissing) {
  Parameters p;
  for (const char *name : {"table", "a.weight", "a.bias", "b.weight", "b.bias"})
    p.add(name, {4});
  const std::vector<std::string> parts = {"", "a", "a", "b", "b"};
  // Every set of tensors that a file may have.
  for (int bits = 0; bits < 1 << 5; ++bits) {
    std::vector<TensorView> views;
    for (size_t i = 0; i < 5; ++i)
      if (bits >> i & 1)
        views.push_back(
            {p.names[i], DType::F32, p.shapes[i], p.values[i].data()});
    Saved saved;
    SafetensorsFile file = save(saved, views);
    Parameters loaded = p.cleared();
    std::vector<ParameterSlot> slots = loaded.slots();
    for (size_t i = 0; i < 5; ++i)
      slots[i].addedPart = parts[i];
    std::vector<size_t> taken;
    std::vector<std::string> missing;
    const Status status = importTensors(
        StoredNames(), file, slots,
        [&](size_t slot, int64_t, int64_t, const void *) {
          taken.push_back(slot);
          return Status::ok();
        },
        &missing);
    const int a = bits >> 1 & 3, b = bits >> 3 & 3;
    const bool fits = (bits & 1) && (a == 0 || a == 3) && (b == 0 || b == 3);
    EXPECT_EQ(status.isOk(), fits) << bits;
    if (!fits)
      continue;
    EXPECT_EQ(taken.size(), views.size()) << bits;
    const std::vector<std::string> expected =
        a == b ? std::vector<std::string>()
               : std::vector<std::string>{a == 0 ? "a" : "b"};
    EXPECT_EQ(missing, expected) << bits;
  }
}

TEST(StoredTensorsTest, convertsTypes) {
  Saved saved;
  Parameters p = gpt2();
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(p), p);
  SafetensorsFile file = save(saved, viewsOf(tensors));
  std::vector<std::vector<double>> wide;
  std::vector<ParameterSlot> slots = p.slots();
  for (const std::vector<float> &value : p.values)
    wide.emplace_back(value.size(), -1);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].type = DType::F64;
    slots[i].data = wide[i].data();
  }
  ASSERT_TRUE(importTensors(gpt2Names(p), file, slots).isOk());
  for (size_t i = 0; i < slots.size(); ++i)
    EXPECT_EQ(wide[i],
              std::vector<double>(p.values[i].begin(), p.values[i].end()));
  slots[0].type = DType::I64;
  expectFailure(importTensors(gpt2Names(p), file, slots),
                "wte.weight is of type F32, but this model needs I64");
}

TEST(StoredTensorsTest, refusesAnotherModel) {
  Saved saved;
  Parameters p = gpt2(2);
  std::vector<OwnedTensor> tensors = mustExport(gpt2Names(p), p);
  SafetensorsFile file = save(saved, viewsOf(tensors));
  Parameters deeper = gpt2(3).cleared();
  expectFailure(importTensors(gpt2Names(deeper), file, deeper.slots()),
                "model.safetensors has no tensor h.2.ln_1.weight, which this "
                "model needs with shape [4]; is this a checkpoint of another");
  Parameters shallower = gpt2(1).cleared();
  expectFailure(importTensors(gpt2Names(shallower), file, shallower.slots()),
                "holds tensor transformer.h.1.");
  Parameters wider = gpt2(2, 8).cleared();
  expectFailure(
      importTensors(gpt2Names(wider), file, wider.slots()),
      "tensor transformer.wte.weight has shape [7, 4], but this model "
      "needs [7, 8]; is this a checkpoint of another model?");
  Parameters grouped = p.cleared();
  size_t k = size_t(std::find(grouped.names.begin(), grouped.names.end(),
                              "h.0.attn.k.weight") -
                    grouped.names.begin());
  grouped.shapes[k] = {2, 4};
  expectFailure(importTensors(gpt2Names(grouped), file, grouped.slots()),
                "h.0.attn.c_attn.weight has shape [4, 12], but this model "
                "needs [4, 10]");
  for (Parameters *untouched : {&deeper, &shallower, &wider})
    for (const std::vector<float> &value : untouched->values)
      for (float element : value)
        ASSERT_EQ(element, -1) << "filled although the import failed";
}

TEST(StoredTensorsTest, refusesIncompleteGroups) {
  Parameters p;
  p.add("h.0.attn.q.weight", {2, 2});
  p.add("h.0.attn.k.weight", {2, 2});
  expectFailure(exportTensors(gpt2Names(p), p.views()),
                "h.0.attn.q.weight is stored in h.0.attn.c_attn.weight "
                "together with others");
  p.add("h.0.attn.v.weight", {2, 3});
  expectFailure(exportTensors(gpt2Names(p), p.views()), "do not fit it");
  Parameters flat;
  flat.add("h.0.mlp.fc.weight", {4});
  expectFailure(exportTensors(gpt2Names(flat), flat.views()),
                "must have two dimensions, but is [4]");
  // Names that do not fit each other, as no compiler writes them.
  Parameters two;
  two.add("a", {2, 2});
  two.add("b", {2, 2});
  for (auto [first, second, isTransposed] :
       {std::tuple(1, 1, false), {0, 0, false}, {0, 1, true}}) {
    StoredNames names;
    names.parameters = {{"t", first, 2, false, ""},
                        {"t", second, 2, isTransposed, ""}};
    expectFailure(exportTensors(names, two.views()), "do not fit it");
  }
  StoredNames same;
  same.parameters = {{"t", 0, 1, false, ""}, {"t", 0, 1, false, ""}};
  expectFailure(exportTensors(same, two.views()), "is stored in t together");
}

} // namespace
