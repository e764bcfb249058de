#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/seconds.h"

namespace troupe::configs {

/// How many samples and steps.
struct TrainingConfig {
  /// Steps, 1 to 2^40.
  std::int64_t steps = 1000;
  /// Samples, 1 to 2^24. Read by workers/learner/rl, placement, workers/controller.
  /// micro_batch_size * ranks * accumulation; the planner refuses what does not divide. kind rl: divides the rows of
  /// one iteration.
  std::int64_t global_batch_size = 8;
  /// Samples, 1 to 2^20.
  std::int64_t micro_batch_size = 1;
  /// 0 to 1e12. Read by workers/learner/rl, workers/learner.
  double clip_grad_norm = 1.0;
  /// Seconds, 1 to 86400.
  Seconds step_timeout{120};
  /// Read by workers/learner.
  bool cuda_graphs = true;

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
    v.field("step_timeout_s", &TrainingConfig::step_timeout,
            "longest wait for a batch or a collective before the step is given up", "seconds", 1, 86400);
    v.field("cuda_graphs", &TrainingConfig::cuda_graphs,
            "on devices what a unit enqueues is captured and launched as a whole; changes no bit");
  }
};

/// How the ranks share the model.
struct ParallelismConfig {
  /// Read by placement, workers/learner; the plan says what auto came to, for all ranks, and a resumed job keeps it.
  std::string mode = "auto";
  /// Ranks, -1 to 65536. Read by placement, workers/learner.
  std::int64_t data_parallel_shard_degree = -1;
  /// 2 to 1024. Read by placement, workers/controller, workers/learner.
  std::int64_t param_slots = 3;
  /// 1 to 1024. Read by placement, workers/controller, workers/learner.
  std::int64_t grad_slots = 2;
  /// Read by placement, workers/learner, workers/pipeline.
  std::string reduce = "ranks";

  template <class V>
  static void describe(V& v) {
    v.choice(
        "mode", &ParallelismConfig::mode,
        "what every rank keeps whole beside its shards. zero3: units in use; zero2: all parameters, gathered once "
        "a step; zero1: gradients too, summed over the ranks once a step; hybrid: zero3 among every "
        "data_parallel_shard_degree ranks, whose sums are added up once a step; auto: the one of zero1 to zero3 that "
        "moves least and fits, with activations kept",
        {"auto", "zero1", "zero2", "zero3", "hybrid"});
    v.field("data_parallel_shard_degree", &ParallelismConfig::data_parallel_shard_degree,
            "ranks that share one copy of the parameters; -1: all learner ranks; fewer: mode hybrid", "ranks", -1,
            65536);
    v.field("param_slots", &ParallelismConfig::param_slots,
            "K, buffers that hold one unit's gathered parameters; zero3", "count", 2, 1024);
    v.field("grad_slots", &ParallelismConfig::grad_slots, "G, buffers that hold one unit's full gradients; not zero1",
            "count", 1, 1024);
    v.choice(
        "reduce", &ParallelismConfig::reduce,
        "who adds up gradients over the ranks. ranks: each its own part, in rank order, with the same bits whatever "
        "moves them; nccl: NCCL's reduce-scatter, in its own order, with less memory. Learners on devices alone",
        {"ranks", "nccl"});
  }
};

/// Number formats.
struct PrecisionConfig {
  /// Read by workers/learner, placement, workers/pipeline.
  /// bf16 halves gathered parameters and their traffic (docs/precision.md); kind rl wants fp32 but for policy.kind
  /// dreamzero (docs/rl.md).
  std::string param = "fp32";
  /// Read by workers/encoder, workers/learner, workers/pipeline.
  std::string encoders = "fp32";
  /// Read by workers/learner.
  bool round_timesteps = false;
  /// Read by placement, app. How the cores of a node multiply bf16; all ranks of a job do it in one form, and a resumed
  /// job in that of its first plan.
  std::string products = "auto";

