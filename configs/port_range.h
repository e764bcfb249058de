#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/namespaces.h"

namespace troupe::configs {

/// Tcp ports from `first` to `last`, both included.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

/// "7720-7799" or "7720"; nothing for another text, port 0, or a range that runs backwards.
std::optional<PortRange> parse_port_range(const std::string& text);

}  // namespace troupe::configs
