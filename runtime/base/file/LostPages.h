//===- LostPages.h - Handles mapped pages that cannot be read ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A mapped page may be unreadable: the file was shortened, or its disk fails.
// The thread that reads it then gets SIGBUS. One handler for the whole process
// replaces the page by zeros and marks the mapping. So reading goes on, and the
// check after it fails (docs/decisions/0075). A SIGBUS at any other address
// keeps its effect.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_LOSTPAGES_H
#define DYNA_RUNTIME_BASE_FILE_LOSTPAGES_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace dyna {

/// Watches a read-only mapping. Destroy it before the mapping.
class LostPages {
public:
  LostPages() = default;
  /// Watches `size` bytes, at least one, from `data` on.
  LostPages(const void *data, size_t size);
  LostPages(LostPages &&other) noexcept
      : range_(std::exchange(other.range_, nullptr)) {}
  LostPages &operator=(LostPages &&other) noexcept {
    std::swap(range_, other.range_);
    return *this;
  }
  ~LostPages();

  /// Returns true if zeros replace a page that could not be read.
  bool any() const;

  /// A watched range in the form for the handler: never freed, but used again.
  struct Range {
    std::atomic<uintptr_t> begin{0}, end{0};
    std::atomic<bool> isLost{false};
    Range *next = nullptr; ///< in the list of all
  };

private:
  Range *range_ = nullptr;
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_LOSTPAGES_H
