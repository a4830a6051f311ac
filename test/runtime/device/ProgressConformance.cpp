//===- ProgressConformance.cpp - Exchanges that go on meanwhile -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For devices that are done when a call returns: those of others run beside
// exchanges.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"
#include "runtime/transport/Transport.h"
#include "test/runtime/device/KernelConformance.h"

#include <thread>

using namespace dyna;

class ProgressConformance : public DeviceFixture {};

INSTANTIATE_TEST_SUITE_P(Backends, ProgressConformance,
                         testing::ValuesIn(conformanceBackends()),
                         [](const testing::TestParamInfo<Backend> &info) {
                           return nameOf(info);
                         });

namespace {

/// One of two ranks, whose messages never arrive, but count how often they are
/// looked after.
class CountingTransport final : public Transport {
public:
  CountingTransport() : Transport(0, 2) {}
  ~CountingTransport() override { close(); }
  int ranksPerCore() const override { return 1; }

  int advanced = 0;
  Status found;      ///< by the next look
  bool slow = false; ///< looks take longer than it takes to find nothing

private:
  struct Message : Operation {
    explicit Message(CountingTransport &transport) : transport(transport) {}
    StatusOr<bool> advance() override {
      ++transport.advanced;
      if (transport.slow)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (!transport.found.isOk())
        return transport.found;
      return false;
    }
    void withdraw() override {}
    CountingTransport &transport;
  };
  struct Pair final : Group {
    Pair(CountingTransport &transport, std::vector<int> ranks, int index)
        : Group(transport, std::move(ranks), index) {}
    MadeOperation make(const std::vector<Collective> &, void *) override {
      return Status::internal("not asked for");
    }
  };

  MadeOperation makeSend(Transport::Message, void *) override {
    return std::unique_ptr<Operation>(new Message(*this));
  }
  MadeOperation makeReceive(Transport::Message, void *) override {
    return std::unique_ptr<Operation>(new Message(*this));
  }
  StatusOr<std::unique_ptr<Group>> makeGroup(std::vector<int> ranks, int index,
                                             Deadline) override {
    return std::unique_ptr<Group>(new Pair(*this, std::move(ranks), index));
  }
  Status poll() override { return Status::ok(); }
  void idle(Clock::time_point, Deadline) override {}
  void announce(const Status &) override {}
};

} // namespace

/// Every kernel advances once what the rank has started, notes the time if it
/// is asked to, and ends with what is found.
TEST_P(ProgressConformance, KernelsAdvanceExchanges) {
  CountingTransport transport;
  auto group = transport.createGroup({0, 1}, transport.deadline());
  ASSERT_TRUE(group.isOk());
  dyna_group groups[2] = {toAbi(nullptr), toAbi(group->get())};
  context.groups = groups, context.group_count = 2;
  auto data = upload(std::vector<float>(16, 1));
  dyna_matmul product = {};
  product.m = product.n = product.k = 4;
  product.lda = product.ldb = product.ldc = 4;
  product.a = product.b = product.c = data->data();
  dyna_segments none = {};
  dyna_attention attention = {};
  attention.segments = &none;
  attention.heads = attention.kv_heads = attention.head_dim = 1;
  attention.q_stride = attention.k_stride = attention.v_stride = 1;
  attention.out_stride = 1;
  dyna_rows_body nothing = [](const void *, int64_t, int64_t, int64_t) {};
  std::function<dyna_status()> kernels[] = {
      [&] { return dyna_launch(&context, nothing, nullptr, 0, 1, 1); },
      [&] { return dyna_matmul_f32(&context, &product); },
      [&] { return dyna_attention_f32(&context, &attention); }};
  for (auto &kernel : kernels)
    EXPECT_EQ(kernel(), DYNA_OK) << message;
  EXPECT_EQ(transport.advanced, 0) << "nothing was started";

  auto ticket = transport.startReceive(1, 0, data->data(), 16, context.stream);
  ASSERT_TRUE(ticket.isOk());
  int looked = transport.advanced;
  for (auto &kernel : kernels) {
    EXPECT_EQ(kernel(), DYNA_OK) << message;
    EXPECT_EQ(transport.advanced, ++looked);
  }
  // What takes time is noted, between the kernel's start and its end.
  std::vector<Transport::Spent> spent;
  transport.noteTime(&spent);
  transport.slow = true;
  Transport::Clock::time_point before = Transport::Clock::now();
  for (auto &kernel : kernels)
    EXPECT_EQ(kernel(), DYNA_OK) << message;
  ASSERT_EQ(spent.size(), std::size(kernels));
  for (const Transport::Spent &part : spent) {
    EXPECT_STREQ(part.what, "progress");
    EXPECT_LE(before, part.begin);
    EXPECT_GE(part.end - part.begin, std::chrono::microseconds(50));
    before = part.end;
  }
  EXPECT_LE(before, Transport::Clock::now());
  transport.noteTime(nullptr);
  EXPECT_EQ(kernels[0](), DYNA_OK) << message;
  EXPECT_EQ(spent.size(), std::size(kernels));
  transport.found = Status(StatusCode::PeerFailed, "the wire was cut");
  EXPECT_EQ(kernels[1](), DYNA_PEER_FAILED);
  EXPECT_NE(std::string(message).find("the wire was cut"), std::string::npos)
      << message;
}
