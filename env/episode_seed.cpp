#include "env/episode_seed.h"

#include "base/hash.h"

namespace troupe::env {

std::uint64_t episode_seed(std::uint64_t seed, std::int64_t env_id, std::int64_t episode) noexcept {
  // each number passes the finaliser before the next joins, so that (1, 2) and (2, 1) are unrelated
  std::uint64_t hash = mix64(seed + 0x9E3779B97F4A7C15ULL);
  hash = mix64(hash ^ (static_cast<std::uint64_t>(env_id) + 0xD1B54A32D192ED03ULL));
  return mix64(hash ^ (static_cast<std::uint64_t>(episode) * 0x9E3779B97F4A7C15ULL + 1));
}

}  // namespace troupe::env
