#include "configs/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "configs/document.h"
#include "configs/dump.h"
#include "configs/embedded.h"
#include "configs/embodiment_file.h"
#include "configs/merge.h"
#include "configs/references.h"
#include "configs/suggest.h"
#include "configs/validate.h"
#include "configs/warnings.h"
#include "configs/yaml_reader.h"

namespace troupe::configs {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxExtendsDepth = 16;

/// Reads the documents of a job and merges them, weakest first.
class LayerReader {
 public:
  LayerReader(Diagnostics& errors, std::vector<std::string>& sources) : errors_(errors), sources_(sources) {}

  /// Merges a document and, before it, those it extends into `root`. False when it could not be read at all.
  bool merge_document(const Document& document, ConfigNode& root) {
    auto layer = read_yaml(document.name, document.text, errors_);
    if (!layer) return false;
    open_.push_back(document.name);
    bool complete = true;
    if (const ConfigEntry* extends = layer->find("extends")) complete = merge_parents(*extends, document, root);
    std::erase_if(layer->entries, [](const ConfigEntry& entry) { return entry.key == "extends"; });
    open_.pop_back();
    sources_.push_back(document.name);
    expand_embodiments(*layer, document.name, document.embedded, errors_);
    expand_shorthands(*layer, job_spec());
    merge_into(root, std::move(*layer));
    return complete;
  }

 private:
  bool merge_parents(const ConfigEntry& extends, const Document& child, ConfigNode& root) {
    std::vector<const ConfigNode*> names;
    if (extends.value.is_list()) {
      for (const ConfigNode& item : extends.value.items) names.push_back(&item);
    } else {
      names.push_back(&extends.value);
    }
    bool complete = true;
    for (const ConfigNode* name : names) {
      if (!name->is_scalar() || name->text.empty()) {
        errors_.add(name->origin, "extends: expected a path or a list of paths");
        complete = false;
        continue;
      }
      const auto parent = find_parent(*name, child);
      complete = parent && merge_document(*parent, root) && complete;
    }
    return complete;
  }

  std::optional<Document> find_parent(const ConfigNode& name, const Document& child) {
    std::optional<Document> found = find_document(name, "", child.name, child.embedded, "extends", errors_);
    if (!found) return std::nullopt;
    if (std::find(open_.begin(), open_.end(), found->name) != open_.end()) {
      errors_.add(name.origin, fmt::format("extends: cycle {} -> {}", fmt::join(open_, " -> "), found->name));
      return std::nullopt;
    }
    if (open_.size() >= kMaxExtendsDepth) {
      errors_.add(name.origin, fmt::format("extends: chain is longer than {} files", kMaxExtendsDepth));
      return std::nullopt;
    }
    return found;
  }

  Diagnostics& errors_;
  std::vector<std::string>& sources_;
  std::vector<std::string> open_;  ///< documents whose parents are being read, outermost first
};

void apply_all(const std::vector<std::string>& overrides, Origin::Kind kind, ConfigNode& root, Diagnostics& errors) {
  for (const std::string& text : overrides) {
    apply_override(text, kind, root, errors);
    expand_shorthands(root, job_spec());
  }
}

LoadOutcome load_document(const Document& document, const std::vector<std::string>& overrides, bool use_environment) {
  Diagnostics errors(document.name);
  LoadedConfig loaded;
  ConfigNode root = ConfigNode::make(ConfigNode::Kind::map, {});
  const bool complete = LayerReader(errors, loaded.sources).merge_document(document, root);
  if (const char* value = std::getenv("TROUPE_SET"); use_environment && value != nullptr) {
    apply_all(split_environment(value), Origin::Kind::environment, root, errors);
  }
  apply_all(overrides, Origin::Kind::command_line, root, errors);
  expand_embodiments(root, document.name, document.embedded, errors);
  // Without one of its layers the job would look full of errors that are not there.
  if (!complete) return {std::nullopt, errors.finish()};

  complete_with_defaults(root, job_spec());
  resolve_references(root, errors);
  decode(root, job_spec(), &loaded.job, loaded.origins, errors);
  validate_job(loaded.job, loaded.origins, errors);
  if (!errors.empty()) return {std::nullopt, errors.finish()};

  for (const LeafValue& leaf : leaf_values(job_spec(), &loaded.job)) {
    const auto origin = loaded.origins.find(leaf.path);
    loaded.provenance[leaf.path] = origin == loaded.origins.end() ? "default" : origin->second.provenance();
  }
  resolve_dataset_paths(loaded);
  for (const ConfigWarning& doubt : find_warnings(loaded.job)) {
    loaded.warnings.push_back(loaded.warning_at(doubt.key, doubt.message, doubt.fix));
  }
  return {std::move(loaded), {}};
}

LoadOutcome not_found(const std::string& name) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("embodiments/")) continue;
    constexpr std::string_view kQuickstart = "recipes/quickstart_";
    const bool quickstart = file.name.starts_with(kQuickstart);
    std::string_view shown = file.name;
    if (quickstart) shown = shown.substr(kQuickstart.size(), shown.rfind('.') - kQuickstart.size());
    names.push_back(quickstart ? fmt::format("quickstart:{}", shown) : std::string(shown));
  }
  return {std::nullopt,
          {fmt::format("{}: error: no such file, and no recipe of that name\n      {}", name,
                       list_nearest_first("inside the binary", name, names))}};
}

}  // namespace

