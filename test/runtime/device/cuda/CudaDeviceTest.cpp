//===- CudaDeviceTest.cpp - What only the CUDA backend promises -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the driver's stand-in. Where order matters, for several seeds: without one
// of the waits of CudaDevice.cpp, some seed gives another result.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/driver/Library.h"
#include "test/Patience.h"
#include "test/standins/Fibers.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <dlfcn.h>
#include <numeric>
#include <thread>

using namespace dyna;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

struct AddScaled {
  const float *in;
  float *out;
  int64_t count;
  float factor;
};

/// out[i] = 2 out[i] + factor in[i]
void addScaled(const void *arguments) {
  const auto &a = *static_cast<const AddScaled *>(arguments);
  int64_t i = int64_t(dyna_emulated_block()) * dyna_emulated_block_size() +
              dyna_emulated_thread();
  if (i < a.count)
    a.out[i] = 2 * a.out[i] + a.factor * a.in[i];
}

void leaveBarrier(const void *) {
  if (dyna_emulated_thread() != 3)
    dyna_emulated_barrier();
}

const dyna_emulated_entry entries[] = {
    {"add_scaled", addScaled, sizeof(AddScaled)},
    {"leave_barrier", leaveBarrier, 8},
};
const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image), 2,
                                   entries, dyna_emulated_run};
const std::vector<CudaImage> images = {{0, false, &image}};

//===----------------------------------------------------------------------===//
// A device
//===----------------------------------------------------------------------===//

using Floats = std::vector<float>;
constexpr int64_t kCount = 1000;
constexpr int64_t kBytes = kCount * 4;

class CudaDeviceTest : public testing::Test {
protected:
  CudaDeviceTest() {
    settings.set(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda");
  }
  void TearDown() override {
    // Where work failed, what is left goes with the process.
    if (!isFailed)
      EXPECT_EQ(standin<int64_t()>("dyna_standin_live")(), 0)
          << "something was not given back";
    standin<void()>("dyna_standin_reset")();
  }

  template <typename F> static F *standin(const char *function) {
    void *library = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);
    EXPECT_NE(library, nullptr);
    return reinterpret_cast<F *>(dlsym(library, function));
  }

  std::unique_ptr<CudaDevice> make(int ordinal = 0, double idleSeconds = 30) {
    CudaOptions options;
    options.idleSeconds = idleSeconds;
    options.ordinal = ordinal;
    options.threads = 1;
    StatusOr<std::unique_ptr<CudaDevice>> made = CudaDevice::create(options);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return std::move(*made);
  }
  static Device::Deadline in(double seconds) {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(seconds));
  }
  static std::unique_ptr<Buffer> allocate(Device &device, int64_t bytes) {
    StatusOr<std::unique_ptr<Buffer>> buffer = device.allocate(bytes);
    EXPECT_TRUE(buffer.isOk()) << buffer.status().message();
    return std::move(*buffer);
  }

  standins::Settings settings;
  bool isFailed = false;
};

Floats numbers(float first) {
  Floats result(kCount);
  std::iota(result.begin(), result.end(), first);
  return result;
}

#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    Status expectOk = (expression);                                            \
    EXPECT_TRUE(expectOk.isOk()) << expectOk.message();                        \
  } while (false)

} // namespace

TEST_F(CudaDeviceTest, DescribesItself) {
  std::unique_ptr<CudaDevice> device = make();
  EXPECT_EQ(device->describe(),
            "CUDA device 0 (stand-in), compute capability "
            "0.0, 1.0 GiB, driver of CUDA 13.0, products by "
            "cuBLASLt 13.0.0, attention by own kernels (cuDNN is not wanted)");
  settings.set("DYNA_STANDIN_DEVICES", 2);
  EXPECT_THAT(make(1)->describe(), StartsWith("CUDA device 1 (stand-in)"));
  EXPECT_EQ(CudaDevice::create({2, 1, 1}).status().message(),
            "there is no CUDA device 2: the driver has 2, counted from 0");
  EXPECT_FALSE(CudaDevice::create({-1, 1, 1}).isOk());
}

