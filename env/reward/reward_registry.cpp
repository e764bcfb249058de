#include "env/reward/reward_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "configs/suggest.h"
#include "env/reward/goal_distance.h"
#include "env/reward/success_reward.h"

namespace troupe::env {

namespace {

/// Every reward model by name.
struct ModelRow {
  std::string_view name;
  Result<std::shared_ptr<const RewardModel>> (*make)(const NamedOptions& options, const EnvSpec& spec, double gamma);
  /// The sum over all steps is what it means: that of the last one says nothing.
  bool is_shaping = false;
};
constexpr ModelRow kModels[] = {
    {"goal_distance", GoalDistance::make, /*is_shaping=*/true},
    {"success", SuccessReward::make},
};

const ModelRow* find_model(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kModels), std::end(kModels), [&](const ModelRow& row) { return row.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

}  // namespace

Result<std::shared_ptr<const RewardModel>> make_reward_model(const RewardModelConfig& config, const EnvSpec& spec,
                                                             double gamma) {
  const ModelRow* const found = find_model(config.name);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const ModelRow& row : kModels) names.emplace_back(row.name);
    const std::string near = nearest_name(config.name, names);
    return Error{Errc::not_found,
                 fmt::format("env.reward.model.name: there is no reward model '{}'{}; there are {}", config.name,
                             near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(names, ", "))};
  }
  auto model = found->make(config.options, spec, gamma);
  if (!model) return model.error().with(fmt::format("env.reward.model.options of {}", config.name));
  return model;
}

double reward_gamma(const AlgorithmConfig& algorithm) {
  return algorithm.traits().compares_groups() ? 1 : algorithm.gamma;
}

Result<RewardRules> make_reward_rules(const RewardConfig& config, const AlgorithmConfig& algorithm,
                                      const EnvSpec& spec) {
  RewardRules rules{.coef = config.coef,
                    .step_penalty = config.step_penalty,
                    .relative = config.relative,
                    .is_terminal = config.model.mode == "terminal",
                    .weight = config.model.weight};
  if (config.model.name.empty()) return rules;
  TROUPE_ASSIGN(rules.model, make_reward_model(config.model, spec, reward_gamma(algorithm)));
  if (rules.is_terminal && find_model(config.model.name)->is_shaping) {
    return invalid_argument(
        fmt::format("env.reward.model.mode: is terminal; {} pays how much nearer each step came, and the last step's "
                    "share alone is no measure of an episode: per_step",
                    config.model.name));
  }
  return rules;
}

}  // namespace troupe::env
