#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "configs/algorithm_config.h"

namespace troupe::model {

// How finely rewards, log-probabilities and entropy are counted. Shape legend: N rows (policy calls), K actions in a
// chunk, A numbers in an action, L = K * A (K for discrete actions). Losses work on tensors of three dimensions, [N, K
// or 1, A or 1], so that coarser ones broadcast against finer ones: a chunk is [N,1,1], an action [N,K,1], a token
// [N,K,A].

/// Sums unreduced log-probabilities or entropies: token keeps them, action sums over A, chunk over K and A. Old and new
/// values must be reduced from unreduced ones by the same call, or their ratio means nothing.
///
/// Shapes: x [N,L], `chunk` = K divides L. Returns [N,K,A], [N,K,1] or [N,1,1]; bf16 and f16 are cast to f32 first.
/// Errors: throws c10::Error where L is no multiple of K.
at::Tensor reduce_to(const at::Tensor& x_NL, std::int64_t chunk, Granularity granularity);

}  // namespace troupe::model