TEST_F(CudaDeviceTest, TheHostCannotReadItsMemory) {
  std::unique_ptr<CudaDevice> device = make();
  std::unique_ptr<Buffer> buffer = allocate(*device, 64);
  const auto *data = static_cast<const volatile char *>(buffer->data());
  EXPECT_DEATH((void)*data, "");
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {

/// One seed of the stand-in each.
class CudaOrder : public CudaDeviceTest,
                  public testing::WithParamInterface<int> {
protected:
  CudaOrder() { settings.set("DYNA_STANDIN_SEED", GetParam()); }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Seeds, CudaOrder, testing::Range(0, 12));

// As a run does it: inputs are uploaded on one stream, into two buffers in turn,
// used on another, results downloaded on a third. The host writes staging memory
// again as soon as the device has passed it.
TEST_P(CudaOrder, UploadComputeDownload) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &upload = device->stream(CudaStreamRole::Upload);
  Stream &compute = device->stream(CudaStreamRole::Compute);
  Stream &download = device->stream(CudaStreamRole::Send);
  StatusOr<std::unique_ptr<CudaModule>> module = device->load(images);
  ASSERT_TRUE(module.isOk()) << module.status().message();
  StatusOr<CudaKernel> kernel = (*module)->kernel("add_scaled");
  ASSERT_TRUE(kernel.isOk()) << kernel.status().message();

  constexpr int kSteps = 6;
  std::unique_ptr<Buffer> sum = allocate(*device, kBytes);
  std::unique_ptr<Buffer> result = allocate(*device, kBytes);
  std::unique_ptr<Buffer> inputs[2];
  std::unique_ptr<Event> uploaded[2], used[2];
  for (int i = 0; i < 2; ++i) {
    inputs[i] = allocate(*device, kBytes);
    uploaded[i] = std::move(*device->createEvent());
    used[i] = std::move(*device->createEvent());
  }
  std::unique_ptr<Event> computed = std::move(*device->createEvent());
  std::unique_ptr<Event> copied = std::move(*device->createEvent());

  Floats staging[2], expected(kCount, 0.0f);
  std::vector<Floats> results(kSteps, Floats(kCount)), wanted;
  EXPECT_OK(device->fill(compute, *sum, 0, kBytes, 0));
  for (int step = 0; step < kSteps; ++step) {
    int i = step % 2;
    if (step >= 2) {
      EXPECT_OK(device->wait(*uploaded[i], patienceEnds()));
      EXPECT_OK(device->streamWait(upload, *used[i]));
    }
    staging[i] = numbers(static_cast<float>(10 * step));
    EXPECT_OK(
        device->copyToDevice(upload, *inputs[i], 0, staging[i].data(), kBytes));
    EXPECT_OK(device->record(upload, *uploaded[i]));

    EXPECT_OK(device->streamWait(compute, *uploaded[i]));
    AddScaled arguments = {static_cast<const float *>(inputs[i]->data()),
                           static_cast<float *>(sum->data()), kCount,
                           static_cast<float>(step + 1)};
    EXPECT_OK(device->launch(static_cast<cuda::StreamHandle>(compute.handle()),
                             *kernel, 8, 128, 0, &arguments,
                             sizeof(arguments)));
    arguments = {}; // the launch has its own
    EXPECT_OK(device->record(compute, *used[i]));
    if (step > 0) {
      EXPECT_OK(device->streamWait(compute, *copied));
    }
    EXPECT_OK(device->copy(compute, *result, 0, *sum, 0, kBytes));
    EXPECT_OK(device->record(compute, *computed));

    EXPECT_OK(device->streamWait(download, *computed));
    EXPECT_OK(device->copyToHost(download,
                                 results[static_cast<size_t>(step)].data(),
                                 *result, 0, kBytes));
    EXPECT_OK(device->record(download, *copied));
    for (size_t j = 0; j < expected.size(); ++j)
      expected[j] =
          2 * expected[j] +
          static_cast<float>(step + 1) * static_cast<float>(10 * step + int(j));
    wanted.push_back(expected);
  }
  EXPECT_OK(device->wait(*copied, patienceEnds()));
  EXPECT_EQ(results, wanted);
}

TEST_P(CudaOrder, AStreamRunsInOrderAndWaitsAreForAllOfIt) {
  std::unique_ptr<CudaDevice> device = make();
  std::unique_ptr<Stream> stream = std::move(*device->createStream());
  std::unique_ptr<Buffer> a = allocate(*device, kBytes),
                          b = allocate(*device, kBytes);
  Floats first = numbers(1), second = numbers(5000), gotA(kCount), gotB(kCount);
  EXPECT_OK(device->copyToDevice(*stream, *a, 0, first.data(), kBytes));
  EXPECT_OK(device->copy(*stream, *b, 0, *a, 0, kBytes));
  EXPECT_OK(device->copyToDevice(*stream, *a, 0, second.data(), kBytes));
  EXPECT_OK(device->copyToHost(*stream, gotB.data(), *b, 0, kBytes));
  EXPECT_OK(device->fill(*stream, *b, 0, kBytes, 0));
  EXPECT_OK(device->copyToHost(*stream, gotA.data(), *a, 0, kBytes));
  EXPECT_OK(device->synchronize(*stream, patienceEnds()));
  EXPECT_EQ(gotA, second);
  EXPECT_EQ(gotB, first);
}

TEST_P(CudaOrder, FreeingWaitsForWork) {
  std::unique_ptr<CudaDevice> device = make();
  std::unique_ptr<Stream> stream = std::move(*device->createStream());
  Floats first = numbers(1), got(kCount);
  std::unique_ptr<Buffer> a = allocate(*device, kBytes);
  EXPECT_OK(device->copyToDevice(*stream, *a, 0, first.data(), kBytes));
  EXPECT_OK(device->copyToHost(*stream, got.data(), *a, 0, kBytes));
  a.reset();
  EXPECT_EQ(got, first);
  // A stream that goes with work is not forgotten when memory is freed.
  a = allocate(*device, kBytes);
  EXPECT_OK(device->fill(*stream, *a, 0, kBytes, 0));
  EXPECT_OK(device->copyToHost(*stream, got.data(), *a, 0, kBytes));
  stream.reset();
  a.reset();
  EXPECT_EQ(got, Floats(kCount, 0.0f));
}

TEST_P(CudaOrder, EventsAreReusedWhileOthersWait) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &one = device->stream(CudaStreamRole::Compute);
  Stream &two = device->stream(CudaStreamRole::Receive);
  std::unique_ptr<Buffer> a = allocate(*device, kBytes),
                          b = allocate(*device, kBytes);
  Floats got(kCount);
  EXPECT_OK(device->fill(one, *a, 0, kBytes, 0));
  std::unique_ptr<Event> event = std::move(*device->createEvent());
  EXPECT_OK(device->record(one, *event));
  EXPECT_OK(device->streamWait(two, *event));
  // Another has the driver's event now, for later work of the first stream.
  event.reset();
  event = std::move(*device->createEvent());
  EXPECT_EQ(device->wait(*event, in(1)).code(), StatusCode::InvalidArgument);
  EXPECT_OK(device->copy(two, *b, 0, *a, 0, kBytes));
  EXPECT_OK(device->record(two, *event));
  EXPECT_OK(device->streamWait(one, *event));
  EXPECT_OK(device->fill(one, *a, 0, kBytes, 1));
  EXPECT_OK(device->copyToHost(two, got.data(), *b, 0, kBytes));
  EXPECT_OK(device->synchronize(two, patienceEnds()));
  EXPECT_EQ(got, Floats(kCount, 0.0f));
}

