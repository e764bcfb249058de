#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/wan/weights/checkpoint_names.h"

namespace troupe::model {

/// The two halves of an adapter, by their stored names; empty where one is absent.
struct AdapterNames {
  std::string a, b;
};

/// One component's tensors in a source. Plain names to stored names.
struct ComponentKeys {
  std::map<std::string, std::string> weights;
  std::map<std::string, AdapterNames> adapters;  ///< by the plain name of the weight they adapt
};

/// The stored names that belong to `wanted`; names without a prefix belong to `unprefixed`. Errors: invalid_argument
/// when two stored names mean one tensor.
Result<ComponentKeys> component_keys(const std::vector<std::string>& stored, Component unprefixed, Component wanted);

/// True when tensors of these shapes are the same up to a scalar that is stored as [1], or the other way round.
bool shapes_agree(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);

/// A shape for messages: "[2, 3]"; "[]" for a scalar.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// Compares a component's stored tensors with what is wanted. `shape_of` gives a stored tensor's shape.
using ShapeOf = std::function<Result<std::vector<std::int64_t>>(const std::string& stored)>;
Result<KeyDifference> compare_keys(const ComponentKeys& keys, const std::vector<ParamSpec>& wanted,
                                   const ShapeOf& shape_of);

}  // namespace troupe::model
