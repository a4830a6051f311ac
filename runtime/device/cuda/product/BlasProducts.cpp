//===- BlasProducts.cpp - Runs matrix products by cuBLASLt ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/product/BlasProducts.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <chrono>
#include <utility>

using namespace dyna;
using namespace dyna::cuda;

namespace {

/// Algorithms that are asked for, and timed.
constexpr int kProposed = 12;

int32_t operandType(ProductKind kind) {
  return kind == ProductKind::F64   ? kBlasF64
         : kind == ProductKind::F32 ? kBlasF32
                                    : kBlasBf16;
}

int32_t resultType(ProductKind kind) {
  return kind == ProductKind::F64    ? kBlasF64
         : kind == ProductKind::Bf16 ? kBlasBf16
                                     : kBlasF32;
}

/// Returns true if the library only refuses this product.
bool isRefusal(BlasResult result) {
  return result == kBlasNotSupported || result == kBlasInvalidValue ||
         result == kBlasArchMismatch;
}

/// Memory of the device for as long as products are timed.
class TimedMemory {
public:
  explicit TimedMemory(PrimaryContext &context) : context_(context) {}
  TimedMemory(const TimedMemory &) = delete;
  TimedMemory &operator=(const TimedMemory &) = delete;
  ~TimedMemory() {
    for (Address address : taken_)
      if (context_.awaitIdle())
        (void)context_.driver().release(address);
  }

  /// Allocates memory; null if the device has not so much left.
  StatusOr<void *> take(int64_t bytes, StreamHandle stream) {
    Address address = 0;
    Result result =
        context_.driver().allocate(&address, static_cast<size_t>(bytes));
    if (result == kOutOfMemory)
      return static_cast<void *>(nullptr);
    DYNA_RETURN_IF_ERROR(context_.check(result, "taking memory for products"));
    taken_.push_back(address);
    // Bytes of 0x3c are a small number in every type.
    DYNA_RETURN_IF_ERROR(context_.checkWork(
        context_.driver().fill(address, 0x3c, static_cast<size_t>(bytes),
                               stream),
        "filling memory for products"));
    return reinterpret_cast<void *>(address);
  }

private:
  PrimaryContext &context_;
  std::vector<Address> taken_;
};

} // namespace

int64_t cuda::blasWorkspaceBytes(int capability) {
  // NVIDIA advises these sizes. Emulated products need almost nothing.
  if (capability < 10)
    return 64 << 10;
  return int64_t(capability >= 90 ? 32 : 8) << 20;
}

bool cuda::hasFastEpilogues(int capability) {
  // Epilogues are fast on 9.0 and slow on 12.0, as measured. Other devices
  // count as 9.0 until they are measured.
  return capability / 10 != 12;
}

/// Returns the library's name of a class's epilogue.
static uint32_t epilogueOf(const ProductClass &shape) {
  switch (shape.epilogue) {
  case DYNA_EPILOGUE_BIAS:
    return kBlasEpilogueBias;
  case DYNA_EPILOGUE_BIAS_GELU:
    return shape.auxStride > 0 ? kBlasEpilogueBiasGeluAux
                               : kBlasEpilogueBiasGelu;
  case DYNA_EPILOGUE_GELU_GRAD:
    return kBlasEpilogueGeluGrad;
  default:
    return kBlasEpilogueNone;
  }
}

//===----------------------------------------------------------------------===//
// Making and freeing
//===----------------------------------------------------------------------===//

Status BlasProducts::check(BlasResult result, const char *what) const {
  if (result == kBlasSuccess)
    return Status::ok();
  return Status::deviceError(formatText(
      "%s: cuBLASLt %s (%s): %s: %s", context_->label(), blas_.versionText(),
      blas_.path, what, blas_.describe(result)));
}

StatusOr<std::unique_ptr<BlasProducts>>
BlasProducts::create(std::shared_ptr<PrimaryContext> context, Blas blas,
                     BlasWorkspace workspace, bool tf32) {
  DYNA_RETURN_IF_ERROR(context->enter());
  std::unique_ptr<BlasProducts> made(
      new BlasProducts(std::move(context), std::move(blas), workspace, tf32));
  DYNA_RETURN_IF_ERROR(
      made->check(made->blas_.create(&made->handle_), "starting it"));
  return made;
}