TEST_P(CudaOrder, AnyThreadMayCall) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &stream = device->stream(CudaStreamRole::Compute);
  Floats first = numbers(1), got(kCount);
  std::unique_ptr<Buffer> a;
  std::thread([&] {
    a = allocate(*device, kBytes);
    EXPECT_OK(device->copyToDevice(stream, *a, 0, first.data(), kBytes));
  }).join();
  EXPECT_OK(device->copyToHost(stream, got.data(), *a, 0, kBytes));
  std::thread([&] {
    EXPECT_OK(device->synchronize(stream, patienceEnds()));
  }).join();
  EXPECT_EQ(got, first);
  std::thread([&] { a.reset(); }).join();
}

TEST_P(CudaOrder, EventsTellTimes) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &stream = device->stream(CudaStreamRole::Compute);
  std::unique_ptr<Buffer> a = allocate(*device, kBytes);
  std::unique_ptr<Event> begin = std::move(*device->createEvent());
  std::unique_ptr<Event> end = std::move(*device->createEvent());
  EXPECT_FALSE(device->secondsBetween(*begin, *end).isOk());
  EXPECT_OK(device->record(stream, *begin));
  EXPECT_OK(device->fill(stream, *a, 0, kBytes, 0));
  EXPECT_OK(device->fill(stream, *a, 0, kBytes, 1));
  EXPECT_OK(device->record(stream, *end));
  EXPECT_OK(device->wait(*end, patienceEnds()));
  StatusOr<double> time = device->secondsBetween(*begin, *end);
  ASSERT_TRUE(time.isOk()) << time.status().message();
  EXPECT_FLOAT_EQ(*time, 3e-3); // the stand-in's time is pieces of work
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_F(CudaDeviceTest, TooLittleMemorySaysWhatIsMissing) {
  settings.set("DYNA_STANDIN_MEMORY", 8 << 20);
  std::unique_ptr<CudaDevice> device = make();
  // With what the device has taken itself.
  std::unique_ptr<Buffer> held =
      allocate(*device, (5 << 20) - device->scratchBytes());
  StatusOr<std::unique_ptr<Buffer>> more = device->allocate(4 << 20);
  ASSERT_FALSE(more.isOk());
  EXPECT_EQ(more.status().code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(
      more.status().message(),
      "4.0 MiB of device memory are needed, but CUDA device 0 (stand-in) has "
      "only 3.0 MiB of 8.0 MiB available, 1.0 MiB are missing; use smaller "
      "micro-batches, more recomputation or fewer samples in flight");
  std::unique_ptr<Buffer> fits = allocate(*device, 2 << 20);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

TEST_F(CudaDeviceTest, TheClosestCodeIsTaken) {
  auto choose = [](std::vector<CudaImage> images, int capability) {
    const CudaImage *chosen = chooseImage(images, capability);
    return chosen ? chosen->capability + (chosen->isPtx ? 1000 : 0) : -1;
  };
  CudaImage sm80 = {80, false, nullptr}, sm86 = {86, false, nullptr},
            sm90 = {90, false, nullptr}, ptx80 = {80, true, nullptr},
            ptx90 = {90, true, nullptr};
  EXPECT_EQ(choose({sm80, sm86, sm90}, 80), 80);
  EXPECT_EQ(choose({sm90, sm86, sm80}, 89), 86);
  EXPECT_EQ(choose({sm80, sm86}, 90), -1) << "of another major one";
  EXPECT_EQ(choose({ptx80, sm86, ptx90}, 90), 1090);
  EXPECT_EQ(choose({ptx80, ptx90}, 86), 1080);
  EXPECT_EQ(choose({ptx90, sm90, ptx80}, 90), 90);
  EXPECT_EQ(choose({sm90, ptx90}, 80), -1) << "of a later one";
  EXPECT_EQ(choose({}, 80), -1);
}

TEST_F(CudaDeviceTest, CodeThatIsNotThereIsRefused) {
  settings.set("DYNA_STANDIN_CAPABILITY", 90);
  std::unique_ptr<CudaDevice> device = make();
  EXPECT_EQ(device->load({{80, false, &image}, {100, true, &image}})
                .status()
                .message(),
            "CUDA device 0 (stand-in) is of architecture sm_90, for which this "
            "program holds no code (it has sm_80, compute_100); compile it "
            "with --arch=sm_90");
  // What is advised is what dynac has.
  for (auto [capability, advice] :
       std::initializer_list<std::pair<int, const char *>>{
           {75, "GPUs before compute capability 8.0 are not supported"},
           {86, "compile it with --arch=sm_80"},
           {89, "compile it with --arch=sm_80"},
           {103, "compile it with --arch=sm_100"},
           {110, "compile it with --arch=sm_100"},
           {121, "compile it with --arch=sm_120"},
           {0, "the stand-in runs what is compiled with --arch=emulated"}}) {
    settings.set("DYNA_STANDIN_CAPABILITY", capability);
    std::unique_ptr<CudaDevice> other = make();
    EXPECT_THAT(other->load(std::vector<CudaImage>()).status().message(),
                testing::EndsWith(advice));
  }
  settings.set("DYNA_STANDIN_CAPABILITY", 90);
  EXPECT_THAT(device->load(std::vector<CudaImage>()).status().message(),
              HasSubstr("it has none"));
  EXPECT_EQ(device->load({{80, true, ".version 8.0"}}).status().message(),
            "CUDA device 0 (stand-in): loading code for compute_80: "
            "CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed): line 1: "
            "the stand-in knows no PTX");
  EXPECT_THAT(device->load({{90, false, "\177ELF"}}).status().message(),
              HasSubstr("loading code for sm_90: CUDA_ERROR_INVALID_IMAGE"));
  StatusOr<std::unique_ptr<CudaModule>> module =
      device->load({{90, false, &image}});
  ASSERT_TRUE(module.isOk()) << module.status().message();
  EXPECT_EQ((*module)->kernel("none").status().message(),
            "CUDA device 0 (stand-in): its code has no kernel none");
  EXPECT_EQ((*module)->kernel("add_scaled", 1 << 20).status().message(),
            "kernel add_scaled needs 1.0 MiB of shared memory, but CUDA device "
            "0 (stand-in) has 227.0 KiB for a block");
  EXPECT_TRUE((*module)->kernel("add_scaled", 100 << 10).isOk());
}

TEST_F(CudaDeviceTest, NoBlocksAreNoWork) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &stream = device->stream(CudaStreamRole::Compute);
  auto handle = static_cast<cuda::StreamHandle>(stream.handle());
  std::unique_ptr<CudaModule> module = std::move(*device->load(images));
  CudaKernel kernel = *module->kernel("add_scaled");
  AddScaled arguments = {};
  EXPECT_OK(
      device->launch(handle, kernel, 0, 32, 0, &arguments, sizeof(arguments)));
  EXPECT_EQ(device
                ->launch(handle, kernel, int64_t(1) << 40, 32, 0, &arguments,
                         sizeof(arguments))
                .code(),
            StatusCode::InvalidArgument);
  EXPECT_OK(device->synchronize(stream, patienceEnds()));
  // The kernel's struct is not of this size.
  isFailed = true;
  EXPECT_THAT(device->launch(handle, kernel, 1, 32, 0, &arguments, 8).message(),
              HasSubstr("launching kernel add_scaled (1 blocks of 32 threads): "
                        "CUDA_ERROR_INVALID_VALUE"));
}

//===----------------------------------------------------------------------===//
// Faults and hangs
//===----------------------------------------------------------------------===//

namespace {

/// Gives six pieces of work on two streams and waits; the first failure.
Status runSix(CudaDevice &device, Device::Deadline deadline) {
  Stream &one = device.stream(CudaStreamRole::Compute);
  Stream &two = device.stream(CudaStreamRole::Upload);
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> a, device.allocate(kBytes));
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> b, device.allocate(kBytes));
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<CudaModule> module,
                        device.load(images));
  DYNA_ASSIGN_OR_RETURN(CudaKernel kernel, module->kernel("add_scaled"));
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device.createEvent());
  // A driver may wait where memory is not page-locked.
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<StagingMemory> host,
                        device.allocateHost(kBytes));
  std::copy_n(numbers(0).data(), kCount, static_cast<float *>(host->data()));
  DYNA_RETURN_IF_ERROR(device.copyToDevice(two, *a, 0, host->data(), kBytes));
  DYNA_RETURN_IF_ERROR(device.fill(two, *b, 0, kBytes, 0));
  DYNA_RETURN_IF_ERROR(device.record(two, *event));
  DYNA_RETURN_IF_ERROR(device.streamWait(one, *event));
  AddScaled arguments = {static_cast<const float *>(a->data()),
                         static_cast<float *>(b->data()), kCount, 1};
  for (int i = 0; i < 2; ++i)
    DYNA_RETURN_IF_ERROR(
        device.launch(static_cast<cuda::StreamHandle>(one.handle()), kernel, 8,
                      128, 0, &arguments, sizeof(arguments)));
  DYNA_RETURN_IF_ERROR(device.copy(one, *a, 0, *b, 0, kBytes));
  DYNA_RETURN_IF_ERROR(device.copyToHost(one, host->data(), *a, 0, kBytes));
  DYNA_RETURN_IF_ERROR(device.record(one, *event));
  return device.wait(*event, deadline);
}

