//===- MpiTransport.cpp - Runs ranks as processes under mpirun ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"

#include "runtime/base/text/Text.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/mpi/MpiExchange.h"
#include "runtime/transport/mpi/MpiStrips.h"
#include "runtime/transport/mpi/MpiWire.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace dyna;

namespace {

/// Time that a failed rank waits until the others know of it; they may be in
/// the middle of a layer.
constexpr auto kGrace = std::chrono::seconds(10);
/// Divisor of that time if a rank has not answered for a whole deadline.
constexpr int kPartForSilent = 5;
/// Exit code of the job if a rank is lost, as for every failure that is no fault of
/// Dyna (docs/failures.md).
constexpr int kLostPeer = 2;

/// Number of transports that have not been left. It is global because MPI is
/// one per process.
int openTransports = 0;

/// Ends MPI at exit. If a transport was not left, it does not, and then mpirun
/// ends the job.
void finalizeMpi() {
  int isFinal = 0;
  MPI_Finalized(&isFinal);
  if (!isFinal && openTransports == 0)
    MPI_Finalize();
}

class MpiTransport : public Transport {
public:
  MpiTransport(std::unique_ptr<MpiWire> wire)
      : Transport(wire->rank(), wire->ranks()), wire_(std::move(wire)),
        groupsWith_(static_cast<size_t>(ranks())) {
    ++openTransports;
  }

  ~MpiTransport() override { leave(); }

  void leave() override {
    if (std::exchange(hasLeft_, true))
      return;
    close();
    Deadline now = Clock::now(), until = deadline();
    if (failure().code() == StatusCode::DeadlineExceeded)
      until = now +
              std::min<Clock::duration>(kGrace, (until - now) / kPartForSilent);
    else if (!failure().isOk())
      until = now + kGrace;
    if (!failure().isOk())
      wire_->sayPresent();
    if (!wire_->sayGoodbye(until)) {
      // This is the last chance to report it.
      const std::string cause =
          failure().isOk() ? "" : failure().message() + "; ";
      fprintf(
          stderr, "%s\n",
          ofThisRank(cause + describeAbsent() + "; stopping the job").c_str());
      MPI_Abort(MPI_COMM_WORLD, kLostPeer);
    }
    --openTransports;
  }

  int ranksPerCore() const override { return wire_->ranksPerCore(); }

protected:
  MadeOperation makeSend(Message m, void *) override {
    if (m.isOfRows) {
      auto rows = std::make_unique<PiecesOperation<MpiStripsSend>>(
          *wire_, m.peer, m.tag, std::move(m.strips));
      // Start the first pieces now, because nothing else would be sent before a
      // wait.
      DYNA_RETURN_IF_ERROR(rows->advance().status());
      return MadeOperation(std::move(rows));
    }
    auto operation = std::make_unique<SendOperation>();
    DYNA_RETURN_IF_ERROR(operation->send.start(
        *wire_, MpiWire::Messages, m.peer, m.tag, m.data(), m.bytes));
    return MadeOperation(std::move(operation));
  }
  MadeOperation makeReceive(Message m, void *) override {
    if (m.isOfRows)
      return MadeOperation(std::make_unique<PiecesOperation<MpiStripsReceive>>(
          *wire_, m.peer, m.tag, std::move(m.strips), m.addedAs));
    return MadeOperation(std::make_unique<ReceiveOperation>(
        *wire_, m.peer, m.tag, m.data(), m.bytes));
  }
  StatusOr<std::unique_ptr<Group>> makeGroup(std::vector<int> ranks, int index,
                                             Deadline) override;

