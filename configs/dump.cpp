#include "configs/dump.h"

#include <fmt/format.h>

#include "configs/scalar.h"

namespace troupe::configs {

namespace {

template <class T, class F>
std::string flow_list(const void* list, F print) {
  std::string text = "[";
  for (const T& item : *static_cast<const std::vector<T>*>(list)) {
    if (text.size() > 1) text += ", ";
    text += print(item);
  }
  return text + "]";
}

/// The text of a leaf; empty for values that take a block of lines.
std::string leaf_text(const FieldSpec& field, const void* value) {
  switch (field.kind) {
    case FieldKind::integer:
      return fmt::format("{}", *static_cast<const std::int64_t*>(value));
    case FieldKind::number:
      return format_number(*static_cast<const double*>(value));
    case FieldKind::boolean:
      return *static_cast<const bool*>(value) ? "true" : "false";
    case FieldKind::string:
      return format_string(*static_cast<const std::string*>(value));
    case FieldKind::enumeration:
      return format_string(field.name_of(value));
    case FieldKind::integer_list:
      return flow_list<std::int64_t>(value, [](std::int64_t v) { return fmt::format("{}", v); });
    case FieldKind::number_list:
      return flow_list<double>(value, format_number);
    case FieldKind::string_list:
      return flow_list<std::string>(value, [](const std::string& v) { return format_string(v); });
    case FieldKind::struct_list:
      return field.count(value) == 0 ? "[]" : "";
    case FieldKind::string_map:
      return static_cast<const std::map<std::string, std::string>*>(value)->empty() ? "{}" : "";
    case FieldKind::struct_map:
      return field.keys(value).empty() ? "{}" : "";
    case FieldKind::group:
      return "";
  }
  return "";
}

/// Calls back once per line of the canonical form.
class Walker {
 public:
  /// `is_leaf` lines have a value; `dash` lines begin a list element.
  struct Line {
    int depth;
    bool dash;
    std::string key, path, text;
    bool is_leaf;
  };

  std::vector<Line> walk(const StructSpec& spec, const void* object) {
    visit_struct(spec, object, "", 0, false);
    return std::move(lines_);
  }

 private:
  void visit_struct(const StructSpec& spec, const void* object, const std::string& prefix, int depth, bool dash) {
    for (const FieldSpec& field : spec.fields) {
      visit_field(field, field.get(object), prefix + field.name, depth, dash);
      dash = false;
    }
  }

  void visit_field(const FieldSpec& field, const void* value, const std::string& path, int depth, bool dash) {
    const std::string text = leaf_text(field, value);
    lines_.push_back({depth, dash, field.name, path, text, !text.empty()});
    if (!text.empty()) return;
    if (field.kind == FieldKind::group) visit_struct(*field.element, value, path + ".", depth + 1, false);
    if (field.kind == FieldKind::struct_list) {
      for (std::size_t i = 0; i < field.count(value); ++i) {
        visit_struct(*field.element, field.at(value, i), fmt::format("{}[{}].", path, i), depth + 2, true);
      }
    }
    if (field.kind == FieldKind::string_map) {
      for (const auto& [key, item] : *static_cast<const std::map<std::string, std::string>*>(value)) {
        lines_.push_back({depth + 1, false, format_string(key), path + "." + key, format_string(item), true});
      }
    }
    if (field.kind == FieldKind::struct_map) {
      for (const std::string& key : field.keys(value)) {
        lines_.push_back({depth + 1, false, format_string(key), path + "." + key, "", false});
        visit_struct(*field.element, field.find(value, key), path + "." + key + ".", depth + 2, false);
      }
    }
  }

  std::vector<Line> lines_;
};

}  // namespace

std::string dump_yaml(const StructSpec& spec, const void* object, const std::map<std::string, std::string>& comments) {
  std::string out;
  for (const auto& line : Walker().walk(spec, object)) {
    // a list element's first key stands behind its dash: "    - path: x"
    out += std::string(static_cast<std::size_t>(line.depth) * 2 - (line.dash ? 2 : 0), ' ') + (line.dash ? "- " : "") +
           line.key + ":";
    if (line.is_leaf) {
      out += " " + line.text;
      const auto comment = comments.find(line.path);
      if (comment != comments.end()) out += "  # " + comment->second;
    }
    out += '\n';
  }
  return out;
}

std::vector<LeafValue> leaf_values(const StructSpec& spec, const void* object) {
  std::vector<LeafValue> leaves;
  for (const auto& line : Walker().walk(spec, object)) {
    if (line.is_leaf) leaves.push_back({line.path, line.text});
  }
  return leaves;
}

}  // namespace troupe::configs
