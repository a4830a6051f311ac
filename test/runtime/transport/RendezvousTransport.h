//===- RendezvousTransport.h - Every start waits for its peers --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A transport over another one that carries out what a rank starts one after
// another: a start returns when the exchange is done, so that a send blocks until
// its receive has been started, and two groups cannot overtake each other. The
// strictest that a backend may be; plans must run on it all the same (P11 of
// runtime/plan/verify/PlanVerifier.h).
// Where rows land late, what they are added to is read at the start and written
// by the wait, as a backend may: what somebody else adds between is lost.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRANSPORT_RENDEZVOUSTRANSPORT_H
#define DYNA_TEST_RUNTIME_TRANSPORT_RENDEZVOUSTRANSPORT_H

#include "runtime/base/wire/Strips.h"
#include "runtime/transport/Transport.h"

#include <functional>

namespace dyna {

class RendezvousTransport : public Transport {
public:
  explicit RendezvousTransport(std::unique_ptr<Transport> inner,
                               bool landsLate = false)
      : Transport(inner->rank(), inner->ranks()), inner_(std::move(inner)),
        landsLate_(landsLate) {}
  ~RendezvousTransport() override { close(); }
  void leave() override {
    close();
    inner_->leave();
  }
  int ranksPerCore() const override { return inner_->ranksPerCore(); }

  /// If given: what is exchanged has to be this rank's device memory, by this function.
  std::function<bool(const void *data, int64_t bytes)> isDeviceMemory;

protected:
  MadeOperation makeSend(Message m, void *stream) override {
    DYNA_RETURN_IF_ERROR(check(m.strips));
    return finished(
        m.isOfRows
            ? inner_->startSend(m.peer, m.tag, std::move(m.strips), stream)
            : inner_->startSend(m.peer, m.tag, m.data(), m.bytes, stream),
        stream);
  }
  MadeOperation makeReceive(Message m, void *stream) override {
    DYNA_RETURN_IF_ERROR(check(m.strips));
    if (m.isOfRows && landsLate_) {
      auto late = std::make_unique<Late>(std::move(m.strips), m.bytes);
      if (m.addedAs != kReplaces)
        placeStrips(kReplaces, late->strips, late->read());
      StatusOr<Ticket> ticket =
          inner_->startReceive(m.peer, m.tag, late->read(), stream, m.addedAs);
      DYNA_RETURN_IF_ERROR(finished(std::move(ticket), stream).status());
      return std::unique_ptr<Operation>(std::move(late));
    }
    return finished(
        m.isOfRows
            ? inner_->startReceive(m.peer, m.tag, std::move(m.strips), stream,
                                   m.addedAs)
            : inner_->startReceive(m.peer, m.tag, m.data(), m.bytes, stream),
        stream);
  }
  StatusOr<std::unique_ptr<Group>> makeGroup(std::vector<int> ranks, int index,
                                             Deadline deadline) override {
    StatusOr<std::unique_ptr<Group>> inner =
        inner_->createGroup(ranks, deadline);
    if (!inner.isOk())
      return inner.status();
    return std::unique_ptr<Group>(std::make_unique<RendezvousGroup>(
        *this, std::move(ranks), index, std::move(*inner)));
  }
  Status poll() override { return inner_->progress(); }
  void idle(Clock::time_point, Deadline) override {}
  void announce(const Status &reason) override { inner_->abort(reason); }

private:
  class Finished : public Operation {
  public:
    StatusOr<bool> advance() override { return true; }
    void withdraw() override {}
  };

  class Late : public Finished {
  public:
    Late(std::vector<Strip> strips, int64_t bytes)
        : strips(std::move(strips)), bytes_(bytes) {}
    std::vector<Strip> read() {
      const auto size = static_cast<int64_t>(bytes_.size());
      return {{bytes_.data(), 1, size, size}};
    }
    Status finish(void *) override {
      placeStrips(kReplaces, read(), strips);
      return Status::ok();
    }
    const std::vector<Strip> strips;

  private:
    std::vector<char> bytes_;
  };

  class RendezvousGroup : public Group {
  public:
    RendezvousGroup(RendezvousTransport &owner, std::vector<int> ranks,
                    int index, std::unique_ptr<Group> inner)
        : Group(owner, std::move(ranks), index), owner_(owner),
          inner_(std::move(inner)) {}

  protected:
    MadeOperation make(const std::vector<Collective> &collectives,
                       void *stream) override {
      for (const Collective &one : collectives) {
        DYNA_RETURN_IF_ERROR(
            owner_.check(one.in, one.inBytes(size(), index())));
        DYNA_RETURN_IF_ERROR(
            owner_.check(one.out, one.outBytes(size(), index())));
      }
      return owner_.finished(inner_->start(collectives, stream), stream);
    }

  private:
    RendezvousTransport &owner_;
    std::unique_ptr<Group> inner_;
  };

  Status check(const void *data, int64_t bytes) const {
    if (!isDeviceMemory || bytes == 0 || isDeviceMemory(data, bytes))
      return Status::ok();
    return Status::internal("memory of the host on the wires of devices");
  }
  Status check(const std::vector<Strip> &strips) const {
    for (const Strip &strip : strips)
      if (strip.count > 0)
        DYNA_RETURN_IF_ERROR(
            check(strip.data, (strip.count - 1) * strip.stride + strip.bytes));
    return Status::ok();
  }

  MadeOperation finished(StatusOr<Ticket> ticket, void *stream) {
    if (!ticket.isOk())
      return ticket.status();
    DYNA_RETURN_IF_ERROR(inner_->wait(*ticket, stream, deadline()));
    return std::unique_ptr<Operation>(std::make_unique<Finished>());
  }

  std::unique_ptr<Transport> inner_;
  const bool landsLate_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_TRANSPORT_RENDEZVOUSTRANSPORT_H
