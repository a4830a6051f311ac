//===- TestKernels.cpp - Stand-ins for the host's kernels -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/codegen/cpu/CompiledFunction.h"

#include <cstring>

using namespace dyna::test;

KernelLog &dyna::test::kernelLog() {
  static KernelLog log;
  return log;
}

/// Chunks run last to first: their order must not matter.
static void runChunks(dyna_rows_body body, const void *args, int64_t rows,
                      int64_t minRows) {
  int64_t size = dyna_chunk_rows(rows, minRows);
  for (int64_t chunk = dyna_chunk_count(rows, minRows) - 1; chunk >= 0; --chunk)
    body(args, chunk * size, std::min(rows, (chunk + 1) * size), chunk);
}

static dyna_status launch(dyna_context *, dyna_rows_body body, const void *args,
                          int64_t argsBytes, int64_t rows, int64_t minRows) {
  KernelLog &log = kernelLog();
  if (log.launches++ == log.failingLaunch)
    return DYNA_DEVICE_ERROR;
  // Only what was announced may be read.
  std::vector<uint64_t> copy((argsBytes + 7) / 8);
  if (argsBytes > 0)
    std::memcpy(copy.data(), args, argsBytes);
  runChunks(body, copy.data(), rows, minRows);
  return DYNA_OK;
}

static double read(const void *data, Element element, int64_t index) {
  if (element == Element::F64)
    return static_cast<const double *>(data)[index];
  if (element == Element::F32)
    return static_cast<const float *>(data)[index];
  uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

static void write(void *data, Element element, int64_t index, double number) {
  if (element == Element::F64) {
    static_cast<double *>(data)[index] = number;
    return;
  }
  float value = static_cast<float>(number);
  if (element == Element::F32) {
    static_cast<float *>(data)[index] = value;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits += 0x7FFF + (bits >> 16 & 1);
  static_cast<uint16_t *>(data)[index] = bits >> 16;
}

template <Element input, Element output>
static dyna_status matmul(dyna_context *, const dyna_matmul *p) {
  kernelLog().matmul.push_back(*p);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      int64_t at = i * p->ldc + j;
      double sum = p->accumulate ? read(p->c, output, at) : 0.0;
      for (int64_t l = 0; l < p->k; ++l)
        sum +=
            read(p->a, input,
                 p->transpose_a ? l * p->lda + i : i * p->lda + l) *
            read(p->b, input, p->transpose_b ? j * p->ldb + l : l * p->ldb + j);
      write(p->c, output, at, sum);
    }
  if (p->epilogue)
    runChunks(p->epilogue, p->epilogue_args, p->m, p->epilogue_min_rows);
  return DYNA_OK;
}

static dyna_status attention(dyna_context *, const dyna_attention *fields) {
  kernelLog().attention.push_back(*fields);
  return DYNA_OK;
}

static dyna_status attentionGrad(dyna_context *,
                                 const dyna_attention_grad *fields) {
  kernelLog().attentionGrad.push_back(*fields);
  return DYNA_OK;
}

static dyna_status head(dyna_context *, const dyna_head *fields) {
  kernelLog().head.push_back(*fields);
  return DYNA_OK;
}

template <typename Index>
static dyna_status checkRows(dyna_context *, const Index *indices,
                             int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= rows)
      return DYNA_INVALID_ARGUMENT;
  return DYNA_OK;
}

/// Nothing is exchanged.
template <int number>
static dyna_status collective(dyna_context *, const dyna_collective *fields) {
  const char *names[] = {"all_reduce", "all_gather", "reduce_scatter", "slice"};
  kernelLog().collectives.push_back({names[number], *fields});
  return DYNA_OK;
}

static dyna_status allToAll(dyna_context *, const dyna_transposition *fields) {
  kernelLog().transpositions.push_back(*fields);
  return DYNA_OK;
}

static dyna_status exchangeAll(dyna_context *, const dyna_exchange *exchanges,
                               int64_t count) {
  kernelLog().exchanges.emplace_back(exchanges, exchanges + count);
  return DYNA_OK;
}

Kernels dyna::test::testKernels() {
  auto address = [](auto *function) {
    return reinterpret_cast<void *>(function);
  };
  return {
      {"dyna_launch", address(launch)},
      {"dyna_check_ids", address(checkRows<int32_t>)},
      {"dyna_check_positions", address(checkRows<int64_t>)},
      {"dyna_matmul_f32", address(matmul<Element::F32, Element::F32>)},
      {"dyna_matmul_bf16", address(matmul<Element::BF16, Element::BF16>)},
      {"dyna_matmul_bf16_f32", address(matmul<Element::BF16, Element::F32>)},
      {"dyna_attention_f32", address(attention)},
      {"dyna_attention_f64", address(attention)},
      {"dyna_attention_bf16", address(attention)},
      {"dyna_attention_grad_f32", address(attentionGrad)},
      {"dyna_attention_grad_f64", address(attentionGrad)},
      {"dyna_attention_grad_bf16", address(attentionGrad)},
      {"dyna_head_f32", address(head)},
      {"dyna_head_f64", address(head)},
      {"dyna_head_bf16", address(head)},
      {"dyna_all_reduce", address(collective<0>)},
      {"dyna_all_gather", address(collective<1>)},
      {"dyna_reduce_scatter", address(collective<2>)},
      {"dyna_slice", address(collective<3>)},
      {"dyna_all_to_all", address(allToAll)},
      {"dyna_exchange_all", address(exchangeAll)},
  };
}
