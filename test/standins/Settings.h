//===- Settings.h - Environment of a test's stand-ins -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_SETTINGS_H
#define DYNA_TEST_STANDINS_SETTINGS_H

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dyna::standins {

/// Environment variables for as long as the object lives; then they are as they
/// were.
class Settings {
public:
  Settings() = default;
  Settings(const Settings &) = delete;
  Settings &operator=(const Settings &) = delete;
  ~Settings() {
    for (size_t i = before_.size(); i-- > 0;)
      if (before_[i].second)
        setenv(before_[i].first.c_str(), before_[i].second->c_str(), 1);
      else
        unsetenv(before_[i].first.c_str());
  }

  void set(const std::string &name, const std::string &value) {
    const char *old = std::getenv(name.c_str());
    before_.emplace_back(name,
                         old ? std::optional<std::string>(old) : std::nullopt);
    setenv(name.c_str(), value.c_str(), 1);
  }
  void set(const std::string &name, int64_t value) {
    set(name, std::to_string(value));
  }

private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_SETTINGS_H
