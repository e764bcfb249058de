#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/shard/arenas.h"
#include "model/shard/flat_layout.h"
#include "model/shard/network.h"
#include "model/step/op.h"

namespace troupe::model {

/// Named tensors of the chain's units over a rank's arenas: parameters where they are read, gradients where an
/// operation puts them, and those of the replicated parameters (UnitSpec::replicated) beside them. What it refers to
/// outlives it.
class ArenaViews {
 public:
  /// `layouts` are those of state_units(chain).
  ArenaViews(const std::vector<UnitSpec>& chain, const std::vector<FlatLayout>& layouts, const ArenaPlan& plan,
             const Arenas& arenas);

  /// By unit; leaves where they are trained. The memory holds a unit's values from its gather until the next one.
  const std::vector<ParamView>& parameters() const { return parameters_; }
  /// Where a backward of one unit puts its gradients. Made when first asked for, as those of a manual backward.
  const ParamView& gradients(const Op& backward);
  /// Of each unit; `trains` of each.
  const std::vector<ParamView>& gradients(const Op& network, const std::vector<bool>& trains);

 private:
  std::span<const LayoutEntry> replicated_entries(int unit) const;
  ParamView make_gradients(int unit, const Op& op, bool has_own, int grad_slot) const;

  const std::vector<FlatLayout>& layouts_;
  const ArenaPlan& plan_;
  const Arenas& arenas_;
  /// unit u owns entries [begins_[u], begins_[u + 1]) of the replicated parameters' layout
  std::vector<std::size_t> begins_{0};
  std::vector<ParamView> parameters_;
  /// by unit, gradient slot (-1: none of them), and whether it is in place, whole, the replicated ones in place
  std::map<std::tuple<int, int, bool, bool, bool>, ParamView> gradients_;
  std::map<std::tuple<std::vector<bool>, bool, bool>, std::vector<ParamView>> manual_gradients_;
};

}  // namespace troupe::model
