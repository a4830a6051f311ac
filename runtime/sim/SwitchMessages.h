//===- SwitchMessages.h - Lists the messages of switch plans ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The simulator needs the messages of a switch, not its boxes. The transfers of one
// bucket from one rank to another are one message. A rank that has transfers in a
// bucket has a *part* in it, even if all of them stay on the rank.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_SWITCHMESSAGES_H
#define DYNA_RUNTIME_SIM_SWITCHMESSAGES_H

#include "runtime/plan/graph/SwitchPlan.h"

#include <vector>

namespace dyna {

/// The buckets of one switch, or of several one after another.
struct SwitchMessages {
  struct Message {
    int from, to;
    int transfers;
    int64_t bytes;
  };
  struct Part {
    int rank;
    bool handsOn =
        false; ///< true if it sends data of another bucket's passing memory
    int64_t passing = 0;            ///< bytes that it receives to pass on
    int64_t sent = 0, received = 0; ///< bytes from and to other ranks
  };
  struct Bucket {
    size_t messages = 0,
           parts = 0; ///< ends of the bucket's entries in the lists
    int after = -1;   ///< bucket whose data this one hands on; -1: none
  };
  std::vector<Bucket> buckets;
  std::vector<Message> messages; ///< one for each bucket, sender and receiver
  std::vector<Part> parts;

  size_t firstMessage(int bucket) const {
    return bucket == 0 ? 0 : buckets[bucket - 1].messages;
  }
  size_t firstPart(int bucket) const {
    return bucket == 0 ? 0 : buckets[bucket - 1].parts;
  }

  /// Appends the buckets of a plan. O(transfers + buckets + ranks).
  void add(const std::vector<SwitchTensor> &tensors, const SwitchPlan &plan,
           int ranks);
  static SwitchMessages of(const std::vector<SwitchTensor> &tensors,
                           const SwitchPlan &plan, int ranks);
};

/// Joins the transfers of buckets to messages, bucket by bucket.
class MessageJoiner {
public:
  /// Appends to `result`, which must outlive this object.
  MessageJoiner(int ranks, SwitchMessages &result);

  /// Begins a bucket.
  void begin();
  /// Adds a transfer. O(1).
  void add(int from, int to, int64_t bytes, SwitchPlace source,
           SwitchPlace target);
  /// Ends the bucket. `after` is the number, in the result, of the bucket whose data it
  /// hands on; -1: none. O(messages).
  void end(int after);

private:
  SwitchMessages::Part &partOf(int rank);

  SwitchMessages &result_;
  size_t firstPart_ = 0;
  int64_t firstMessage_ = 0;
  std::vector<int> parts_; ///< of the bucket, by rank; -1: none
  /// Last message from each sender to each receiver, once the sender has sent
  /// anything. Messages before the first one of a bucket belong to earlier
  /// buckets.
  std::vector<std::vector<int64_t>> message_;
};

/// Decides how transfers become messages.
enum class Fusing {
  Buckets, ///< all transfers of a bucket from one rank to another are one message
  None ///< each transfer is a message, with a latency of its own on its ports
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_SWITCHMESSAGES_H
