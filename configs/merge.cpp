#include "configs/merge.h"

#include <fmt/format.h>

#include "configs/scalar.h"

namespace troupe::configs {

namespace {

void expand_value(ConfigNode& value, const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::group:
      expand_shorthands(value, *field.element);
      break;
    case FieldKind::struct_list:
      // one scalar is a list of one, as `data.sets: /data/droid`
      if (value.is_scalar() && !field.element->shorthand.empty()) {
        ConfigNode list = ConfigNode::make(ConfigNode::Kind::list, value.origin);
        list.items.push_back(std::move(value));
        value = std::move(list);
      }
      for (ConfigNode& item : value.items) expand_shorthands(item, *field.element);
      break;
    case FieldKind::struct_map:
    case FieldKind::string_map:
      for (ConfigEntry& entry : value.entries) {
        // null takes an inherited entry away, so it must not be mistaken for an empty section
        entry.value.replaces = entry.value.replaces || entry.value.is_null();
        if (field.element) expand_shorthands(entry.value, *field.element);
      }
      break;
    default:
      break;
  }
}

ConfigNode scalar(std::string text, bool quoted = false) {
  return ConfigNode::make_scalar(std::move(text), quoted, {});
}

/// A literal string: `${` must not be taken for a reference.
ConfigNode literal(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{') escaped += '$';
    escaped += text[i];
  }
  return scalar(escaped, true);
}

ConfigNode struct_to_node(const StructSpec& spec, const void* object) {
  ConfigNode map = ConfigNode::make(ConfigNode::Kind::map, {});
  for (const FieldSpec& field : spec.fields) map.entries.push_back({field.name, {}, to_node(field, object)});
  return map;
}

template <class T, class F>
ConfigNode list_of(const void* list, F make) {
  ConfigNode node = ConfigNode::make(ConfigNode::Kind::list, {});
  for (const T& item : *static_cast<const std::vector<T>*>(list)) node.items.push_back(make(item));
  return node;
}

}  // namespace

void expand_shorthands(ConfigNode& node, const StructSpec& spec) {
  if (node.is_scalar() && !spec.shorthand.empty()) {
    ConfigNode map = ConfigNode::make(ConfigNode::Kind::map, node.origin);
    map.replaces = true;
    map.entries.push_back({spec.shorthand, node.origin, std::move(node)});
    node = std::move(map);
  }
  if (!node.is_map()) return;
  for (ConfigEntry& entry : node.entries) {
    if (const FieldSpec* field = spec.find(entry.key)) expand_value(entry.value, *field);
  }
}

void merge_into(ConfigNode& base, ConfigNode over) {
  if (base.is_map() && over.is_null() && !over.replaces && over.origin.kind == Origin::Kind::file) return;
  if (!base.is_map() || !over.is_map() || over.replaces) {
    base = std::move(over);
    return;
  }
  base.origin = over.origin;
  for (ConfigEntry& entry : over.entries) {
    if (ConfigEntry* known = base.find(entry.key)) {
      known->origin = entry.origin;
      merge_into(known->value, std::move(entry.value));
    } else {
      base.entries.push_back(std::move(entry));
    }
  }
}

ConfigNode to_node(const FieldSpec& field, const void* owner) {
  const void* value = field.get(owner);
  switch (field.kind) {
    case FieldKind::integer:
      return scalar(fmt::format("{}", *static_cast<const std::int64_t*>(value)));
    case FieldKind::number:
      return scalar(format_number(*static_cast<const double*>(value)));
    case FieldKind::boolean:
      return scalar(*static_cast<const bool*>(value) ? "true" : "false");
    case FieldKind::string:
      return literal(*static_cast<const std::string*>(value));
    case FieldKind::enumeration:
      return literal(std::string(field.name_of(value)));
    case FieldKind::integer_list:
      return list_of<std::int64_t>(value, [](std::int64_t v) { return scalar(fmt::format("{}", v)); });
    case FieldKind::number_list:
      return list_of<double>(value, [](double v) { return scalar(format_number(v)); });
    case FieldKind::string_list:
      return list_of<std::string>(value, [](const std::string& v) { return literal(v); });
    case FieldKind::group:
      return struct_to_node(*field.element, value);
    case FieldKind::struct_list: {
      ConfigNode list = ConfigNode::make(ConfigNode::Kind::list, {});
      for (std::size_t i = 0; i < field.count(value); ++i) {
        list.items.push_back(struct_to_node(*field.element, field.at(value, i)));
      }
      return list;
    }
    case FieldKind::string_map: {
      ConfigNode map = ConfigNode::make(ConfigNode::Kind::map, {});
      for (const auto& [key, text] : *static_cast<const std::map<std::string, std::string>*>(value)) {
        map.entries.push_back({key, {}, literal(text)});
      }
      return map;
    }
    case FieldKind::struct_map: {
      ConfigNode map = ConfigNode::make(ConfigNode::Kind::map, {});
      for (const std::string& key : field.keys(value)) {
        map.entries.push_back({key, {}, struct_to_node(*field.element, field.find(value, key))});
      }
      return map;
    }
  }
  return {};
}

void complete_with_defaults(ConfigNode& node, const StructSpec& spec) {
  if (!node.is_map()) return;
  for (const FieldSpec& field : spec.fields) {
    ConfigEntry* entry = node.find(field.name);
    if (entry == nullptr) {
      node.entries.push_back({field.name, {}, to_node(field, spec.defaults.get())});
      continue;
    }
    ConfigNode& value = entry->value;
    const bool container =
        field.kind == FieldKind::group || field.kind == FieldKind::string_map || field.kind == FieldKind::struct_map;
    if (container && value.is_null() && value.origin.kind == Origin::Kind::file) value.kind = ConfigNode::Kind::map;
    if (field.kind == FieldKind::group) complete_with_defaults(value, *field.element);
    if (field.kind == FieldKind::struct_list) {
      for (ConfigNode& item : value.items) complete_with_defaults(item, *field.element);
    }
    if (field.kind == FieldKind::struct_map || field.kind == FieldKind::string_map) {
      std::erase_if(value.entries, [](const ConfigEntry& e) { return e.value.is_null(); });
    }
    if (field.kind == FieldKind::struct_map) {
      for (ConfigEntry& e : value.entries) complete_with_defaults(e.value, *field.element);
    }
  }
}

}  // namespace troupe::configs
