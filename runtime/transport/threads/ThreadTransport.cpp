//===- ThreadTransport.cpp - Runs ranks as threads of one process ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/ThreadTransport.h"

#include "runtime/transport/threads/Exchange.h"

#include <system_error>
#include <thread>

using namespace dyna;

namespace {

class ThreadTransport : public Transport {
public:
  ThreadTransport(std::shared_ptr<ThreadWorld> world, int rank, int ranks)
      : Transport(rank, ranks), world_(std::move(world)) {}
  ~ThreadTransport() override { close(); }
  int ranksPerCore() const override { return ranks(); }

protected:
  MadeOperation makeSend(Message m, void *) override {
    return sideOf(world_->message(rank(), m.peer, m.tag, true,
                                  std::move(m.strips), m.bytes, m.addedAs));
  }
  MadeOperation makeReceive(Message m, void *) override {
    return sideOf(world_->message(m.peer, rank(), m.tag, false,
                                  std::move(m.strips), m.bytes, m.addedAs));
  }
  StatusOr<std::unique_ptr<Group>> makeGroup(std::vector<int> ranks, int index,
                                             Deadline) override;

  Status poll() override {
    seen_ = world_->bell(rank()).rings();
    if (!world_->hasFailed())
      return Status::ok();
    return peerFailure(world_->failedRank(), world_->failure().message());
  }
  void idle(Clock::time_point, Deadline deadline) override {
    world_->bell(rank()).await(seen_, deadline, world_->spins());
  }
  void announce(const Status &reason) override { world_->fail(rank(), reason); }

private:
  /// One rank's side of an exchange.
  class Side : public Operation {
  public:
    explicit Side(std::shared_ptr<Exchange> exchange)
        : exchange_(std::move(exchange)) {}
    StatusOr<bool> advance() override { return exchange_->advance(); }
    void withdraw() override { exchange_->awaitClaims(); }

  private:
    std::shared_ptr<Exchange> exchange_;
  };

  static MadeOperation sideOf(StatusOr<std::shared_ptr<Exchange>> exchange) {
    if (!exchange.isOk())
      return exchange.status();
    return std::unique_ptr<Operation>(
        std::make_unique<Side>(std::move(*exchange)));
  }

  class ThreadGroup : public Group {
  public:
    ThreadGroup(ThreadTransport &owner, std::vector<int> ranks, int index,
                std::shared_ptr<GroupState> state)
        : Group(owner, std::move(ranks), index), owner_(owner),
          state_(std::move(state)) {}

  protected:
    MadeOperation make(const std::vector<Collective> &collectives,
                       void *) override {
      return sideOf(owner_.world_->collective(*state_, ranks(), index(),
                                              started_++, collectives));
    }

  private:
    ThreadTransport &owner_;
    std::shared_ptr<GroupState> state_;
    int64_t started_ = 0;
  };

  const std::shared_ptr<ThreadWorld> world_;
  uint64_t seen_ = 0; ///< rings of this rank's bell at the last poll
  std::map<std::vector<int>, int> groupsMade_;
};

StatusOr<std::unique_ptr<Group>>
ThreadTransport::makeGroup(std::vector<int> ranks, int index, Deadline) {
  std::shared_ptr<GroupState> state =
      world_->group(ranks, groupsMade_[ranks]++);
  return std::unique_ptr<Group>(std::make_unique<ThreadGroup>(
      *this, std::move(ranks), index, std::move(state)));
}

std::vector<std::unique_ptr<Transport>>
makeTransports(const std::shared_ptr<ThreadWorld> &world, int ranks) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_unique<ThreadTransport>(world, rank, ranks));
  return transports;
}

} // namespace

std::vector<std::unique_ptr<Transport>> dyna::makeThreadTransports(int ranks) {
  return makeTransports(std::make_shared<ThreadWorld>(ranks), ranks);
}

Status dyna::runRanks(int ranks,
                      const std::function<Status(Transport &)> &body) {
  if (ranks < 1 || ranks > kMostThreadRanks)
    return Status::invalidArgument("cannot run " + std::to_string(ranks) +
                                   " ranks as threads: expected 1 to " +
                                   std::to_string(kMostThreadRanks));
  auto world = std::make_shared<ThreadWorld>(ranks);
  std::vector<std::unique_ptr<Transport>> transports =
      makeTransports(world, ranks);
  std::vector<Status> results(transports.size());
  auto runOne = [&](size_t rank) {
    results[rank] = body(*transports[rank]);
    if (!results[rank].isOk())
      transports[rank]->abort(results[rank]);
    transports[rank].reset(); // no rank may wait for it
  };

  // Rank 0 runs on the caller's thread.
  std::vector<std::thread> threads;
  for (size_t rank = 1; rank < transports.size(); ++rank) {
    try {
      threads.emplace_back(runOne, rank);
    } catch (const std::system_error &error) {
      results[rank] = Status::resourceExhausted(
          "no thread for rank " + std::to_string(rank) + " of " +
          std::to_string(ranks) + ": " + error.what());
      world->fail(static_cast<int>(rank), results[rank]);
      break;
    }
  }
  runOne(0);
  for (std::thread &thread : threads)
    thread.join();
  // Report the cause, unless its rank has handled the failure.
  if (world->hasFailed())
    if (const Status &cause = results[size_t(world->failedRank())];
        !cause.isOk())
      return cause;
  for (const Status &result : results)
    if (!result.isOk())
      return result;
  return Status::ok();
}
