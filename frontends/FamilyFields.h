//===- FamilyFields.h - Builds the tables of families -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions from which the files of families build their fields of
// configurations.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_FAMILYFIELDS_H
#define DYNA_FRONTENDS_FAMILYFIELDS_H

#include "frontends/Family.h"
#include "frontends/ModelBuilder.h"

namespace mlir::dyna::fields {

//===----------------------------------------------------------------------===//
// Values of layers
//===----------------------------------------------------------------------===//

template <typename T> DerivedValues derived(const Said<T> &said) {
  DerivedValues result;
  for (const auto &[value, op] : said) {
    if constexpr (std::is_same_v<T, RopeScaling>)
      result.push_back({llvm::json::Value(value.text()), op});
    else
      result.push_back({llvm::json::Value(value), op});
  }
  return result;
}

#define DYNA_DERIVED(member)                                                   \
  [](const FamilyMember &model) { return derived(model.layers.member); }

/// Returns a value that all layers of a family have; its ops refuse other
/// values.
template <bool value> DerivedValues always(const FamilyMember &model) {
  return {{llvm::json::Value(value), model.op}};
}

inline DerivedValues family(const FamilyMember &model) {
  return {{llvm::json::Value(model.facts.getFamily().str()), model.op}};
}

//===----------------------------------------------------------------------===//
// Defaults of missing fields
//===----------------------------------------------------------------------===//

template <typename T, T value>
llvm::json::Value constant(const FamilyMember &) {
  return llvm::json::Value(value);
}

inline llvm::json::Value nothing(const FamilyMember &) { return nullptr; }

inline llvm::json::Value first(const Said<int64_t> &said, int64_t factor = 1,
                               int64_t divisor = 1) {
  return said.empty()
             ? llvm::json::Value(nullptr)
             : llvm::json::Value(said.begin()->first * factor / divisor);
}

/// Heads are together as wide as the layers.
inline llvm::json::Value evenHeads(const FamilyMember &model) {
  const Said<int64_t> &heads = model.layers.heads;
  return heads.empty() ? llvm::json::Value(nullptr)
                       : first(model.layers.width, 1, heads.begin()->first);
}

//===----------------------------------------------------------------------===//
// How a field is read
//===----------------------------------------------------------------------===//

inline llvm::json::Value readPlain(const llvm::json::Object &config,
                                   StringRef name) {
  const llvm::json::Value *value = config.get(name);
  return value ? *value : llvm::json::Value(nullptr);
}

/// Reads an activation function. Returns the first of its names.
llvm::json::Value readActivation(const llvm::json::Object &config,
                                 StringRef name);

//===----------------------------------------------------------------------===//
// Configurations from layers
//===----------------------------------------------------------------------===//

/// Sets a field to what layers say; of several values to one, for then they cannot
/// all be right.
template <typename T> void take(T &field, const Said<T> &said) {
  if (!said.empty())
    field = said.begin()->first;
}
void take(Activation &field, const Said<std::string> &said);

/// Layers that drop here and there were to drop everywhere.
inline void takeLargest(double &field, const Said<double> &said) {
  if (!said.empty())
    field = said.rbegin()->first;
}

} // namespace mlir::dyna::fields

#endif // DYNA_FRONTENDS_FAMILYFIELDS_H
