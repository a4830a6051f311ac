//===- MatmulPrimitives.cpp - Caches oneDNN's matmul by shape -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/host/MatmulPrimitives.h"

#include "runtime/device/host/HostMemory.h"
#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/OneThread.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace dyna;

//===----------------------------------------------------------------------===//
// OpenMP
//===----------------------------------------------------------------------===//

namespace {

/// Functions of oneDNN's OpenMP runtime. They are looked up among the loaded
/// libraries, so that no other code has to name it. Null if oneDNN was built
/// without OpenMP.
struct OpenMp {
  int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT,
                                                   "omp_get_max_threads"));
  void (*set)(int) = reinterpret_cast<void (*)(int)>(
      dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};

const OpenMp &openMp() {
  static const OpenMp functions;
  return functions;
}

} // namespace

OneThread::OneThread() {
  const OpenMp &omp = openMp();
  if (!omp.get || !omp.set)
    return;
  before_ = omp.get();
  if (before_ != 1)
    omp.set(1);
}

OneThread::~OneThread() {
  if (before_ != 1)
    openMp().set(before_);
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Returns true if there is AMX with bf16 tiles that the system lets programs
/// use.
static bool hasAmx() {
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27)))
    return false; // no XGETBV
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned tileState = 3u << 17;
  if ((low & tileState) != tileState)
    return false;
  constexpr unsigned amxBf16 = 1u << 22, amxTile = 1u << 24;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & amxBf16) &&
         (edx & amxTile);
#else
  return false;
#endif
}

bool dyna::isNativeBf16Faster(const KernelTable &kernels) {
  if (hasAmx())
    return true;
  // The bf16 instruction does twice the work of an f32 one. On some processors
  // it takes the same time, on others four times as long. No processor is near
  // the threshold, so the minimum of a few runs always gives the same decision.
  double f32 = 1, bf16 = 1;
  for (int i = 0; i < 5; ++i) {
    double seconds = kernels.secondsOfBf16(2000);
    if (seconds == 0)
      return false;
    bf16 = std::min(bf16, seconds);
    f32 = std::min(f32, kernels.secondsOfF32(2000));
  }
  return bf16 < 1.5 * f32;
}

std::vector<int64_t> dyna::pieces(int64_t size, int64_t most) {
  std::vector<int64_t> result;
  for (int64_t piece = most; piece >= 32; piece /= 2)
    for (; size >= piece; size -= piece)
      result.push_back(piece);
  if (size > 0)
    result.push_back(size);
  return result;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

struct MatmulPrimitives::Product {
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_desc_t a, b, c, scratch;
  ~Product() {
    if (primitive)
      dnnl_primitive_destroy(primitive);
  }
};

std::unique_ptr<MatmulPrimitives> MatmulPrimitives::create() {
  std::unique_ptr<MatmulPrimitives> products(new MatmulPrimitives());
  if (dnnl_engine_create(&products->engine_, dnnl_cpu, 0) != dnnl_success)
    return nullptr;
  return products;
}

MatmulPrimitives::~MatmulPrimitives() {
  products_.clear();
  if (engine_)
    dnnl_engine_destroy(engine_);
}

static dnnl_memory_desc_t describeMatrix(int64_t rows, int64_t columns,
                                         int64_t stride, bool transposed,
                                         dnnl_data_type_t type) {
  dnnl_memory_desc_t result;
  dnnl_dims_t sizes = {rows, columns};
  dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
  dnnl_memory_desc_init_by_strides(&result, 2, sizes, type, strides);
  return result;
}

static dnnl_primitive_attr_t makeAttributes(bool accumulate) {
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl_primitive_attr_create(&attributes);
  dnnl_primitive_attr_set_scratchpad_mode(attributes,
                                          dnnl_scratchpad_mode_user);
  if (accumulate) {
    dnnl_post_ops_t ops = nullptr;
    dnnl_post_ops_create(&ops);
    dnnl_post_ops_append_sum(ops, 1.0f);
    dnnl_primitive_attr_set_post_ops(attributes, ops);
    dnnl_post_ops_destroy(ops);
  }
  return attributes;
}

/// Returns true if there is memory for code. oneDNN makes code without a check
/// of its allocation. Other ranks of this process may do so at the same time.
static bool hasRoomForCode() {
  constexpr int64_t enough = int64_t(24) << 20;
  int64_t left = availableAddresses();
  return left < 0 || left >= enough;
}

bool MatmulPrimitives::prepare(const Shape &shape) {
  if (auto found = products_.find(shape); found != products_.end())
    return found->second != nullptr;
  lacksMemory_ = !hasRoomForCode();
  if (lacksMemory_)
    return false;
  // One model uses far fewer shapes, so start again instead of growing.
  if (products_.size() >= 4096)
    products_.clear();
  std::unique_ptr<Product> product = make(shape);
  if (product)
    scratchBytes_ = std::max<int64_t>(
        scratchBytes_,
        static_cast<int64_t>(dnnl_memory_desc_get_size(&product->scratch)));
  return products_.emplace(shape, std::move(product)).first->second != nullptr;
}

/// Returns true if oneDNN has its own code for the product. On other processors
/// its f32 primitive calls the same product as sgemm, and costs a primitive for
/// every shape.
static bool multipliesBlocks(const_dnnl_primitive_desc_t description) {
  const char *name = nullptr;
  return dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0,
                                   static_cast<void *>(&name)) ==
             dnnl_success &&
         name && std::strncmp(name, "brg:", 4) == 0;
}

