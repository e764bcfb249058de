#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include "base/namespaces.h"
#include "model/loss/advantage_norm.h"
#include "model/loss/gae.h"
#include "model/loss/grpo.h"
#include "model/loss/loss_mask.h"
#include "model/loss/rollout_layout.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

constexpr RlTolerance kTolerance{1e-5, 1e-5};

bool is_per_action(const std::string& reward_type) { return reward_type == "action_level"; }

/// A number that variants which state no options share with those that do.
double shared_option(const RlCase& golden, const std::string& key) {
  if (golden.config().contains(key)) return golden.config().at(key).get<double>();
  for (const auto& v : golden.variants()) {
    const auto it = v.config.find(key);
    if (it != v.config.end() && it->is_number()) return it->get<double>();
  }
  throw std::out_of_range("no variant of " + golden.name() + " states " + key);
}

/// The call that a variant of gae_embodied describes, before normalisation.
struct GaeCall {
  bool per_action = true;
  at::Tensor dones;
  Advantages raw;

  GaeCall(const RlCase& golden, const RlVariant& v)
      : per_action(is_per_action(v.get<std::string>("reward_type", "action_level"))),
        dones(golden.tensor(v.get<std::string>("dones", "in.dones_raw"))),
        raw(rollout_gae(golden.in("rewards"),
                        golden.tensor(v.get<std::string>("values", per_action ? "in.values_k" : "in.values_1")), dones,
                        {.gamma = shared_option_of(golden, v, "gamma"),
                         .lambda = shared_option_of(golden, v, "gae_lambda"),
                         .per_action = per_action})) {}

  static double shared_option_of(const RlCase& golden, const RlVariant& v, const std::string& key) {
    return v.config.contains(key) ? v.config.at(key).get<double>() : shared_option(golden, key);
  }
  LossMask mask() const { return per_action ? make_loss_mask(dones) : to_chunk_mask(make_loss_mask(dones)); }
};

void expect_mask(const RlVariant& v, const LossMask& got) {
  expect_same(got.mask, v.at("loss_mask"), v.name + " mask");
  expect_same(got.n_valid, v.at("loss_mask_sum"), v.name + " valid steps");
}

void check_embodied(const RlCase& golden, const RlVariant& v) {
  const GaeCall call(golden, v);
  at::Tensor mask;
  if (v.has("loss_mask")) {
    expect_mask(v, call.mask());
    mask = call.mask().mask;
  }
  const auto norm = [&mask](const at::Tensor& x) { return normalise(x, advantage_moments(x, mask)); };
  const bool adv = v.get("normalize_advantages", false), ret = v.get("normalize_returns", false);
  expect_close(adv ? norm(call.raw.advantages) : call.raw.advantages, v.at("advantages"), kTolerance,
               v.name + " advantages");
  expect_close(ret ? norm(call.raw.returns) : call.raw.returns, v.at("returns"), kTolerance, v.name + " returns");
}

void check_critic_free(const RlCase& golden, const RlVariant& v) {
  expect_same(flatten_steps(golden.in("rewards")), v.at("rewards_flat"), v.name + " rewards");
  const auto got = reward_to_go(v.at("rewards_flat"), v.at("dones_flat"));
  expect_close(got.advantages, v.at("advantages"), kTolerance, v.name + " advantages");
  expect_close(got.returns, v.at("returns"), kTolerance, v.name + " returns");
}

void check_double_norm(const RlCase& golden, const RlVariant& v) {
  const GaeCall call(golden, v);
  const auto mask = call.mask().mask;
  const auto first = normalise(call.raw.advantages, advantage_moments(call.raw.advantages, mask));
  expect_close(first, v.at("adv_after_gae"), kTolerance, v.name + " first");
  expect_close(renormalise_like_async_reference(first, mask), v.at("adv_after_second"), kTolerance, v.name + " second");
  if (!v.has("adv_after_second_nomask")) return;
  expect_close(renormalise_like_async_reference(first, {}), v.at("adv_after_second_nomask"), kTolerance,
               v.name + " second, no mask");
}

/// One valid entry has no spread: advantages stay as they are, in place of the reference's NaN.
void check_one_valid(const RlCase& golden, const RlVariant& v) {
  const GaeCall call(golden, v);
  auto mask = at::zeros(call.raw.advantages.sizes(), at::TensorOptions().dtype(at::kBool));
  mask.view({-1})[0].fill_(true);
  expect_same(normalise(call.raw.advantages, advantage_moments(call.raw.advantages, mask)), call.raw.advantages,
              v.name);
}

