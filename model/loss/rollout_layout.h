#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

// Rollout tensors, time first, into the layouts that advantages and learners work on. Shape legend: T policy calls, B
// environments, K actions in a chunk, E rollout epochs of T calls.

/// Rollout epochs become more environments: [E*T, B, ...] -> [T, E*B, ...]. Environment b of epoch e is column e*B + b.
/// Tensors with a row after the last call (flags, values) have T + 1 rows an epoch, and all of them stay.
/// Errors: throws c10::Error where `epochs` does not divide the rows.
at::Tensor merge_epochs(const at::Tensor& x, std::int64_t epochs);

/// Action-level steps: [T,B,K] -> [T*K,B], the step inside a chunk fastest.
at::Tensor flatten_steps(const at::Tensor& x_TBK);
/// Back: [T*K,B] -> [T,B,K].
at::Tensor unflatten_steps(const at::Tensor& x_SB, std::int64_t chunk);
/// Flags [T+1,B,K] -> the last T*K + 1 steps [T*K+1,B]: row s + 1 says whether step s ended an episode.
at::Tensor flatten_flags(const at::Tensor& x_T1BK);
/// Values [T+1,B,K] -> the first T*K + 1 steps [T*K+1,B].
at::Tensor flatten_values(const at::Tensor& x_T1BK);

/// Samples for training: [T,B,...] -> [T*B,...] in the order of `permutation` i64 [T*B]; undefined: as they lie. Row
/// t*B + b is call t of environment b. Of tensors with T + 1 rows the caller drops the last.
at::Tensor flatten_samples(const at::Tensor& x, const at::Tensor& permutation);

}  // namespace troupe::model
