//===- LateStreams.h - Streams that run late --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work of streams, run by the host thread that asks for it, in an order drawn
// from a seed: never before what it must wait for, else as late or as early as a
// device might. What depends on the seed has a wait too few.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_LATESTREAMS_H
#define DYNA_TEST_STANDINS_LATESTREAMS_H

#include "test/standins/Random.h"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace dyna::standins {

class LateStream;

/// One recording of an event. An event that is recorded again gets another mark;
/// who waits for the first one still does.
struct Mark {
  bool isDone = false;
  int64_t time = 0; ///< how much work had run before
  LateStream *stream = nullptr;
};

struct Work {
  std::function<void()> run; ///< null: record or wait for `mark`
  std::shared_ptr<Mark> mark;
  bool isWait = false;
  bool hangs = false; ///< never ends, nor does what comes after it
};

class LateStream {
public:
  bool isIdle() const { return work.empty(); }

  std::deque<Work> work;
  bool isDestroyed = false; ///< goes when its work is done
};

class LateStreams {
public:
  /// Seed 0 runs nothing before somebody asks whether it is done, and then only
  /// what that needs, at the second question.
  explicit LateStreams(uint64_t seed) : seed_(seed), random_(seed) {}

  LateStream *create();
  bool has(const LateStream *stream) const;
  /// The stream's work is done nevertheless, some time.
  void destroy(LateStream *stream);

  /// Gives work, and may run some.
  void give(LateStream &stream, Work work);
  std::shared_ptr<Mark> record(LateStream &stream);

  /// Someone asks for a stream or mark: runs nothing, something, or all that it
  /// waits for.
  void askFor(LateStream &stream, const Mark *mark);
  /// Whether what was given to the stream so far, or before a mark of it, never
  /// ends.
  bool neverEnds(const LateStream &stream, const Mark *end = nullptr) const;
  /// Work that has not run, on all streams.
  int64_t waiting() const;
  /// Runs everything; false when some of it hangs.
  bool finish();
  /// Forgets all work.
  void drop();

  Random &random() { return random_; }

private:
  bool isStopped(const LateStream &stream) const;
  void runFirst(LateStream &stream);
  bool advance(LateStream &stream);
  void runSome(uint64_t count);
  void sweep();

  uint64_t seed_;
  Random random_;
  std::vector<std::unique_ptr<LateStream>> streams_;
  int64_t time_ = 0;
  uint64_t asked_ = 0;
};

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_LATESTREAMS_H
