#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "env/block_layout.h"
#include "env/env.h"

namespace troupe::workers {

/// One environment of an evaluation, as its player sees it before an action.
struct EpisodeSeat {
  /// Of the episode that is played (EvaluationEpisode::seed), and control steps since it began: 0 at its first
  /// observation, and again at the first of the next.
  std::int64_t seed = 0, length = 0;
  bool is_playing = false;
  /// What the environment told last, a block of this environment alone; null before its first episode.
  const BlockView* seen = nullptr;
  /// EnvPool::render of this environment.
  std::function<Result<void>(const std::string& camera, RenderTarget out)> render = {};

  /// Bytes of field `index` of the observation, agent after agent. Requires `seen`.
  const std::byte* field(std::size_t index) const { return seen->memory + seen->layout->observation[index]; }
};

/// Acts in the environments of an evaluation (run_episodes): a policy of reinforcement learning (AgentPlayer), or
/// DreamZero (ClosedLoopPlayer). One thread at a time.
class EpisodePlayer {
 public:
  virtual ~EpisodePlayer() = default;
  /// Actions of one agent in an answer, and how many of them are executed before the next question.
  virtual std::int64_t chunk() const = 0;
  virtual std::int64_t exec_steps() const = 0;
  /// The answer for all seats, as many and in the same order at every call: f32 [seats * P, chunk * A], contiguous, row
  /// i for agent i mod P of seat i / P (EnvSpec::agents). Rows of seats that do not play are not read. An error ends
  /// the evaluation.
  virtual Result<at::Tensor> act(std::span<const EpisodeSeat> seats) = 0;
};

}  // namespace troupe::workers
