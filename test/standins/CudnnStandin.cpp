//===- CudnnStandin.cpp - cuDNN, whose plans run without a GPU --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `standins/cudnn/libcudnn.so.9` of the build folder, where there is a cuDNN: all calls
// go to the real library, which checks graphs and makes plans, for the device of
// DYNA_STANDIN_PROPERTIES. What is missing there, a device, is here: handles, and the
// execution of plans. Of a plan it is known what was said of its tensors and masks
// before it was made; from that, loops over segments compute what attention is, late,
// as a kernel of the driver's stand-in. The workspace is overwritten meanwhile.
//
// It knows attention as CudnnPlan.cpp describes it, and its numbers of tensors.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/CudnnPlan.h"
#include "runtime/device/cuda/driver/DriverApi.h"
#include "test/standins/Fibers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cudnn.h>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dyna::cuda;

// The library's own name of what it gives out.
struct cudnnContext {
  cudaStream_t stream = nullptr;
  Module module = nullptr;
  Function function = nullptr;
};

namespace {

//===----------------------------------------------------------------------===//
// The real library, and the driver's stand-in
//===----------------------------------------------------------------------===//

template <typename F> F *real(const char *name) {
  static void *library = dlopen(DYNA_CUDNN_FOLDER "/libcudnn.so.9", RTLD_NOW);
  return library ? reinterpret_cast<F *>(dlsym(library, name)) : nullptr;
}
#define DYNA_REAL(function) real<decltype(function)>(#function)

struct Driver {
  decltype(&dlsym) find = dlsym;
  void *library = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);

#define DYNA_STANDIN_MEMBER(member, symbol, ...)                               \
  using member##_type = __VA_ARGS__;                                           \
  member##_type *member =                                                      \
      reinterpret_cast<member##_type *>(find(library, #symbol));
  DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_STANDIN_MEMBER)
  int32_t (*holds)(const void *, size_t) =
      reinterpret_cast<int32_t (*)(const void *, size_t)>(
          find(library, "dyna_standin_holds"));
};
const Driver &driver() {
  static const Driver only;
  return only;
}

//===----------------------------------------------------------------------===//
// What was described
//===----------------------------------------------------------------------===//

struct Described {
  int64_t number = 0;
  std::vector<int64_t> dims, strides;
  cudnnBackendDescriptor_t offsets = nullptr;
  bool isByValue = false;
};

/// Of one graph: what is described between two plans.
struct Graph {
  std::map<cudnnBackendDescriptor_t, Described> tensors;
  bool isCausal = false;

  const Described *find(int64_t number) const {
    for (const auto &[descriptor, tensor] : tensors)
      if (tensor.number == number)
        return &tensor;
    return nullptr;
  }
};

struct Pack {
  std::vector<int64_t> numbers;
  std::vector<void *> addresses;
  void *workspace = nullptr;
};

struct Known {
  Graph graph; ///< that is being described
  bool isPlanned = false;
  std::map<cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t> types;
  std::map<cudnnBackendDescriptor_t, std::shared_ptr<const Graph>> plans;
  std::map<cudnnBackendDescriptor_t, Pack> packs;
};
Known &known() {
  static auto *only = new Known; // used until the process ends
  return *only;
}

template <typename T> std::vector<T> listOf(const void *data, int64_t count) {
  const T *first = static_cast<const T *>(data);
  return std::vector<T>(first, first + count);
}

void noteTensor(Described &tensor, cudnnBackendAttributeName_t name,
                int64_t count, const void *data) {
  switch (name) {
  case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    tensor.number = *static_cast<const int64_t *>(data);
    break;
  case CUDNN_ATTR_TENSOR_DIMENSIONS:
    tensor.dims = listOf<int64_t>(data, count);
    break;
  case CUDNN_ATTR_TENSOR_STRIDES:
    tensor.strides = listOf<int64_t>(data, count);
    break;
  case CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC:
    tensor.offsets = *static_cast<const cudnnBackendDescriptor_t *>(data);
    break;
  case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
    tensor.isByValue = *static_cast<const bool *>(data);
    break;
  default:
    break;
  }
}

