//===- MpiTransportTest.cpp - The suites under mpirun -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"

#include "runtime/transport/ProcessTransport.h"
#include "test/runtime/transport/TransportConformance.h"

using namespace dyna;

namespace {

/// Every process runs every test, with a new transport each time.
Status runProcess(const RankBody &body) {
  StatusOr<std::unique_ptr<Transport>> transport = openMpi(0);
  DYNA_RETURN_IF_ERROR(transport.status());
  RankMemory memory;
  Status status = body(**transport, memory);
  if (!status.isOk())
    (*transport)->abort(status);
  return status;
}

} // namespace

std::vector<TransportBackend> dyna::transportBackends() {
  int ranks = 0;
  Status status = runProcess([&](Transport &t, RankMemory &) {
    ranks = t.ranks();
    return Status::ok();
  });
  EXPECT_TRUE(status.isOk()) << status.message();
  return {{"mpi",
           ranks,
           runProcess,
           {{"counts", "exchanges that no other process starts are messages "
                       "that do not come: the deadline ends them"}}}};
}

TEST(MpiTransport, NumberOfProcessesIsChecked) {
  StatusOr<std::unique_ptr<Transport>> transport = openMpi(1000);
  ASSERT_FALSE(transport.isOk());
  EXPECT_EQ(transport.status().code(), StatusCode::InvalidArgument);
  EXPECT_NE(transport.status().message().find(
                "1000 ranks need as many processes, but there are"),
            std::string::npos)
      << transport.status().message();
}

TEST(MpiTransport, IsFoundByBinariesThatLinkIt) {
  ASSERT_TRUE(&dyna_process_transport);
  EXPECT_STREQ(dyna_process_transport.name, "mpi");
  EXPECT_TRUE(dyna_process_transport.isLaunched());
}
