#pragma once

#include <string_view>
#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

// Low-rank adapters on the transformer's linears (LoRA, arXiv:2106.09685 eq. 3), under PEFT's names:
//     y = x W^T + b + (alpha / r) (x A^T) B^T

/// Ends of the adapters' names behind their linear's, as PEFT writes them.
inline constexpr std::string_view kLoraA = ".lora_A.default.weight";  ///< [r, in]
inline constexpr std::string_view kLoraB = ".lora_B.default.weight";  ///< [out, r]

/// What a configuration trains, in the units of dit_units. train_architecture full: all of them. lora: every unit's
/// parameters are frozen, and its adapters and its state encoder, action encoder and action decoder are
/// replicated parameters (UnitSpec::replicated).
/// A starts uniform in +-1/sqrt(in) (Kaiming with a = sqrt 5), B zero, so that the first forward is the base's.
/// Errors: throws c10::Error when one of model.lora.targets names no linear.
std::vector<UnitSpec> training_units(const ModelConfig& config);

/// PEFT's rule: a module is meant by a target that is its name or what follows a dot in it.
bool matches_target(std::string_view module, std::string_view target);

/// alpha / rank.
double lora_scale(const LoraConfig& config);

}  // namespace troupe::model
