//===- MpiTransportTest.cpp - The suites under mpirun -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiTransport.h"

#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/mpi/MpiStrips.h"
#include "test/runtime/transport/TransportConformance.h"

#include <random>

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

// Both ends cut long strips alike, so that pieces must not have two of them, nor a
// long one and a short one before it; short ones fill pieces.
TEST(MpiTransport, PiecesEndWhereLongStripsEnd) {
  std::mt19937 random(7);
  char memory = 0; // nothing is read
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<Strip> strips;
    std::vector<int64_t> ends; // of all strips
    for (int i = 0; i < 40; ++i) {
      const bool isLong = random() % 3 == 0;
      const int64_t bytes =
          1 + static_cast<int64_t>(random() % (isLong ? 700000 : 20000));
      const int64_t rows = 1 + static_cast<int64_t>(random() % 3);
      strips.push_back({&memory, rows, bytes, bytes + 8});
      ends.push_back((ends.empty() ? 0 : ends.back()) + rows * bytes);
    }
    StripCursor cursor(strips);
    int64_t at = 0, before = 0;
    while (at < ends.back()) {
      const int64_t piece = nextPiece(cursor);
      ASSERT_GT(piece, 0);
      ASSERT_LE(piece, kStripPiece);
      int64_t begin = 0;
      for (int64_t end : ends) {
        const int64_t inside = std::min(end, at + piece) - std::max(begin, at);
        const bool isAll = inside == piece;
        if (inside > 0)
          EXPECT_TRUE(isAll || end - std::max(begin, at) <= kShortStrip)
              << "turn " << turn << " at " << at;
        begin = end;
      }
      at += piece;
      cursor.advance(piece);
      // No two in a row that would have been one.
      EXPECT_TRUE(before + piece > kShortStrip || at == ends.back() ||
                  before == 0 || cursor.stripLeft() > kShortStrip)
          << "turn " << turn << " at " << at;
      before = piece;
    }
    EXPECT_EQ(at, ends.back());
  }
}
