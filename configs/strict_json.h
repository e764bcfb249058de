#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace troupe::configs {

/// Parses a JSON document from outside. nlohmann's own parser silently keeps the last of equal keys; here a key
/// that is given twice is an error. `what` names the document in messages, `offset` is where it begins in its file.
/// `max_depth` counts containers: 3 is enough for {a: {b: [c]}}. Pure and thread-safe.
/// Throws FormatError for bad JSON, a key given twice in an object, nesting of more than `max_depth`.
nlohmann::json parse_strict_json(std::string_view text, int max_depth, std::string_view what, std::int64_t offset);

/// Where `key` stands in the document (the `nth` mention, from 0), in bytes from its begin; 0 when it is not found as
/// it is written.
std::int64_t find_json_key(std::string_view text, std::string_view key, int nth);

}  // namespace troupe::configs