/// Whether every call returns the failure.
void expectGivenUp(CudaDevice &device, const Status &failure) {
  Stream &stream = device.stream(CudaStreamRole::Compute);
  const auto deadline = patienceEnds();
  EXPECT_EQ(device.allocate(64).status().message(), failure.message());
  EXPECT_EQ(device.createStream().status().message(), failure.message());
  EXPECT_EQ(device.createEvent().status().message(), failure.message());
  EXPECT_EQ(device.load(images).status().message(), failure.message());
  EXPECT_EQ(device.synchronize(stream, deadline).message(), failure.message());
  EXPECT_EQ(device.synchronize(stream, deadline).code(), failure.code());
}

} // namespace

TEST_P(CudaOrder, FaultsAreOneLineAndEndTheDevice) {
  for (int number = 1; number <= 6; ++number) {
    settings.set("DYNA_STANDIN_FAULT", number);
    {
      std::unique_ptr<CudaDevice> device = make();
      Status status = runSix(*device, patienceEnds());
      EXPECT_EQ(status.code(), StatusCode::DeviceError) << number;
      EXPECT_THAT(status.message(),
                  AllOf(StartsWith("CUDA device 0 (stand-in): "),
                        HasSubstr(": CUDA_ERROR_ILLEGAL_ADDRESS (an illegal "
                                  "memory access was encountered)")));
      EXPECT_EQ(status.message().find('\n'), std::string::npos);
      expectGivenUp(*device, status);
    }
    standin<void()>("dyna_standin_reset")();
  }
}

