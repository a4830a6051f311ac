//===- LateStreams.cpp - Streams that run late ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/LateStreams.h"

#include <algorithm>

using namespace dyna::standins;

LateStream *LateStreams::create() {
  streams_.push_back(std::make_unique<LateStream>());
  return streams_.back().get();
}

bool LateStreams::has(const LateStream *stream) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto &held) {
    return held.get() == stream && !held->isDestroyed;
  });
}

void LateStreams::destroy(LateStream *stream) {
  stream->isDestroyed = true;
  sweep();
}

void LateStreams::sweep() {
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                [](const auto &stream) {
                                  return stream->isDestroyed &&
                                         stream->isIdle();
                                }),
                 streams_.end());
}

void LateStreams::give(LateStream &stream, Work work) {
  stream.work.push_back(std::move(work));
  if (seed_ != 0 && random_.below(4) == 0)
    runSome(1 + random_.below(4));
}

std::shared_ptr<Mark> LateStreams::record(LateStream &stream) {
  auto mark = std::make_shared<Mark>();
  mark->stream = &stream;
  give(stream, {nullptr, mark});
  return mark;
}

bool LateStreams::isStopped(const LateStream &stream) const {
  if (stream.isIdle())
    return true;
  const Work &first = stream.work.front();
  return first.hangs || (first.isWait && !first.mark->isDone);
}

void LateStreams::runFirst(LateStream &stream) {
  Work first = std::move(stream.work.front());
  stream.work.pop_front();
  ++time_;
  if (first.run) {
    first.run();
  } else if (!first.isWait) {
    first.mark->isDone = true;
    first.mark->time = time_;
  }
}

/// Runs one piece of the stream, or of what that waits for; false: all hangs.
bool LateStreams::advance(LateStream &stream) {
  LateStream *at = &stream;
  // Marks are recorded before they are waited for: this goes in no circle.
  while (!at->isIdle() && at->work.front().isWait &&
         !at->work.front().mark->isDone)
    at = at->work.front().mark->stream;
  if (isStopped(*at))
    return false;
  runFirst(*at);
  return true;
}

void LateStreams::runSome(uint64_t count) {
  std::vector<LateStream *> ready;
  for (; count > 0; --count) {
    ready.clear();
    for (const auto &stream : streams_)
      if (!isStopped(*stream))
        ready.push_back(stream.get());
    if (ready.empty())
      return;
    runFirst(*ready[random_.below(ready.size())]);
  }
}

void LateStreams::askFor(LateStream &stream, const Mark *mark) {
  auto isDone = [&] { return mark ? mark->isDone : stream.isIdle(); };
  uint64_t what = seed_ == 0 ? asked_++ % 2 * 2 : random_.below(3);
  if (what == 1)
    runSome(1 + random_.below(8));
  else if (what == 2)
    while (!isDone() && advance(stream))
      ;
  sweep();
}

bool LateStreams::neverEnds(const LateStream &stream, const Mark *end) const {
  for (const Work &work : stream.work) {
    const Mark *mark = work.mark.get();
    if (work.hangs ||
        (work.isWait && !mark->isDone && neverEnds(*mark->stream, mark)))
      return true;
    if (end && mark == end)
      return false;
  }
  return false;
}

int64_t LateStreams::waiting() const {
  int64_t count = 0;
  for (const auto &stream : streams_)
    count += static_cast<int64_t>(stream->work.size());
  return count;
}

bool LateStreams::finish() {
  auto isBusy = [](const auto &stream) { return !stream->isIdle(); };
  while (std::any_of(streams_.begin(), streams_.end(), isBusy)) {
    bool ran = false;
    for (const auto &stream : streams_)
      while (!isStopped(*stream)) {
        runFirst(*stream);
        ran = true;
      }
    if (!ran)
      return false;
  }
  sweep();
  return true;
}

void LateStreams::drop() {
  for (const auto &stream : streams_)
    stream->work.clear();
  sweep();
}
