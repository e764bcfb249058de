#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "env/env_spec.h"

namespace troupe::env {

/// The file in which a run and a checkpoint keep the description of their environment.
inline constexpr std::string_view kEnvSpecFile = "env_spec.json";

/// An EnvSpec as JSON: every key, always in the same order, the same bytes for the same description
/// (docs/env.md#env_specjson). Numbers come back to the bit; infinite ones and NaN are "inf", "-inf", "nan".
std::string env_spec_json(const EnvSpec& spec);

/// XXH3-128 of env_spec_json(), 32 hex digits: equal where all that it says is equal.
std::string env_spec_digest(const EnvSpec& spec);

/// Reads what env_spec_json() writes. Only id, observation and action must be there, and of a field name, dtype and
/// shape; the others have the defaults of EnvSpec. `name` begins the message. Errors: invalid_argument naming the key,
/// for a key that is unknown, missing or given twice, for a value of another type or out of its range, and those of
/// check_env_spec.
Result<EnvSpec> parse_env_spec(std::string_view text, const std::string& name);
/// The same of a file. Errors: also those of read_file.
Result<EnvSpec> read_env_spec(const std::string& file);

/// Whether two descriptions say the same. Errors: failed_precondition, naming the first key that differs and both
/// values: "observation[0].shape[0] is 4, WANTED_BY has 3".
Result<void> check_same_spec(const EnvSpec& found, const EnvSpec& wanted, std::string_view wanted_by);

}  // namespace troupe::env
