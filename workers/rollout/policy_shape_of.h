#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "configs/env_config.h"
#include "env/env_spec.h"
#include "model/policy/policy_shape.h"

namespace troupe {

/// What a policy sees and does in an environment: every f32 or f64 vector of the observation, concatenated in order into the
/// state, every u8 [H,W,C] as a picture, every f32 [H,W] as a picture of depth, actions in chunks of env.chunk. Errors:
/// invalid_argument, naming the field, for one that no policy takes (labels, u8 [H,W]): leave it out by env.profile or env.options.
Result<PolicyShape> policy_shape_of(const EnvSpec& spec, const EnvConfig& env);

/// Which fields of an observation become what, in the order of EnvSpec::observation. Of a spec that policy_shape_of takes.
struct ObservationParts {
  struct Vector {
    std::size_t field = 0;    ///< index into EnvSpec::observation
    std::int64_t column = 0;  ///< first column of the state
    std::int64_t numel = 0;
    EnvDType dtype = EnvDType::f32;
  };
  struct Picture {
    std::size_t field = 0;
    std::int64_t bytes = 0;  ///< of one row
  };
  std::vector<Vector> vectors;
  std::vector<Picture> pictures;  ///< as PolicyShape::images
};
ObservationParts observation_parts(const EnvSpec& spec);

}  // namespace troupe
