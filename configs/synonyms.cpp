#include <algorithm>

#include "configs/suggest.h"

namespace troupe::configs {

namespace {

constexpr std::string_view kUpdates = "it counts optimizer updates, not passes over the data";
constexpr std::string_view kIterations =
    "it counts iterations; in reinforcement learning one is env.num_envs x rollout.steps environment steps";
constexpr std::string_view kPlaced = "GPUs and cores are given to roles, such as learner=0-7; `plan --pretend 8xH200`";

}  // namespace

const std::vector<Synonym>& synonyms() {
  static const std::vector<Synonym> table = {
      // rates and the optimizer
      {"learning_rate", "optimizer.lr", ""},
      {"optimizer_lr", "optimizer.lr", ""},
      {"peak_lr", "optimizer.lr", ""},
      {"max_lr", "optimizer.lr", ""},
      {"wd", "optimizer.weight_decay", ""},
      {"adam_eps", "optimizer.eps", ""},
      {"ema_decay", "ema.decay", ""},
      {"use_ema", "ema.decay", "0 keeps none; 0.9999 is usual"},
      {"warmup_steps", "lr_scheduler.warmup_ratio", "it is a share of the schedule"},
      {"num_warmup_steps", "lr_scheduler.warmup_ratio", "it is a share of the schedule"},
      {"warmup", "lr_scheduler.warmup_ratio", "it is a share of the schedule"},
      {"decay_steps", "lr_scheduler.total_steps", ""},
      {"decay_lr", "lr_scheduler.min_lr", ""},
      {"scheduler", "lr_scheduler", ""},
      {"max_grad_norm", "training.clip_grad_norm", ""},
      {"grad_clip_norm", "training.clip_grad_norm", ""},
      {"gradient_clip_val", "training.clip_grad_norm", ""},
      {"max_norm", "training.clip_grad_norm", ""},
      {"q_lr", "algorithm.value_lr", ""},
      // batch and length
      {"batch_size", "training.global_batch_size",
       "it counts all ranks; one pass of a rank takes training.micro_batch_size"},
      {"train_batch_size", "training.global_batch_size", "it counts all ranks"},
      {"minibatch_size", "training.global_batch_size", ""},
      {"num_minibatches", "training.global_batch_size", "it is the size of one minibatch"},
      {"gradient_accumulation_steps", "training.global_batch_size",
       "what micro_batch_size x ranks does not hold is accumulated"},
      {"bs", "training.global_batch_size", "it counts all ranks"},
      {"local_batch_size", "training.micro_batch_size", ""},
      {"per_device_train_batch_size", "training.micro_batch_size", ""},
      {"steps", "training.steps", ""},
      {"num_steps", "training.steps", "the length of a rollout is rollout.steps"},
      {"n_steps", "training.steps", "the length of a rollout is rollout.steps"},
      {"max_steps", "training.steps", ""},
      {"train_steps", "training.steps", ""},
      {"num_train_steps", "training.steps", ""},
      {"iterations", "training.steps", kIterations},
      {"num_iterations", "training.steps", kIterations},
      {"total_timesteps", "training.steps", kIterations},
      {"num_timesteps", "training.steps", kIterations},
      {"epochs", "training.steps", kUpdates},
      {"num_epochs", "training.steps", kUpdates},
      {"max_epochs", "training.steps", kUpdates},
      {"num_train_epochs", "training.steps", kUpdates},
      {"train", "training", ""},
      {"trainer", "training", ""},
      // data and weights
      {"dataset", "data.sets", ""},
      {"datasets", "data.sets", ""},
      {"data_path", "data.sets", ""},
      {"data_dir", "data.sets", ""},
      {"dataset_path", "data.sets", ""},
      {"repo_id", "data.sets", ""},
      {"num_workers", "cluster.component_placement", "decoders are placed there, such as decoder=0:0-3"},
      {"pretrained_path", "model.init.path", ""},
      {"pretrained_model", "model.init.path", ""},
      {"checkpoint_path", "model.init.path", "a run goes on with `troupe run JOB --resume auto`"},
      {"load_path", "model.init.path", "a run goes on with `troupe run JOB --resume auto`"},
      {"resume_from", "model.init.path", "a run goes on with `troupe run JOB --resume auto`"},
      {"lora_rank", "model.lora.rank", ""},
      {"lora_alpha", "model.lora.alpha", ""},
      {"use_lora", "model.train_architecture", "lora or full"},
      // reinforcement learning
      {"env_id", "env.id", ""},
      {"env_name", "env.id", ""},
      {"n_envs", "env.num_envs", ""},
      {"total_num_envs", "env.num_envs", ""},
      {"num_rollout_steps", "rollout.steps", ""},
      {"lam", "algorithm.policy_gradient.gae_lambda", ""},
      {"clip_coef", "algorithm.policy_gradient.clip_ratio_high", "clip_ratio_low is the other side"},
      {"clip_low", "algorithm.policy_gradient.clip_ratio_low", ""},
      {"clip_high", "algorithm.policy_gradient.clip_ratio_high", ""},
      {"clip_range_vf", "algorithm.policy_gradient.value_clip", ""},
      {"clip_vloss", "algorithm.policy_gradient.value_clip", ""},
      {"ent_coef", "algorithm.policy_gradient.entropy_bonus", ""},
      {"entropy_coef", "algorithm.policy_gradient.entropy_bonus", ""},
      {"vf_coef", "algorithm.policy_gradient.value_coef", ""},
      {"norm_adv", "algorithm.policy_gradient.advantage_norm", ""},
      {"n_epochs", "algorithm.policy_gradient.update_epochs", ""},
      {"ppo_epochs", "algorithm.policy_gradient.update_epochs", ""},
      {"buffer_size", "algorithm.sac.replay_capacity", ""},
      {"polyak", "algorithm.sac.tau", ""},
      {"policy_frequency", "algorithm.sac.actor_every", ""},
      {"hidden_dims", "policy.hidden", ""},
      {"hidden_sizes", "policy.hidden", ""},
      // saving, logging, machines
      {"save_freq", "checkpoint.interval", ""},
      {"save_interval", "checkpoint.interval", ""},
      {"save_every", "checkpoint.interval", ""},
      {"keep_latest_k", "checkpoint.keep", ""},
      {"save_total_limit", "checkpoint.keep", ""},
      {"log_freq", "metrics.every", ""},
      {"log_interval", "metrics.every", ""},
      {"log_every", "metrics.every", ""},
      {"eval_freq", "eval.every", ""},
      {"eval_interval", "eval.every", ""},
      {"eval_every", "eval.every", ""},
      {"n_eval_episodes", "eval.episodes", ""},
      {"wandb", "metrics.sinks", "jsonl, csv and tensorboard are written"},
      {"logger", "metrics.sinks", "jsonl, csv and tensorboard are written"},
      {"exp_name", "job.name", ""},
      {"experiment_name", "job.name", ""},
      {"run_name", "job.name", ""},
      {"job_name", "job.name", ""},
      {"output_dir", "job.run_root", ""},
      {"log_dir", "job.run_root", ""},
      {"dtype", "precision.param", ""},
      {"mixed_precision", "precision.param", ""},
      {"device", "cluster.component_placement", kPlaced},
      {"devices", "cluster.component_placement", kPlaced},
      {"gpus", "cluster.component_placement", kPlaced},
      {"num_gpus", "cluster.component_placement", kPlaced},
      {"nnodes", "cluster.num_nodes", ""},
  };
  return table;
}

std::optional<Synonym> find_synonym(std::string_view word) {
  const auto& table = synonyms();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Synonym& s) { return s.word == word; });
  return found == table.end() ? std::nullopt : std::optional(*found);
}

}  // namespace troupe::configs
