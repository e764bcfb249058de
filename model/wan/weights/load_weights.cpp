#include "model/wan/weights/load_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "model/wan/weights/component_keys.h"
#include "model/wan/weights/float_type.h"

namespace troupe::model {
namespace {

using SourcePtr = std::shared_ptr<const WeightSource>;

Error wrong(const TensorInfo& info, const std::string& stored, const std::string& what) {
  return {Errc::invalid_argument, fmt::format("{}: tensor '{}' at offset {} {}", info.file, stored, info.offset, what)};
}

/// A view of the mapping where the element's alignment allows, else a copy.
at::Tensor map_tensor(const SourcePtr& source, const TensorInfo& info, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type);
  if (reinterpret_cast<std::uintptr_t>(info.bytes.data()) % c10::elementSize(type) == 0 && !info.bytes.empty()) {
    // ATen has no read-only tensors; the mapping itself refuses writes.
    return at::from_blob(
        const_cast<std::byte*>(info.bytes.data()), info.shape, [source](void*) {}, options);
  }
  auto copy = at::empty(info.shape, options);
  std::memcpy(copy.data_ptr(), info.bytes.data(), info.bytes.size());
  return copy;
}

Result<at::Tensor> read_tensor(const SourcePtr& source, const std::string& stored) {
  TROUPE_ASSIGN(const TensorInfo info, source->info(stored));
  const auto type = float_type(info.dtype);
  if (!type) return wrong(info, stored, fmt::format("has dtype {}; wanted F32, BF16, F16 or F64", info.dtype));
  return map_tensor(source, info, *type);
}

/// W + scale * B A in f32 (f64 for f64).
Result<at::Tensor> merge_adapter(const SourcePtr& source, const at::Tensor& weight, const std::string& stored,
                                 const AdapterNames& names, double scale) {
  TROUPE_ASSIGN(const at::Tensor a, read_tensor(source, names.a));
  TROUPE_ASSIGN(const at::Tensor b, read_tensor(source, names.b));
  TROUPE_ASSIGN(const TensorInfo info, source->info(stored));
  const bool fits = weight.dim() == 2 && a.dim() == 2 && b.dim() == 2 && a.size(0) == b.size(1) &&
                    a.size(1) == weight.size(1) && b.size(0) == weight.size(0);
  if (!fits) {
    const auto shape = [](const at::Tensor& t) { return shape_text(t.sizes().vec()); };
    return wrong(info, stored,
                 fmt::format("of shape {} does not fit its adapters {} and {} of shapes {} and {}", shape(weight),
                             names.a, names.b, shape(a), shape(b)));
  }
  const auto type = weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::addmm(weight.to(type), b.to(type), a.to(type), 1, scale);
}

Result<void> check_pairs(const WeightSource& source, const ComponentKeys& keys, const std::set<std::string>& wanted) {
  for (const auto& [weight, adapter] : keys.adapters) {
    if (adapter.a.empty() || adapter.b.empty()) {
      return Error{Errc::invalid_argument, fmt::format("{}: adapter '{}' is without its other half", source.path(),
                                                       adapter.a.empty() ? adapter.b : adapter.a)};
    }
    if (wanted.count(weight) == 0) {
      return Error{Errc::invalid_argument, fmt::format("{}: adapter '{}' belongs to {}, which this model does not have",
                                                       source.path(), adapter.a, weight)};
    }
  }
  return {};
}

/// A component of a model beside what a source has of it.
struct MatchedComponent {
  std::vector<ParamSpec> specs;  ///< in the order of names
  ComponentKeys keys;
  KeyDifference difference;
};

Result<MatchedComponent> match_component(const WeightSource& source, const ModelConfig& config, Component component) {
  MatchedComponent matched{.specs = component_params(config, component), .keys = {}, .difference = {}};
  std::sort(matched.specs.begin(), matched.specs.end(),
            [](const ParamSpec& a, const ParamSpec& b) { return a.name < b.name; });
  std::set<std::string> wanted;
  for (const auto& spec : matched.specs) wanted.insert(spec.name);
  auto keys = component_keys(source.names(), component, component);
  if (!keys) return keys.error().with(source.path());
  matched.keys = std::move(*keys);
  TROUPE_TRY(check_pairs(source, matched.keys, wanted));
  const ShapeOf shape_of = [&source](const std::string& stored) -> Result<std::vector<std::int64_t>> {
    TROUPE_ASSIGN(const TensorInfo info, source.info(stored));
    return info.shape;
  };
  TROUPE_ASSIGN(matched.difference, compare_keys(matched.keys, matched.specs, shape_of));
  if (matched.difference.misshapen.empty()) return matched;
  return Error{Errc::invalid_argument,
               fmt::format("{}: {} (one of {} tensors of the {} whose shapes do not fit model.*)", source.path(),
                           matched.difference.misshapen.front(), matched.difference.misshapen.size(),
                           component_name(component))};
}

}  // namespace

Result<LoadedComponent> load_component(const SourcePtr& source, const ModelConfig& config, Component component,
                                       at::ScalarType dtype, double lora_scale) {
  LoadedComponent out;
  const auto keep = [&](const std::string& name, const at::Tensor& tensor) {
    out.tensors.emplace(name, tensor.to(dtype));
  };
  TROUPE_ASSIGN(out.keys, visit_component(source, config, component, keep, lora_scale));
  return out;
}

Result<KeyDifference> compare_component(const WeightSource& source, const ModelConfig& config, Component component) {
  TROUPE_ASSIGN(MatchedComponent matched, match_component(source, config, component));
  return std::move(matched.difference);
}

Result<KeyDifference> visit_component(const SourcePtr& source, const ModelConfig& config, Component component,
                                      const VisitTensor& visit, double lora_scale) {
  TROUPE_ASSIGN(MatchedComponent matched, match_component(*source, config, component));
  const ComponentKeys& keys = matched.keys;
  for (const auto& spec : matched.specs) {
    const auto found = keys.weights.find(spec.name);
    if (found == keys.weights.end()) continue;
    TROUPE_ASSIGN(at::Tensor tensor, read_tensor(source, found->second));
    const auto adapter = keys.adapters.find(spec.name);
    if (adapter != keys.adapters.end()) {
      TROUPE_ASSIGN(tensor, merge_adapter(source, tensor, found->second, adapter->second, lora_scale));
    }
    visit(spec.name, tensor.view(spec.shape));
  }
  return std::move(matched.difference);
}

}  // namespace troupe::model
