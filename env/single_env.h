#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "env/env_pool.h"

namespace troupe::env {

/// One environment by itself, a pool of one, with the rules of a block (env/env_block.h): for recordings and videos.
/// May be moved. One that hangs is left behind with its thread.
class SingleEnv {
 public:
  /// `patience`: the longest that a reset or a step may take. Errors: those of EnvPool::make.
  static Result<SingleEnv> make(std::shared_ptr<const EnvFactory> envs,
                                std::chrono::milliseconds patience = std::chrono::seconds(60));

  /// Begins the episode with this seed (Env::reset). Errors: internal (the environment failed; the message says how),
  /// deadline_exceeded, after which nothing more can be done with it.
  Result<void> begin(std::uint64_t seed);
  /// One control step, of [P, A] numbers. Errors: as begin().
  Result<void> step(std::span<const float> action);
  /// What the last call gave: a block of one environment and one action; valid until the next. As the two below only
  /// after a begin(), and not after deadline_exceeded.
  const BlockView& view() const { return seen_->view(); }
  /// Bytes of field `index` of the observation, of all agents.
  std::span<const std::byte> field(std::size_t index) const;
  /// Errors: those of EnvBlock::render.
  Result<void> render(const std::string& camera, RenderTarget out) { return pool_->render(0, camera, out); }
  Result<void> advise(std::span<float> action) { return pool_->advise(0, action); }

 private:
  SingleEnv() = default;
  /// Errors: failed_precondition (it hung).
  Result<void> check() const;
  Result<void> receive();

  std::chrono::milliseconds patience_{};
  std::unique_ptr<EnvPool> pool_;
  std::optional<EnvPool::Block> seen_;
};

}  // namespace troupe::env
