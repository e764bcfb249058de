#pragma once

#include <map>
#include <string>

#include "base/namespaces.h"

namespace troupe::configs {

/// A reward that is computed from what a step showed, beside the environment's own (docs/env.md#rewards).
struct RewardModelConfig {
  std::string name;
  std::string mode = "per_step";
  /// -1e9 to 1e9. Read by env.
  double weight = 1;
  std::map<std::string, std::string> options;

  template <class V>
  static void describe(V& v) {
    v.field("name", &RewardModelConfig::name,
            "goal_distance or success (docs/env.md#rewards); empty: the environment's reward alone");
    v.choice("mode", &RewardModelConfig::mode,
             "per_step: asked for every control step; terminal: only for the one that ends an episode",
             {"per_step", "terminal"});
    v.field("weight", &RewardModelConfig::weight, "factor of the model's reward", "", -1e9, 1e9);
    v.map("options", &RewardModelConfig::options, "further settings by the names that the model documents");
  }
};

/// What of a step is trained on as its reward. Success and reported returns are the environment's own all the same.
struct RewardConfig {
  /// -1e9 to 1e9. Read by env.
  double coef = 1;
  /// -1e9 to 1e9. Read by env.
  double step_penalty = 0;
  /// Read by env.
  bool relative = false;
  RewardModelConfig model;

  template <class V>
  static void describe(V& v) {
    v.field("coef", &RewardConfig::coef, "factor of the environment's own reward; 0: the model's alone", "", -1e9, 1e9);
    v.field("step_penalty", &RewardConfig::step_penalty, "subtracted from every control step's reward", "", -1e9, 1e9);
    v.field(
        "relative", &RewardConfig::relative,
        "the environment's reward minus that of the step before (0 before an episode's first), so that a state that "
        "pays on and on pays once");
    v.group("model", &RewardConfig::model, "a reward computed from observations, actions and ends");
  }
};

}  // namespace troupe::configs