BlasProducts::~BlasProducts() {
  for (auto &[shape, made] : cases_)
    destroy(made);
  // Launched products must end before the handle is destroyed.
  if (handle_ && context_->awaitIdle())
    (void)blas_.destroy(handle_);
}

void BlasProducts::destroy(Case &made) {
  for (BlasLayout *layout : {made.a, made.b, made.c})
    if (layout)
      (void)blas_.destroyLayout(layout);
  if (made.operation)
    (void)blas_.destroyOperation(made.operation);
  made = Case();
}

//===----------------------------------------------------------------------===//
// A class of products
//===----------------------------------------------------------------------===//

Status BlasProducts::describe(const ProductClass &shape, Case &made) {
  const bool isF64 = shape.kind == ProductKind::F64;
  const int32_t compute = isF64 ? kBlasComputeF64
                          : tf32_ && shape.kind == ProductKind::F32
                              ? kBlasComputeTf32
                              : kBlasComputeF32;
  DYNA_RETURN_IF_ERROR(check(blas_.createOperation(&made.operation, compute,
                                                   isF64 ? kBlasF64 : kBlasF32),
                             "describing a product"));
  // The library is column-major, so its first operand is B.
  const int32_t first = shape.transposeB ? kBlasTransposed : kBlasAsIs;
  const int32_t second = shape.transposeA ? kBlasTransposed : kBlasAsIs;
  for (auto [attribute, value] :
       {std::pair(kBlasTransposeA, first), {kBlasTransposeB, second}})
    DYNA_RETURN_IF_ERROR(
        check(blas_.setOperation(made.operation, attribute, &value, 4),
              "describing a transpose"));
  if (shape.epilogue) {
    const uint32_t epilogue = epilogueOf(shape);
    DYNA_RETURN_IF_ERROR(
        check(blas_.setOperation(made.operation, kBlasEpilogue, &epilogue, 4),
              "describing an epilogue"));
    if (shape.auxStride > 0)
      DYNA_RETURN_IF_ERROR(
          check(blas_.setOperation(made.operation, kBlasAuxLeading,
                                   &shape.auxStride, 8),
                "describing the rows of an epilogue"));
    // The query for algorithms reads addresses only for their alignment.
    DYNA_RETURN_IF_ERROR(check(
        setEpiloguePointers(made,
                            reinterpret_cast<const void *>(shape.alignBias),
                            reinterpret_cast<const void *>(shape.alignAux)),
        "describing what an epilogue takes"));
  }
  const int32_t operand = operandType(shape.kind);
  const int32_t result = resultType(shape.kind);
  // `resize` sets the sizes later; any that the leading dimensions allow will
  // do.
  auto make = [&](BlasLayout *&layout, int32_t type, int64_t leading) {
    return check(blas_.createLayout(&layout, type, 1, 1, leading),
                 "describing a matrix");
  };
  DYNA_RETURN_IF_ERROR(make(made.a, operand, shape.lda));
  DYNA_RETURN_IF_ERROR(make(made.b, operand, shape.ldb));
  return make(made.c, result, shape.ldc);
}

Status BlasProducts::resize(Case &made, const ProductClass &shape, int64_t m,
                            int64_t n, int64_t k) {
  if (made.m == m && made.n == n && made.k == k)
    return Status::ok();
  made.m = made.n = made.k = 0; // remains if a call below fails
  // Our rows are the library's columns.
  auto set = [&](BlasLayout *layout, int64_t rows, int64_t columns) {
    uint64_t inner = static_cast<uint64_t>(columns);
    uint64_t outer = static_cast<uint64_t>(rows);
    DYNA_RETURN_IF_ERROR(
        check(blas_.setLayout(layout, kBlasLayoutRows, &inner, 8),
              "giving a matrix its size"));
    return check(blas_.setLayout(layout, kBlasLayoutColumns, &outer, 8),
                 "giving a matrix its size");
  };
  DYNA_RETURN_IF_ERROR(shape.transposeA ? set(made.a, k, m)
                                        : set(made.a, m, k));
  DYNA_RETURN_IF_ERROR(shape.transposeB ? set(made.b, n, k)
                                        : set(made.b, k, n));
  DYNA_RETURN_IF_ERROR(set(made.c, m, n));
  made.m = m, made.n = n, made.k = k;
  return Status::ok();
}

