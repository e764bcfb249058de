#include "configs/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/scalar.h"
#include "configs/suggest.h"

namespace troupe::configs {

namespace {

std::string describe_found(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "null";
    case ConfigNode::Kind::list:
      return "a list";
    case ConfigNode::Kind::map:
      return "a map";
    case ConfigNode::Kind::scalar:
      break;
  }
  return node.quoted ? fmt::format("the string \"{}\"", node.text) : fmt::format("'{}'", node.text);
}

class Decoder {
 public:
  Decoder(OriginMap& origins, Diagnostics& errors) : origins_(origins), errors_(errors) {}

  void decode_struct(const ConfigNode& node, const StructSpec& spec, void* object, const std::string& path) {
    origins_[path] = node.origin;
    if (!node.is_map()) {
      if (!errors_.is_bad(path)) mismatch(node, path, path.empty() ? "a map of sections" : "a map of keys");
      return;
    }
    for (const ConfigEntry& entry : node.entries) {
      const std::string below = path.empty() ? entry.key : path + "." + entry.key;
      const FieldSpec* field = spec.find(entry.key);
      if (field != nullptr)
        decode_field(entry.value, *field, field->member(object), below);
      else
        unknown_key(entry, spec, below);
    }
  }

 private:
  void decode_field(const ConfigNode& node, const FieldSpec& field, void* value, const std::string& path) {
    origins_[path] = node.origin;
    if (errors_.is_bad(path)) return;
    switch (field.kind) {
      case FieldKind::integer:
        read_integer(node, field, path, static_cast<std::int64_t*>(value));
        break;
      case FieldKind::number:
        read_number(node, field, path, static_cast<double*>(value));
        break;
      case FieldKind::boolean:
        read_plain(node, field, path, parse_boolean, static_cast<bool*>(value));
        break;
      case FieldKind::string:
        read_string(node, field, path, static_cast<std::string*>(value));
        break;
      case FieldKind::enumeration: {
        std::string name(field.name_of(value));
        read_string(node, field, path, &name);
        field.set_name(value, name);
        break;
      }
      case FieldKind::integer_list:
        read_list<std::int64_t>(node, field, path, value, &Decoder::read_integer);
        break;
      case FieldKind::number_list:
        read_list<double>(node, field, path, value, &Decoder::read_number);
        break;
      case FieldKind::string_list:
        read_list<std::string>(node, field, path, value, &Decoder::read_string);
        break;
      case FieldKind::group:
        decode_struct(node, *field.element, value, path);
        break;
      case FieldKind::struct_list:
        read_structs(node, field, path, value);
        break;
      case FieldKind::string_map:
        read_string_map(node, field, path, value);
        break;
      case FieldKind::struct_map:
        read_struct_map(node, field, path, value);
        break;
    }
  }

  void mismatch(const ConfigNode& node, const std::string& path, const std::string& expected,
                const std::string& hint = {}) {
    errors_.add(node.origin, fmt::format("{}: expected {}, got {}", path, expected, describe_found(node)), hint);
    errors_.mark_bad(path);
  }

  bool within(double v, const FieldSpec& field) const {
    return !(field.low && v < *field.low) && !(field.high && v > *field.high);
  }
  static std::string quotes_hint(const ConfigNode& node) {
    return node.is_scalar() && node.quoted ? "quotes make it a string" : "";
  }

