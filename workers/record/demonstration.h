#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/registry/expert.h"
#include "env/single_env.h"

namespace troupe::workers {

/// Control steps that an episode goes on after the step that solved it, while it stays solved: recordings show "stay
/// there" too.
inline constexpr std::int64_t kHoldSteps = 5;

/// The episode seed (Env::reset) of try `k`: episode_seed(seed, -1, k). Training numbers its environments from 0 and
/// evaluation is number 0 of its own seeds, so that -1 is neither.
std::uint64_t demonstration_seed(std::uint64_t seed, std::int64_t k);

/// One episode as it was played. Row t has the observation before the action, the action as executed, and what the
/// step gave.
struct Demonstration {
  std::string instruction;
  /// Rows.
  std::int64_t length = 0;
  /// [length, D] before the action, [length, A] in the environment's units.
  std::vector<float> states, actions;
  /// [length]; flags 0 or 1, `done` in the last row only, and `terminated` where the environment ended it.
  std::vector<float> rewards, done, success, terminated;
  /// Frames of each camera, u8 [length, side, side, 3], drawn with the observation.
  std::vector<std::vector<std::uint8_t>> images;

  /// The task is solved at the end: what was reached and lost again is no demonstration.
  bool is_solved() const { return length > 0 && success.back() != 0; }
};

/// An expert in its environment. Deterministic: a demonstration depends on its seed alone. Not thread-safe.
class Demonstrator {
 public:
  /// Draws `cameras` with `side` pixels squared. Without an expert the environment's own is asked (Env::advise).
  /// Errors: invalid_argument (observations that the expert does not read, no time limit, no such camera); not_found
  /// (the environment has no expert); those of making an environment.
  static Result<Demonstrator> make(std::shared_ptr<const EnvFactory> envs, std::unique_ptr<Expert> expert,
                                   std::vector<std::string> cameras, std::int64_t side);

  /// Plays the episode `seed` to its end: the environment's own, its time limit, or kHoldSteps after it was solved.
  /// Errors: those of the environment; internal (an action that is no number).
  Result<Demonstration> play(std::uint64_t seed);

  const EnvSpec& spec() const { return envs_->spec(); }
  /// For the metadata of datasets: what the robot is called, and what the numbers of a row are.
  const std::string& robot() const { return robot_; }
  const std::vector<std::string>& state_names() const { return state_names_; }
  const std::vector<std::string>& action_names() const { return action_names_; }
  const std::vector<std::string>& cameras() const { return cameras_; }
  std::int64_t side() const { return side_; }

 private:
  Demonstrator() = default;
  /// The numbers of a row, in the order of a policy's state.
  std::vector<float> observed() const;
  /// Of the episode under way: the text that the environment tells, else the expert's, else the environment's name.
  std::string instruction(std::uint64_t seed) const;
  /// Asks the expert for the action at this observation, within the action's bounds. Errors: internal (NaN).
  Result<void> act();
  /// Appends a frame of every camera.
  Result<void> draw(Demonstration& into);

  std::shared_ptr<const EnvFactory> envs_;
  std::optional<SingleEnv> env_;
  std::unique_ptr<Expert> expert_;  // null: the environment's own
  std::string robot_;
  std::vector<std::string> state_names_, action_names_;
  std::vector<std::string> cameras_;
  std::int64_t side_ = 0;
  std::vector<float> action_;
};

}  // namespace troupe::workers
