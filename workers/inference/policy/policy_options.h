#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "workers/checkpoint/weight_set.h"

namespace troupe::workers {

/// How `troupe serve` and `troupe eval` run a policy. Defaults: the released behaviour without step skipping.
struct PolicyOptions {
  /// Of a Troupe checkpoint; a DreamZero folder has one set.
  WeightSet weights = WeightSet::model;
  /// "unipc" or "euler" (docs/inference.md#samplers).
  std::string sampler = "unipc";
  /// Denoising steps.
  std::int64_t steps = 16;
  /// Classifier-free guidance of the video; 1: no guidance and no unconditional branch.
  double cfg_scale = 5.0;
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
  /// The last action value becomes 1 where positive, else -1, as RLinf sends it.
  bool sign_gripper = false;
};

/// A setting as a report writes it: a number, true or false, or text.
using OptionValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string>;
/// How a policy ran, for eval.json (docs/evaluation.md): what decides its actions, by name.
std::map<std::string, OptionValue> described(const PolicyOptions& options);

}  // namespace troupe::workers
