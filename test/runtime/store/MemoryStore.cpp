//===- MemoryStore.cpp - A store of one process ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/store/MemoryStore.h"

namespace dyna {

Status MemoryStore::put(const std::string &key, std::string_view value,
                        std::chrono::seconds kept) {
  std::lock_guard<std::mutex> lock(mutex_);
  values_[key] = {std::string(value), Clock::now() + kept};
  return Status::ok();
}

StatusOr<bool> MemoryStore::putNew(const std::string &key,
                                   std::string_view value,
                                   std::chrono::seconds kept) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = values_.find(key);
  if (found != values_.end() && found->second.end > Clock::now())
    return false;
  values_[key] = {std::string(value), Clock::now() + kept};
  return true;
}

StatusOr<std::optional<std::string>> MemoryStore::find(const std::string &key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = values_.find(key);
  if (found == values_.end())
    return std::optional<std::string>();
  if (found->second.end <= Clock::now()) {
    values_.erase(found);
    return std::optional<std::string>();
  }
  if (found->second.bytes.size() > mostStoredBytes)
    return tooLargeFor(*this, key, found->second.bytes.size());
  return std::optional<std::string>(found->second.bytes);
}

Status MemoryStore::remove(const std::string &key) {
  std::lock_guard<std::mutex> lock(mutex_);
  values_.erase(key);
  return Status::ok();
}

size_t MemoryStore::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return values_.size();
}

} // namespace dyna
