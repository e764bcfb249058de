#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "model/shard/flat_layout.h"

namespace troupe::model {

/// The replicated parameters of all units (UnitSpec::replicated) and their gradients, whole on this rank. Master,
/// moments and accumulator are sharded like any unit's; after they changed the values are gathered once, and every
/// micro-batch's gradients are summed over the ranks in one operation. Not thread-safe.
class ReplicatedParameters {
 public:
  /// `layout` is that of the unit "resident" of state_units(chain).
  ReplicatedParameters(const std::vector<UnitSpec>& chain, const FlatLayout& layout, int rank, int world,
                       at::ScalarType param_dtype);

  /// Adds the views of the chain's unit `unit`: leaves over the parameters, or plain views over the gradients.
  void add_parameters(std::size_t unit, ParamView& views) const;
  void add_gradients(std::size_t unit, ParamView& views) const;

  /// The values behind the shards have changed: the next gather() fetches them.
  void mark_stale() { stale_ = true; }
  /// Fetches the parameters from all ranks' shards unless they are up to date. All ranks call it, or none.
  Result<void> gather(Collective& group, const at::Tensor& shard);
  /// Sums the gradients over ranks; this rank's part replaces `accumulator` when `first`, else is added to it.
  Result<void> reduce(Collective& group, std::span<float> accumulator, bool first);

  /// Bytes on this rank: padded elements times 2 or 4, and times 4.
  std::int64_t parameter_bytes() const { return static_cast<std::int64_t>(parameters_.nbytes()); }
  std::int64_t gradient_bytes() const { return static_cast<std::int64_t>(gradients_.nbytes()); }

 private:
  std::span<const LayoutEntry> entries_of(std::size_t unit) const;

  const FlatLayout layout_;
  const int rank_;
  std::vector<std::size_t> begins_;  ///< unit u owns entries [begins_[u], begins_[u + 1])
  at::Tensor parameters_, gradients_;
  bool stale_ = true;
};

}  // namespace troupe::model