StatusOr<std::vector<BlasChoice>>
BlasProducts::propose(const Case &made, const ProductClass &shape, int count) {
  BlasPreference *preference = nullptr;
  DYNA_RETURN_IF_ERROR(
      check(blas_.createPreference(&preference), "describing what is wanted"));
  auto wants = [&]() -> Status {
    const uint64_t workspace = static_cast<uint64_t>(workspace_.bytes);
    DYNA_RETURN_IF_ERROR(
        check(blas_.setPreference(preference, kBlasMaxWorkspace, &workspace, 8),
              "saying how much memory there is"));
    const uint32_t reduction = kBlasReduceInComputeType;
    DYNA_RETURN_IF_ERROR(check(
        blas_.setPreference(preference, kBlasReductionMask, &reduction, 4),
        "saying how sums are taken"));
    for (auto [attribute, bytes] : {std::pair(kBlasAlignmentA, shape.alignB),
                                    {kBlasAlignmentB, shape.alignA},
                                    {kBlasAlignmentC, shape.alignC},
                                    {kBlasAlignmentD, shape.alignC}}) {
      const uint32_t alignment = static_cast<uint32_t>(bytes);
      DYNA_RETURN_IF_ERROR(
          check(blas_.setPreference(preference, attribute, &alignment, 4),
                "saying how matrices are aligned"));
    }
    return Status::ok();
  };
  Status status = wants();
  std::vector<BlasChoice> choices(static_cast<size_t>(count));
  int found = 0;
  BlasResult result = kBlasSuccess;
  if (status.isOk())
    result = blas_.propose(handle_, made.operation, made.b, made.a, made.c,
                           made.c, preference, count, choices.data(), &found);
  (void)blas_.destroyPreference(preference);
  DYNA_RETURN_IF_ERROR(status);
  if (isRefusal(result))
    found = 0;
  else
    DYNA_RETURN_IF_ERROR(check(result, "asking for algorithms"));
  choices.resize(static_cast<size_t>(found));
  choices.erase(std::remove_if(choices.begin(), choices.end(),
                               [&](const BlasChoice &choice) {
                                 return choice.state != kBlasSuccess ||
                                        static_cast<int64_t>(
                                            choice.workspaceBytes) >
                                            workspace_.bytes;
                               }),
                choices.end());
  return choices;
}

