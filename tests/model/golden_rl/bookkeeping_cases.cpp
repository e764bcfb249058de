#include <ATen/ATen.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "model/loss/policy_gradient_loss.h"
#include "model/loss/rl_keys.h"
#include "model/loss/rollout_layout.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/played_item.h"
#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::testing {

namespace {

constexpr RlTolerance kRoundingTolerance{1e-6, 1e-6};

/// One of the two wrappers that the reference has around its simulators, in one of its modes. They do what is an
/// environment's part here: they make the rewards, and say when a task is over.
struct Wrapper {
  Wrapper(const RlCase& of_case, const RlVariant& variant) : golden(of_case), v(variant) {}

  const RlCase& golden;
  const RlVariant& v;
  const bool is_maniskill = v.has("episode.fail_once");  ///< else that of LIBERO
  const bool auto_reset = v.config.at("auto_reset").get<bool>();
  const bool ignores_ends = v.config.at("ignore_terminations").get<bool>();
  /// Flags of a chunk are joined in its last action, and the simulator is stepped until then: an environment here ends
  /// its episodes with chunks alone.
  const bool ends_with_chunks = is_maniskill || auto_reset || ignores_ends;
  const std::int64_t chunk = golden.config().at("K").get<std::int64_t>();

  at::Tensor read(const char* name) const { return unflatten_steps(golden.in(name), chunk).to(at::kDouble); }

  at::Tensor rewards() const {
    const auto success = read("success");
    if (!is_maniskill) return v.get("coef", 1.0) * success - (v.get("pen", false) ? 1.0 : 0.0);
    const auto mode = v.get<std::string>("reward_mode", "shaped");
    if (mode == "raw") return read("raw_reward");
    if (mode == "only_success") return success;
    return 0.1 * read("grasp") + 0.1 * read("consecutive") + success * read("grasp");
  }
  /// `outcome`: what the block counts as success; it has no count of failures, and would count them the same.
  RecordedSteps record(const char* outcome) const {
    auto ends = read("success").logical_or(is_maniskill ? read("fail") : read("success"));
    if (ends_with_chunks) {
      const auto any = ends.any(2, /*keepdim=*/true);
      ends = at::cat({at::zeros_like(ends.narrow(2, 1, chunk - 1)), any}, 2);
    }
    if (auto_reset && ignores_ends) ends = at::zeros_like(ends);  // no mode of a block
    return {.reward = rewards(),
            .terminal = ends,
            .success = read(outcome),
            .is_relative = v.get(is_maniskill ? "use_rel_reward" : "rel", false)};
  }
  PlayedItem play(const char* outcome) const {
    const auto steps = record(outcome);
    auto job = recorded_job(steps.reward.sizes(), auto_reset ? "auto" : ignores_ends ? "fixed" : "episode");
    const auto limit = golden.config().at("max_episode_steps").get<std::int64_t>();
    job.env.max_episode_steps = ends_with_chunks ? (limit + chunk - 1) / chunk * chunk : limit;
    return {job, steps};
  }
};

/// The reference steps an environment on after its episode's end until the mode begins another; a block does not. What
/// both executed: bool [T,B,K].
at::Tensor executed_by_both(const Wrapper& wrapper, const at::Tensor& ends) {
  if (wrapper.auto_reset) return at::ones_like(ends);
  const auto flat = flatten_steps(ends).to(at::kLong);
  return unflatten_steps((flat.cumsum(0) - flat).eq(0), wrapper.chunk);
}

/// The wrapper of LIBERO counts an episode's rewards and steps until its first success: f64 [T,B] each, after a call.
/// Reference arithmetic: episodes that go on after it have no such count here.
struct UntilSuccess {
  at::Tensor total, steps;