  Status poll() override {
    if (auto heard = wire_->heard())
      return peerFailure(heard->first, heard->second);
    if (wire_->hasHeardStop())
      hearStop();
    return Status::ok();
  }
  void idle(Clock::time_point began, Deadline) override {
    // Other processes may need the core, and after a while without transfers
    // latency does not matter.
    const auto now = Clock::now();
    if (std::exchange(moves_, wire_->moves) != wire_->moves)
      moved_ = now;
    const auto waited = now - std::max(began, moved_);
    // A rank without work waits for whole steps. So sleeps grow with the wait, and
    // add at most a hundredth of it.
    if (waited > std::chrono::milliseconds(5))
      std::this_thread::sleep_for(std::clamp<Clock::duration>(
          waited / 100, std::chrono::microseconds(50),
          std::chrono::milliseconds(5)));
    else if (wire_->isCrowded() || waited > std::chrono::microseconds(100))
      std::this_thread::yield();
  }
  void announce(const Status &reason) override {
    wire_->announce(reason.message());
  }
  void announceStop() override { wire_->announceStop(); }

private:
  /// Lists the ranks that were silent since this one failed.
  std::string describeAbsent() const {
    constexpr size_t most = 8;
    const std::vector<int> absent = wire_->absent();
    if (absent.empty() || failure().isOk())
      return "other ranks did not end in time";
    std::string text = absent.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < std::min(absent.size(), most); ++i)
      text += (i ? ", " : "") + std::to_string(absent[i]);
    if (absent.size() > most)
      text += formatText(" and %d more", absent.size() - most);
    return text + (absent.size() == 1 ? " stands" : " stand") +
           " still: no answer since then";
  }

  struct SendOperation : Operation {
    MpiSend send;
    StatusOr<bool> advance() override { return send.advance(); }
    void withdraw() override { send.withdraw(); }
  };
  struct ReceiveOperation : Operation {
    ReceiveOperation(MpiWire &wire, int peer, int tag, void *data,
                     int64_t bytes)
        : receive(wire, MpiWire::Messages, peer, tag, data, bytes) {}
    MpiReceive receive;
    StatusOr<bool> advance() override { return receive.advance(); }
    void withdraw() override { receive.withdraw(); }
  };
  /// One side of a message of rows.
  template <typename Side> struct PiecesOperation : Operation {
    template <typename... Arguments>
    explicit PiecesOperation(Arguments &&...arguments)
        : side(std::forward<Arguments>(arguments)...) {}
    Side side;
    StatusOr<bool> advance() override { return side.advance(); }
    void withdraw() override { side.withdraw(); }
  };
  /// Exchanges of one collective, or of several that run side by side.
  struct ExchangeOperation : Operation {
    std::deque<MpiExchange> exchanges;
    StatusOr<bool> advance() override {
      bool isDone = true;
      for (MpiExchange &exchange : exchanges) {
        StatusOr<bool> done = exchange.advance();
        DYNA_RETURN_IF_ERROR(done.status());
        isDone = isDone && *done;
      }
      return isDone;
    }
    void withdraw() override {
      for (MpiExchange &exchange : exchanges)
        exchange.withdraw();
    }
  };

  class MpiGroup : public Group {
  public:
    MpiGroup(MpiTransport &owner, std::vector<int> ranks, int index,
             std::vector<int> numbers)
        : Group(owner, std::move(ranks), index), owner_(owner),
          numbers_(std::move(numbers)) {}

  protected:
    MadeOperation make(const std::vector<Collective> &collectives,
                       void *) override {
      auto operation = std::make_unique<ExchangeOperation>();
      for (const Collective &collective : collectives) {
        std::vector<int> tags;
        for (int number : numbers_)
          tags.push_back((number << kNumberBits | started_) << 1);
        started_ = (started_ + 1) % (1 << kNumberBits);
        operation->exchanges.emplace_back(*owner_.wire_, collective, ranks(),
                                          index(), std::move(tags));
      }
      for (MpiExchange &exchange : operation->exchanges)
        DYNA_RETURN_IF_ERROR(exchange.start());
      return MadeOperation(std::move(operation));
    }

