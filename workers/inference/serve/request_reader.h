#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/serve/wire_value.h"
#include "workers/inference/policy/policy.h"

namespace troupe::workers {

/// How a request names the policy's cameras under `observation/`.
enum class ViewNames : std::uint8_t {
  /// As the policy does.
  literal,
  /// Exterior cameras are counted from 0: exterior_image_0_left is the policy's exterior_image_1_left.
  dreamzero,
};

/// A name without what a modality puts in front: video., state., action., observation/, observation.
std::string short_name(std::string_view name);

/// Takes the policy's frames, state vectors and instruction out of a request (docs/serve.md gives the rule for
/// names). What the policy does not know is left alone. `episode` stays empty. Errors: invalid_argument naming the key
/// that is missing (and those that came) or wrong.
Result<Observation> read_observation(const WireMap& request, const PolicyInfo& info, ViewNames names);

/// A vector of `width` values out of an array [width] or [T, width] (the last row counts), a list of numbers, or one
/// number. Given back as f32 when it came so, else as f64. Errors: invalid_argument (naming `key`; also a value that is
/// not finite).
Result<NdArray> read_vector(const WireValue& value, std::int64_t width, std::string_view key);

/// One text: a string, or an array or list of exactly one, however nested. Errors: invalid_argument (naming `key`).
Result<std::string> read_text(const WireValue& value, std::string_view key);

/// The names in a map, for messages: "a, b and 3 more".
std::string list_names(const WireMap& map);

}  // namespace troupe::workers
