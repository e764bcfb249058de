#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/bounds.h"
#include "configs/describe.h"
#include "configs/job_config.h"
#include "configs/scalar.h"

namespace troupe::configs {

namespace {

/// " in [1, 64]", " > 0", " >= 0", " <= 5" or nothing.
std::string bounds_text(const FieldSpec& field) {
  const bool whole = field.kind == FieldKind::integer || field.kind == FieldKind::integer_list;
  const auto print = [whole](double v) {
    return whole ? fmt::format("{}", static_cast<std::int64_t>(v)) : format_number(v);
  };
  const bool positive = field.low == kAboveZero;
  if (positive) return field.high ? fmt::format(" > 0 and <= {}", print(*field.high)) : " > 0";
  if (field.low && field.high) return fmt::format(" in [{}, {}]", print(*field.low), print(*field.high));
  if (field.low) return fmt::format(" >= {}", print(*field.low));
  if (field.high) return fmt::format(" <= {}", print(*field.high));
  return {};
}

void walk(const StructSpec& spec, const std::string& prefix, std::vector<SpecEntry>& entries) {
  for (const FieldSpec& field : spec.fields) {
    const std::string path = prefix + field.name;
    entries.push_back({path, &field});
    if (field.kind == FieldKind::group) walk(*field.element, path + ".", entries);
    if (field.kind == FieldKind::struct_list) walk(*field.element, path + "[].", entries);
    if (field.kind == FieldKind::struct_map) walk(*field.element, path + ".*.", entries);
  }
}

}  // namespace

const StructSpec& job_spec() {
  static const std::shared_ptr<const StructSpec> spec = make_spec<JobConfig>();
  return *spec;
}

const std::vector<SpecEntry>& job_spec_entries() {
  static const std::vector<SpecEntry> entries = [] {
    std::vector<SpecEntry> all;
    walk(job_spec(), "", all);
    return all;
  }();
  return entries;
}

std::string expected_text(const FieldSpec& field) {
  if (!field.choices.empty()) return fmt::format("one of {}", fmt::join(field.choices, ", "));
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::integer_list:
      return "integer" + bounds_text(field);
    case FieldKind::number:
    case FieldKind::number_list:
      return "number" + bounds_text(field);
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::string:
    case FieldKind::enumeration:
    case FieldKind::string_list:
    case FieldKind::string_map:
      return "a string";
    case FieldKind::group:
    case FieldKind::struct_list:
    case FieldKind::struct_map:
      return "a map of keys";
  }
  return {};
}

}  // namespace troupe::configs
