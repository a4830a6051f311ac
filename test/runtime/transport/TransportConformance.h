//===- TransportConformance.h - What holds for every transport --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A backend's test binary is the *Conformance.cpp files of this folder and a
// file that defines `transportBackends`; see threads/. Every test runs the same
// body on all ranks of the backend; ranks may be threads of one process or one
// process each, so a body shares nothing with other ranks but its transport.
//
// Inputs are small integers: their sums are exact in every type, and results
// are compared with ==.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRANSPORT_TRANSPORTCONFORMANCE_H
#define DYNA_TEST_RUNTIME_TRANSPORT_TRANSPORTCONFORMANCE_H

#include "runtime/transport/Transport.h"
#include "test/Patience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace dyna {

/// Memory that a transport can reach, and the stream of a rank. This one is the
/// host's; a device's backend overrides it.
class RankMemory {
public:
  virtual ~RankMemory() = default;
  virtual std::shared_ptr<void> allocate(size_t bytes) {
    return std::shared_ptr<void>(::operator new(bytes + 1),
                                 [](void *p) { ::operator delete(p); });
  }
  virtual void write(void *target, const void *source, size_t bytes) {
    memcpy(target, source, bytes);
  }
  virtual void read(void *target, const void *source, size_t bytes) {
    memcpy(target, source, bytes);
  }
  virtual void *stream() { return nullptr; }
};

using RankBody = std::function<Status(Transport &, RankMemory &)>;

struct TransportBackend {
  std::string name;
  int ranks;
  /// Runs the body on all ranks (a process: its own rank of them) with fresh
  /// transports; returns the first error, of this process at least.
  std::function<Status(const RankBody &)> run;
  /// What the backend cannot do, and why:
  ///   tags   receive messages with different tags in another order than sent
  ///   order  take sums in the order of the ranks
  ///   sizes  notice that two ranks disagree on a size
  ///   counts notice that two ranks disagree on how many exchanges are fused
  std::map<std::string, std::string> lacks = {};
};

inline void PrintTo(const TransportBackend &backend, std::ostream *out) {
  *out << backend.name;
}

/// What to run the suites on, defined by the backend's test.
std::vector<TransportBackend> transportBackends();

/// `n` elements in memory of a rank.
template <typename T> class Array {
public:
  Array(RankMemory &memory, const std::vector<T> &data)
      : memory_(&memory), size_(data.size()),
        data_(memory.allocate(data.size() * sizeof(T))) {
    if (!data.empty())
      memory.write(data_.get(), data.data(), data.size() * sizeof(T));
  }
  Array(RankMemory &memory, int64_t n, T value)
      : Array(memory, std::vector<T>(static_cast<size_t>(n), value)) {}

  T *data() const { return static_cast<T *>(data_.get()); }
  int64_t size() const { return static_cast<int64_t>(size_); }
  int64_t bytes() const { return size() * static_cast<int64_t>(sizeof(T)); }
  std::vector<T> host() const {
    std::vector<T> result(size_);
    if (size_ > 0)
      memory_->read(result.data(), data_.get(), size_ * sizeof(T));
    return result;
  }

private:
  RankMemory *memory_;
  size_t size_;
  std::shared_ptr<void> data_;
};

class TransportFixture : public testing::TestWithParam<TransportBackend> {
protected:
  /// Runs the body on all ranks and expects no error.
  void run(const RankBody &body) {
    Status status = GetParam().run(body);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
  int ranks() const { return GetParam().ranks; }
};

/// Skips a test that needs two ranks, or more.
#define DYNA_NEEDS_RANKS(n)                                                    \
  if (ranks() < (n))                                                           \
  GTEST_SKIP() << "needs " << (n) << " ranks, there are " << ranks()
#define DYNA_NEEDS(feature)                                                    \
  if (GetParam().lacks.count(feature))                                         \
  GTEST_SKIP() << GetParam().lacks.at(feature)

#define DYNA_INSTANTIATE_TRANSPORTS(suite)                                     \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Backends, suite, testing::ValuesIn(transportBackends()),                 \
      [](const testing::TestParamInfo<TransportBackend> &info) {               \
        return info.param.name;                                                \
      })

inline Transport::Deadline in(double seconds) {
  return Transport::Clock::now() +
         std::chrono::duration_cast<Transport::Clock::duration>(
             std::chrono::duration<double>(seconds));
}
inline Transport::Deadline soon() { return patienceEnds(); }

inline Status waitAll(Transport &transport, RankMemory &memory,
                      const std::vector<Ticket> &tickets) {
  for (Ticket ticket : tickets)
    DYNA_RETURN_IF_ERROR(transport.wait(ticket, memory.stream(), soon()));
  return Status::ok();
}

/// Appends the ticket of a start, or returns its failure.
#define DYNA_START(tickets, expression)                                        \
  do {                                                                         \
    ::dyna::StatusOr<::dyna::Ticket> dynaTicket = (expression);                \
    DYNA_RETURN_IF_ERROR(dynaTicket.status());                                 \
    (tickets).push_back(*dynaTicket);                                          \
  } while (false)

/// Starts a collective and waits for it.
inline Status exchange(Group &group, const Collective &collective,
                       RankMemory &memory) {
  StatusOr<Ticket> ticket = group.start(collective, memory.stream());
  DYNA_RETURN_IF_ERROR(ticket.status());
  return group.transport().wait(*ticket, memory.stream(), soon());
}

/// All ranks as one group.
inline StatusOr<std::unique_ptr<Group>> everybody(Transport &transport) {
  std::vector<int> ranks;
  for (int rank = 0; rank < transport.ranks(); ++rank)
    ranks.push_back(rank);
  return transport.createGroup(ranks, soon());
}

/// A small integer that depends on all of its arguments.
inline int valueAt(int rank, int64_t index, int salt = 0) {
  uint64_t hash = uint64_t(index) * 0x9e3779b97f4a7c15u +
                  uint64_t(rank + 1) * 0xbf58476d1ce4e5b9u +
                  uint64_t(salt) * 0x94d049bb133111ebu;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  return static_cast<int>((hash >> 40) % 15) - 7;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_TRANSPORT_TRANSPORTCONFORMANCE_H
