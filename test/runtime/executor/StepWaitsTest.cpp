//===- StepWaitsTest.cpp - A step asks its device once --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A device that runs late is kept busy only by who does not wait for it, so all
// waits and reads of a step are counted.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"

#include <atomic>

using namespace dyna;

namespace {

std::atomic<int> reads{0}, waits{0};

/// Counts what makes the host wait.
class CountedDevice final : public Device {
public:
  explicit CountedDevice(std::unique_ptr<Device> device)
      : device_(std::move(device)) {}

  std::string describe() const override { return device_->describe(); }
  int64_t scratchBytes() const override { return device_->scratchBytes(); }
  Team &team() override { return device_->team(); }
  StatusOr<std::unique_ptr<Buffer>> allocate(int64_t bytes) override {
    return device_->allocate(bytes);
  }
  int64_t freeBytes() const override { return device_->freeBytes(); }
  StatusOr<std::unique_ptr<StagingMemory>>
  allocateHost(int64_t bytes) override {
    return device_->allocateHost(bytes);
  }
  StatusOr<std::unique_ptr<Stream>> createStream() override {
    return device_->createStream();
  }
  StatusOr<std::unique_ptr<Event>> createEvent() override {
    return device_->createEvent();
  }
  Status copyToDevice(Stream &stream, Buffer &target, int64_t offset,
                      const void *source, int64_t bytes) override {
    return device_->copyToDevice(stream, target, offset, source, bytes);
  }
  Status copyToHost(Stream &stream, void *target, const Buffer &source,
                    int64_t offset, int64_t bytes) override {
    ++reads;
    return device_->copyToHost(stream, target, source, offset, bytes);
  }
  Status copy(Stream &stream, Buffer &target, int64_t targetOffset,
              const Buffer &source, int64_t sourceOffset,
              int64_t bytes) override {
    return device_->copy(stream, target, targetOffset, source, sourceOffset,
                         bytes);
  }
  Status fill(Stream &stream, Buffer &target, int64_t offset, int64_t bytes,
              uint8_t value) override {
    return device_->fill(stream, target, offset, bytes, value);
  }
  Status zeroWhere(Stream &stream, Buffer &target, int64_t offset,
                   const Buffer &mask, int64_t maskOffset, int64_t count,
                   int64_t elementBytes) override {
    return device_->zeroWhere(stream, target, offset, mask, maskOffset, count,
                              elementBytes);
  }
  Status addScores(Stream &stream, Buffer &buffer,
                   const ScoredWeights &scored) override {
    return device_->addScores(stream, buffer, scored);
  }
  Status record(Stream &stream, Event &event) override {
    return device_->record(stream, event);
  }
  Status streamWait(Stream &stream, Event &event) override {
    return device_->streamWait(stream, event);
  }
  Status wait(Event &event, Deadline deadline) override {
    ++waits;
    return device_->wait(event, deadline);
  }
  Status synchronize(Stream &stream, Deadline deadline) override {
    ++waits;
    return device_->synchronize(stream, deadline);
  }
  void bind(dyna_context &context, Stream &stream) override {
    device_->bind(context, stream);
  }

private:
  std::unique_ptr<Device> device_;
};

class StepWaitsTest : public testing::Test {
protected:
  void SetUp() override {
    wrapTestDevice = [](std::unique_ptr<Device> device) {
      return std::unique_ptr<Device>(new CountedDevice(std::move(device)));
    };
  }
  void TearDown() override { wrapTestDevice = nullptr; }

  /// Of what has happened since the last call.
  void expect(int wantedReads, int wantedWaits) {
    EXPECT_EQ(reads.exchange(0), wantedReads);
    EXPECT_EQ(waits.exchange(0), wantedWaits);
  }
};

TEST_F(StepWaitsTest, AStepOfManyMicroBatchesWaitsOnce) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 20;
  TinyRun run(options);
  for (double clip : {0.0, 0.5}) {
    reads = waits = 0;
    StepResult result;
    ASSERT_TRUE(
        run.step(0, tinyBatch({5, 17, 9, 3, 12, 8}), result, clip).isOk());
    ASSERT_GT(result.microBatchLosses.size(), 2u);
    EXPECT_GT(result.gradientNorm, 0);
    expect(1, 1);
  }
}

TEST_F(StepWaitsTest, AStepOfSeveralStrategiesWaitsOnceOnEachRank) {
  Carriage carriage;
  carriage.checksMemory = false; // which reads all of it all the time
  Steps steps({"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"}, plan::F64,
              carriage);
  reads = waits = 0;
  StepResult result = steps.run(tinyBatch({20, 9, 3, 12}), {0, 1, 2, 2}, 0);
  EXPECT_GT(result.gradientNorm, 0);
  expect(2, 2);
}

} // namespace
