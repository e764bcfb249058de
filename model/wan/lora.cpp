#include "model/wan/lora.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/wan/dit_units.h"
#include "model/wan/lora_merge.h"

namespace troupe::model {
namespace {

constexpr std::string_view kWeight = ".weight";
/// Trained whole beside the adapters, because no checkpoint of Wan has them.
constexpr std::array<std::string_view, 3> kTrainedWhole = {"state_encoder.", "action_encoder.", "action_decoder."};

bool is_trained_whole(const ParamSpec& param) {
  return std::any_of(kTrainedWhole.begin(), kTrainedWhole.end(),
                     [&](std::string_view prefix) { return param.name.starts_with(prefix); });
}

/// The name of the linear that `param` is the weight of, when a target means it.
std::string adapted_module(const ParamSpec& param, const LoraConfig& lora) {
  if (param.shape.size() != 2 || !param.name.ends_with(kWeight)) return {};
  const auto module = param.name.substr(0, param.name.size() - kWeight.size());
  const bool meant = std::any_of(lora.targets.begin(), lora.targets.end(),
                                 [&](const std::string& target) { return matches_target(module, target); });
  return meant ? module : std::string();
}

/// Freezes a unit and lists what is trained in it.
void adapt(UnitSpec& unit, const LoraConfig& lora) {
  std::vector<ParamSpec> frozen;
  for (const auto& param : unit.params) {
    if (is_trained_whole(param)) {
      unit.replicated.push_back(param);
      continue;
    }
    frozen.push_back(param);
    const auto module = adapted_module(param, lora);
    if (module.empty()) continue;
    const auto out = param.shape[0], in = param.shape[1];
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    unit.replicated.push_back({module + std::string(kLoraA), {lora.rank, in}, {Init::Kind::uniform, bound}});
    unit.replicated.push_back({module + std::string(kLoraB), {out, lora.rank}, {Init::Kind::zeros, 0}});
  }
  unit.params = std::move(frozen);
  unit.trainable = false;
  unit.adapter_scale = lora_scale(lora);
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  const auto values = tensor.to(at::kFloat).contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

}  // namespace

bool matches_target(std::string_view module, std::string_view target) {
  if (!module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

double lora_scale(const LoraConfig& config) { return config.alpha / static_cast<double>(config.rank); }

std::vector<UnitSpec> training_units(const ModelConfig& config) {
  auto units = dit_units(config);
  if (config.train_architecture != "lora") return units;
  for (const auto& target : config.lora.targets) {
    const LoraConfig alone{config.lora.rank, config.lora.alpha, {target}};
    const bool found = std::any_of(units.begin(), units.end(), [&](const UnitSpec& unit) {
      return std::any_of(unit.params.begin(), unit.params.end(),
                         [&](const ParamSpec& param) { return !adapted_module(param, alone).empty(); });
    });
    TORCH_CHECK(found, "model.lora.targets: no linear's name ends in \"", target, "\"");
  }
  for (auto& unit : units) adapt(unit, config.lora);
  return units;
}

at::Tensor merge_adapter(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b, double scale) {
  TORCH_CHECK(weight.dim() == 2 && a.dim() == 2 && b.dim() == 2 && a.size(1) == weight.size(1) &&
                  b.size(0) == weight.size(0) && a.size(0) == b.size(1),
              "merge_adapter: weight ", weight.sizes(), ", A ", a.sizes(), ", B ", b.sizes(),
              "; want [out, in], [r, in], [out, r]");
  auto merged = weight.to(at::kFloat).contiguous();
  if (merged.is_alias_of(weight)) merged = merged.clone();
  const LowRankUpdate update{a.size(0), a.size(1), floats_of(a), floats_of(b), scale};
  add_low_rank(update, 0, {merged.data_ptr<float>(), static_cast<std::size_t>(merged.numel())});
  return merged.to(weight.scalar_type());
}

std::map<std::string, at::Tensor> merge_adapters(std::map<std::string, at::Tensor> tensors, double scale) {
  for (auto it = tensors.begin(); it != tensors.end();) {
    if (!it->first.ends_with(kLoraA)) {
      ++it;
      continue;
    }
    const auto module = it->first.substr(0, it->first.size() - kLoraA.size());
    const auto weight = tensors.find(module + std::string(kWeight));
    auto b = tensors.extract(module + std::string(kLoraB));
    TORCH_CHECK(weight != tensors.end() && !b.empty(), it->first, " stands without ",
                weight == tensors.end() ? "its linear's weight" : "its lora_B");
    weight->second = merge_adapter(weight->second, it->second, b.mapped(), scale);
    it = tensors.erase(it);
  }
  for (auto& [name, tensor] : tensors) {
    TORCH_CHECK(!name.ends_with(kLoraB), name, " stands without its lora_A");
  }
  return tensors;
}

}  // namespace troupe::model
