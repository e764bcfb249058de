#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "configs/env_config.h"
#include "configs/policy_config.h"
#include "env/env_spec.h"
#include "model/policy/policy_shape.h"

namespace troupe::workers {

/// What a policy sees and does in an environment, field by field of EnvSpec::observation:
///     f32, f64 scalar or vector   concatenated in order into the state [D], as f32
///     u8 [H,W,C]                  an image, u8
///     f32 [H,W]                   a depth image, f32, C = 1
///     u8 [longest] of EnvReader::text   a text, where the policy reads texts
/// Of the state's columns those of EnvReader::critic come behind those of EnvReader::policy, and the action mask (1
/// where allowed, else 0) is last. Actions come in chunks of env.chunk. Errors: invalid_argument,
/// naming the field, for any other one (labels, u8 [H,W]): choose another env.profile or leave it out by env.options.
Result<PolicyShape> policy_shape_of(const EnvSpec& spec, const EnvConfig& env, const PolicyConfig& policy);

/// Which fields of an observation become what, in the order of EnvSpec::observation. Of a spec that policy_shape_of
/// takes.
struct ObservationParts {
  /// A field that becomes columns of the state.
  struct Vector {
    /// Index into EnvSpec::observation.
    std::size_t field = 0;
    /// First column of the state.
    std::int64_t column = 0;
    std::int64_t numel = 0;
    EnvDType dtype = EnvDType::f32;
    EnvReader reader = EnvReader::policy;

    /// Writes one row of the field as columns of a state row: f64 is rounded to f32; of a mask, non-zero becomes 1.
    void write(const std::byte* row, float* state) const;
  };
  /// An image field; its index here is its index in PolicyShape::images.
  struct Image {
    std::size_t field = 0;
    /// Of one row: H W C, times 4 for depth.
    std::int64_t bytes = 0;
  };
  /// A field of text; its index here is its index in PolicyShape::texts.
  struct Text {
    std::size_t field = 0;
    /// Of one row.
    std::int64_t bytes = 0;
  };
  std::vector<Vector> vectors;
  /// As PolicyShape::images.
  std::vector<Image> images;
  /// As PolicyShape::texts.
  std::vector<Text> texts;
  /// [D]: 0 where rollout.normalize_obs leaves a column as it is.
  std::vector<std::uint8_t> normalised;
};
/// Fields that policy_shape_of refuses are left out.
ObservationParts observation_parts(const EnvSpec& spec);

}  // namespace troupe::workers
