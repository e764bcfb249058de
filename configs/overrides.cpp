#include "configs/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "configs/merge.h"
#include "configs/suggest.h"
#include "configs/yaml_reader.h"

namespace troupe::configs {

namespace {

/// True for `name(.name|[n])*` with names of letters, digits, `_`, `-` and `,`.
bool is_key_path(std::string_view text) {
  const auto valid = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-,.[]").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), valid) &&
         !parse_path(text).empty();
}

/// A key path that can only be meant as a configuration key: it has a dot, or names a section or field at the top.
bool is_config_key(std::string_view text) {
  return is_key_path(text) && (text.find('.') != std::string_view::npos || job_spec().find(text) != nullptr);
}

std::string_view without_blanks_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);  // npos + 1 is 0
}

/// How to write an override that is written as another program takes it; empty where nothing is wrong with its form.
std::string other_form(const std::string& text) {
  const std::size_t equals = text.find('='), pluses = text.find_first_not_of('+');
  if (equals == std::string::npos || pluses >= equals) return {};
  const std::string_view key = std::string_view(text).substr(pluses, equals - pluses),
                         bare = without_blanks_behind(key);
  const std::size_t value = std::min(text.find_first_not_of(" \t", equals + 1), text.size());
  const bool has_blank = value > equals + 1 && value < text.size();
  if (!is_key_path(bare) || (pluses == 0 && bare == key && !has_blank)) return {};
  return fmt::format("{}={}", bare, text.substr(value));
}

/// Whether a word behind "a.b=" can only be its value: a number or a truth value.
bool is_plain_value(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return text == "true" || text == "false" || (!text.empty() && *end == '\0');
}

/// The words from `at` on that are "a.b", "=", "5" or "a.b", "=5" or "a.b=", "5": how many; 0 where they are something
/// else.
std::size_t words_of_split_override(const std::vector<std::string>& args, std::size_t at) {
  if (at + 1 >= args.size()) return 0;
  const std::string& key = args[at];
  if (key.ends_with('=') && is_key_path(std::string_view(key).substr(0, key.size() - 1)))
    return is_plain_value(args[at + 1]) ? 2 : 0;
  if (!args[at + 1].starts_with("=") || !is_key_path(key)) return 0;
  return args[at + 1] == "=" && at + 2 < args.size() ? 3 : 2;
}

/// What the spec says stands at a path.
struct Place {
  const StructSpec* spec = nullptr;  ///< the struct that stands there
  const FieldSpec* field = nullptr;  ///< or the field
};

Place next_place(const Place& at, const PathStep& step) {
  if (step.index >= 0) {
    const bool list = at.field != nullptr && at.field->kind == FieldKind::struct_list;
    return list ? Place{at.field->element.get(), nullptr} : Place{};
  }
  if (at.field != nullptr && at.field->kind == FieldKind::struct_map) return {at.field->element.get(), nullptr};
  if (at.spec == nullptr) return {};
  const FieldSpec* field = at.spec->find(step.key);
  if (field != nullptr && field->kind == FieldKind::group) return {field->element.get(), field};
  return {nullptr, field};
}

/// A list that nothing has set yet starts as the struct's default, so that `betas[0]=0.9` keeps the second number.
ConfigNode initial_value(const Place& parent, const Place& place, const PathStep& next) {
  if (next.index >= 0 && parent.spec != nullptr && place.field != nullptr) {
    return to_node(*place.field, parent.spec->defaults.get());
  }
  return ConfigNode::make(next.index >= 0 ? ConfigNode::Kind::list : ConfigNode::Kind::map, {});
}

/// The child of `node` for one step, made when absent. Nullptr after an error.
ConfigNode* descend(ConfigNode& node, const PathStep& step, ConfigNode fresh, const Origin& origin,
                    const std::string& key, Diagnostics& errors) {
  if (step.index >= 0) {
    const auto index = static_cast<std::size_t>(step.index);
    if (!node.is_list()) {
      errors.add(origin, fmt::format("{}: there is no list to index", key));
      return nullptr;
    }
    if (index > node.items.size()) {
      errors.add(origin,
                 fmt::format("{}: index {} is beyond the list, which has {} elements", key, index, node.items.size()));
      return nullptr;
    }
    if (index == node.items.size()) {
      fresh.origin = origin;
      node.items.push_back(std::move(fresh));
    }
    return &node.items[index];
  }
  if (node.is_null()) node.kind = ConfigNode::Kind::map;
  if (!node.is_map()) {
    errors.add(origin, fmt::format("{}: '{}' stands inside a value that has no keys", key, step.key));
    return nullptr;
  }
  if (ConfigEntry* entry = node.find(step.key)) return &entry->value;
  fresh.origin = origin;
  node.entries.push_back({step.key, origin, std::move(fresh)});
  return &node.entries.back().value;
}

/// Walks to the parent of the last step, making what is absent.
ConfigNode* parent_of(ConfigNode& root, const std::vector<PathStep>& path, const Origin& origin, const std::string& key,
                      Diagnostics& errors) {
  ConfigNode* node = &root;
  Place place{&job_spec(), nullptr};
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const Place below = next_place(place, path[i]);
    ConfigNode fresh = initial_value(place, below, path[i + 1]);
    node = descend(*node, path[i], std::move(fresh), origin, key, errors);
    if (node == nullptr) return nullptr;
    place = below;
  }
  return node;
}

