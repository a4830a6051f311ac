//===- RecentlyUsed.h - Keeps the recently used values ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_RECENTLYUSED_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_RECENTLYUSED_H

#include <cstdint>
#include <map>
#include <utility>

namespace dyna::cuda {

/// A map of at most `most` entries (1 or more). To find or add an entry counts
/// as a use of it.
template <typename Key, typename Value> class RecentlyUsed {
public:
  explicit RecentlyUsed(int64_t most) : most_(most) {}

  /// Returns null if there is none.
  Value *find(const Key &key) {
    auto found = entries_.find(key);
    if (found == entries_.end())
      return nullptr;
    found->second.used = ++uses_;
    return &found->second.value;
  }

  bool isFull() const { return static_cast<int64_t>(entries_.size()) >= most_; }

  /// Adds a value for a new key. If the map is full, destroys the value that
  /// was unused for longest.
  Value &add(const Key &key, Value value) {
    if (isFull())
      entries_.erase(oldest());
    auto added = entries_.emplace(key, Entry{std::move(value), ++uses_});
    return added.first->second.value;
  }

  /// Calls `body` for all entries, in the order of keys.
  template <typename Body> void forEach(Body body) {
    for (auto &[key, entry] : entries_)
      body(key, entry.value);
  }
  template <typename Body> void forEach(Body body) const {
    for (const auto &[key, entry] : entries_)
      body(key, entry.value);
  }

private:
  struct Entry {
    Value value;
    uint64_t used;
  };

  typename std::map<Key, Entry>::iterator oldest() {
    auto oldest = entries_.begin();
    for (auto i = entries_.begin(); i != entries_.end(); ++i)
      if (i->second.used < oldest->second.used)
        oldest = i;
    return oldest;
  }

  int64_t most_;
  uint64_t uses_ = 0;
  std::map<Key, Entry> entries_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_RECENTLYUSED_H