  template <class V>
  static void describe(V& v) {
    v.choice("param", &PrecisionConfig::param, "dtype of gathered parameters and compute; masters and moments are fp32",
             {"fp32", "bf16"});
    v.choice("encoders", &PrecisionConfig::encoders,
             "dtype of the frozen text encoder, image encoder and VAE; the reference's is bf16", {"fp32", "bf16"});
    v.field("round_timesteps", &PrecisionConfig::round_timesteps,
            "timesteps rounded to bf16 before they are embedded, as FSDP2 with cast forward inputs does "
            "(docs/model.md)");
    v.choice(
        "products", &PrecisionConfig::products,
        "bf16 products on cores. native: the library's; widened: operands as fp32, the result rounded; auto: the one "
        "that suits the processor, or the other where it is measured to be 1.3 times as fast",
        {"auto", "native", "widened"});
  }
};

/// What forward keeps for backward.
struct ActivationCheckpointConfig {
  /// Read by placement; the plan says what auto came to, for all ranks. No mode changes a bit of a result.
  std::string mode = "auto";
  /// Of each level none, cheap, attention, full; empty or 4 numbers of at least 0 that add up to the blocks. Read by
  /// placement, workers/learner.
  std::vector<std::int64_t> counts;

  template <class V>
  static void describe(V& v) {
    v.choice("mode", &ActivationCheckpointConfig::mode,
             "what backward runs again of every transformer block. none: nothing; cheap: all but products and "
             "attention; attention: all but attention; full: everything, only inputs are kept; auto: none where that "
             "fits the memory that the plan counts with, else the levels that fill it",
             {"auto", "none", "cheap", "attention", "full"});
    v.field("counts", &ActivationCheckpointConfig::counts,
            "transformer blocks of each level [none, cheap, attention, full], in place of mode; the first blocks "
            "recompute most",
            "blocks", 0, 1024);
  }
};

/// What lies behind a rank's own memory: for cores in files on a local disk.
struct OffloadConfig {
  /// Read by placement, workers/learner. Changes no bit of a result.
  bool states = false;
  /// Read by placement, workers/learner. Changes no bit of a result.
  bool activations = false;
  /// Read by workers/learner.
  std::string folder;

  template <class V>
  static void describe(V& v) {
    v.field("states", &OffloadConfig::states,
            "moments, and with bf16 parameters masters, lie in a file and come into memory unit by unit to be updated");
    v.field("activations", &OffloadConfig::activations,
            "what transformer blocks keep for their backward lies in files in between, but for three blocks");
    v.field("folder", &OffloadConfig::folder,
            "folder on a local disk for these and for snapshots, not in memory (tmpfs); empty: offload in the run "
            "directory");
  }
};

/// A learning rate of their own for some parameters.
struct RateConfig {
  /// Read by workers/learner, app.
  std::string names;
  /// 0 to 1e6. Read by workers/learner, app.
  double factor = 1;

  template <class V>
  static void describe(V& v) {
    v.field("names", &RateConfig::names, "pattern of parameter names: `*` is any text, `?` any character");
    v.field("factor", &RateConfig::factor, "what the learning rate is multiplied by; 0 leaves the values as they are",
            "", 0, 1e6);
  }
};

/// Sophia (arXiv:2305.14342, algorithm 3): momentum over an estimate h of the Hessian's diagonal, on f32 masters:
///     p = p (1 - lr * weight_decay) - lr * clamp(m / (rho h + 1e-15), -1, 1)
/// h is refreshed every `every` steps from the gradients of losses whose targets are drawn from the model
/// (Gauss-Newton-Bartlett).
struct SophiaConfig {
  /// Exactly two. Read by workers/checkpoint, actors, workers/learner.
  std::vector<double> betas = {0.965, 0.99};
  /// Above 0, to 1e6. Read by workers/learner.
  double rho = 0.04;
  /// Steps, 1 to 2^20. Read by workers/learner.
  std::int64_t every = 10;
  /// 1 to 2^20. Read by workers/learner.
  std::int64_t curvature_batch = 1;