  template <class T>
  void read_plain(const ConfigNode& node, const FieldSpec& field, const std::string& path,
                  std::optional<T> (*parse)(std::string_view), T* out) {
    const std::optional<T> v = node.is_scalar() && !node.quoted ? parse(node.text) : std::nullopt;
    if (v && within(static_cast<double>(*v), field))
      *out = *v;
    else
      mismatch(node, path, expected_text(field), quotes_hint(node));
  }
  void read_integer(const ConfigNode& node, const FieldSpec& field, const std::string& path, std::int64_t* out) {
    read_plain(node, field, path, parse_integer, out);
  }
  void read_number(const ConfigNode& node, const FieldSpec& field, const std::string& path, double* out) {
    read_plain(node, field, path, parse_number, out);
  }
  void read_string(const ConfigNode& node, const FieldSpec& field, const std::string& path, std::string* out) {
    if (!node.is_scalar() && !(node.is_null() && field.choices.empty()))
      return mismatch(node, path, expected_text(field));
    if (!field.choices.empty() &&
        std::find(field.choices.begin(), field.choices.end(), node.text) == field.choices.end()) {
      const std::string near = nearest_name(node.text, field.choices);
      return mismatch(node, path, expected_text(field), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
    }
    *out = node.is_null() ? std::string() : node.text;
  }

  template <class T>
  void read_list(const ConfigNode& node, const FieldSpec& field, const std::string& path, void* value,
                 void (Decoder::*read)(const ConfigNode&, const FieldSpec&, const std::string&, T*)) {
    if (!node.is_list() && !node.is_null())
      return mismatch(node, path, fmt::format("a list, each item {}", expected_text(field)));
    std::vector<T> items(node.items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string below = fmt::format("{}[{}]", path, i);
      origins_[below] = node.items[i].origin;
      if (errors_.is_bad(below))
        errors_.mark_bad(path);
      else
        (this->*read)(node.items[i], field, below, &items[i]);
      if (errors_.is_bad(below)) errors_.mark_bad(path);
    }
    *static_cast<std::vector<T>*>(value) = std::move(items);
  }

  void read_structs(const ConfigNode& node, const FieldSpec& field, const std::string& path, void* value) {
    if (!node.is_list() && !node.is_null()) return mismatch(node, path, "a list of maps");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      decode_struct(node.items[i], *field.element, field.append(value), fmt::format("{}[{}]", path, i));
    }
  }

  void read_string_map(const ConfigNode& node, const FieldSpec& field, const std::string& path, void* value) {
    if (!node.is_map() && !node.is_null()) return mismatch(node, path, "a map of strings");
    auto& map = *static_cast<std::map<std::string, std::string>*>(value);
    for (const ConfigEntry& entry : node.entries) {
      const std::string below = path + "." + entry.key;
      origins_[below] = entry.value.origin;
      if (!errors_.is_bad(below)) read_string(entry.value, field, below, &map[entry.key]);
    }
  }

  void read_struct_map(const ConfigNode& node, const FieldSpec& field, const std::string& path, void* value) {
    if (!node.is_map() && !node.is_null()) return mismatch(node, path, "a map of maps");
    for (const ConfigEntry& entry : node.entries) {
      const std::string below = path + "." + entry.key;
      decode_struct(entry.value, *field.element, field.emplace(value, entry.key), below);
    }
  }

  static bool is_known(const std::string& path) {
    const auto& entries = job_spec_entries();
    return std::any_of(entries.begin(), entries.end(), [&](const SpecEntry& entry) { return entry.path == path; });
  }
  /// "a: {b: {c: ...}}" for "a.b.c".
  static std::string nested(const std::string& key) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) return key + ": ...";
    return fmt::format("{}: {{{}}}", key.substr(0, dot), nested(key.substr(dot + 1)));
  }

  void unknown_key(const ConfigEntry& entry, const StructSpec& map, const std::string& path) {
    if (report_tombstones(entry, path)) return;
    const bool is_dotted = entry.key.find('.') != std::string::npos && is_known(path);
    errors_.add(entry.origin, fmt::format("unknown key '{}'", path),
                is_dotted ? fmt::format("in a file keys stand inside each other: {}", nested(entry.key))
                          : key_hint(entry.key, map));
    errors_.mark_bad(path);
  }

  /// Reports the renamed keys at and below an unknown key; the others below are then unknown one by one. False when
  /// there is no tombstone at all.
  bool report_tombstones(const ConfigEntry& entry, const std::string& path) {
    if (const auto tombstone = find_tombstone(path)) {
      errors_.add(entry.origin,
                  fmt::format("key '{}' ({}) is called '{}'", path, tombstone->since, tombstone->new_path),
                  fmt::format("write '{}'", tombstone->new_path));
      errors_.mark_bad(path);
      return true;
    }
    if (!holds_tombstone(entry.value, path)) return false;
    for (const ConfigEntry& below : entry.value.entries) {
      const std::string deeper = path + "." + below.key;
      if (!report_tombstones(below, deeper)) errors_.add(below.origin, fmt::format("unknown key '{}'", deeper));
    }
    return true;
  }
  static bool holds_tombstone(const ConfigNode& node, const std::string& path) {
    for (const ConfigEntry& entry : node.entries) {
      const std::string below = path + "." + entry.key;
      if (find_tombstone(below) || holds_tombstone(entry.value, below)) return true;
    }
    return false;
  }

  OriginMap& origins_;
  Diagnostics& errors_;
};

}  // namespace

void decode(const ConfigNode& tree, const StructSpec& spec, void* object, OriginMap& origins, Diagnostics& errors) {
  Decoder(origins, errors).decode_struct(tree, spec, object, "");
}

}  // namespace troupe::configs