StatusOr<BlasProducts::Case *> BlasProducts::caseOf(const ProductClass &shape) {
  auto found = cases_.find(shape);
  if (found != cases_.end())
    return &found->second;
  Case made;
  auto fill = [&]() -> Status {
    DYNA_RETURN_IF_ERROR(describe(shape, made));
    // Uses the rounded sizes, so the choice does not depend on the first
    // product of the class.
    DYNA_RETURN_IF_ERROR(resize(made, shape, shape.m, shape.n, shape.k));
    auto record = records_.find(shape);
    if (record != records_.end()) {
      BlasChoice choice = {};
      choice.algorithm = record->second.algorithm;
      BlasResult result =
          blas_.check(handle_, made.operation, made.b, made.a, made.c, made.c,
                      &record->second.algorithm, &choice);
      if (result == kBlasSuccess &&
          static_cast<int64_t>(choice.workspaceBytes) <= workspace_.bytes) {
        choice.algorithm = record->second.algorithm;
        made.choices = {choice};
        made.isTimed = made.isMeasured = true;
        made.microseconds = record->second.microseconds;
        return Status::ok();
      }
    }
    DYNA_ASSIGN_OR_RETURN(made.choices, propose(made, shape, kProposed));
    return Status::ok();
  };
  if (Status status = fill(); !status.isOk()) {
    destroy(made);
    return status;
  }
  return &cases_.emplace(shape, std::move(made)).first->second;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

BlasResult BlasProducts::setEpiloguePointers(const Case &made, const void *bias,
                                             const void *aux) {
  for (auto [attribute, pointer] :
       {std::pair(kBlasBiasPointer, bias), {kBlasAuxPointer, aux}})
    if (pointer)
      if (BlasResult result = blas_.setOperation(made.operation, attribute,
                                                 &pointer, sizeof(pointer)))
        return result;
  return kBlasSuccess;
}

BlasResult BlasProducts::call(const Case &made, ProductKind kind,
                              const dyna_matmul &p, const BlasChoice &choice,
                              StreamHandle stream) {
  const bool isF64 = kind == ProductKind::F64;
  const float one = 1, zero = 0;
  const double wideOne = 1, wideZero = 0;
  const void *alpha = isF64 ? static_cast<const void *>(&wideOne) : &one;
  const void *beta =
      isF64 ? static_cast<const void *>(p.accumulate ? &wideOne : &wideZero)
            : (p.accumulate ? &one : &zero);
  if (const dyna_epilogue *epilogue = dyna_described_epilogue(&p))
    if (BlasResult result =
            setEpiloguePointers(made, epilogue->bias, epilogue->aux))
      return result;
  return blas_.multiply(handle_, made.operation, alpha, p.b, made.b, p.a,
                        made.a, beta, p.c, made.c, p.c, made.c,
                        &choice.algorithm,
                        reinterpret_cast<void *>(workspace_.address),
                        static_cast<size_t>(workspace_.bytes), stream);
}

StatusOr<bool> BlasProducts::multiply(ProductKind kind, const dyna_matmul &p,
                                      StreamHandle stream) {
  DYNA_RETURN_IF_ERROR(context_->enter());
  const ProductClass shape = ProductClass::of(kind, p);
  DYNA_ASSIGN_OR_RETURN(Case * made, caseOf(shape));
  // Without an algorithm the caller runs the product and its epilogue apart.
  if (shape.epilogue && made->choices.empty())
    return false;
  DYNA_RETURN_IF_ERROR(resize(*made, shape, p.m, p.n, p.k));
  DYNA_RETURN_IF_ERROR(context_->follow(lastStream_, stream));
  BlasResult result = kBlasNotSupported;
  if (!made->choices.empty())
    result = call(*made, kind, p, made->choices.front(), stream);
  if (isRefusal(result)) {
    // The algorithm of the class cannot run this product, so look for another
    // one.
    DYNA_ASSIGN_OR_RETURN(std::vector<BlasChoice> choices,
                          propose(*made, shape, 1));
    if (choices.empty())
      return false;
    result = call(*made, kind, p, choices.front(), stream);
    if (isRefusal(result))
      return false;
  }
  PrimaryContext::StreamRecord *record = context_->find(stream);
  if (result != kBlasSuccess)
    return context_->end(
        formatText("%s of m=%d n=%d k=%d by cuBLASLt %s: %s", nameOf(kind), p.m,
                   p.n, p.k, blas_.versionText(), blas_.describe(result)),
        record ? record->kernel : nullptr);
  if (record)
    record->kernel = nameOf(kind);
  return true;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

StatusOr<double> BlasProducts::time(const ProductClass &shape, const Case &made,
                                    const dyna_matmul &p,
                                    const BlasChoice &choice,
                                    StreamHandle stream,
                                    Device::Deadline deadline) {
  constexpr int kRounds = 3, kPerRound = 4;
  const Driver &driver = context_->driver();
  DYNA_ASSIGN_OR_RETURN(EventHandle begin, context_->takeEvent());
  DYNA_ASSIGN_OR_RETURN(EventHandle end, context_->takeEvent());
  double best = -1;
  auto run = [&](int count) {
    BlasResult result = kBlasSuccess;
    for (int i = 0; i < count && result == kBlasSuccess; ++i)
      result = call(made, shape.kind, p, choice, stream);
    return result;
  };
  auto measure = [&]() -> Status {
    if (run(1) != kBlasSuccess) // the first run loads the code
      return Status::ok();
    for (int round = 0; round < kRounds; ++round) {
      DYNA_RETURN_IF_ERROR(
          context_->checkWork(driver.record(begin, stream), "timing products"));
      if (run(kPerRound) != kBlasSuccess)
        return Status::ok();
      DYNA_RETURN_IF_ERROR(
          context_->checkWork(driver.record(end, stream), "timing products"));
      DYNA_RETURN_IF_ERROR(
          context_->poll([&] { return driver.queryEvent(end); }, deadline,
                         "a product that is timed", nameOf(shape.kind)));
      float milliseconds = 0;
      DYNA_RETURN_IF_ERROR(context_->checkWork(
          driver.elapsed(&milliseconds, begin, end), "timing products"));
      double each = 1000.0 * static_cast<double>(milliseconds) / kPerRound;
      best = round == 0 ? each : std::min(best, each);
    }
    return Status::ok();
  };
  Status status = measure();
  context_->giveBack(begin);
  context_->giveBack(end);
  DYNA_RETURN_IF_ERROR(status);
  return best;
}

Status BlasProducts::measureCase(const ProductClass &shape, Case &made,
                                 StreamHandle stream,
                                 Device::Deadline deadline) {
  TimedMemory memory(*context_);
  dyna_matmul p = {};
  p.m = shape.m, p.n = shape.n, p.k = shape.k;
  p.lda = shape.lda, p.ldb = shape.ldb, p.ldc = shape.ldc;
  p.transpose_a = shape.transposeA, p.transpose_b = shape.transposeB;
  p.accumulate = shape.accumulate;
  const int64_t operand = operandBytes(shape.kind);
  auto take = [&](int64_t rows, int64_t leading, int64_t element) {
    return memory.take(rows * leading * element, stream);
  };
  DYNA_ASSIGN_OR_RETURN(p.a,
                        take(shape.transposeA ? p.k : p.m, p.lda, operand));
  DYNA_ASSIGN_OR_RETURN(p.b,
                        take(shape.transposeB ? p.n : p.k, p.ldb, operand));
  DYNA_ASSIGN_OR_RETURN(p.c, take(p.m, p.ldc, resultBytes(shape.kind)));
  if (!p.a || !p.b || !p.c)
    return Status::ok();
  dyna_epilogue epilogue = {};
  if (shape.epilogue) {
    epilogue.kind = static_cast<int32_t>(shape.epilogue);
    epilogue.aux_stride = shape.auxStride;
    p.described = 1, p.epilogue_args = &epilogue;
    if (shape.alignBias > 0) {
      DYNA_ASSIGN_OR_RETURN(epilogue.bias,
                            take(1, p.n, resultBytes(shape.kind)));
      if (!epilogue.bias)
        return Status::ok();
    }
    if (shape.auxStride > 0) {
      DYNA_ASSIGN_OR_RETURN(
          epilogue.aux, take(p.m, shape.auxStride, resultBytes(shape.kind)));
      if (!epilogue.aux)
        return Status::ok();
    }
  }
  DYNA_RETURN_IF_ERROR(resize(made, shape, p.m, p.n, p.k));
  double least = -1;
  size_t fastest = 0;
  for (size_t i = 0; i < made.choices.size(); ++i) {
    DYNA_ASSIGN_OR_RETURN(
        double microseconds,
        time(shape, made, p, made.choices[i], stream, deadline));
    if (microseconds >= 0 && (least < 0 || microseconds < least))
      least = microseconds, fastest = i;
  }
  if (least < 0)
    return Status::ok();
  std::swap(made.choices[0], made.choices[fastest]);
  made.choices.resize(1);
  made.isTimed = true;
  made.microseconds = least;
  return Status::ok();
}

int64_t BlasProducts::unmeasured() const {
  return std::count_if(cases_.begin(), cases_.end(), [](const auto &entry) {
    return !entry.second.isMeasured;
  });
}

StatusOr<int64_t> BlasProducts::measure(StreamHandle stream, double seconds,
                                        Device::Deadline deadline) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  DYNA_RETURN_IF_ERROR(context_->enter());
  DYNA_RETURN_IF_ERROR(context_->follow(lastStream_, stream));
  int64_t timed = 0;
  for (auto &[shape, made] : cases_) {
    if (made.isMeasured)
      continue;
    if (Clock::now() >= end)
      break;
    if (!made.choices.empty())
      DYNA_RETURN_IF_ERROR(measureCase(shape, made, stream, deadline));
    made.isMeasured = true;
    timed += made.isTimed ? 1 : 0;
  }
  return timed;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

ProductRecords BlasProducts::noRecords() const {
  ProductRecords records;
  records.device =
      formatText("%s, compute capability %d.%d", context_->name(),
                 context_->capability() / 10, context_->capability() % 10);
  records.library = blas_.version;
  records.workspaceBytes = workspace_.bytes;
  records.tf32 = tf32_;
  return records;
}

ProductRecords BlasProducts::records() const {
  std::map<ProductClass, ProductRecord> all = records_;
  for (const auto &[shape, made] : cases_)
    if (made.isTimed)
      all[shape] = {shape, made.choices[0].algorithm,
                    static_cast<int64_t>(made.choices[0].workspaceBytes),
                    made.microseconds};
  ProductRecords records = noRecords();
  for (const auto &[shape, record] : all)
    records.products.push_back(record);
  return records;
}

void BlasProducts::use(const ProductRecords &records) {
  for (const ProductRecord &record : records.products)
    records_[record.shape] = record;
}
