#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// How `troupe serve` and `troupe eval` run a policy. Defaults: the released behaviour without step skipping.
struct PolicyOptions {
  std::int64_t steps = 16;  ///< denoising steps
  double cfg_scale = 5.0;   ///< 1: no guidance
  std::uint64_t noise_seed = 1140;
  std::string skip = "none";   ///< none, 5, 6, 7, 8 (evaluated steps of 16), dynamic
  std::string dtype = "fp32";  ///< fp32 or bf16
  std::string tokenizer{};     ///< SentencePiece model; empty: the checkpoint's
  std::string embodiment{};    ///< tag in metadata.json; empty: the checkpoint's only one
  bool sign_gripper = false;   ///< the last action value becomes 1 where positive, else -1, as RLinf sends it
};

}  // namespace troupe
