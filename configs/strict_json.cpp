#include "configs/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "configs/format_error.h"

namespace troupe::configs {

using nlohmann::json;

std::int64_t find_json_key(std::string_view text, std::string_view key, int nth) {
  const std::string quoted = json(key).dump();
  std::size_t at = text.find(quoted);
  for (; nth > 0 && at != std::string_view::npos; --nth) at = text.find(quoted, at + quoted.size());
  return at == std::string_view::npos ? 0 : static_cast<std::int64_t>(at);
}

json parse_strict_json(std::string_view text, int max_depth, std::string_view what, std::int64_t offset) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) {
      throw FormatError(offset, fmt::format("the {} is nested more than {} deep", what, max_depth));
    }
    if (event == json::parse_event_t::object_start) {
      keys.resize(static_cast<std::size_t>(depth) + 1);
      keys.back().clear();
    } else if (event == json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!keys[static_cast<std::size_t>(depth) - 1].insert(name).second) {
        throw FormatError(offset + find_json_key(text, name, 1),
                          fmt::format("key '{}' appears twice in the {}", name, what));
      }
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& e) {
    throw FormatError(offset + static_cast<std::int64_t>(e.byte),
                      fmt::format("the {} is not valid JSON: {}", what, e.what()));
  } catch (const json::exception& e) {
    throw FormatError(offset, fmt::format("the {} is not valid JSON: {}", what, e.what()));
  }
}

}  // namespace troupe::configs
