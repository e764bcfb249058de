#pragma once

#include <string>

namespace troupe::configs {

/// JSON Schema (draft 2020-12) of a job file, from describe(): for editors. Text with two-space indentation.
std::string config_schema_json();

/// docs/config.md, from describe(): a table per section with key, type, default, unit, range or choices, and meaning.
std::string config_markdown();

}  // namespace troupe::configs
