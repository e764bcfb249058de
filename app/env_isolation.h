#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/step_times.h"
#include "configs/loader.h"
#include "env/env_spec.h"
#include "workers/controller/resume.h"

namespace troupe::app {

/// What speaks for and against rollout workers that step a job's environments themselves.
struct EnvIsolationFacts {
  /// env.id
  std::string env;
  /// The key of the job that says how many simulators there are, or where; empty: none does.
  std::string named_by = {};
  /// Why other machines than the learners' are to step environments, as "cluster.num_nodes is 2"; empty: they are not.
  std::string elsewhere = {};
  /// This machine can make it.
  bool is_made_here = true;
  /// EnvFactory::waits_for_others
  bool waits_for_others = false;
  /// is_built_in() of env/registry.
  bool is_built_in = true;
  /// The policy is a world-action model.
  bool is_large_policy = false;
  /// How the run that goes on has stepped them; empty: a new run.
  std::string before = {};
  /// Of a control step; nothing: not timed on this machine, or another one is planned (`is_other_machine`).
  std::optional<TimedEnvStep> timed = {};
  bool is_other_machine = false;
  /// Environments of a block, control steps of its policy step, blocks.
  std::int64_t envs = 1, exec_steps = 1, blocks = 1;
  /// env.threads; 0: one for a rollout worker, all cores for the simulators.
  std::int64_t threads = 0;
  std::int64_t cores = 1;
};

/// A value of cluster.isolation.env other than auto, and a sentence that says why.
struct EnvIsolation {
  std::string isolation;
  std::string reason;
};

/// How environments are best stepped, `inline` or `process`; the first that holds:
/// - process, where inline cannot work or is not what the job means: Python steps them, this machine cannot make them,
///   the job asks for simulators, or other machines take part;
/// - a run that goes on stays as it began, be it `thread`;
/// - process, where the policy is so large that rollout workers are few, or the environment's code is not Troupe's, so
///   that nothing is known of how it ends;
/// - with a timed step: process where that costs less than kSmallShare more than inline, since a crash or a hang then
///   costs a simulator and no rollout worker, else inline. A step of a block takes S = envs exec_steps seconds of one
///   core. Inline each block has one, min(cores, blocks) in all; simulators share min(cores, blocks envs), and a step
///   costs kHandOver more. With env.threads T both share a block among min(T, envs) threads;
/// - inline: not timed yet, and a run times it.
/// Pure: the same facts give the same choice and sentence.
EnvIsolation choose_env_isolation(const EnvIsolationFacts& facts);

/// Where a job's environments are to be stepped, beside what the job says.
struct SteppingPlace {
  /// The job is planned for this machine, not for a pretended one.
  bool is_here = true;
  /// Other machines may join (run --listen).
  bool listens = false;
  /// The run that goes on; null: a new one.
  const ResumePoint* point = nullptr;
};

/// Settles cluster.isolation.env of a job of kind rl where it is `auto` or not said, before the job is planned, as
/// placement knows inline, thread and process alone. The choice is recorded in the configuration, as a default. Nothing
/// where the job says it, or is of another kind. `env`: what the environment is. Looks into the user's cache of times
/// and makes a factory; no environment is made, and nothing measured.
std::optional<EnvIsolation> settle_env_isolation(LoadedConfig& config, const EnvSpec& env, const SteppingPlace& place);

/// "inline: CartPole-v1 is ...".
std::string to_text(const EnvIsolation& chosen);
/// The line of a plan with it.
std::string isolation_line(const EnvIsolation& chosen);

}  // namespace troupe::app
