#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Rollout tensors, time first, into the layouts that advantages and learners work on. Shape legend: T policy calls, B
// environments, K actions in a chunk.

/// Action-level steps: [T,B,K] -> [T*K,B], the step inside a chunk fastest.
at::Tensor flatten_steps(const at::Tensor& x_TBK);
/// Back: [T*K,B] -> [T,B,K].
at::Tensor unflatten_steps(const at::Tensor& x_SB, std::int64_t chunk);
/// Flags [T+1,B,K] -> the last T*K + 1 steps [T*K+1,B]: row s + 1 says whether step s ended an episode.
at::Tensor flatten_flags(const at::Tensor& x_T1BK);
/// Values [T+1,B,K] -> the first T*K + 1 steps [T*K+1,B].
at::Tensor flatten_values(const at::Tensor& x_T1BK);

}  // namespace troupe::model
