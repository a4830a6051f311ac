//===- MemoryStore.h - A store of one process -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_STORE_MEMORYSTORE_H
#define DYNA_TEST_RUNTIME_STORE_MEMORYSTORE_H

#include "runtime/store/Store.h"

#include <map>
#include <mutex>

namespace dyna {

class MemoryStore final : public Store {
public:
  std::string describe() const override { return "memory"; }
  Status put(const std::string &key, std::string_view value,
             std::chrono::seconds kept) override;
  StatusOr<bool> putNew(const std::string &key, std::string_view value,
                        std::chrono::seconds kept) override;
  StatusOr<std::optional<std::string>> find(const std::string &key) override;
  Status remove(const std::string &key) override;

  /// Values that are there.
  size_t size() const;

private:
  struct Value {
    std::string bytes;
    Clock::time_point end;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Value> values_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_STORE_MEMORYSTORE_H
