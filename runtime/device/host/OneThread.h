//===- OneThread.h - Keeps OpenMP out of the team ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_ONETHREAD_H
#define DYNA_RUNTIME_DEVICE_HOST_ONETHREAD_H

namespace dyna {

/// Limits oneDNN to one thread. It opens an OpenMP team as wide as the setting
/// of the calling thread, but the rank's team already fills the cores. So the
/// setting is 1 while this object lives, and is restored afterwards.
class OneThread {
public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread &) = delete;
  OneThread &operator=(const OneThread &) = delete;

private:
  int before_ = 1;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_ONETHREAD_H
