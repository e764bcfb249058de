#include "workers/report/config_lines.h"

#include <fmt/format.h>

#include <cstdint>
#include <sstream>

namespace troupe::workers {

namespace {

/// A key that later, deeper lines are below.
struct OpenKey {
  std::size_t indent = 0;
  std::string path;
  std::int64_t items = 0;
};

}  // namespace

std::vector<ConfigLine> config_lines(const std::string& resolved_yaml) {
  std::vector<ConfigLine> out;
  std::vector<OpenKey> open{{}};
  std::istringstream in(resolved_yaml);
  for (std::string text; std::getline(in, text);) {
    ConfigLine line{.text = text};
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string::npos || text[begin] == '#') {
      out.push_back(line);
      continue;
    }
    std::size_t indent = begin;
    if (const auto source = text.rfind("  # "); source != std::string::npos) {
      line.source = text.substr(source + 4);
      text.resize(source);
    }
    if (text.compare(indent, 2, "- ") == 0) {  // an item is a level of its own
      while (open.size() > 1 && open.back().indent >= indent) open.pop_back();
      open.push_back({indent, fmt::format("{}[{}]", open.back().path, open.back().items++)});
      indent += 2;
    }
    while (open.size() > 1 && open.back().indent >= indent) open.pop_back();
    const auto colon = text.find(": ", indent);
    const std::string key = text.substr(indent, (colon == std::string::npos ? text.size() - 1 : colon) - indent);
    line.path = open.back().path.empty() ? key : open.back().path + "." + key;
    if (colon == std::string::npos) {
      open.push_back({indent, line.path});
    } else {
      line.value = text.substr(colon + 2);
    }
    out.push_back(line);
  }
  return out;
}

}  // namespace troupe::workers