  private:
    static constexpr int kNumberBits = 14;
    MpiTransport &owner_;
    /// Number of this group among the groups that this rank shares with each
    /// member.
    const std::vector<int> numbers_;
    int started_ = 0;
  };
  static constexpr int kMostGroupsOfAPair = 256;

  const std::unique_ptr<MpiWire> wire_;
  int64_t moves_ = 0;         ///< of the wire, when they were looked at
  Clock::time_point moved_{}; ///< when they were seen to change
  bool hasLeft_ = false;
  std::vector<int> groupsWith_; ///< by rank: groups made so far
};

StatusOr<std::unique_ptr<Group>> MpiTransport::makeGroup(std::vector<int> ranks,
                                                         int index, Deadline) {
  std::vector<int> numbers;
  for (int peer : ranks) {
    int number = groupsWith_[size_t(peer)]++;
    if (number >= kMostGroupsOfAPair)
      return Status::resourceExhausted(
          "ranks " + std::to_string(rank()) + " and " + std::to_string(peer) +
          " share more than " + std::to_string(kMostGroupsOfAPair) + " groups");
    numbers.push_back(number);
  }
  return std::unique_ptr<Group>(std::make_unique<MpiGroup>(
      *this, std::move(ranks), index, std::move(numbers)));
}

/// Ends the process by SIGALRM after `timeout`, as long as this object lives.
/// MPI offers no time limit, and a waiting thread cannot be stopped.
class StartDeadline {
public:
  explicit StartDeadline(std::chrono::seconds timeout) {
    formatInto(text, sizeof text,
               "not all processes of the job have started after %d "
               "seconds (--timeout): each that mpirun starts must run this "
               "program; look for one that hangs or has never begun\n",
               timeout.count());
    struct sigaction action = {};
    action.sa_handler = [](int) {
      constexpr int failed = 2;
      (void)!::write(STDERR_FILENO, text, std::strlen(text));
      _exit(failed);
    };
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, &before_);
    ::alarm(static_cast<unsigned>(timeout.count()));
  }
  ~StartDeadline() {
    ::alarm(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  StartDeadline(const StartDeadline &) = delete;
  StartDeadline &operator=(const StartDeadline &) = delete;

private:
  static char text[256]; ///< a handler can reach nothing but a global
  struct sigaction before_ = {};
};
char StartDeadline::text[256];

Status startMpi() {
  int isRunning = 0, isFinal = 0, level = 0;
  MPI_Initialized(&isRunning);
  MPI_Finalized(&isFinal);
  if (isFinal)
    return Status::invalidArgument("MPI has been shut down in this process");
  if (!isRunning) {
    DYNA_RETURN_IF_ERROR(checkMpi(
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
        "MPI_Init_thread"));
    atexit(finalizeMpi);
  } else {
    MPI_Query_thread(&level);
  }
  if (level < MPI_THREAD_SERIALIZED)
    return Status::deviceError("this MPI allows one thread per process only "
                               "(MPI_THREAD_SERIALIZED is needed)");
  return Status::ok();
}

} // namespace

bool dyna::isUnderMpi() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (getenv(name))
      return true;
  return false;
}

StatusOr<std::unique_ptr<Transport>>
dyna::openMpi(int ranks, std::chrono::seconds timeout) {
  StartDeadline deadline(timeout);
  DYNA_RETURN_IF_ERROR(startMpi());
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (ranks != 0 && ranks != processes)
    return Status::invalidArgument(
        std::to_string(ranks) +
        " ranks need as many processes, but there are " +
        std::to_string(processes) + "; start them with mpirun -n " +
        std::to_string(ranks));
  auto wire = std::make_unique<MpiWire>();
  DYNA_RETURN_IF_ERROR(wire->open());
  auto transport = std::make_unique<MpiTransport>(std::move(wire));
  transport->setTimeout(timeout);
  return std::unique_ptr<Transport>(std::move(transport));
}

extern "C" {
const ProcessTransport dyna_process_transport = {"mpi", isUnderMpi, openMpi};
}
