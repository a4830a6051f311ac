//===- RankExchange.h - Exchanges data of one graph with other ranks ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_RANKEXCHANGE_H
#define DYNA_RUNTIME_EXECUTOR_RANK_RANKEXCHANGE_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/transport/Transport.h"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace dyna {

/// Groups of ranks that the graphs of a machine share. Graphs that replace
/// others reuse groups of the same ranks, because a transport may have few
/// groups.
class SharedGroups {
public:
  using Key = ExecutableGraph::HolderGroup;

  /// Returns the group. All of its ranks call this together when it is new.
  StatusOr<Group *> find(const Key &key, Transport &transport);

private:
  std::map<Key, std::unique_ptr<Group>> groups_;
};

/// Carries out the messages and exchanges of one rank's program over a
/// transport. Pointers are into the rank's arena.
class RankExchange {
public:
  /// Creates the exchange of a rank. All ranks of the graph call it together.
  /// `graph`, `transport` and `groups` must outlive it; `view` is the rank's.
  /// No other graph that runs at the same time may use `groups`.
  static StatusOr<std::unique_ptr<RankExchange>>
  create(const ExecutableGraph &graph, const RankView &view,
         Transport &transport, SharedGroups &groups);
  ~RankExchange();

  /// Returns the groups in the form that compiled code reads, indexed by
  /// DYNA_GROUP_*.
  const std::vector<dyna_group> &groups() const { return abiGroups_; }
  Transport &transport() const { return transport_; }
  int rank() const { return transport_.rank(); }

  /// Starts or waits for a message with the bytes at `data`.
  Status message(const plan::Instruction &i, void *data, int64_t bytes,
                 void *stream);
  /// The tensor of a parameter on this rank, which an exchange sums or gathers.
  struct ParameterData {
    int parameter;
    void *data;
    int32_t element; ///< DYNA_ELEMENT_*
  };
  /// Starts the sums of gradients of a layer's parameters over their holders.
  /// With ZeRO each rank gets the rows that it updates. Gradients with the same
  /// holders are one exchange.
  Status startReductions(int layer, const std::vector<ParameterData> &gradients,
                         void *stream);
  /// Starts to fetch the rows that other ranks have updated, with ZeRO.
  Status startGathers(int layer, const std::vector<ParameterData> &values,
                      void *stream);
  /// Waits for the exchanges that were started for a layer.
  Status wait(int layer, void *stream);
  /// Sums numbers in device memory over all ranks, in place; every rank gets the result.
  Status sum(double *values, int64_t count, void *stream);

private:
  RankExchange(const ExecutableGraph &graph, const RankView &view,
               Transport &transport)
      : graph_(graph), view_(view), transport_(transport) {}
  Status createGroups(SharedGroups &groups);
  /// Starts collectives of parameters; `make` returns the one of a parameter.
  template <typename Make>
  Status start(int layer, const std::vector<ParameterData> &parameters,
               Make make, void *stream);
  Collective along(const ParameterData &parameter) const;

  const ExecutableGraph &graph_;
  const RankView &view_;
  Transport &transport_;
  /// Groups of two or more ranks.
  std::map<ExecutableGraph::HolderGroup, Group *> groups_;
  std::vector<Group *> holders_; ///< of each parameter, null for this one alone
  Group *world_ = nullptr;
  std::vector<dyna_group> abiGroups_;
  /// Tickets of messages, by (kind, sends, edge, micro-batch).
  std::map<std::tuple<ExchangeKind, bool, int, int>, Ticket> messages_;
  std::map<int, std::vector<Ticket>> layers_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_RANKEXCHANGE_H
