#include "configs/port_range.h"

#include <charconv>
#include <string_view>

namespace troupe::configs {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace

std::optional<PortRange> parse_port_range(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_port(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_port(std::string_view(text).substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return PortRange{*first, *last};
}

}  // namespace troupe::configs