std::string LoadedConfig::text_at(const char* level, const std::string& key, const std::string& message,
                                  const std::string& fix) const {
  const auto found = origins.find(key);
  const std::string fallback = sources.empty() ? "" : sources.back();
  const Origin origin = found == origins.end() ? Origin{} : found->second;
  return format_config_error(origin, message, {}, fix, fallback, level).text;
}

std::string LoadedConfig::error_at(const std::string& key, const std::string& message, const std::string& fix) const {
  return text_at("error", key, message, fix);
}

std::string LoadedConfig::warning_at(const std::string& key, const std::string& message, const std::string& fix) const {
  return text_at("warning", key, message, fix);
}

void LoadedConfig::record() { resolved_yaml = dump_yaml(job_spec(), &job, provenance); }

std::string LoadedConfig::key_summary() const {
  std::size_t defaults = 0, environment = 0, command_line = 0;
  for (const auto& [path, from] : provenance) {
    defaults += from == "default";
    environment += from == "TROUPE_SET";
    command_line += from == "command line";
  }
  const std::size_t file = provenance.size() - defaults - environment - command_line;
  std::string text = fmt::format("{} keys ({} default, {} file", provenance.size(), defaults, file);
  if (environment > 0) text += fmt::format(", {} TROUPE_SET", environment);
  return text + fmt::format(", {} command line)", command_line);
}

void resolve_dataset_paths(LoadedConfig& loaded) {
  for (DataSetConfig& set : loaded.job.data.sets) {
    std::error_code code;
    if (set.path.empty() || set.path.front() == '/' || !fs::is_directory(set.path, code)) continue;
    std::string path = fs::absolute(set.path, code).lexically_normal().string();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (!code) set.path = std::move(path);
  }
  loaded.record();
}

LoadOutcome load_job(const std::string& path_or_recipe, const std::vector<std::string>& overrides) {
  std::error_code code;
  if (fs::exists(path_or_recipe, code)) {
    Diagnostics errors(path_or_recipe);
    auto text = read_config_file(path_or_recipe, path_or_recipe, errors);
    if (!text) return {std::nullopt, errors.finish()};
    return load_document({path_or_recipe, std::move(*text)}, overrides, true);
  }
  const auto embedded = find_embedded(path_or_recipe);
  if (!embedded) return not_found(path_or_recipe);
  return load_document({std::string(embedded->name), std::string(embedded->text), true}, overrides, true);
}

LoadOutcome load_job_text(const std::string& name, const std::string& yaml, const std::vector<std::string>& overrides) {
  return load_document({name, yaml}, overrides, false);
}

std::vector<std::string> differing_keys(const JobConfig& a, const JobConfig& b) {
  const auto left = leaf_values(job_spec(), &a), right = leaf_values(job_spec(), &b);
  std::map<std::string, std::string> values;
  for (const LeafValue& leaf : right) values[leaf.path] = leaf.text;
  std::vector<std::string> paths;
  for (const LeafValue& leaf : left) {
    const auto other = values.find(leaf.path);
    if (other == values.end() || other->second != leaf.text) paths.push_back(leaf.path);
    if (other != values.end()) values.erase(other);
  }
  for (const LeafValue& leaf : right) {
    if (values.contains(leaf.path)) paths.push_back(leaf.path);
  }
  return paths;
}

std::string to_yaml(const JobConfig& job) { return dump_yaml(job_spec(), &job, {}); }

}  // namespace troupe::configs