void notePack(Pack &pack, cudnnBackendAttributeName_t name, int64_t count,
              const void *data) {
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
    pack.numbers = listOf<int64_t>(data, count);
  else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
    pack.addresses = listOf<void *>(data, count);
  else if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE)
    pack.workspace = *static_cast<void *const *>(data);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// One execution; freed when it has run.
struct Work {
  Graph graph;
  std::weak_ptr<const Graph> plan; ///< whose kernels go with it
  std::map<int64_t, void *> addresses;
  void *workspace;
  size_t workspaceBytes;
  double scale = 0;
};

float widen(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}
uint16_t narrow(double value) {
  const float single = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (!std::isnan(single))
    bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

[[noreturn]] void refuse(const std::string &why) {
  dyna_emulated_trap(("cuDNN's stand-in: " + why).c_str());
  std::abort();
}

/// A tensor of ragged rows. Tables are read at once: the workspace is overwritten.
struct Rows {
  Rows(const Work &work, int64_t number, const std::vector<int32_t> &lengths) {
    const Described *tensor = work.graph.find(number);
    if (!tensor || work.addresses.count(number) == 0)
      refuse("there is no tensor " + std::to_string(number));
    dims = tensor->dims, strides = tensor->strides;
    if (strides[3] != 1) { // products take k, or v, transposed
      std::swap(dims[2], dims[3]);
      std::swap(strides[2], strides[3]);
    }
    data = static_cast<char *>(work.addresses.at(number));
    auto table = work.graph.tensors.find(tensor->offsets);
    if (table == work.graph.tensors.end())
      refuse("tensor " + std::to_string(number) + " has no offsets");
    const auto *from =
        static_cast<const int64_t *>(work.addresses.at(table->second.number));
    offsets.assign(from, from + lengths.size() + 1);
    for (size_t i = 0; i < lengths.size(); ++i)
      if (offsets[i + 1] - offsets[i] != lengths[i] * strides[2] ||
          lengths[i] < 0 || lengths[i] > dims[2])
        refuse("segment " + std::to_string(i) + " of tensor " +
               std::to_string(number) + " does not lie where its table says");
  }

  int64_t at(int64_t segment, int64_t head, int64_t row, int64_t i) const {
    return offsets[segment] + head * strides[1] + row * strides[2] +
           i * strides[3];
  }
  uint16_t *narrowAt(int64_t segment, int64_t head, int64_t row) const {
    return reinterpret_cast<uint16_t *>(data) + at(segment, head, row, 0);
  }
  float &sumAt(int64_t segment, int64_t head, int64_t row) const {
    return reinterpret_cast<float *>(data)[at(segment, head, row, 0)];
  }

  std::vector<int64_t> dims, strides, offsets;
  char *data;
};

double dot(const uint16_t *a, const uint16_t *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += double(widen(a[i])) * double(widen(b[i]));
  return sum;
}

/// Scores of one query, of the keys that it sees.
std::vector<double> scoresOf(const Work &work, const Rows &q, const Rows &k,
                             int64_t segment, int64_t head, int64_t row,
                             int64_t length) {
  const int64_t seen = work.graph.isCausal ? row + 1 : length;
  const int64_t keyHead = head / (q.dims[1] / k.dims[1]);
  std::vector<double> scores(static_cast<size_t>(seen));
  for (int64_t j = 0; j < seen; ++j)
    scores[j] = work.scale * dot(q.narrowAt(segment, head, row),
                                 k.narrowAt(segment, keyHead, j), q.dims[3]);
  return scores;
}

template <typename Body>
void forQueries(const Rows &q, const std::vector<int32_t> &lengths, Body body) {
  for (size_t segment = 0; segment < lengths.size(); ++segment)
    for (int64_t head = 0; head < q.dims[1]; ++head)
      for (int64_t row = 0; row < lengths[segment]; ++row)
        body(static_cast<int64_t>(segment), head, row, lengths[segment]);
}

void forward(const Work &work, const std::vector<int32_t> &lengths) {
  const Rows q(work, kCudnnQ, lengths), k(work, kCudnnK, lengths),
      v(work, kCudnnV, lengths), out(work, kCudnnOut, lengths),
      lse(work, kCudnnLse, lengths);
  memset(work.workspace, 0xff, work.workspaceBytes);
  forQueries(q, lengths,
             [&](int64_t segment, int64_t head, int64_t row, int64_t length) {
               std::vector<double> weights =
                   scoresOf(work, q, k, segment, head, row, length);
               const double most =
                   *std::max_element(weights.begin(), weights.end());
               double total = 0;
               for (double &weight : weights)
                 total += weight = std::exp(weight - most);
               lse.sumAt(segment, head, row) =
                   static_cast<float>(most + std::log(total));
               const int64_t keyHead = head / (q.dims[1] / k.dims[1]);
               std::vector<double> sums(static_cast<size_t>(q.dims[3]));
               for (size_t j = 0; j < weights.size(); ++j) {
                 const uint16_t *value =
                     v.narrowAt(segment, keyHead, int64_t(j));
                 for (size_t i = 0; i < sums.size(); ++i)
                   sums[i] += weights[j] / total * double(widen(value[i]));
               }
               std::transform(sums.begin(), sums.end(),
                              out.narrowAt(segment, head, row), narrow);
             });
}

void gradient(const Work &work, const std::vector<int32_t> &lengths) {
  const Rows q(work, kCudnnQ, lengths), k(work, kCudnnK, lengths),
      v(work, kCudnnV, lengths), out(work, kCudnnOut, lengths),
      lse(work, kCudnnLse, lengths), dout(work, kCudnnDout, lengths),
      dq(work, kCudnnDq, lengths), dk(work, kCudnnDk, lengths),
      dv(work, kCudnnDv, lengths);
  memset(work.workspace, 0xff, work.workspaceBytes);
  // By the places of keys, which are those of their gradients in dk and dv.
  std::map<std::pair<const Rows *, int64_t>, double> sums;
  const int64_t width = q.dims[3];
  forQueries(
      q, lengths,
      [&](int64_t segment, int64_t head, int64_t row, int64_t length) {
        std::vector<double> scores =
            scoresOf(work, q, k, segment, head, row, length);
        const int64_t keyHead = head / (q.dims[1] / k.dims[1]);
        const uint16_t *dy = dout.narrowAt(segment, head, row);
        const double delta = dot(out.narrowAt(segment, head, row), dy, width);
        std::vector<double> query(static_cast<size_t>(width));
        for (size_t j = 0; j < scores.size(); ++j) {
          const auto keyRow = static_cast<int64_t>(j);
          const double weight =
              std::exp(scores[j] - double(lse.sumAt(segment, head, row)));
          const double slope =
              work.scale * weight *
              (dot(dy, v.narrowAt(segment, keyHead, keyRow), width) - delta);
          const uint16_t *key = k.narrowAt(segment, keyHead, keyRow);
          const uint16_t *own = q.narrowAt(segment, head, row);
          for (int64_t i = 0; i < width; ++i) {
            query[i] += slope * double(widen(key[i]));
            sums[{&dk, dk.at(segment, keyHead, keyRow, i)}] +=
                slope * double(widen(own[i]));
            sums[{&dv, dv.at(segment, keyHead, keyRow, i)}] +=
                weight * double(widen(dy[i]));
          }
        }
        std::transform(query.begin(), query.end(),
                       dq.narrowAt(segment, head, row), narrow);
      });
  for (const auto &[place, sum] : sums)
    reinterpret_cast<uint16_t *>(place.first->data)[place.second] = narrow(sum);
}

struct Arguments {
  Work *work;
};

void run(const void *arguments) {
  std::unique_ptr<Work> work(static_cast<const Arguments *>(arguments)->work);
  if (work->plan.expired())
    refuse("a plan that was destroyed before it ran");
  const Described *q = work->graph.find(kCudnnQ);
  if (!q || work->addresses.count(kCudnnLengths) == 0)
    refuse("a plan that is none of attention over segments");
  const auto *from =
      static_cast<const int32_t *>(work->addresses.at(kCudnnLengths));
  const std::vector<int32_t> lengths(from, from + q->dims[0]);
  // The frontend gives numbers that are free to tensors of its own.
  const Described *dout = work->graph.find(kCudnnDout);
  if (dout && dout->offsets)
    gradient(*work, lengths);
  else
    forward(*work, lengths);
}

const dyna_emulated_entry entries[] = {
    {"standin_attention", run, sizeof(Arguments)}};
const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image), 1,
                                   entries, dyna_emulated_run};

} // namespace

