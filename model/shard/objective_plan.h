#pragma once

#include <vector>

#include "model/shard/manual_backward.h"
#include "model/shard/network.h"

namespace troupe::model {

/// How an engine runs one Network over its chain of units; made once per network, so that a step of a small network
/// does not pay for it. Not thread-safe.
class ObjectivePlan {
 public:
  /// `chain` is the engine's; `objective` has the same units but for those that it declares frozen. Others abort the
  /// process.
  ObjectivePlan(const std::vector<UnitSpec>& chain, const Network& objective, int param_slots, int grad_slots);

  const Network& network() const { return network_; }
  /// Of each unit: the engine trains it and this objective gives it a gradient.
  const std::vector<bool>& trains() const { return trains_; }
  /// The manual backward, where `allowed` and there are slots for all; else null.
  const ManualBackward* manual_backward(bool allowed) const;

 private:
  const Network& network_;
  const int param_slots_, grad_slots_;
  std::vector<bool> trains_;
};

}  // namespace troupe::model