/// The first key of a path that nothing describes, and the struct it was looked up in.
struct UnknownKey {
  std::string name;
  const StructSpec* map;
};
std::optional<UnknownKey> find_unknown_key(const std::vector<PathStep>& path) {
  Place place{&job_spec(), nullptr};
  for (const PathStep& step : path) {
    const Place below = next_place(place, step);
    const bool free_key = place.field != nullptr && place.field->kind == FieldKind::string_map;
    if (below.spec == nullptr && below.field == nullptr && !free_key && step.index < 0) {
      return UnknownKey{step.key, place.spec == nullptr ? &job_spec() : place.spec};
    }
    place = below;
  }
  return std::nullopt;
}

/// "a.b=c" with the key that is meant where a.b is unknown and one is near.
std::string with_known_key(const std::string& form) {
  const std::size_t equals = form.find('=');
  std::string key = form.substr(0, equals);
  const auto unknown = find_unknown_key(parse_path(key));
  const std::string meant = unknown ? suggest_key(unknown->name, *unknown->map) : "";
  if (meant.empty()) return form;
  // the name of a key in the same map, or a whole path
  const std::size_t begin = key.rfind(unknown->name);
  key = meant.find('.') != std::string::npos ? meant : key.replace(begin, unknown->name.size(), meant);
  return key + form.substr(equals);
}

void reset_key(const std::string& key, const std::vector<PathStep>& path, const Origin& origin, ConfigNode& root,
               Diagnostics& errors) {
  if (path.back().index >= 0) {
    errors.add(origin, fmt::format("~{}: a list element has no default; set the whole list instead", key));
    return;
  }
  if (const auto unknown = find_unknown_key(path)) {
    errors.add(origin, fmt::format("unknown key '{}'", key), key_hint(unknown->name, *unknown->map));
    return;
  }
  const std::vector<PathStep> above(path.begin(), path.end() - 1);
  auto* parent = const_cast<ConfigNode*>(find_node(root, above));
  if (parent != nullptr) std::erase_if(parent->entries, [&](const ConfigEntry& e) { return e.key == path.back().key; });
}

}  // namespace

std::vector<std::string> split_overrides(std::vector<std::string>& args) {
  std::vector<std::string> overrides, rest;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      rest.insert(rest.end(), args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      break;
    }
    const bool dashed = arg.starts_with("--");
    const std::string body = dashed ? arg.substr(2) : arg;
    const std::size_t equals = body.find('=');
    const bool removes = !dashed && body.starts_with("~") && is_key_path(body.substr(1));
    // without dashes it can only be a key; with them, a word without a dot may be a flag
    const std::string key = equals == std::string::npos ? "" : body.substr(0, equals);
    const bool sets = dashed ? is_config_key(key) : is_key_path(key) || !other_form(arg).empty();
    if (const std::size_t words = words_of_split_override(args, i); words > 0) {
      overrides.push_back(fmt::format("{}", fmt::join(args.begin() + static_cast<std::ptrdiff_t>(i),
                                                      args.begin() + static_cast<std::ptrdiff_t>(i + words), " ")));
      i += words - 1;
    } else if (removes || sets) {
      overrides.push_back(body);
    } else if (dashed && equals == std::string::npos && body.find('.') != std::string::npos && is_key_path(body) &&
               i + 1 < args.size() && !args[i + 1].starts_with("--")) {
      overrides.push_back(body + "=" + args[++i]);
    } else {
      rest.push_back(arg);
    }
  }
  args = std::move(rest);
  return overrides;
}

namespace {

/// The parts between separators that are outside quotes, brackets and braces.
std::vector<std::string> split_outside(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (depth == 0 && quote == 0 && separators.find(c) != std::string_view::npos) {
      parts.emplace_back();
      continue;
    }
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    parts.back() += c;
  }
  return parts;
}

}  // namespace

std::vector<std::string> split_environment(const std::string& value) {
  std::vector<std::string> overrides = split_outside(value, " \t\n\r");
  std::erase_if(overrides, [](const std::string& word) { return word.empty(); });
  return overrides;
}

std::vector<std::string> split_values(const std::string& value) { return split_outside(value, ","); }

void apply_override(const std::string& text, Origin::Kind kind, ConfigNode& root, Diagnostics& errors) {
  Origin origin;
  origin.kind = kind;
  if (const std::string form = other_form(text); !form.empty()) {
    errors.add(origin, fmt::format("'{}' is not how a key is set here", text),
               fmt::format("write {}", with_known_key(form)));
    return;
  }
  const bool reset = text.starts_with("~");
  const std::size_t equals = text.find('=');
  const std::string key = reset ? text.substr(1) : text.substr(0, equals);
  const std::vector<PathStep> path = parse_path(key);
  if (path.empty() || (!reset && equals == std::string::npos)) {
    errors.add(origin,
               fmt::format("'{}' is not an override; write key.path=value, or ~key.path for the default", text));
    return;
  }
  if (reset) return reset_key(key, path, origin, root, errors);
  auto value = read_yaml_value(key, text.substr(equals + 1), origin, errors);
  ConfigNode* parent = value ? parent_of(root, path, origin, key, errors) : nullptr;
  ConfigNode* target = parent == nullptr ? nullptr : descend(*parent, path.back(), ConfigNode{}, origin, key, errors);
  if (target == nullptr) return;
  merge_into(*target, std::move(*value));
  if (path.back().index < 0) parent->find(path.back().key)->origin = origin;
}

}  // namespace troupe::configs