void check_gae_embodied(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    if (v.has("rewards_flat")) {
      check_critic_free(golden, v);
    } else if (v.has("adv_after_gae")) {
      check_double_norm(golden, v);
    } else if (v.has("advantages") && v.config.contains("reward_type")) {
      check_embodied(golden, v);
    } else if (v.has("advantages")) {  // states no options: no valid entry
      const GaeCall call(golden, v);
      const auto none = at::zeros(call.raw.advantages.sizes(), at::TensorOptions().dtype(at::kBool));
      expect_close(normalise(call.raw.advantages, advantage_moments(call.raw.advantages, none)), v.at("advantages"),
                   kTolerance, v.name);
    } else if (v.has("loss_mask")) {
      expect_mask(v, make_loss_mask(golden.tensor(v.config.at("dones").get<std::string>())));
    } else {
      ASSERT_TRUE(v.scalars.value("all_nan", false)) << v.name << " has nothing to compare";
      check_one_valid(golden, v);
    }
  }
}

void check_gae_bootstrap(const RlCase& golden) {
  const auto flags = [&golden](const char* name) {
    const auto& all = golden.in(name);
    return all.narrow(0, 1, all.size(0) - 1).to(at::kBool);
  };
  const auto terminated = flags("terminations"), truncated = flags("truncations");
  const auto done = golden.in("terminations").logical_or(golden.in("truncations"));
  const auto last = terminated.size(2) - 1;
  // the two rules agree where flags are collapsed to the chunk's last step and never both up
  const bool rules_agree = !terminated.logical_or(truncated).narrow(2, 0, last).any().item<bool>() &&
                           !terminated.logical_and(truncated).any().item<bool>();
  const double gamma = golden.config().at("gamma").get<double>(),
               lambda = golden.config().at("gae_lambda").get<double>();
  for (const auto& v : golden.variants()) {
    const auto type = v.config.at("bootstrap_type").get<std::string>();
    const auto kind = !v.get("auto_reset", true) ? Bootstrap::never
                      : type == "always"         ? Bootstrap::always
                                                 : Bootstrap::standard;
    const auto mixed = golden.in("rewards") * v.get("env_reward_weight", 1.0) +
                       golden.in("reward_model") * v.get("reward_weight", 0.0);
    for (const bool parity : {true, false}) {
      if (!parity && !rules_agree) continue;
      const auto rewards = add_bootstrap(mixed, terminated, truncated, golden.in("bootstrap_values").narrow(2, 0, 1),
                                         gamma, kind, parity);
      expect_close(rewards, v.at("rewards_adjusted"), kTolerance, v.name + " rewards");
      for (const std::string level : {"chunk_level", "action_level"}) {
        if (!v.has("advantages_" + level)) continue;
        const auto got = rollout_gae(rewards, golden.in(is_per_action(level) ? "values_k" : "values_1"), done,
                                     {.gamma = gamma, .lambda = lambda, .per_action = is_per_action(level)});
        expect_close(got.advantages, v.at("advantages_" + level), kTolerance, v.name + " advantages " + level);
        expect_close(got.returns, v.at("returns_" + level), kTolerance, v.name + " returns " + level);
      }
    }
  }
}

void check_grpo(const RlCase& golden) {
  const auto &rewards = golden.in("rewards"), &dones = golden.in("dones");
  const LossMask actions = make_loss_mask(dones);
  expect_same(actions.mask, golden.in("loss_mask"), "mask");
  expect_same(actions.n_valid, golden.in("loss_mask_sum"), "valid steps");
  for (const auto& v : golden.variants()) {
    const auto group = v.get("group_size", golden.config().at("group_size").get<std::int64_t>());
    at::Tensor got;
    if (v.config.contains("advantage_mode")) {
      const bool is_frame = v.config.at("advantage_mode").get<std::string>() == "frame";
      got = step_advantages(rewards, actions.mask, group, is_frame ? StepGroup::frame : StepGroup::video);
    } else if (v.config.contains("reward_type")) {
      const auto mask =
          is_per_action(v.config.at("reward_type").get<std::string>()) ? actions.mask : to_chunk_mask(actions).mask;
      expect_same(mask, v.at("loss_mask"), v.name + " mask");
      const bool per_action = mask.size(2) == rewards.size(2);
      const auto scores = per_action ? first_episode_scores(flatten_steps(rewards), flatten_flags(dones))
                                     : first_episode_scores(chunk_rewards(rewards), dones.to(at::kBool).any(2));
      expect_close(scores.reshape({-1, group}), v.at("scores"), kTolerance, v.name + " scores");
      got = grpo_advantages(rewards, dones, mask, group);
    } else {  // no options: the plain score; its name says whether it is normalised
      got = score_advantages(rewards, dones, actions.mask, v.name.find("normalized") != std::string::npos);
    }
    expect_close(got, v.at("advantages"), kTolerance, v.name + " advantages");
  }
}

}  // namespace

RlHandlers advantage_handlers() {
  return {{"gae_embodied", check_gae_embodied}, {"gae_bootstrap", check_gae_bootstrap}, {"grpo", check_grpo}};
}

}  // namespace troupe::testing
