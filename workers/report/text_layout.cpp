#include "workers/report/text_layout.h"

#include <fmt/format.h>

#include <cmath>

namespace troupe::workers {

namespace {

std::string painted(const TextField& f, const TextStyle& style) {
  return style.color && f.color != nullptr ? f.color + f.text + "\x1b[0m" : f.text;
}

}  // namespace

std::string layout_text(const TextField& head, const std::vector<TextField>& fields, const TextStyle& style,
                        std::size_t gap) {
  const std::string indent(head.text.size(), ' ');
  std::string out = painted(head, style);
  std::size_t column = head.text.size();
  bool at_start = true;
  for (const TextField& f : fields) {
    const std::size_t spaces = at_start ? 0 : gap;
    if (!at_start && style.width > 0 && column + spaces + f.text.size() > static_cast<std::size_t>(style.width)) {
      out += "\n" + indent;
      column = indent.size();
    } else {
      out += std::string(spaces, ' ');
      column += spaces;
    }
    out += painted(f, style);
    column += f.text.size();
    at_start = false;
  }
  return out + "\n";
}

std::string rate_text(double value) {
  if (!std::isfinite(value)) return "n/a";
  return std::abs(value) >= 100  ? fmt::format("{:.0f}", value)
         : std::abs(value) >= 10 ? fmt::format("{:.1f}", value)
                                 : fmt::format("{:.2f}", value);
}

std::string number_text(double value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace troupe::workers
