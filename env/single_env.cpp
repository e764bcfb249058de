#include "env/single_env.h"

#include <utility>

namespace troupe::env {

Result<SingleEnv> SingleEnv::make(std::shared_ptr<const EnvFactory> envs, std::chrono::milliseconds patience) {
  SingleEnv single;
  single.patience_ = patience;
  TROUPE_ASSIGN(single.pool_, EnvPool::make(std::move(envs), {.reset_mode = ResetMode::episode}));
  return single;
}

Result<void> SingleEnv::begin(std::uint64_t seed) {
  TROUPE_TRY(check());
  TROUPE_TRY(pool_->reset_to_seed(0, seed));
  return receive();
}

Result<void> SingleEnv::step(std::span<const float> action) {
  TROUPE_TRY(check());
  TROUPE_TRY(pool_->send(0, action));
  return receive();
}

Result<void> SingleEnv::check() const {
  if (pool_) return {};
  return Error{Errc::failed_precondition, "an environment that hung was left behind; make another"};
}

Result<void> SingleEnv::receive() {
  auto block = pool_->recv(0, patience_);
  if (!block) {
    pool_.reset();
    return block.error();
  }
  seen_.emplace(std::move(*block));
  if (view().lost()[0] != 0) return Error{Errc::internal, pool_->why_lost(0)};
  return {};
}

std::span<const std::byte> SingleEnv::field(std::size_t index) const {
  const auto bytes = static_cast<std::size_t>(pool_->spec().agents * pool_->spec().observation[index].bytes());
  return {view().memory + view().layout->observation[index], bytes};
}

}  // namespace troupe::env