  explicit UntilSuccess(PlayedItem& played) : total(at::zeros_like(played.total)), steps(at::zeros_like(total)) {
    const auto view = played.view();
    const auto chunk = static_cast<std::size_t>(view.layout().chunk);
    for (std::int64_t b = 0; b < total.size(1); ++b) {
      double sum = 0, count = 0;
      bool is_over = false;
      for (std::int64_t t = 0; t < total.size(0); ++t) {
        for (std::size_t cell = static_cast<std::size_t>(b) * chunk; cell < static_cast<std::size_t>(b + 1) * chunk;
             ++cell) {
          if (is_over || view.valid(t)[cell] == 0) continue;
          sum += view.reward(t)[cell];
          ++count;
          is_over = view.success(t)[cell] != 0;
        }
        total[t][b] = sum;
        steps[t][b] = count;
        if (view.done(t)[static_cast<std::size_t>(b)] == 0) continue;
        sum = count = 0;
        is_over = false;
      }
    }
  }
};

/// What a variant says of calls, by its names.
std::map<std::string, at::Tensor> call_results(const Wrapper& wrapper, const at::Tensor& is_done) {
  auto played = wrapper.play("success");
  const bool stops_counting = !wrapper.is_maniskill && wrapper.ends_with_chunks;
  const UntilSuccess counted(played);
  const auto& total = stops_counting ? counted.total : played.total;
  const auto& steps = stops_counting ? counted.steps : played.length;
  std::map<std::string, at::Tensor> got = {
      {"obs_last", played.observation},
      {"final_obs", played.last_observation},
      {"final_mask", is_done.logical_and(at::scalar_tensor(wrapper.auto_reset, at::kBool))},
      {"episode.success_once", played.success_once},
      {"episode.success_at_end", played.success_at_end},
      {"episode.return", total},
      {"episode.episode_len", played.length},
      {"episode.reward", total / steps}};
  if (wrapper.is_maniskill) {
    const auto failures = wrapper.play("fail");
    got["episode.fail_once"] = failures.success_once;
    got["episode.fail_at_end"] = failures.success_at_end;
  }
  return got;
}

void check_wrapper(const RlCase& golden, const RlVariant& v) {
  const Wrapper wrapper(golden, v);
  const auto batch = wrapper.play("success").batch();
  const auto terminated = v.at("terminations").to(at::kBool), truncated = v.at("truncations").to(at::kBool);
  const auto both = executed_by_both(wrapper, terminated.logical_or(truncated));
  expect_same(batch.mask, both, v.name + " executed");
  expect_close(batch.reward, v.at("rewards") * both, kRoundingTolerance, v.name + " rewards");
  expect_same(batch.terminated, terminated.logical_and(both), v.name + " terminations");
  // an end that is both is a termination here
  expect_same(batch.truncated, truncated.logical_and(both).logical_and(terminated.logical_not()),
              v.name + " truncations");

  // Calls that both executed in full; where a success cut one short, what the reference no longer counts is equal too.
  const auto in_full = both.all(2), to_success = in_full.logical_or(terminated.logical_and(both).any(2));
  const std::set<std::string> until_success = {"episode.return", "episode.reward", "episode.success_once"};
  const auto got = call_results(wrapper, batch.terminated.logical_or(batch.truncated).any(2));
  for (const auto& [name, want] : v.out) {
    if (name == "rewards" || name == "terminations" || name == "truncations") continue;
    ASSERT_EQ(got.count(name), 1U) << v.name << " has " << name;
    auto judged = until_success.count(name) != 0 ? to_success : in_full;
    if (want.dim() == 3) judged = judged.unsqueeze(2);
    const auto value = at::where(judged, got.at(name).to(at::kDouble), want.to(at::kDouble));
    const bool is_exact = !at::isFloatingType(want.scalar_type());
    is_exact ? expect_same(value, want, v.name + " " + name)
             : expect_close(value, want, kRoundingTolerance, v.name + " " + name);
  }
}

/// A block that plays the rows, and from its item all that a learner makes of them: mask, group filter, group-relative
/// advantages, and the loss with per-trajectory weights.
void check_pipeline(const RlCase& golden, const RlVariant& v) {
  const auto &rewards = golden.in("pipeline_rewards"), &old_logp = golden.in("pipeline_logprobs_old");
  const auto& want_mask = v.at("loss_mask");
  const auto chunk = rewards.size(2), steps = v.config.at("max_episode_steps").get<std::int64_t>();
  auto job = recorded_job(rewards.sizes(), "episode");
  job.env.group_size = v.config.at("group_size").get<std::int64_t>();
  job.algorithm.name = Algorithm::grpo;
  job.algorithm.parity = true;  // one reward a chunk: actions behind an end count too
  auto& c = job.algorithm.policy_gradient;
  c.logprob_level = want_mask.size(2) == chunk && chunk > 1 ? Granularity::action : Granularity::chunk;
  c.reward_level = enum_name(c.logprob_level);
  c.clip_ratio_low = v.config.at("clip_ratio_low").get<double>();
  c.clip_ratio_high = v.config.at("clip_ratio_high").get<double>();
  c.aggregation = "trajectory";
  const auto bounds = v.config.at("filter").get<std::vector<double>>();
  c.filter_low = bounds.at(0), c.filter_high = bounds.at(1);

  PlayedItem played(job, {rewards, golden.in("pipeline_dones").narrow(0, 1, rewards.size(0))},
                    old_logp.size(2) / chunk);
  auto batch = played.batch();
  batch.logp = old_logp;
  const RolloutRows rows =
      make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = {}, .reference_logp = {}});
  expect_same(rows.valid_cells.view_as(want_mask), want_mask, v.name + " mask");
  const auto& want_steps = v.at("loss_mask_sum");
  expect_same(rows.rows.at(rl_keys::kValidSteps).view({rewards.size(0), -1, 1}).expand_as(want_steps), want_steps,
              v.name + " valid steps");
  // a group that the filter drops keeps advantages that no loss reads
  v.expect("advantages", rows.rows.at(rl_keys::kAdvantage).view_as(want_mask) * want_mask, kClose);

  auto in = policy_gradient_inputs(rows.rows);
  in.logp = leaf(golden.in("pipeline_logprobs_new").flatten(0, 1));
  const auto got = policy_gradient_loss(in, make_policy_gradient_options(job.algorithm, chunk, steps));
  v.expect("loss", got.loss.item<double>(), kClose);
  v.expect("grad_logprobs", gradients(got.loss, {in.logp})[0], kClose);
  for (const auto& [name, want] : v.scalars.at("metrics").items()) {
    ASSERT_EQ(got.metrics.count(name), 1U) << v.name << " lacks the metric " << name;
    expect_close(got.metrics.at(name).item<double>(), want.get<double>(), kClose, v.name + " " + name);
  }
}

/// Episodes of several processes, "<field>_p<process>": every one weighs the same. Each process is a block whose
/// environments play one episode each.
void check_aggregate(const RlVariant& v) {
  EpisodeSummary all;
  for (int process = 0; v.has("success_p" + std::to_string(process)); ++process) {
    const auto &success = v.at("success_p" + std::to_string(process)),
               &length = v.at("len_p" + std::to_string(process));
    const auto steps = at::arange(1, length.max().item<std::int64_t>() + 1).reshape({-1, 1, 1});
    const auto ends = steps.eq(length.to(at::kLong).reshape({1, -1, 1}));
    const PlayedItem played(
        recorded_job(ends.sizes(), "episode"),
        {.reward = at::zeros_like(ends), .terminal = ends, .success = ends.logical_and(success.reshape({1, -1, 1}))});
    const CollectedItem items[] = {played.item()};
    all.add(played.layout(), items);
  }
  const auto metrics = all.metrics(/*has_success=*/true);
  for (const char* name : {"success_once", "episode_len", "num_trajectories"}) {
    expect_close(metrics.at(std::string("env/") + name), v.scalars.at(name).get<double>(), kRoundingTolerance,
                 v.name + " " + name);
  }
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
