//===- CostTable.h - Measured costs, checked --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file that `--costs` names (Costs.proto), with a curve for each entry.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTTABLE_H
#define DYNA_RUNTIME_COST_COSTTABLE_H

#include "runtime/base/error/Status.h"
#include "runtime/cost/Cluster.h"
#include "runtime/cost/CostCurve.h"
#include "runtime/cost/Costs.pb.h"
#include "runtime/cost/SparseProducts.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace dyna {

/// Larger than any table of measurements: files beyond it are not read.
constexpr int64_t maxCostsBytes = INT64_C(1) << 26;

/// A function of a layer kind at a tensor degree.
struct CostKey {
  std::string kind;
  int tp = 1;
  bool sp = false;
  cost::Direction direction = cost::FORWARD;

  bool operator<(const CostKey &other) const {
    return std::tie(kind, tp, sp, direction) <
           std::tie(other.kind, other.tp, other.sp, other.direction);
  }
};

/// "block tp=2,sp=1"
std::string describeKindOf(const CostKey &key);

/// "block tp=2,sp=1 BACKWARD"
std::string describeCostKey(const CostKey &key);

class CostTable {
public:
  /// Fails with the file, the place in it and what was expected there.
  static StatusOr<CostTable> read(const std::string &path);
  /// `name` stands for the file in messages.
  static StatusOr<CostTable> parse(const std::string &text,
                                   const std::string &name);
  /// No entries, and the device and links that were built in.
  static CostTable host();
  /// The same for a described device, by its name or as `a100-40g:4x8`: four
  /// nodes of eight. Fails with the names there are.
  static StatusOr<CostTable> described(const std::string &name);
  /// The described device all parts of whose name stand in what a device says of
  /// itself ("a100-80g": "NVIDIA A100-SXM4-80GB"), in whatever case, the longest
  /// such name; else `otherwise`.
  static CostTable likest(const std::string &device,
                          const std::string &otherwise);
  /// Takes the described scores (descriptions/stored-scores.textproto), unless it
  /// has some.
  void describeScores();
  /// Of each device, whatever was described.
  void setMemory(int64_t bytes) { device_.set_memory_bytes(bytes); }

  /// Makes messages and exchanges take no time, on any number of devices.
  void dropLinks() { cluster_ = Cluster(); }

  const std::string &name() const { return name_; }
  /// What the file says; nothing without a file.
  const cost::Table &message() const { return message_; }
  /// Of everything that the file says, whatever its comments and layout; 0
  /// without a file.
  uint64_t fingerprint() const { return fingerprint_; }
  const cost::Device &device() const { return device_; }
  const Cluster &cluster() const { return cluster_; }
  /// None: attention is fused.
  const std::optional<cost::StoredScores> &scores() const { return scores_; }
  /// Empty: pruned weights stay masked.
  const SparseProducts &sparse() const { return sparse_; }
  const std::map<CostKey, CostCurve> &curves() const { return curves_; }

private:
  Status add(const cost::Entry &entry, int index);
  /// Takes device, cluster, scores and sparse products if the message has them.
  Status setHardware(const cost::Table &message);

  std::string name_;
  uint64_t fingerprint_ = 0;
  cost::Table message_;
  cost::Device device_;
  Cluster cluster_;
  std::optional<cost::StoredScores> scores_;
  SparseProducts sparse_;
  std::map<CostKey, CostCurve> curves_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTTABLE_H
