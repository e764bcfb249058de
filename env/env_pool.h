#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "env/block_layout.h"
#include "env/env_block.h"
#include "env/env_factory.h"

namespace troupe::env {

/// N environments of one kind in G equal groups, each a block of its own on one executor: for programs that
/// use Troupe as a library, evaluation, benches and tests; a job's simulators hold EnvBlocks themselves.
///
/// One thread at a time sends and receives; Block handles may be released by any thread, and may outlive the pool.
/// Results depend on the options but for `threads`, `pin` and `max_blocks`, and per environment not on `num_envs` or
/// `groups` either. With several groups, recv(any_group) answers who finished first.
class EnvPool {
 public:
  struct Options {
    /// Environments N of the pool, over all groups.
    std::int64_t num_envs = 1;
    /// G, divides N; while one steps, the caller works on another.
    std::int64_t groups = 1;
    /// Global id of the pool's first environment; part of every episode's seed.
    std::int64_t first_env = 0;
    /// Actions K of a policy step.
    std::int64_t chunk = 1;
    /// 0: K.
    std::int64_t exec_steps = 0;
    /// As EnvBlock::Options, as are group_size, max_steps and stagger.
    ResetMode reset_mode = ResetMode::same_step;
    /// Neighbours that share their episodes' seeds (EnvBlock::Options).
    std::int64_t group_size = 1;
    /// 0: the spec's.
    std::int64_t max_steps = 0;
    bool stagger = false;
    std::uint64_t seed = 0;
    /// Stepping threads W; at least 1.
    std::int64_t threads = 1;
    bool pin = false;
    /// Buffers at most, those under way and those that the caller holds; 0: 2 (G + 2).
    std::int64_t max_blocks = 0;
  };
  static constexpr std::int64_t any_group = -1;

  /// One finished step of a group. Movable; its buffer goes back to the pool when it is destroyed.
  class Block {
   public:
    /// Valid as long as this.
    const BlockView& view() const { return view_; }
    std::int64_t group() const { return group_; }
    std::int64_t first_env() const { return first_env_; }
    /// As sent; -1 for a reset.
    std::int64_t policy_version() const { return policy_version_; }
    /// Counts the pool's blocks in the order of sending.
    std::uint64_t sequence() const { return sequence_; }

   private:
    friend class EnvPool;
    struct Buffers;
    struct GiveBack {
      std::shared_ptr<Buffers> buffers;
      void operator()(std::byte* memory) const;
    };
    Block() = default;
    std::unique_ptr<std::byte, GiveBack> memory_;
    BlockView view_;
    std::int64_t group_ = 0, first_env_ = 0, policy_version_ = -1;
    std::uint64_t sequence_ = 0;
  };

  /// Those of the blocks, summed over them, and of the pool.
  struct Counters : EnvBlock::Counters {
    std::int64_t blocks = 0;
    /// Of stepping threads asleep, summed over them.
    double idle_seconds = 0;
    /// That recv() waited.
    double wait_seconds = 0;
  };

  /// `factory` comes from make_env_factory (env/registry.h). Errors: invalid_argument (N not divisible by G, and what
  /// EnvBlock::make refuses); those of EnvFactory::make.
  static Result<std::unique_ptr<EnvPool>> make(std::shared_ptr<const EnvFactory> factory, const Options& options);
  /// Waits for steps under way, but not for one that recv() gave up: then environments and threads are left behind,
  /// with all that they use.
  ~EnvPool();

  /// Valid while the pool lives, as layout().
  const EnvSpec& spec() const;
  /// Of one group's block.
  const BlockLayout& layout() const;
  /// G.
  std::int64_t groups() const;
  /// Environments of a group, N / G, and its rows: one for each agent of each of them.
  std::int64_t envs() const;
  std::int64_t rows() const;

  /// Begins episode `episode` in every environment of a group, whatever it is in the midst of; recv() gives the first
  /// observations. Errors: invalid_argument (no such group), failed_precondition (a step of the group has not been
  /// received), resource_exhausted (the caller holds all buffers).
  Result<void> reset(std::int64_t group, std::int64_t episode = 0);
  /// As reset(), with this episode seed in every environment (EnvBlock::reset_to_seed). Errors: as reset();
  /// failed_precondition (another reset mode than episode and fixed).
  Result<void> reset_to_seed(std::int64_t group, std::uint64_t seed);
  /// One policy step of a group; `actions` is [rows, K, A], copied. Errors: as reset(); invalid_argument (wrong size);
  /// failed_precondition (the group was never reset).
  Result<void> send(std::int64_t group, std::span<const float> actions, std::int64_t policy_version = 0);
  /// The next finished block of a group, or of the group that finished first. Errors: deadline_exceeded,
  /// failed_precondition (nothing was sent), invalid_argument (no such group).
  Result<Block> recv(std::int64_t group = any_group, std::chrono::nanoseconds timeout = std::chrono::seconds(60));
  /// send() and recv(), while the calling thread steps environments too, as one of `threads`: nobody needs to be woken.
  /// So `timeout` bounds the wait for rows that other threads hold, not the caller's own; who steps environments that
  /// may hang uses send() and recv(). Errors: those of both.
  Result<Block> step(std::int64_t group, std::span<const float> actions, std::int64_t policy_version = 0,
                     std::chrono::nanoseconds timeout = std::chrono::seconds(60));

  Counters counters() const;
  /// EnvBlock::why_lost of environment first_env + i, between steps of its group.
  const std::string& why_lost(std::int64_t i) const;
  /// Env::state_hash of environment first_env + i, between steps of its group.
  std::uint64_t state_hash(std::int64_t i) const;
  /// Env::render of environment first_env + i, between steps of its group. Errors: those of EnvBlock::render.
  Result<void> render(std::int64_t i, const std::string& camera, RenderTarget out);
  /// As render(), Env::advise.
  Result<void> advise(std::int64_t i, std::span<float> action);

 private:
  /// The block of environment `i`.
  EnvBlock& block_of(std::int64_t i) const;
  struct State;
  explicit EnvPool(std::unique_ptr<State> state);
  Result<void> send(std::int64_t group, std::span<const float> actions, std::int64_t policy_version,
                    Executor::Caller caller);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::env