  template <class V>
  static void describe(V& v) {
    v.field("betas", &SophiaConfig::betas,
            "decay of the momentum, at each step, and of the curvature, at each estimate; two numbers in [0, 1)");
    v.field("rho", &SophiaConfig::rho,
            "what curvature is multiplied by: the smaller, the fewer parameters follow it and the more move by lr", "",
            0, 1e6);
    v.field("every", &SophiaConfig::every, "steps between estimates of the curvature", "steps", 1, 1 << 20);
    v.field("curvature_batch", &SophiaConfig::curvature_batch,
            "micro-batches per rank that an estimate takes, at most those of a step", "", 1, 1 << 20);
  }
};

/// AdamW (arXiv:1711.05101, algorithm 2) on f32 masters:
///     p = p (1 - lr * weight_decay) - lr * m_hat / (sqrt(v_hat) + eps)
/// or Sophia.
struct OptimizerConfig {
  /// Read by workers/checkpoint, actors, workers/learner.
  std::string name = "adamw";
  /// 0 to 1e3.
  double lr = 1e-5;
  /// Read by workers/checkpoint, actors, workers/learner.
  /// Exactly two.
  std::vector<double> betas = {0.95, 0.999};
  /// 0 to 1. Read by workers/checkpoint, actors, workers/learner.
  double eps = 1e-8;
  /// 0 to 1e3. Read by workers/checkpoint, actors, workers/learner.
  double weight_decay = 1e-5;
  /// Read by workers/learner, placement, workers/pipeline, actors.
  std::string moments = "fp32";
  SophiaConfig sophia;
  /// Read by workers/learner, app.
  std::vector<std::string> no_decay;
  /// Read by workers/learner, app. The first rule that fits a name counts.
  std::vector<RateConfig> rates;
  /// Read by workers/learner, workers/pipeline. Changes no bit of a result.
  bool lazy = true;

  template <class V>
  static void describe(V& v) {
    v.choice("name", &OptimizerConfig::name, "update rule; sophia is for fine-tuning DreamZero", {"adamw", "sophia"});
    v.field("lr", &OptimizerConfig::lr, "peak learning rate", "", 0, 1e3);
    v.field("betas", &OptimizerConfig::betas, "adamw: decay of the first and second moment; two numbers in [0, 1)");
    v.field("eps", &OptimizerConfig::eps, "adamw: added to the root of the second moment", "", 0, 1);
    v.field("weight_decay", &OptimizerConfig::weight_decay, "decoupled decay, of all parameters but no_decay's", "", 0,
            1e3);
    v.choice("moments", &OptimizerConfig::moments,
             "adamw: dtype that the two moments are kept in; bf16 saves 4 of 16 bytes a parameter, arithmetic stays "
             "fp32. With "
             "betas[1] above 0.996 a bf16 second moment hardly falls",
             {"fp32", "bf16"});
    v.group("sophia", &OptimizerConfig::sophia, "name sophia: momentum over curvature");
    v.field("no_decay", &OptimizerConfig::no_decay,
            "patterns of parameter names that do not decay, such as `*.bias`; each fits a parameter of the job");
    v.list("rates", &OptimizerConfig::rates,
           "parameters with a learning rate of their own; the first rule that fits a name counts");
    v.field("lazy", &OptimizerConfig::lazy,
            "kind sft: a unit is updated just before it is used in the next step, beside the forward of the units "
            "before it");
  }
};

/// Moving average of the masters (Polyak and Juditsky 1992), in f32 after each update:
///     e = decay e + (1 - decay) p
struct EmaConfig {
  /// 0 to 1, below 1. Read by workers/learner, placement, workers/pipeline, actors.
  double decay = 0;
  /// Read by workers/learner.
  bool publish = false;

  template <class V>
  static void describe(V& v) {
    v.field("decay", &EmaConfig::decay,
            "share of the average that stays at each update, such as 0.9999; 0: no average is kept. `troupe export "
            "--weights ema` writes it",
            "", 0, 1);
    v.field("publish", &EmaConfig::publish,
            "kind rl: rollout and evaluation act with the average, not with the trained weights");
  }
};

