//===- CudnnPlan.cpp - Runs attention of one class by cuDNN ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The only source that includes NVIDIA's frontend, which throws; no exception
// leaves this file. The frontend is configured to load libraries at run time,
// and uses our own functions for that. For cuDNN they return the library that
// Cudnn.h opened. They return nothing for CUDA's runtime, which our graphs do
// not need.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/CudnnPlan.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <algorithm>
#include <dlfcn.h>
#include <exception>
#include <unordered_map>
#include <vector>

namespace dyna::cuda {

/// The library that the process has opened (Cudnn::open).
static const Library *frontendLibrary = nullptr;
static void *frontendOpen(const char *, int) { return nullptr; }
static void *frontendFind(void *, const char *symbol) {
  return frontendLibrary ? frontendLibrary->find(symbol) : nullptr;
}

} // namespace dyna::cuda

#define dlopen ::dyna::cuda::frontendOpen
#define dlsym ::dyna::cuda::frontendFind
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define NV_CUDNN_FRONTEND_DISABLE_LOGGING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#undef dlopen
#undef dlsym

namespace cudnn_frontend {
void *cudnn_dlhandle = nullptr; // declared there, and handed to `frontendFind`
}

namespace fe = cudnn_frontend;
using namespace dyna;
using namespace dyna::cuda;

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

/// Returns cuDNN's messages in one line; it has one for each engine that it has
/// tried.
static std::string lineOf(std::string text) {
  constexpr size_t kLongest = 400;
  if (text.size() > kLongest)
    text.replace(kLongest, std::string::npos, "...");
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.replace(at, 1, "; ");
  return printable(text);
}

