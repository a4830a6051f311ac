//===- OneThread.h - Keeping OpenMP out of the team -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_ONETHREAD_H
#define DYNA_RUNTIME_DEVICE_HOST_ONETHREAD_H

namespace dyna {

/// oneDNN opens an OpenMP team as wide as the calling thread's setting. The
/// team of the rank already fills the cores, so for the life of this object the
/// setting of the calling thread is 1; it is put back after.
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
