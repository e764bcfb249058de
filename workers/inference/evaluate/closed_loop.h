#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/registry/expert.h"
#include "workers/inference/agent/episode_player.h"
#include "workers/inference/policy/env_columns.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// A policy for robots, DreamZero, plays in the environment that its recordings are of
/// (docs/evaluation.md#closed-loop): it sees what `troupe record` writes down of an episode, its cameras, the whole
/// state and the instruction, in windows as it was trained on. With S = window.macro_stride, K = window.chunks and
/// offsets O:
///     control step   0       S                2 S        ...   K S
///     frames         1: 0    S O, and S       2 S ...          1: K S, where a new episode of the policy begins
/// A call's first S actions are executed, one a control step, before the next call. Environments whose calls fall on
/// the same step are answered together; each has an episode of the policy to itself.
class ClosedLoopPlayer final : public EpisodePlayer {
 public:
  /// `policy` outlives this and keeps no other episodes; `spec` is its own. Errors: invalid_argument (an environment
  /// that does not observe or take what the policy was trained with, or without such a camera; a window whose calls
  /// leave gaps), not_found (an environment without an expert, who says the instruction: make_expert), each naming what
  /// was wanted. `instruction`: told in every episode, in place of what the expert says; empty: none.
  static Result<std::unique_ptr<ClosedLoopPlayer>> make(Policy& policy, const PolicySpec& spec, const EnvSpec& env,
                                                        std::string instruction = {});

  /// run_episodes asks at every control step: between calls of the policy, frames are drawn and planned actions
  /// executed.
  std::int64_t chunk() const override { return 1; }
  std::int64_t exec_steps() const override { return 1; }
  /// Errors: those of the policy and of drawing, with the episode's seed.
  Result<at::Tensor> act(std::span<const EpisodeSeat> seats) override;

 private:
  /// What the policy calls a camera, and what the environment does.
  struct View {
    std::string name, camera;
  };
  /// One environment's episode.
  struct Turn {
    /// Control steps since the policy was asked, and its calls since the episode began.
    std::int64_t step = 0, calls = 0;
    std::string instruction;
    /// Of each view: frames u8 [side, side, 3] since the call, one after the other.
    std::vector<std::vector<std::byte>> frames;
    /// [S, A], in the environment's order of columns.
    std::vector<float> actions;
  };
  ClosedLoopPlayer(Policy& policy, const EnvSpec& env, const WindowConfig& window);
  Result<void> find_views(const PolicySpec& spec);
  std::string episode_of(std::size_t seat) const { return "environment " + std::to_string(seat); }
  bool is_drawn(std::int64_t step) const;
  void begin(const EpisodeSeat& seat, std::size_t index);
  Result<void> draw(const EpisodeSeat& seat, Turn& turn) const;
  Observation observe(const EpisodeSeat& seat, std::size_t index) const;
  void take(const ActionChunk& chunk, Turn& turn) const;

  Policy& policy_;
  const EnvSpec env_;
  const WindowConfig window_;
  std::int64_t later_frames_ = 0;
  std::vector<View> views_;
  std::vector<EnvColumns> state_, action_;
  std::string instruction_;
  std::unique_ptr<Expert> expert_;  ///< null with an instruction_
  std::vector<Turn> turns_;
};

}  // namespace troupe::workers
