#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace troupe::model {

// How finely rewards, log-probabilities and entropy are counted. Shape legend: N rows (policy calls), K actions in a
// chunk, A numbers in an action, L = K * A (K for discrete actions). Losses work on tensors of three dimensions, [N, K
// or 1, A or 1], so that coarser ones broadcast against finer ones: a chunk is [N,1,1], an action [N,K,1], a token
// [N,K,A].

/// chunk: one number per policy call; action: one per action of the chunk; token: one per dimension of each action.
enum class Granularity : std::uint8_t { chunk, action, token };

/// "chunk" | "action" | "token", as configurations spell it. Throws c10::Error on another name.
Granularity parse_granularity(std::string_view name);

/// Sums unreduced log-probabilities or entropies: token keeps them, action sums over A, chunk over K and A. Old and new
/// values must be reduced from unreduced ones by the same call, or their ratio means nothing.
///
/// Shapes: x [N,L], `chunk` = K divides L. Returns [N,K,A], [N,K,1] or [N,1,1]; bf16 and f16 are cast to f32 first.
/// Errors: throws c10::Error where L is no multiple of K.
at::Tensor reduce_to(const at::Tensor& x_NL, std::int64_t chunk, Granularity granularity);

}  // namespace troupe::model