std::unique_ptr<MatmulPrimitives::Product>
MatmulPrimitives::make(const Shape &shape) {
  OneThread single;
  auto product = std::make_unique<Product>();
  bool isF32 = shape.types == Types::F32;
  dnnl_data_type_t operands = isF32 ? dnnl_f32 : dnnl_bf16;
  product->a =
      describeMatrix(shape.m, shape.k, shape.lda, shape.transposeA, operands);
  product->b =
      describeMatrix(shape.k, shape.n, shape.ldb, shape.transposeB, operands);
  product->c =
      describeMatrix(shape.m, shape.n, shape.ldc, false,
                     shape.types == Types::Bf16 ? dnnl_bf16 : dnnl_f32);
  dnnl_matmul_desc_t operation;
  if (dnnl_matmul_desc_init(&operation, &product->a, &product->b, nullptr,
                            &product->c) != dnnl_success)
    return nullptr;
  dnnl_primitive_attr_t attributes = makeAttributes(shape.accumulate);
  dnnl_primitive_desc_t description = nullptr;
  dnnl_status_t status = dnnl_primitive_desc_create(
      &description, &operation, attributes, engine_, nullptr);
  dnnl_primitive_attr_destroy(attributes);
  if (status != dnnl_success)
    return nullptr;
  product->scratch =
      *dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
  bool good =
      (!isF32 || multipliesBlocks(description)) &&
      dnnl_primitive_create(&product->primitive, description) == dnnl_success;
  dnnl_primitive_desc_destroy(description);
  return good ? std::move(product) : nullptr;
}

bool MatmulPrimitives::run(const Shape &shape, const void *a, const void *b,
                           void *c, void *scratch) const {
  auto found = products_.find(shape);
  if (found == products_.end() || !found->second)
    return false;
  const Product &product = *found->second;
  OneThread single;
  dnnl_stream_t stream = nullptr;
  if (dnnl_stream_create(&stream, engine_, dnnl_stream_default_flags) !=
      dnnl_success)
    return false;
  dnnl_exec_arg_t arguments[4] = {{DNNL_ARG_SRC, nullptr},
                                  {DNNL_ARG_WEIGHTS, nullptr},
                                  {DNNL_ARG_DST, nullptr},
                                  {DNNL_ARG_SCRATCHPAD, nullptr}};
  const dnnl_memory_desc_t *layouts[4] = {&product.a, &product.b, &product.c,
                                          &product.scratch};
  void *data[4] = {const_cast<void *>(a), const_cast<void *>(b), c, scratch};
  bool good = true;
  for (int i = 0; i < 4; ++i)
    good = good && dnnl_memory_create(&arguments[i].memory, layouts[i], engine_,
                                      data[i]) == dnnl_success;
  good = good && dnnl_primitive_execute(product.primitive, stream, 4,
                                        arguments) == dnnl_success;
  good = dnnl_stream_wait(stream) == dnnl_success && good;
  for (dnnl_exec_arg_t &argument : arguments)
    if (argument.memory)
      dnnl_memory_destroy(argument.memory);
  dnnl_stream_destroy(stream);
  return good;
}