/// Learning rate over steps.
struct LrSchedulerConfig {
  /// Read by model/optim.
  std::string name = "cosine";
  /// 0 to 1. Read by model/optim.
  double warmup_ratio = 0.05;
  /// 0 to 1e3. Read by model/optim.
  /// At most optimizer.lr with the cosine.
  double min_lr = 0.0;
  /// Steps, 0 to 2^40.
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
  /// Steps, 1 to 2^40. Read by placement, workers/learner, workers/learner/rl.
  std::int64_t interval = 500;
  /// 1 to 10000. Read by workers/controller, placement.
  std::int64_t keep = 3;
  /// Read by workers/controller, app.
  std::string keep_best = "none";
  /// Seconds, 1 to 86400. Read by workers/controller, workers/learner.
  Seconds timeout{600};

  bool keeps_best() const { return keep_best != "none"; }
  /// Checkpoints that stay on disk.
  std::int64_t kept() const { return keep + (keeps_best() ? 1 : 0); }

  template <class V>
  static void describe(V& v) {
    v.field("interval", &CheckpointConfig::interval, "steps between checkpoints; one is always written at the end",
            "steps", 1, 1LL << 40);
    v.field("keep", &CheckpointConfig::keep, "newest checkpoints kept", "count", 1, 10000);
    v.choice("keep_best", &CheckpointConfig::keep_best,
             "also keeps the checkpoint whose evaluation was the best, as checkpoints/best: the most success at any "
             "step or the highest return (kind rl), or the least held-out loss (kind sft)",
             {"none", "eval/success", "eval/return", "eval/loss"});
    v.field("timeout_s", &CheckpointConfig::timeout, "longest wait for a checkpoint to commit", "seconds", 1, 86400);
  }
};

/// What `troupe eval --open-loop` does, when the job has ended (docs/evaluation.md#open-loop-evaluation).
struct OpenLoopConfig {
  /// Read by workers/report/run.
  /// Wants kind sft without env.id, and some dataset that names eval_episodes.
  bool at_end = false;
  /// 1 to 2^20. Read by workers/report/run.
  std::int64_t windows = 16;

  template <class V>
  static void describe(V& v) {
    v.field("at_end", &OpenLoopConfig::at_end,
            "evaluate the last checkpoint on held-out episodes and say in the closing report how it compares with "
            "two policies that need no model");
    v.field("windows", &OpenLoopConfig::windows, "recorded windows at most, spread evenly over the held-out episodes",
            "count", 1, 1 << 20);
  }
};

/// Held-out loss at fixed noise and timesteps; in reinforcement learning, episodes of the deterministic policy.
struct EvalConfig {
  /// Steps, 0 to 2^40.
  /// Above 0 with kind sft: some dataset must name eval_episodes.
  std::int64_t every = 0;
  /// Samples, 1 to 2^20.
  std::int64_t max_samples = 8;
  /// Episodes, 1 to 2^24. Read by app, workers/evaluator.
  std::int64_t episodes = 100;
  /// 0 to 2^53. Read by app, workers/evaluator.
  std::int64_t seed = 1'000'000;
  /// Seconds, 1 to 604800. Read by workers/controller.
  Seconds timeout{1800};
  /// 0 to 10000. Read by app.
  std::int64_t videos = 4;
  OpenLoopConfig open_loop;

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
    v.field("timeout_s", &EvalConfig::timeout,
            "kind rl: how long the job waits, behind the last step, for the evaluation of that step; then it ends "
            "without",
            "seconds", 1, 604800);
    v.field("videos", &EvalConfig::videos,
            "kind rl: videos of failures that the last evaluation writes, where the environment can be drawn", "count",
            0, 10000);
    v.group("open_loop", &EvalConfig::open_loop, "kind sft: predicted against recorded actions, after the last step");
  }
};

/// Where numbers go.
struct MetricsConfig {
  /// Steps, 1 to 2^40. Read by workers/controller.
  std::int64_t every = 10;
  /// Read by app.
  /// Each at most once; the files are in docs/metrics.md#files.
  std::vector<std::string> sinks = {"jsonl", "csv", "tensorboard"};

  template <class V>
  static void describe(V& v) {
    v.field("every", &MetricsConfig::every, "steps between progress lines", "steps", 1, 1LL << 40);
    v.field("sinks", &MetricsConfig::sinks, "metric files to write", {"jsonl", "csv", "tensorboard"});
  }
};

}  // namespace troupe::configs
