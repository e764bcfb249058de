#include "configs/embodiment_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "configs/decode.h"
#include "configs/describe.h"
#include "configs/document.h"
#include "configs/merge.h"
#include "configs/validate.h"
#include "configs/yaml_reader.h"

namespace troupe::configs {

namespace {

constexpr const char* kFolder = "embodiments/";

const StructSpec& embodiment_spec() {
  static const std::shared_ptr<const StructSpec> spec = make_spec<EmbodimentConfig>();
  return *spec;
}

/// The tree of the embodiment that a scalar names.
std::optional<ConfigNode> read_embodiment(const ConfigNode& name, const std::string& document, bool embedded,
                                          const std::string& key, Diagnostics& errors) {
  const std::string& from = name.origin.file                            ? name.origin.file->name
                            : name.origin.kind == Origin::Kind::builtin ? document
                                                                        : "";
  const auto found = find_document(name, kFolder, from, embedded && name.origin.file != nullptr, key, errors);
  if (!found) return std::nullopt;
  auto tree = read_yaml(found->name, found->text, errors);
  if (tree) tree->replaces = true;
  return tree;
}

std::string stem_of(const std::string& name) { return std::filesystem::path(name).stem().string(); }

/// data.embodiments of the layer, made where it is absent.
ConfigNode& embodiments_of(ConfigNode& data) {
  if (ConfigEntry* entry = data.find("embodiments"); entry != nullptr && entry->value.is_map()) return entry->value;
  data.entries.push_back({"embodiments", data.origin, ConfigNode::make(ConfigNode::Kind::map, data.origin)});
  return data.entries.back().value;
}

void expand_set(ConfigNode& data, ConfigNode& set, std::size_t index, const std::string& document, bool embedded,
                Diagnostics& errors) {
  ConfigEntry* entry = set.is_map() ? set.find("embodiment") : nullptr;
  if (entry == nullptr || !entry->value.is_scalar() || entry->value.text.empty()) return;
  ConfigNode& known = embodiments_of(data);
  if (known.find(entry->value.text) != nullptr) return;
  const std::string stem = stem_of(entry->value.text);
  if (stem == entry->value.text && known.find(stem) != nullptr) return;
  const std::string key = fmt::format("data.sets[{}].embodiment", index);
  auto tree = read_embodiment(entry->value, document, embedded, key, errors);
  if (!tree) return errors.mark_bad(key);
  if (const ConfigEntry* other = known.find(stem); other != nullptr) {
    const auto file_of = [](const ConfigNode& node) { return node.origin.file ? node.origin.file->name : ""; };
    if (file_of(other->value) != file_of(*tree)) {
      errors.add(entry->value.origin,
                 fmt::format("data.sets[{}].embodiment: data.embodiments has another '{}'; give the file another name",
                             index, stem));
      return;
    }
  } else {
    known.entries.push_back({stem, entry->value.origin, std::move(*tree)});
  }
  entry->value.text = stem;
}

}  // namespace

void expand_embodiments(ConfigNode& layer, const std::string& document, bool embedded, Diagnostics& errors) {
  ConfigEntry* data = layer.find("data");
  if (data == nullptr || !data->value.is_map()) return;
  const auto expand = [&](ConfigNode& node, const std::string& key) {
    if (!node.is_scalar()) return;
    auto tree = read_embodiment(node, document, embedded, key, errors);
    if (!tree) errors.mark_bad(key);
    node = tree ? std::move(*tree) : ConfigNode::make(ConfigNode::Kind::map, node.origin);
  };
  if (ConfigEntry* own = data->value.find("embodiment")) expand(own->value, "data.embodiment");
  if (ConfigEntry* named = data->value.find("embodiments"); named != nullptr && named->value.is_map()) {
    for (ConfigEntry& entry : named->value.entries) expand(entry.value, "data.embodiments." + entry.key);
  }
  const ConfigEntry* sets = data->value.find("sets");
  if (sets == nullptr || !sets->value.is_list()) return;
  for (std::size_t i = 0; i < sets->value.items.size(); ++i) {
    // embodiments_of may add an entry, which moves the others
    ConfigNode& set = data->value.find("sets")->value.items[i];
    expand_set(data->value, set, i, document, embedded, errors);
    sets = data->value.find("sets");
  }
}

Result<EmbodimentConfig> load_embodiment(const std::string& name_or_file) {
  Diagnostics errors(name_or_file);
  const ConfigNode name =
      ConfigNode::make_scalar(name_or_file, false, Origin{.kind = Origin::Kind::command_line, .file = {}});
  EmbodimentConfig embodiment;
  const auto failed = [&](Errc code) { return Error{code, fmt::format("{}", fmt::join(errors.finish(), "\n"))}; };
  const auto found = find_document(name, kFolder, "", false, "embodiment", errors);
  if (!found) return failed(Errc::not_found);
  const auto tree = read_yaml(found->name, found->text, errors);
  OriginMap origins;
  if (tree) decode(*tree, embodiment_spec(), &embodiment, origins, errors);
  if (errors.empty()) {
    Rules rules(origins, errors);
    validate_embodiment(embodiment, "", rules);
  }
  if (!errors.empty()) return failed(Errc::invalid_argument);
  return embodiment;
}

}  // namespace troupe::configs
