#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Generalised advantage estimation (arXiv:1506.02438). Shape legend: S steps (control steps or chunks), T policy calls,
// B environments, K actions in a chunk. Row s + 1 of flags and values is the state after step s. No function here keeps
// a graph.

struct Advantages {
  at::Tensor advantages;
  at::Tensor returns;
};

/// d_s = r_s + gamma V_{s+1} (1 - done_{s+1}) - V_s,
/// A_s = d_s + gamma lambda (1 - done_{s+1}) A_{s+1},   R_s = A_s + V_s
///
/// Shapes: rewards [S,B]; values, dones [S+1,B]; flags bool, u8 or floating. f32 or f64, by the rewards. Returns [S,B]
/// of that dtype.
/// Errors: throws c10::Error on shapes that do not fit. Source: arXiv:1506.02438 eq. 16.
Advantages gae(const at::Tensor& rewards_SB, const at::Tensor& values_S1B, const at::Tensor& dones_S1B, double gamma,
               double lambda);

/// What a chunk earns: sum_k discount^k r_k; discount 1 is the plain sum. [T,B,K] -> [T,B].
at::Tensor chunk_rewards(const at::Tensor& rewards_TBK, double discount = 1.0);

/// How rollouts become advantages.
struct GaeOptions {
  double gamma = 0.99;
  double lambda = 0.95;
  /// action-level: T*K steps, values [T+1,B,K]; else chunk-level: T steps, values [T+1,B,1]
  bool per_action = true;
  /// chunk-level: rewards sum_k gamma^k r_k and gamma^K between chunks, in place of gamma once per chunk
  bool semi_mdp = false;
};

/// Advantages of a rollout in its own layout. Chunk-level: a chunk is done when any of its steps is.
/// Shapes: rewards [T,B,K], dones [T+1,B,K], values [T+1,B,K or 1]. Returns [T,B,K or 1].
Advantages rollout_gae(const at::Tensor& rewards_TBK, const at::Tensor& values_T1BV, const at::Tensor& dones_T1BK,
                       const GaeOptions& options);

/// At which ends the value of the final observation is added: truncations, every end, none.
enum class Bootstrap : std::uint8_t { standard, always, never };

/// Rewards with gamma V(final observation) at the ends of episodes, for auto-reset rollouts, where V_{s+1} is the next
/// episode's. The step that ended the episode gets it, the first one flagged in the chunk; a truncation that is a
/// termination too counts as a termination. `parity`: the chunk's last step gets it and both flags count, as in RLinf;
/// the same where flags are collapsed.
///
/// Shapes: rewards [T,B,K]; terminated, truncated [T,B,K] (rows 1 .. T of the rollout's flags); final_values [T,B,1],
///         read where an episode ended. Rewards of a reward model are mixed in before.
at::Tensor add_bootstrap(const at::Tensor& rewards_TBK, const at::Tensor& terminated_TBK,
                         const at::Tensor& truncated_TBK, const at::Tensor& final_values_TB1, double gamma,
                         Bootstrap bootstrap, bool parity = false);

}  // namespace troupe::model
