#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// From the network's normalised, padded rows to actions in the robot's units: slices of the
/// keys' widths in order, the inverse of their normalisation, the newest state added to relative keys. Immutable: any
/// thread.
class ActionDecoder {
 public:
  /// `sign_gripper`: the last value of each row becomes 1 where it is above 0 and -1 elsewhere, as RLinf sends it to
  /// the robots of oxe_droid, libero_sim and franka_pnp. Errors: invalid_argument for another embodiment, and for keys
  /// whose normalisation has no inverse.
  static Result<ActionDecoder> make(const PolicySpec& spec, bool sign_gripper);

  /// rows: (horizon, action_dim), row major; columns behind the keys are padding. newest: the state rows given with the
  /// observation; has every relative key. Result: (horizon, sum of widths). Requires that sizes fit.
  ActionChunk decode(std::span<const float> rows, const std::map<std::string, std::vector<float>>& newest) const;

 private:
  ActionDecoder() = default;
  struct Key {
    std::string name;
    std::size_t width = 0;
    bool relative = false;
    std::variant<Normalizer<float>, HorizonNormalizer<float>> normalizer;
  };
  std::vector<Key> keys_;
  std::size_t horizon_ = 0, stride_ = 0, width_ = 0;
  bool sign_gripper_ = false;
};

}  // namespace troupe::workers
