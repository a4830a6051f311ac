//===- Executor.h - Interprets one rank's instructions ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The only way in which layer functions run. An executor holds one rank's
// arena, taken once:
//
//     | persistent: masters, copies, gradients, m, v | dynamic region |
//
// and runs plans in it. Every plan is verified first. One executor serves one
// thread; it neither reads files nor knows how plans come about.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_EXECUTOR_H
#define DYNA_RUNTIME_EXECUTOR_EXECUTOR_H

#include "runtime/abi/Abi.h"
#include "runtime/data/BatchReader.h"
#include "runtime/device/Device.h"
#include "runtime/executor/MemoryCheck.h"
#include "runtime/executor/Step.h"
#include "runtime/executor/Trace.h"
#include "runtime/plan/ManifestView.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/transport/Transport.h"

#include <memory>
#include <vector>

namespace dyna {

class ExecutableGraph;
class RankExchange;
struct Run;
struct Staging;

struct ExecutorOptions {
  uint64_t seed = 0;
  int64_t dynamicBytes = 0;
  /// Without it there are no gradients and no optimizer state.
  bool training = true;
  /// Poisons free memory and looks for stray writes after every instruction:
  /// for tests, as slow as it sounds.
  bool checkMemory = false;
  /// Records slices if not null; must outlive the executor.
  TraceRecorder *trace = nullptr;
  /// One rank of several: the strategy and this rank's end of the wires. Both
  /// must outlive the executor, whose view is then the rank's. All ranks create
  /// their executors together.
  const ExecutableGraph *graph = nullptr;
  Transport *transport = nullptr;
  /// Who gives the plans has verified them, once for all ranks.
  bool plansAreVerified = false;
};

/// The tensors of a parameter.
enum class ParameterPart { Master, Copy, Gradient, FirstMoment, SecondMoment };

class Executor {
public:
  /// `view`, `variant` and `device` must outlive the executor. Takes the arena:
  /// ResourceExhausted when there is not that much memory. Gradients and
  /// optimizer state are zero; parameters are for the caller to write.
  static StatusOr<std::unique_ptr<Executor>>
  create(const ManifestView &view, const dyna_variant &variant, Device &device,
         const ExecutorOptions &options);
  ~Executor();

  /// Verifies a plan and runs this rank's program. After a failure the
  /// parameters may be half updated: the run is over, and other ranks are told.
  Status run(const plan::Plan &plan, const MiniBatch &miniBatch,
             const StepScalars &scalars, StepResult &result);

  /// The rows of the parameter that this rank has of a part: all, or with ZeRO
  /// those that it updates (optimizer state, masters beside a copy).
  struct Rows {
    int64_t begin = 0, end = 0;
  };
  Rows partRows(int parameter, ParameterPart part) const;
  int64_t partBytes(int parameter, ParameterPart part) const;
  Status readPart(int parameter, ParameterPart part, void *target);
  Status writePart(int parameter, ParameterPart part, const void *source);
  /// Some of `partRows`.
  Status readRows(int parameter, ParameterPart part, Rows rows, void *target);
  Status writeRows(int parameter, ParameterPart part, Rows rows,
                   const void *source);
  Status clearGradients();
  /// Sums over all ranks, in place; all of them call it.
  Status sumOverRanks(std::vector<double> &values);

  int64_t arenaBytes() const { return arena_->bytes(); }
  int64_t persistentBytes() const { return layout_.bytes; }
  const ExecutorOptions &options() const { return options_; }
  const ManifestView &view() const { return view_; }
  /// Of the last run; empty unless `checkMemory`.
  const MemoryReport &memoryReport() const;

private:
  Executor(const ManifestView &view, const dyna_variant &variant,
           Device &device, const ExecutorOptions &options);
  Status initialize();
  Status synchronize();

  void *persistent(int64_t offset) const;
  void *dynamic(int64_t offset) const;
  /// What the running instruction calls by that name.
  void *block(const Run &run, Operand operand) const;
  int64_t placeOf(int parameter, ParameterPart part) const;
  dyna_tensor tensorOf(int parameter, ParameterPart part) const;
  /// The rows that this rank updates; not there if there are none.
  dyna_tensor updatedRows(int parameter, ParameterPart part) const;
  int64_t rowBytes(int parameter, ParameterPart part) const;
  StatusOr<int64_t> findRows(int parameter, ParameterPart part,
                             Rows rows) const;
  dyna_saved savedOf(const Run &run, const plan::Instruction &i) const;

  Status runProgram(Run &run);
  /// Adds the slice of an instruction that has just run, and those in it.
  void trace(const Run &run, const plan::Instruction &i, double begin,
             int64_t liveBytes);
  Status runInstruction(Run &run);
  Status exchange(Run &run, const plan::Instruction &i);
  Status exchangeParameters(const plan::Instruction &i);
  Status combineNorms(Run &run);
  Status load(Run &run, const plan::Instruction &i);
  Status callLayer(Run &run, const plan::Instruction &i);
  Status callForward(Run &run, const plan::Instruction &i);
  Status callBackward(Run &run, const plan::Instruction &i);
  Status callGradNorm(Run &run, const plan::Instruction &i);
  Status callUpdate(Run &run, const plan::Instruction &i);
  Status callCast(Run &run, const plan::Instruction &i);
  Status call(Run &run, const plan::Instruction &i,
              const std::vector<dyna_tensor> &params,
              const std::vector<dyna_tensor> &grads,
              const std::vector<dyna_tensor> &in,
              const std::vector<dyna_tensor> &out);
  Traffic statedExchanges(const Run &run, const plan::Instruction &i) const;
  Status checkExchanges(const Run &run, const plan::Instruction &i,
                        const Traffic &before) const;
  Status finishGradientNorm(Run &run);
  void countLosses(Run &run) const;
  Status clearGradients(int layer);
  double formulaFlops(const Run &run, const plan::Instruction &i) const;
  std::vector<dyna_tensor> computeParameters(int layer) const;
  std::vector<dyna_tensor> gradients(int layer) const;
  /// Those that this rank updates (or counts in the norm), rows as it does.
  std::vector<dyna_tensor> updatedGradients(int layer, bool countedOnly) const;
  Status clearOtherRows(int layer);

  const ManifestView &view_;
  const dyna_variant &variant_;
  Device &device_;
  ExecutorOptions options_;
  PersistentLayout layout_;
  int64_t dynamicStart_ = 0;
  std::unique_ptr<Buffer> arena_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<MemoryCheck> memoryCheck_;
  std::unique_ptr<RankExchange> exchange_; ///< null for one rank
  std::vector<Transport::Spent> spent_;    ///< of the instruction, if traced
  std::vector<dyna_group> groups_;
  char message_[1024] = {};
  dyna_context context_ = {};
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_EXECUTOR_H
