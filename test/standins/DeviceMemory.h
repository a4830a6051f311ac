//===- DeviceMemory.h - Memory that the host cannot read --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_DEVICEMEMORY_H
#define DYNA_TEST_STANDINS_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace dyna::standins {

/// The same pages are mapped twice: at device addresses, which fault when
/// touched unless kernels run, and at addresses of the stand-in's own for copies.
/// What is allocated is full of NaN.
class DeviceMemory {
public:
  explicit DeviceMemory(size_t bytes);
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory();

  size_t total() const { return total_; }
  size_t available() const { return total_ - taken_; }
  /// A device address, aligned to 256 bytes; 0 when no place is left.
  uint64_t allocate(size_t bytes);
  /// False: nothing was allocated at this address.
  bool release(uint64_t address);

  /// Whether any byte of the range has a device address.
  bool overlaps(const void *data, size_t bytes) const;
  /// Where the stand-in itself finds a range; null unless it lies in one
  /// allocation.
  void *view(uint64_t address, size_t bytes) const;

  /// Bytes of an allocation behind whose end somebody wrote; -1: nobody did.
  int64_t overwritten() const;

  /// Between the two, code of the host may use device addresses.
  void open();
  void close();

private:
  /// What lies behind an allocation and belongs to nobody.
  std::pair<unsigned char *, size_t> gapBehind(uint64_t address,
                                               size_t bytes) const;

  char *device_ = nullptr;
  char *mirror_ = nullptr;
  size_t total_;
  size_t taken_ = 0;
  std::map<uint64_t, size_t> allocations_; ///< bytes at each address
};

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_DEVICEMEMORY_H
