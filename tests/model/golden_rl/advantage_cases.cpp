#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include "base/namespaces.h"
#include "model/loss/advantage_norm.h"
#include "model/loss/gae.h"
#include "model/loss/grpo.h"
#include "model/loss/rollout_layout.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/played_item.h"

namespace troupe::testing {

namespace {

/// Reference arithmetic of RLinf's asynchronous worker: normalised advantages are normalised again, by the population
/// variance of their valid entries. Masked entries become -mean / (sqrt(var) + 1e-5).
at::Tensor renormalise(const at::Tensor& x, const at::Tensor& mask) {
  const auto m = advantage_moments(x, mask);
  const double variance = std::max(0.0, m.sum_of_squares / m.count - m.mean() * m.mean());
  return ((mask.defined() ? x * mask : x) - m.mean()) / (std::sqrt(variance) + 1e-5);
}

/// Each action's reward against its group's: those of the same action (frame), or of the whole rollout. No job asks for
/// it; the arithmetic is that of group_relative.
at::Tensor step_advantages(const at::Tensor& rewards_TBK, std::int64_t group, bool is_frame) {
  const auto flat = flatten_steps(rewards_TBK);
  if (is_frame) return unflatten_steps(group_relative(flat.reshape({-1}), group).view_as(flat), rewards_TBK.size(2));
  const auto grouped = flat.reshape({flat.size(0), -1, group}).transpose(0, 1).contiguous();
  const auto got = group_relative(grouped.reshape({-1}), flat.size(0) * group).view_as(grouped);
  return unflatten_steps(got.transpose(0, 1).reshape(flat.sizes()), rewards_TBK.size(2));
}

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
  at::Tensor executed() const { return executed_steps(dones); }  ///< [T,B,K]
  at::Tensor mask() const { return per_action ? executed() : executed().any(2, /*keepdim=*/true); }
};

/// The mask of the variant's width, and how many control steps each environment executed.
void expect_mask(const RlVariant& v, const at::Tensor& executed) {
  const auto& want = v.at("loss_mask");
  const auto mask = want.size(2) == executed.size(2) ? executed : executed.any(2, /*keepdim=*/true);
  const auto counts = executed.sum(at::IntArrayRef({0, 2}), /*keepdim=*/true);
  expect_same(mask, want, v.name + " mask");
  expect_same(counts.expand_as(want), v.at("loss_mask_sum"), v.name + " valid steps");
}

void check_embodied(const RlCase& golden, const RlVariant& v) {
  const GaeCall call(golden, v);
  at::Tensor mask;
  if (v.has("loss_mask")) {
    expect_mask(v, call.executed());
    mask = call.mask();
  }
  const auto norm = [&mask](const at::Tensor& x) { return normalise(x, advantage_moments(x, mask)); };
  const bool adv = v.get("normalize_advantages", false), ret = v.get("normalize_returns", false);
  v.expect("advantages", adv ? norm(call.raw.advantages) : call.raw.advantages, kClose);
  v.expect("returns", ret ? norm(call.raw.returns) : call.raw.returns, kClose);
}

void check_critic_free(const RlCase& golden, const RlVariant& v) {
  expect_same(flatten_steps(golden.in("rewards")), v.at("rewards_flat"), v.name + " rewards");
  const auto &rewards = v.at("rewards_flat"), &dones = v.at("dones_flat");
  const auto got = gae(rewards, at::zeros(dones.sizes()), dones, /*gamma=*/1, /*lambda=*/1);  // no job asks for it
  v.expect("advantages", got.advantages, kClose);
  v.expect("returns", got.returns, kClose);
}

void check_double_norm(const RlCase& golden, const RlVariant& v) {
  const GaeCall call(golden, v);
  const auto mask = call.mask();
  const auto first = normalise(call.raw.advantages, advantage_moments(call.raw.advantages, mask));
  v.expect("adv_after_gae", first, kClose);
  v.expect("adv_after_second", renormalise(first, mask), kClose);
  if (!v.has("adv_after_second_nomask")) return;
  v.expect("adv_after_second_nomask", renormalise(first, {}), kClose);
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
      v.expect("advantages", normalise(call.raw.advantages, advantage_moments(call.raw.advantages, none)), kClose);
    } else if (v.has("loss_mask")) {
      expect_mask(v, executed_steps(golden.tensor(v.config.at("dones").get<std::string>())));
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
      v.expect("rewards_adjusted", rewards, kClose);
      for (const std::string level : {"chunk_level", "action_level"}) {
        if (!v.has("advantages_" + level)) continue;
        const auto got = rollout_gae(rewards, golden.in(is_per_action(level) ? "values_k" : "values_1"), done,
                                     {.gamma = gamma, .lambda = lambda, .per_action = is_per_action(level)});
        v.expect("advantages_" + level, got.advantages, kClose);
        v.expect("returns_" + level, got.returns, kClose);
      }
    }
  }
}

void check_grpo(const RlCase& golden) {
  const auto &rewards = golden.in("rewards"), &dones = golden.in("dones");
  const auto executed = executed_steps(dones);
  expect_same(executed, golden.in("loss_mask"), "mask");
  expect_same(executed.sum(at::IntArrayRef({0, 2}), /*keepdim=*/true).expand_as(executed), golden.in("loss_mask_sum"),
              "valid steps");
  for (const auto& v : golden.variants()) {
    const auto group = v.get("group_size", golden.config().at("group_size").get<std::int64_t>());
    at::Tensor got;
    if (v.config.contains("advantage_mode")) {
      const bool is_frame = v.config.at("advantage_mode").get<std::string>() == "frame";
      got = step_advantages(rewards, group, is_frame) * executed;
    } else if (v.config.contains("reward_type")) {
      const auto mask =
          is_per_action(v.config.at("reward_type").get<std::string>()) ? executed : executed.any(2, /*keepdim=*/true);
      expect_same(mask, v.at("loss_mask"), v.name + " mask");
      const bool per_action = mask.size(2) == rewards.size(2);
      const auto scores = per_action ? first_episode_scores(flatten_steps(rewards), flatten_flags(dones))
                                     : first_episode_scores(chunk_rewards(rewards), dones.to(at::kBool).any(2));
      v.expect("scores", scores.reshape({-1, group}), kClose);
      got = grpo_advantages(rewards, dones, mask, group);
    } else {  // no options: the plain score; its name says whether it is normalised
      got = first_episode_scores(flatten_steps(rewards), flatten_flags(dones)).reshape({1, -1, 1}) * executed;
      if (v.name.find("normalized") != std::string::npos) got = normalise(got, advantage_moments(got, executed));
    }
    v.expect("advantages", got, kClose);
  }
}

}  // namespace

RlHandlers advantage_handlers() {
  return {{"gae_embodied", check_gae_embodied}, {"gae_bootstrap", check_gae_bootstrap}, {"grpo", check_grpo}};
}

}  // namespace troupe::testing
