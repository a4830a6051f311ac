//===- LostPages.h - Mapped pages that cannot be read -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A mapped page that lies behind the end of a shortened file, or that its disk
// cannot give, raises SIGBUS in the thread that reads it. One handler for the
// whole process puts zeros in its place and marks the mapping, so that reading
// goes on and the check behind it fails (docs/decisions/0075). A SIGBUS at any
// other address keeps its effect.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_LOSTPAGES_H
#define DYNA_RUNTIME_BASE_LOSTPAGES_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace dyna {

/// The watch over a read-only mapping. Ends with the object, which must go before
/// the mapping does.
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

  /// Returns whether zeros stand for a page that could not be read.
  bool any() const;

  /// A watched range, as the handler sees it: never freed, but used again.
  struct Range {
    std::atomic<uintptr_t> begin{0}, end{0};
    std::atomic<bool> isLost{false};
    Range *next = nullptr; ///< in the list of all
  };

private:
  Range *range_ = nullptr;
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_LOSTPAGES_H
