//===- MpiExchange.h - Runs one rank's side of a collective -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A collective becomes messages between all pairs of ranks, in one round. An
// all_reduce has a second round, which distributes the sums. Rows that do not
// lie end to end are packed first.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPIEXCHANGE_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPIEXCHANGE_H

#include "runtime/transport/mpi/MpiWire.h"

namespace dyna {

/// Below this size of the whole tensor, an all_reduce is one round: every rank
/// gets everything and sums it, at half the latency.
constexpr int64_t kOneRoundBytes = 4096;

class MpiExchange {
public:
  /// `tags` are the tags of the first round, by index in the group; the second
  /// round has the next ones.
  MpiExchange(MpiWire &wire, const Collective &collective,
              const std::vector<int> &ranks, int index, std::vector<int> tags)
      : wire_(wire), collective_(collective), ranks_(ranks), index_(index),
        tags_(std::move(tags)) {}
  ~MpiExchange() { freeScratch(); }

  Status start();
  /// Returns true when done, and ever after.
  StatusOr<bool> advance();
  void withdraw();

private:
  int size() const { return static_cast<int>(ranks_.size()); }
  Status startReduction();
  Status startCopies(const Collective &copies);
  Status send(int to, const void *data, int64_t bytes);
  void receive(int from, void *data, int64_t bytes);
  char *scratch(int64_t bytes);
  void freeScratch();
  const char *packedRows(const void *data, Rows rows);
  StatusOr<bool> roundIsDone();
  Status finishRound();

  /// Rows that are received into scratch and copied on.
  struct Unpack {
    const char *from;
    Rows rows;
  };

  MpiWire &wire_;
  const Collective collective_;
  const std::vector<int> ranks_;
  const int index_;
  std::vector<int> tags_;

  std::vector<MpiSend> sends_;
  std::deque<MpiReceive> receives_;
  bool isReducing_ = false, isSecondRound_ = false, isDone_ = false;
  std::vector<Scratch::Block> scratch_;
  std::vector<const void *> contributions_; ///< by place in the group
  Rows result_;                             ///< place of their sum in `out`
  std::vector<Unpack> unpacks_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPIEXCHANGE_H
