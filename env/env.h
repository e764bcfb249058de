#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "env/env_spec.h"

namespace troupe::env {

/// Where one step's results go: views into the pool's batch memory, valid during the call. Writing them is all that an
/// environment does with the outside world.
struct StepSlot {
  /// Of each EnvSpec::observation field, in its dtype and shape, the agents' one after the other ([P, ...]); empty: not
  /// wanted now.
  std::span<std::byte* const> observation;
  /// Step only: of each agent.
  double* reward = nullptr;
  /// Step only: the task ended in success or failure. Time limits are the pool's.
  bool* terminated = nullptr;
  /// With EnvSpec::has_success.
  bool* success = nullptr;
  /// EnvSpec::info; step only.
  std::span<double> info;
  /// Step only: the episode is cut for a reason that is not the task's end, nor the pool's time limit; with
  /// `terminated` it does not count.
  bool* truncated = nullptr;
  /// Of each agent, where there are several: 1, it acts at the next step. Holds who was alive before the call, and all
  /// at a reset; an environment writes what changes. The action of another agent is ignored, and it has no reward.
  std::span<std::uint8_t> alive = {};
  /// In a call of a BatchEnv: set to the reason why this lane alone failed; the other lanes of the call go on.
  std::optional<Error>* failure = nullptr;

  /// Field `index` as `count` elements of T, which must be its dtype; no check. Aligned to at least sizeof(T).
  template <class T>
  std::span<T> field(std::size_t index, std::size_t count) const {
    return {reinterpret_cast<T*>(observation[index]), count};
  }
  /// Writes field `index` of EnvReader::text, which has room for `longest` bytes: the text, then zeros.
  void write_text(std::size_t index, std::size_t longest, std::string_view text) const {
    const auto to = field<char>(index, longest);
    std::fill(std::copy_n(text.begin(), std::min(text.size(), longest), to.begin()), to.end(), '\0');
  }
};

/// An image asked of render(): width * height RGB bytes, row by row, top first.
struct RenderTarget {
  std::int64_t width = 0, height = 0;
  std::span<std::uint8_t> rgb;
};

/// One simulated environment: `reset`, then `step` until an episode ends, then `reset` again.
///
/// No globals, no clock, no rand: the same seed and actions give the same bits on any worker, in any process. Used by
/// one thread at a time, not always the same one. Errors: invalid_argument (an action of a wrong size); whatever else
/// it returns or throws makes the pool mark the row as lost and make a new environment.
class Env {
 public:
  virtual ~Env() = default;
  /// Of the factory; valid while the environment lives.
  virtual const EnvSpec& spec() const noexcept = 0;
  /// Begins the episode that `seed` names (env/episode_seed.h) and writes its first observation. All randomness of the
  /// episode comes from CounterRng(seed, stream, 0).
  virtual Result<void> reset(std::uint64_t seed, StepSlot out) = 0;
  /// One control step. `action` has ActionSpace::size numbers inside their bounds, or one whole number for a discrete
  /// one, of each agent.
  virtual Result<void> step(std::span<const float> action, StepSlot out) = 0;
  /// Writes the observation of the present state, bit for bit what step() would have written. Asked only of
  /// environments with EnvSpec::observes_on_demand, whose step() gets no observation to write where nobody looks
  /// (inside an action chunk).
  virtual Result<void> observe(StepSlot out) {
    (void)out;
    return Error{Errc::failed_precondition, spec().id + " does not observe on demand"};
  }
  /// Draws the present state as one of EnvSpec::cameras sees it. Errors: not_found (no such camera).
  virtual Result<void> render(const std::string& camera, RenderTarget out) {
    (void)out;
    return Error{Errc::not_found, spec().id + " has no camera '" + camera + "'"};
  }
  /// The action that the environment's own expert takes at the present state, for demonstrations; it may lie outside of
  /// the bounds. Asked only of those whose factory may_advise(). Errors: not_found (it has no expert).
  virtual Result<void> advise(std::span<float> action) {
    (void)action;
    return Error{Errc::not_found, spec().id + " has no expert of its own"};
  }
  /// Hash of the full simulated state, for determinism tests; 0 when the environment has no cheap one.
  virtual std::uint64_t state_hash() const { return 0; }
};

}  // namespace troupe::env
