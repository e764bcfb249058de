#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "env/block_layout.h"
#include "env/env_factory.h"
#include "env/executor.h"
#include "env/reward_rules.h"

namespace troupe::env {

/// How episodes begin again (docs/env.md#one-step-of-a-block). The key env.reset_mode says auto for same_step.
enum class ResetMode : std::uint8_t {
  /// In the step that ended it; final_observation holds the last observation of the old episode.
  same_step,
  /// The ending row has the terminal observation; the next action is ignored and gives the reset observation, valid
  /// 0.
  next_step,
  /// Never by itself; an ended row is frozen: last observation, valid 0, reward 0, flags 0.
  episode,
  /// Terminations are ignored, nothing resets before the caller does; a row at its time limit is frozen.
  fixed,
};

/// Environments that are stepped together: one block of the job (docs/rl.md). Each has a row of the block, or one for
/// each of its agents: what is said here of a row holds for all rows of its environment. The environments' ids are
/// first_env .. first_env + envs - 1; results depend on (seed, id, episode, actions) alone, never on threads or on who
/// else runs. The executor outlives the block. One reset() or step() at a time, from any thread; not destroyed while
/// one is under way.
///
/// An environment that throws, returns an error, or gives a reward or observation that is no finite number, and a row
/// whose action is NaN or no whole number of a discrete space, is lost: `lost`, `done` and `truncated` are 1 at the
/// action that failed, which is not valid, final_observation is 0. It is counted, logged and made anew, with the next
/// episode: at once (same_step), in the next step (next_step), or at the caller's reset (episode, fixed; its
/// observation is 0 until then). Making anew that fails loses the row again in the next step. At a reset, `lost` says
/// that the row began with a later episode than asked for, or, with observation 0, not at all. Rows that one BatchEnv
/// steps are lost together where a call of it fails (docs/env.md#environments-in-batches).
class EnvBlock {
 public:
  struct Options {
    /// Global id of the block's first environment, and its number of environments.
    std::int64_t first_env = 0;
    std::int64_t envs = 1;
    /// Actions K of a policy step.
    std::int64_t chunk = 1;
    /// E <= K; 0: K.
    std::int64_t exec_steps = 0;
    ResetMode reset_mode = ResetMode::same_step;
    /// G: environments of a group share their episodes' seeds; divides first_env and envs.
    std::int64_t group_size = 1;
    /// 0: the spec's.
    std::int64_t max_steps = 0;
    /// Episode 0 of environment i ends after max_steps - (i mod max_steps).
    bool stagger = false;
    /// The job's seed; with the environment's id and the episode it makes the episode's seed.
    std::uint64_t seed = 0;
    /// What BlockView::reward holds; episode_return is the environment's own reward all the same.
    RewardRules reward = {};
  };
  /// Makes the environments. Errors: those of EnvFactory::make; invalid_argument (envs or first_env not divisible by
  /// group_size, exec_steps above chunk, numbers below their least, a spec without bounds of its action).
  static Result<std::unique_ptr<EnvBlock>> make(std::shared_ptr<const EnvFactory> factory, Options options,
                                                Executor& executor);
  virtual ~EnvBlock() = default;

  /// Fixed; valid while the block lives. Every BlockView given to reset() and step() must follow it.
  virtual const BlockLayout& layout() const = 0;
  /// Begins episode `episode` in every row and writes the first observations into `out`; rewards 0, flags 0, valid 0.
  /// Later episodes count up from it. Returns at once; `done` is called by a stepping thread when all rows are written,
  /// and may begin the next step.
  virtual void reset(std::int64_t episode, BlockView out, std::function<void()> done) = 0;
  /// As reset(), with this episode seed (Env::reset) in every row, whatever the options say, and no stagger; for
  /// callers that number episodes themselves. A row that cannot begin is lost and begins no other episode.
  /// Another mode than ResetMode::episode and fixed is an invariant violation.
  virtual void reset_to_seed(std::uint64_t seed, BlockView out, std::function<void()> done) = 0;
  /// One policy step of every row. `actions` is [rows, K, A], copied before anything is written, so that it may lie in
  /// `out`; its size is the caller's to check. As reset() otherwise. A row stops at the action that ends its episode.
  /// Actions are clipped to the space's bounds. A caller that `helps` calls Executor::help() next.
  virtual void step(std::span<const float> actions, BlockView out, std::function<void()> done,
                    Executor::Caller caller = Executor::Caller::leaves) = 0;

  /// Since make(), summed over the rows.
  struct Counters {
    std::int64_t env_steps = 0, resets = 0, lost = 0;
    /// That stepping threads spent in rows, summed over them.
    double step_seconds = 0;
    Counters& operator+=(const Counters& other) {
      env_steps += other.env_steps;
      resets += other.resets;
      lost += other.lost;
      step_seconds += other.step_seconds;
      return *this;
    }
    Counters operator-(const Counters& before) const {
      return {env_steps - before.env_steps, resets - before.resets, lost - before.lost,
              step_seconds - before.step_seconds};
    }
  };
  /// From any thread at any time.
  virtual Counters counters() const = 0;
  /// Why the block's environment `i` was lost, the last time that it was; between steps. Empty: never.
  virtual const std::string& why_lost(std::int64_t i) const = 0;
  /// Env::state_hash of one, between steps; 0 for a lost one.
  virtual std::uint64_t state_hash(std::int64_t i) const = 0;
  /// Env::render of one, between steps. Errors: those of Env::render; failed_precondition for a lost one.
  virtual Result<void> render(std::int64_t i, const std::string& camera, RenderTarget out) = 0;
  /// As render(), Env::advise.
  virtual Result<void> advise(std::int64_t i, std::span<float> action) = 0;
};

}  // namespace troupe::env
