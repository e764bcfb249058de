#include "configs/rank_text.h"

#include "configs/scalar.h"

namespace troupe::configs {

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_rank(std::string_view text) {
  text = trim_blanks(text);
  const auto value = text.starts_with('+') || text.starts_with('-') ? std::nullopt : parse_integer(text);
  return value && *value >= 0 && *value <= kMaxRank ? value : std::nullopt;
}

std::vector<std::string_view> split_trimmed(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim_blanks(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace troupe::configs