//===----------------------------------------------------------------------===//
// The library's interface
//===----------------------------------------------------------------------===//

#define DYNA_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

DYNA_STANDIN_EXPORT size_t cudnnGetVersion(void) {
  return DYNA_REAL(cudnnGetVersion)();
}
DYNA_STANDIN_EXPORT const char *cudnnGetErrorString(cudnnStatus_t status) {
  return DYNA_REAL(cudnnGetErrorString)(status);
}
DYNA_STANDIN_EXPORT void cudnnGetLastErrorString(char *text, size_t bytes) {
  DYNA_REAL(cudnnGetLastErrorString)(text, bytes);
}

DYNA_STANDIN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  // What the real library opens by this name.
  static void *named = dlopen(DYNA_STANDINS "/named/libcuda.so.1", RTLD_NOW);
  auto made = std::make_unique<cudnnContext>();
  if (!named ||
      driver().loadModule(&made->module, &image, 0, nullptr, nullptr) !=
          kSuccess ||
      driver().findFunction(&made->function, made->module, entries[0].name) !=
          kSuccess)
    return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = made.release();
  return CUDNN_STATUS_SUCCESS;
}
DYNA_STANDIN_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  (void)driver().unloadModule(handle->module);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
DYNA_STANDIN_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle,
                                                 cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
