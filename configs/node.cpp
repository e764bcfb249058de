#include "configs/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/scalar.h"

namespace troupe::configs {

std::string Origin::provenance() const {
  switch (kind) {
    case Kind::builtin:
      return "default";
    case Kind::file:
      return fmt::format("{}:{}", file->name, line);
    case Kind::environment:
      return "TROUPE_SET";
    case Kind::command_line:
      return "command line";
  }
  return {};
}

ConfigNode ConfigNode::make(Kind kind, Origin origin) {
  ConfigNode node;
  node.kind = kind;
  node.origin = std::move(origin);
  return node;
}

ConfigNode ConfigNode::make_scalar(std::string text, bool quoted, Origin origin) {
  ConfigNode node = make(Kind::scalar, std::move(origin));
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

const ConfigEntry* ConfigNode::find(std::string_view key) const {
  for (const ConfigEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

ConfigEntry* ConfigNode::find(std::string_view key) {
  return const_cast<ConfigEntry*>(static_cast<const ConfigNode*>(this)->find(key));
}

std::vector<PathStep> parse_path(std::string_view path) {
  std::vector<PathStep> steps;
  while (true) {
    const std::size_t end = std::min(path.find('.'), path.size());
    std::string_view part = path.substr(0, end);
    const std::size_t bracket = std::min(part.find('['), part.size());
    if (bracket == 0) return {};
    steps.push_back({std::string(part.substr(0, bracket)), -1});
    for (part.remove_prefix(bracket); !part.empty();) {
      const std::size_t close = part.find(']');
      if (part.front() != '[' || close == std::string_view::npos) return {};
      const auto index = parse_integer(part.substr(1, close - 1));
      if (!index || *index < 0 || *index > 65535) return {};
      steps.push_back({"", static_cast<int>(*index)});
      part.remove_prefix(close + 1);
    }
    if (end == path.size()) return steps;
    path.remove_prefix(end + 1);
  }
}

const ConfigNode* find_node(const ConfigNode& root, const std::vector<PathStep>& path) {
  const ConfigNode* node = &root;
  for (const PathStep& step : path) {
    if (step.index >= 0) {
      if (!node->is_list() || static_cast<std::size_t>(step.index) >= node->items.size()) return nullptr;
      node = &node->items[static_cast<std::size_t>(step.index)];
    } else {
      const ConfigEntry* entry = node->is_map() ? node->find(step.key) : nullptr;
      if (entry == nullptr) return nullptr;
      node = &entry->value;
    }
  }
  return node;
}

}  // namespace troupe::configs
