#include "workers/inference/policy/gear_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "configs/diagnostics.h"
#include "configs/yaml_reader.h"

namespace troupe::workers {

namespace {

constexpr int kMaxReferences = 8;  // ${a} -> ${b} -> ...

/// A configuration tree whose ${a.b} references are followed on reading.
class ConfTree {
 public:
  ConfTree(const ConfigNode& root, std::string path) : root_(root), path_(std::move(path)) {}

  /// The node behind references, or null when it is absent, null or refers to nothing.
  const ConfigNode* follow(const ConfigNode* node) const {
    for (int i = 0; i < kMaxReferences && node != nullptr && node->is_scalar(); ++i) {
      const std::string& text = node->text;
      if (!text.starts_with("${") || !text.ends_with("}")) return node;
      node = find_node(root_, parse_path(text.substr(2, text.size() - 3)));
    }
    return node == nullptr || node->is_null() ? nullptr : node;
  }
  const ConfigNode* member(const ConfigNode* node, std::string_view key) const {
    if (node == nullptr || !node->is_map()) return nullptr;
    const ConfigEntry* entry = node->find(key);
    return entry == nullptr ? nullptr : follow(&entry->value);
  }
  const ConfigNode* root_member(std::string_view key) const { return member(&root_, key); }

  std::vector<std::string> texts(const ConfigNode* node) const {
    std::vector<std::string> out;
    if (node == nullptr || !node->is_list()) return out;
    for (const ConfigNode& item : node->items) {
      const ConfigNode* text = follow(&item);
      if (text != nullptr && text->is_scalar()) out.push_back(text->text);
    }
    return out;
  }
  Result<std::optional<double>> number(const ConfigNode* node, const char* what) const {
    if (node == nullptr) return std::optional<double>{};
    char* end = nullptr;
    const double value = node->is_scalar() ? std::strtod(node->text.c_str(), &end) : 0;
    if (!node->is_scalar() || node->text.empty() || *end != '\0') {
      return Error{Errc::invalid_argument, fmt::format("{}:{}: {} wants a number", path_, node->origin.line, what)};
    }
    return std::optional<double>{value};
  }
  std::optional<bool> truth(std::string_view key) const {
    const ConfigNode* node = root_member(key);
    if (node == nullptr || !node->is_scalar()) return std::nullopt;
    return node->text == "true" || node->text == "True";
  }
  const std::string& path() const { return path_; }

 private:
  const ConfigNode& root_;
  std::string path_;
};

std::string without_prefix(const std::string& key, std::string_view prefix) {
  return key.starts_with(prefix) ? key.substr(prefix.size()) : key;
}

std::vector<std::string> without_prefix(std::vector<std::string> keys, std::string_view prefix) {
  for (std::string& key : keys) key = without_prefix(key, prefix);
  return keys;
}

std::string last_part(const std::string& target) { return target.substr(target.rfind('.') + 1); }

Result<void> read_modes(const ConfTree& tree, const ConfigNode& transform, GearExperiment& out) {
  const ConfigNode* rotations = tree.member(&transform, "target_rotations");
  if (rotations != nullptr && rotations->is_map() && !rotations->entries.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}:{}: target_rotations converts '{}'; rotations are not converted here", tree.path(),
                             rotations->origin.line, rotations->entries.front().key)};
  }
  const ConfigNode* modes = tree.member(&transform, "normalization_modes");
  if (modes == nullptr || !modes->is_map()) return {};
  for (const ConfigEntry& entry : modes->entries) {
    const ConfigNode* name = tree.follow(&entry.value);
    auto mode = normalization_mode(name != nullptr && name->is_scalar() ? name->text : "");
    if (!mode) return mode.error().with(fmt::format("{}:{}: {}", tree.path(), entry.origin.line, entry.key));
    if (entry.key.starts_with("state.")) out.state_modes[without_prefix(entry.key, "state.")] = *mode;
    if (entry.key.starts_with("action.")) out.action_modes[without_prefix(entry.key, "action.")] = *mode;
  }
  return {};
}

Result<void> read_transforms(const ConfTree& tree, const ConfigNode* composed, GearExperiment& out) {
  const ConfigNode* list = tree.member(composed, "transforms");
  if (list == nullptr || !list->is_list()) return {};
  for (const ConfigNode& item : list->items) {
    const ConfigNode* transform = tree.follow(&item);
    const ConfigNode* target = tree.member(transform, "_target_");
    if (target == nullptr) continue;
    const std::string kind = last_part(target->text);
    if (kind == "VideoCrop") {
      TROUPE_ASSIGN(out.crop, tree.number(tree.member(transform, "scale"), "VideoCrop.scale"));
    } else if (kind == "VideoResize") {
      TROUPE_ASSIGN(const auto height, tree.number(tree.member(transform, "height"), "VideoResize.height"));
      TROUPE_ASSIGN(const auto width, tree.number(tree.member(transform, "width"), "VideoResize.width"));
      if (height) out.image_height = static_cast<std::int64_t>(*height);
      if (width) out.image_width = static_cast<std::int64_t>(*width);
    } else if (kind == "StateActionTransform") {
      TROUPE_TRY(read_modes(tree, *transform, out));
    }
  }
  return {};
}

}  // namespace

Result<GearExperiment> parse_gear_experiment(const std::string& text, const std::string& path, const std::string& tag) {
  Diagnostics errors(path);
  const auto root = read_yaml(path, text, errors);
  if (!root || !errors.empty()) {
    return Error{Errc::invalid_argument, fmt::format("{}", fmt::join(errors.finish(), "\n"))};
  }
  const ConfTree tree(*root, path);
  GearExperiment out;
  const ConfigNode* modality = tree.member(tree.root_member("modality_configs"), tag);
  const auto keys = [&](const char* section) {
    return tree.texts(tree.member(tree.member(modality, section), "modality_keys"));
  };
  out.views = without_prefix(keys("video"), "video.");
  out.state_keys = without_prefix(keys("state"), "state.");
  out.action_keys = without_prefix(keys("action"), "action.");
  const std::vector<std::string> language = keys("language");
  if (!language.empty()) out.language_key = without_prefix(language.front(), "annotation.");
  TROUPE_TRY(read_transforms(tree, tree.member(tree.root_member("transforms"), tag), out));

  const std::optional<bool> relative = tree.truth("relative_action"),
                            horizon = tree.truth("relative_action_per_horizon");
  if (relative || horizon) out.relative = relative.value_or(false) || horizon.value_or(false);
  out.relative_action_keys = tree.texts(tree.root_member("relative_action_keys"));
  return out;
}

}  // namespace troupe::workers