DYNA_STANDIN_EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle,
                                                 cudaStream_t *stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

DYNA_STANDIN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  Known &all = known();
  cudnnStatus_t status =
      DYNA_REAL(cudnnBackendCreateDescriptor)(type, descriptor);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  all.types[*descriptor] = type;
  if (type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    if (std::exchange(all.isPlanned, false))
      all.graph = Graph();
    all.graph.tensors[*descriptor] = {};
  } else if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    all.packs[*descriptor] = {};
  }
  return status;
}

DYNA_STANDIN_EXPORT cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  known().types.erase(descriptor);
  known().plans.erase(descriptor);
  known().packs.erase(descriptor);
  return DYNA_REAL(cudnnBackendDestroyDescriptor)(descriptor);
}

DYNA_STANDIN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(
    cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t count, const void *data) {
  Known &all = known();
  if (name == CUDNN_ATTR_DEVICEPROP_DEVICE_ID)
    return CUDNN_STATUS_SUCCESS; // with the handle
  if (name == CUDNN_ATTR_DEVICEPROP_HANDLE) {
    std::ifstream file(DYNA_STANDIN_PROPERTIES);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return DYNA_REAL(cudnnBackendSetAttribute)(
        descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
        static_cast<int64_t>(text.size()), text.data());
  }
  auto found = all.types.find(descriptor);
  if (found != all.types.end() && data) {
    if (found->second == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      noteTensor(all.graph.tensors[descriptor], name, count, data);
    if (found->second == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
      notePack(all.packs[descriptor], name, count, data);
    // The pattern compares indices of rows and columns, of a causal mask alone.
    if (name == CUDNN_ATTR_POINTWISE_MODE &&
        *static_cast<const cudnnPointwiseMode_t *>(data) ==
            CUDNN_POINTWISE_CMP_GE)
      all.graph.isCausal = true;
  }
  return DYNA_REAL(cudnnBackendSetAttribute)(descriptor, name, type, count,
                                             data);
}

DYNA_STANDIN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(
    cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t most, int64_t *count,
    void *data) {
  return DYNA_REAL(cudnnBackendGetAttribute)(descriptor, name, type, most,
                                             count, data);
}

DYNA_STANDIN_EXPORT cudnnStatus_t
cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Known &all = known();
  auto found = all.types.find(descriptor);
  if (found != all.types.end() &&
      found->second == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return CUDNN_STATUS_SUCCESS; // it would look at addresses with the driver
  cudnnStatus_t status = DYNA_REAL(cudnnBackendFinalize)(descriptor);
  if (status == CUDNN_STATUS_SUCCESS && found != all.types.end() &&
      found->second == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    all.plans[descriptor] = std::make_shared<const Graph>(all.graph);
    all.isPlanned = true;
  }
  return status;
}

DYNA_STANDIN_EXPORT cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                    cudnnBackendDescriptor_t variantPack) {
  Known &all = known();
  auto planned = all.plans.find(plan);
  auto packed = all.packs.find(variantPack);
  if (planned == all.plans.end() || packed == all.packs.end())
    return CUDNN_STATUS_BAD_PARAM;
  const Pack &pack = packed->second;
  auto work = std::make_unique<Work>();
  work->graph = *planned->second;
  work->plan = planned->second;
  for (size_t i = 0; i < pack.numbers.size(); ++i) {
    const Described *tensor = work->graph.find(pack.numbers[i]);
    if (!tensor)
      return CUDNN_STATUS_BAD_PARAM;
    work->addresses[pack.numbers[i]] = pack.addresses[i];
    // The factor of scores; beside it there are those of hidden ones, infinite, and of
    // dropout, 1.
    if (tensor->isByValue) {
      const double value = double(*static_cast<float *>(pack.addresses[i]));
      if (std::isfinite(value) && (work->scale == 0 || value != 1))
        work->scale = value;
    } else if (!driver().holds(pack.addresses[i], 1)) {
      return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
  }
  int64_t bytes = 0, count = 0;
  if (DYNA_REAL(cudnnBackendGetAttribute)(
          plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
          &count, &bytes) != CUDNN_STATUS_SUCCESS ||
      !driver().holds(pack.workspace, static_cast<size_t>(bytes)) ||
      reinterpret_cast<uintptr_t>(pack.workspace) % 16 != 0)
    return CUDNN_STATUS_BAD_PARAM;
  const auto *begin = static_cast<const char *>(pack.workspace);
  for (const auto &[number, address] : work->addresses)
    if (address >= begin && address < begin + bytes)
      return CUDNN_STATUS_BAD_PARAM; // a tensor in the engine's own memory
  work->workspace = pack.workspace;
  work->workspaceBytes = static_cast<size_t>(bytes);
  Arguments arguments = {work.get()};
  size_t argumentBytes = sizeof(arguments);
  void *extra[] = {kLaunchBuffer, &arguments, kLaunchBufferBytes,
                   &argumentBytes, kLaunchEnd};
  if (driver().launchKernel(handle->function, 1, 1, 1, 1, 1, 1, 0,
                            reinterpret_cast<StreamHandle>(handle->stream),
                            nullptr, extra) != kSuccess)
    return CUDNN_STATUS_EXECUTION_FAILED;
  (void)work.release();
  return CUDNN_STATUS_SUCCESS;
}
