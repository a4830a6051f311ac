//===- SwitchCarrier.cpp - Parameters on their way between graphs ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/SwitchCarrier.h"

#include "runtime/base/Text.h"
#include "runtime/plan/InstructionTable.h"

#include <cstring>

namespace dyna {

using plan::Instruction;

/// Both ends start the messages of a pair in one order, so that two tags do.
static int32_t tagOf(bool isGradients) {
  return Transport::kLargestTag - (isGradients ? 2 : 1);
}

StatusOr<SwitchCarrier::Way> SwitchCarrier::wayOf(const Instruction &i) const {
  const Phase &phase = phases_[i.phase];
  Way way;
  way.isGradients = exchangeOf(i.op).kind == ExchangeKind::GradientSwitch;
  if (way.isGradients) {
    way.what = phase.switches.gradients;
    way.target = &home_;
    way.sources = {phase.seat};
  } else {
    way.what = phase.switches.values;
    way.target = phase.seat;
    if (phase.before)
      way.sources.push_back(phase.before);
    way.sources.push_back(&home_);
  }
  if (!way.what)
    return Status::internal("a switch to or from home");
  return way;
}

int64_t SwitchCarrier::bytesOf(const Way &way,
                               const SwitchTransfer &transfer) const {
  return transfer.box.volume() *
         way.what->tensors[transfer.tensor].elementBytes;
}

/// Copies a part of a packed box.
static void copyBox(const Box &whole, const unsigned char *from, const Box &box,
                    unsigned char *to, int64_t element) {
  const Box local = box.relativeTo(whole);
  const int64_t row = local.size[1] * element;
  for (int64_t r = 0; r < local.size[0]; ++r)
    std::memcpy(to + r * row,
                from + ((local.begin[0] + r) * whole.size[1] + local.begin[1]) *
                           element,
                row);
}

Status SwitchCarrier::take(const Way &way, const Key &key,
                           const SwitchTransfer &transfer,
                           unsigned char *bytes) {
  const SwitchTensor &tensor = way.what->tensors[transfer.tensor];
  const Box &box = transfer.box;
  if (transfer.source == SwitchPlace::Passing) {
    auto [isGradients, phase, bucket] = key;
    const int after = way.what->plan.buckets[bucket].after;
    for (const Passing &passing :
         buckets_.at({isGradients, phase, after}).passing)
      if (passing.tensor == transfer.tensor && passing.box.contains(box)) {
        copyBox(passing.box, passing.bytes.data(), box, bytes,
                tensor.elementBytes);
        return Status::ok();
      }
    return Status::internal("nothing to pass on");
  }
  if (transfer.source == SwitchPlace::New)
    return way.target->readBox(tensor.parameter, tensor.part, box, bytes);
  for (GraphSeat *seat : way.sources)
    if (seat->view().holds(tensor.parameter) &&
        seat->partBox(tensor.parameter, tensor.part).contains(box))
      return seat->readBox(tensor.parameter, tensor.part, box, bytes);
  return Status::internal("nothing to send: " + box.describe());
}

Status SwitchCarrier::give(const Way &way, Bucket &bucket,
                           const SwitchTransfer &transfer,
                           const unsigned char *bytes) {
  const SwitchTensor &tensor = way.what->tensors[transfer.tensor];
  if (transfer.target == SwitchPlace::Passing) {
    bucket.passing.push_back({transfer.tensor, transfer.box,
                              Bytes(bytes, bytes + bytesOf(way, transfer))});
    return Status::ok();
  }
  return way.isGradients ? way.target->addBox(tensor.parameter, tensor.part,
                                              transfer.box, bytes)
                         : way.target->writeBox(tensor.parameter, tensor.part,
                                                transfer.box, bytes);
}

Status SwitchCarrier::start(const Instruction &i) {
  DYNA_ASSIGN_OR_RETURN(Way way, wayOf(i));
  const Key key = {way.isGradients, i.phase, i.bucket};
  Bucket &bucket = buckets_[key];
  const int own = machine_.rank();
  const std::vector<SwitchTransfer> &transfers =
      way.what->plan.buckets[i.bucket].transfers;
  Bytes local;
  for (int number : way.what->sides[own].transfers[i.bucket]) {
    const SwitchTransfer &transfer = transfers[number];
    const int64_t bytes = bytesOf(way, transfer);
    if (transfer.from == transfer.to) {
      local.resize(bytes);
      DYNA_RETURN_IF_ERROR(take(way, key, transfer, local.data()));
      DYNA_RETURN_IF_ERROR(give(way, bucket, transfer, local.data()));
      continue;
    }
    const bool sends = transfer.from == own;
    Message &message =
        (sends ? bucket.sends[transfer.to] : bucket.receives[transfer.from]);
    const size_t at = message.bytes.size();
    message.bytes.resize(at + bytes);
    message.transfers.push_back(number);
    if (sends)
      DYNA_RETURN_IF_ERROR(take(way, key, transfer, message.bytes.data() + at));
  }
  Transport &transport = *machine_.transport();
  void *stream = machine_.stream().handle();
  const int32_t tag = tagOf(way.isGradients);
  for (auto &[peer, message] : bucket.receives) {
    DYNA_ASSIGN_OR_RETURN(
        message.ticket,
        transport.startReceive(peer, tag, message.bytes.data(),
                               static_cast<int64_t>(message.bytes.size()),
                               stream));
  }
  for (auto &[peer, message] : bucket.sends) {
    const auto bytes = static_cast<int64_t>(message.bytes.size());
    sentBytes_ += bytes;
    DYNA_ASSIGN_OR_RETURN(
        message.ticket,
        transport.startSend(peer, tag, message.bytes.data(), bytes, stream));
  }
  return Status::ok();
}

Status SwitchCarrier::wait(const Instruction &i) {
  DYNA_ASSIGN_OR_RETURN(Way way, wayOf(i));
  auto found = buckets_.find({way.isGradients, i.phase, i.bucket});
  if (found == buckets_.end())
    return Status::internal("waits for a bucket that was not started");
  Bucket &bucket = found->second;
  Transport &transport = *machine_.transport();
  void *stream = machine_.stream().handle();
  const std::vector<SwitchTransfer> &transfers =
      way.what->plan.buckets[i.bucket].transfers;
  for (auto &[peer, message] : bucket.receives) {
    DYNA_RETURN_IF_ERROR(
        transport.wait(message.ticket, stream, transport.deadline()));
    const unsigned char *at = message.bytes.data();
    for (int number : message.transfers) {
      DYNA_RETURN_IF_ERROR(give(way, bucket, transfers[number], at));
      at += bytesOf(way, transfers[number]);
    }
  }
  for (auto &[peer, message] : bucket.sends)
    DYNA_RETURN_IF_ERROR(
        transport.wait(message.ticket, stream, transport.deadline()));
  bucket.receives.clear();
  bucket.sends.clear();
  if (bucket.passing.empty())
    buckets_.erase(found);
  return Status::ok();
}

} // namespace dyna
