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
  Result<std::shared_ptr<const RewardModel>> (*make)(const RewardOptions& options, const EnvSpec& spec, double gamma);
};
constexpr ModelRow kModels[] = {
    {"goal_distance", GoalDistance::make},
    {"success", SuccessReward::make},
};

}  // namespace

Result<std::shared_ptr<const RewardModel>> make_reward_model(const RewardModelConfig& config, const EnvSpec& spec,
                                                             double gamma) {
  const auto* const found = std::find_if(std::begin(kModels), std::end(kModels),
                                         [&](const ModelRow& row) { return row.name == config.name; });
  if (found == std::end(kModels)) {
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

Result<RewardRules> make_reward_rules(const RewardConfig& config, const EnvSpec& spec, double gamma) {
  RewardRules rules{.coef = config.coef,
                    .step_penalty = config.step_penalty,
                    .relative = config.relative,
                    .is_terminal = config.model.mode == "terminal",
                    .weight = config.model.weight};
  if (config.model.name.empty()) return rules;
  TROUPE_ASSIGN(rules.model, make_reward_model(config.model, spec, gamma));
  return rules;
}

}  // namespace troupe::env
