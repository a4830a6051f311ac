//===- DriverStreams.cpp - Streams and events of it -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/DriverState.h"

using namespace dyna::standins;

DYNA_STANDIN_EXPORT Result cuStreamCreate(StreamHandle *stream, unsigned) {
  return inContext([&](CUctx_st &context) {
    *stream = reinterpret_cast<StreamHandle>(context.streams.create());
    ++machine().streams;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamDestroy_v2(StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream)
      return kInvalidHandle;
    context.streams.destroy(stream);
    --machine().streams;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamQuery(StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream)
      return kInvalidHandle;
    context.streams.askFor(*stream, nullptr);
    if (context.error != kSuccess)
      return context.error;
    return stream->isIdle() ? kSuccess : kNotReady;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamWaitEvent(StreamHandle handle,
                                             EventHandle event, unsigned) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream || context.events.count(event) == 0)
      return kInvalidHandle;
    if (event->mark && !event->mark->isDone)
      context.streams.give(*stream, {nullptr, event->mark, true});
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventCreate(EventHandle *event, unsigned) {
  return inContext([&](CUctx_st &context) {
    *event = new CUevent_st;
    context.events.insert(*event);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventDestroy_v2(EventHandle event) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.erase(event) == 0)
      return kInvalidHandle;
    delete event;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventRecord(EventHandle event,
                                         StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream || context.events.count(event) == 0)
      return kInvalidHandle;
    event->mark = context.streams.record(*stream);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventQuery(EventHandle event) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.count(event) == 0)
      return kInvalidHandle;
    std::shared_ptr<Mark> mark = event->mark;
    if (!mark || mark->isDone)
      return kSuccess;
    context.streams.askFor(*mark->stream, mark.get());
    if (context.error != kSuccess)
      return context.error;
    return mark->isDone ? kSuccess : kNotReady;
  });
}

/// A millisecond for each piece of work.
DYNA_STANDIN_EXPORT Result cuEventElapsedTime(float *milliseconds,
                                              EventHandle begin,
                                              EventHandle end) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.count(begin) == 0 || context.events.count(end) == 0 ||
        !begin->mark || !end->mark)
      return kInvalidHandle;
    if (!begin->mark->isDone || !end->mark->isDone)
      return kNotReady;
    *milliseconds = static_cast<float>(end->mark->time - begin->mark->time);
    return kSuccess;
  });
}
