#include "model/wan/weights/inspect_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "model/wan/weights/infer_config.h"

namespace troupe::model {
namespace {

constexpr std::array<Component, 4> kComponents = {Component::dit, Component::text_encoder, Component::image_encoder,
                                                  Component::vae};

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return count;
}

Result<void> count_tensors(const TensorSource& source, ComponentReport& out) {
  for (const auto& [name, stored] : out.names.weights) {
    TROUPE_ASSIGN(const auto declared, source.declaration(stored));
    out.parameters += elements(declared.shape);
    ++out.dtypes[declared.dtype];
  }
  for (const auto& [weight, adapter] : out.names.adapters) {
    if (adapter.a.empty() || adapter.b.empty()) {
      return Error{Errc::invalid_argument, fmt::format("{}: adapter '{}' is without its other half", source.path(),
                                                       adapter.a.empty() ? adapter.b : adapter.a)};
    }
    for (const auto* half : {&adapter.a, &adapter.b}) {
      TROUPE_ASSIGN(const auto declared, source.declaration(*half));
      out.adapter_parameters += elements(declared.shape);
      ++out.dtypes[declared.dtype];
    }
  }
  return {};
}

Result<void> compare(const TensorSource& source, const ModelConfig& config, const ShapeOf& shape_of,
                     ComponentReport& out) {
  out.wanted = component_params(config, out.component);
  TROUPE_ASSIGN(out.keys, compare_keys(out.names, out.wanted, shape_of));
  for (const auto& name : out.keys.missing) {
    if (out.component == Component::dit && is_new_in_dreamzero(config, name)) out.new_in_dreamzero.push_back(name);
  }
  const auto& adapters = out.names.adapters;
  out.adapters_only = !adapters.empty() && std::none_of(adapters.begin(), adapters.end(), [&](const auto& entry) {
    return out.names.weights.count(entry.first) != 0;
  });
  for (const auto& entry : adapters) {
    const bool known =
        std::any_of(out.wanted.begin(), out.wanted.end(), [&](const ParamSpec& s) { return s.name == entry.first; });
    if (!known) out.keys.unexpected.push_back(entry.second.a);
  }
  return count_tensors(source, out);
}

/// "names: a, b and 5 more"
std::string some_names(const char* what, const std::vector<std::string>& names, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += fmt::format("    {} {}\n", what, names[i]);
  if (names.size() > most) out += fmt::format("    {} ... and {} more\n", what, names.size() - most);
  return out;
}

}  // namespace

bool WeightsReport::sound() const {
  return std::all_of(components.begin(), components.end(), [](const ComponentReport& c) { return c.sound(); });
}

Result<WeightsReport> inspect_weights(const TensorSource& source, std::optional<Component> component,
                                      const std::optional<ModelConfig>& model) {
  WeightsReport report;
  if (model) report.config = *model;
  const auto& stored = source.names();
  if (!component) component = guess_component(stored);
  if (!component) {
    return Error{
        Errc::invalid_argument,
        fmt::format("{}: the names of its {} tensors do not say which network they are of; name it with --component",
                    source.path(), stored.size())};
  }
  for (const auto& name : stored) {
    if (!read_stored_name(name, *component)) report.passed_over.push_back(name);
  }
  const ShapeOf shape_of = [&source](const std::string& name) -> Result<std::vector<std::int64_t>> {
    TROUPE_ASSIGN(auto declared, source.declaration(name));
    return std::move(declared.shape);
  };
  for (const auto candidate : kComponents) {
    ComponentReport out;
    out.component = candidate;
    auto keys = component_keys(stored, *component, candidate);
    if (!keys) return keys.error().with(source.path());
    out.names = std::move(*keys);
    if (out.names.weights.empty() && out.names.adapters.empty()) continue;
    if (!model) {
      const auto inferred = infer_sizes(out.names, candidate, shape_of, report.config);
      if (!inferred) return inferred.error().with(fmt::format("{}: {}", source.path(), component_name(candidate)));
    }
    report.components.push_back(std::move(out));
  }
  for (auto& out : report.components) TROUPE_TRY(compare(source, report.config, shape_of, out));
  return report;
}

std::string report_text(const WeightsReport& report, std::size_t most) {
  std::string out;
  for (const auto& c : report.components) {
    std::string dtypes;
    for (const auto& [dtype, count] : c.dtypes)
      dtypes += fmt::format("{}{} {}", dtypes.empty() ? "" : ", ", count, dtype);
    out += fmt::format("  {}: {} tensors ({}), {} parameters", component_name(c.component), c.names.weights.size(),
                       dtypes, c.parameters);
    if (!c.names.adapters.empty())
      out += fmt::format(", {} adapters of {} parameters", c.names.adapters.size(), c.adapter_parameters);
    const std::size_t lacking = c.keys.missing.size() - c.new_in_dreamzero.size();
    out += fmt::format("; new in DreamZero {}, missing {}, unexpected {}, misshapen {}\n", c.new_in_dreamzero.size(),
                       lacking, c.keys.unexpected.size(), c.keys.misshapen.size());
    std::vector<std::string> missing;
    std::set_difference(c.keys.missing.begin(), c.keys.missing.end(), c.new_in_dreamzero.begin(),
                        c.new_in_dreamzero.end(), std::back_inserter(missing));
    out +=
        some_names("new", c.new_in_dreamzero, most) + some_names(c.adapters_only ? "absent" : "missing", missing, most);
    out += some_names("unexpected", c.keys.unexpected, most) + some_names("misshapen", c.keys.misshapen, most);
  }
  if (!report.passed_over.empty())
    out += fmt::format("  passed over: {} tensors of no component\n", report.passed_over.size());
  return out + some_names("passed over", report.passed_over, std::min<std::size_t>(most, 5));
}

}  // namespace troupe::model
