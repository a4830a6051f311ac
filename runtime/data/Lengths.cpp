//===- Lengths.cpp - Makes synthetic data of real lengths -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/data/Lengths.h"

#include "runtime/abi/Random.h"
#include "runtime/base/file/Files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

using namespace dyna;

namespace {

constexpr LengthQuantile multitaskQuantiles[] = {
    {0, 9},        {200, 16},     {400, 20},    {600, 24},     {800, 26},
    {1000, 30},    {1200, 34},    {1400, 39},   {1600, 43},    {1800, 46},
    {2000, 49},    {2200, 52},    {2400, 55},   {2600, 57},    {2800, 61},
    {3000, 64},    {3200, 67},    {3400, 71},   {3600, 74},    {3800, 77},
    {4000, 80},    {4200, 83},    {4400, 87},   {4600, 92},    {4800, 96},
    {5000, 102},   {5200, 108},   {5400, 115},  {5600, 121},   {5800, 129},
    {6000, 137},   {6200, 145},   {6400, 154},  {6600, 162},   {6800, 171},
    {7000, 182},   {7200, 194},   {7400, 207},  {7600, 219},   {7800, 234},
    {8000, 250},   {8200, 269},   {8400, 290},  {8600, 319},   {8800, 356},
    {9000, 403},   {9200, 470},   {9400, 570},  {9600, 719},   {9800, 1030},
    {9850, 1242},  {9900, 1836},  {9920, 2372}, {9940, 3126},  {9960, 4357},
    {9970, 5532},  {9980, 7682},  {9985, 9397}, {9990, 12404}, {9995, 17092},
    {9998, 23279}, {10000, 38519}};
constexpr LengthQuantile codeQuantiles[] = {
    {0, 1},        {200, 32},     {400, 50},     {600, 67},     {800, 83},
    {1000, 100},   {1200, 119},   {1400, 139},   {1600, 160},   {1800, 182},
    {2000, 203},   {2200, 226},   {2400, 251},   {2600, 276},   {2800, 302},
    {3000, 329},   {3200, 359},   {3400, 389},   {3600, 422},   {3800, 458},
    {4000, 497},   {4200, 538},   {4400, 585},   {4600, 631},   {4800, 682},
    {5000, 740},   {5200, 799},   {5400, 865},   {5600, 941},   {5800, 1023},
    {6000, 1114},  {6200, 1214},  {6400, 1327},  {6600, 1453},  {6800, 1591},
    {7000, 1752},  {7200, 1925},  {7400, 2125},  {7600, 2360},  {7800, 2652},
    {8000, 2960},  {8200, 3350},  {8400, 3847},  {8600, 4462},  {8800, 5225},
    {9000, 6231},  {9200, 7679},  {9400, 9832},  {9600, 13668}, {9800, 22814},
    {9850, 28350}, {9900, 32768}, {10000, 32768}};

} // namespace

const LengthTable dyna::multitaskLengths = {
    "multitask", multitaskQuantiles,
    static_cast<int>(std::size(multitaskQuantiles))};
const LengthTable dyna::codeLengths = {
    "code", codeQuantiles, static_cast<int>(std::size(codeQuantiles))};

int64_t dyna::lengthAt(const LengthTable &table, double fraction) {
  double place = 10000 * std::min(1.0, std::max(0.0, fraction));
  const LengthQuantile *end = table.quantiles + table.count;
  const LengthQuantile *above = std::find_if(
      table.quantiles + 1, end - 1,
      [&](const LengthQuantile &quantile) { return quantile.place >= place; });
  const LengthQuantile &low = above[-1], &high = *above;
  double t = (place - low.place) / (high.place - low.place);
  double logarithm = (1 - t) * std::log(double(low.length)) +
                     t * std::log(double(high.length));
  return std::llround(std::exp(logarithm));
}

namespace {

constexpr int64_t defaultDocuments = 100000;
constexpr int64_t lengthLimit = INT64_C(1) << 24;

class SyntheticDataset : public Dataset {
public:
  std::string name;
  int64_t documents = defaultDocuments;
  int64_t vocabulary = 0;
  uint64_t seed = 0;
  const LengthTable *table = nullptr;
  std::vector<int64_t> lengths; ///< used in turn if there is no table

  int64_t size() const override { return documents; }

