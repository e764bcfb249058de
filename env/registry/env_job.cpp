#include "env/registry/env_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>
#include <optional>

#include "configs/commented_yaml.h"
#include "configs/embedded.h"
#include "configs/loader.h"
#include "configs/scalar.h"
#include "configs/suggest.h"
#include "env/registry/registry.h"

namespace troupe::env {

namespace {

/// Numbers to begin with, where they are from and why.
struct Base {
  std::string recipe;
  JobConfig job;
  std::string why;
};

std::optional<JobConfig> load_recipe(const std::string& name) {
  auto loaded = load_job(name, {});
  if (!loaded.config) return std::nullopt;
  return std::move(loaded.config->job);
}

/// The recipe that trains this environment from random values and without recordings; soft actor-critic before the
/// others, as it wants the fewest steps.
std::optional<Base> own_recipe(const std::string& id) {
  std::optional<Base> found;
  for (const EmbeddedFile& file : embedded_files()) {
    // a file that does not hold the id does not train it, unless by another that does and is found itself
    if (!file.name.starts_with("recipes/") || file.text.find(id) == std::string_view::npos) continue;
    auto job = load_recipe(std::string(file.name));
    if (!job || job->job.kind != JobKind::rl || job->env.id != id || job->model.init.mode != "random") continue;
    if (replays_demonstrations(*job)) continue;
    if (found && (is_off_policy(found->job) || !is_off_policy(*job))) continue;
    found = Base{std::string(file.name), std::move(*job), "This recipe trains the same environment."};
  }
  return found;
}

std::int64_t observed_numbers(const EnvSpec& spec) {
  std::int64_t n = 0;
  for (const EnvField& field : spec.observation) n += field.numel();
  return n;
}

/// By what the environment is like, where no recipe trains it.
Result<Base> nearest_recipe(const EnvSpec& spec) {
  constexpr std::int64_t kFew = 12, kMany = 64;
  const std::int64_t seen = observed_numbers(spec);
  std::string recipe, why;
  if (spec.action.is_discrete()) {
    recipe = "recipes/quickstart_rl.yaml";
    why =
        fmt::format("Actions are discrete ({} of them): PPO, as this recipe trains CartPole-v1.", spec.action.choices);
  } else if (spec.has_success) {
    recipe = "recipes/rl_arm7_lift_ppo.yaml";
    why = "Actions are continuous and the task can succeed: PPO on many environments, as this recipe trains the arm.";
  } else if (spec.agents > 1) {
    recipe = "recipes/rl_halfcheetah_ppo.yaml";
    why = fmt::format("Each of {} agents acts by the same policy: PPO.", spec.agents);
  } else if (seen <= kFew) {
    recipe = "recipes/rl_pendulum_sac.yaml";
    why = fmt::format("Actions are continuous and {} numbers are observed: soft actor-critic on small networks.", seen);
  } else if (seen <= kMany) {
    recipe = "recipes/rl_halfcheetah_sac.yaml";
    why = fmt::format(
        "Actions are continuous and {} numbers are observed: soft actor-critic, which wants the fewest "
        "steps. PPO (recipes/rl_halfcheetah_ppo.yaml) takes more of them and less time for each.",
        seen);
  } else {
    recipe = "recipes/rl_halfcheetah_ppo.yaml";
    why = fmt::format("{} numbers are observed, many for a replay memory: PPO.", seen);
  }
  auto job = load_recipe(recipe);
  if (!job) return Error{Errc::internal, fmt::format("{} inside the binary does not load", recipe)};
  if (spec.has_success && !spec.action.is_discrete()) {
    // what reaches a goal everywhere it may be: a longer view, and less noise so that it can be held
    job->algorithm.gamma = job->algorithm.policy_gradient.gae_lambda = 0.95;
    job->policy.init_log_std = -1;
    job->training.steps = 150;
  }
  return Base{recipe, std::move(*job), why + " No recipe trains this environment itself."};
}

/// What the job of an environment was seen to reach, where that is written down (docs/rl.md).
struct StatedReturn {
  std::string_view id;
  double mean_return;
};
constexpr StatedReturn kStatedReturns[] = {{"CartPole-v1", 475}, {"Pendulum-v1", -200}, {"arm7/reach-v1", 60}};

/// What to expect of the job, and where that comes from; empty: nothing is stated.
std::string expected_return(const EnvSpec& spec) {
  std::string text;
  if (!std::isnan(spec.reward_threshold))
    text = fmt::format(" By the environment's own threshold a mean return of {:g} counts as solved.",
                       spec.reward_threshold);
  for (const StatedReturn& stated : kStatedReturns) {
    if (stated.id == spec.id)
      text += fmt::format(
          " This job is to reach a mean return of {:g} within five minutes on two cores, and did with three seeds "
          "(docs/rl.md).",
          stated.mean_return);
  }
  return text;
}

std::string job_name(const std::string& id) {
  std::string name;
  for (const char c : id)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '-';
  return name;
}

void put_collecting(CommentedYaml& out, const JobConfig& job, const EnvSpec& spec) {
  out.note(
      "Environments that are stepped together, in blocks that workers share. More give steadier updates, each later.");
  out.line(fmt::format("env: {{id: {}, num_envs: {}, blocks: {}}}", format_string(spec.id), job.env.num_envs,
                       job.env.blocks));
  if (is_off_policy(job)) {
    out.note("Environment steps that one training step commits.");
    out.line(fmt::format("rollout: {{commit_every: {}}}", job.rollout.commit_every));
  } else {
    out.note(fmt::format("Steps of every environment for one update{}. Normalised observations suit sizes that differ.",
                         spec.max_steps > 0 ? fmt::format("; an episode ends after {}", spec.max_steps) : ""));
    out.line(fmt::format("rollout: {{steps: {}, normalize_obs: {}, normalize_reward: {}}}", job.rollout.steps,
                         job.rollout.normalize_obs, job.rollout.normalize_reward));
  }
}

void put_algorithm(CommentedYaml& out, const JobConfig& job) {
  const AlgorithmConfig& a = job.algorithm;
  out.line("algorithm:");
  out.note(
      fmt::format("A reward counts for about 1 / (1 - gamma) = {:.0f} steps. Nearer 1 sees further and learns more "
                  "slowly.",
                  1 / (1 - std::min(a.gamma, 0.9999))),
      2);
  out.line(fmt::format("gamma: {}", format_number(a.gamma)), 2);
  if (is_off_policy(job)) {
    out.note(
        "Steps by chance before the first update, and updates for each step after. More updates learn from fewer "
        "steps and take longer.",
        2);
    out.line(fmt::format("sac: {{learning_starts: {}, updates_per_step: {}}}", a.sac.learning_starts,
                         format_number(a.sac.updates_per_step)),
             2);
  } else {
    out.note("Passes over the steps of an update, and how far advantages look ahead.", 2);
    out.line(fmt::format("policy_gradient: {{update_epochs: {}, gae_lambda: {}}}", a.policy_gradient.update_epochs,
                         format_number(a.policy_gradient.gae_lambda)),
             2);
  }
}

void put_training(CommentedYaml& out, const JobConfig& job, const EnvSpec& spec) {
  const bool gaussian = !spec.action.is_discrete() && !is_off_policy(job);
  out.note(gaussian ? "Widths of the hidden layers, and the logarithm of the noise on actions at the start."
                    : "Widths of the hidden layers. Wider ones for tasks with more parts.");
  out.line(fmt::format("policy: {{hidden: [{}]{}}}", fmt::join(job.policy.hidden, ", "),
                       gaussian ? ", init_log_std: " + format_number(job.policy.init_log_std) : ""));
  const std::int64_t per_step =
      is_off_policy(job) ? job.rollout.commit_every : job.rollout.steps * job.env.num_envs * job.env.chunk;
  out.note(fmt::format("{} updates of {} environment steps: {} in all. More go on where the return still rises.{}",
                       job.training.steps, per_step, job.training.steps * per_step, expected_return(spec)));
  out.line(fmt::format("training: {{steps: {}, global_batch_size: {}, micro_batch_size: {}}}", job.training.steps,
                       job.training.global_batch_size, job.training.micro_batch_size));
  out.note("The recipe's. A third of it where the return falls back, three times where it creeps.");
  out.line(fmt::format("optimizer: {{lr: {}}}", format_number(job.optimizer.lr)));
  out.note("Episodes of the deterministic policy after the last step, each of its own seed.");
  out.line(fmt::format("eval: {{episodes: {}}}", job.eval.episodes));
}

}  // namespace

Result<std::string> env_job_yaml(const std::string& env_id) {
  const auto factory = make_env_factory(env_id);
  if (!factory) {
    if (factory.error().code() != Errc::not_found) return factory.error();
    return Error{Errc::not_found, list_nearest_first(fmt::format("no environment is called '{}'; environments", env_id),
                                                     env_id, env_ids(env_registry()))};
  }
  const EnvSpec& spec = (*factory)->spec();
  std::optional<Base> base = own_recipe(spec.id);
  if (!base) {
    TROUPE_ASSIGN(base, nearest_recipe(spec));
  }
  CommentedYaml out;
  out.note(
      fmt::format("A first job for {}, guessed by `troupe init` from the recipes and the environment's "
                  "description: {} numbers observed, {}.",
                  spec.id, observed_numbers(spec),
                  spec.action.is_discrete() ? fmt::format("{} actions", spec.action.choices)
                                            : fmt::format("actions of {} numbers", spec.action.size)));
  out.note(
      "The comment before a value says why it was chosen and what else could stand there. All keys: "
      "docs/config.md.");
  out.line("version: 1");
  out.note(base->why + " What is not said here is as there.");
  out.line("extends: " + base->recipe);
  out.note("Runs go to runs/NAME; another seed is another run of the same experiment.");
  out.line(fmt::format("job: {{name: {}, kind: rl, seed: 1}}", format_string(job_name(spec.id))));
  put_collecting(out, base->job, spec);
  put_algorithm(out, base->job);
  put_training(out, base->job, spec);
  return out.text();
}

}  // namespace troupe::env
