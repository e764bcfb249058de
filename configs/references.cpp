#include "configs/references.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "configs/suggest.h"

namespace troupe::configs {

namespace {

std::string join_path(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

/// Depth-first resolution: a node is resolved before anything copies it.
class Resolver {
 public:
  Resolver(ConfigNode& root, Diagnostics& errors) : root_(root), errors_(errors) {}

  void resolve(ConfigNode& node, const std::string& path) {
    if (done_.contains(path)) return;
    if (node.is_scalar()) {
      // what it becomes is resolved already, and may hold a literal `${`
      resolve_scalar(node, path);
      done_.insert(path);
      return;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) resolve(node.items[i], fmt::format("{}[{}]", path, i));
    for (ConfigEntry& entry : node.entries) resolve(entry.value, join_path(path, entry.key));
    done_.insert(path);
  }

 private:
  void resolve_scalar(ConfigNode& node, const std::string& path) {
    if (node.text.find("${") == std::string::npos) return;
    active_.push_back(path);
    const std::string text = node.text;
    const Origin origin = node.origin;
    if (text.starts_with("${") && text.find('}') == text.size() - 1) {
      auto value = lookup(text.substr(2, text.size() - 3), origin);
      if (value) {
        node = std::move(*value);
        set_origin(node, origin);
      } else {
        errors_.mark_bad(path);
      }
    } else if (auto expanded = interpolate(text, origin)) {
      node.text = std::move(*expanded);
    } else {
      errors_.mark_bad(path);
    }
    active_.pop_back();
  }

  std::optional<std::string> interpolate(const std::string& text, const Origin& origin) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (text.compare(i, 3, "$${") == 0) {
        out += "${";
        i += 3;
      } else if (text.compare(i, 2, "${") == 0) {
        const std::size_t end = text.find('}', i);
        if (end == std::string::npos) {
          errors_.add(origin, fmt::format("'{}' has a reference without its closing brace", text));
          return std::nullopt;
        }
        const std::string reference = text.substr(i + 2, end - i - 2);
        const auto value = lookup(reference, origin);
        if (!value) return std::nullopt;
        if (!value->is_scalar() && !value->is_null()) {
          errors_.add(origin, fmt::format("${{{}}} is not a scalar and cannot stand inside a longer text", reference));
          return std::nullopt;
        }
        out += value->text;
        i = end + 1;
      } else {
        out += text[i++];
      }
    }
    return out;
  }

  std::optional<ConfigNode> lookup(const std::string& reference, const Origin& origin) {
    if (reference.starts_with("env:")) return lookup_environment(reference.substr(4), origin);
    const std::vector<PathStep> path = parse_path(reference);
    auto* target = path.empty() ? nullptr : const_cast<ConfigNode*>(find_node(root_, path));
    if (target == nullptr) {
      const std::string near = suggest_path(reference);
      errors_.add(origin, fmt::format("reference to unknown key '{}'", reference),
                  near.empty() ? "" : fmt::format("did you mean '{}'?", near));
      return std::nullopt;
    }
    // a reference to a section that holds this very key would contain itself, too
    const auto inside = [&](const std::string& active) {
      return active == reference || active.starts_with(reference + ".") || active.starts_with(reference + "[");
    };
    const auto begin = std::find_if(active_.begin(), active_.end(), inside);
    if (begin != active_.end()) {
      errors_.add(origin, fmt::format("reference cycle: {} -> {}", fmt::join(begin, active_.end(), " -> "), *begin));
      return std::nullopt;
    }
    resolve(*target, reference);
    if (errors_.is_bad(reference)) return std::nullopt;
    return *target;
  }

  std::optional<ConfigNode> lookup_environment(const std::string& reference, const Origin& origin) {
    const std::size_t comma = reference.find(',');
    const std::string name = reference.substr(0, comma);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr && comma == std::string::npos) {
      errors_.add(origin, fmt::format("environment variable {} is not set and ${{env:{}}} has no default", name, name));
      return std::nullopt;
    }
    ConfigNode node =
        ConfigNode::make_scalar(value != nullptr ? std::string(value) : reference.substr(comma + 1), false, origin);
    if (node.text.empty()) node.kind = ConfigNode::Kind::null;
    return node;
  }

  static std::string suggest_path(const std::string& reference) {
    std::vector<std::string> paths;
    for (const SpecEntry& entry : job_spec_entries()) paths.push_back(entry.path);
    if (std::string near = nearest_name(reference, paths); !near.empty()) return near;
    const std::string leaf = reference.substr(reference.rfind('.') + 1);
    for (const SpecEntry& entry : job_spec_entries()) {
      if (entry.field->name == leaf) return entry.path;
    }
    return {};
  }

  static void set_origin(ConfigNode& node, const Origin& origin) {
    node.origin = origin;
    for (ConfigNode& item : node.items) set_origin(item, origin);
    for (ConfigEntry& entry : node.entries) set_origin(entry.value, origin);
  }

  ConfigNode& root_;
  Diagnostics& errors_;
  std::set<std::string> done_;
  std::vector<std::string> active_;  ///< paths being resolved, outermost first
};

}  // namespace

void resolve_references(ConfigNode& root, Diagnostics& errors) { Resolver(root, errors).resolve(root, ""); }

}  // namespace troupe::configs
