#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace troupe::model {

/// Uniform numbers in [0, 1) for a policy's rows, f32 [N,width] on the CPU: row i holds the first draws of
/// CounterRng(seed, rng_stream::policy_action, keys[i]), so a row's action depends neither on the batch it is in nor on
/// the process that computes it. Normal ones are keyed_noise of that stream (model/loss/flow_matching.h).
at::Tensor keyed_uniforms(std::uint64_t seed, std::span<const std::uint64_t> keys, std::int64_t width);

}  // namespace troupe::model
