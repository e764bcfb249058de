#include "data/lerobot/json_text.h"

#include <fmt/format.h>

#include <cstddef>

namespace troupe::data {

Result<void> check_json_text(std::string_view text) {
  if (text.size() > kMostJsonBytes)
    return invalid_argument(fmt::format("{} bytes of JSON; at most {} are read", text.size(), kMostJsonBytes));
  // the parser would take it for the end
  if (const auto zero = text.find('\0'); zero != text.npos)
    return invalid_argument(fmt::format("byte {} is zero, as in a file that was not written to its end", zero + 1));
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;  // whatever follows does not end the string
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostJsonDepth)
        return invalid_argument(
            fmt::format("arrays and objects are nested more than {} deep at byte {}; this is no "
                        "file of a dataset",
                        kMostJsonDepth, i + 1));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return {};
}

}  // namespace troupe::data
