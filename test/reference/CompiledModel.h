//===- CompiledModel.h - Trains one step with compiled code -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A runtime in a hundred lines: it lays out the memories of
// `runtime/abi/Abi.h`, each in a block of its own with guard zones around it,
// fills with NaN what nobody may read, and calls the layer functions in the
// order of a plan.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_COMPILEDMODEL_H
#define DYNA_TEST_REFERENCE_COMPILEDMODEL_H

#include "test/reference/CompiledProgram.h"
#include "test/reference/Evaluator.h"

#include <optional>

namespace mlir::dyna::reference {

/// Aligned bytes between guard zones.
class Slab {
public:
  Slab() = default;
  explicit Slab(int64_t bytes);
  // A copy would lie at another alignment.
  Slab(const Slab &) = delete;
  Slab &operator=(const Slab &) = delete;
  Slab(Slab &&) = default;
  Slab &operator=(Slab &&) = default;
  void *data() { return storage.data() + start; }
  const void *data() const { return storage.data() + start; }
  int64_t size() const { return bytes; }
  /// Not a number in every type.
  void poison();
  void clear();
  bool guardsAreIntact() const;

private:
  std::vector<unsigned char> storage;
  size_t start = 0;
  int64_t bytes = 0;
};

/// Copies between a tensor of doubles and memory of `element`.
void store(const Tensor &tensor, Type element, Slab &block);
Tensor load(std::vector<int64_t> shape, Type element, const Slab &block);

enum class Recompute { None, Selective, Full };

struct StepOptions {
  Recompute recompute = Recompute::None;
  /// backward_input of all layers, then backward_weight of all.
  bool splitBackward = false;
  /// A carry that slices lose, as a fault would: tests have to see it.
  std::optional<Carry> lost = {};
};

class CompiledModel {
public:
  /// `context` must be bound to a device; kept by reference.
  /// `degree` is the suffix of the layers of a tensor degree (".tp2"): then the
  /// model's module has passed the distribute phase, and this is one rank of
  /// it, with its parts of the parameters.
  CompiledModel(const CompiledProgram &program, ModelOp model, Type element,
                dyna_context &context, const std::string &degree = "");

  /// Sets the masters; under bf16 the parameters come from the `cast` role.
  void setMasters(const NamedTensors &masters);
  NamedTensors parameters() const {
    return loadAll(&State::parameter, element);
  }
  NamedTensors masters() const;

  /// The sum of token losses, by the `evaluate` role. Slices pass in the order of the
  /// batches.
  double evaluate(const std::vector<Batch> &batches);
  double evaluate(const Batch &batch) { return evaluate(std::vector{batch}); }

  /// Forward of all batches, then backward of all: gradients are accumulated
  /// and losses summed. `activations[i]` gets the result of call i for the
  /// first batch (not at a tensor degree, where ranks may have parts of them).
  /// Slices pass forward in the order of the batches, and backward in reverse.
  double train(const std::vector<Batch> &batches, const StepOptions &options,
               std::vector<Tensor> &activations);
  /// The same with the results of each batch.
  double train(const std::vector<Batch> &batches, const StepOptions &options,
               std::vector<std::vector<Tensor>> &activations);
  NamedTensors gradients() const {
    return loadAll(&State::gradient, program.gradientElement());
  }

  double gradientNormSquared();
  void setMoments(const NamedTensors &m, const NamedTensors &v);
  NamedTensors firstMoments() const { return loadAll(&State::m, accumulator); }
  NamedTensors secondMoments() const { return loadAll(&State::v, accumulator); }
  void update();

  /// The first call or block that went wrong, or empty.
  std::string failure;

private:
  /// The persistent memory of one parameter.
  struct State {
    std::vector<int64_t> shape;
    Slab parameter, gradient, master, m, v;
  };
  /// One layer call of the model.
  struct Call {
    std::string kind;
    std::vector<std::string> parameters;
    /// Which inputs besides the first are the target ids.
    std::vector<bool> inputsAreTargets;
    int64_t outputWidth = 0; ///< 0: the loss
    bool takesIds = false;
  };
  struct Saved {
    Slab input, products, elementwise, deferred;
  };
  /// Keys of the slices that one layer call sees, and sums of their gradients.
  struct Store {
    Slab keys, gradients;
  };
  /// Rows by what they have in common.
  struct Runs {
    template <typename Key> void fill(const std::vector<Key> &keys);
    dyna_row_runs get() const;
    std::vector<int32_t> rows, starts;
  };
  struct MicroBatch {
    const Batch *batch;
    std::vector<dyna_segment> segments;
    std::vector<int64_t> samples, positions;
    Runs tokenRuns, positionRuns;
    std::vector<int32_t> targetRows;
    Slab targets, loss;
    std::vector<Saved> saved; ///< by call
  };

  NamedTensors loadAll(Slab State::*block, Type type) const;
  Slab &masterBlock(State &state) {
    return needsCast() ? state.master : state.parameter;
  }
  bool needsCast() const { return element != accumulator; }
  void takeStores(const std::vector<Batch> &batches);
  /// The bytes of the stores' keys, by call.
  std::vector<std::string> storedKeys() const;
  /// Sets what slices have handed on so far to zeros.
  void forget(Carry carry);
  void prepare(MicroBatch &micro, const Batch &batch, bool saves);
  void call(size_t index, Role role, MicroBatch *micro,
            const std::vector<dyna_tensor> &params,
            const std::vector<dyna_tensor> &grads,
            const std::vector<dyna_tensor> &in,
            const std::vector<dyna_tensor> &out);
  double runForward(MicroBatch &micro, Role role);
  void runBackward(MicroBatch &micro, const StepOptions &options);
  void recompute(MicroBatch &micro, size_t index, Recompute mode);
  void checkGuards(const MicroBatch &micro, const std::string &where);
  std::vector<dyna_tensor> tensors(const Call &call, Slab State::*block,
                                   const std::vector<bool> *present = nullptr);
  /// Whether this call is the first to use each of its parameters.
  std::vector<bool> ownedBy(size_t index) const;

  const CompiledProgram &program;
  Type element, accumulator;
  dyna_context &context;
  std::string degree;
  std::vector<Call> calls;
  std::map<std::string, State> states;
  std::vector<Store> stores; ///< by call; none without slices
};

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_COMPILEDMODEL_H