  DocumentShape shape(int64_t index) const override {
    if (!table)
      return {lengths[static_cast<size_t>(index) % lengths.size()] + 1, 1};
    double u, v;
    dyna_parameter_uniforms(keyOf(index), 0, &u, &v);
    return {lengthAt(*table, v) + 1, 1};
  }

  Status readTokens(int64_t index, int64_t begin, int64_t end,
                    std::vector<int32_t> &tokens) const override {
    uint64_t tokenKey = dyna_mix64(keyOf(index));
    for (int64_t i = begin; i < end; ++i)
      tokens.push_back(
          static_cast<int32_t>(dyna_mix64(tokenKey ^ static_cast<uint64_t>(i)) %
                               static_cast<uint64_t>(vocabulary)));
    return Status::ok();
  }

  std::string describe(int64_t index) const override {
    return name + ", document " + std::to_string(index);
  }
  uint64_t fingerprint() const override {
    uint64_t hash = dyna_hash_name(table ? table->name : "lengths");
    for (uint64_t value : {static_cast<uint64_t>(documents),
                           static_cast<uint64_t>(vocabulary), seed})
      hash = dyna_mix64(hash ^ value);
    for (int64_t length : lengths)
      hash = dyna_mix64(hash ^ static_cast<uint64_t>(length));
    return hash;
  }
  int64_t heldBytes() const override {
    return static_cast<int64_t>(lengths.size() * sizeof(lengths[0]));
  }

private:
  uint64_t keyOf(int64_t index) const {
    return dyna_mix64(dyna_mix64(seed) ^ static_cast<uint64_t>(index));
  }
};

/// Parses a whole number in [1, limit]; else returns 0.
int64_t parseCount(std::string_view text, int64_t limit) {
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  bool isWhole = error == std::errc() && end == text.data() + text.size();
  return isWhole && value >= 1 && value <= limit ? value : 0;
}

Status readLengths(const std::string &path, std::vector<int64_t> &lengths) {
  DYNA_ASSIGN_OR_RETURN(std::string text, readFile(path));
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (line.empty())
      continue;
    size_t comma = line.find(',');
    int64_t length = parseCount(line.substr(0, comma), lengthLimit);
    if (comma != line.npos) {
      int64_t second = parseCount(line.substr(comma + 1), lengthLimit);
      length = length && second ? length + second : 0;
    }
    if (length == 0)
      return Status::invalidArgument(
          path + ":" + std::to_string(number) +
          ": expected a length, or two with a comma between, from 1 to " +
          std::to_string(lengthLimit) + ", but got \"" +
          std::string(line.substr(0, 40)) + "\"");
    lengths.push_back(length);
  }
  if (lengths.empty())
    return Status::invalidArgument(path + " holds no length");
  return Status::ok();
}

} // namespace

StatusOr<DatasetPointer> dyna::openSynthetic(const std::string &name,
                                             const DataOptions &options) {
  constexpr std::string_view documentsKey = ":documents=";
  auto result = std::make_shared<SyntheticDataset>();
  result->name = name;
  result->vocabulary = options.vocabulary;
  result->seed = options.seed;
  std::string kind = name.substr(name.find(':') + 1);
  bool isValid = true;
  if (size_t at = kind.rfind(documentsKey); at != std::string::npos) {
    result->documents =
        parseCount(std::string_view(kind).substr(at + documentsKey.size()),
                   INT64_C(1) << 40);
    isValid = result->documents > 0;
    kind.resize(at);
  }
  if (kind == "multitask") {
    result->table = &multitaskLengths;
  } else if (kind == "code") {
    result->table = &codeLengths;
  } else if (kind.compare(0, 6, "equal=") == 0) {
    result->lengths = {
        parseCount(std::string_view(kind).substr(6), lengthLimit)};
    isValid = isValid && result->lengths[0] > 0;
  } else if (kind.compare(0, 8, "lengths=") == 0) {
    DYNA_RETURN_IF_ERROR(readLengths(kind.substr(8), result->lengths));
  } else {
    isValid = false;
  }
  if (!isValid)
    return Status::invalidArgument(
        "unknown synthetic data " + name +
        "; expected synthetic:multitask, synthetic:code, "
        "synthetic:equal=LENGTH "
        "or synthetic:lengths=FILE, each with an optional :documents=COUNT");
  return DatasetPointer(result);
}
