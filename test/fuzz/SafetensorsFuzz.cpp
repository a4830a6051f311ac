//===- SafetensorsFuzz.cpp - Safetensors files ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "runtime/checkpoint/StoredTensors.h"

using namespace dyna;
using namespace dyna::test;

namespace {

std::string makeFile(std::string header, const std::string &data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  putValue<uint64_t>(bytes, header.size());
  return bytes + header + data;
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  return {makeFile("{}", ""),
          makeFile("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                   "\"data_offsets\":[0,16]}}",
                   std::string(16, 'x')),
          makeFile("{\"__metadata__\":{\"format\":\"pt\"},"
                   "\"h.0.attn.c_attn.weight\":{\"dtype\":\"F16\","
                   "\"shape\":[2,6],\"data_offsets\":[8,32]},"
                   "\"wte.weight\":{\"dtype\":\"F64\",\"shape\":[1,1],"
                   "\"data_offsets\":[0,8]},\"e\":{\"dtype\":\"U8\","
                   "\"shape\":[0],\"data_offsets\":[32,32]}}",
                   std::string(32, 'x')),
          makeFile("{\"wte.weight\":{\"dtype\":\"BF16\",\"shape\":[1,1],"
                   "\"data_offsets\":[0,2]},\"h.0.attn.c_attn.weight\":{"
                   "\"dtype\":\"F32\",\"shape\":[2,6],"
                   "\"data_offsets\":[2,50]}}",
                   std::string(50, 'x'))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  StatusOr<SafetensorsFile> file = SafetensorsFile::parse(bytes, "input");
  if (!file.isOk())
    return 0;
  ++acceptedInputs;
  size_t end = 0;
  volatile unsigned char sink = 0;
  for (const TensorView &tensor : file->tensors()) {
    auto *at = static_cast<const unsigned char *>(tensor.data);
    std::optional<int64_t> count = tensorBytes(tensor.type, tensor.shape);
    require(count && *count >= 0, "sizes are known");
    require(at >= data && at + *count <= data + size,
            "tensors lie in the file");
    for (int64_t i = 0; i < *count; ++i)
      sink = sink ^ at[i];
    end = static_cast<size_t>(at + *count - data);
    require(file->find(tensor.name) == &tensor, "tensors are found by name");
  }
  require(file->tensors().empty() || end == size, "no bytes are left over");
  std::vector<float> wte(1), q(4), k(4), v(4);
  std::vector<ParameterSlot> slots = {
      {"wte", {1, 1}, DType::F32, wte.data()},
      {"h.0.attn.q.weight", {2, 2}, DType::F32, q.data()},
      {"h.0.attn.k.weight", {2, 2}, DType::F32, k.data()},
      {"h.0.attn.v.weight", {2, 2}, DType::F32, v.data()}};
  StoredNames names;
  names.prefix = "transformer.";
  names.buffers = {".attn.bias"};
  names.parameters = {{"transformer.wte.weight", 0, 1, false, "lm_head.weight"},
                      {"transformer.h.0.attn.c_attn.weight", 0, 3, true, ""},
                      {"transformer.h.0.attn.c_attn.weight", 1, 3, true, ""},
                      {"transformer.h.0.attn.c_attn.weight", 2, 3, true, ""}};
  (void)importTensors(names, *file, slots).isOk();
  return 0;
}
