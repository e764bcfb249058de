#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// How many samples and steps.
struct TrainingConfig {
  std::int64_t steps = 1000;
  std::int64_t global_batch_size = 8;
  std::int64_t micro_batch_size = 1;
  double clip_grad_norm = 1.0;
  double step_timeout_s = 120;

  template <class V>
  static void describe(V& v) {
    v.field("steps", &TrainingConfig::steps,
            "optimizer updates of the whole job; kind rl: iterations, each a transaction", "steps", 1, 1LL << 40);
    v.field("global_batch_size", &TrainingConfig::global_batch_size,
            "samples per step over all ranks; kind rl: samples of one minibatch over all ranks", "samples", 1, 1 << 24);
    v.field("micro_batch_size", &TrainingConfig::micro_batch_size, "samples per rank and forward pass", "samples", 1,
            1 << 20);
    v.field("clip_grad_norm", &TrainingConfig::clip_grad_norm, "global gradient norm limit; 0 switches clipping off",
            "", 0, 1e12);
    v.field("step_timeout_s", &TrainingConfig::step_timeout_s,
            "longest wait for a batch or a collective before the step is given up", "seconds", 1, 86400);
  }
};

/// How the ranks share the model.
struct ParallelismConfig {
  std::int64_t data_parallel_shard_degree = -1;
  std::int64_t param_slots = 3;
  std::int64_t grad_slots = 2;

  template <class V>
  static void describe(V& v) {
    v.field("data_parallel_shard_degree", &ParallelismConfig::data_parallel_shard_degree,
            "ranks that share one copy of the parameters; -1: all learner ranks", "ranks", -1, 65536);
    v.field("param_slots", &ParallelismConfig::param_slots, "K, buffers that hold one unit's gathered parameters",
            "count", 2, 1024);
    v.field("grad_slots", &ParallelismConfig::grad_slots, "G, buffers that hold one unit's full gradients", "count", 1,
            1024);
  }
};

/// Number formats.
struct PrecisionConfig {
  std::string param = "fp32";
  std::string encoders = "fp32";
  bool round_timesteps = false;

  template <class V>
  static void describe(V& v) {
    v.choice("param", &PrecisionConfig::param, "dtype of gathered parameters and compute; masters and moments are fp32",
             {"fp32", "bf16"});
    v.choice("encoders", &PrecisionConfig::encoders,
             "dtype of the frozen text encoder, image encoder and VAE; the reference's is bf16", {"fp32", "bf16"});
    v.field("round_timesteps", &PrecisionConfig::round_timesteps,
            "timesteps rounded to bf16 before they are embedded, as FSDP2 with cast forward inputs does "
            "(dreamzero-model.md 2.0)");
  }
};

/// What forward keeps for backward.
struct ActivationCheckpointConfig {
  std::string mode = "full";

  template <class V>
  static void describe(V& v) {
    v.choice("mode", &ActivationCheckpointConfig::mode,
             "full: every unit keeps its inputs and recomputes; none: every unit keeps what its backward needs",
             {"full", "none"});
  }
};

/// AdamW (learner.md 4.9).
struct OptimizerConfig {
  std::string name = "adamw";
  double lr = 1e-5;
  std::vector<double> betas = {0.95, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-5;

  template <class V>
  static void describe(V& v) {
    v.choice("name", &OptimizerConfig::name, "update rule", {"adamw"});
    v.field("lr", &OptimizerConfig::lr, "peak learning rate", "", 0, 1e3);
    v.field("betas", &OptimizerConfig::betas, "decay of the first and second moment; two numbers in [0, 1)");
    v.field("eps", &OptimizerConfig::eps, "added to the root of the second moment", "", 0, 1);
    v.field("weight_decay", &OptimizerConfig::weight_decay, "decoupled decay, applied to every parameter", "", 0, 1e3);
  }
};

/// Learning rate over steps.
struct LrSchedulerConfig {
  std::string name = "cosine";
  double warmup_ratio = 0.05;
  double min_lr = 0.0;
  std::int64_t total_steps = 0;

  template <class V>
  static void describe(V& v) {
    v.choice("name", &LrSchedulerConfig::name, "shape after the warm-up", {"cosine", "constant"});
    v.field("warmup_ratio", &LrSchedulerConfig::warmup_ratio, "share of total_steps with linear warm-up", "", 0, 1);
    v.field("min_lr", &LrSchedulerConfig::min_lr, "learning rate at the end of the cosine", "", 0, 1e3);
    v.field("total_steps", &LrSchedulerConfig::total_steps, "length of the schedule; 0: training.steps", "steps", 0,
            1LL << 40);
  }
};

/// When state is written and how much of it is kept.
struct CheckpointConfig {
  std::int64_t interval = 500;
  std::int64_t keep = 3;
  double timeout_s = 600;

  template <class V>
  static void describe(V& v) {
    v.field("interval", &CheckpointConfig::interval, "steps between checkpoints; one is always written at the end",
            "steps", 1, 1LL << 40);
    v.field("keep", &CheckpointConfig::keep, "newest checkpoints kept", "count", 1, 10000);
    v.field("timeout_s", &CheckpointConfig::timeout_s, "longest wait for a checkpoint to commit", "seconds", 1, 86400);
  }
};

/// Held-out loss at fixed noise and timesteps; in reinforcement learning, episodes of the deterministic policy.
struct EvalConfig {
  std::int64_t every = 0;
  std::int64_t max_samples = 8;
  std::int64_t episodes = 100;
  std::int64_t seed = 1'000'000;
  std::int64_t videos = 4;

  template <class V>
  static void describe(V& v) {
    v.field("every", &EvalConfig::every, "steps between evaluations; 0: none (kind rl: only after the last step)",
            "steps", 0, 1LL << 40);
    v.field("max_samples", &EvalConfig::max_samples,
            "kind sft: held-out windows evaluated, spread evenly over data.eval_episodes", "samples", 1, 1 << 20);
    v.field("episodes", &EvalConfig::episodes, "kind rl: episodes of one evaluation, each of its own seed", "episodes",
            1, 1 << 24);
    v.field("seed", &EvalConfig::seed, "kind rl: seed of the first evaluation episode; the others count up", "", 0,
            1LL << 53);
    v.field("videos", &EvalConfig::videos,
            "kind rl: videos of failures that the last evaluation writes, where the environment can be drawn", "count",
            0, 10000);
  }
};

/// Where numbers go.
struct MetricsConfig {
  std::int64_t every = 10;
  std::vector<std::string> sinks = {"jsonl", "csv", "tensorboard"};

  template <class V>
  static void describe(V& v) {
    v.field("every", &MetricsConfig::every, "steps between progress lines", "steps", 1, 1LL << 40);
    v.field("sinks", &MetricsConfig::sinks, "metric files to write", {"jsonl", "csv", "tensorboard"});
  }
};

}  // namespace troupe
