#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::env {

/// The seed of one episode: a hash of (job seed, global environment id, episode), so that what an environment does
/// depends on nothing else. Members of a GRPO group are given their group's id as `env_id`.
std::uint64_t episode_seed(std::uint64_t seed, std::int64_t env_id, std::int64_t episode) noexcept;

/// Streams that environments draw from, each its own CounterRng(episode seed, stream, 0)
/// (docs/env.md#same-seed-same-bits).
namespace env_stream {
inline constexpr std::uint64_t reset = 0, dynamics = 1, randomisation = 2;
}

}  // namespace troupe::env
