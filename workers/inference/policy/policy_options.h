#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "configs/job_config.h"
#include "workers/checkpoint/weight_set.h"

namespace troupe::workers {

/// How `troupe serve` and `troupe eval` run a policy. Defaults: the released behaviour without step skipping; of a
/// policy that learned in an environment, sampler, steps and guidance that it learned with.
struct PolicyOptions {
  /// Of a Troupe checkpoint; a DreamZero folder has one set.
  WeightSet weights = WeightSet::model;
  /// "unipc" or "euler" (docs/inference.md#samplers); default unipc.
  std::optional<std::string> sampler{};
  /// Denoising steps; default 16.
  std::optional<std::int64_t> steps{};
  /// Classifier-free guidance of the video; 1: no guidance and no unconditional branch. Default 5.
  std::optional<double> cfg_scale{};
  /// Seed of the noise that every call begins with: equal calls give equal actions.
  std::uint64_t noise_seed = 1140;
  /// "none"; 5, 6, 7, 8 (evaluated steps of 16); "dynamic" (docs/inference.md#options).
  std::string skip = "none";
  /// Of parameters and activations: fp32 or bf16 (docs/inference.md#precision).
  std::string dtype = "fp32";
  /// SentencePiece model; empty: the checkpoint's.
  std::string tokenizer{};
  /// Tag in metadata.json; empty: the checkpoint's only one.
  std::string embodiment{};
  /// That the networks compute on; 0: one on each core.
  std::int64_t threads = 0;
  /// Where DreamZero's transformer computes: "cores", the number of a device of this machine, or "auto", the first
  /// device where there is one and else cores.
  std::string device = "cores";
  /// On a device: what is enqueued is captured and launched as CUDA graphs. The bits are the same.
  bool cuda_graphs = true;
  /// State tokens see only themselves, as in training; a policy that learned in an environment always plays so. The
  /// released policies run with them seeing everything.
  bool state_self_only = false;
  /// The last action value becomes 1 where positive, else -1, as RLinf sends it.
  bool sign_gripper = false;
};

/// With what a checkpoint's job learned with in place of what is not given; unchanged for jobs of supervised
/// fine-tuning.
PolicyOptions as_trained(PolicyOptions options, const JobConfig& job);
/// With the released behaviour in place of what is not given.
PolicyOptions with_defaults(PolicyOptions options);

/// A setting as a report writes it: a number, true or false, or text.
using OptionValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string>;
/// How a policy ran, for eval.json (docs/evaluation.md): what decides its actions, by name, with_defaults.
std::map<std::string, OptionValue> described(const PolicyOptions& options);

}  // namespace troupe::workers
