//===- CostTable.h - Reads and checks tables of measured costs --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Holds the file that `--costs` names (Costs.proto), with a curve for each
// entry.
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

/// Limit of the size of a file, larger than any table of measurements. Larger
/// files are not read.
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

/// Returns kind and tensor degree as text: "block tp=2,sp=1".
std::string describeKindOf(const CostKey &key);

/// Returns the key as text: "block tp=2,sp=1 BACKWARD".
std::string describeCostKey(const CostKey &key);

class CostTable {
public:
  /// Reads a file. Fails with the file, the place in it and what was expected
  /// there.
  static StatusOr<CostTable> read(const std::string &path);
  /// Parses a text. `name` names it in messages.
  static StatusOr<CostTable> parse(const std::string &text,
                                   const std::string &name);
  /// Returns a table without entries, with the built-in device and links of the
  /// host.
  static CostTable host();
  /// Returns the table of a described device, by its name or as `a100-40g:4x8`:
  /// four nodes of eight. Fails with the list of names.
  static StatusOr<CostTable> described(const std::string &name);
  /// Returns the described device for a device's own name. All parts of its
  /// name must be in that name, in any case ("a100-80g" matches "NVIDIA
  /// A100-SXM4-80GB"). The longest match wins; without a match it is
  /// `otherwise`.
  static CostTable likest(const std::string &device,
                          const std::string &otherwise);
  /// Adds the described scores (descriptions/stored-scores.textproto) if there
  /// are none yet.
  void describeScores();
  /// Sets the memory of each device, instead of the described one.
  void setMemory(int64_t bytes) { device_.set_memory_bytes(bytes); }

  /// Removes the links: messages and exchanges take no time, on any number of
  /// devices.
  void dropLinks() { cluster_ = Cluster(); }
  /// Sets the device of each rank, as Cluster does.
  void placeRanks(std::vector<int> devices) {
    cluster_.placeRanks(std::move(devices));
  }

  const std::string &name() const { return name_; }
  /// Returns the contents of the file; empty without a file.
  const cost::Table &message() const { return message_; }
  /// Returns a hash of the contents of the file, without its comments and
  /// layout; 0 without a file.
  uint64_t fingerprint() const { return fingerprint_; }
  const cost::Device &device() const { return device_; }
  const Cluster &cluster() const { return cluster_; }
  /// Returns the costs of stored scores; none if attention is fused.
  const std::optional<cost::StoredScores> &scores() const { return scores_; }
  /// Returns the costs of sparse products; empty if pruned weights stay masked.
  const SparseProducts &sparse() const { return sparse_; }
  const std::map<CostKey, CostCurve> &curves() const { return curves_; }

private:
  Status add(const cost::Entry &entry, int index);
  /// Sets device, cluster, scores and sparse products if the message has them.
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
