#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "model/loss/grpo.h"
#include "model/loss/loss_mask.h"
#include "model/loss/policy_gradient_loss.h"
#include "model/loss/rollout_layout.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/bookkeeping/chunk_bookkeeping.h"

namespace troupe::testing {

namespace {

constexpr RlTolerance kRoundingTolerance{1e-6, 1e-6};

/// The two wrappers of the reference differ in which rewards they make and in how they count them; only the one of
/// ManiSkill knows failures.
bool is_maniskill(const RlVariant& v) { return v.has("episode.fail_once"); }

/// The scripted simulator: step s of environment b reads the signals at [s,b].
StepSignal signal(const RlCase& golden, const RlVariant& v, std::int64_t s, std::int64_t b) {
  const auto read = [&](const char* name) { return golden.in(name)[s][b].item<double>(); };
  StepSignal out{.success = read("success") != 0};
  if (!is_maniskill(v)) {
    out.reward = out.success ? 1 : 0;
    out.is_terminal = out.success;
    return out;
  }
  out.fail = read("fail") != 0;
  out.is_terminal = out.success || out.fail;
  const auto mode = v.get<std::string>("reward_mode", "shaped");
  if (mode == "raw") {
    out.reward = read("raw_reward");
  } else if (mode == "only_success") {
    out.reward = out.success ? 1 : 0;
  } else {
    out.reward = 0.1 * read("grasp") + 0.1 * read("consecutive") + (out.success && read("grasp") != 0 ? 1.0 : 0.0);
  }
  return out;
}

ChunkRules rules_of(const RlCase& golden, const RlVariant& v) {
  ChunkRules r;
  r.chunk = golden.config().at("K").get<std::int64_t>();
  r.max_episode_steps = golden.config().at("max_episode_steps").get<std::int32_t>();
  r.auto_reset = v.config.at("auto_reset").get<bool>();
  r.ignore_terminations = v.config.at("ignore_terminations").get<bool>();
  r.return_until_success = !is_maniskill(v);
  r.shaping = {.coefficient = v.get("coef", 1.0),
               .step_penalty = v.get("pen", false) ? 1.0 : 0.0,
               .is_relative = is_maniskill(v) ? v.get("use_rel_reward", false) : v.get("rel", false)};
  r.parity = true;
  r.parity_collapses_always = is_maniskill(v);
  return r;
}

/// What a variant's tensors hold, collected under their names.
using Rows = std::map<std::string, std::vector<at::Tensor>>;

at::Tensor numbers(const std::vector<double>& x) { return at::tensor(x, at::TensorOptions().dtype(at::kDouble)); }
at::Tensor flags(const std::vector<std::uint8_t>& x) { return numbers({x.begin(), x.end()}); }
at::Tensor number(double x) { return at::full({}, x, at::TensorOptions().dtype(at::kDouble)); }

/// One chunk of one environment. The observation is [steps of the script, steps of the episode].
void play_chunk(const RlCase& golden, const RlVariant& v, std::int64_t t, std::int64_t b, ChunkBookkeeper& book,
                Rows& rows) {
  const auto chunk = golden.config().at("K").get<std::int64_t>();
  for (std::int64_t k = 0; k < chunk; ++k) book.step(signal(golden, v, t * chunk + k, b));
  const double elapsed = book.elapsed(), time = static_cast<double>((t + 1) * chunk);
  const auto row = book.finish();
  const auto& e = row.episode;
  rows["rewards"].push_back(numbers(row.rewards));
  rows["terminations"].push_back(flags(row.terminated));
  rows["truncations"].push_back(flags(row.truncated));
  rows["obs_last"].push_back(numbers({time, static_cast<double>(book.elapsed())}));
  rows["final_obs"].push_back(numbers({time, elapsed}));
  rows["final_mask"].push_back(number(row.is_done && v.config.at("auto_reset").get<bool>()));
  rows["episode.success_once"].push_back(number(e.success_once));
  rows["episode.success_at_end"].push_back(number(e.success_at_end));
  rows["episode.fail_once"].push_back(number(e.fail_once));
  rows["episode.fail_at_end"].push_back(number(e.fail_at_end));
  rows["episode.return"].push_back(number(e.episode_return));
  rows["episode.episode_len"].push_back(number(e.episode_len));
  rows["episode.reward"].push_back(number(e.reward));
}

void check_wrapper(const RlCase& golden, const RlVariant& v) {
  const auto calls = golden.config().at("T").get<std::int64_t>(),
             environments = golden.config().at("B").get<std::int64_t>();
  std::vector<ChunkBookkeeper> books(static_cast<std::size_t>(environments), ChunkBookkeeper(rules_of(golden, v)));
  Rows rows;
  for (std::int64_t t = 0; t < calls; ++t) {
    for (std::int64_t b = 0; b < environments; ++b)
      play_chunk(golden, v, t, b, books[static_cast<std::size_t>(b)], rows);
  }
  for (const auto& [name, want] : v.out) {
    ASSERT_EQ(rows.count(name), 1U) << v.name << " has " << name;
    const auto got = at::stack(rows.at(name)).reshape(want.sizes());
    const bool is_exact = !at::isFloatingType(want.scalar_type());
    is_exact ? expect_same(got, want, v.name + " " + name)
             : expect_close(got, want, kRoundingTolerance, v.name + " " + name);
  }
}

/// Rows of a rollout through mask, group filter, group-relative advantages and the loss with per-trajectory weights.
void check_pipeline(const RlCase& golden, const RlVariant& v) {
  constexpr RlTolerance kLoss{1e-5, 1e-5};
  const auto &rewards = golden.in("pipeline_rewards"), &dones = golden.in("pipeline_dones");
  const auto& want_mask = v.at("loss_mask");
  const bool per_action = want_mask.size(2) == rewards.size(2) && rewards.size(2) > 1;
  auto mask = make_loss_mask(dones);
  if (!per_action) mask = to_chunk_mask(mask);
  const auto group = v.config.at("group_size").get<std::int64_t>();
  const auto bounds = v.config.at("filter").get<std::vector<double>>();
  const auto kept = kept_groups(rewards, mask.mask, group, bounds.at(0), bounds.at(1)).reshape({1, -1, 1});
  const auto filtered = mask.mask.logical_and(kept);
  expect_same(filtered, want_mask, v.name + " mask");
  expect_same(mask.n_valid, v.at("loss_mask_sum"), v.name + " valid steps");
  const auto advantages = grpo_advantages(rewards, dones, filtered, group);
  expect_close(advantages, v.at("advantages"), kLoss, v.name + " advantages");

  PolicyGradientOptions o;
  o.chunk = rewards.size(2);
  o.reward_per_action = per_action;
  o.logp_level = per_action ? Granularity::action : Granularity::chunk;
  o.clip = {.low = v.config.at("clip_ratio_low").get<double>(), .high = v.config.at("clip_ratio_high").get<double>()};
  o.aggregation = Aggregation::trajectory;
  o.max_episode_steps = v.config.at("max_episode_steps").get<std::int64_t>();
  PolicyGradientInputs in;
  in.logp = leaf(flatten_samples(golden.in("pipeline_logprobs_new"), {}));
  in.old_logp = flatten_samples(golden.in("pipeline_logprobs_old"), {});
  in.advantage = flatten_samples(advantages, {});
  in.mask = flatten_samples(filtered, {});
  in.valid_steps = flatten_samples(mask.n_valid.narrow(2, 0, 1), {}).to(at::kFloat);
  const auto got = policy_gradient_loss(in, o);
  expect_close(got.loss.item<double>(), v.scalars.at("loss").get<double>(), kLoss, v.name + " loss");
  expect_close(gradients(got.loss, {in.logp})[0], v.at("grad_logprobs"), kLoss, v.name + " gradient");
  for (const auto& [name, want] : v.scalars.at("metrics").items()) {
    ASSERT_EQ(got.metrics.count(name), 1U) << v.name << " lacks the metric " << name;
    expect_close(got.metrics.at(name).item<double>(), want.get<double>(), kLoss, v.name + " " + name);
  }
}

/// Records of several processes, "<field>_p<process>": every one weighs the same.
void check_aggregate(const RlVariant& v) {
  EpisodeTotals all;
  for (int process = 0; v.has("success_p" + std::to_string(process)); ++process) {
    const auto &success = v.at("success_p" + std::to_string(process)),
               &length = v.at("len_p" + std::to_string(process));
    EpisodeTotals own;
    for (std::int64_t i = 0; i < success.numel(); ++i) {
      own.add(EpisodeMetrics{.success_once = success[i].item<double>() != 0,
                             .episode_len = length[i].item<std::int32_t>()});
    }
    all.add(own);
  }
  expect_close(all.mean(static_cast<double>(all.success_once)), v.scalars.at("success_once").get<double>(),
               kRoundingTolerance, v.name + " success_once");
  expect_close(all.mean(static_cast<double>(all.episode_len)), v.scalars.at("episode_len").get<double>(),
               kRoundingTolerance, v.name + " episode_len");
  expect_close(static_cast<double>(all.num_trajectories), v.scalars.at("num_trajectories").get<double>(),
               kRoundingTolerance, v.name + " trajectories");
}

void check_bookkeeping(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    if (v.has("rewards")) {
      check_wrapper(golden, v);
    } else if (v.has("loss_mask")) {
      check_pipeline(golden, v);
    } else {
      ASSERT_TRUE(v.has("success_p0")) << v.name << " has nothing that is known";
      check_aggregate(v);
    }
  }
}

}  // namespace

RlHandlers bookkeeping_handlers() { return {{"bookkeeping", check_bookkeeping}}; }

}  // namespace troupe::testing