/// Calls what may throw; `code` for what it throws and for errors it returns.
template <typename F>
static Status guarded(StatusCode code, const char *what, F call) {
  try {
    fe::error_t error = call();
    if (error.is_good())
      return Status::ok();
    return Status(code,
                  formatText("%s: %s", what, lineOf(error.get_message())));
  } catch (const std::exception &thrown) {
    return Status(code, formatText("%s: %s", what, lineOf(thrown.what())));
  }
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

struct CudnnDevice::State {
  State(const Cudnn &cudnn, int capability)
      : library(cudnn.library), capability(capability) {
    static const Library opened = library; // stays when all devices are gone
    frontendLibrary = &opened;
  }

  Library library;
  int capability;
  cudnnHandle_t handle = nullptr;                ///< null: plans cannot run
  decltype(cudnnSetStream) *setStream = nullptr; ///< set if there is a handle
  std::shared_ptr<fe::DeviceProperties> properties;

  template <typename Function> Function *find(const char *symbol) const {
    return reinterpret_cast<Function *>(library.find(symbol));
  }
  Status check(cudnnStatus_t status, const char *what) const {
    if (status == CUDNN_STATUS_SUCCESS)
      return Status::ok();
    auto *name = find<const char *(cudnnStatus_t)>("cudnnGetErrorString");
    return Status::deviceError(
        formatText("%s: %s", what, name ? name(status) : "no reason given"));
  }
};

CudnnDevice::CudnnDevice() = default;

CudnnDevice::~CudnnDevice() {
  if (!state_ || !state_->handle)
    return;
  state_->properties.reset();
  if (auto *destroy = state_->find<decltype(cudnnDestroy)>("cudnnDestroy"))
    (void)destroy(state_->handle);
}

StatusOr<std::unique_ptr<CudnnDevice>> CudnnDevice::create(const Cudnn &cudnn,
                                                           int capability) {
  std::unique_ptr<CudnnDevice> made(new CudnnDevice());
  made->state_.reset(new State(cudnn, capability));
  State &state = *made->state_;
  auto *create = state.find<decltype(cudnnCreate)>("cudnnCreate");
  state.setStream = state.find<decltype(cudnnSetStream)>("cudnnSetStream");
  if (!create || !state.setStream)
    return Status::invalidArgument("cuDNN lacks cudnnCreate or cudnnSetStream");
  DYNA_RETURN_IF_ERROR(state.check(create(&state.handle), "starting cuDNN"));
  DYNA_RETURN_IF_ERROR(
      guarded(StatusCode::DeviceError, "asking cuDNN for the device", [&] {
        state.properties = std::make_shared<fe::DeviceProperties>();
        return state.properties->set_handle(state.handle).build();
      }));
  return made;
}

StatusOr<std::unique_ptr<CudnnDevice>>
CudnnDevice::createFrom(const Cudnn &cudnn, const std::string &properties,
                        int capability) {
  std::unique_ptr<CudnnDevice> made(new CudnnDevice());
  made->state_.reset(new State(cudnn, capability));
  State &state = *made->state_;
  DYNA_RETURN_IF_ERROR(
      guarded(StatusCode::InvalidArgument, "properties of a device", [&] {
        state.properties = std::make_shared<fe::DeviceProperties>();
        return state.properties->deserialize(
            std::vector<uint8_t>(properties.begin(), properties.end()));
      }));
  return made;
}

StatusOr<std::string> CudnnDevice::properties() const {
  std::vector<uint8_t> text;
  DYNA_RETURN_IF_ERROR(
      guarded(StatusCode::DeviceError, "properties of a device",
              [&] { return state_->properties->serialize(text); }));
  return std::string(text.begin(), std::find(text.begin(), text.end(), 0));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Attributes = fe::graph::Tensor_attributes;

class GraphMaker {
public:
  GraphMaker(fe::graph::Graph &graph, const AttentionClass &shape)
      : graph_(graph), shape_(shape) {}

  void makeForward() {
    Tensor q = queries(kCudnnQ, gpu::kTableQ), k = keys(kCudnnK, gpu::kTableK),
           v = keys(kCudnnV, gpu::kTableV), lengths = this->lengths();
    auto attributes = fe::graph::SDPA_attributes();
    attributes.set_name("attention")
        .set_generate_stats(true)
        .set_attn_scale(static_cast<float>(shape_.scale))
        .set_padding_mask(true)
        .set_seq_len_q(lengths)
        .set_seq_len_kv(lengths);
    if (shape_.causal)
      attributes.set_causal_mask(true);
    auto [out, lse] = graph_.sdpa(q, k, v, std::move(attributes));
    shapeRows(*out, shape_.heads, shape_.headDim, kCudnnOut, gpu::kTableOut);
    shapeSums(*lse);
    out->set_output(true);
    lse->set_output(true);
  }

  void makeGradient() {
    Tensor q = queries(kCudnnQ, gpu::kTableQ), k = keys(kCudnnK, gpu::kTableK),
           v = keys(kCudnnV, gpu::kTableV),
           out = queries(kCudnnOut, gpu::kTableOut),
           dout = queries(kCudnnDout, gpu::kTableOut),
           lengths = this->lengths();
    Attributes sums;
    shapeSums(sums);
    Tensor lse = graph_.tensor(sums);
    auto attributes = fe::graph::SDPA_backward_attributes();
    attributes.set_name("attention_grad")
        .set_attn_scale(static_cast<float>(shape_.scale))
        .set_padding_mask(true)
        .set_seq_len_q(lengths)
        .set_seq_len_kv(lengths)
        .set_max_total_seq_len_q(shape_.tokens)
        .set_max_total_seq_len_kv(shape_.tokens)
        .set_deterministic_algorithm(shape_.isOrdered);
    if (shape_.causal)
      attributes.set_causal_mask(true);
    auto [dq, dk, dv] =
        graph_.sdpa_backward(q, k, v, out, dout, lse, std::move(attributes));
    shapeRows(*dq, shape_.heads, shape_.headDim, kCudnnDq, gpu::kTableDq);
    shapeRows(*dk, shape_.kvHeads, shape_.headDim, kCudnnDk, gpu::kTableDk);
    shapeRows(*dv, shape_.kvHeads, shape_.headDim, kCudnnDv, gpu::kTableDv);
    for (const Tensor &gradient : {dq, dk, dv})
      gradient->set_output(true);
  }

private:
  Tensor queries(CudnnTensor number, gpu::AttentionTable table) {
    Attributes rows;
    shapeRows(rows, shape_.heads, shape_.headDim, number, table);
    return graph_.tensor(rows);
  }
  Tensor keys(CudnnTensor number, gpu::AttentionTable table) {
    Attributes rows;
    shapeRows(rows, shape_.kvHeads, shape_.headDim, number, table);
    return graph_.tensor(rows);
  }

  /// Describes rows with their heads side by side. `table` holds the beginnings
  /// of the segments.
  void shapeRows(Attributes &tensor, int64_t heads, int64_t headDim,
                 CudnnTensor number, gpu::AttentionTable table) {
    const int64_t row = shape_.strides[table];
    tensor.set_uid(number)
        .set_data_type(fe::DataType_t::BFLOAT16)
        .set_dim({shape_.segments, heads, shape_.longest, headDim})
        .set_stride({shape_.longest * row, headDim, row, 1})
        .set_ragged_offset(this->table(table));
  }
  void shapeSums(Attributes &tensor) {
    tensor.set_uid(kCudnnLse)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape_.segments, shape_.heads, shape_.longest, 1})
        .set_stride({shape_.longest * shape_.heads, 1, shape_.heads, 1})
        .set_ragged_offset(table(gpu::kTableLse));
  }

  Tensor table(gpu::AttentionTable which) {
    Tensor &made = tables_[which];
    if (!made)
      made = graph_.tensor(column(kCudnnTables + which, shape_.segments + 1,
                                  fe::DataType_t::INT64));
    return made;
  }
  Tensor lengths() {
    return graph_.tensor(
        column(kCudnnLengths, shape_.segments, fe::DataType_t::INT32));
  }
  static Attributes column(int64_t number, int64_t size, fe::DataType_t type) {
    Attributes tensor;
    tensor.set_uid(number).set_data_type(type);
    tensor.set_dim({size, 1, 1, 1}).set_stride({1, 1, 1, 1});
    return tensor;
  }

  fe::graph::Graph &graph_;
  const AttentionClass &shape_;
  Tensor tables_[gpu::kAttentionTables];
};

} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

