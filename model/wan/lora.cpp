#include "model/wan/lora.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/wan/dit_units.h"

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

}  // namespace troupe::model
