#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/shard/flat_layout.h"

namespace troupe::model {

/// Which parameters an optimizer treats otherwise, by patterns of their names: `*` is any text, `?` any character.
struct UpdateRules {
  struct Rate {
    std::string names;
    /// On the learning rate.
    double factor = 1;
  };
  /// Without weight decay.
  std::vector<std::string> no_decay = {};
  /// The first that fits a name counts.
  std::vector<Rate> rates = {};
};

/// Elements [begin, end) of a unit's flat buffer that are updated alike.
struct UpdateInterval {
  std::int64_t begin = 0, end = 0;
  bool decays = true;
  /// On the learning rate.
  double rate = 1;
  bool operator==(const UpdateInterval&) const = default;
};

/// A unit's intervals in order, covering [0, padded); one for a unit that no rule fits. What lies between two entries
/// belongs to the first. Pure.
std::vector<UpdateInterval> update_intervals(const FlatLayout& layout, std::int64_t padded, const UpdateRules& rules);

/// Whether every pattern fits a parameter that is trained. Errors: invalid_argument, naming the key, the pattern and a
/// parameter that there is.
Result<void> check_update_rules(const std::vector<UnitSpec>& units, const UpdateRules& rules);

}  // namespace troupe::model
