#include "model/wan/weights/convert_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::model {
namespace {

bool is_float(std::string_view dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16" || dtype == "F64"; }

std::string target_dtype(const std::string& stored, WeightDtype wanted) {
  if (wanted == WeightDtype::keep || !is_float(stored)) return stored;
  return wanted == WeightDtype::fp32 ? "F32" : "BF16";
}

/// A DreamZero checkpoint with adapters has PEFT's names: everything below base_model.model, and what an adapted linear
/// held below its base_layer.
std::string target_name(const ComponentReport& report, const ConvertRequest& request, const std::string& name) {
  if (request.layout != WeightLayout::dreamzero) return name;
  if (request.merge_lora || report.names.adapters.empty()) return dreamzero_name(report.component, name);
  const auto dot = name.rfind('.');
  const std::string linear = name.substr(0, dot == std::string::npos ? 0 : dot);
  const bool adapted = report.names.adapters.count(linear + ".weight") != 0;
  const std::string inner = adapted ? linear + ".base_layer" + name.substr(dot) : name;
  return dreamzero_name(report.component, "base_model.model." + inner);
}

Result<void> check_adapter(const TensorSource& source, const PlannedTensor& tensor) {
  TROUPE_ASSIGN(const auto a, source.declaration(tensor.adapter.a));
  TROUPE_ASSIGN(const auto b, source.declaration(tensor.adapter.b));
  const auto& w = tensor.declared.shape;
  const bool fits = w.size() == 2 && a.shape.size() == 2 && b.shape.size() == 2 && a.shape[0] == b.shape[1] &&
                    a.shape[1] == w[1] && b.shape[0] == w[0];
  if (fits && is_float(a.dtype) && is_float(b.dtype) && is_float(tensor.stored_dtype)) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{}: {} of shape {} does not fit its adapters {} {} and {} {}", source.path(), tensor.stored,
                           shape_text(w), a.name, shape_text(a.shape), b.name, shape_text(b.shape))};
}

/// All tensors of a component under their new names.
Result<void> add_component(const TensorSource& source, const ComponentReport& report, const ConvertRequest& request,
                           std::map<std::string, PlannedTensor>& tensors) {
  std::map<std::string, const ParamSpec*> wanted;
  for (const auto& spec : report.wanted) wanted.emplace(spec.name, &spec);
  for (const auto& [name, stored] : report.names.weights) {
    TROUPE_ASSIGN(const auto declared, source.declaration(stored));
    if (!is_float(declared.dtype)) {
      return Error{Errc::invalid_argument, fmt::format("{}: tensor '{}' has dtype {}; wanted F32, BF16, F16 or F64",
                                                       source.path(), stored, declared.dtype)};
    }
    const auto target = target_name(report, request, name);
    PlannedTensor tensor{
        {target, target_dtype(declared.dtype, request.dtype), wanted.at(name)->shape}, stored, declared.dtype, {}};
    const auto adapter = report.names.adapters.find(name);
    if (request.merge_lora && adapter != report.names.adapters.end()) {
      tensor.adapter = adapter->second;
      TROUPE_TRY(check_adapter(source, tensor));
    }
    tensors.emplace(target, std::move(tensor));
  }
  if (request.merge_lora) return {};
  for (const auto& [weight, adapter] : report.names.adapters) {
    const std::string linear = weight.substr(0, weight.size() - std::string_view(".weight").size());
    for (const auto& [half, stored] :
         {std::pair{".lora_A.weight", &adapter.a}, std::pair{".lora_B.weight", &adapter.b}}) {
      TROUPE_ASSIGN(const auto declared, source.declaration(*stored));
      const auto plain = linear + half;
      const auto target = request.layout == WeightLayout::dreamzero ? dreamzero_name(report.component, plain) : plain;
      tensors.emplace(
          target,
          PlannedTensor{
              {target, target_dtype(declared.dtype, request.dtype), declared.shape}, *stored, declared.dtype, {}});
    }
  }
  return {};
}

/// Fills files in the order of names; a tensor larger than the limit has a file of its own.
PlannedCheckpoint split(std::map<std::string, PlannedTensor>&& tensors, const std::string& folder,
                        const std::string& stem, std::int64_t limit) {
  std::vector<std::vector<PlannedTensor>> parts(1);
  std::int64_t bytes = 0;
  for (auto& [name, tensor] : tensors) {
    const auto more = tensor_bytes(tensor.declared);
    if (!parts.back().empty() && bytes + more > limit) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += more;
    parts.back().push_back(std::move(tensor));
  }
  PlannedCheckpoint out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = parts.size() == 1 ? "" : fmt::format("-{:05}-of-{:05}", i + 1, parts.size());
    out.files.push_back({folder + stem + number + ".safetensors", std::move(parts[i])});
  }
  if (parts.size() > 1) out.index_path = folder + stem + ".safetensors.index.json";
  return out;
}

Result<void> check_report(const TensorSource& source, const WeightsReport& report, const ConvertRequest& request) {
  for (const auto& c : report.components) {
    const std::string where = fmt::format("{}: {}", source.path(), component_name(c.component));
    const auto bad = [&](const char* what, const std::vector<std::string>& names) {
      return Error{Errc::invalid_argument, fmt::format("{}: {} {} (--check lists all)", where, what, names.front())};
    };
    if (!c.keys.misshapen.empty()) return bad("wrong shape:", c.keys.misshapen);
    if (!c.keys.unexpected.empty()) return bad("a tensor that the model does not have:", c.keys.unexpected);
    if (!c.sound())
      return Error{Errc::invalid_argument, fmt::format("{}: {} tensors are missing (--check lists them)", where,
                                                       c.keys.missing.size() - c.new_in_dreamzero.size())};
    const bool mergeable = std::all_of(c.names.adapters.begin(), c.names.adapters.end(),
                                       [&](const auto& entry) { return c.names.weights.count(entry.first) != 0; });
    if (request.merge_lora && !mergeable) {
      return Error{
          Errc::invalid_argument,
          fmt::format("{}: the weights that its adapters adapt are not in it, so --merge-lora has nothing to add to",
                      where)};
    }
  }
  if (report.components.empty())
    return Error{Errc::invalid_argument, fmt::format("{}: holds no tensor of the model", source.path())};
  return {};
}

}  // namespace

std::int64_t tensor_bytes(const TensorDeclaration& tensor) {
  std::int64_t bytes = safetensors_dtype_size(tensor.dtype).value_or(0);
  for (const auto size : tensor.shape) bytes *= size;
  return bytes;
}

Result<std::vector<PlannedCheckpoint>> plan_conversion(const TensorSource& source, const WeightsReport& report,
                                                       const ConvertRequest& request) {
  TROUPE_TRY(check_report(source, report, request));
  const std::string stem = request.layout == WeightLayout::wan ? "diffusion_pytorch_model" : "model";
  std::vector<PlannedCheckpoint> out;
  std::map<std::string, PlannedTensor> tensors;
  for (const auto& component : report.components) {
    TROUPE_TRY(add_component(source, component, request, tensors));
    if (request.layout == WeightLayout::dreamzero) continue;
    const std::string folder =
        report.components.size() == 1 ? "" : std::string(component_name(component.component)) + "/";
    out.push_back(split(std::exchange(tensors, {}), folder, stem, request.shard_bytes));
  }
  if (request.layout == WeightLayout::dreamzero)
    out.push_back(split(std::move(tensors), "", stem, request.shard_bytes));
  return out;
}

}  // namespace troupe::model
