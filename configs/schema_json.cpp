#include <nlohmann/json.hpp>

#include "configs/describe.h"
#include "configs/merge.h"
#include "configs/scalar.h"
#include "configs/schema_export.h"

namespace troupe::configs {

namespace {

using Json = nlohmann::ordered_json;

Json number_schema(const FieldSpec& field, bool whole) {
  Json schema = {{"type", whole ? "integer" : "number"}};
  const auto bound = [whole](double v) { return whole ? Json(static_cast<std::int64_t>(v)) : Json(v); };
  // an open lower bound is stored as the smallest positive number (configs/bounds.h)
  if (field.low && !whole && *field.low > 0 && *field.low < 1e-300)
    schema["exclusiveMinimum"] = 0;
  else if (field.low)
    schema["minimum"] = bound(*field.low);
  if (field.high) schema["maximum"] = bound(*field.high);
  return schema;
}

Json string_schema(const FieldSpec& field) {
  Json schema = {{"type", "string"}};
  if (!field.choices.empty())
    schema["enum"] = field.choices;
  else
    schema["type"] = {"string", "number", "boolean", "null"};  // plain scalars are text where text is wanted
  return schema;
}

Json with_reference(Json schema) {
  return {{"anyOf", {std::move(schema), {{"type", "string"}, {"pattern", "\\$\\{[^}]+\\}"}}}}};
}

Json struct_schema(const StructSpec& spec);

Json field_schema(const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::integer:
      return with_reference(number_schema(field, true));
    case FieldKind::number:
      return with_reference(number_schema(field, false));
    case FieldKind::boolean:
      return with_reference({{"type", "boolean"}});
    case FieldKind::string:
    case FieldKind::enumeration:
      return field.choices.empty() ? string_schema(field) : with_reference(string_schema(field));
    case FieldKind::integer_list:
      return {{"type", "array"}, {"items", number_schema(field, true)}};
    case FieldKind::number_list:
      return {{"type", "array"}, {"items", number_schema(field, false)}};
    case FieldKind::string_list:
      return {{"type", "array"}, {"items", string_schema(field)}};
    case FieldKind::group:
      return struct_schema(*field.element);
    case FieldKind::struct_list: {
      Json list = {{"type", "array"}, {"items", struct_schema(*field.element)}};
      if (field.element->shorthand.empty()) return list;
      return {{"anyOf", {std::move(list), {{"type", "string"}, {"description", "stands for a list of one"}}}}};
    }
    case FieldKind::string_map:
      return {{"type", "object"}, {"additionalProperties", string_schema(field)}};
    case FieldKind::struct_map:
      return {{"type", "object"}, {"additionalProperties", struct_schema(*field.element)}};
  }
  return {};
}

Json default_value(const ConfigNode& node) {
  if (node.is_list()) {
    Json list = Json::array();
    for (const ConfigNode& item : node.items) list.push_back(default_value(item));
    return list;
  }
  if (node.is_map()) return Json::object();
  if (node.quoted) return node.text;
  if (const auto boolean = parse_boolean(node.text)) return *boolean;
  if (const auto integer = parse_integer(node.text)) return *integer;
  return *parse_number(node.text);
}

Json struct_schema(const StructSpec& spec) {
  Json properties = Json::object();
  for (const FieldSpec& field : spec.fields) {
    Json schema = field_schema(field);
    schema["description"] = field.unit.empty() ? field.doc : field.doc + " (" + field.unit + ")";
    if (field.kind != FieldKind::group) schema["default"] = default_value(to_node(field, spec.defaults.get()));
    properties[field.name] = std::move(schema);
  }
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (spec.from_file)
    return {{"anyOf", {std::move(schema), {{"type", "string"}, {"description", "a name or a file"}}}}};
  if (spec.shorthand.empty()) return schema;
  return {{"anyOf",
           {std::move(schema), {{"type", {"string", "integer"}}, {"description", "stands for " + spec.shorthand}}}}};
}

}  // namespace

std::string config_schema_json() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Troupe job"}};
  Json job = struct_schema(job_spec());
  job["properties"]["extends"] = {
      {"description", "files this one is laid over: a path or a list of paths, later ones win"},
      {"anyOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
  schema.update(job);
  return schema.dump(2) + "\n";
}

}  // namespace troupe::configs
