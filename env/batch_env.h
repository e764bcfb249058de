#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "env/env.h"

namespace troupe::env {

/// Environments of one kind that are stepped together, as lanes 0 to lanes() - 1: for dynamics that are cheaper than
/// the overhead of a call each. A call lists the lanes to reset or step, each once, in any order, and changes no other
/// lane: some lanes end their episodes while others go on.
///
/// Otherwise as Env: no globals, no clock, no rand; what lane i does depends on its seed and actions alone, to the bit,
/// not on the number of lanes nor on who else is in the call; a reset leaves nothing behind of the lane's past. Used by
/// one thread at a time. A call that throws or returns an error loses every row of its lanes (docs/env.md), and this
/// object with them. Errors: invalid_argument (actions of a wrong size).
class BatchEnv {
 public:
  virtual ~BatchEnv() = default;
  /// Of the factory; valid while this lives.
  virtual const EnvSpec& spec() const noexcept = 0;
  virtual std::int64_t lanes() const noexcept = 0;
  /// Env::reset of lane lanes[i] with seeds[i] and out[i].
  virtual Result<void> reset(std::span<const std::int64_t> lanes, std::span<const std::uint64_t> seeds,
                             std::span<const StepSlot> out) = 0;
  /// Env::step of lane lanes[i] with row i of `actions` [lanes, P * A] and out[i].
  virtual Result<void> step(std::span<const std::int64_t> lanes, std::span<const float> actions,
                            std::span<const StepSlot> out) = 0;
  /// As Env's, of one lane.
  virtual Result<void> observe(std::int64_t lane, StepSlot out) {
    (void)lane, (void)out;
    return Error{Errc::failed_precondition, spec().id + " does not observe on demand"};
  }
  virtual Result<void> render(std::int64_t lane, const std::string& camera, RenderTarget out) {
    (void)lane, (void)out;
    return Error{Errc::not_found, spec().id + " has no camera '" + camera + "'"};
  }
  virtual Result<void> advise(std::int64_t lane, std::span<float> action) {
    (void)lane, (void)action;
    return Error{Errc::not_found, spec().id + " has no expert of its own"};
  }
  virtual std::uint64_t state_hash(std::int64_t lane) const {
    (void)lane;
    return 0;
  }
};

/// Wraps one environment as a batch of one lane.
std::unique_ptr<BatchEnv> as_batch(std::unique_ptr<Env> env);

/// Lane 0 of `batch` as an environment by itself.
std::unique_ptr<Env> as_env(std::unique_ptr<BatchEnv> batch);

/// The check of BatchEnv::step. Errors: invalid_argument.
Result<void> check_actions(const EnvSpec& spec, std::span<const std::int64_t> lanes, std::span<const float> actions);

}  // namespace troupe::env
