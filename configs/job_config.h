#pragma once

#include <cstdint>
#include <string>

#include "base/namespaces.h"
#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/cluster_config.h"
#include "configs/data_config.h"
#include "configs/env_config.h"
#include "configs/job_kind.h"
#include "configs/model_config.h"
#include "configs/policy_config.h"
#include "configs/rollout_config.h"
#include "configs/train_config.h"

namespace troupe::configs {

/// Name, kind and seed of a job.
struct JobSection {
  /// Up to 64 characters of [a-z0-9._-], a letter or digit first: a folder below run_root. `kind` decides which
  /// sections are read at all: sft reads model and data, rl reads env, rollout, algorithm and policy, and with
  /// policy.kind dreamzero model and data too.
  std::string name = "job";
  JobKind kind = JobKind::sft;
  /// 0 to 2^53, so that it survives JSON. Two runs of one seed draw the same samples, noise and initial weights.
  std::int64_t seed = 42;
  /// Relative to the working directory of `troupe run`; made when absent. May not be empty.
  std::string run_root = "runs";

  template <class V>
  static void describe(V& v) {
    v.field("name", &JobSection::name, "run directories are run_root/name/ID; [a-z0-9][a-z0-9._-]*");
    v.choice("kind", &JobSection::kind,
             "sft: supervised fine-tuning of DreamZero or, with env.id, of the policy for that environment; rl: "
             "reinforcement learning in simulators");
    v.field("seed", &JobSection::seed, "keys noise, timesteps, augmentation, order and initial values", "", 0,
            1LL << 53);
    v.field("run_root", &JobSection::run_root, "folder that holds run directories");
  }
};

/// Everything one YAML file says. Loaded once (configs/loader.h), never written to afterwards.
struct JobConfig {
  /// Only 1 is read. The sections follow in the order of docs/config.md; each is the struct of its name.
  std::int64_t version = 1;
  JobSection job;
  ClusterConfig cluster;
  ModelConfig model;
  DataConfig data;
  EnvConfig env;
  RolloutConfig rollout;
  AlgorithmConfig algorithm;
  PolicyConfig policy;
  TrainingConfig training;
  ParallelismConfig parallelism;
  PrecisionConfig precision;
  ActivationCheckpointConfig activation_checkpoint;
  OffloadConfig offload;
  OptimizerConfig optimizer;
  EmaConfig ema;
  LrSchedulerConfig lr_scheduler;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  MetricsConfig metrics;

  template <class V>
  static void describe(V& v) {
    v.field("version", &JobConfig::version, "version of this format", "", 1, 1);
    v.group("job", &JobConfig::job, "name, kind and seed");
    v.group("cluster", &JobConfig::cluster, "nodes, placement, supervision");
    v.group("model", &JobConfig::model, "DreamZero's DiT, encoders and codec");
    v.group("data", &JobConfig::data, "dataset, window, image chain");
    v.group("env", &JobConfig::env, "kind rl: simulators; kind sft: the environment that a policy is trained for");
    v.group("rollout", &JobConfig::rollout, "kind rl: collecting experience");
    v.group("algorithm", &JobConfig::algorithm, "kind rl: advantages, losses, updates");
    v.group("policy", &JobConfig::policy, "the network that acts in env.id");
    v.group("training", &JobConfig::training, "steps and batch sizes");
    v.group("parallelism", &JobConfig::parallelism, "sharding");
    v.group("precision", &JobConfig::precision, "number formats");
    v.group("activation_checkpoint", &JobConfig::activation_checkpoint, "recompute");
    v.group("offload", &JobConfig::offload, "states behind a rank's own memory");
    v.group("optimizer", &JobConfig::optimizer, "update rule");
    v.group("ema", &JobConfig::ema, "moving average of the weights");
    v.group("lr_scheduler", &JobConfig::lr_scheduler, "learning rate over steps");
    v.group("checkpoint", &JobConfig::checkpoint, "saving state");
    v.group("eval", &JobConfig::eval, "held-out evaluation");
    v.group("metrics", &JobConfig::metrics, "metric files and progress line");
  }
};

/// Whether the job trains a policy for an environment on demonstrations (workers/learner/imitation).
inline bool is_imitation(const JobConfig& job) { return job.job.kind == JobKind::sft && !job.env.id.empty(); }
/// Whether the job trains a policy for an environment, by whatever means: its checkpoints act in one.
inline bool trains_agent(const JobConfig& job) { return job.job.kind == JobKind::rl || is_imitation(job); }
/// Whether the policy that learns in an environment is DreamZero.
inline bool learns_dreamzero(const JobConfig& job) {
  return job.job.kind == JobKind::rl && job.policy.kind == PolicyKind::dreamzero;
}
/// Whether the weights that the job trains are DreamZero's, by fine-tuning or by reinforcement.
inline bool trains_dreamzero(const JobConfig& job) { return !trains_agent(job) || learns_dreamzero(job); }
/// Whether its batches hold recorded transitions.
inline bool replays_demonstrations(const JobConfig& job) { return job.algorithm.demonstration_share > 0; }
/// Whether the job trains on replayed transitions.
inline bool is_off_policy(const JobConfig& job) { return job.algorithm.traits().is_off_policy(); }

}  // namespace troupe::configs
