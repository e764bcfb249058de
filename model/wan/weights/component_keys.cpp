#include "model/wan/weights/component_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::model {
namespace {

constexpr std::string_view kHalfA = ".lora_A.weight", kHalfB = ".lora_B.weight";

Error stored_twice(const std::string& first, const std::string& second) {
  return {Errc::invalid_argument, fmt::format("tensors '{}' and '{}' are the same parameter", first, second)};
}

Result<void> add(ComponentKeys& keys, const std::string& stored, const std::string& name) {
  for (const auto& [ending, half] : {std::pair{kHalfA, &AdapterNames::a}, std::pair{kHalfB, &AdapterNames::b}}) {
    if (!name.ends_with(ending)) continue;
    std::string& place = keys.adapters[name.substr(0, name.size() - ending.size()) + ".weight"].*half;
    if (!place.empty()) return stored_twice(place, stored);
    place = stored;
    return {};
  }
  const auto [at, fresh] = keys.weights.emplace(name, stored);
  if (!fresh) return stored_twice(at->second, stored);
  return {};
}

}  // namespace

Result<ComponentKeys> component_keys(const std::vector<std::string>& stored, Component unprefixed, Component wanted) {
  ComponentKeys keys;
  for (const auto& full : stored) {
    const auto name = read_stored_name(full, unprefixed);
    if (!name || name->component != wanted) continue;
    TROUPE_TRY(add(keys, full, name->name));
  }
  return keys;
}

bool shapes_agree(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const std::vector<std::int64_t> one = {1};
  return a == b || (a.empty() && b == one) || (b.empty() && a == one);
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<KeyDifference> compare_keys(const ComponentKeys& keys, const std::vector<ParamSpec>& wanted,
                                   const ShapeOf& shape_of) {
  KeyDifference difference;
  std::map<std::string_view, const ParamSpec*> specs;
  for (const auto& spec : wanted) specs.emplace(spec.name, &spec);
  for (const auto& [name, spec] : specs) {
    const auto found = keys.weights.find(std::string(name));
    if (found == keys.weights.end()) {
      difference.missing.emplace_back(name);
      continue;
    }
    TROUPE_ASSIGN(const auto shape, shape_of(found->second));
    if (!shapes_agree(shape, spec->shape)) {
      difference.misshapen.push_back(
          fmt::format("{}: shape {}, want {}", name, shape_text(shape), shape_text(spec->shape)));
    }
  }
  for (const auto& [name, stored] : keys.weights) {
    if (specs.find(name) == specs.end()) difference.unexpected.push_back(name);
  }
  return difference;
}

}  // namespace troupe::model