TEST_P(CudaOrder, HangsEndByDeadlineAndBlockNothing) {
  for (int number = 1; number <= 6; ++number) {
    settings.set("DYNA_STANDIN_HANG", number);
    {
      std::unique_ptr<CudaDevice> device = make();
      std::unique_ptr<Buffer> held = allocate(*device, 64);
      Status status = runSix(*device, in(0.03));
      EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded) << number;
      EXPECT_THAT(status.message(),
                  AllOf(StartsWith("CUDA device 0 (stand-in): the work before "
                                   "an event: not done by its deadline, "),
                        HasSubstr(" s after it was asked for; the last kernel "
                                  "that was launched there is add_scaled, and "
                                  "one before it may have failed; the device "
                                  "is given up")));
      expectGivenUp(*device, status);
    }
    standin<void()>("dyna_standin_reset")();
  }
}

TEST_P(CudaOrder, FreeingWhatHangsGivesUp) {
  settings.set("DYNA_STANDIN_HANG", 1);
  for (bool streamFirst : {false, true}) {
    std::unique_ptr<CudaDevice> device = make(0, 0.03);
    std::unique_ptr<Stream> stream = std::move(*device->createStream());
    std::unique_ptr<Buffer> a = allocate(*device, kBytes);
    EXPECT_OK(device->fill(*stream, *a, 0, kBytes, 0));
    if (streamFirst)
      stream.reset();
    a.reset(); // the stand-in ends a process that blocks in the driver
    Status status = device->allocate(64).status();
    EXPECT_EQ(status.code(), StatusCode::DeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr("the end of work before something "
                                            "is freed: not done by its"));
    stream.reset();
    device.reset();
    standin<void()>("dyna_standin_reset")();
  }
}

TEST_P(CudaOrder, AKernelThatFailsIsNamed) {
  std::unique_ptr<CudaDevice> device = make();
  Stream &stream = device->stream(CudaStreamRole::Compute);
  std::unique_ptr<CudaModule> module = std::move(*device->load(images));
  CudaKernel kernel = *module->kernel("leave_barrier");
  int64_t arguments = 0;
  EXPECT_OK(device->launch(static_cast<cuda::StreamHandle>(stream.handle()),
                           kernel, 1, 32, 0, &arguments, 8));
  Status status = device->synchronize(stream, patienceEnds());
  EXPECT_EQ(status.message(),
            "CUDA device 0 (stand-in): the work of a stream: "
            "CUDA_ERROR_LAUNCH_FAILED (kernel leave_barrier, block 0 of 1: "
            "threads wait for each other: 31 at a barrier of the block (first: "
            "thread 0), 1 ended (first: thread 3)); the last kernel that "
            "was launched there is leave_barrier, and one before it may have "
            "failed");
  isFailed = true;
}