struct CudnnPlan::State {
  fe::graph::Graph graph;
  std::unordered_map<int64_t, void *> addresses; ///< of a call: always the same
                                                 ///< tensors
};

CudnnPlan::CudnnPlan() : state_(new State) {}
CudnnPlan::~CudnnPlan() = default;

StatusOr<std::unique_ptr<CudnnPlan>>
CudnnPlan::make(const CudnnDevice &device, const AttentionClass &shape) {
  std::unique_ptr<CudnnPlan> made(new CudnnPlan());
  fe::graph::Graph &graph = made->state_->graph;
  auto build = [&]() -> fe::error_t {
    // Tensors take these over when they are made.
    graph.set_sm_version(device.state().capability)
        .set_device_properties(device.state().properties)
        .set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    // No stream is captured, and only CUDA's runtime library could test for it.
    graph.set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
    GraphMaker maker(graph, shape);
    if (shape.isGradient)
      maker.makeGradient();
    else
      maker.makeForward();
    for (auto step :
         {+[](fe::graph::Graph &g) { return g.validate(); },
          +[](fe::graph::Graph &g) { return g.build_operation_graph(); },
          +[](fe::graph::Graph &g) {
            return g.create_execution_plans({fe::HeurMode_t::A});
          },
          +[](fe::graph::Graph &g) { return g.check_support(); },
          +[](fe::graph::Graph &g) { return g.build_plans(); }})
      if (fe::error_t error = step(graph); error.is_bad())
        return error;
    if (fe::error_t error = graph.get_plan_name(made->engine_); error.is_bad())
      return error;
    return graph.get_workspace_size(made->workspaceBytes_);
  };
  DYNA_RETURN_IF_ERROR(
      guarded(StatusCode::InvalidArgument, shape.text().c_str(), build));
  return made;
}

Status CudnnPlan::run(const CudnnDevice &device,
                      const AttentionTensors &tensors, void *workspace,
                      StreamHandle stream) {
  const CudnnDevice::State &on = device.state();
  if (!on.handle)
    return Status::invalidArgument("a plan for a device that is not here");
  DYNA_RETURN_IF_ERROR(
      on.check(on.setStream(on.handle, reinterpret_cast<cudaStream_t>(stream)),
               "giving cuDNN a stream"));
  std::unordered_map<int64_t, void *> &at = state_->addresses;
  auto give = [&](int64_t number, const void *address) {
    if (address)
      at[number] = const_cast<void *>(address);
  };
  give(kCudnnQ, tensors.q), give(kCudnnK, tensors.k), give(kCudnnV, tensors.v);
  give(kCudnnOut, tensors.out), give(kCudnnLse, tensors.lse),
      give(kCudnnDout, tensors.dout);
  give(kCudnnDq, tensors.dq), give(kCudnnDk, tensors.dk),
      give(kCudnnDv, tensors.dv);
  give(kCudnnLengths, tensors.lengths);
  for (int64_t table = 0; table < gpu::kAttentionTables; ++table)
    give(kCudnnTables + table, tensors.tables[table]);
  return guarded(StatusCode::DeviceError, "attention by cuDNN", [&] {
    return state_->graph.execute(on.handle, at, workspace);
  });
}
