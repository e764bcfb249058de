#pragma once

#include <vector>

#include "model/policy/policy_net.h"
#include "model/shard/network.h"

namespace troupe::model {

/// What a DreamZero does not train where it trains adapters (model.train_architecture lora). Thread-safe.
class FrozenTransformer {
 public:
  virtual ~FrozenTransformer() = default;
  /// Whole frozen parameters by name of the chain's unit, in the dtype that the learner gathers (precision.param). Read
  /// at the first call; the same memory in every call, alive as long as this. Throws c10::Error where they cannot be
  /// read.
  virtual const UnitViews& views() const = 0;
};

/// Units of a chain as its forward takes them: the frozen parameters, and beside them those of kReplicatedUnit in the
/// frozen ones' dtype, as the engine gathers them. The adapters stay apart from what they adapt (layers.h `linear`): a
/// version costs no copy of the frozen parameters. Throws c10::Error on a name that is missing.
UnitViews with_replicated(const std::vector<UnitSpec>& chain, const UnitViews& frozen, const ParamView& replicated);

}  // namespace troupe::model
