// What reinforcement learning cannot do, found before anything starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "configs/scalar.h"
#include "configs/validate.h"

namespace troupe::configs {

namespace {

std::int64_t nearest_multiple(std::int64_t value, std::int64_t of) {
  return std::max<std::int64_t>(1, (value + of / 2) / of) * of;
}

/// The divisor of `value` that is nearest to `wanted`.
std::int64_t nearest_divisor(std::int64_t value, std::int64_t wanted) {
  for (std::int64_t distance = 0;; ++distance) {
    for (const std::int64_t candidate : {wanted - distance, wanted + distance}) {
      if (candidate >= 1 && candidate <= value && value % candidate == 0) return candidate;
    }
    if (wanted - distance <= 1 && wanted + distance >= value) return 1;
  }
}

/// The algorithms whose row is such, "decoupled_ppo, vtrace".
template <class Predicate>
std::string algorithms_where(Predicate is_such) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < enum_names(Algorithm{}).size(); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (is_such(traits_of(algorithm))) names.push_back(enum_name(algorithm));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string algorithms_with(DemonstrationUse use) {
  return algorithms_where([use](const AlgorithmTraits& row) { return row.demonstrations == use; });
}

void validate_chunk(const EnvConfig& env, Rules& rules) {
  rules.require(env.exec_steps <= env.chunk, "env.exec_steps",
                fmt::format("{} of a chunk of {} actions cannot be executed", env.exec_steps, env.chunk),
                {"env.chunk"});
}

/// Frames between policy calls: which networks look at them.
void validate_frames(const JobConfig& job, Rules& rules) {
  if (learns_dreamzero(job)) return;  // validate_window_of_calls
  rules.require(job.env.frame_offsets.empty(), "env.frame_offsets",
                "is set; policy.kind dreamzero alone looks at frames between its calls: leave it out", {"policy.kind"});
}

void validate_env(const EnvConfig& env, Rules& rules) {
  rules.require(!env.id.empty(), "env.id",
                "is empty; name an environment, such as CartPole-v1 (docs/env.md lists them)");
  rules.require(env.num_envs % env.group_size == 0, "env.num_envs",
                fmt::format("{} is not a multiple of group_size {}; nearest: {}", env.num_envs, env.group_size,
                            nearest_multiple(env.num_envs, env.group_size)),
                {"env.group_size"});
  if (env.blocks > 0) {
    const bool divides = env.num_envs % env.blocks == 0;
    rules.require(divides, "env.num_envs",
                  fmt::format("{} environments cannot be cut into {} equal blocks; nearest: {}", env.num_envs,
                              env.blocks, nearest_multiple(env.num_envs, env.blocks)),
                  {"env.blocks"});
    rules.require(!divides || env.num_envs / env.blocks % env.group_size == 0, "env.blocks",
                  fmt::format("{} blocks of {} environments would cut groups of {} apart; a block holds whole groups",
                              env.blocks, env.num_envs / env.blocks, env.group_size),
                  {"env.num_envs", "env.group_size"});
  }
  validate_chunk(env, rules);
  const RewardModelConfig& model = env.reward.model;
  rules.require(!model.name.empty() || (model.options.empty() && model.mode == "per_step" && model.weight == 1),
                "env.reward.model.name",
                "is empty, and other keys of env.reward.model are set; name the model (docs/env.md lists them)",
                {"env.reward.model.mode", "env.reward.model.weight", "env.reward.model.options"});
  const bool has_model = !model.name.empty() && model.weight != 0;
  rules.require(env.reward.coef != 0 || env.reward.step_penalty != 0 || has_model, "env.reward.coef",
                "is 0, and no other part of env.reward pays anything: every reward would be 0; name a reward model, "
                "or leave the environment's reward in",
                {"env.reward.step_penalty", "env.reward.model.name", "env.reward.model.weight"});
}

void validate_rollout(const JobConfig& job, Rules& rules) {
  const std::int64_t executed = job.env.executed(), steps = job.rollout.steps;
  const bool whole = steps % executed == 0;
  rules.require(whole, "rollout.steps",
                fmt::format("{} control steps are not whole chunks of {} executed actions; nearest: {}", steps,
                            executed, nearest_multiple(steps, executed)),
                {"env.chunk", "env.exec_steps"});
  if (!whole) return;
  const std::int64_t per_round = job.env.num_envs * steps;
  if (is_off_policy(job)) {
    rules.require(job.rollout.commit_every % per_round == 0, "rollout.commit_every",
                  fmt::format("{} environment steps are not whole rounds of {} environments x {} steps; nearest: {}",
                              job.rollout.commit_every, job.env.num_envs, steps,
                              nearest_multiple(job.rollout.commit_every, per_round)),
                  {"env.num_envs", "rollout.steps"});
    return;
  }
  const std::int64_t rows = per_round / executed * job.rollout.epochs, batch = job.training.global_batch_size;
  rules.require(
      rows % batch == 0, "training.global_batch_size",
      fmt::format(
          "{} does not divide the {} rows of an iteration ({} environments x {} policy calls x {} epochs); nearest: {}",
          batch, rows, job.env.num_envs, steps / executed, job.rollout.epochs, nearest_divisor(rows, batch)),
      {"env.num_envs", "rollout.steps", "rollout.epochs"});
}

/// V-trace makes weights, targets and advantages once an iteration, for the policy that the iteration begins with.
void validate_vtrace(const JobConfig& job, Rules& rules) {
  const PolicyGradientConfig& pg = job.algorithm.policy_gradient;
  const std::string prefix = "algorithm.policy_gradient.";
  rules.require(pg.reward_level == "chunk" || job.env.chunk == 1, prefix + "reward_level",
                "vtrace weighs whole policy calls; wants chunk", {"algorithm.name", "env.chunk"});
  rules.require(pg.update_epochs == 1, prefix + "update_epochs",
                fmt::format("is {}; importance weights of vtrace hold for one pass over an iteration's samples: 1",
                            pg.update_epochs),
                {"algorithm.name"});
  rules.require(pg.advantage_norm == "none", prefix + "advantage_norm",
                fmt::format("is {}, which subtracts a mean; advantages of vtrace hold importance weights, under which "
                            "their mean is no baseline: none",
                            pg.advantage_norm),
                {"algorithm.name"});
  rules.require(
      pg.target_kl == 0, prefix + "target_kl",
      fmt::format("is {}; it leaves out an iteration's further passes, and vtrace takes one: 0", pg.target_kl),
      {"algorithm.name"});
}

void validate_no_critic(const AlgorithmConfig& algorithm, Rules& rules) {
  const auto refuse = [&](const char* key, bool is_set) {
    rules.require(!is_set, fmt::format("algorithm.{}", key),
                  fmt::format("is set; {} trains no critic: leave it out", enum_name(algorithm.name)),
                  {"algorithm.name"});
  };
  refuse("value_lr", algorithm.value_lr != 0);
  refuse("critic_clip_norm", algorithm.critic_clip_norm != 0);
  refuse("policy_gradient.critic_warmup_steps", algorithm.policy_gradient.critic_warmup_steps != 0);
}

void validate_policy_gradient(const JobConfig& job, Rules& rules) {
  const AlgorithmTraits traits = job.algorithm.traits();
  const std::string_view name = enum_name(job.algorithm.name);
  const PolicyGradientConfig& pg = job.algorithm.policy_gradient;
  const std::string prefix = "algorithm.policy_gradient.";
  if (traits.compares_groups()) {
    rules.require(job.env.reset_mode != "auto", "env.reset_mode",
                  fmt::format("is auto; {} compares whole episodes from one start: episode or fixed", name),
                  {"algorithm.name"});
    rules.require(job.env.group_size >= 2, "env.group_size",
                  fmt::format("is {}; {} compares the members of a group: 2 or more", job.env.group_size, name),
                  {"algorithm.name"});
  }
  if (!traits.has_critic()) validate_no_critic(job.algorithm, rules);
  rules.require(pg.filter_low <= pg.filter_high, prefix + "filter_low",
                fmt::format("{} is above filter_high {}", pg.filter_low, pg.filter_high));
  rules.require(pg.filter_low == pg.filter_high || traits.compares_groups(), prefix + "filter_high",
                fmt::format("filters groups; algorithm {} has none", name),
                {"algorithm.name", "algorithm.policy_gradient.filter_low"});
  rules.require(pg.reward_level == "chunk" || pg.logprob_level != Granularity::chunk, prefix + "logprob_level",
                "is chunk with rewards per action; wants action or token, or reward_level chunk",
                {"algorithm.policy_gradient.reward_level"});
  rules.require(
      job.rollout.staleness == 0 || traits.staleness != Staleness::none, "rollout.staleness",
      fmt::format("{}: {} assumes that the policy it trains has collected the rollout; use one of {}, or staleness 0",
                  job.rollout.staleness, name,
                  algorithms_where([](const AlgorithmTraits& row) { return row.staleness != Staleness::none; })),
      {"algorithm.name"});
  if (traits.advantages == AdvantageSource::trace) validate_vtrace(job, rules);
}

/// Recorded transitions in the batches: which algorithms replay, and what recordings do not hold.
void validate_demonstration_share(const JobConfig& job, Rules& rules) {
  const double share = job.algorithm.demonstration_share;
  if (share == 0) return;
  const std::string key = "algorithm.demonstration_share";
  rules.require(
      job.algorithm.traits().demonstrations == DemonstrationUse::replayed, key,
      fmt::format("{}: {} replays nothing, and learns from demonstrations by a job of kind sft before "
                  "(docs/rl.md#imitation-first); use {}, or 0",
                  format_number(share), enum_name(job.algorithm.name), algorithms_with(DemonstrationUse::replayed)),
      {"algorithm.name"});
  rules.require(share < 1, key, "is 1, which leaves no place for the job's own transitions; below 1");
  validate_sets(job.data, rules);
  for (std::size_t i = 0; i < job.data.sets.size(); ++i) {
    rules.require(job.data.sets[i].weight == 1, fmt::format("data.sets[{}].weight", i),
                  "is set; recorded transitions are drawn uniformly over all datasets "
                  "(algorithm.demonstration_share): leave it out");
  }
  rules.require(job.env.chunk == 1, "env.chunk",
                fmt::format("is {}; recorded transitions are of single actions (algorithm.demonstration_share): 1",
                            job.env.chunk),
                {key.c_str()});
  validate_no_reward(job.env.reward,
                     "recorded rewards are the environment's alone (algorithm.demonstration_share): leave env.reward "
                     "out",
                     rules);
}

void validate_soft_actor_critic(const JobConfig& job, Rules& rules) {
  const SacConfig& sac = job.algorithm.sac;
  rules.require(job.env.reset_mode == "auto", "env.reset_mode",
                fmt::format("is {}; sac collects without end: auto", job.env.reset_mode), {"algorithm.name"});
  rules.require(!job.rollout.normalize_obs, "rollout.normalize_obs",
                "replayed observations would carry statistics of their time; not with sac", {"algorithm.name"});
  rules.require(!job.rollout.normalize_reward, "rollout.normalize_reward", "not with sac, whose rewards are replayed",
                {"algorithm.name"});
  rules.require(sac.target_subset <= sac.critics, "algorithm.sac.target_subset",
                fmt::format("{} of {} critics cannot be chosen", sac.target_subset, sac.critics),
                {"algorithm.sac.critics"});
  rules.require(
      sac.replay_capacity >= job.training.global_batch_size, "algorithm.sac.replay_capacity",
      fmt::format("{} transitions are less than one batch of {}", sac.replay_capacity, job.training.global_batch_size),
      {"training.global_batch_size"});
  rules.require(job.policy.kind != PolicyKind::flow && job.policy.kind != PolicyKind::dreamzero, "policy.kind",
                fmt::format("is {}; sac needs mlp", enum_name(job.policy.kind)), {"algorithm.name"});
}

/// `key`: what makes the policy remember.
void require_whole_sequences(const JobConfig& job, const std::string& key, Rules& rules) {
  const std::int64_t executed = job.env.executed(), calls = std::max<std::int64_t>(1, job.rollout.steps / executed);
  const std::int64_t micro = job.training.micro_batch_size;
  rules.require(micro % calls == 0, "training.micro_batch_size",
                fmt::format("{} rows cut sequences of {} policy calls apart (rollout.steps {} / {} executed actions); "
                            "{} trains whole ones; nearest: {}",
                            micro, calls, job.rollout.steps, executed, key, nearest_multiple(micro, calls)),
                {"rollout.steps", key.c_str()});
}

/// A policy that remembers is trained on the whole sequence of an environment's steps in an item.
void validate_memory(const JobConfig& job, Rules& rules) {
  if (job.policy.memory == PolicyMemory::none) return;
  const auto refuse = [&](bool fits, const char* why, const char* key) {
    rules.require(fits, "policy.memory", fmt::format("is {}; {}", enum_name(job.policy.memory), why), {key});
  };
  const PolicyGradientConfig& pg = job.algorithm.policy_gradient;
  refuse(job.job.kind == JobKind::rl, "demonstrations are trained step by step, without an order: none", "job.kind");
  const bool is_layers = job.policy.kind == PolicyKind::mlp || job.policy.kind == PolicyKind::cnn;
  refuse(is_layers,
         fmt::format("policies of kind {} have no gru: none, or kind mlp", enum_name(job.policy.kind)).c_str(),
         "policy.kind");
  refuse(!is_off_policy(job), "replay draws single transitions, and a memory needs the steps before: none",
         "algorithm.name");
  if (is_off_policy(job)) return;
  refuse(job.algorithm.traits().advantages != AdvantageSource::trace,
         "vtrace values observations again one by one, without what came before: none, or algorithm decoupled_ppo",
         "algorithm.name");
  refuse(pg.kl_beta == 0, "the reference policy of kl_beta would need a memory of its own: none, or kl_beta 0",
         "algorithm.policy_gradient.kl_beta");
  rules.require(!job.policy.hidden.empty(), "policy.hidden",
                "is empty; policy.memory gru reads the last hidden layer: one width at least", {"policy.memory"});
  require_whole_sequences(job, "policy.memory", rules);
}

/// The sampler of a policy that denoises.
void validate_flow(const JobConfig& job, Rules& rules) {
  const FlowPolicyConfig& flow = job.policy.flow;
  rules.require(flow.sampler != "noise" || flow.joint, "policy.flow.joint",
                "is false; the learned width of sampler noise is trained on whole chains: true",
                {"policy.flow.sampler"});
  rules.require(flow.sampler != "cps" || flow.joint || flow.ignore_last, "policy.flow.ignore_last",
                "is false; the last step of Flow-CPS draws nothing and would have no gradient: true",
                {"policy.flow.sampler"});
  rules.require(flow.sampler != "ode" || is_off_policy(job), "policy.flow.sampler",
                "is ode, which draws nothing and has no log-probability: sde, cps or noise", {"algorithm.name"});
  rules.require(flow.logprob_reduce == "mean" || flow.joint, "policy.flow.logprob_reduce",
                "says how several steps are reduced; joint is false", {"policy.flow.joint"});
  rules.require(flow.drawing_steps() > 0, "policy.flow.denoise_steps",
                fmt::format("is {}, and ignore_first and ignore_last leave no step that draws", flow.denoise_steps),
                {"policy.flow.ignore_first", "policy.flow.ignore_last"});
  rules.require(flow.ignore_first == 0 || !flow.joint, "policy.flow.ignore_first",
                "is for one step that draws; with joint all steps draw: 0", {"policy.flow.joint"});
}

void validate_policy(const JobConfig& job, Rules& rules) {
  const PolicyConfig& policy = job.policy;
  const auto positive = [](const std::vector<std::int64_t>& widths) {
    return std::all_of(widths.begin(), widths.end(), [](std::int64_t width) { return width > 0 && width <= 1 << 16; });
  };
  rules.require(positive(policy.hidden), "policy.hidden", "wants widths from 1 to 65536");
  rules.require(positive(policy.critic_hidden), "policy.critic_hidden", "wants widths from 1 to 65536");
  rules.require(policy.kind != PolicyKind::cnn || policy.vision == Vision::none, "policy.kind",
                "is cnn, an earlier name of mlp with vision: cnn; beside policy.vision write mlp", {"policy.vision"});
  const bool sees = policy.actor_vision() != Vision::none;
  rules.require(!sees || (policy.cnn_channels.size() == 3 && positive(policy.cnn_channels)), "policy.cnn_channels",
                "wants three numbers of channels from 1 to 65536", {"policy.vision"});
  rules.require(sees || policy.critic_sees, "policy.critic_sees",
                "is false, and policy.vision is none: no network looks at pictures; leave it out", {"policy.vision"});
  rules.require(policy.log_std_min < policy.log_std_max, "policy.log_std_min",
                fmt::format("{} is not below log_std_max {}", policy.log_std_min, policy.log_std_max),
                {"policy.log_std_max"});
  validate_memory(job, rules);
  if (policy.kind == PolicyKind::flow || policy.kind == PolicyKind::dreamzero) validate_flow(job, rules);
}

/// What a policy's weights begin with, and their numbers.
void validate_weights(const JobConfig& job, Rules& rules) {
  rules.require(job.precision.param == "fp32" || learns_dreamzero(job), "precision.param",
                "is bf16; log-probabilities, advantages and small networks want fp32 (bf16 is for policy.kind "
                "dreamzero)");
  rules.require(!job.offload.states, "offload.states",
                "is true; states of a policy for an environment stay in memory: false");
  rules.require(!job.offload.activations, "offload.activations",
                "is true; a policy for an environment keeps all in memory: false");
  if (learns_dreamzero(job)) return;  // validate_model
  rules.require(job.model.init.mode == "random" || job.model.init.mode == "checkpoint", "model.init.mode",
                fmt::format("is {}; a policy starts at random or from a checkpoint", job.model.init.mode));
  rules.require(job.model.init.mode != "checkpoint" || !job.model.init.path.empty(), "model.init.path",
                "is empty; name the checkpoint to start from", {"model.init.mode"});
}

}  // namespace

void validate_rl(const JobConfig& job, Rules& rules) {
  validate_env(job.env, rules);
  validate_frames(job, rules);
  validate_no_jitter(job.data.demonstration_jitter,
                     "is for policies that imitate (job.kind sft); kind rl sees pictures as they are: leave it out",
                     rules);
  validate_rollout(job, rules);
  validate_demonstration_share(job, rules);
  if (is_off_policy(job)) {
    validate_soft_actor_critic(job, rules);
  } else {
    validate_policy_gradient(job, rules);
  }
  validate_policy(job, rules);
  validate_weights(job, rules);
  rules.require(
      !job.algorithm.deterministic || job.rollout.batch_blocks == 1, "rollout.batch_blocks",
      fmt::format("{}: which blocks share a batch depends on timing; deterministic wants 1", job.rollout.batch_blocks),
      {"algorithm.deterministic"});
}

namespace {

/// A window of several policy calls: the environment shows the frames that fine-tuning saw, a call follows the one
/// before as blocks do, and minibatches hold whole windows.
void validate_window_of_calls(const JobConfig& job, Rules& rules) {
  const auto named = job.data.embodiments.find(job.data.sets.empty() ? "" : job.data.sets.front().embodiment);
  const EmbodimentConfig& robot = named == job.data.embodiments.end() ? job.data.embodiment : named->second;
  const WindowConfig window = job.data.window.of_robot(robot);
  const bool is_window = window.chunks > 1;
  const std::vector<std::int64_t> wanted = is_window ? window.video_offsets : std::vector<std::int64_t>();
  rules.require(job.env.frame_offsets == wanted, "env.frame_offsets",
                is_window
                    ? fmt::format("is [{}]; data.window.chunks {} wants the video_offsets that fine-tuning had: [{}]",
                                  fmt::join(job.env.frame_offsets, ", "), window.chunks, fmt::join(wanted, ", "))
                    : "is set; with data.window.chunks 1 a call of policy.kind dreamzero sees one frame: leave it out",
                {"policy.kind", "data.window.chunks", "data.window.video_offsets"});
  if (!is_window) return;
  rules.require(job.data.sampling == "multi_anchor", "data.sampling",
                fmt::format("is {}; policy.kind dreamzero with data.window.chunks {} needs multi_anchor, whose blocks "
                            "begin at policy calls",
                            job.data.sampling, window.chunks),
                {"policy.kind", "data.window.chunks"});
  const std::int64_t executed = job.env.executed();
  rules.require(executed == window.macro_stride, "env.exec_steps",
                fmt::format("executes {} actions of a chunk; blocks are {} control steps apart (macro_stride)",
                            executed, window.macro_stride),
                {"policy.kind", "data.window.macro_stride"});
  require_whole_sequences(job, "data.window.chunks", rules);
}

}  // namespace

void validate_learning_dreamzero(const JobConfig& job, Rules& rules) {
  validate_model(job.model, rules);
  validate_data(job.data, rules);
  validate_window(job.data, job.model, rules);
  const auto require = [&](bool holds, const std::string& key, const std::string& message) {
    rules.require(holds, key, message, {"policy.kind"});
  };
  require(job.model.init.mode == "checkpoint", "model.init.mode",
          fmt::format("is {}; policy.kind dreamzero goes on from a fine-tuned model: checkpoint, with model.init.path",
                      job.model.init.mode));
  require(!job.algorithm.traits().has_critic(), "algorithm.name",
          fmt::format("is {}, which trains a critic; policy.kind dreamzero has none: {}", enum_name(job.algorithm.name),
                      algorithms_where([](const AlgorithmTraits& row) { return !row.has_critic(); })));
  validate_window_of_calls(job, rules);
  rules.require(job.env.chunk == job.data.window.action_horizon, "env.chunk",
                fmt::format("is {}; the model plans data.window.action_horizon {} actions a call: {}", job.env.chunk,
                            job.data.window.action_horizon, job.data.window.action_horizon),
                {"policy.kind", "data.window.action_horizon"});
  require(!job.rollout.normalize_obs, "rollout.normalize_obs",
          "is true; policy.kind dreamzero normalises with the statistics of its recordings: false");
  require(job.data.features.encode == "learner", "data.features.encode",
          "is encoder; with policy.kind dreamzero the rollout workers and the learner run the encoders: learner");
  const PolicyConfig& policy = job.policy;
  require(
      policy.vision == Vision::none, "policy.vision",
      fmt::format("is {}; policy.kind dreamzero looks at pictures through model.image_encoder and model.codec: none",
                  enum_name(policy.vision)));
  require(policy.text == TextReader::none, "policy.text",
          fmt::format("is {}; policy.kind dreamzero is told the instruction of data.language: none",
                      enum_name(policy.text)));
  require(policy.distribution == "auto", "policy.distribution",
          fmt::format("is {}; policy.kind dreamzero denoises its actions: auto", policy.distribution));
  const FlowPolicyConfig& flow = policy.flow;
  // ode is refused by validate_flow
  require(flow.sampler == "sde" || flow.sampler == "ode", "policy.flow.sampler",
          fmt::format("is {}; policy.kind dreamzero draws with Flow-SDE: sde", flow.sampler));
  require(job.algorithm.policy_gradient.entropy_bonus == 0, "algorithm.policy_gradient.entropy_bonus",
          "is not 0; the entropy of what policy.kind dreamzero draws does not depend on its weights: 0");
  require(!flow.joint, "policy.flow.joint", "is true; with policy.kind dreamzero one step a call draws: false");
  require(!flow.safe_logprob, "policy.flow.safe_logprob",
          "is true; policy.kind dreamzero computes densities alone: false");
}

void validate_no_jitter(const PictureJitterConfig& jitter, const std::string& why, Rules& rules) {
  rules.require(!jitter.is_on(), "data.demonstration_jitter", why,
                {"data.demonstration_jitter.brightness", "data.demonstration_jitter.contrast",
                 "data.demonstration_jitter.saturation", "data.demonstration_jitter.hue", "policy.vision"});
}

void validate_no_reward(const RewardConfig& reward, std::string_view why, Rules& rules) {
  const auto refuse = [&](const char* key, bool is_set) {
    rules.require(!is_set, std::string("env.reward.") + key, fmt::format("is set; {}", why), {"job.kind"});
  };
  refuse("coef", reward.coef != 1);
  refuse("step_penalty", reward.step_penalty != 0);
  refuse("relative", reward.relative);
  refuse("model.name", !reward.model.name.empty());
  refuse("model.mode", reward.model.mode != "per_step");
  refuse("model.weight", reward.model.weight != 1);
  refuse("model.options", !reward.model.options.empty());
}

void validate_imitation(const JobConfig& job, Rules& rules) {
  validate_sets(job.data, rules);
  rules.require(job.policy.kind == PolicyKind::flow, "policy.kind",
                fmt::format("is {}; demonstrations train a flow policy: flow", enum_name(job.policy.kind)));
  rules.require(job.algorithm.traits().demonstrations == DemonstrationUse::imitated, "algorithm.name",
                fmt::format("is {}, which imitates nothing; name the algorithm that goes on from this checkpoint: {}",
                            enum_name(job.algorithm.name), algorithms_with(DemonstrationUse::imitated)));
  rules.require(job.algorithm.demonstration_share == 0, "algorithm.demonstration_share",
                "is set; kind sft trains on demonstrations alone: leave it out");
  validate_chunk(job.env, rules);
  validate_frames(job, rules);
  rules.require(!job.rollout.normalize_obs, "rollout.normalize_obs",
                "is true; statistics of observations are made by rollouts, and demonstrations have none: false");
  rules.require(job.data.features.encode == "learner", "data.features.encode",
                "is encoder; a policy has no frozen encoders: learner");
  if (job.policy.actor_vision() == Vision::none) {
    validate_no_jitter(job.data.demonstration_jitter,
                       "is set, and policy.vision none reads no pictures; name what looks at them, such as "
                       "policy.vision=keypoints, or leave it out",
                       rules);
  }
  validate_policy(job, rules);
  validate_weights(job, rules);
}

}  // namespace troupe::configs
