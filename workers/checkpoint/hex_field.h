#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/hash.h"

namespace troupe::workers {

/// A number that manifests and ledgers write as 16 hex digits, because JSON readers of other languages take large
/// integers for doubles. Throws std::runtime_error for anything else; readers of files turn it into data_loss with
/// the path.
inline std::uint64_t hex_field(const nlohmann::json& value) {
  const auto& text = value.get_ref<const std::string&>();
  const auto number = from_hex(text);
  if (!number) throw std::runtime_error(fmt::format("'{}' is not 16 hex digits", text));
  return *number;
}

}  // namespace troupe::workers
